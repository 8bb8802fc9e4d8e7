#![no_main]
//! Workload specifications: one that passes its check gives valid requests.

use cr_workload::{Generator, Spec};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let Ok(mut spec) = Spec::from_toml(text, "fuzz") else { return };
    // Small enough to draw in passing.
    if spec.popularity.keys.is_some_and(|keys| keys > 1000) || spec.check().is_err() {
        return;
    }
    spec.requests = Some(20);
    if let Ok(generator) = Generator::new(&spec, Path::new("/nonexistent")) {
        generator.take(20).for_each(|request| assert_eq!(request.fault(), None));
    }
});
