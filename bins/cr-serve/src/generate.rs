//! `generate`: the smoke test of a model.

use crate::model::ModelArgs;
use clap::Args as ClapArgs;
use cr_cli::{CommonArgs, Exit, InputContext, bad_input};
use cr_engine::model::{Sampling, TextTokenizer, generate};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(ClapArgs, Debug)]
pub(crate) struct GenerateArgs {
    /// The text to continue, `-` for stdin; special tokens such as <|im_start|> are recognised
    #[arg(value_name = "PROMPT")]
    prompt: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Most tokens to generate
    #[arg(long, value_name = "N", default_value = "128", value_parser = cr_cli::quantity::positive_u32)]
    max_tokens: u32,
    /// 0 takes the most likely token; higher is more varied
    #[arg(long, value_name = "T", default_value = "0")]
    temperature: f64,
    /// Draw only from the most likely tokens that together reach this probability
    #[arg(long, value_name = "P", default_value = "1")]
    top_p: f64,
    /// Seed of the draws and of random weights
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
}

pub(crate) fn run(args: &GenerateArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let prompt = if args.prompt == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).bad_input()?;
        text
    } else {
        args.prompt.clone()
    };
    let (loaded, _) = args.model.load(args.seed, common)?;
    let Some(tokenizer) = loaded.tokenizer else {
        let model = &args.model.model;
        return Err(bad_input(format!(
            "{model} has no tokenizer; give a GGUF file or a folder that has one"
        )));
    };
    let tokens = tokenizer.encode(&prompt).map_err(bad_input)?;
    let sampling = Sampling { temperature: args.temperature, top_p: args.top_p, seed: args.seed };
    let mut printer = Printer::new(&tokenizer);
    let model = Arc::new(loaded.model);
    let generation =
        generate(&model, &tokens, args.max_tokens as usize, sampling, |token| printer.print(token))
            .bad_input()?;
    printer.finish()?;
    let rate = generation.decode_tokens_per_s().map_or(String::new(), |rate| format!(", {rate:.0} tokens/s"));
    common.note(format!(
        "{} prompt tokens in {:.2} s; {} tokens in {:.2} s{rate}",
        tokens.len(),
        generation.prefill.as_secs_f64(),
        generation.tokens.len(),
        generation.decode.as_secs_f64(),
    ));
    Ok(Exit::Done)
}

/// Prints tokens as they come, and stops at the end of an answer or when nobody reads on.
struct Printer<'a> {
    tokenizer: &'a TextTokenizer,
    decode: Box<dyn FnMut(u32) -> Option<String> + 'a>,
    failed: Option<std::io::Error>,
}

impl<'a> Printer<'a> {
    fn new(tokenizer: &'a TextTokenizer) -> Printer<'a> {
        Printer { tokenizer, decode: Box::new(tokenizer.stream()), failed: None }
    }

    fn print(&mut self, token: u32) -> ControlFlow<()> {
        if self.tokenizer.is_end(token) {
            return ControlFlow::Break(());
        }
        let Some(text) = (self.decode)(token) else { return ControlFlow::Continue(()) };
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.failed {
            Some(error) => Err(error.into()),
            None => Ok(writeln!(std::io::stdout())?),
        }
    }
}
