//! Gamma draws that are the same on every machine.
//!
//! The method of Marsaglia and Tsang (*A Simple Method for Generating Gamma Variables*, 2000): a cubed normal, accepted with a
//! probability above 95 %; shapes below 1 by `G(k + 1) · U^(1/k)`. Powers and logarithms are `libm`'s: the system's differ in
//! their last bit from one platform to the next.

use cr_trace::Stream;
use rand::RngExt;
use rand_distr::{Distribution, Open01, StandardNormal};

/// A Gamma distribution.
#[derive(Clone, Debug)]
pub(crate) struct Gamma {
    scale: f64,
    /// 1 / shape where that is above 1.
    inverse_shape: Option<f64>,
    d: f64,
    c: f64,
}

impl Gamma {
    /// Of this shape and scale; both are finite and above 0.
    pub(crate) fn new(shape: f64, scale: f64) -> Gamma {
        let inverse_shape = (shape < 1.0).then(|| 1.0 / shape);
        let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
        Gamma { scale, inverse_shape, d, c: 1.0 / (9.0 * d).sqrt() }
    }

    pub(crate) fn draw(&self, rng: &mut Stream) -> f64 {
        let large = self.draw_large(rng) * self.scale;
        match self.inverse_shape {
            None => large,
            Some(inverse_shape) => {
                let uniform: f64 = Open01.sample(rng);
                large * libm::pow(uniform, inverse_shape)
            }
        }
    }

    fn draw_large(&self, rng: &mut Stream) -> f64 {
        loop {
            let x: f64 = StandardNormal.sample(rng);
            let root = 1.0 + self.c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let uniform: f64 = rng.random();
            if libm::log(uniform) < 0.5 * x * x + self.d * (1.0 - v + libm::log(v)) {
                return self.d * v;
            }
        }
    }
}
