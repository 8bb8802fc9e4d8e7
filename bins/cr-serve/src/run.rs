//! `cr-serve run`: one trace under one policy.

use crate::args::{ClockKind, EngineKind, Format, MeasureArgs, OutputArgs, RunArgs};
use crate::in_sample::is_in_sample;
use crate::listen::Listen;
use crate::requests::Requests;
use crate::tables::{self, Routing};
use crate::watch::Watch;
use crate::{engine, piped, report};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Output, Progress, bad_input};
use cr_engine::ShardConfig;
use cr_replay::decoupled::Decoupled;
use cr_replay::sink::{EventSink, JsonLines, Losses, Spared, Tee, Threaded};
use cr_replay::{Clock, Engine, Outcome, ReplayError, RunSpec, Stop};
use cr_report::events::{Header, SCHEMA, Slo};
use cr_report::summary::Summary;
use cr_report::text;
use cr_routing::table::MAX_SHARDS;
use cr_trace::TraceReader;
use std::io::{IsTerminal, Write};
use std::time::SystemTime;

/// Serves the trace and prints what was asked for.
pub(crate) fn run(args: &RunArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let started = SystemTime::now();
    engine::reserve(&args.engine);
    let replan = args.replan.replan(args.routing.qcap, args.routing.warm_slots)?;
    let routing = tables::routing(&args.routing, replan.is_some())?;
    if routing.shards > MAX_SHARDS {
        return Err(bad_input(format!("{} shards; a fleet has 1 to {MAX_SHARDS}", routing.shards)));
    }
    let limits = match args.engine.engine {
        EngineKind::Sim | EngineKind::SimStepwise => engine::shard_config(&args.pool, &args.measure)?,
        EngineKind::Model => {
            engine::planned_config(&args.engine.model, &args.pool, &args.measure, routing.shards, common)?
        }
    };
    let shard = ShardConfig { protect_admitted: args.fleet.protect_admitted, ..limits };
    let input = Input::open(&args.trace)?;
    let (is_file, name) = (input.bytes.is_some(), input.name.clone());
    let trace = TraceReader::new(input.reader, &input.name).bad_input()?;
    let plan_from = tables::plan_from(&args.routing, trace.header(), &args.trace)?;
    let requests = trace.header().and_then(|header| header.requests);
    let format = format(&args.output);
    // Outputs are created before any work, so that a path that cannot be written is told at once.
    let progress = Progress::new(common, &routing.policy, "requests", requests);
    let clock = clock(args.engine.clock);
    if let Some(dir) = &args.output.report {
        report::prepare(dir)?;
    }
    let losses = Losses::default();
    let mut sinks = sinks(&args.output, format, clock, &losses)?;
    // First, so that a sink that keeps events comes last and need not copy them.
    sinks.0.insert(0, Box::new(Watch::new(progress.clone())));

    let interrupt = Interrupt::install()?;
    let engine = engine::engine(&args.engine, args.measure.seed, common)?;
    let spec = RunSpec {
        header: Header {
            requests_expected: requests,
            plan_requests: plan_from.map_or(0, |plan| plan.requests),
            protect_admitted: shard.protect_admitted,
            free_run: args.engine.free_run,
            in_sample: is_in_sample(&routing.tables, &args.trace),
            ..header_of(&args.measure, &routing, &engine, &shard)
        },
        vnodes: args.routing.vnodes,
        tables: routing.tables.clone(),
        plan_from,
        replan,
        faults: args.fleet.faults.clone(),
        view_lag_s: args.fleet.view_lag,
        routers: args.fleet.routers,
        tuning: args.assume.tuning(&engine, &shard, args.measure.slo_ttft_p99),
        clock,
    };
    let fleet = engine::fleet(&args.engine, &engine, routing.shards, shard).map_err(classify)?;
    let mut read = 0u64;
    let trace = piped::Requests::new(trace, is_file, &interrupt).inspect(|_| read += 1);
    let outcome = cr_replay::run(&spec, fleet, trace, &mut sinks, &interrupt.flag());
    progress.finish();
    let outcome = outcome.map_err(classify)?;
    if outcome.stopped.is_none() {
        note_if_cut(&name, requests, read, common);
    }
    report_and_print(args, &outcome, format, started)?;
    fail_for(&losses)?;
    verdict(args, outcome, common)
}

/// Report and answer; neither takes the other along where it cannot be written.
fn report_and_print(
    args: &RunArgs,
    outcome: &Outcome,
    format: Format,
    started: SystemTime,
) -> anyhow::Result<()> {
    let report = args.output.report.as_ref().map(|dir| report::one_run(dir, outcome, started)).transpose();
    print(format, outcome, args.measure.slo_ttft_p99)?;
    report.map(drop)
}

/// Fails with what could not be written, once everything else has been told.
pub(crate) fn fail_for(losses: &Losses) -> anyhow::Result<()> {
    if let Some(error) = losses.first() {
        let what = format!("{error}; all else went on without it");
        return Err(std::io::Error::new(error.kind(), what).into());
    }
    Ok(())
}

fn clock(kind: ClockKind) -> Clock {
    match kind {
        ClockKind::Virtual => Clock::Virtual,
        ClockKind::Wall => Clock::Wall,
    }
}

