//! What is known of a value that an end of a ladder may hide: between which bounds it lies.

use crate::capacity::{Capacity, Censored};

/// A value lies between these, or is the one that both are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    least: f64,
    most: f64,
    /// It lies below `most`, not at it.
    below: bool,
}

impl Bounds {
    /// A value that is known.
    pub(crate) fn exact(value: f64) -> Bounds {
        Bounds { least: value, most: value, below: false }
    }

    /// A capacity's mean. Seeds below the ladder are counted as its lowest rung, so the true mean is less; those beyond it as its highest
    /// rung, so it is at least that.
    pub(crate) fn of(capacity: &Capacity) -> Bounds {
        let mean = capacity.mean_qps.mean;
        match capacity.censored {
            Censored::No => Bounds::exact(mean),
            Censored::Below => Bounds { least: 0.0, most: mean, below: true },
            Censored::Above => Bounds { least: mean, most: f64::INFINITY, below: false },
            Censored::Both => Bounds { least: 0.0, most: f64::INFINITY, below: false },
        }
    }

    /// So many times as much.
    pub(crate) fn times(self, factor: f64) -> Bounds {
        Bounds { least: self.least * factor, most: self.most * factor, ..self }
    }

    /// Whether this is at least the other; none where the bounds do not say.
    pub(crate) fn is_at_least(self, other: Bounds) -> Option<bool> {
        match () {
            () if self.least >= other.most => Some(true),
            () if self.most < other.least || (self.below && self.most <= other.least) => Some(false),
            () => None,
        }
    }

    /// Whether this is above the other; none where the bounds do not say.
    pub(crate) fn is_above(self, other: Bounds) -> Option<bool> {
        other.is_at_least(self).map(|is_not| !is_not)
    }
}

/// Which way the true difference of two capacities may lie from the counted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// It may be greater: the first lies beyond the ladder, or the second below it.
    pub greater: bool,
    /// It may be less: the first lies below the ladder, or the second beyond it.
    pub less: bool,
}

impl Hidden {
    /// Of the difference `one − other`.
    pub fn of(one: &Capacity, other: &Capacity) -> Hidden {
        let above = |capacity: &Capacity| matches!(capacity.censored, Censored::Above | Censored::Both);
        let below = |capacity: &Capacity| matches!(capacity.censored, Censored::Below | Censored::Both);
        Hidden { greater: above(one) || below(other), less: below(one) || above(other) }
    }

    /// Whether it is as counted.
    pub fn nothing(self) -> bool {
        !self.greater && !self.less
    }

    /// The sign before a counted difference: `≥ ` or `≤ ` where it is a bound; none where it is no bound either.
    pub fn sign(self) -> Option<&'static str> {
        match (self.greater, self.less) {
            (false, false) => Some(""),
            (true, false) => Some("≥ "),
            (false, true) => Some("≤ "),
            (true, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds() -> impl Strategy<Value = (Bounds, Vec<f64>)> {
        // A few values that it may be, on a grid of halves.
        (0u32..4, 0u32..4, 0u32..4).prop_map(|(kind, low, more)| {
            let (low, high) = (f64::from(low), f64::from(low + more));
            let grid = |from: f64, to: f64| {
                (0..40).map(|n| f64::from(n) / 2.0).filter(move |&v| from <= v && v <= to).collect::<Vec<_>>()
            };
            match kind {
                0 => (Bounds::exact(low), vec![low]),
                1 => (Bounds { least: 0.0, most: high + 0.5, below: true }, grid(0.0, high)),
                2 => (Bounds { least: low, most: f64::INFINITY, below: false }, grid(low, f64::INFINITY)),
                _ => (Bounds { least: 0.0, most: f64::INFINITY, below: false }, grid(0.0, f64::INFINITY)),
            }
        })
    }

    proptest! {
        /// What holds of all values that lie between the bounds, of none, or of some. The grid is coarse, so where the bounds say
        /// something it must hold there; where they do not, both must be possible.
        #[test]
        fn they_say_what_all_values_say((one, ones) in bounds(), (other, others) in bounds()) {
            let all = |holds: fn(f64, f64) -> bool| -> Option<bool> {
                let mut seen = ones.iter().flat_map(|&a| others.iter().map(move |&b| holds(a, b)));
                let first = seen.next()?;
                seen.all(|next| next == first).then_some(first)
            };
            if let Some(said) = one.is_at_least(other) {
                prop_assert_eq!(all(|a, b| a >= b), Some(said));
            }
            if let Some(said) = one.is_above(other) {
                prop_assert_eq!(all(|a, b| a > b), Some(said));
            }
        }
    }

    #[test]
    fn a_value_below_the_ladder_is_less_than_its_lowest_rung() {
        let below = Bounds { least: 0.0, most: 30.0, below: true };
        let beyond = Bounds { least: 500.0, most: f64::INFINITY, below: false };
        assert_eq!(below.is_at_least(Bounds::exact(30.0)), Some(false));
        assert_eq!(below.is_at_least(Bounds::exact(20.0)), None);
        assert_eq!(beyond.is_at_least(Bounds::exact(500.0)), Some(true));
        assert_eq!(beyond.is_at_least(Bounds::exact(600.0)), None);
        assert_eq!(Bounds::exact(30.0).is_above(below), Some(true));
        assert_eq!(Bounds::exact(90.0).is_at_least(below.times(3.0)), Some(true));
        assert_eq!(beyond.is_above(beyond), None);
    }
}
