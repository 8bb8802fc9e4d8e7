//! Text as traffic: which tokens it has, and when it comes.

use crate::cli::{Arrivals, ImportArgs, InFormat, TextArgs};
use crate::import::Purpose;
use crate::input::{Raw, Source, block_key};
use clap::ValueEnum;
use cr_cli::{InputContext, bad_input};
use cr_trace::text::{TextForm, TextReader};
use cr_trace::tolerance::Tolerance;
use cr_workload::arrivals;
use cr_workload::texts::{TextImport, TextOptions, Tokenize};
use cr_workload::threads::Loop;
use serde_json::{Value, json};
use tokenizers::Tokenizer;

/// Tokens of a block of text: the engine's.
const BLOCK_TOKENS: u32 = 16;
const DEFAULT_QPS: f64 = 50.0;
const DEFAULT_THINK_S: f64 = 10.0;

/// The requests of an opened text.
pub(crate) fn source(raw: Raw, args: &ImportArgs, purpose: Purpose) -> anyhow::Result<Source> {
    let tokenize = match purpose {
        Purpose::Write => tokenizer(args.text.tokenizer.as_deref())?,
        // How many requests there are does not depend on their tokens.
        Purpose::Count => by_bytes(),
    };
    let form = if raw.format == InFormat::Custom { TextForm::Custom } else { TextForm::ShareGpt };
    let tolerance = Tolerance::new(args.input.skip_bad);
    let options = args.options();
    let block_tokens = Some(options.block_tokens);
    let key_field = args.input.key_column.clone();
    let reader = TextReader::new(raw.reader, &raw.name, form, key_field, tolerance.clone()).bad_input()?;
    let requests = TextImport::new(reader, &raw.name, tokenize, options).bad_input()?;
    Ok(Source {
        requests: Box::new(requests),
        reads_ahead: false,
        format: raw.format,
        block_tokens,
        header: None,
        tolerance,
    })
}

/// Puts into the header what the text does not tell and was chosen instead.
pub(crate) fn declare(args: &ImportArgs, set: &mut impl FnMut(&str, Option<Value>)) {
    let process = args.text.process().to_possible_value();
    let process = process.map_or_else(String::new, |value| value.get_name().to_owned());
    set("tokenizer", args.text.tokenizer.clone().map(Into::into));
    set(
        "arrivals",
        Some(
            json!({ "drawn": true, "process": process, "qps": args.text.qps.unwrap_or(DEFAULT_QPS), "cv": args.text.cv }),
        ),
    );
    set("think_s", Some(args.text.think.unwrap_or(DEFAULT_THINK_S).into()));
    set("loop", Some(if args.text.open { "open" } else { "closed" }.into()));
}

impl TextArgs {
    fn process(&self) -> Arrivals {
        self.arrivals.unwrap_or(Arrivals::Poisson)
    }
}

impl ImportArgs {
    fn options(&self) -> TextOptions {
        let qps = self.text.qps.unwrap_or(DEFAULT_QPS);
        TextOptions {
            seed: self.drawn.seed(),
            arrivals: arrivals::Arrivals {
                process: self.text.process().process(),
                cv: self.text.cv,
                ..arrivals::Arrivals::poisson(qps)
            },
            think_s: self.text.think.unwrap_or(DEFAULT_THINK_S),
            mode: if self.text.open { Loop::Open } else { Loop::Closed },
            block_tokens: self.input.block_tokens.unwrap_or(BLOCK_TOKENS),
            key: block_key(&self.input),
            output_tokens: self.drawn.length(),
        }
    }
}

/// What makes tokens of text.
fn tokenizer(name: Option<&str>) -> anyhow::Result<Tokenize> {
    match name {
        None => Err(bad_input(
            "text has no tokens by itself: give the model's --tokenizer tokenizer.json, or a stand-in by its name, bytes or words",
        )),
        Some("bytes") => Ok(by_bytes()),
        Some("words") => Ok(by_words()),
        Some(path) => {
            let text = cr_cli::input::read_to_string(path)?;
            let tokenizer = Tokenizer::from_bytes(text).map_err(|error| {
                bad_input(format!("{path}: no tokenizer: {error}; a tokenizer.json is wanted, or one of the names bytes and words"))
            })?;
            Ok(Box::new(move |text| {
                let encoding = tokenizer
                    .encode_fast(text, false)
                    .map_err(|error| format!("cannot be tokenised: {error}"))?;
                Ok(encoding.get_ids().to_vec())
            }))
        }
    }
}

/// A token a byte: several times more than a model's.
fn by_bytes() -> Tokenize {
    Box::new(|text| Ok(text.bytes().map(u32::from).collect()))
}

/// A token a word, told apart by 32 bits of its hash: a quarter fewer than a model's, in English.
fn by_words() -> Tokenize {
    let hash = |word: &str| cr_trace::ContentId::new(word).hash64() as u32;
    Box::new(move |text| Ok(text.split_whitespace().map(hash).collect()))
}
