//! Reading traffic of any format, cutting it to size, writing it.

use crate::cli::{CutArgs, DrawnArgs, ImportArgs, InFormat, ServeGenArgs, TextArgs};
use crate::emit::{GENERATOR, emit};
use crate::input::{self, Reading, Requests};
use crate::text;
use clap::ValueEnum;
use cr_cli::{CommonArgs, Exit, InputContext, bad_input};
use cr_trace::ahead::ReadAhead;
use cr_trace::lines::Lines;
use cr_trace::shape::{Cuts, Shape, Shaped};
use cr_trace::tolerance::Tolerance;
use cr_trace::unbunch::Unbunch;
use cr_trace::{TraceHeader, tolerance};
use cr_workload::Length;
use cr_workload::servegen::{ServeGen, ServeGenOptions};
use serde_json::{Value, json};
use std::path::Path;

/// Requests ready to be cut, and what their header tells.
struct Opened {
    requests: Requests,
    reads_ahead: bool,
    format: InFormat,
    block_tokens: Option<u32>,
    inner: Option<TraceHeader>,
    tolerance: tolerance::Tolerance,
    shape: Shape,
}

/// Imports, cuts and writes.
pub(crate) fn run(args: &ImportArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let opened = open(args, Purpose::Write)?;
    let header = header(args, &opened, count(args)?);
    let tolerance = opened.tolerance.clone();
    let requests = match opened.reads_ahead {
        true => opened.requests,
        false => Box::new(ReadAhead::new(opened.requests)?),
    };
    let mut requests = Shaped::new(requests, opened.shape);
    let mut written = 0u64;
    let counted = requests.by_ref().inspect(|_| written += 1);
    let exit = emit(&mut counted.map(|request| request.bad_input()), &header, &args.out, common)?;
    if written == 0 {
        common.note("no request was written: the input has none, or none within --window and the other cuts");
    }
    input::tell_skipped(&tolerance, common);
    tell(&requests.cuts(), common);
    Ok(exit)
}

/// What an input is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To write its requests.
    Write,
    /// Only to count them.
    Count,
}

fn open(args: &ImportArgs, purpose: Purpose) -> anyhow::Result<Opened> {
    let mut shape = args.cut.shape()?;
    let opened = if input::format(&args.file, &args.input) == Some(InFormat::Servegen) {
        input::check_key_rule(&args.input, InFormat::Servegen)?;
        // The window is generated, not cut out.
        let window_s = shape.window_s.take();
        refuse(InFormat::Servegen, args)?;
        let requests = servegen(&args.file, &args.servegen, &args.drawn, window_s)?;
        Opened {
            requests: Box::new(requests.map(Ok)),
            reads_ahead: false,
            format: InFormat::Servegen,
            block_tokens: None,
            inner: None,
            tolerance: Tolerance::default(),
            shape,
        }
    } else {
        let raw = input::raw(&args.file, &args.input)?;
        refuse(raw.format, args)?;
        let source = if input::is_text(raw.format) {
            text::source(raw, args, purpose)?
        } else {
            let reading = match purpose {
                Purpose::Write => Reading::RowsAhead,
                Purpose::Count => Reading::AsAsked,
            };
            input::source(raw.reader, &raw.name, raw.format, &args.input, reading)?
        };
        let input::Source { requests, reads_ahead, format, block_tokens, header, tolerance } = source;
        Opened { requests, reads_ahead, format, block_tokens, inner: header, tolerance, shape }
    };
    if args.cut.unbunch {
        return Ok(Opened { requests: Box::new(Unbunch::new(opened.requests)), ..opened });
    }
    Ok(opened)
}

fn servegen(
    folder: &str,
    args: &ServeGenArgs,
    drawn: &DrawnArgs,
    window_s: Option<(f64, f64)>,
) -> anyhow::Result<ServeGen> {
    let window_s = window_s.ok_or_else(|| {
        bad_input("a ServeGen folder spans days of traffic; choose a part by --window FROM TO, such as --window 8h 8h10m")
    })?;
    let key_tokens = args.key_tokens.unwrap_or(600);
    let options = ServeGenOptions {
        seed: drawn.seed(),
        window_s,
        rate_scale: args.rate_scale.unwrap_or(1.0),
        key_tokens: u32::try_from(key_tokens)
            .map_err(|_| bad_input(format!("--key-tokens: {key_tokens} tokens are too many")))?,
        user_tokens: Length::lognormal(args.user_tokens.unwrap_or(90), args.user_sigma.unwrap_or(0.0)),
        output_tokens: drawn.length(),
    };
    ServeGen::open(Path::new(folder), &options).bad_input()
}

/// A flag by its name in the header, and its value where it was given.
type Given = (&'static str, Option<Value>);

impl DrawnArgs {
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(42)
    }

    /// The tokens to decode where the input does not tell.
    pub(crate) fn length(&self) -> Length {
        Length::lognormal(self.output_tokens.unwrap_or(64), self.output_sigma.unwrap_or(0.0))
    }

    fn given(&self) -> Vec<Given> {
        vec![
            ("seed", self.seed.map(Into::into)),
            ("output_tokens", self.output_tokens.map(Into::into)),
            ("output_sigma", self.output_sigma.map(Into::into)),
        ]
    }
}

impl ServeGenArgs {
    fn given(&self) -> Vec<Given> {
        vec![
            ("rate_scale", self.rate_scale.map(Into::into)),
            ("key_tokens", self.key_tokens.map(Into::into)),
            ("user_tokens", self.user_tokens.map(Into::into)),
            ("user_sigma", self.user_sigma.map(Into::into)),
        ]
    }
}

