//! Named random streams.
//!
//! A run has one seed and one stream per purpose, so that drawing more for one purpose (another policy, another rate)
//! never changes what another purpose draws. ChaCha8 is documented to give the same stream on every platform.

use crate::tokens::mix64;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use twox_hash::XxHash3_64;

/// A portable random stream.
pub type Stream = ChaCha8Rng;

/// The stream of one purpose under a seed. Purposes are short stable names, such as `arrivals` or `policy`.
pub fn stream(seed: u64, purpose: &str) -> Stream {
    ChaCha8Rng::seed_from_u64(mix64(seed) ^ XxHash3_64::oneshot(purpose.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_are_fixed_for_all_time() {
        assert_eq!(stream(42, "arrivals").next_u64(), stream(42, "arrivals").next_u64());
        assert_ne!(stream(42, "arrivals").next_u64(), stream(42, "policy").next_u64());
        assert_ne!(stream(42, "arrivals").next_u64(), stream(43, "arrivals").next_u64());
    }
}
