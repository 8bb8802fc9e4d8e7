//! Fitting a cost model to measured steps.
//!
//! Non-negative least squares (Lawson and Hanson, *Solving Least Squares Problems*, 1974, chapter 23) over the six terms of
//! the model. Every step is divided by its own duration first, so that a decode of 3 ms and a prefill of 300 ms weigh
//! the same and the residuals are relative errors.

use crate::{CostError, CostModel, StepWork};
use cr_trace::Time;

const TERMS: usize = 6;

/// One measured step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What the step did.
    pub work: StepWork,
    /// How long it took.
    pub duration: Time,
}

/// How far a model is from measured steps: |modelled − measured| / measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitError {
    /// Steps compared.
    pub samples: usize,
    /// The median.
    pub median: f64,
    /// The 90th percentile (nearest rank).
    pub p90: f64,
    /// The largest.
    pub max: f64,
    /// Mean of (modelled − measured) / measured: above 0 where the model is too slow.
    pub bias: f64,
}

/// Why no model could be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitFailure {
    /// Too few steps, or steps that took no time.
    #[error("{0} measured steps that took time are too few for a cost model of {TERMS} terms")]
    TooFew(usize),
    /// The result is no valid model.
    #[error(transparent)]
    Model(#[from] CostError),
}

impl CostModel {
    /// The model that is nearest to the samples in relative error, with no term below 0.
    ///
    /// # Errors
    /// Fewer samples than terms, or a result in which a step takes no time.
    pub fn fit(name: &str, source: &str, samples: &[Sample]) -> Result<CostModel, FitFailure> {
        let rows: Vec<[f64; TERMS]> = samples
            .iter()
            .filter(|sample| sample.duration > Time::ZERO)
            .map(|sample| terms(&sample.work).map(|term| term / sample.duration.as_ms()))
            .collect();
        if rows.len() < TERMS {
            return Err(FitFailure::TooFew(rows.len()));
        }
        Ok(CostModel::from_ms(name, source, non_negative(&rows))?)
    }

    /// How far the model is from the samples; all zero where there are none.
    pub fn error_on(&self, samples: &[Sample]) -> FitError {
        let signed: Vec<f64> = samples
            .iter()
            .filter(|sample| sample.duration > Time::ZERO)
            .map(|sample| self.step(&sample.work).as_ms() / sample.duration.as_ms() - 1.0)
            .collect();
        let mut errors: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let Some(&max) = errors.last() else { return FitError::default() };
        let rank = |share: f64| errors[((errors.len() as f64 * share).ceil() as usize).max(1) - 1];
        let bias = signed.iter().sum::<f64>() / signed.len() as f64;
        FitError { samples: errors.len(), median: rank(0.5), p90: rank(0.9), max, bias }
    }
}

/// The terms of the model, in the order of [`CostModel::from_ms`].
fn terms(work: &StepWork) -> [f64; TERMS] {
    [
        1.0,
        work.prefill_tokens as f64,
        work.prefill_ctx_tokens as f64,
        work.prefill_pairs as f64,
        work.decode_seqs as f64,
        work.decode_ctx_tokens as f64,
    ]
}

/// The x ≥ 0 that minimises Σ (row · x − 1)².
fn non_negative(rows: &[[f64; TERMS]]) -> [f64; TERMS] {
    // Columns differ by nine orders of magnitude, so each is brought to unit length first.
    let mut scale = [0.0; TERMS];
    for row in rows {
        for (s, value) in scale.iter_mut().zip(row) {
            *s += value * value;
        }
    }
    let scale = scale.map(|sum: f64| if sum > 0.0 { sum.sqrt().recip() } else { 0.0 });
    let (mut gram, mut target) = ([[0.0; TERMS]; TERMS], [0.0; TERMS]);
    for row in rows {
        let row: [f64; TERMS] = std::array::from_fn(|i| row[i] * scale[i]);
        for i in 0..TERMS {
            target[i] += row[i];
            for j in 0..TERMS {
                gram[i][j] += row[i] * row[j];
            }
        }
    }
    let x = lawson_hanson(&gram, &target);
    std::array::from_fn(|i| x[i] * scale[i])
}

/// Lawson–Hanson on the normal equations `gram · x = target`.
fn lawson_hanson(gram: &[[f64; TERMS]; TERMS], target: &[f64; TERMS]) -> [f64; TERMS] {
    let mut x = [0.0; TERMS];
    let mut free = [false; TERMS];
    // Every round frees a term; a bound on the rounds guards against cycling on rounding errors.
    for _ in 0..4 * TERMS {
        let gradient: [f64; TERMS] = std::array::from_fn(|i| target[i] - dot(&gram[i], &x));
        let steepest = (0..TERMS).filter(|&i| !free[i]).max_by(|&a, &b| gradient[a].total_cmp(&gradient[b]));
        let Some(term) = steepest.filter(|&i| gradient[i] > 1e-12 * target[i].abs()) else { break };
        free[term] = true;
        loop {
            let Some(trial) = solve(gram, target, &free) else {
                free[term] = false;
                break;
            };
            let blocked = (0..TERMS).filter(|&i| free[i] && trial[i] <= 0.0);
            let step = blocked.map(|i| x[i] / (x[i] - trial[i])).min_by(f64::total_cmp);
            let Some(step) = step else {
                x = trial;
                break;
            };
            for i in 0..TERMS {
                x[i] += step * (trial[i] - x[i]);
                if free[i] && x[i] <= 1e-15 {
                    (x[i], free[i]) = (0.0, false);
                }
            }
        }
    }
    x
}

fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves the equations of the free terms by elimination with pivoting; the others are 0. `None`: they are dependent.
fn solve(gram: &[[f64; TERMS]; TERMS], target: &[f64; TERMS], free: &[bool; TERMS]) -> Option<[f64; TERMS]> {
    let chosen: Vec<usize> = (0..TERMS).filter(|&i| free[i]).collect();
    let mut rows: Vec<Vec<f64>> =
        chosen.iter().map(|&i| chosen.iter().map(|&j| gram[i][j]).chain([target[i]]).collect()).collect();
    let n = rows.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < 1e-12 {
            return None;
        }
        for below in column + 1..n {
            let (above, rest) = rows.split_at_mut(below);
            let factor = rest[0][column] / above[column][column];
            for (value, pivot) in rest[0].iter_mut().zip(&above[column]) {
                *value -= factor * pivot;
            }
        }
    }
    let mut x = [0.0; TERMS];
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|k| rows[row][k] * x[chosen[k]]).sum();
        x[chosen[row]] = (rows[row][n] - known) / rows[row][row];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> Vec<StepWork> {
        let mut grid = Vec::new();
        for (new, ctx) in [(16, 0), (128, 0), (512, 0), (16, 1024), (128, 512), (512, 2048)] {
            let mut work = StepWork::default();
            work.add_prefill(new, ctx);
            grid.push(work);
        }
        for (seqs, ctx) in [(1, 64), (1, 1024), (8, 64), (8, 1024), (32, 512)] {
            let mut work = StepWork::default();
            (0..seqs).for_each(|_| work.add_decode(ctx));
            grid.push(work);
            work.add_prefill(64, 100);
            grid.push(work);
        }
        grid
    }

    fn samples(cost: &CostModel) -> Vec<Sample> {
        grid().into_iter().map(|work| Sample { work, duration: cost.step(&work) }).collect()
    }

    #[test]
    fn steps_of_a_known_model_give_that_model() {
        for name in CostModel::built_in_names() {
            let truth = CostModel::by_name_or_path(name).expect("is built in");
            let fitted = CostModel::fit("fit", "test", &samples(&truth)).expect("fits");
            let error = fitted.error_on(&samples(&truth));
            assert!(error.max < 1e-6, "{name}: {error:?}");
            // Also where it was not fitted.
            let mut work = StepWork::default();
            work.add_prefill(300, 3000);
            let (ours, theirs) = (fitted.step(&work).as_ms(), truth.step(&work).as_ms());
            assert!((ours / theirs - 1.0).abs() < 1e-5, "{name}: {ours} against {theirs}");
        }
    }

    #[test]
    fn a_term_that_would_be_negative_is_left_out() {
        // Durations that shrink with context: the best context terms would be below 0.
        let shrinking: Vec<Sample> = grid()
            .into_iter()
            .map(|work| {
                let ms = 10.0 + 0.1 * work.prefill_tokens as f64 + work.decode_seqs as f64;
                let ctx = (work.prefill_ctx_tokens + work.decode_ctx_tokens) as f64;
                Sample { work, duration: Time::from_s((ms - 1e-4 * ctx).max(1.0) * 1e-3) }
            })
            .collect();
        let fitted = CostModel::fit("fit", "test", &shrinking).expect("fits");
        assert!(fitted.to_toml().contains("prefill_ctx_ms = 0.0"), "{}", fitted.to_toml());
        assert!(fitted.error_on(&shrinking).median < 0.2);
    }

    #[test]
    fn too_few_steps_are_refused() {
        let few = &samples(&CostModel::by_name_or_path("worked-example").expect("is built in"))[..5];
        assert!(matches!(CostModel::fit("fit", "test", few), Err(FitFailure::TooFew(5))));
    }

    fn objective(rows: &[[f64; TERMS]], x: &[f64; TERMS]) -> f64 {
        rows.iter().map(|row| (dot(row, x) - 1.0).powi(2)).sum()
    }

    proptest! {
        /// Nothing near the solution, and nothing drawn at random, is better.
        #[test]
        fn no_other_non_negative_vector_is_better(
            rows in prop::collection::vec(prop::array::uniform6(0.0f64..10.0), 8..30),
            others in prop::collection::vec(prop::array::uniform6(0.0f64..1.0), 50),
        ) {
            let best = non_negative(&rows);
            prop_assert!(best.iter().all(|x| *x >= 0.0));
            let least = objective(&rows, &best) - 1e-9;
            for other in &others {
                prop_assert!(objective(&rows, other) >= least);
                let near: [f64; TERMS] = std::array::from_fn(|i| (best[i] + 1e-3 * (other[i] - 0.5)).max(0.0));
                prop_assert!(objective(&rows, &near) >= least);
            }
        }
    }
}
