//! Fitting what a publication leaves unsaid: a seeded random search, coarse to fine, over parameters of a suite.
//!
//! The first half of the evaluations lie anywhere; the others around the best found so far, ever closer. The error of a set is the root of the
//! mean square of (ours − published) / scale over the suite's `[[published]]` values, where the scale is the published uncertainty and at least a tenth of the value. A set whose
//! requests do not show the published facts is not run, and one that is far behind the best on the first seeds is not run on the others. The chosen set is tried again on seeds
//! that the search never saw. A search depends on its seed alone, so what an interrupted one found is taken over by the next.

mod spec;

pub use spec::{Fact, FitSpec, Parameter};

use crate::ReplayError;
use crate::suite::{Making, NoWatcher, Suite, Sweep};
use cr_report::SuiteReport;
use cr_report::published::{Beside, Bound, Published};
use cr_report::record::Stored;
use cr_trace::stats::TraceStats;
use cr_trace::stream;
use serde::{Deserialize, Serialize};
use spec::Places;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use toml::Value;

/// The best sets that the second half of the search starts from.
const ELITE: usize = 4;

/// The error of a value that was not measured, and the most that any value counts: one that no parameter brings near must not rule the search.
const UNMEASURED: f64 = 10.0;

/// The least scale of a deviation, as a share of the published value.
const LEAST_SCALE: f64 = 0.1;

/// On the first seeds a set may be so many times as far off as the best, or it is tried no further.
const SCREEN: f64 = 1.25;

/// One set of parameters and its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Values by field.
    pub set: BTreeMap<String, Value>,
    /// The error; none where the requests do not show the facts, or where the first seeds ruled the set out.
    pub error: Option<f64>,
    /// The error on the first seeds, where the search screens by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screened_error: Option<f64>,
    /// What it took, in seconds.
    #[serde(default)]
    pub spent_s: f64,
}

/// How a search is made.
pub struct Searching<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Time for all evaluations, those of `known` included.
    pub limit_s: Option<f64>,
    /// What earlier searches found: a set that is among them is not tried again.
    pub known: &'a [Evaluation],
    /// Set to stop.
    pub interrupt: &'a AtomicBool,
}

/// What the search came to.
#[derive(Debug)]
pub struct Fitted {
    /// The best set, with its error on the seeds of the search.
    pub best: Evaluation,
    /// Its error on the seeds that were held out; none where it was interrupted.
    pub held_out_error: Option<f64>,
    /// Our values on the seeds that were held out, beside the published ones.
    pub beside: Vec<(Published, Beside)>,
    /// Sets that were tried.
    pub evaluations: u32,
    /// What they took, in seconds.
    pub spent_s: f64,
}

/// Searches until the evaluations, the time or the patience of whoever interrupts are used up.
///
/// # Errors
/// A parameter that the suite does not have, a suite without published values, or an engine that fails.
pub fn fit(
    spec: &FitSpec,
    suite: &Suite,
    how: &Searching<'_>,
    tell: &mut dyn FnMut(u32, &Evaluation),
) -> Result<Fitted, ReplayError> {
    if suite.published.is_empty() {
        return Err(ReplayError::Config("the suite has no [[published]] values to fit to".into()));
    }
    let search = Search { spec, suite, jobs: how.jobs, interrupt: how.interrupt };
    let mut rng = stream(spec.seed, "fit");
    let mut tried: Vec<(Evaluation, Places)> = Vec::new();
    let (mut count, mut spent_s) = (0, 0.0);
    let over = |spent_s: f64| {
        how.limit_s.is_some_and(|limit_s| spent_s >= limit_s) || how.interrupt.load(Ordering::Relaxed)
    };
    while count < spec.evaluations && (tried.is_empty() || !over(spent_s)) {
        let places = match f64::from(count) / f64::from(spec.evaluations) {
            progress if progress >= 0.5 && !tried.is_empty() => {
                let elite = &tried[count as usize % tried.len().min(ELITE)];
                spec::near(&elite.1, 0.5 * (1.05 - progress), &mut rng)
            }
            _ => spec::anywhere(spec.parameter.len(), &mut rng),
        };
        let set = search.set(&places);
        let known = how.known.iter().find(|known| known.set == set).cloned();
        let best = tried.iter().filter_map(|(evaluation, _)| evaluation.screened_error).reduce(f64::min);
        let evaluation = match known {
            Some(known) => Some(known),
            None => search.evaluate(set, best)?,
        };
        let Some(evaluation) = evaluation else { break };
        count += 1;
        spent_s += evaluation.spent_s;
        tell(count, &evaluation);
        if evaluation.error.is_some() {
            tried.push((evaluation, places));
            let error = |tried: &(Evaluation, Places)| tried.0.error.unwrap_or(f64::MAX);
            tried.sort_by(|a, b| error(a).total_cmp(&error(b)));
        }
    }
    let Some((best, _)) = tried.into_iter().next() else {
        return Err(ReplayError::Config(
            "no set of parameters was tried to its end; the facts may rule out all of them".into(),
        ));
    };
    let beside = search.beside(&best.set, &spec.held_out_seeds)?;
    let held_out_error = beside.as_ref().map(|beside| error(&suite.published, beside));
    let beside = suite.published.iter().cloned().zip(beside.unwrap_or_default()).collect();
    Ok(Fitted { best, held_out_error, beside, evaluations: count, spent_s })
}

