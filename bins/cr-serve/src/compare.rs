//! `cr-serve report` and `cr-serve compare`: reports on disk, read back.

use clap::{Args, ValueEnum};
use cr_cli::quantity;
use cr_cli::{CommonArgs, Exit, InputContext, Output, bad_input};
use cr_report::compare::compare;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The report's folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Also write report.html, the whole report as a single page
    #[arg(long)]
    pub(crate) html: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The older result: a report's folder or its result.json
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The newer one
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Changes for the worse up to this share are no regression
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = quantity::share)]
    pub(crate) tolerance: f64,
    /// Write here instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// How the comparison is written
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// How a comparison is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs (`cacheroute.comparison/1`)
    Json,
    /// For a comment on a pull request
    Markdown,
}

/// Draws a report anew from its result.json and detail.json.
pub(crate) fn report(args: &ReportArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    exists(&args.dir)?;
    let mut written = cr_report::rebuild(&args.dir).bad_input()?;
    if args.html {
        written.push(cr_report::write_html(&args.dir)?);
    }
    for path in written {
        common.note(path.display().to_string());
    }
    Ok(Exit::Done)
}

/// Writes what changed from A to B; exits with 3 where B regressed.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    for side in [&args.a, &args.b] {
        exists(side)?;
        crate::report::reserve(side);
    }
    let (a, b) = (cr_report::load_result(&args.a).bad_input()?, cr_report::load_result(&args.b).bad_input()?);
    let comparison = compare(&a, &b, args.tolerance);
    let text = match args.format {
        Format::Text => comparison.text(),
        Format::Json => comparison.json()?,
        Format::Markdown => comparison.markdown(),
    };
    let mut out = Output::create(args.output.as_deref())?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    Ok(if comparison.regressed() { Exit::No } else { Exit::Done })
}

fn exists(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        Ok(())
    } else {
        Err(bad_input(format!("cannot open {}: no such file", path.display())))
    }
}
