//! A suite made ready: its engines are loaded, its rates are known, its cells are listed.

use super::spec::{EngineSpec, Load};
use super::vary::{Axis, Variant};
use super::{Suite, SuiteError, probe};
use crate::{Engine, ReplayError};
use cr_report::SuiteReport;
use cr_report::design::{self, Design};
use cr_report::regimes::Foretold;
use cr_trace::stats;
use std::sync::atomic::AtomicBool;

/// Requests from which a regime is foretold.
const FORETOLD_REQUESTS: usize = 20_000;

/// One run of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which of the suite's variants, from 0.
    pub variant: usize,
    /// The routing policy's name.
    pub policy: String,
    /// The rate, in requests per second.
    pub qps: f64,
    /// The seed of the requests and of the policy.
    pub seed: u64,
}

impl Cell {
    /// Whether both serve the same requests.
    pub(super) fn shares_requests_with(&self, other: &Cell) -> bool {
        self.variant == other.variant && self.seed == other.seed && self.qps == other.qps
    }
}

/// A variant ready to run.
pub(super) struct Ready {
    pub(super) label: Option<String>,
    pub(super) suite: Suite,
    pub(super) engine: Engine,
}

/// A suite ready to run: its engines are loaded, its rates are known.
pub struct Sweep {
    suite: Suite,
    pub(super) variants: Vec<Ready>,
    design: Design,
    rates: Vec<f64>,
    /// What the fleet can take, in requests per second, where the suite asked for a share of it.
    capacity_qps: Option<f64>,
}

impl Sweep {
    /// Loads the engines and, where the suite sets a utilisation, finds out what the fleet of the first variant can take.
    ///
    /// # Errors
    /// An engine that cannot be loaded or fails.
    pub fn new(suite: Suite, interrupt: &AtomicBool) -> Result<Sweep, ReplayError> {
        let variants = suite.variants().map_err(ReplayError::Config)?;
        Sweep::over(suite, variants, interrupt)
    }

    /// The suite as it stands and with each parameter of its `sensitivity` moved by itself.
    ///
    /// # Errors
    /// A suite without such parameters, and as [`Sweep::new`].
    pub fn sensitivity(suite: Suite, interrupt: &AtomicBool) -> Result<Sweep, ReplayError> {
        if suite.sensitivity.is_empty() {
            return Err(ReplayError::Config("the suite lists no parameter under [[sensitivity]]".into()));
        }
        let variants = suite.sensitivity_variants().map_err(ReplayError::Config)?;
        let plain = Suite { map: None, claims: Vec::new(), published: Vec::new(), ..suite };
        let mut sweep = Sweep::over(plain, variants, interrupt)?;
        sweep.design.axes = sweep.suite.sensitivity.iter().map(axis).collect();
        sweep.design.one_at_a_time = true;
        Ok(sweep)
    }

    fn over(suite: Suite, made: Vec<Variant>, interrupt: &AtomicBool) -> Result<Sweep, ReplayError> {
        let mut engines: Vec<(EngineSpec, Engine)> = Vec::new();
        let mut variants: Vec<Ready> = Vec::with_capacity(made.len());
        let mut listed = Vec::with_capacity(made.len());
        for variant in made {
            let spec = &variant.suite.engine;
            let engine = match engines.iter().find(|(known, _)| known == spec) {
                Some((_, engine)) => engine.clone(),
                None => variant.suite.engine()?,
            };
            engines.push((spec.clone(), engine.clone()));
            if let Some(label) = &variant.label {
                let foretold = suite.map.is_some().then(|| foretell(&variant.suite)).transpose()?;
                listed.push(design::Variant { label: label.clone(), at: variant.at, foretold });
            }
            variants.push(Ready { label: variant.label, suite: variant.suite, engine });
        }
        let first = variants.first().ok_or_else(|| ReplayError::Config("the suite has no variant".into()))?;
        let (rates, capacity_qps) = match &suite.load {
            Load::Rates { qps, .. } => (qps.clone(), None),
            Load::Utilisation { utilisation, probe_requests } => {
                let capacity = probe::capacity_qps(&first.suite, &first.engine, *probe_requests, interrupt)?;
                (vec![three_digits(capacity * utilisation)], Some(capacity))
            }
        };
        let design = Design {
            objectives: suite.objectives.clone(),
            ladder_qps: if rates.len() > 1 { rates.clone() } else { Vec::new() },
            axes: suite.vary.iter().map(axis).collect(),
            variants: listed,
            one_at_a_time: false,
            map: suite.map.clone(),
            claims: suite.claims.clone(),
            published: suite.published.clone(),
        };
        Ok(Sweep { suite, variants, design, rates, capacity_qps })
    }

