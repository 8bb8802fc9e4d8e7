//! A table per interval, from the rates of the past only.

use crate::args::{Estimator, PlanArgs, StreamArgs};
use crate::model::{AdmissionRule, Sizing};
use crate::plan::{Planner, write};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Output, bad_input};
use cr_routing::rates::detect::detect;
use cr_routing::rates::{KeyRates, RateEstimator, Source, TraceRates, WindowRates};
use cr_trace::{Request, TraceReader};
use std::io::Write;

/// Requests after which one counts half, where nothing else is asked for.
const HALF_LIFE: f64 = 10_000.0;

/// Intervals that a window spans, where nothing else is asked for.
const WINDOW_INTERVALS: f64 = 5.0;

/// A shorter interval is a slip: no plan is made and used within it.
const SHORTEST_S: f64 = 0.001;

/// Rates of what has been seen so far.
enum Live {
    Ewma { estimator: RateEstimator, requests: u64 },
    Window(WindowRates),
}

impl Live {
    fn new(args: &StreamArgs, interval_s: f64) -> anyhow::Result<Live> {
        match args.estimator {
            Estimator::Ewma if args.window.is_some() => {
                Err(bad_input("--window counts only with --estimator window"))
            }
            Estimator::Window if args.half_life.is_some() => {
                Err(bad_input("--half-life counts only with --estimator ewma"))
            }
            Estimator::Ewma => RateEstimator::new(args.half_life.unwrap_or(HALF_LIFE), args.max_keys)
                .map(|estimator| Live::Ewma { estimator, requests: 0 })
                .ok_or_else(|| bad_input("--half-life must be above 0")),
            Estimator::Window => {
                let window_s = args.window.unwrap_or(WINDOW_INTERVALS * interval_s);
                WindowRates::new(window_s, args.max_keys)
                    .map(Live::Window)
                    .ok_or_else(|| bad_input("--window must be longer than nothing"))
            }
        }
    }

    fn record(&mut self, request: &Request) {
        match self {
            Live::Ewma { estimator, requests } => {
                estimator.record(&request.key);
                *requests += 1;
            }
            Live::Window(window) => window.record(&request.key, request.t_s),
        }
    }

    /// The rates now, `span_s` after the last time they were asked for, and how much any may be too low for want of room.
    fn rates(&mut self, now_s: f64, span_s: f64) -> Option<(KeyRates, f64)> {
        match self {
            Live::Ewma { estimator, requests } => {
                let qps = std::mem::take(requests) as f64 / span_s;
                qps.is_finite().then(|| (estimator.rates(qps), 0.0))
            }
            Live::Window(window) => window.rates(now_s),
        }
    }
}

pub(crate) fn run(
    args: &PlanArgs,
    planner: Planner,
    interval_s: f64,
    common: &CommonArgs,
) -> anyhow::Result<Exit> {
    if interval_s < SHORTEST_S {
        return Err(bad_input("--interval must be at least 1ms"));
    }
    let live = Live::new(&args.stream, interval_s)?;
    let input = Input::open(&args.input)?;
    let (source, reader) = detect(input.reader, &input.name).bad_input()?;
    if source != Source::Trace {
        return Err(bad_input(format!(
            "{}: --interval needs a trace of requests, these are rates",
            input.name
        )));
    }
    let out = Output::create(args.output.output.as_deref())?;
    // Prefixes and prompts are told apart from rates, and only where the plan needs them.
    let prompts = args.model.admission == AdmissionRule::Tokens || args.model.sizing == Sizing::Work;
    let prompts = prompts.then(TraceRates::default);
    let interrupt = Interrupt::install()?;
    let mut stream = Stream { planner, live, prompts, out, args, common, last_s: 0.0, tables: 0 };
    // The end of the running interval, once there is a first request.
    let mut end_s: Option<f64> = None;
    for request in TraceReader::new(reader, &input.name).bad_input()? {
        let request = request.bad_input()?;
        if interrupt.is_set() {
            break;
        }
        let end = *end_s.get_or_insert_with(|| {
            stream.last_s = request.t_s;
            interval_end(request.t_s, interval_s)
        });
        if request.t_s >= end {
            stream.emit(end)?;
            // Intervals without a request change nothing and get no table.
            end_s = Some(interval_end(request.t_s, interval_s));
        }
        stream.live.record(&request);
        if let Some(prompts) = &mut stream.prompts {
            prompts.record(&request);
        }
    }
    let Stream { out, tables, .. } = stream;
    out.finish()?;
    if interrupt.is_set() {
        common.note(format!("interrupted after {tables} tables; what is written is whole"));
        return Ok(Exit::Interrupted);
    }
    let why = if tables == 0 { ": the trace ends before its first interval does" } else { "" };
    common.note(format!("{tables} tables{why}"));
    Ok(Exit::Done)
}

/// The first multiple of the interval after a time.
fn interval_end(t_s: f64, interval_s: f64) -> f64 {
    ((t_s / interval_s).floor() + 1.0) * interval_s
}

struct Stream<'a> {
    planner: Planner,
    live: Live,
    prompts: Option<TraceRates>,
    out: Output,
    args: &'a PlanArgs,
    common: &'a CommonArgs,
    /// When rates were last asked for.
    last_s: f64,
    tables: u64,
}

impl Stream<'_> {
    fn emit(&mut self, now_s: f64) -> anyhow::Result<()> {
        let Some((mut rates, error)) = self.live.rates(now_s, now_s - self.last_s) else { return Ok(()) };
        if let Some(prompts) = &mut self.prompts {
            prompts.describe(&mut rates);
            prompts.keep_only(&rates);
        }
        self.last_s = now_s;
        let planned = self.planner.plan(&rates, now_s, false)?;
        write(&planned.table, self.args.output.format, &mut self.out)?;
        // Whoever reads the other end of a live pipe waits for this line.
        self.out.flush()?;
        if self.common.verbose > 0 {
            for note in planned.notes(rates.len()) {
                self.common.note(format!("from {now_s} s: {note}"));
            }
            if error > 0.0 {
                self.common
                    .note(format!("from {now_s} s: rates are too low by at most {error:.4}/s (--max-keys)"));
            }
        }
        self.tables += 1;
        self.planner.continue_from(planned.table);
        Ok(())
    }
}
