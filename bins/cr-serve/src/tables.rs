//! Which table, or which part of the trace to learn one from.

use crate::args::RoutingArgs;
use cr_cli::{Input, InputContext, bad_input};
use cr_replay::PlanFrom;
use cr_routing::RoutingTable;
use cr_routing::policy::routes_by_table;
use cr_routing::table::read_tables;
use cr_trace::{TraceHeader, TraceReader};
use std::sync::Arc;

const DEFAULT_SHARDS: u32 = 4;

/// Policy, fleet size and tables, as flags and tables agree on them.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(crate) policy: String,
    pub(crate) shards: u32,
    pub(crate) tables: Vec<Arc<RoutingTable>>,
}

/// Reads the table, if any, and settles policy and fleet size. `replans`: tables are made during the run.
pub(crate) fn routing(args: &RoutingArgs, replans: bool) -> anyhow::Result<Routing> {
    let plans = replans || args.plan_from.is_some();
    for (flag, given) in [("--qcap", args.qcap.is_some()), ("--warm-slots", args.warm_slots.is_some())] {
        if given && !plans {
            return Err(bad_input(format!(
                "{flag} is for plans made during the run: add --plan-from 25% or --replan 60s"
            )));
        }
    }
    let Some(path) = &args.table else {
        let policy = match &args.policy {
            Some(policy) => policy.clone(),
            None if plans => "cacheroute".into(),
            None => "flat".into(),
        };
        if routes_by_table(&policy) && !plans {
            let needs = format!(
                "--policy {policy} needs a plan: give --table FILE, --plan-from 25%, or --replan 60s"
            );
            return Err(bad_input(needs));
        }
        return Ok(Routing { policy, shards: args.shards.unwrap_or(DEFAULT_SHARDS), tables: Vec::new() });
    };
    let policy = args.policy.as_deref().unwrap_or("cacheroute");
    if !routes_by_table(policy) {
        return Err(bad_input(format!(
            "--table is for the policy cacheroute and its ablations, not {policy}; leave out one of the two"
        )));
    }
    let input = Input::open(path)?;
    let tables = read_tables(input.reader, &input.name).bad_input()?;
    let Some(shards) = tables.first().map(RoutingTable::shards) else {
        return Err(bad_input(format!("{path}: there is no table in it")));
    };
    if let Some(asked) = args.shards.filter(|asked| *asked != shards) {
        return Err(bad_input(format!(
            "{path} is planned for {shards} shards, --shards says {asked}; plan anew, or leave out --shards"
        )));
    }
    if let Some(other) = tables.iter().find(|table| table.shards() != shards) {
        return Err(bad_input(format!(
            "{path}: its tables are for fleets of {shards} and of {} shards; they must agree",
            other.shards()
        )));
    }
    Ok(Routing { policy: policy.into(), shards, tables: tables.into_iter().map(Arc::new).collect() })
}

/// The part of the trace to learn from, which needs the number of its requests.
pub(crate) fn plan_from(
    args: &RoutingArgs,
    header: Option<&TraceHeader>,
    trace: &str,
) -> anyhow::Result<Option<PlanFrom>> {
    let Some(share) = args.plan_from else { return Ok(None) };
    let requests = match header.and_then(|header| header.requests) {
        Some(requests) => requests,
        None => count_requests(trace)?,
    };
    let head = (requests as f64 * share).floor() as u64;
    if head == 0 || head >= requests {
        return Err(bad_input(format!(
            "--plan-from takes {head} of the trace's {requests} requests; it must leave some for planning and some to measure"
        )));
    }
    Ok(Some(PlanFrom { requests: head, qcap: args.qcap, warm_slots: args.warm_slots }))
}

/// Counts the requests of a file whose header does not tell; a stream cannot be read twice.
fn count_requests(trace: &str) -> anyhow::Result<u64> {
    let unknown = || {
        bad_input(
            "--plan-from needs the number of requests: give the trace as a file, or one whose header has \"requests\"",
        )
    };
    if trace == "-" {
        return Err(unknown());
    }
    let input = Input::open(trace)?;
    if input.bytes.is_none() {
        return Err(unknown());
    }
    let mut requests = 0;
    for request in TraceReader::new(input.reader, &input.name).bad_input()? {
        request.bad_input()?;
        requests += 1;
    }
    Ok(requests)
}