impl TextArgs {
    fn given(&self) -> Vec<Given> {
        let arrivals = self.arrivals.and_then(|process| process.to_possible_value());
        vec![
            ("tokenizer", self.tokenizer.clone().map(Into::into)),
            ("qps", self.qps.map(Into::into)),
            ("arrivals", arrivals.map(|process| process.get_name().into())),
            ("cv", self.cv.map(Into::into)),
            ("think", self.think.map(Into::into)),
            ("open", self.open.then_some(true.into())),
        ]
    }
}

/// Refuses flags that do nothing for an input of this format.
fn refuse(format: InFormat, args: &ImportArgs) -> anyhow::Result<()> {
    let (servegen, text) = (format == InFormat::Servegen, input::is_text(format));
    let groups = [
        (args.drawn.given(), servegen || text, "ServeGen folders and text"),
        (args.servegen.given(), servegen, "ServeGen folders"),
        (args.text.given(), text, "text (custom, sharegpt)"),
    ];
    for (given, counts, what) in groups {
        if let Some((name, _)) = given.iter().find(|(_, value)| value.is_some() && !counts) {
            let flag = name.replace('_', "-");
            return Err(bad_input(format!("--{flag} is for {what}; other inputs tell it themselves")));
        }
    }
    Ok(())
}

impl CutArgs {
    fn shape(&self) -> anyhow::Result<Shape> {
        let window_s = match self.window.as_deref() {
            Some(&[from, to]) if from < to => Some((from, to)),
            Some(_) => return Err(bad_input("--window: the first time must lie before the second")),
            None => None,
        };
        Ok(Shape {
            window_s,
            limit: self.limit,
            max_input_tokens: self.max_input.map(u64::from),
            max_output_tokens: self.max_output,
            speedup: self.speedup,
        })
    }
}

/// How many requests will remain. A file is read twice for it; a pipe cannot be. Where every line is a request, lines are counted.
fn count(args: &ImportArgs) -> anyhow::Result<Option<u64>> {
    if args.file == "-" || !std::fs::metadata(&args.file).is_ok_and(|meta| meta.is_file() || meta.is_dir()) {
        return Ok(None);
    }
    if let Some(lines) = count_lines(args)? {
        return Ok(Some(lines));
    }
    let opened = open(args, Purpose::Count)?;
    let mut requests = Shaped::new(opened.requests, opened.shape);
    for request in requests.by_ref() {
        request.bad_input()?;
    }
    Ok(Some(requests.cuts().kept))
}

/// The requests of hash blocks without parsing them, unless which of them remain depends on what they say.
fn count_lines(args: &ImportArgs) -> anyhow::Result<Option<u64>> {
    if args.cut.window.is_some() || args.input.skip_bad > 0 || Path::new(&args.file).is_dir() {
        return Ok(None);
    }
    let raw = input::raw(&args.file, &args.input)?;
    if !matches!(raw.format, InFormat::Mooncake | InFormat::Bailian) {
        return Ok(None);
    }
    let limit = args.cut.limit.unwrap_or(u64::MAX);
    let mut lines = Lines::new(raw.reader, &raw.name);
    let mut count = 0;
    while count < limit && lines.advance().bad_input()? {
        count += 1;
    }
    Ok(Some(count))
}

fn header(args: &ImportArgs, opened: &Opened, requests: Option<u64>) -> TraceHeader {
    let name = |format: InFormat| format.to_possible_value().map(|value| value.get_name().to_owned());
    let mut import = json!({ "from": name(opened.format) });
    let mut set = |name: &str, value: Option<Value>| {
        if let (Some(value), Some(fields)) = (value, import.as_object_mut()) {
            fields.insert(name.into(), value);
        }
    };
    let key =
        args.input.key.and_then(|rule| rule.to_possible_value().map(|value| value.get_name().to_owned()));
    set("block_tokens", opened.block_tokens.map(Into::into));
    set("key", key.map(Into::into));
    set("key_blocks", args.input.key_blocks.map(Into::into));
    set("key_column", args.input.key_column.clone().map(Into::into));
    set("skip_bad", (args.input.skip_bad > 0).then(|| args.input.skip_bad.into()));
    set("limit", args.cut.limit.map(Into::into));
    set("window_s", args.cut.window.clone().map(Into::into));
    set("max_input_tokens", args.cut.max_input.map(Into::into));
    set("max_output_tokens", args.cut.max_output.map(Into::into));
    set("unbunch", args.cut.unbunch.then_some(true.into()));
    set("speedup", (args.cut.speedup != 1.0).then(|| args.cut.speedup.into()));
    for (name, value) in args.drawn.given().into_iter().chain(args.servegen.given()) {
        set(name, value);
    }
    if input::is_text(opened.format) {
        text::declare(args, &mut set);
    }
    let inner = opened.inner.as_ref();
    set("spec", inner.map(|header| header.spec.clone()));
    let draws = opened.format == InFormat::Servegen || input::is_text(opened.format);
    let drawn = draws.then(|| args.drawn.seed());
    TraceHeader {
        seed: inner.and_then(|header| header.seed).or(drawn),
        requests,
        spec: json!({ "import": import }),
        ..TraceHeader::new(GENERATOR)
    }
}

fn tell(cuts: &Cuts, common: &CommonArgs) {
    for (count, what) in [
        (cuts.clipped_inputs, "prompts were clipped to --max-input"),
        (cuts.clipped_outputs, "outputs were clipped to --max-output"),
        (cuts.released, "requests no longer wait for a predecessor that was cut away"),
    ] {
        if count > 0 {
            common.note(format!("{count} of {} {what}", cuts.kept));
        }
    }
}
