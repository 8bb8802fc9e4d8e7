//! Tables for people.

use crate::args::Destination;
use clap::Args;
use cr_cli::{Exit, Input, InputContext, bad_input};
use cr_routing::planner::copies;
use cr_routing::table::{RoutingTable, read_tables};
use cr_trace::ShardId;
use std::fmt::Write as _;

/// Characters of the longest bar.
const BAR: usize = 30;

/// Show a table: the load of each shard, or where one key is and why
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// A routing table, or several, one a line; `-` is stdin
    #[arg(value_name = "TABLE")]
    table: String,
    /// Explain this key
    #[arg(value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    to: Destination,
}

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let input = Input::open(&args.table)?;
    let tables = read_tables(input.reader, &input.name).bad_input()?;
    let mut text = String::new();
    for table in &tables {
        if !text.is_empty() {
            text.push('\n');
        }
        match &args.key {
            None => text += &overview(table),
            Some(key) => text += &explain(table, key)?,
        }
    }
    args.to.write(&text)?;
    Ok(Exit::Done)
}

/// The whole table: its figures, and the load of each shard as a bar.
pub(crate) fn overview(table: &RoutingTable) -> String {
    let meta = table.meta();
    let mut keys = vec![0usize; meta.shards as usize];
    let mut placed = 0;
    for (_, shards) in table.places() {
        placed += shards.len();
        for shard in shards {
            keys[shard.index()] += 1;
        }
    }
    let total = meta.admitted_rate + meta.cold_rate;
    let percent = |part: f64| if total > 0.0 { 100.0 * part / total } else { 0.0 };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "keys       {} admitted, {placed} copies of {} slots",
        table.admitted_keys(),
        meta.capacity
    );
    let _ = writeln!(
        text,
        "rate       {:.3}/s admitted, {:.3}/s cold ({:.1} %)",
        meta.admitted_rate,
        meta.cold_rate,
        percent(meta.cold_rate)
    );
    let _ = writeln!(
        text,
        "ceilings   qcap {}/s a key and shard, {} warm slots a shard",
        meta.qcap, meta.warm_slots
    );
    let _ = writeln!(text, "imbalance  {:.4} max / mean, as planned", meta.imbalance);
    if meta.from_s > 0.0 {
        let _ = writeln!(text, "from       {} s", meta.from_s);
    }
    if meta.in_sample {
        let _ = writeln!(text, "in sample  the rates were counted over a trace; test on other requests");
    }
    let _ = writeln!(text, "\n{:>5}  {:>10}  {:>6}  {:>7}", "shard", "rate/s", "share", "keys");
    let most = meta.expected_load.iter().copied().fold(0.0, f64::max);
    for (shard, (&load, keys)) in meta.expected_load.iter().zip(keys).enumerate() {
        let filled = if most > 0.0 { (load / most * BAR as f64).round() as usize } else { 0 };
        let line =
            format!("{shard:>5}  {load:>10.3}  {:>5.1}%  {keys:>7}  {}", percent(load), "█".repeat(filled));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// One key: where it is, and why.
fn explain(table: &RoutingTable, key: &str) -> anyhow::Result<String> {
    let meta = table.meta();
    let mut text = String::new();
    let rate = table.rate_of(key);
    match (table.shards_of(key), rate) {
        (Some(shards), _) => {
            let _ = writeln!(text, "{key}  admitted, on {}", list(shards));
        }
        (None, Some(_)) => {
            let _ = writeln!(text, "{key}  not admitted: routed by power of two choices over all shards");
        }
        (None, None) if table.rates().is_empty() => {
            let _ = writeln!(
                text,
                "{key}  not admitted; the table carries no rates, so it cannot tell whether the key was known"
            );
        }
        (None, None) => {
            let what = format!("the key {key:?} is not in the table");
            let known = table.rates().iter().map(|(key, _)| key.as_str());
            return Err(bad_input(match cr_cli::suggest::nearest(key, known) {
                Some(near) => format!("{what}; did you mean {near:?}?"),
                None => what,
            }));
        }
    }
    if let Some(rate) = rate {
        text += &why(table, key, rate);
    }
    if let Some(tokens) = table.prefix_tokens_of(key) {
        let _ = writeln!(text, "  prefix    {tokens} tokens");
    }
    for shard in table.shards_of(key).unwrap_or_default() {
        let load = meta.expected_load[shard.index()];
        let _ = writeln!(text, "  shard     {shard} is planned for {load:.3}/s in all");
    }
    Ok(text)
}

/// What was the case when the key's turn came: keys of higher rate, and of equal rate where the table's order of keys
/// puts them first, have their places already.
fn why(table: &RoutingTable, key: &str, rate: f64) -> String {
    let meta = table.meta();
    let copies = copies(rate, meta.qcap, meta.shards);
    let before: Vec<(&str, f64)> = table
        .rates()
        .iter()
        .map(|(other, other_rate)| (other.as_str(), *other_rate))
        .filter(|&(other, other_rate)| other_rate > rate || (other_rate == rate && other < key))
        .collect();
    let mut taken = 0;
    let mut loads = vec![meta.cold_rate / f64::from(meta.shards); meta.shards as usize];
    for &(other, other_rate) in &before {
        let shards = table.shards_of(other).unwrap_or_default();
        taken += shards.len();
        shards.iter().for_each(|shard| loads[shard.index()] += other_rate / shards.len() as f64);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  rate      {rate:.4}/s, rank {} of {}", before.len() + 1, table.rates().len());
    let _ = writeln!(
        text,
        "  copies    {copies} of {} shards: {rate:.4}/s at {}/s a shard",
        meta.shards, meta.qcap
    );
    match table.shards_of(key) {
        None if rate == 0.0 => text += "  slots     none: nobody asks for it\n",
        None => {
            let _ = writeln!(
                text,
                "  slots     {taken} of {} were taken by hotter keys, {copies} more did not fit",
                meta.capacity
            );
        }
        Some(shards) => {
            let _ = writeln!(text, "  slots     {taken} of {} were taken by hotter keys", meta.capacity);
            let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
            let high = loads.iter().copied().fold(0.0, f64::max);
            let own: Vec<String> =
                shards.iter().map(|shard| format!("{:.3}", loads[shard.index()])).collect();
            let _ = writeln!(
                text,
                "  place     carried {}/s then; the fleet between {low:.3} and {high:.3}/s",
                own.join(" and ")
            );
        }
    }
    text
}

fn list(shards: &[ShardId]) -> String {
    let names: Vec<String> = shards.iter().map(ToString::to_string).collect();
    match shards {
        [_] => format!("shard {}", names[0]),
        _ => format!("shards {}", names.join(", ")),
    }
}
