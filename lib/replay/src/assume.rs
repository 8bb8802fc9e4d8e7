//! What policies assume of the shards: what somebody says, else what the run itself tells.

use cr_routing::policy::{PolicyTuning, PrebleTuning, Redirect};
use serde::{Deserialize, Serialize};

/// Assumptions that somebody states; the rest follows from the engine ([`crate::Engine::tuning`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Assume {
    /// `chwbl`: ε, the slack over the mean load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chwbl_epsilon: Option<f64>,
    /// `dualmap`: TTFT within which pending prefill must clear, in seconds; the SLO of the run where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dualmap_slo_s: Option<f64>,
    /// `dualmap`: prefill tokens per second that a shard clears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dualmap_drain: Option<f64>,
    /// `dualmap`, `preble`, `lru-oracle`: KV tokens of a shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_tokens: Option<u64>,
    /// `preble`: the history that loads look back on, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preble_window_s: Option<u32>,
    /// `preble`: the ratio of loads above which a holder gives way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preble_load_ratio: Option<f64>,
    /// `preble`: which holders give way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preble_redirect: Option<Redirect>,
}

impl Assume {
    /// These assumptions over `known` ones, with the run's bound on the p99 of TTFT where it has one.
    pub fn over(&self, known: PolicyTuning, slo_ttft_s: Option<f64>) -> PolicyTuning {
        let preble = PrebleTuning {
            window_s: self.preble_window_s.unwrap_or(known.preble.window_s),
            load_ratio: self.preble_load_ratio.unwrap_or(known.preble.load_ratio),
            redirect: self.preble_redirect.unwrap_or(known.preble.redirect),
        };
        PolicyTuning {
            preble,
            epsilon: self.chwbl_epsilon.unwrap_or(known.epsilon),
            slo_ttft_s: self.dualmap_slo_s.or(slo_ttft_s).unwrap_or(known.slo_ttft_s),
            drain_tokens_per_s: self.dualmap_drain.unwrap_or(known.drain_tokens_per_s),
            kv_tokens: self.kv_tokens.unwrap_or(known.kv_tokens),
            ..known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_cost::CostModel;

    #[test]
    fn what_is_said_comes_before_what_is_known_and_that_before_what_was_published() {
        let cost = CostModel::by_name_or_path("worked-example").expect("is built in");
        let known = PolicyTuning::of_cost(cost, 4_096);
        // 0.1 ms a prompt token.
        assert!((known.drain_tokens_per_s - 10_000.0).abs() < 1e-6);
        assert_eq!((known.kv_tokens, known.epsilon), (4_096, 0.25));
        let nothing = Assume::default();
        assert_eq!(nothing.over(known.clone(), None), known);
        assert_eq!(nothing.over(known.clone(), Some(2.0)).slo_ttft_s, 2.0);
        let said = Assume { dualmap_slo_s: Some(1.0), dualmap_drain: Some(500.0), ..nothing };
        let tuning = said.over(known, Some(2.0));
        assert_eq!((tuning.slo_ttft_s, tuning.drain_tokens_per_s), (1.0, 500.0));
        assert_eq!(
            tuning.assumed_by("dualmap").as_deref(),
            Some("TTFT within 1 s, 500 prefill tokens/s, 4096 KV tokens a shard")
        );
        assert_eq!(tuning.assumed_by("flat"), None);
        let capped = Assume {
            preble_window_s: Some(30),
            preble_load_ratio: Some(2.0),
            preble_redirect: Some(Redirect::OverMean),
            ..nothing
        };
        let assumed = capped.over(PolicyTuning::default(), None).assumed_by("preble").unwrap_or_default();
        assert!(assumed.ends_with("a holder gives way above 2 times the mean load of 30 s"), "{assumed}");
    }
}
