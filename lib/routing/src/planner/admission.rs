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
pub(super) fn by_slots(mut ranked: Vec<Ranked>, config: &PlanConfig) -> Admitted {
    let (capacity, up) = (config.capacity(), config.fleet.up());
    let (mut admitted_rate, mut cold_rate) = (0.0, 0.0);
    let mut copies_of = Vec::with_capacity(capacity.min(ranked.len() as f64) as usize);
    let mut used = 0u64;
    ranked.retain(|item| {
        let copies = if item.rate <= config.qcap { 1 } else { super::copies(item.rate, config.qcap, up) };
        let fits = (used + u64::from(copies)) as f64 <= capacity;
        if fits {
            used += u64::from(copies);
            copies_of.push(copies);
            admitted_rate += item.rate;
        } else {
            cold_rate += item.rate;
        }
        fits
    });
    Admitted { keys: ranked, copies: copies_of, admitted_rate, cold_rate }
}
