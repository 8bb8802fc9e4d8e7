#![no_main]
//! Rates: a trace, CSV or JSON lines, whichever the first line says.

use cr_routing::rates::read_rates;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((rates, _)) = read_rates(bytes, "fuzz") {
        assert!(!rates.is_empty() && rates.rates().iter().all(|rate| rate.is_finite() && *rate >= 0.0));
    }
});
