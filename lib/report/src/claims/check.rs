//! What a claim may set out to show: a closed set of checks.

use serde::{Deserialize, Serialize};

/// What can be checked of means over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "snake_case")]
pub enum Check {
    /// The policy's served hit is at most so many percentage points below the best one's.
    HitWithinOfBest {
        /// The policy.
        policy: String,
        /// Percentage points.
        points: f64,
    },
    /// The policy's imbalance by requests is at most this.
    ImbalanceAtMost {
        /// The policy.
        policy: String,
        /// The bound.
        value: f64,
    },
    /// A metric of the policy is at most this.
    MetricAtMost {
        /// The policy.
        policy: String,
        /// Its name in `result.json`.
        metric: String,
        /// The bound.
        value: f64,
    },
    /// A metric of the policy is at least this.
    MetricAtLeast {
        /// The policy.
        policy: String,
        /// Its name in `result.json`.
        metric: String,
        /// The bound.
        value: f64,
    },
    /// The policy's mean capacity is above every other's.
    CapacityAboveAll {
        /// The policy.
        policy: String,
    },
    /// The policy's mean capacity is at least this.
    CapacityAtLeast {
        /// The policy.
        policy: String,
        /// Requests per second.
        qps: f64,
    },
    /// The policy's mean capacity is at least so many times another's.
    CapacityRatioAtLeast {
        /// The policy.
        policy: String,
        /// The other one.
        over: String,
        /// The factor.
        ratio: f64,
    },
    /// The policy has the longest p99 of TTFT; a saturated one has the longest of all.
    WorstTail {
        /// The policy.
        policy: String,
    },
    /// Policies in this order have values of this metric (or `capacity`) that never decrease.
    Order {
        /// Its name in `result.json`, or `capacity`.
        metric: String,
        /// From the lowest value to the highest.
        policies: Vec<String>,
    },
    /// The candidate's verdict against the baseline is one of `win`, `tie`, `lose`.
    Verdict {
        /// The word.
        is: String,
    },
}

impl Check {
    /// Every policy that it names.
    pub fn policies(&self) -> Vec<&String> {
        match self {
            Check::HitWithinOfBest { policy, .. }
            | Check::ImbalanceAtMost { policy, .. }
            | Check::MetricAtMost { policy, .. }
            | Check::MetricAtLeast { policy, .. }
            | Check::CapacityAboveAll { policy }
            | Check::CapacityAtLeast { policy, .. }
            | Check::WorstTail { policy } => vec![policy],
            Check::CapacityRatioAtLeast { policy, over, .. } => vec![policy, over],
            Check::Order { policies, .. } => policies.iter().collect(),
            Check::Verdict { .. } => Vec::new(),
        }
    }

    /// Why it says nothing; none where it does.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Check::CapacityAtLeast { qps, .. } if *qps <= 0.0 => Some("qps must be above 0"),
            Check::CapacityRatioAtLeast { policy, over, .. } if policy == over => {
                Some("a policy has once its own capacity; name another one by over")
            }
            Check::CapacityRatioAtLeast { ratio, .. } if *ratio <= 0.0 => Some("ratio must be above 0"),
            Check::Order { policies, .. } if policies.len() < 2 => {
                Some("an order needs at least two policies")
            }
            Check::Order { policies, .. }
                if policies.iter().enumerate().any(|(at, name)| policies[..at].contains(name)) =>
            {
                Some("an order names each policy once")
            }
            Check::Verdict { is } if !["win", "tie", "lose"].contains(&is.as_str()) => {
                Some("a verdict is win, tie or lose")
            }
            _ => None,
        }
    }

    /// The metric that it names.
    pub fn metric(&self) -> Option<&str> {
        match self {
            Check::MetricAtMost { metric, .. }
            | Check::MetricAtLeast { metric, .. }
            | Check::Order { metric, .. } => Some(metric),
            _ => None,
        }
    }
}
