//! Every suite and fit that comes with the project, damaged: none panics, and what is refused is refused in one line.

use cr_replay::fit::FitSpec;
use cr_replay::suite::Suite;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name)
}

/// The TOML files of a folder, in order.
fn files(name: &str) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = fs::read_dir(folder(name))
        .expect("is there")
        .map(|entry| entry.expect("is listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has files");
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("is text"))).collect()
}

fn one_line(file: &Path, error: &str) -> Result<(), TestCaseError> {
    prop_assert!(error.starts_with(&file.display().to_string()), "{error}");
    prop_assert_eq!(error.lines().count(), 1, "{}", error);
    Ok(())
}

fn try_suite(file: &Path, text: &str) -> Result<(), TestCaseError> {
    Suite::from_toml(text, &file.display().to_string())
        .map_or_else(|error| one_line(file, &error.to_string()), |_| Ok(()))
}

fn try_fit(file: &Path, text: &str) -> Result<(), TestCaseError> {
    FitSpec::from_toml(text, &file.display().to_string())
        .map_or_else(|error| one_line(file, &error), |_| Ok(()))
}

#[test]
fn what_comes_with_the_project_is_read() {
    for (path, text) in files("suites") {
        Suite::from_toml(&text, &path.display().to_string()).expect("is a suite");
    }
    for (path, text) in files("fits") {
        FitSpec::from_toml(&text, &path.display().to_string()).expect("is a fit");
    }
}

#[test]
fn a_fit_is_refused_with_its_line() {
    let error =
        FitSpec::from_toml("schema = \"cacheroute.fit/1\"\nsuit = \"x\"\n", "f.toml").expect_err("is no fit");
    assert!(error.starts_with("f.toml:2: unknown field \"suit\"; did you mean \"suite\"?"), "{error}");
}

/// Damage: bytes replaced, and perhaps the rest cut off.
fn damage() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>)> {
    (
        proptest::collection::vec((any::<prop::sample::Index>(), 32u8..127), 0..5),
        proptest::option::of(any::<prop::sample::Index>()),
    )
}

fn damaged(
    text: &str,
    (edits, cut): &(Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>),
) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, byte) in edits {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text with the value of one of its lines replaced.
fn revalued(text: &str, which: &prop::sample::Index, value: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let settings: Vec<usize> =
        (0..lines.len()).filter(|&n| lines[n].contains(" = ") && !lines[n].starts_with('#')).collect();
    let at = settings[which.index(settings.len())];
    let changed = format!("{} = {value}", lines[at].split(" = ").next().unwrap_or_default());
    let text: Vec<&str> =
        lines.iter().enumerate().map(|(n, line)| if n == at { changed.as_str() } else { line }).collect();
    text.join("\n")
}

const VALUES: [&str; 11] =
    ["-1", "0", "1e300", "-1e300", "nan", "inf", "9223372036854775807", "1e-300", "\"x\"", "[]", "{}"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_files_are_refused_or_valid(file in any::<prop::sample::Index>(), damage in damage()) {
        let suites = files("suites");
        let (path, text) = &suites[file.index(suites.len())];
        try_suite(path, &damaged(text, &damage))?;
        let fits = files("fits");
        let (path, text) = &fits[file.index(fits.len())];
        try_fit(path, &damaged(text, &damage))?;
    }

    #[test]
    fn values_of_any_size_and_kind_are_refused_or_valid(
        file in any::<prop::sample::Index>(),
        which in any::<prop::sample::Index>(),
        value in proptest::sample::select(&VALUES[..]),
    ) {
        let suites = files("suites");
        let (path, text) = &suites[file.index(suites.len())];
        try_suite(path, &revalued(text, &which, value))?;
        let fits = files("fits");
        let (path, text) = &fits[file.index(fits.len())];
        try_fit(path, &revalued(text, &which, value))?;
    }
}
