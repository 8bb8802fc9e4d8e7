#![no_main]
//! The native trace: what is accepted is valid, ordered, and reads the same when written again.

use cr_trace::{Request, TraceReader, TraceWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = TraceReader::new(bytes, "fuzz") else { return };
    let requests: Vec<Request> = reader.map_while(Result::ok).collect();
    assert!(requests.iter().all(|request| request.fault().is_none()));
    assert!(requests.is_sorted_by(|a, b| a.t_s <= b.t_s));
    let mut writer = TraceWriter::new(Vec::new());
    requests.iter().for_each(|request| writer.write(request).expect("writes"));
    let text = writer.finish().expect("writes");
    if !requests.is_empty() {
        let again: Result<Vec<Request>, _> = TraceReader::new(&text[..], "again").expect("opens").collect();
        assert_eq!(again.expect("is valid"), requests);
    }
});
