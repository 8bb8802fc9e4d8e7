#![no_main]
//! Rows of hash blocks, in both dialects and under every rule for keys.

use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use cr_trace::tolerance::Tolerance;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for (dialect, key) in [
        (Dialect::MOONCAKE, BlockKey::AfterTrunk),
        (Dialect::MOONCAKE, BlockKey::Prefix(2)),
        (Dialect::BAILIAN, BlockKey::Session),
    ] {
        let reader = MooncakeReader::new(bytes, "fuzz", dialect).tolerate(Tolerance::new(3));
        for request in MooncakeImport::new(reader, key).flatten() {
            assert_eq!(request.fault(), None);
        }
    }
});
