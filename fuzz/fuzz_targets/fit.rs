#![no_main]
//! Fits: what is refused is refused in one sentence.

use cr_replay::fit::FitSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = FitSpec::from_toml(text, "fuzz") {
        assert_eq!(error.lines().count(), 1);
    }
});
