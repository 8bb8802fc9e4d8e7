//! `cr-serve calibrate`: a cost model of this device.

use crate::model::ModelArgs;
use clap::{Args, ValueEnum};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Output, Progress, quantity};
use cr_cost::{CostModel, FitError};
use cr_engine::model::Model;
use cr_replay::ReplayError;
use cr_replay::calibrate::{Calibration, Options, calibrate};
use cr_report::format::{percent, three};
use std::io::Write;
use std::sync::Arc;

#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens a KV block
    #[arg(long, value_name = "N", default_value = "16", value_parser = quantity::positive_u32)]
    block_tokens: u32,
    /// How often every step is measured; the median counts
    #[arg(long, value_name = "N", default_value = "5", value_parser = quantity::positive_u32)]
    rounds: u32,
    /// Seed of random weights
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Write the cost model here [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// What is written: the cost model, or that and every measured step
    #[arg(long, value_enum, default_value = "toml")]
    format: CalibrateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CalibrateFormat {
    /// The cost model, for --cost
    Toml,
    /// The cost model, its errors and every measured step
    Json,
}

pub(crate) fn run(args: &CalibrateArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    cr_cli::opened::reserve(&args.model.model);
    let mut output = Output::create(args.output.as_deref())?;
    let interrupt = Interrupt::install()?;
    let (loaded, device) = args.model.load(args.seed, common)?;
    let options = Options { block_tokens: args.block_tokens, rounds: args.rounds };
    let model = Arc::new(loaded.model);
    let Some(calibration) = measure(&model, device, options, &interrupt, common)? else {
        return Ok(Exit::Interrupted);
    };
    let text = match args.format {
        CalibrateFormat::Toml => commented(&calibration),
        CalibrateFormat::Json => as_json(&calibration),
    };
    output.write_all(text.as_bytes())?;
    output.finish()?;
    Ok(Exit::Done)
}

/// Measures with a progress bar; nothing where it was interrupted.
pub(crate) fn measure(
    model: &Arc<Model>,
    device: &'static str,
    options: Options,
    interrupt: &Interrupt,
    common: &CommonArgs,
) -> anyhow::Result<Option<Calibration>> {
    let progress = Progress::new(common, "calibrate", "steps", Some(0));
    let result = calibrate(model, device, options, &interrupt.flag(), &mut |done, total| {
        progress.length(total);
        progress.set(done);
    });
    progress.finish();
    match result {
        Ok(calibration) => {
            common.note(said(&calibration));
            Ok(Some(calibration))
        }
        Err(ReplayError::Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn said(calibration: &Calibration) -> String {
    let CostModel { name, .. } = &calibration.cost;
    let prefill = 512.0 / calibration.cost.prefill(512, 0).as_s();
    format!(
        "{name}: {} tokens/s of prefill at 512; error {} on {} steps fitted, {} on {} mixed steps not fitted",
        three(prefill),
        error(&calibration.error),
        calibration.error.samples,
        error(&calibration.held_out_error),
        calibration.held_out_error.samples,
    )
}

fn error(error: &FitError) -> String {
    format!("median {}, 90th percentile {}", percent(error.median), percent(error.p90))
}

/// The TOML, with what the fit is worth above it.
fn commented(calibration: &Calibration) -> String {
    format!(
        "# Fitted by `cr-serve calibrate`. Relative error of a step:\n#   {} on the {} steps fitted\n#   {} on {} mixed steps \
         not fitted\n{}",
        error(&calibration.error),
        calibration.error.samples,
        error(&calibration.held_out_error),
        calibration.held_out_error.samples,
        calibration.cost.to_toml(),
    )
}

fn as_json(calibration: &Calibration) -> String {
    let error = |e: &FitError| serde_json::json!({ "steps": e.samples, "median": e.median, "p90": e.p90, "max": e.max, "bias": e.bias });
    let steps = |samples: &[cr_cost::Sample]| {
        samples
            .iter()
            .map(|sample| {
                serde_json::json!({
                    "prefill_tokens": sample.work.prefill_tokens,
                    "prefill_ctx_tokens": sample.work.prefill_ctx_tokens,
                    "decode_seqs": sample.work.decode_seqs,
                    "decode_ctx_tokens": sample.work.decode_ctx_tokens,
                    "measured_s": sample.duration.as_s(),
                    "modelled_s": calibration.cost.step(&sample.work).as_s(),
                })
            })
            .collect::<Vec<_>>()
    };
    let value = serde_json::json!({
        "cost": calibration.cost.to_toml(),
        "error": error(&calibration.error),
        "held_out_error": error(&calibration.held_out_error),
        "fitted": steps(&calibration.fitted),
        "held_out": steps(&calibration.held_out),
    });
    format!("{value:#}\n")
}
