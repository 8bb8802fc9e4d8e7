#![no_main]
//! Routing tables: what is read can be written and read again.

use cr_routing::table::{read_tables, write_table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for table in read_tables(bytes, "fuzz").into_iter().flatten() {
        let mut text = Vec::new();
        write_table(&table, &mut text).expect("writes");
        assert_eq!(read_tables(text.as_slice(), "again").expect("is valid"), [table]);
    }
});
