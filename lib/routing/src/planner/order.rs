//! Keys by decreasing rate, equal rates in input order.
//!
//! The bits of a non-negative float order as the float does. Keys are radix-sorted by the 32 highest bits in which any
//! two rates differ, packed with their position into one word, so that three passes move 8 bytes a key; the few runs that
//! agree in those bits are then sorted by the whole rate. Every step is stable, so the result is exactly that of a stable
//! comparison sort, several times faster for the millions of keys that plans are made of.

use super::PlanError;

/// A key that may be admitted: its rate and its position in the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub(super) rate: f64,
    pub(super) key: u32,
}

const DIGIT_BITS: u32 = 11;
const BUCKETS: usize = 1 << DIGIT_BITS;
const PASSES: usize = 32usize.div_ceil(DIGIT_BITS as usize);

/// Below this many keys clearing the counters costs more than a comparison sort.
const RADIX_FROM: usize = 2_048;

/// The keys of positive rate, decreasing; equal rates in input order.
pub(super) fn by_decreasing_rate(rates: &[f64]) -> Result<Vec<Ranked>, PlanError> {
    if u32::try_from(rates.len()).is_err() {
        return Err(PlanError::TooMany { keys: rates.len() });
    }
    let total: f64 = rates.iter().sum();
    if !total.is_finite() || rates.iter().any(|&rate| rate < 0.0) {
        return Err(fault(rates));
    }
    if rates.len() < RADIX_FROM {
        let mut ranked: Vec<Ranked> = positive(rates).map(|(key, rate)| Ranked { rate, key }).collect();
        ranked.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        Ok(ranked)
    } else {
        Ok(radix_sort(rates))
    }
}

/// What is wrong with rates that cannot be planned.
fn fault(rates: &[f64]) -> PlanError {
    match rates.iter().position(|rate| !(rate.is_finite() && *rate >= 0.0)) {
        Some(at) => PlanError::Rate { at, rate: rates[at] },
        None => PlanError::Overflow,
    }
}

/// Positions and rates of the keys that count.
fn positive(rates: &[f64]) -> impl Iterator<Item = (u32, f64)> + '_ {
    rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0).map(|(key, &rate)| (key as u32, rate))
}

fn radix_sort(rates: &[f64]) -> Vec<Ranked> {
    let (some, all) = positive(rates)
        .fold((0, u64::MAX), |(some, all), (_, rate)| (some | rate.to_bits(), all & rate.to_bits()));
    let differing = some & !all;
    let shift = (u64::BITS - differing.leading_zeros()).saturating_sub(32);
    // Inverted, so that ascending words are decreasing rates.
    let coarse = |rate: f64| (!rate.to_bits() >> shift) as u32;

    let words = positive(rates).map(|(key, rate)| u64::from(coarse(rate)) << 32 | u64::from(key)).collect();
    let words = sort_by_high_half(words);
    let mut ranked: Vec<Ranked> = words
        .iter()
        .map(|&word| {
            let key = word as u32;
            Ranked { rate: rates[key as usize], key }
        })
        .collect();
    if shift > 0 {
        for run in ranked.chunk_by_mut(|a, b| coarse(a.rate) == coarse(b.rate)) {
            if run.len() > 1 {
                run.sort_by(|a, b| b.rate.total_cmp(&a.rate));
            }
        }
    }
    ranked
}

/// Sorts by the upper 32 bits, least significant digit first; each pass is stable.
fn sort_by_high_half(mut words: Vec<u64>) -> Vec<u64> {
    let mut counts = vec![[0u32; BUCKETS]; PASSES];
    for &word in &words {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(word, pass)] += 1;
        }
    }
    let mut other = vec![0; words.len()];
    for (pass, starts) in counts.iter_mut().enumerate() {
        if starts.iter().any(|&count| count as usize == words.len()) {
            continue; // One digit for all: nothing to do.
        }
        let mut sum = 0;
        for start in starts.iter_mut() {
            sum += std::mem::replace(start, sum);
        }
        for &word in &words {
            let at = &mut starts[digit(word, pass)];
            other[*at as usize] = word;
            *at += 1;
        }
        std::mem::swap(&mut words, &mut other);
    }
    words
}

fn digit(word: u64, pass: usize) -> usize {
    ((word >> (32 + pass as u32 * DIGIT_BITS)) as usize) & (BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(rates: &[f64]) -> Vec<Ranked> {
        let mut ranked: Vec<Ranked> = positive(rates).map(|(key, rate)| Ranked { rate, key }).collect();
        ranked.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        ranked
    }

    proptest! {
        #[test]
        fn the_radix_sort_is_a_stable_sort(
            // Few distinct values, so that ties are common; neighbours that differ in the last bits only; and the
            // whole range of magnitudes.
            rates in proptest::collection::vec(
                prop_oneof![
                    (0u32..6).prop_map(f64::from),
                    (0u64..9).prop_map(|n| f64::from_bits(1.5f64.to_bits() + n)),
                    f64::MIN_POSITIVE..1e300,
                    1e-3..1e3,
                ],
                0..300,
            ),
        ) {
            prop_assert_eq!(radix_sort(&rates), naive(&rates));
        }
    }

    #[test]
    fn large_inputs_take_the_radix_path_and_drop_zeros() {
        let rates: Vec<f64> = (0..10_000).map(|n| f64::from(n * 7_919 % 1_000)).collect();
        assert_eq!(by_decreasing_rate(&rates), Ok(naive(&rates)));
        assert_eq!(by_decreasing_rate(&[0.0; 5_000]), Ok(Vec::new()));
        assert_eq!(by_decreasing_rate(&[2.5; 5_000]), Ok(naive(&[2.5; 5_000])));
    }

    #[test]
    fn bad_rates_are_named_by_position() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = by_decreasing_rate(&[1.0, bad]).expect_err("is bad").to_string();
            assert!(error.starts_with("the rate at position 1 is "), "{error}");
        }
        assert_eq!(by_decreasing_rate(&[f64::MAX, f64::MAX]), Err(PlanError::Overflow));
    }
}
