//! Opening traffic of any format.

use crate::cli::{InArgs, InFormat, KeyRule};
use cr_cli::{CommonArgs, Input, InputContext, bad_input};
use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use cr_trace::table_csv::{Columns, TableImport};
use cr_trace::tolerance::Tolerance;
use cr_trace::{Request, TraceError, TraceHeader, TraceReader, compress};
use std::io::BufRead;

pub(crate) type Requests = Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>;

/// An opened input of requests.
pub(crate) struct Source {
    pub(crate) requests: Requests,
    /// Parsing has a thread of its own already.
    pub(crate) reads_ahead: bool,
    pub(crate) format: InFormat,
    /// The block size of hashed input.
    pub(crate) block_tokens: Option<u32>,
    /// The header of a native trace.
    pub(crate) header: Option<TraceHeader>,
    pub(crate) tolerance: Tolerance,
}

/// The format of an input: the one asked for, or what its beginning looks like.
pub(crate) fn format(path: &str, args: &InArgs) -> Option<InFormat> {
    args.from.or_else(|| std::path::Path::new(path).is_dir().then_some(InFormat::Servegen))
}

/// Opens an input that is a stream: everything but a ServeGen folder.
pub(crate) fn open(path: &str, args: &InArgs) -> anyhow::Result<Source> {
    if format(path, args) == Some(InFormat::Servegen) {
        return Err(bad_input(
            "a ServeGen folder tells rates, not requests; make some by `cr-gen import FOLDER`",
        ));
    }
    let Raw { reader, name, format } = raw(path, args)?;
    source(reader, &name, format, args, Reading::AsAsked)
}

/// Whether somebody else parses already while requests are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nobody: whoever wants it reads requests ahead.
    AsAsked,
    /// A thread where the format has one: rows of hash blocks are small, and the requests that they become are not.
    RowsAhead,
}

/// An input of a known format, before anything of it is read.
pub(crate) struct Raw {
    pub(crate) reader: Box<dyn BufRead + Send>,
    pub(crate) name: String,
    pub(crate) format: InFormat,
}

/// Opens and unpacks a stream, and tells its format.
pub(crate) fn raw(path: &str, args: &InArgs) -> anyhow::Result<Raw> {
    let input = Input::open(path)?;
    let name = input.name;
    let mut reader = compress::unpacked(input.reader)
        .map_err(|error| bad_input(format!("cannot read {name}: {error}")))?;
    let format = match args.from {
        Some(format) => format,
        None => detect(&mut reader).map_err(|error| bad_input(format!("cannot read {name}: {error}")))?,
    };
    check_key_rule(args, format)?;
    Ok(Raw { reader, name, format })
}

/// The requests of an opened input that tells all there is to know of them.
pub(crate) fn source(
    reader: Box<dyn BufRead + Send>,
    name: &str,
    format: InFormat,
    args: &InArgs,
    reading: Reading,
) -> anyhow::Result<Source> {
    let tolerance = Tolerance::new(args.skip_bad);
    let (mut header, mut block_tokens, mut reads_ahead) = (None, None, false);
    let requests: Requests = match format {
        InFormat::Servegen => return Err(bad_input("a ServeGen folder is imported, not read as a trace")),
        InFormat::Native => {
            let reader = TraceReader::new(reader, name).bad_input()?.tolerate(tolerance.clone());
            header = reader.header().cloned();
            Box::new(reader)
        }
        InFormat::Mooncake | InFormat::Bailian => {
            let dialect = if format == InFormat::Mooncake { Dialect::MOONCAKE } else { Dialect::BAILIAN };
            let dialect = dialect.with_block_tokens(args.block_tokens);
            block_tokens = Some(dialect.block_tokens);
            let reader = MooncakeReader::new(reader, name, dialect).tolerate(tolerance.clone());
            reads_ahead = reading == Reading::RowsAhead;
            match reads_ahead {
                true => Box::new(MooncakeImport::ahead(reader, block_key(args))?),
                false => Box::new(MooncakeImport::new(reader, block_key(args))),
            }
        }
        InFormat::Azure | InFormat::Burstgpt => {
            let columns = if format == InFormat::Azure { Columns::azure() } else { Columns::burstgpt() };
            let columns = columns.with_key(args.key_column.clone());
            Box::new(TableImport::new(reader, name, &columns, tolerance.clone()).bad_input()?)
        }
        InFormat::Custom | InFormat::Sharegpt => {
            return Err(bad_input(format!(
                "{name} is text, which has neither times nor tokens; make requests of it by `cr-gen import FILE --tokenizer …`"
            )));
        }
    };
    Ok(Source { requests, reads_ahead, format, block_tokens, header, tolerance })
}

pub(crate) fn block_key(args: &InArgs) -> BlockKey {
    match (args.key_blocks, args.key) {
        (Some(blocks), _) => BlockKey::Prefix(blocks as usize),
        (None, Some(KeyRule::Session)) => BlockKey::Session,
        (None, _) => BlockKey::AfterTrunk,
    }
}

/// Refuses a rule for keys that the format has no use for.
pub(crate) fn check_key_rule(args: &InArgs, format: InFormat) -> anyhow::Result<()> {
    let text = is_text(format);
    let blocks = matches!(format, InFormat::Mooncake | InFormat::Bailian);
    let table = matches!(format, InFormat::Azure | InFormat::Burstgpt);
    if (args.key.is_some() || args.key_blocks.is_some()) && !blocks && !text {
        return Err(bad_input("--key and --key-blocks are for hash blocks (mooncake, bailian) and text"));
    }
    if args.key_column.is_some() && !table && !text {
        return Err(bad_input("--key-column is for tables (azure, burstgpt) and text"));
    }
    Ok(())
}

/// Whether the format is text that a tokenizer must make tokens of.
pub(crate) fn is_text(format: InFormat) -> bool {
    matches!(format, InFormat::Custom | InFormat::Sharegpt)
}

/// Tells the format by the first line, without consuming it.
fn detect(reader: &mut dyn BufRead) -> std::io::Result<InFormat> {
    let head = reader.fill_buf()?;
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let has = |text: &str| line.contains(text);
    let start = line.trim_start_matches(['\u{feff}', ' ', '\t', '\r']);
    let array = start.starts_with('[') || (start.is_empty() && head.trim_ascii_start().starts_with(b"["));
    // A prompt that is text, and not a list of segments.
    let prompt =
        line.split("\"prompt\"").nth(1).and_then(|rest| rest.trim_start_matches([' ', ':']).chars().next());
    Ok(if array || (start.starts_with('{') && (has("\"conversations\"") || has("\"messages\""))) {
        InFormat::Sharegpt
    } else if start.starts_with('{') && prompt == Some('"') {
        InFormat::Custom
    } else if has("\"hash_ids\"") && !has("\"prompt\"") {
        if has("\"chat_id\"") { InFormat::Bailian } else { InFormat::Mooncake }
    } else if has("ContextTokens") && !line.starts_with('{') {
        InFormat::Azure
    } else if has("Request tokens") && !line.starts_with('{') {
        InFormat::Burstgpt
    } else {
        InFormat::Native
    })
}

/// Says how many bad rows were put up with.
pub(crate) fn tell_skipped(tolerance: &Tolerance, common: &CommonArgs) {
    if tolerance.skipped() > 0 {
        common.note(format!("{} bad rows were skipped", tolerance.skipped()));
    }
}
