#![no_main]
//! Suites: what is refused, in a variant too, is refused in one sentence.

use cr_replay::suite::Suite;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A suite that extends another reads files, which are not the fuzzer's to name.
    if text.contains("extends") {
        return;
    }
    if let Err(error) = Suite::from_toml(text, "fuzz") {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
