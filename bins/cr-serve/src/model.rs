//! Flags that choose a model, and `model inspect`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use cr_cli::{CommonArgs, Exit, InputContext, bad_input};
use cr_engine::model::{Inspection, LoadOptions, Loaded, Quant, load, pick_device};
use std::io::Write;

/// Which model, and how its weights are stored.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// A built-in name or TOML file (random weights), a GGUF file, a safetensors folder, or a hub name in the local cache
    #[arg(long, value_name = "MODEL", default_value = "llama-8m")]
    pub(crate) model: String,
    /// Type of weights that come unquantised: q8, f32 or bf16 [default: f32 on a CPU, 16 bits on a GPU]
    #[arg(long, value_name = "TYPE", value_parser = quant)]
    pub(crate) quant: Option<Quant>,
    /// Keep quantised weights that have no fast path on a CPU, instead of making them Q8_0
    #[arg(long)]
    pub(crate) no_requant: bool,
}

fn quant(text: &str) -> Result<Quant, String> {
    Quant::from_name(text).ok_or_else(|| format!("supported are {}", Quant::NAMES.join(", ")))
}

impl ModelArgs {
    /// Loads the model on the best device there is; gives the device's name too.
    pub(crate) fn load(&self, seed: u64, common: &CommonArgs) -> anyhow::Result<(Loaded, &'static str)> {
        let (device, kind) = pick_device();
        let options =
            LoadOptions { seed, quant: self.quant, requantise: !self.no_requant, ..LoadOptions::new(device) };
        let loaded = load(&self.model, &options).bad_input()?;
        for note in &loaded.notes {
            common.note(note);
        }
        Ok((loaded, kind))
    }
}

/// What to do with a model.
#[derive(Subcommand, Debug)]
pub(crate) enum ModelCommand {
    /// Print the shape, the parameters, and the memory its weights and KV tokens take
    #[command(
        after_long_help = "Examples:\n  cr-serve model inspect llama-8m\n  cr-serve model inspect smollm2.gguf --format json"
    )]
    Inspect(InspectArgs),
}

#[derive(ClapArgs, Debug)]
pub(crate) struct InspectArgs {
    /// A built-in name, a TOML or GGUF file, a safetensors folder, or a hub name in the local cache
    #[arg(value_name = "MODEL")]
    model: String,
    /// What stdout gets
    #[arg(long, value_enum, default_value = "text")]
    format: InspectFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum InspectFormat {
    Text,
    Json,
}

pub(crate) fn run(command: &ModelCommand) -> anyhow::Result<Exit> {
    let ModelCommand::Inspect(args) = command;
    if args.model.is_empty() {
        return Err(bad_input("name a model, such as llama-8m"));
    }
    let (device, kind) = pick_device();
    let inspection = Inspection::of(&args.model, &device).bad_input()?;
    let text = match args.format {
        InspectFormat::Text => as_text(&inspection, kind),
        InspectFormat::Json => as_json(&inspection, kind),
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

fn as_text(inspection: &Inspection, device: &str) -> String {
    let config = &inspection.config;
    let per_gib = inspection.tokens_that_fit(1 << 30);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "{}: {}\n\
         parameters  {:.1} million ({:.0} MiB as f32, {:.0} MiB as q8)\n\
         shape       {} layers, hidden {}, ff {}, {} heads on {} KV heads of {}, vocabulary {}, context {}\n\
         KV          {} bytes a token on {device}; 1 GiB holds {per_gib} tokens, {} full contexts\n",
        config.name,
        inspection.format,
        config.parameters() as f64 / 1e6,
        mib(config.parameters() * 4),
        mib(config.parameters() * 34 / 32),
        config.layers,
        config.hidden,
        config.ff,
        config.heads,
        config.kv_heads,
        config.head_dim,
        config.vocab,
        config.context,
        inspection.kv.bytes_per_token(),
        per_gib / config.context as u64,
    )
}

fn as_json(inspection: &Inspection, device: &str) -> String {
    let value = serde_json::json!({
        "model": inspection.config,
        "format": inspection.format,
        "parameters": inspection.config.parameters(),
        "device": device,
        "kv_bytes_per_token": inspection.kv.bytes_per_token(),
        "kv_tokens_per_gib": inspection.tokens_that_fit(1 << 30),
    });
    format!("{value:#}\n")
}
