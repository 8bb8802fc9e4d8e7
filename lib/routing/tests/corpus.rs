//! Every reader against a corpus of odd inputs, whole, cut short and with bytes changed: an error is fine, a panic is not,
//! and what is accepted holds its invariants.

use cr_cost::CostModel;
use cr_routing::calibrate::{knee, read_ladder};
use cr_routing::export::FleetFile;
use cr_routing::rates::read_rates;
use cr_routing::table::{read_tables, write_table};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut files: Vec<_> = fs::read_dir(path)
        .expect("is there")
        .map(|entry| entry.expect("is listed").path())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("is readable")))
        .collect();
    files.sort();
    assert!(files.len() > 5, "the corpus is there");
    files
}

fn try_rates(bytes: &[u8]) {
    if let Ok((rates, _)) = read_rates(bytes, "corpus") {
        assert!(!rates.is_empty());
        assert!(rates.rates().iter().all(|rate| rate.is_finite() && *rate >= 0.0));
        let mut keys = rates.keys().to_vec();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), rates.len(), "keys are distinct");
        assert!(keys.iter().all(|key| !key.is_empty()));
    }
}

fn try_tables(bytes: &[u8]) {
    if let Ok(tables) = read_tables(bytes, "corpus") {
        assert!(!tables.is_empty());
        for table in tables {
            // What was read can be written and read again.
            let mut text = Vec::new();
            write_table(&table, &mut text).expect("writes");
            assert_eq!(read_tables(text.as_slice(), "again").expect("is valid"), [table]);
        }
    }
}

fn try_fleet(bytes: &[u8]) {
    if let Ok(fleet) = FleetFile::from_toml(&String::from_utf8_lossy(bytes), "corpus") {
        let plain = |text: &str| !text.contains(char::is_whitespace);
        assert!(fleet.addresses().iter().all(|address| plain(address)) && plain(fleet.listen()));
    }
}

fn try_cost(bytes: &[u8]) {
    match CostModel::from_toml(&String::from_utf8_lossy(bytes), "corpus") {
        Ok(cost) => {
            assert_eq!(CostModel::from_toml(&cost.to_toml(), "again").expect("is valid"), cost);
            assert!(cost.prefill(1, 0).0 > 0, "a step takes time");
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

fn try_ladder(bytes: &[u8]) {
    match read_ladder(&String::from_utf8_lossy(bytes), "corpus", None) {
        Ok(rungs) => {
            let _ = knee(&rungs, None);
            let _ = knee(&rungs, Some(1.0));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

type Reader = fn(&[u8]);

const READERS: [(&str, Reader); 5] = [
    ("rates", try_rates),
    ("tables", try_tables),
    ("fleets", try_fleet),
    ("costs", try_cost),
    ("ladders", try_ladder),
];

#[test]
fn whole_and_cut_files_never_panic() {
    for (folder, read) in READERS {
        for (_, bytes) in corpus(folder) {
            for end in 0..=bytes.len() {
                read(&bytes[..end]);
            }
        }
    }
}

#[test]
fn files_are_refused_with_their_name_and_in_one_line() {
    for (path, bytes) in corpus("rates") {
        if let Err(error) = read_rates(bytes.as_slice(), "corpus") {
            let text = error.to_string();
            assert!(text.starts_with("corpus") && text.lines().count() == 1, "{path}: {text}");
        }
    }
    for (path, bytes) in corpus("tables") {
        if let Err(error) = read_tables(bytes.as_slice(), "corpus") {
            let text = error.to_string();
            assert!(text.starts_with("corpus") && text.lines().count() == 1, "{path}: {text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_never_panic(
        reader in 0usize..5,
        file in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (folder, read) = READERS[reader];
        let files = corpus(folder);
        let (_, mut bytes) = files[file.index(files.len())].clone();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        read(&bytes);
    }

    #[test]
    fn any_text_never_panics(text in ".{0,200}") {
        READERS.iter().for_each(|(_, read)| read(text.as_bytes()));
    }
}