    /// The suite.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// What serves the first variant.
    pub fn engine(&self) -> &Engine {
        &self.variants[0].engine
    }

    /// The rungs, ascending.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// What the fleet can take, in requests per second, where the suite asked for a share of it.
    pub fn capacity_qps(&self) -> Option<f64> {
        self.capacity_qps
    }

    /// How many variants there are; 1 where nothing varies.
    pub fn variants(&self) -> usize {
        self.variants.len()
    }

    /// A cell in a few words.
    pub fn name(&self, cell: &Cell) -> String {
        let label = self.variants[cell.variant].label.as_deref();
        let variant = label.map(|label| format!("{label}: ")).unwrap_or_default();
        let at = if self.rates.len() > 1 { format!(" at {} QPS", cell.qps) } else { String::new() };
        format!("{variant}{}{at} seed {}", cell.policy, cell.seed)
    }

    /// Whether runs may be made side by side: a simulated fleet computes nothing that another could disturb.
    pub fn parallel(&self) -> bool {
        self.variants.iter().all(|variant| variant.engine.kind() == "sim")
    }

    /// Whether a run gives the same bytes again.
    pub fn repeatable(&self) -> bool {
        self.variants.iter().all(|variant| variant.engine.durations() != "measured")
    }

    /// All runs of the ladder, in the order in which they are best made: those that serve the same requests next to each other,
    /// so that a machine that slows down slows every policy.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for variant in 0..self.variants.len() {
            for &qps in &self.rates {
                for &seed in &self.suite.seeds {
                    for policy in &self.suite.policies {
                        cells.push(Cell { variant, policy: policy.clone(), qps, seed });
                    }
                }
            }
        }
        cells
    }

    /// The suite's report, without runs.
    pub fn report(&self) -> SuiteReport {
        let suite = &self.suite;
        let mut notes = suite.notes.clone();
        if let (Some(capacity), Some(qps)) = (self.capacity_qps, self.rates.first()) {
            let shards = suite.fleet.shards;
            notes.push(format!(
                "The rate of {qps} QPS is {:.0} % of {capacity:.1} QPS, what {shards} shards of this device finish when each is handed requests all at once.",
                100.0 * qps / capacity
            ));
        }
        SuiteReport {
            suite: suite.name.clone(),
            title: suite.title.clone(),
            baseline: Some(suite.baseline.clone()),
            candidate: Some(suite.candidate.clone()),
            slo: suite.slo,
            ablation: suite.ablation.clone(),
            notes,
            expected_runs: Some(self.cells().len() as u64),
            design: self.design.clone(),
            ..SuiteReport::default()
        }
    }
}

fn axis(axis: &Axis) -> design::Axis {
    let points = axis.points().into_iter().map(|point| point.label).collect();
    design::Axis { name: axis.name.clone(), points }
}

/// What the first seed's requests foretell by themselves; see `cr_trace::stats`.
fn foretell(suite: &Suite) -> Result<Foretold, ReplayError> {
    let fleet = &suite.fleet;
    let kv_tokens = u64::from(fleet.kv_blocks) * u64::from(fleet.block_tokens);
    let shards = stats::Fleet { shards: fleet.shards, kv_tokens };
    let mut seen = stats::TraceStats::new(fleet.block_tokens).with_fleet(Some(shards));
    let seed = suite.seeds.first().copied().unwrap_or(0);
    suite.requests(seed, None)?.take(FORETOLD_REQUESTS).for_each(|request| seen.observe(&request));
    let report = seen.report().reappear;
    let found = |of: fn(&stats::ReappearReport) -> f64| report.as_ref().map_or(0.0, of);
    Ok(Foretold { spread: found(|r| r.spread.tokens), pinned: found(|r| r.pinned.tokens) })
}

/// Three digits are all that a probe is good for. Nothing, and what is less, is 0.
pub(crate) fn three_digits(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powi(2 - value.log10().floor() as i32);
    (value * unit).round() / unit
}

impl From<SuiteError> for ReplayError {
    fn from(error: SuiteError) -> ReplayError {
        ReplayError::Config(error.to_string())
    }
}
