//! The committed sample is what the generator writes.

mod support;

use std::path::Path;

#[test]
fn the_committed_sample_is_what_the_generator_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample.ndjson");
    let text = support::Sample::default().ndjson();
    if std::env::var_os("CR_WRITE_SAMPLE").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("the sample is committed");
    assert!(committed == text, "the sample differs; CR_WRITE_SAMPLE=1 writes it anew");
}
