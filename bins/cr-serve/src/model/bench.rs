//! `model bench`: how fast a model is here.

use super::{Subject, print};
use clap::Args as ClapArgs;
use cr_cli::{CommonArgs, Exit, InputContext, quantity};
use cr_engine::model::Inspection;
use cr_engine::model::bench::{BenchPlan, BenchResult, bench, copy_bytes_per_s};
use std::sync::Arc;
use std::time::Instant;

pub(super) const EXAMPLES: &str = "\
Examples:
  cr-serve model bench llama-8m
  cr-serve model bench smollm2.gguf --quant f32 --batch 1,4,8,16 --format json";

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    subject: Subject,
    /// Tokens of a prompt
    #[arg(long, value_name = "N", default_value = "512", value_parser = quantity::positive_u32)]
    prompt: u32,
    /// Batches of decodes, separated by commas
    #[arg(long, value_name = "N,…", default_value = "1,4,8,16", value_delimiter = ',', value_parser = quantity::positive_u32)]
    batch: Vec<u32>,
    /// Decode steps timed for a batch
    #[arg(long, value_name = "N", default_value = "32", value_parser = quantity::positive_u32)]
    steps: u32,
    /// Measure everything this often and print medians
    #[arg(long, value_name = "N", default_value = "3", value_parser = quantity::positive_u32)]
    repeats: u32,
}

/// What is printed.
struct Figures {
    model: String,
    device: &'static str,
    threads: usize,
    load_s: f64,
    weight_bytes: u64,
    copy_bytes_per_s: f64,
    result: BenchResult,
}

pub(super) fn run(args: &BenchArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let subject = &args.subject;
    super::fetch(&subject.model, common)?;
    let (options, _) = subject.weights.options(subject.seed);
    let weight_bytes = Inspection::of(&subject.model, &options).bad_input()?.weight_bytes;
    let begin = Instant::now();
    let (loaded, device) = subject.weights.load(&subject.model, subject.seed, common)?;
    let load_s = begin.elapsed().as_secs_f64();
    let model = Arc::new(loaded.model);
    let plan = BenchPlan {
        prompt: args.prompt as usize,
        batches: args.batch.iter().map(|&batch| batch as usize).collect(),
        steps: args.steps as usize,
        repeats: args.repeats as usize,
    };
    let figures = Figures {
        model: model.config().name.clone(),
        device,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        load_s,
        weight_bytes,
        copy_bytes_per_s: copy_bytes_per_s(model.device())?,
        result: bench(&model, &plan).bad_input()?,
    };
    print(subject.format, || as_text(args, &figures), || as_json(args, &figures))?;
    Ok(Exit::Done)
}

fn as_text(args: &BenchArgs, figures: &Figures) -> String {
    let Figures { model, device, load_s, result, .. } = figures;
    let gb = |bytes: f64| bytes / 1e9;
    let mut text = format!(
        "{model} on {device}, prompts of {} tokens, medians of {}\n  load            {load_s:.2} s\n  prefill         {:.0} tokens/s\n",
        args.prompt, args.repeats, result.prefill_per_s
    );
    for (batch, rate) in &result.decode_per_s {
        text += &format!("  decode B = {batch:<4} {rate:.0} tokens/s\n");
    }
    text += &format!("  cached prefix   {:.1} times faster to the first token\n", result.reuse_gain);
    let copy = figures.copy_bytes_per_s;
    text += &format!("  memory          copies {:.1} GB/s", gb(copy));
    if let Some(read) = result.weight_bytes_per_s(figures.weight_bytes) {
        text += &format!(
            "; decode B = 1 reads weights at {:.1} GB/s, {:.0} % of that",
            gb(read),
            100.0 * read / copy
        );
    }
    text + "\n"
}

fn as_json(args: &BenchArgs, figures: &Figures) -> serde_json::Value {
    let result = &figures.result;
    let decode = result.decode_per_s.iter().map(|(batch, rate)| (batch.to_string(), serde_json::json!(rate)));
    serde_json::json!({
        "model": figures.model,
        "device": figures.device,
        "threads": figures.threads,
        "prompt_tokens": args.prompt,
        "repeats": args.repeats,
        "load_s": figures.load_s,
        "prefill_tokens_per_s": result.prefill_per_s,
        "decode_tokens_per_s": decode.collect::<serde_json::Map<_, _>>(),
        "reuse_gain": result.reuse_gain,
        "weight_bytes": figures.weight_bytes,
        "copy_bytes_per_s": figures.copy_bytes_per_s,
        "weight_bytes_per_s": result.weight_bytes_per_s(figures.weight_bytes),
    })
}
