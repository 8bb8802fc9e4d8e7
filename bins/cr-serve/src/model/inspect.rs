//! `model inspect`: what a model is, and what fits.

use super::{Subject, fetch, mib, print};
use clap::Args as ClapArgs;
use cr_cli::{CommonArgs, Exit, InputContext, bad_input, quantity};
use cr_engine::model::{Inspection, MemoryPlan, free_bytes};

pub(super) const EXAMPLES: &str = "\
Examples:
  cr-serve model inspect llama-8m --shards 30
  cr-serve model inspect smollm2.gguf --format json";

#[derive(ClapArgs, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    subject: Subject,
    /// Shards among which the memory that is free is divided
    #[arg(long, value_name = "N", default_value = "4", value_parser = quantity::positive_u32)]
    shards: u32,
    /// Tokens a KV block
    #[arg(long, value_name = "N", default_value = "16", value_parser = quantity::positive_u32)]
    block_tokens: u32,
}

/// What fits in the memory that is free now.
struct Fit {
    free_bytes: u64,
    blocks: u64,
}

pub(super) fn run(args: &InspectArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let subject = &args.subject;
    if subject.model.is_empty() {
        return Err(bad_input("name a model, such as llama-8m"));
    }
    fetch(&subject.model, common)?;
    let (options, kind) = subject.weights.options(subject.seed);
    let inspection = Inspection::of(&subject.model, &options).bad_input()?;
    let plan = MemoryPlan::before_load(&inspection, &options.device, args.shards, args.block_tokens);
    let fit = plan
        .zip(free_bytes(&options.device))
        .map(|(plan, free_bytes)| Fit { free_bytes, blocks: plan.blocks_that_fit() });
    print(
        subject.format,
        || as_text(args, &inspection, fit.as_ref(), kind),
        || as_json(args, &inspection, fit.as_ref(), kind),
    )?;
    Ok(Exit::Done)
}

fn as_text(args: &InspectArgs, inspection: &Inspection, fit: Option<&Fit>, device: &str) -> String {
    let config = &inspection.config;
    let fits = fit.map_or(String::new(), |fit| {
        let tokens = fit.blocks * u64::from(args.block_tokens);
        format!(
            "fits        {} blocks of {} tokens for each of {} shards in {:.1} GiB free: {tokens} tokens a shard\n",
            fit.blocks,
            args.block_tokens,
            args.shards,
            mib(fit.free_bytes) / 1024.0,
        )
    });
    format!(
        "{}: {}\n\
         parameters  {:.1} million, about {:.0} MiB as loaded on {device}\n\
         shape       {} layers, hidden {}, ff {}, {} heads on {} KV heads of {}, vocabulary {}, context {}\n\
         KV          {} bytes a token on {device}; 1 GiB holds {} tokens\n\
         {fits}",
        config.name,
        inspection.format,
        config.parameters() as f64 / 1e6,
        mib(inspection.weight_bytes),
        config.layers,
        config.hidden,
        config.ff,
        config.heads,
        config.kv_heads,
        config.head_dim,
        config.vocab,
        config.context,
        inspection.kv.bytes_per_token(),
        inspection.tokens_that_fit(1 << 30),
    )
}

fn as_json(
    args: &InspectArgs,
    inspection: &Inspection,
    fit: Option<&Fit>,
    device: &str,
) -> serde_json::Value {
    serde_json::json!({
        "model": inspection.config,
        "format": inspection.format,
        "parameters": inspection.config.parameters(),
        "device": device,
        "weight_bytes": inspection.weight_bytes,
        "kv_bytes_per_token": inspection.kv.bytes_per_token(),
        "kv_tokens_per_gib": inspection.tokens_that_fit(1 << 30),
        "shards": args.shards,
        "free_bytes": fit.map(|fit| fit.free_bytes),
        "kv_blocks_that_fit": fit.map(|fit| fit.blocks),
    })
}
