//! What a wrong qcap or a wrong number of warm slots would do to the plan.

use crate::args::{Destination, Format};
use crate::model::{self, ModelArgs};
use clap::Args;
use cr_cli::{Exit, Input, InputContext};
use cr_routing::planner::sensitivity::{Input as Measured, Point, sensitivity};
use cr_routing::rates::read_rates;
use serde_json::json;
use std::fmt::Write as _;

/// Show how the plan moves where qcap or the warm slots are off by 10 and by 25 %
#[derive(Args, Debug)]
pub(crate) struct SensitivityArgs {
    /// A trace or rates; `-` is stdin
    #[arg(value_name = "TRACE|RATES", default_value = "-")]
    input: String,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    to: Destination,
    /// As text or as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &SensitivityArgs) -> anyhow::Result<Exit> {
    let config = args.model.config()?;
    let cost = args.model.cost()?;
    let input = Input::open(&args.input)?;
    let (rates, _) = read_rates(input.reader, &input.name).bad_input()?;
    let work = model::work(&rates, cost.as_ref())?;
    let points = sensitivity(&model::demand(&rates, work.as_deref()), &config).bad_input()?;
    let text = match args.format {
        Format::Text => text(&points),
        Format::Json => json(&points),
    };
    args.to.write(&text)?;
    Ok(Exit::Done)
}

fn name(input: Measured) -> &'static str {
    match input {
        Measured::AsGiven => "as given",
        Measured::Qcap => "qcap",
        Measured::WarmSlots => "warm slots",
    }
}

fn text(points: &[Point]) -> String {
    let mut text = format!(
        "{:<11} {:>6}  {:>9}  {:>6}  {:>8}  {:>8}\n",
        "input", "off by", "imbalance", "warm", "keys", "copies"
    );
    for point in points {
        let off = match point.input {
            Measured::AsGiven => String::new(),
            _ => format!("{:+.0} %", 100.0 * (point.factor - 1.0)),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<11} {off:>6}  {:>9.4}  {:>5.1}%  {:>8}  {:>8}",
            name(point.input),
            point.imbalance,
            100.0 * point.warm_share,
            point.admitted_keys,
            point.copies
        );
    }
    text
}

fn json(points: &[Point]) -> String {
    let one = |point: &Point| {
        json!({
            "input": name(point.input),
            "factor": point.factor,
            "imbalance": point.imbalance,
            "warm_share": point.warm_share,
            "admitted_keys": point.admitted_keys,
            "copies": point.copies,
        })
    };
    format!("{}\n", json!(points.iter().map(one).collect::<Vec<_>>()))
}
