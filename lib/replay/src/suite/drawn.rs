//! Requests kept from one rate to the next.
//!
//! Another rate stretches the arrivals of the same requests: unless they come in threads or their keys drift, nothing about them
//! changes but when they arrive. So a worker that goes from rate to rate draws a seed's requests once and sets their times anew.

use super::Suite;
use crate::ReplayError;
use cr_trace::Request;
use cr_workload::{Generator, Spec};
use std::sync::Arc;

/// Requests of which more are drawn anew for every run instead of being kept in memory.
const KEPT_REQUESTS: usize = 400_000;

/// The requests of a specification, where they are few enough to be kept.
pub(super) struct Drawn {
    spec: Spec,
    generator: Generator,
    /// As many as were ever drawn; their times are right for those in use.
    requests: Vec<Arc<Request>>,
    used: usize,
}

/// What a worker keeps from one batch to the next.
#[derive(Default)]
pub(super) struct Kept {
    /// The requests that are served.
    pub(super) served: Slot,
    /// Those that a table is planned from.
    pub(super) planned: Slot,
}

/// Room for the requests of one specification.
#[derive(Default)]
pub(super) struct Slot(Option<Drawn>);

impl Slot {
    /// The requests of a specification, made from those that are here where only the rate differs. `None` where there are too
    /// many of them.
    ///
    /// # Errors
    /// A workload that cannot be drawn.
    pub(super) fn draw(&mut self, suite: &Suite, spec: Spec) -> Result<Option<&[Arc<Request>]>, ReplayError> {
        if expected(&spec) > KEPT_REQUESTS as f64 {
            return Ok(None);
        }
        let failed = |e: cr_workload::WorkloadError| ReplayError::Config(format!("workload: {e}"));
        let mut drawn = match self.0.take().filter(|drawn| drawn.suits(&spec)) {
            Some(drawn) => drawn,
            None => Drawn::new(Generator::new(&spec, &suite.folder).map_err(failed)?, spec.clone()),
        };
        let times = drawn.generator.retime(&spec, &suite.folder).map_err(failed)?;
        drawn.used = times.len();
        for (request, t_s) in drawn.requests.iter_mut().zip(times) {
            Arc::make_mut(request).t_s = t_s;
        }
        if drawn.used == drawn.requests.len() {
            let room = KEPT_REQUESTS + 1 - drawn.used.min(KEPT_REQUESTS);
            let kept = |request| {
                let request: Arc<Request> = Arc::new(request);
                // Every run asks for it, in this order: now it comes to lie beside the request.
                request.prompt.outline();
                request
            };
            drawn.requests.extend(drawn.generator.by_ref().take(room).map(kept));
            drawn.used = drawn.requests.len();
        }
        drawn.spec = spec;
        if drawn.used > KEPT_REQUESTS {
            return Ok(None);
        }
        let drawn = self.0.insert(drawn);
        Ok(Some(&drawn.requests[..drawn.used]))
    }
}

/// About how many requests there will be.
fn expected(spec: &Spec) -> f64 {
    let in_time = spec.duration_s.map_or(f64::INFINITY, |duration_s| duration_s * spec.arrivals.qps);
    in_time.min(spec.requests.map_or(f64::INFINITY, |requests| requests as f64))
}

impl Drawn {
    fn new(generator: Generator, spec: Spec) -> Drawn {
        Drawn { spec, generator, requests: Vec::new(), used: 0 }
    }

    /// Whether the requests of `spec` are these at another rate.
    fn suits(&self, spec: &Spec) -> bool {
        let mut same = self.spec.clone();
        same.arrivals.qps = spec.arrivals.qps;
        self.generator.is_timeless() && same == *spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(more: &str) -> Suite {
        let text = format!(
            "schema = 'cacheroute.suite/1'\nname = 't'\ntitle = 't'\nbaseline = 'flat'\ncandidate = 'flat'\npolicies = ['flat']\nseeds = [1]\n[load]\nqps = [5]\n[fleet]\nshards = 2\n\
             [engine]\nkind = 'sim'\ncost = '8b-h100'\n[workload]\nduration_s = 20.0\noutput_tokens = 5\n\
             [workload.popularity]\nmodel = 'zipf'\nkeys = 40\nalpha = 1.1\n{more}\n[workload.arrivals]\nqps = 1.0\n\
             [[workload.prompt]]\nscope = 'pool'\ndocuments = 3\nbreak_probability = 0.5\ntokens = 30\n\
             [[workload.prompt]]\nscope = 'request'\ntokens = {{ model = 'lognormal', mean = 20, sigma = 0.5 }}\n"
        );
        Suite::from_toml(&text, "t.toml").expect("is a suite")
    }

    #[test]
    fn too_many_are_not_drawn_to_be_thrown_away() {
        let (suite, mut slot) = (suite(""), Slot::default());
        let of = |qps| Spec { duration_s: Some(20.0), ..suite.workload_of(1, Some(qps)) };
        assert!(slot.draw(&suite, of(5.0)).expect("draws").is_some());
        assert!(slot.draw(&suite, of(1e6)).expect("is left out").is_none());
        let kept = slot.0.as_ref().expect("those of the rate before are still there");
        assert!(kept.requests.len() < 200);
        let counted = Spec { duration_s: None, requests: Some(1_000_000), ..of(5.0) };
        assert!(slot.draw(&suite, counted).expect("is left out").is_none());
    }

    #[test]
    fn going_from_rate_to_rate_draws_what_each_rate_draws_alone() {
        let drift = "[workload.popularity.drift]\nsigma = 0.5\ninterval_s = 5.0\n";
        let threads = "[workload.threads]\nmean_turns = 2.0\nthink_s = 1.0\n";
        for more in ["", drift, threads] {
            let (suite, mut slot) = (suite(more), Slot::default());
            for (seed, qps) in [(1, 5.0), (1, 11.0), (1, 3.0), (1, 20.0), (2, 20.0), (2, 4.0)] {
                let drawn =
                    slot.draw(&suite, suite.workload_of(seed, Some(qps))).expect("draws").expect("few");
                let alone: Vec<Request> = suite.requests(seed, Some(qps)).expect("draws").collect();
                let drawn: Vec<Request> = drawn.iter().map(|request| (**request).clone()).collect();
                assert_eq!(drawn, alone, "seed {seed} at {qps} QPS {more}");
            }
        }
    }
}
