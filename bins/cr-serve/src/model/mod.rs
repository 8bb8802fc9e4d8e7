//! Flags that choose a model, and `cr-serve model`: what it is, whether it is right, how fast it is.

mod bench;
mod check;
mod fetch;
mod inspect;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use cr_cli::{CommonArgs, Exit, InputContext, bad_input};
use cr_engine::model::{LoadOptions, Loaded, Quant, load, pick_device};
pub(crate) use fetch::fetch;
use std::io::Write;

/// Which model, and how its weights are stored.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// A built-in name or TOML file (random weights), a GGUF file, a safetensors folder, or a hub name
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_MODEL)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) weights: WeightArgs,
}

/// The model that is served where none is named.
const DEFAULT_MODEL: &str = "llama-8m";

/// How weights are stored.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct WeightArgs {
    /// Type of the weights: q8, f32 or bf16 [default: as they come where that is fast, else f32 on a CPU, 16 bits on a GPU]
    #[arg(long, value_name = "TYPE", value_parser = quant)]
    pub(crate) quant: Option<Quant>,
    /// Keep quantised weights that have no fast path on a CPU, instead of making them Q8_0
    #[arg(long)]
    pub(crate) no_requant: bool,
}

fn quant(text: &str) -> Result<Quant, String> {
    Quant::from_name(text).ok_or_else(|| format!("supported are {}", Quant::NAMES.join(", ")))
}

impl WeightArgs {
    /// How to load on the best device there is; gives the device's name too.
    pub(crate) fn options(&self, seed: u64) -> (LoadOptions, &'static str) {
        let (device, kind) = pick_device();
        let base = LoadOptions::new(device);
        (LoadOptions { seed, quant: self.quant, requantise: !self.no_requant, ..base }, kind)
    }

    /// Loads a model on that device.
    fn load(&self, model: &str, seed: u64, common: &CommonArgs) -> anyhow::Result<(Loaded, &'static str)> {
        if model.is_empty() {
            return Err(bad_input("name a model, such as llama-8m"));
        }
        fetch(model, common)?;
        let (options, kind) = self.options(seed);
        let loaded = load(model, &options).bad_input()?;
        for note in &loaded.notes {
            common.note(note);
        }
        Ok((loaded, kind))
    }
}

impl ModelArgs {
    /// Whether another one than the default was asked for.
    pub(crate) fn is_chosen(&self) -> bool {
        self.model != DEFAULT_MODEL || self.weights.quant.is_some() || self.weights.no_requant
    }

    /// Loads the model on the best device there is; gives the device's name too.
    pub(crate) fn load(&self, seed: u64, common: &CommonArgs) -> anyhow::Result<(Loaded, &'static str)> {
        self.weights.load(&self.model, seed, common)
    }
}

/// What to do with a model.
#[derive(Subcommand, Debug)]
pub(crate) enum ModelCommand {
    /// Print the shape, the parameters, the memory that weights and KV tokens take, and what fits
    #[command(after_long_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    /// Hold the logits of this device against f32 on the CPU; exits with 3 where they differ
    #[command(after_long_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Measure prefill, decode by batch, and what a cached prefix saves
    #[command(after_long_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
}

/// The model that a subcommand is about.
#[derive(ClapArgs, Debug)]
pub(crate) struct Subject {
    /// A built-in name, a TOML or GGUF file, a safetensors folder, or a hub name
    #[arg(value_name = "MODEL", default_value = DEFAULT_MODEL)]
    model: String,
    #[command(flatten)]
    weights: WeightArgs,
    /// Seed of random weights
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// What stdout gets
    #[arg(long, value_enum, default_value = "text")]
    format: TextFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TextFormat {
    Text,
    Json,
}

pub(crate) fn run(command: &ModelCommand, common: &CommonArgs) -> anyhow::Result<Exit> {
    match command {
        ModelCommand::Inspect(args) => inspect::run(args, common),
        ModelCommand::Check(args) => check::run(args, common),
        ModelCommand::Bench(args) => bench::run(args, common),
    }
}

/// Prints one of two forms.
fn print(
    format: TextFormat,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> serde_json::Value,
) -> anyhow::Result<()> {
    let out = match format {
        TextFormat::Text => text(),
        TextFormat::Json => format!("{:#}\n", json()),
    };
    Ok(anstream::stdout().write_all(out.as_bytes())?)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
