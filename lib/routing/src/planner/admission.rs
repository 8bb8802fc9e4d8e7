//! Who gets a place: admission under the budget of copies.

use super::PlanConfig;
use super::order::Ranked;

/// The admitted keys in plan order, each with its copies, and what is left cold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Admitted {
    /// Key and rate, decreasing.
    pub(super) keys: Vec<Ranked>,
    /// Copies of each; same order.
    pub(super) copies: Vec<u32>,
    /// Σ rate of the admitted keys.
    pub(super) admitted_rate: f64,
    /// Σ rate of the others.
    pub(super) cold_rate: f64,
}

/// Admits in decreasing rate while the copies fit `C = R·W`; a key that does not fit is skipped.
pub(super) fn by_slots(ranked: &[Ranked], config: &PlanConfig) -> Admitted {
    let (capacity, up) = (config.capacity(), config.fleet.up());
    let mut admitted = Admitted::default();
    let likely = (capacity.min(ranked.len() as f64)) as usize;
    admitted.keys.reserve(likely);
    admitted.copies.reserve(likely);
    let mut used = 0u64;
    for item in ranked {
        let copies = super::copies(item.rate, config.qcap, up);
        if (used + u64::from(copies)) as f64 <= capacity {
            used += u64::from(copies);
            admitted.keys.push(*item);
            admitted.copies.push(copies);
            admitted.admitted_rate += item.rate;
        } else {
            admitted.cold_rate += item.rate;
        }
    }
    admitted
}