/// A note where fewer requests were read than the trace's header says.
fn note_if_cut(name: &str, said: Option<u64>, read: u64, common: &CommonArgs) {
    if let Some(said) = said.filter(|&said| read < said) {
        common.note(format!("{name}: the header says {said} requests and {read} follow: the trace was cut, or is the start of one"));
    }
}

/// Errors that the user can mend are the user's.
pub(crate) fn classify(error: ReplayError) -> anyhow::Error {
    match error {
        ReplayError::Engine(_) | ReplayError::Sink(_) | ReplayError::Ledger(_) => error.into(),
        other => bad_input(other.to_string()),
    }
}

/// What a run says of itself, as far as the flags tell.
pub(crate) fn header_of(
    measure: &MeasureArgs,
    routing: &Routing,
    engine: &Engine,
    shard: &ShardConfig,
) -> Header {
    Header {
        schema: SCHEMA.into(),
        generator: cr_replay::GENERATOR.into(),
        policy: routing.policy.clone(),
        seed: measure.seed,
        engine: engine.kind().into(),
        model: engine.name().into(),
        device: engine.device().into(),
        shards: routing.shards,
        block_tokens: shard.block_tokens,
        kv_blocks: shard.kv_blocks,
        clock: "virtual".into(),
        durations: engine.durations().into(),
        warmup_s: measure.warmup,
        slo: Slo { ttft_p99_s: measure.slo_ttft_p99 },
        ..Header::default()
    }
}

fn format(output: &OutputArgs) -> Format {
    output.format.unwrap_or_else(|| {
        let for_people =
            std::io::stdout().is_terminal() || output.output.is_some() || output.report.is_some();
        if for_people { Format::Text } else { Format::Events }
    })
}

/// The file of `-o` and, where it is asked for, stdout; a reader of stdout may leave without ending a run whose events or
/// report are kept. Beside a file the summary is told, so a run whose file cannot be written goes on.
fn sinks(output: &OutputArgs, format: Format, clock: Clock, losses: &Losses) -> anyhow::Result<Tee> {
    let mut sinks = Sinks { tee: Tee::default(), clock };
    let file = output.output.as_deref().filter(|path| *path != "-");
    if let Some(path) = file {
        sinks.push(losses.spare(JsonLines::new(Output::create(Some(path))?)));
    }
    if format == Format::Events || output.output.as_deref() == Some("-") {
        let stdout = JsonLines::new(Output::create(None)?);
        match file.is_some() || output.report.is_some() {
            true => sinks.push(Spared::for_reader(stdout)),
            false => sinks.push(stdout),
        }
    }
    if let Some(path) = &output.listen {
        sinks.push(Listen::bind(path)?);
    }
    if let Some(path) = &output.requests {
        sinks.push(losses.spare(Requests::create(path)?));
    }
    Ok(sinks.tee)
}

/// Sinks of a run, on threads of their own; in real time none may hold it up.
struct Sinks {
    tee: Tee,
    clock: Clock,
}

impl Sinks {
    fn push(&mut self, sink: impl EventSink + Send + 'static) {
        self.tee.0.push(match self.clock {
            Clock::Virtual => Box::new(Threaded::new(sink)),
            Clock::Wall => Box::new(Decoupled::new(sink)),
        });
    }
}

fn print(format: Format, outcome: &Outcome, slo_s: Option<f64>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        Format::Events => {}
        Format::Text => {
            out.write_all(text::summary(&outcome.summary).as_bytes())?;
            if let Some(slo_s) = slo_s {
                writeln!(out, "  objective   {}", text::objective(&outcome.summary, slo_s))?;
            }
        }
        Format::Json => {
            serde_json::to_writer(&mut out, &outcome.summary)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}

/// How the process ends.
fn verdict(args: &RunArgs, outcome: Outcome, common: &CommonArgs) -> anyhow::Result<Exit> {
    match outcome.stopped {
        Some(Stop::Interrupted) => return Ok(Exit::Interrupted),
        Some(Stop::Trace(error)) => return Err(error).bad_input(),
        Some(Stop::Engine(error)) => return Err(error.into()),
        Some(Stop::ClockEnds) => return Err(bad_input(Stop::CLOCK_ENDS)),
        None => {}
    }
    let summary = outcome.summary;
    match (summary.requests.offered, args.measure.slo_ttft_p99) {
        (0, None) => {
            common
                .note("no request was measured: the trace has none, or all ended before the measured window");
            Ok(Exit::Done)
        }
        (0, Some(_)) => {
            Err(bad_input("no request was measured, so no SLO can be judged; look at --warmup and the trace"))
        }
        (_, None) => Ok(Exit::Done),
        (_, Some(slo_s)) => Ok(held_against(&summary, slo_s, common)),
    }
}

/// How a process ends that was asked to hold a run against a bound on the p99 of TTFT; why it ends with a no is said on stderr.
pub(crate) fn held_against(summary: &Summary, slo_s: f64, common: &CommonArgs) -> Exit {
    if !summary.saturated && summary.ttft_s.p99 <= slo_s {
        return Exit::Done;
    }
    common.note(text::objective(summary, slo_s));
    Exit::No
}
