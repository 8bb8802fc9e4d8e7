//! `cr-serve validate`: the simulator held against the real model on one trace.

use crate::args::{MeasureArgs, PoolArgs, RoutingArgs};
use crate::in_sample::is_in_sample;
use crate::model::ModelArgs;
use crate::run::classify;
use crate::{calibrate, engine, run, tables};
use clap::{Args, ValueEnum};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Progress, bad_input};
use cr_cost::CostModel;
use cr_engine::model::StepTimes;
use cr_replay::validate::{Agreement, Validation};
use cr_replay::{Assume, Engine, ReplayError, RunSpec};
use cr_report::format::{percent, ratio, seconds};
use cr_report::summary::Summary;
use cr_trace::{Request, TraceReader};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// The trace to replay (native JSONL), `-` for stdin; kept in memory
    #[arg(value_name = "TRACE", default_value = "-")]
    trace: String,
    #[command(flatten)]
    routing: RoutingArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// The cost model under test: a built-in name or a TOML file [default: calibrate this device now]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Engine")]
    cost: Option<String>,
    #[command(flatten)]
    pool: PoolArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    /// What stdout gets
    #[arg(long, value_enum, default_value = "text")]
    format: ValidateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ValidateFormat {
    /// A table for people
    Text,
    /// The three summaries and the differences
    Json,
}

/// Exits with 3 where the simulator and the model, given the same step times, do not serve every request alike, or where the measured
/// run misses `--slo-ttft-p99`.
pub(crate) fn run(args: &ValidateArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let routing = tables::routing(&args.routing, false)?;
    let shard = engine::planned_config(&args.model, &args.pool, &args.measure, routing.shards, common)?;
    let input = Input::open(&args.trace)?;
    let trace = TraceReader::new(input.reader, &input.name).bad_input()?;
    let plan_from = tables::plan_from(&args.routing, trace.header(), &args.trace)?;
    let requests: Vec<Request> = trace.collect::<Result<_, _>>().bad_input()?;
    if requests.is_empty() {
        return Err(bad_input(format!("{} has no requests to replay", input.name)));
    }
    let interrupt = Interrupt::install()?;
    let (loaded, device) = args.model.load(args.measure.seed, common)?;
    let model = Arc::new(loaded.model);
    let cost = match &args.cost {
        Some(name) => CostModel::by_name_or_path(name).bad_input()?,
        None => {
            let options =
                cr_replay::calibrate::Options { block_tokens: args.pool.block_tokens, ..Default::default() };
            match calibrate::measure(&model, device, options, &interrupt, common)? {
                Some(calibration) => calibration.cost,
                None => return Ok(Exit::Interrupted),
            }
        }
    };
    let engine = Engine::Model { model: Arc::clone(&model), device, times: StepTimes::Measured };
    let header = run::header_of(&args.measure, &routing, &engine, &shard);
    let header = cr_report::events::Header {
        requests_expected: Some(requests.len() as u64),
        plan_requests: plan_from.map_or(0, |plan| plan.requests),
        in_sample: is_in_sample(&routing.tables, &args.trace),
        ..header
    };
    let spec = RunSpec {
        header,
        vnodes: args.routing.vnodes,
        tables: routing.tables.clone(),
        plan_from,
        tuning: Assume::default().over(engine.tuning(&shard), args.measure.slo_ttft_p99),
        ..RunSpec::default()
    };
    let progress = Progress::new(common, "validate", "requests", Some(3 * requests.len() as u64));
    let validation =
        Validation { spec: &spec, shard, model: &model, device, cost: &cost, requests: &requests };
    let result = validation.run(&interrupt.flag(), &mut || progress.inc(1));
    progress.finish();
    let agreement = match result {
        Ok(agreement) => agreement,
        Err(ReplayError::Interrupted) => return Ok(Exit::Interrupted),
        Err(error) => return Err(classify(error)),
    };
    let text = match args.format {
        ValidateFormat::Text => as_text(&agreement, &cost.name),
        ValidateFormat::Json => as_json(&agreement, &cost),
    };
    anstream::stdout().write_all(text.as_bytes())?;
    if agreement.unlike() > 0 {
        return Ok(Exit::No);
    }
    let measured = &agreement.measured.summary;
    Ok(args.measure.slo_ttft_p99.map_or(Exit::Done, |slo_s| run::held_against(measured, slo_s, common)))
}

/// One line of the table: what is compared, and how a summary shows it.
type Row = (&'static str, fn(&Summary) -> f64, fn(f64) -> String);

const ROWS: [Row; 9] = [
    ("served hit", |s| s.served_hit, percent),
    ("imbalance, requests", |s| s.imbalance.requests, ratio),
    ("imbalance, busy", |s| s.imbalance.busy, ratio),
    ("TTFT mean", |s| s.ttft_s.mean, seconds),
    ("TTFT p50", |s| s.ttft_s.p50, seconds),
    ("TTFT p99", |s| s.ttft_s.p99, seconds),
    ("TPOT mean", |s| s.tpot_s.mean, seconds),
    ("e2e mean", |s| s.e2e_s.mean, seconds),
    ("queue mean", |s| s.queue_s.mean, seconds),
];

fn as_text(agreement: &Agreement, cost: &str) -> String {
    let (measured, modelled, sim) =
        (&agreement.measured.summary, &agreement.modelled.summary, &agreement.sim.summary);
    let mut out = format!(
        "{}, seed {}, {} requests; cost model {cost}\n\n{:<20}{:>12}{:>12}{:>12}{:>12}\n",
        measured.policy,
        measured.seed,
        measured.requests.offered,
        "",
        "measured",
        "modelled",
        "sim",
        "sim off by",
    );
    for (name, value, show) in ROWS {
        let (was, is) = (value(measured), value(sim));
        let off = if was > 0.0 { format!("{:+.1} %", (is / was - 1.0) * 100.0) } else { String::new() };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{name:<20}{:>12}{:>12}{:>12}{off:>12}",
            show(was),
            show(value(modelled)),
            show(is)
        );
    }
    let unlike = match agreement.unlike() {
        0 => "the model with modelled steps and the simulator serve every request alike".to_string(),
        n => format!("{n} requests are NOT served alike by the model with modelled steps and the simulator"),
    };
    let _ = writeln!(
        out,
        "\n{unlike}\nmeasured against sim, request by request: {} on the same shard, cached tokens {} of the prompts apart, \
         median TTFT error {}",
        percent(agreement.same_shard()),
        percent(agreement.hit_distance()),
        percent(agreement.ttft_error()),
    );
    if measured.saturated {
        out.push_str("saturated: the latencies of an overloaded fleet mean nothing; lower the rate\n");
    }
    out
}

fn as_json(agreement: &Agreement, cost: &CostModel) -> String {
    let value = serde_json::json!({
        "schema": "cacheroute.validate/1",
        "cost": cost.name,
        "unlike_modelled_sim": agreement.unlike(),
        "same_shard": agreement.same_shard(),
        "cached_tokens_apart": agreement.hit_distance(),
        "ttft_error_median": agreement.ttft_error(),
        "measured": agreement.measured.summary,
        "modelled": agreement.modelled.summary,
        "sim": agreement.sim.summary,
    });
    format!("{value:#}\n")
}
