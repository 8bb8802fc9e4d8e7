#![no_main]
//! gzip and zstd, told by their first bytes; at most a megabyte is unpacked.

use cr_trace::compress::unpacked;
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = unpacked(Box::new(Cursor::new(bytes.to_vec()))) {
        let _ = reader.take(1 << 20).read_to_end(&mut Vec::new());
    }
});
