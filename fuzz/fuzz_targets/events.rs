#![no_main]
//! Event streams, up to the summary.

use cr_report::read_runs;
use cr_report::reader::EventReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_runs(EventReader::new(bytes, "fuzz"));
});
