#![no_main]
//! Tables of requests: Azure and BurstGPT.

use cr_trace::table_csv::{Columns, TableImport};
use cr_trace::tolerance::Tolerance;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for columns in [Columns::azure(), Columns::burstgpt()] {
        if let Ok(rows) = TableImport::new(bytes, "fuzz", &columns, Tolerance::new(3)) {
            for request in rows.flatten() {
                assert_eq!(request.fault(), None);
            }
        }
    }
});
