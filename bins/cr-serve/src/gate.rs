//! `cr-serve gate`: may this trace's traffic be switched to another policy?

use crate::args::{ClockKind, EngineArgs, EngineKind, PoolArgs};
use crate::{engine, report};
use clap::{Args, ValueEnum};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Output, Progress, bad_input, quantity};
use cr_replay::gate::{Gate, GateSpec, Knee, Shadow, Tolerance, decide};
use cr_replay::sink::{EventSink, JsonLines, Losses};
use cr_report::SuiteReport;
use cr_report::format::{percent, rate, ratio, seconds};
use cr_report::record::Stored;
use cr_trace::{Request, TraceReader};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For CI (`cacheroute.gate/1`)
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct GateArgs {
    /// The trace (native JSONL), `-` for stdin
    #[arg(value_name = "TRACE", default_value = "-")]
    trace: String,
    /// The policy in service
    #[arg(long, value_name = "NAME", default_value = "flat")]
    baseline: String,
    /// The policy that would replace it
    #[arg(long, value_name = "NAME", default_value = "cacheroute")]
    candidate: String,
    /// Number of shards
    #[arg(long, value_name = "N", default_value = "4", value_parser = quantity::positive_u32)]
    shards: u32,
    /// Points a shard on consistent-hash rings
    #[arg(long, value_name = "N", default_value = "100", value_parser = quantity::positive_u32)]
    vnodes: u32,
    /// Learn the plan from this share of the requests, served as flat and not measured
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = quantity::share)]
    plan_from: f64,
    /// Do not measure the share that follows, so that caches settle under the plan
    #[arg(long, value_name = "SHARE", default_value = "15%", value_parser = quantity::share)]
    settle: f64,
    /// Requests per second one shard can serve of one key [default: its fair share of all]
    #[arg(long, value_name = "QPS", value_parser = quantity::positive)]
    qcap: Option<f64>,
    /// Warm prefixes a shard can keep [default: its KV tokens / the mean repeated prefix]
    #[arg(long, value_name = "W", value_parser = quantity::positive)]
    warm_slots: Option<f64>,
    /// Bound on the 99th percentile of TTFT that the knee is found under [default: 5 times that at a light load]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    slo_ttft_p99: Option<f64>,
    /// Give up requests not finished this long after their arrival
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    timeout: Option<f64>,
    /// Replays of each policy at each rate, at least 2: one has no interval
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(2..=1000))]
    replicates: u32,
    /// Differences up to this share of the baseline's value count as none
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = quantity::share)]
    tolerance: f64,
    /// Seed of the first replicate
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Simulated replays made at a time [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = quantity::positive_u32)]
    jobs: Option<u32>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    pool: PoolArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    format: Format,
    /// Write the events of all replays, one after the other, and then what the gate says, to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<String>,
    /// Write a report of all replays into this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    report: Option<PathBuf>,
}

/// Replays the trace in the shadow and says enable, tie or keep.
pub(crate) fn run(args: &GateArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let started = SystemTime::now();
    refuse(&args.engine)?;
    engine::reserve(&args.engine);
    cr_cli::opened::reserve(&args.trace);
    let spec = spec(args)?;
    if let Some(dir) = &args.report {
        report::prepare(dir)?;
    }
    let losses = Losses::default();
    let events = args.output.as_deref().map(|path| events(path, &losses)).transpose()?.map(Mutex::new);
    let input = Input::open(&args.trace)?;
    let trace: Vec<Request> =
        TraceReader::new(input.reader, &input.name).bad_input()?.collect::<Result<_, _>>().bad_input()?;
    let engine = engine::engine(&args.engine, args.seed, common)?;
    let interrupt = Interrupt::install()?;
    let flag = interrupt.flag();
    let shadow = Shadow::new(&spec, &engine, &trace, &flag).map_err(crate::run::classify)?;
    let note = |text: String| common.note(text);
    let searching = Instant::now();
    let Some(knee) = shadow.knee(jobs(args.jobs), &note).map_err(crate::run::classify)? else {
        note("interrupted before the knee was found: there is no verdict and no report".into());
        return Ok(Exit::Interrupted);
    };
    note(outlook(&knee, shadow.replays(), searching.elapsed()));
    let progress = Progress::new(common, "gate", "replays", Some(shadow.replays()));
    let made = shadow.compare(&knee, jobs(args.jobs), events.as_ref(), &|| progress.inc(1));
    progress.finish();
    let Some(made) = made.map_err(crate::run::classify)? else {
        note("interrupted before all replays were made: there is no verdict and no report".into());
        return Ok(Exit::Interrupted);
    };
    let suite = SuiteReport {
        commands: vec![command()],
        notes: vec![format!(
            "Rates are the trace's own {} QPS, with the arrivals of its sessions stretched.",
            rate(knee.natural_qps)
        )],
        ..made
    };
    let stored = Stored::new(&suite)?;
    let Some(gate) = decide(&stored.record, &knee, Tolerance(args.tolerance)) else {
        anyhow::bail!("the replays lack a policy or a rate");
    };
    if let Some(events) = &events {
        let mut sink = events.lock().unwrap_or_else(PoisonError::into_inner);
        sink.event(&gate.event())?;
        sink.flush()?;
    }
    // An output that fails takes no other one along.
    let report =
        args.report.as_ref().map(|dir| report::write(dir, &suite, engine.device(), started)).transpose();
    print(&gate, args.format)?;
    report?;
    crate::run::fail_for(&losses)?;
    Ok(match gate.decision {
        cr_replay::gate::Decision::Enable => Exit::Done,
        _ => Exit::No,
    })
}

