//! Writing requests, whatever the format.

use crate::cli::{Numbering, OutArgs, TraceFormat};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Output, Progress};
use cr_trace::mooncake::{HashIds, MooncakeWriter};
use cr_trace::{Request, TraceHeader, TraceWriter};

/// What this program calls itself in headers.
pub(crate) const GENERATOR: &str = concat!("cr-gen ", env!("CARGO_PKG_VERSION"));

/// How many requests pass between two looks at the clock and the signals.
const BATCH: u64 = 1024;

enum Sink {
    Native(TraceWriter<Output>),
    Mooncake(MooncakeWriter<Output>),
}

impl Sink {
    fn open(output: Output, args: &OutArgs, header: &TraceHeader) -> anyhow::Result<Sink> {
        Ok(match args.format {
            TraceFormat::Native => Sink::Native(TraceWriter::with_header(output, header)?),
            TraceFormat::Mooncake => {
                let numbering = match args.hash_ids {
                    Numbering::Dense => HashIds::Dense,
                    Numbering::Chained => HashIds::Chained,
                };
                Sink::Mooncake(MooncakeWriter::new(output, args.out_block_tokens, numbering))
            }
        })
    }

    fn write(&mut self, request: &Request) -> std::io::Result<()> {
        match self {
            Sink::Native(writer) => writer.write(request),
            Sink::Mooncake(writer) => writer.write(request),
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Sink::Native(writer) => writer.finish()?,
            Sink::Mooncake(writer) => writer.finish()?,
        }
        .finish()
    }
}

/// Writes all requests; an interruption ends the output after a whole line.
pub(crate) fn emit(
    requests: &mut dyn Iterator<Item = anyhow::Result<Request>>,
    header: &TraceHeader,
    out: &OutArgs,
    common: &CommonArgs,
) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::install()?;
    let output = Output::create(Some(&out.output))?;
    let mut requests = requests.peekable();
    // What the output held stays until there is a request.
    if let Some(Err(error)) = requests.next_if(Result::is_err) {
        return Err(error);
    }
    let mut sink = Sink::open(output, out, header)?;
    let progress = Progress::new(common, "writing", "requests", header.requests);
    let mut written = 0;
    for request in requests {
        sink.write(&request?)?;
        written += 1;
        if written % BATCH == 0 {
            progress.set(written);
            if interrupt.is_set() {
                break;
            }
        }
    }
    progress.finish();
    sink.finish()?;
    if interrupt.is_set() {
        common.note(format!("interrupted after {written} requests; what is written is whole"));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}
