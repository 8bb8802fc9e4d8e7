//! Two tables side by side.

use crate::args::{Destination, Format};
use clap::Args;
use cr_cli::{Exit, Input, InputContext, bad_input, quantity};
use cr_routing::planner::{Change, TableDiff};
use cr_routing::table::{RoutingTable, read_tables};
use cr_trace::ShardId;
use serde_json::json;
use std::fmt::Write as _;

/// Compare two tables: churn, moved keys, tokens to rewarm
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The table before
    #[arg(value_name = "A")]
    before: String,
    /// The table after; `-` is stdin
    #[arg(value_name = "B")]
    after: String,
    /// List at most so many keys of each kind
    #[arg(long, value_name = "N", default_value = "10", value_parser = quantity::count)]
    top: u64,
    #[command(flatten)]
    to: Destination,
    /// As text or as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    if args.before == "-" && args.after == "-" {
        return Err(bad_input("only one of the two tables can come from stdin"));
    }
    let (before, after) = (last_table(&args.before)?, last_table(&args.after)?);
    let diff = TableDiff::between(&before, &after);
    let text = match args.format {
        Format::Text => text(&before, &after, &diff, args.top as usize),
        Format::Json => json(&before, &after, &diff, args.top as usize),
    };
    args.to.write(&text)?;
    Ok(Exit::Done)
}

/// The table of a file; of several, the last.
pub(crate) fn last_table(path: &str) -> anyhow::Result<RoutingTable> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let table = read_tables(input.reader, &input.name).bad_input()?.pop();
    table.ok_or_else(|| bad_input(format!("{name}: no table")))
}

fn kinds(diff: &TableDiff) -> [(&'static str, &[Change]); 3] {
    [("moved", &diff.moved), ("admitted", &diff.admitted), ("dropped", &diff.dropped)]
}

fn text(before: &RoutingTable, after: &RoutingTable, diff: &TableDiff, top: usize) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "churn      {:.2} % of pairs (1 - Jaccard)", 100.0 * diff.churn());
    let _ = writeln!(
        text,
        "pairs      {} before, {} after, {} kept",
        diff.pairs_before, diff.pairs_after, diff.pairs_kept
    );
    let counts = kinds(diff).map(|(kind, changes)| format!("{} {kind}", changes.len()));
    let _ = writeln!(text, "keys       {}", counts.join(", "));
    if let Some(tokens) = diff.rewarm_tokens {
        let _ = writeln!(text, "to rewarm  {tokens} tokens");
    }
    let _ = writeln!(
        text,
        "imbalance  {:.4} before, {:.4} after",
        before.meta().imbalance,
        after.meta().imbalance
    );
    for (kind, changes) in kinds(diff) {
        if changes.is_empty() || top == 0 {
            continue;
        }
        let _ = writeln!(text, "\n{kind}");
        for change in changes.iter().take(top) {
            let _ = writeln!(text, "  {}  {} -> {}", change.key, list(&change.before), list(&change.after));
        }
        if changes.len() > top {
            let _ = writeln!(text, "  and {} more (--top)", changes.len() - top);
        }
    }
    text
}

fn list(shards: &[ShardId]) -> String {
    let names: Vec<String> = shards.iter().map(ToString::to_string).collect();
    format!("[{}]", names.join(","))
}

fn json(before: &RoutingTable, after: &RoutingTable, diff: &TableDiff, top: usize) -> String {
    let changes = |changes: &[Change]| -> Vec<serde_json::Value> {
        let one =
            |change: &Change| json!({"key": change.key, "before": change.before, "after": change.after});
        changes.iter().take(top).map(one).collect()
    };
    let value = json!({
        "churn": diff.churn(),
        "pairs_before": diff.pairs_before,
        "pairs_after": diff.pairs_after,
        "pairs_kept": diff.pairs_kept,
        "moved_keys": diff.moved.len(),
        "admitted_keys": diff.admitted.len(),
        "dropped_keys": diff.dropped.len(),
        "rewarm_tokens": diff.rewarm_tokens,
        "imbalance_before": before.meta().imbalance,
        "imbalance_after": after.meta().imbalance,
        "moved": changes(&diff.moved),
        "admitted": changes(&diff.admitted),
        "dropped": changes(&diff.dropped),
    });
    format!("{value}\n")
}
