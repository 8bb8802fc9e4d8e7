//! `model check`: does the device compute what the CPU computes in f32?

use super::{Subject, print};
use clap::Args as ClapArgs;
use cr_cli::{CommonArgs, Exit, InputContext, quantity};
use cr_engine::model::check::{CheckCase, check, tolerance};
use cr_engine::model::load_reference;
use std::sync::Arc;

pub(super) const EXAMPLES: &str = "\
Examples:
  cr-serve model check llama-8m
  cr-serve model check smollm2.gguf --quant q8 --tolerance 0.05";

#[derive(ClapArgs, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    subject: Subject,
    /// Largest difference of a logit, relative to the largest logit [default: 0.001 in f32, 0.05 in 16 bits, 0.1 in q8]
    #[arg(long, value_name = "X", value_parser = quantity::positive)]
    tolerance: Option<f64>,
}

pub(super) fn run(args: &CheckArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let subject = &args.subject;
    let (loaded, device) = subject.weights.load(&subject.model, subject.seed, common)?;
    let reference = load_reference(&subject.model, subject.seed).bad_input()?;
    let (model, reference) = (Arc::new(loaded.model), Arc::new(reference.model));
    let tolerance = args.tolerance.unwrap_or_else(|| tolerance(model.quant(), model.dtype()));
    let cases = check(&model, &reference)?;
    // Not `all(>)`, which NaN would pass.
    let passed = cases.iter().all(|case| case.error <= tolerance);
    print(
        subject.format,
        || as_text(&subject.model, device, &cases, tolerance, passed),
        || {
            serde_json::json!({
                "model": model.config().name,
                "device": device,
                "tolerance": tolerance,
                "passed": passed,
                "cases": cases.iter().map(|case| serde_json::json!({
                    "name": case.name, "error": case.error, "rows": case.rows, "same_greedy": case.same_greedy,
                })).collect::<Vec<_>>(),
            })
        },
    )?;
    Ok(if passed { Exit::Done } else { Exit::No })
}

fn as_text(model: &str, device: &str, cases: &[CheckCase], tolerance: f64, passed: bool) -> String {
    let mut text = format!("{model} on {device} against f32 on the CPU, logits relative to the largest:\n");
    for case in cases {
        let CheckCase { name, error, rows, same_greedy } = case;
        text += &format!("  {name:<32} off by {error:.1e}; {same_greedy} of {rows} greedy tokens agree\n");
    }
    let verdict = if passed { "equal" } else { "DIFFERENT" };
    text + &format!("{verdict} within {tolerance}\n")
}
