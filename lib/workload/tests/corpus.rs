//! Every specification that comes with the project, damaged: none panics, and one that passes its check gives valid requests.

use cr_workload::{Generator, Spec};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

fn specs() -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder())
        .expect("is there")
        .map(|entry| entry.expect("is listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("is text")).collect()
}

fn try_spec(text: &str) {
    match Spec::from_toml(text, "x") {
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("x:") && text.lines().count() == 1, "{text}");
        }
        // Large populations are valid and slow to draw.
        Ok(spec) if spec.popularity.keys.is_none_or(|keys| keys <= 5000) && spec.check().is_ok() => {
            if let Ok(generator) = Generator::new(&spec, &folder()) {
                generator.take(20).for_each(|request| assert_eq!(request.fault(), None));
            }
        }
        Ok(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_specifications_are_refused_or_valid(
        file in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 32u8..127), 0..5),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let specs = specs();
        let mut bytes = specs[file.index(specs.len())].clone().into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        try_spec(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn numbers_of_any_size_are_refused_or_valid(file in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(), value in prop_oneof![
        Just("-1"), Just("0"), Just("1e300"), Just("-1e300"), Just("nan"), Just("inf"), Just("9223372036854775807"), Just("1e-300"), Just("\"x\""), Just("[]"),
    ]) {
        let specs = specs();
        let spec = &specs[file.index(specs.len())];
        let lines: Vec<&str> = spec.lines().collect();
        let numbers: Vec<usize> = (0..lines.len()).filter(|&n| lines[n].contains(" = ") && !lines[n].starts_with('#')).collect();
        let at = numbers[which.index(numbers.len())];
        let name = lines[at].split(" = ").next().unwrap_or_default();
        let changed = format!("{name} = {value}");
        let text: Vec<&str> = lines.iter().enumerate().map(|(n, line)| if n == at { changed.as_str() } else { line }).collect();
        try_spec(&text.join("\n"));
    }
}
