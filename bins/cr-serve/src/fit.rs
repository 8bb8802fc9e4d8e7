//! `cr-serve fit`: parameters that a publication leaves unsaid, searched for.

use clap::Args;
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Output, Progress, bad_input, quantity};
use cr_replay::appended;
use cr_replay::fit::{Evaluation, FitSpec, Fitted, Searching, fit};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;

#[derive(Args, Debug)]
pub(crate) struct FitArgs {
    /// What is searched, and against what (TOML)
    #[arg(value_name = "FIT")]
    fit: String,
    /// Stop the search after this time, before its evaluations are used up; what FILE tells of an earlier start counts
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    limit: Option<f64>,
    /// Simulated runs made at a time [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = quantity::positive_u32)]
    jobs: Option<u32>,
    /// Write every set that is tried, a JSON object a line; a search that was interrupted goes on from there
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Start anew, whatever the output file holds
    #[arg(long, requires = "output")]
    restart: bool,
}

/// Searches, and prints the best set with its error on seeds that were held out.
pub(crate) fn run(args: &FitArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let text = cr_cli::input::read_to_string(&args.fit)?;
    let spec = FitSpec::from_toml(&text, &args.fit).map_err(bad_input)?;
    let path = Path::new(&args.fit).parent().unwrap_or(Path::new("")).join(&spec.suite);
    let path = path.display().to_string();
    let suite = crate::sweep::read(&path)?;
    let (known, mut output) = match args.output.as_deref() {
        Some(path) if path != "-" && !args.restart => {
            let (known, file) = resumed(path)?;
            (known, Some(file))
        }
        path => (Vec::new(), path.map(|path| Output::create(Some(path))).transpose()?.map(boxed)),
    };
    let interrupt = Interrupt::install()?;
    let flag = interrupt.flag();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(cores, |jobs| jobs as usize);
    let how = Searching { jobs, limit_s: args.limit, known: &known, interrupt: &flag };
    let progress = Progress::new(common, "fit", "sets", Some(u64::from(spec.evaluations)));
    let (mut best, mut kept) = (f64::INFINITY, Ok(()));
    let fitted = fit(&spec, &suite, &how, &mut |count, evaluation| {
        progress.inc(1);
        if let (Some(output), Ok(())) = (&mut output, &kept)
            && !known.contains(evaluation)
        {
            kept = serde_json::to_writer(&mut *output, evaluation)
                .map_err(std::io::Error::from)
                .and_then(|()| output.write_all(b"\n"))
                .and_then(|()| output.flush());
        }
        if let Some(error) = evaluation.error.filter(|error| *error < best) {
            best = error;
            common.note(format!("[{count}/{}] error {error:.3}: {}", spec.evaluations, one_line(evaluation)));
        }
    });
    progress.finish();
    let fitted = fitted.map_err(crate::run::classify)?;
    kept?;
    let mut out = std::io::stdout().lock();
    out.write_all(answer(&fitted).as_bytes())?;
    out.flush()?;
    Ok(if fitted.held_out_error.is_some() { Exit::Done } else { Exit::Interrupted })
}

fn boxed(output: impl Write + 'static) -> Box<dyn Write> {
    Box::new(output)
}

/// What earlier searches wrote to a file, and the file to add to. It is not touched where it is something else.
fn resumed(path: &str) -> anyhow::Result<(Vec<Evaluation>, Box<dyn Write>)> {
    let opened = appended::go_on(Path::new(path), false);
    let (whole, file) = opened.map_err(|error| bad_input(format!("cannot go on with {path}: {error}")))?;
    let parsed = |(index, line): (usize, &[u8])| {
        let place = index + 1;
        serde_json::from_slice(line).map_err(|error| {
            bad_input(format!("{path}:{place}: this is no set of a search ({error}); --restart starts anew"))
        })
    };
    let known = appended::each_line(&whole).enumerate().map(parsed).collect::<Result<_, _>>()?;
    Ok((known, boxed(BufWriter::new(file))))
}

fn one_line(evaluation: &Evaluation) -> String {
    evaluation.set.iter().map(|(field, value)| format!("{field} = {value}")).collect::<Vec<_>>().join(", ")
}

fn answer(fitted: &Fitted) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for (field, value) in &fitted.best.set {
        let _ = writeln!(out, "{field} = {value}");
    }
    let searched = fitted.best.error.unwrap_or_default();
    let _ = writeln!(
        out,
        "\nthe best of {} sets in {:.0} s; error {searched:.3} on the seeds of the search",
        fitted.evaluations, fitted.spent_s
    );
    let Some(held_out) = fitted.held_out_error else {
        return out + "interrupted before it was tried on the seeds that are held out\n";
    };
    let _ = writeln!(out, "error {held_out:.3} on the seeds that are held out:\n");
    for (published, beside) in &fitted.beside {
        let (policy, what) = (&published.policy, published.what());
        let _ =
            writeln!(out, "{policy:<28} {what:<44} published {:>16}  ours {}", published.text(), beside.ours);
    }
    out
}
