//! The planner's two inputs, from measurements.

use crate::args::{Destination, Format};
use clap::Args;
use cr_cli::{Exit, Input, InputContext, bad_input, quantity};
use cr_routing::calibrate::{Knee, Slots, knee, read_ladder, warm_slots};
use cr_routing::rates::read_rates;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Read;

/// Read qcap off a load ladder, and warm slots off the pool and the prefixes
///
/// The ladder is result.json of a sweep, or CSV with the columns qps,p99[,failed][,run]: requests per second, seconds, a
/// share, a repetition. Its capacity, divided by the shards it was measured on, is qcap.
#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// result.json, or CSV; `-` is stdin
    #[arg(value_name = "LADDER")]
    ladder: String,
    /// The bound on p99 TTFT [default: the p99 at the knee of the curve]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    slo: Option<f64>,
    /// Shards that the ladder was measured on
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = quantity::positive_u32)]
    shards: u32,
    /// Of result.json, the runs of this policy [default: the only one]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// KV tokens of a shard, for warm slots
    #[arg(long, value_name = "N", value_parser = quantity::positive_u32, requires = "rates")]
    kv_tokens: Option<u32>,
    /// A trace, or rates with prefix_tokens, for warm slots
    #[arg(long, value_name = "TRACE|RATES", requires = "kv_tokens")]
    rates: Option<String>,
    /// The part of the pool that running requests take
    #[arg(long, value_name = "SHARE", default_value = "0.25", value_parser = quantity::share)]
    reserve: f64,
    #[command(flatten)]
    to: Destination,
    /// As text or as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let mut input = Input::open(&args.ladder)?;
    let mut text = String::new();
    input
        .reader
        .read_to_string(&mut text)
        .map_err(|e| bad_input(format!("cannot read {}: {e}", input.name)))?;
    let rungs = read_ladder(&text, &input.name, args.policy.as_deref()).bad_input()?;
    let knee = knee(&rungs, args.slo).bad_input()?;
    let slots = slots(args)?;
    let shards = f64::from(args.shards);
    let text = match args.format {
        Format::Text => report(&knee, shards, slots.as_ref()),
        Format::Json => json(&knee, shards, slots.as_ref()),
    };
    args.to.write(&text)?;
    Ok(Exit::Done)
}

fn slots(args: &CalibrateArgs) -> anyhow::Result<Option<Slots>> {
    let (Some(kv_tokens), Some(path)) = (args.kv_tokens, &args.rates) else { return Ok(None) };
    if args.reserve >= 1.0 {
        return Err(bad_input("--reserve takes the whole pool; leave some of it for prefixes"));
    }
    let input = Input::open(path)?;
    let (rates, _) = read_rates(input.reader, &input.name).bad_input()?;
    let slots = rates
        .prefix_tokens()
        .and_then(|prefixes| warm_slots(f64::from(kv_tokens), args.reserve, prefixes, rates.rates()));
    match slots {
        Some(slots) => Ok(Some(slots)),
        None => {
            Err(bad_input(format!("{path}: no key has a prefix; give a trace, or rates with prefix_tokens")))
        }
    }
}

fn report(knee: &Knee, shards: f64, slots: Option<&Slots>) -> String {
    let mut text = String::new();
    let ci = knee
        .ci
        .map_or(String::new(), |ci| format!(" ± {:.2} (95 % CI over {} runs)", ci / shards, knee.runs));
    // Writing to a string cannot fail.
    let (sign, ci) = match (knee.below > 0, knee.above > 0) {
        (false, false) => ("", ci),
        (true, false) => ("< ", String::new()),
        (false, true) => ("≥ ", String::new()),
        (true, true) => ("about ", String::new()),
    };
    let _ = writeln!(text, "qcap        {sign}{:.2}{ci}", knee.qps / shards);
    let bound = if knee.found { "the knee of the curve" } else { "as asked for" };
    let _ = writeln!(text, "  bound     p99 TTFT {:.3} s, {bound}; failures 5 %", knee.slo_s);
    if let Some(next) = knee.next_qps.filter(|_| knee.below == 0) {
        let _ = writeln!(text, "  between   {:.2} passes, {:.2} fails", knee.qps / shards, next / shards);
    }
    for (count, what, how) in
        [(knee.below, "no rung passed", "lower"), (knee.above, "no rung failed", "higher")]
    {
        if count > 0 {
            let runs = knee.runs;
            let _ = writeln!(
                text,
                "  censored  in {count} of {runs} runs {what}: extend the ladder to {how} rates"
            );
        }
    }
    if let Some(slots) = slots {
        let _ = writeln!(text, "warm_slots  {:.1}", slots.warm_slots);
        let _ = writeln!(
            text,
            "  range     {:.1} to {:.1}, from the 90th to the 10th percentile of prefixes",
            slots.range.0, slots.range.1
        );
        let _ = writeln!(
            text,
            "  prefix    {:.0} tokens on average by rate, {} keys",
            slots.mean_prefix, slots.keys
        );
    }
    text
}

fn json(knee: &Knee, shards: f64, slots: Option<&Slots>) -> String {
    let mut value = json!({
        "qcap": knee.qps / shards,
        "qcap_ci95": knee.ci.map(|ci| ci / shards),
        "qcap_below": knee.next_qps.map(|next| next / shards),
        "slo_s": knee.slo_s,
        "slo_found": knee.found,
        "runs": knee.runs,
        "censored": knee.below + knee.above,
        "censored_below": knee.below,
        "censored_above": knee.above,
    });
    if let (Some(slots), Some(object)) = (slots, value.as_object_mut()) {
        object.insert("warm_slots".into(), json!(slots.warm_slots));
        object.insert("warm_slots_range".into(), json!([slots.range.0, slots.range.1]));
        object.insert("mean_prefix_tokens".into(), json!(slots.mean_prefix));
    }
    format!("{value}\n")
}
