#![no_main]
//! Text: custom datasets and conversations, through to requests.

use cr_trace::mooncake::BlockKey;
use cr_trace::text::{TextForm, TextReader};
use cr_trace::tolerance::Tolerance;
use cr_workload::arrivals::Arrivals;
use cr_workload::texts::{TextImport, TextOptions};
use cr_workload::threads::Loop;
use cr_workload::Length;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for form in [TextForm::Custom, TextForm::ShareGpt] {
        let Ok(reader) = TextReader::new(bytes, "fuzz", form, None, Tolerance::new(3)) else { continue };
        let options = TextOptions {
            seed: 1,
            arrivals: Arrivals::poisson(1.0),
            think_s: 1.0,
            mode: Loop::Closed,
            block_tokens: 4,
            key: BlockKey::AfterTrunk,
            output_tokens: Length::Constant(8),
        };
        let bytes = |text: &str| Ok(text.bytes().map(u32::from).collect());
        let requests = TextImport::new(reader, "fuzz", Box::new(bytes), options).expect("is valid");
        for request in requests.flatten() {
            assert_eq!(request.fault(), None);
        }
    }
});
