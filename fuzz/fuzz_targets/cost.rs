#![no_main]
//! Cost models: what is accepted survives being written.

use cr_cost::CostModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cost) = CostModel::from_toml(text, "fuzz") {
        assert_eq!(CostModel::from_toml(&cost.to_toml(), "again").expect("is valid"), cost);
        assert!(cost.prefill(1, 0).0 > 0);
    }
});
