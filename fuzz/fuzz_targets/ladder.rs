#![no_main]
//! Load ladders for calibration: a result of a sweep, or CSV.

use cr_routing::calibrate::{knee, read_ladder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rungs) = read_ladder(text, "fuzz", None) {
        let _ = knee(&rungs, None);
        let _ = knee(&rungs, Some(1.0));
    }
});
