//! A table against requests: is it still right?

use crate::args::{Destination, Format};
use crate::diff::last_table;
use clap::Args;
use cr_cli::{Exit, Input, InputContext, bad_input, quantity};
use cr_routing::planner::{TableCheck, check};
use cr_routing::rates::{Source, read_rates};
use cr_routing::table::RoutingTable;
use serde_json::json;
use std::fmt::Write as _;

/// Hold a table against a trace or rates; exit 3 where it no longer fits
///
/// Routes the rates by the table, replicas sharing evenly. Fails (exit 3) where the imbalance is above the planned one by more
/// than the tolerance, or where an admitted key's rate a copy is above qcap by more than that.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The table; of several, the last
    #[arg(value_name = "TABLE")]
    table: String,
    /// A trace or rates; `-` is stdin
    #[arg(value_name = "TRACE|RATES")]
    input: String,
    /// How far reality may exceed the plan
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = quantity::share)]
    tolerance: f64,
    #[command(flatten)]
    to: Destination,
    /// As text or as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.table == "-" && args.input == "-" {
        return Err(bad_input("only one of table and trace can come from stdin"));
    }
    let table = last_table(&args.table)?;
    let input = Input::open(&args.input)?;
    let (rates, source) = read_rates(input.reader, &input.name).bad_input()?;
    let found = check(&table, &rates);
    let complaints = complaints(&table, &found, args.tolerance);
    let in_sample = match (table.meta().source, rates.source()) {
        (Some(planned_from), Some(this)) => planned_from == this,
        _ => table.meta().in_sample && source == Source::Trace,
    };
    let text = match args.format {
        Format::Text => text(&table, &found, &complaints, in_sample),
        Format::Json => json(&table, &found, &complaints, in_sample),
    };
    args.to.write(&text)?;
    Ok(if complaints.is_empty() { Exit::Done } else { Exit::No })
}

fn complaints(table: &RoutingTable, found: &TableCheck, tolerance: f64) -> Vec<String> {
    let planned = table.meta().imbalance;
    let mut complaints = Vec::new();
    if found.imbalance > planned * (1.0 + tolerance) {
        complaints.push(format!("imbalance {:.3} against {planned:.3} as planned", found.imbalance));
    }
    let qcap = table.meta().qcap;
    let hot =
        |&&(_, rate, copies): &&(cr_trace::Key, f64, usize)| rate / copies as f64 > qcap * (1.0 + tolerance);
    let hot: Vec<_> = found.over_qcap.iter().filter(hot).collect();
    if let Some((key, rate, copies)) = hot.first() {
        complaints.push(format!(
            "{} keys ask more than qcap {qcap} of a copy; the hottest is {key:?} with {rate:.3}/s on {copies}",
            hot.len()
        ));
    }
    complaints
}

fn text(table: &RoutingTable, found: &TableCheck, complaints: &[String], in_sample: bool) -> String {
    let mut text = String::new();
    let share = if found.rate > 0.0 { 100.0 * found.admitted_rate / found.rate } else { 0.0 };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "rate       {:.3}/s, {share:.1} % of it admitted", found.rate);
    let _ = writeln!(
        text,
        "keys       {} admitted ({} not asked for), {} cold",
        table.admitted_keys(),
        found.idle_keys,
        found.cold_keys
    );
    let _ = writeln!(text, "imbalance  {:.4}, {:.4} as planned", found.imbalance, table.meta().imbalance);
    let _ = writeln!(text, "over qcap  {} keys", found.over_qcap.len());
    if in_sample {
        let _ = writeln!(text, "in sample  the table was planned from these requests; check it with others");
    }
    match complaints {
        [] => text += "fits\n",
        _ => complaints.iter().for_each(|complaint| text += &format!("does not fit: {complaint}\n")),
    }
    text
}

fn json(table: &RoutingTable, found: &TableCheck, complaints: &[String], in_sample: bool) -> String {
    let value = json!({
        "fits": complaints.is_empty(),
        "complaints": complaints,
        "in_sample": in_sample,
        "rate": found.rate,
        "admitted_rate": found.admitted_rate,
        "admitted_keys": table.admitted_keys(),
        "idle_keys": found.idle_keys,
        "cold_keys": found.cold_keys,
        "loads": found.loads,
        "imbalance": found.imbalance,
        "imbalance_planned": table.meta().imbalance,
        "over_qcap": found.over_qcap.len(),
    });
    format!("{value}\n")
}
