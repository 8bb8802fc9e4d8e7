//! Planning: rates in, a table out.

use crate::args::{Format, PlanArgs};
use crate::show;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Output};
use cr_routing::planner::{PlanConfig, RATES_BELOW_KEYS, TableOptions, plan_table};
use cr_routing::rates::{Source, read_rates};
use cr_routing::table::{RoutingTable, write_table};
use std::io::Write;

/// The `generator` of tables.
const GENERATOR: &str = concat!("cr-plan ", env!("CARGO_PKG_VERSION"));

pub(crate) fn run(args: &PlanArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let config = config(args)?;
    let input = Input::open(&args.input)?;
    let (rates, source) = read_rates(input.reader, &input.name).bad_input()?;
    let options = TableOptions {
        generator: GENERATOR.into(),
        from_s: 0.0,
        in_sample: source == Source::Trace,
        with_rates: args.with_rates || (!args.no_rates && rates.len() < RATES_BELOW_KEYS),
    };
    let table = plan_table(&rates, &config, &options).bad_input()?;
    let mut out = Output::create(args.output.as_deref())?;
    match args.format {
        Format::Json => write_table(&table, &mut out)?,
        Format::Text => out.write_all(show::overview(&table).as_bytes())?,
    }
    out.finish()?;
    common.note(summary(&table, rates.len()));
    Ok(Exit::Done)
}

/// clap has made sure that the three are there; a missing one is said again rather than assumed away.
fn config(args: &PlanArgs) -> anyhow::Result<PlanConfig> {
    let missing = |flag: &str| cr_cli::bad_input(format!("{flag} is missing; see cr-plan --help"));
    let shards = args.shards.ok_or_else(|| missing("--shards"))?;
    let qcap = args.qcap.ok_or_else(|| missing("--qcap"))?;
    let warm_slots = args.warm_slots.ok_or_else(|| missing("--warm-slots"))?;
    Ok(PlanConfig::new(shards, qcap, warm_slots))
}

/// One line for people.
fn summary(table: &RoutingTable, keys: usize) -> String {
    let meta = table.meta();
    let total = meta.admitted_rate + meta.cold_rate;
    let cold = if total > 0.0 { 100.0 * meta.cold_rate / total } else { 0.0 };
    format!(
        "{} of {keys} keys have a place on {} shards; planned imbalance {:.3}, cold {cold:.1} % of the rate",
        table.admitted_keys(),
        meta.shards,
        meta.imbalance
    )
}
