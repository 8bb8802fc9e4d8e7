//! Reading traffic of any format, and cutting it to size.

use crate::cli::{CutArgs, ImportArgs, InArgs, TraceFormat};
use crate::emit::{GENERATOR, emit};
use cr_cli::{CommonArgs, Exit, Input, InputContext, bad_input};
use cr_trace::mooncake::{BlockKey, MooncakeImport, MooncakeReader};
use cr_trace::shape::{Cuts, Shape, Shaped};
use cr_trace::{Request, TraceError, TraceHeader, TraceReader};
use serde_json::json;
use std::io::BufRead;

type Requests = Box<dyn Iterator<Item = Result<Request, TraceError>>>;

/// An opened input of requests.
pub(crate) struct Source {
    pub(crate) requests: Requests,
    pub(crate) format: TraceFormat,
    /// The header of a native trace.
    pub(crate) header: Option<TraceHeader>,
}

/// Opens an input; Mooncake blocks have `block_tokens` tokens.
pub(crate) fn open(path: &str, args: &InArgs, block_tokens: u32) -> anyhow::Result<Source> {
    let mut input = Input::open(path)?;
    let format = match args.from {
        Some(format) => format,
        None => detect(&mut input)?,
    };
    if format == TraceFormat::Native && args.key_blocks.is_some() {
        return Err(bad_input("--key-blocks is for Mooncake input; a native trace has its keys"));
    }
    Ok(match format {
        TraceFormat::Native => {
            let reader = TraceReader::new(input.reader, &input.name).bad_input()?;
            let header = reader.header().cloned();
            Source { requests: Box::new(reader), format, header }
        }
        TraceFormat::Mooncake => {
            let key =
                args.key_blocks.map_or(BlockKey::AfterTrunk, |blocks| BlockKey::Prefix(blocks as usize));
            let reader = MooncakeReader::new(input.reader, &input.name, block_tokens);
            Source { requests: Box::new(MooncakeImport::new(reader, key)), format, header: None }
        }
    })
}

/// Tells the format by what the first buffer holds, without consuming it.
fn detect(input: &mut Input) -> anyhow::Result<TraceFormat> {
    let name = input.name.clone();
    let head = input.reader.fill_buf().map_err(|error| bad_input(format!("cannot read {name}: {error}")))?;
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    Ok(if line.contains("\"hash_ids\"") && !line.contains("\"prompt\"") {
        TraceFormat::Mooncake
    } else {
        TraceFormat::Native
    })
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

/// Imports, cuts and writes.
pub(crate) fn run(args: &ImportArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let shape = args.cut.shape()?;
    let source = open(&args.file, &args.input, args.block_tokens)?;
    let header = header(args, &source, count(args, &shape)?);
    let mut requests = Shaped::new(source.requests, shape);
    let exit = emit(&mut requests.by_ref().map(|request| request.bad_input()), &header, &args.out, common)?;
    tell(&requests.cuts(), common);
    Ok(exit)
}

/// How many requests will remain. A file is read twice for it; a pipe cannot be.
fn count(args: &ImportArgs, shape: &Shape) -> anyhow::Result<Option<u64>> {
    if args.file == "-" || !std::fs::metadata(&args.file).is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let mut requests = Shaped::new(open(&args.file, &args.input, args.block_tokens)?.requests, shape.clone());
    for request in requests.by_ref() {
        request.bad_input()?;
    }
    Ok(Some(requests.cuts().kept))
}

fn header(args: &ImportArgs, source: &Source, requests: Option<u64>) -> TraceHeader {
    let from = match source.format {
        TraceFormat::Native => "native",
        TraceFormat::Mooncake => "mooncake",
    };
    let mut import = json!({ "from": from });
    let mut set = |name: &str, value: Option<serde_json::Value>| {
        if let (Some(value), Some(fields)) = (value, import.as_object_mut()) {
            fields.insert(name.into(), value);
        }
    };
    set("block_tokens", (source.format == TraceFormat::Mooncake).then(|| args.block_tokens.into()));
    set("key_blocks", args.input.key_blocks.map(Into::into));
    set("limit", args.cut.limit.map(Into::into));
    set("window_s", args.cut.window.clone().map(Into::into));
    set("max_input_tokens", args.cut.max_input.map(Into::into));
    set("max_output_tokens", args.cut.max_output.map(Into::into));
    set("speedup", (args.cut.speedup != 1.0).then(|| args.cut.speedup.into()));
    let inner = source.header.as_ref();
    set("spec", inner.map(|header| header.spec.clone()));
    TraceHeader {
        seed: inner.and_then(|header| header.seed),
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
