//! What is known of the keys.

use super::PlanError;
use crate::rates::KeyRates;
use cr_cost::CostModel;
use cr_trace::Key;

/// What is known of each key; all lists are in the order of the rates.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Requests per second.
    pub rates: &'a [f64],
    /// The names: placement by hash needs them.
    pub keys: Option<&'a [Key]>,
    /// The prefix of each key in tokens: admission by tokens needs it.
    pub prefix_tokens: Option<&'a [u64]>,
    /// The work of each key, in seconds of prefill per second: loads are then balanced by work and not by requests.
    pub work: Option<&'a [f64]>,
    /// Requests per second of keys that are not listed: part of the cold tail.
    pub other_rate: f64,
}

impl<'a> Demand<'a> {
    /// Only rates.
    pub fn of_rates(rates: &'a [f64]) -> Demand<'a> {
        Demand { rates, keys: None, prefix_tokens: None, work: None, other_rate: 0.0 }
    }

    /// All that these rates tell.
    pub fn of_keys(rates: &'a KeyRates) -> Demand<'a> {
        Demand {
            rates: rates.rates(),
            keys: Some(rates.keys()),
            prefix_tokens: rates.prefix_tokens(),
            work: None,
            other_rate: rates.other_rate(),
        }
    }

    /// What a key weighs in the balance: its work where that is told, else its rate.
    pub(super) fn weight(&self, key: u32) -> f64 {
        self.work.unwrap_or(self.rates)[key as usize]
    }

    pub(super) fn check(&self) -> Result<(), PlanError> {
        if !(self.other_rate.is_finite() && self.other_rate >= 0.0) {
            return Err(PlanError::Rate { at: self.rates.len(), rate: self.other_rate });
        }
        let keys = self.rates.len();
        for (what, found) in [
            ("keys", self.keys.map(<[_]>::len)),
            ("prefix_tokens", self.prefix_tokens.map(<[_]>::len)),
            ("work", self.work.map(<[_]>::len)),
        ] {
            if let Some(found) = found
                && found != keys
            {
                return Err(PlanError::Lengths { what, found, keys });
            }
        }
        match self.work.and_then(|work| work.iter().position(|work| !(work.is_finite() && *work >= 0.0))) {
            Some(at) => Err(PlanError::Work { at, work: self.work.map_or(0.0, |work| work[at]) }),
            None => Ok(()),
        }
    }
}

/// The work of each key with its prefix warm, in seconds of prefill per second: rate × the cost of prefilling what
/// follows the prefix over the prefix. `None` where prompts or prefixes are not known.
pub fn work_of(rates: &KeyRates, cost: &CostModel) -> Option<Vec<f64>> {
    let (prompts, prefixes) = (rates.prompt_tokens()?, rates.prefix_tokens()?);
    let work = rates.rates().iter().zip(prompts).zip(prefixes).map(|((rate, &prompt), &prefix)| {
        // At least one token is always computed.
        let cached = prefix.min(prompt.saturating_sub(1));
        rate * cost.prefill(prompt - cached, cached).as_s()
    });
    Some(work.collect())
}