/// Where the events of all replays go; a file that cannot be written takes no verdict along, which is told on stdout.
fn events(path: &str, losses: &Losses) -> anyhow::Result<Box<dyn EventSink + Send>> {
    let output = Output::create(Some(path))?;
    let is_stdout = output.is_stdout();
    let lines = JsonLines::new(output);
    Ok(if is_stdout { Box::new(lines) } else { Box::new(losses.spare(lines)) })
}

fn print(gate: &Gate, format: Format) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        Format::Text => out.write_all(text(gate).as_bytes())?,
        Format::Json => {
            serde_json::to_writer(&mut out, gate)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}

/// How long the replays will take, as those took that found the knee.
fn outlook(knee: &Knee, replays: u64, searched: Duration) -> String {
    let each = searched / knee.replays.max(1);
    let minutes = |time: Duration| match time.as_secs() {
        0..120 => format!("{} s", time.as_secs().max(1)),
        more => format!("{} min", more.div_ceil(60)),
    };
    format!(
        "the knee is {} QPS, found by {} replays in {}; {replays} more will take about {}",
        rate(knee.qps),
        knee.replays,
        minutes(searched),
        minutes(each * replays as u32)
    )
}

fn jobs(asked: Option<u32>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize)
}

/// A replay in the shadow has a clock of its own, and its policies are compared on the same answers.
fn refuse(engine: &EngineArgs) -> anyhow::Result<()> {
    let what = match engine {
        EngineArgs { clock: ClockKind::Wall, .. } => {
            "replays in the shadow have a virtual clock; leave out --clock wall"
        }
        EngineArgs { free_run: true, .. } => {
            "replays in the shadow follow the trace's answers; leave out --free-run"
        }
        EngineArgs { engine: EngineKind::SimStepwise, .. } => {
            "a gate replays the trace dozens of times; take --engine sim, which gives the same figures"
        }
        _ => return Ok(()),
    };
    Err(bad_input(what))
}

/// The command that gives this answer again.
fn command() -> String {
    let quoted = |word: String| match word.is_empty()
        || word.contains(|c: char| c.is_whitespace() || "'\"\\$*?;&|<>()`".contains(c))
    {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word,
    };
    std::iter::once("cr-serve".to_owned())
        .chain(std::env::args().skip(1).map(quoted))
        .collect::<Vec<_>>()
        .join(" ")
}

fn spec(args: &GateArgs) -> anyhow::Result<GateSpec> {
    let known = cr_routing::policy::names();
    for policy in [&args.baseline, &args.candidate] {
        if !known.contains(&policy.as_str()) {
            return Err(bad_input(format!(
                "there is no policy {policy:?}; supported are {}",
                known.join(", ")
            )));
        }
    }
    if args.baseline == args.candidate {
        return Err(bad_input("--baseline and --candidate are the same policy"));
    }
    if args.shards > cr_routing::table::MAX_SHARDS {
        let most = cr_routing::table::MAX_SHARDS;
        return Err(bad_input(format!("{} shards; a fleet has 1 to {most}", args.shards)));
    }
    Ok(GateSpec {
        baseline: args.baseline.clone(),
        candidate: args.candidate.clone(),
        shards: args.shards,
        vnodes: args.vnodes,
        shard: engine::limits(&args.pool, args.timeout)?,
        plan_from: args.plan_from,
        settle: args.settle,
        qcap: args.qcap,
        warm_slots: args.warm_slots,
        slo_ttft_p99_s: args.slo_ttft_p99,
        replicates: args.replicates,
        seed: args.seed,
    })
}

/// The answer for people.
fn text(gate: &Gate) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: {} instead of {}",
        gate.decision.word().to_uppercase(),
        gate.candidate,
        gate.baseline
    );
    for reason in &gate.reasons {
        let _ = writeln!(out, "  - {reason}");
    }
    let _ = writeln!(
        out,
        "\n{:<6} {:>8} {:>8}  {:<24} {:>8} {:>10} {:>12} {:>8}",
        "load", "QPS", "of knee", "policy", "hit", "imbalance", "p99 TTFT", "failed"
    );
    for load in &gate.loads {
        for side in [&load.baseline, &load.candidate] {
            let p99 = if side.saturated { "saturated".into() } else { seconds(side.ttft_p99_s.mean) };
            let _ = writeln!(
                out,
                "{:<6} {:>8} {:>8}  {:<24} {:>8} {:>10} {:>12} {:>8}",
                load.name,
                rate(load.qps),
                percent(load.of_knee),
                side.policy,
                percent(side.served_hit.mean),
                ratio(side.imbalance.mean),
                p99,
                percent(side.failed_share),
            );
        }
    }
    let parts =
        if gate.parts > 1 { format!(" over {} parts of the trace", gate.parts) } else { String::new() };
    let _ = writeln!(
        out,
        "\nThe knee of {} is {} QPS (p99 TTFT within {}); the trace itself has {} QPS. Means of {} replays{parts}.",
        gate.baseline,
        rate(gate.knee_qps),
        seconds(gate.slo_ttft_p99_s),
        rate(gate.natural_qps),
        gate.replicates,
    );
    out
}