struct Search<'a> {
    spec: &'a FitSpec,
    suite: &'a Suite,
    jobs: usize,
    interrupt: &'a AtomicBool,
}

impl Search<'_> {
    fn set(&self, places: &Places) -> BTreeMap<String, Value> {
        let named = self.spec.parameter.iter().zip(places);
        named.map(|(parameter, &place)| (parameter.field.clone(), parameter.at(place))).collect()
    }

    /// Tries a set, on the first seeds only where it is far behind `best` on them; none where it was interrupted.
    fn evaluate(
        &self,
        set: BTreeMap<String, Value>,
        best: Option<f64>,
    ) -> Result<Option<Evaluation>, ReplayError> {
        let started = Instant::now();
        let mut found = Evaluation { set, error: None, screened_error: None, spent_s: 0.0 };
        let seeds = &self.spec.search_seeds;
        if self.shows_facts(&self.with(&found.set, seeds)?)? {
            let Some(goes_on) = self.screen(&mut found, best)? else { return Ok(None) };
            if goes_on {
                let Some(beside) = self.beside(&found.set, seeds)? else { return Ok(None) };
                found.error = Some(error(&self.suite.published, &beside));
            }
        }
        found.spent_s = started.elapsed().as_secs_f64();
        Ok(Some(found))
    }

    /// Whether a set is worth all seeds; none where it was interrupted.
    fn screen(&self, found: &mut Evaluation, best: Option<f64>) -> Result<Option<bool>, ReplayError> {
        let Some(count) = self.spec.screen_seeds else { return Ok(Some(true)) };
        let first = self.spec.search_seeds.get(..count).unwrap_or(&self.spec.search_seeds);
        let Some(beside) = self.beside(&found.set, first)? else { return Ok(None) };
        let screened = error(&self.suite.published, &beside);
        found.screened_error = Some(screened);
        Ok(Some(best.is_none_or(|best| screened <= SCREEN * best)))
    }

    fn with(&self, set: &BTreeMap<String, Value>, seeds: &[u64]) -> Result<Suite, ReplayError> {
        let mut suite = self.suite.with(set.iter()).map_err(ReplayError::Config)?;
        suite.seeds = seeds.to_vec();
        if !self.spec.qps.is_empty() {
            suite.run_at(self.spec.qps.clone()).map_err(ReplayError::Config)?;
        }
        suite.published.clone_from(&self.suite.published);
        Ok(suite)
    }

    /// Our values beside the published ones; none where it was interrupted.
    fn beside(
        &self,
        set: &BTreeMap<String, Value>,
        seeds: &[u64],
    ) -> Result<Option<Vec<Beside>>, ReplayError> {
        let sweep = Sweep::new(self.with(set, seeds)?, self.interrupt)?;
        let making =
            Making { jobs: self.jobs, journal: None, interrupt: self.interrupt, watcher: &NoWatcher };
        let made = sweep.make(&making)?;
        if made.stopped.is_some() {
            return Ok(None);
        }
        let report = SuiteReport { runs: made.runs, ..sweep.report() };
        let stored = Stored::new(&report).map_err(|error| ReplayError::Config(error.to_string()))?;
        Ok(Some(stored.record.file.beside))
    }

    fn shows_facts(&self, suite: &Suite) -> Result<bool, ReplayError> {
        if self.spec.fact.is_empty() {
            return Ok(true);
        }
        let seed = self.spec.search_seeds.first().copied().unwrap_or(0);
        let mut stats = TraceStats::new(suite.fleet.block_tokens);
        suite.requests(seed, None)?.for_each(|request| stats.observe(&request));
        let report = serde_json::to_value(stats.report()).map_err(std::io::Error::from)?;
        for fact in &self.spec.fact {
            let pointer = format!("/{}", fact.of.replace('.', "/"));
            let Some(value) = report.pointer(&pointer).and_then(serde_json::Value::as_f64) else {
                return Err(ReplayError::Config(format!(
                    "fact {:?} is no number of the statistics",
                    fact.of
                )));
            };
            if !(fact.low..=fact.high).contains(&value) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The root of the mean square of the scaled deviations. A published bound is met by any value on its side.
fn error(published: &[Published], beside: &[Beside]) -> f64 {
    let one = |(published, beside): (&Published, &Beside)| {
        let Some(ours) = beside.mean else { return UNMEASURED };
        let scale = published.plus_minus.unwrap_or(0.0).max(LEAST_SCALE * published.value.abs()).max(1e-9);
        let off = (ours - published.value) / scale;
        let off = match published.bound {
            None => off,
            Some(Bound::Below) => off.max(0.0),
            Some(Bound::Above) => off.min(0.0),
        };
        off.clamp(-UNMEASURED, UNMEASURED)
    };
    let squares: f64 = published.iter().zip(beside).map(one).map(|off| off * off).sum();
    (squares / published.len().max(1) as f64).sqrt()
}
