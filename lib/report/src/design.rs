//! What a suite sets out to do, as `result.json` keeps it: objectives, the ladder, the variants, and what is claimed.

use crate::claims::Claim;
use crate::objective::Objective;
use crate::published::Published;
use crate::regimes::{Foretold, Map};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a suite sets out to do, beyond its policies and seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Objectives besides the one of `slo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// The rungs that every policy and seed runs, ascending. Empty: all rates of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladder_qps: Vec<f64>,
    /// The parameters that vary, in the order of the suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Every combination of them that is run, in the order of the suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Whether each variant moves a single parameter from a base (a sensitivity analysis) instead of combining all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Which axes make a regime map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Map>,
    /// What the suite sets out to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Values that others published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

/// A parameter that varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its points, in order.
    pub points: Vec<String>,
}

/// One combination of the parameters that vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// As runs name it, such as `shards 8, keys 128`.
    pub label: String,
    /// The point on each axis.
    pub at: BTreeMap<String, String>,
    /// What an analysis of its requests foretells, where a regime map asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foretold: Option<Foretold>,
}

impl Design {
    /// The variant at these points; points that are not named may be any.
    pub fn variants_at<'a>(
        &'a self,
        at: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a Variant> + 'a {
        self.variants
            .iter()
            .filter(move |variant| at.iter().all(|(axis, point)| variant.at.get(axis) == Some(point)))
    }
}
