//! A suite that says only how it differs from another (`extends = "other.toml"`).
//!
//! Tables are merged key by key; anything else, lists included, replaces what the other suite says. So parameters that several
//! suites must share stand in one file.

use super::spec::{Suite, SuiteError};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Suites that extend one another deeper than this are taken for a circle.
const MOST_STEPS: usize = 8;

/// Parses a suite; `file` names it, and what it extends lies beside it.
pub(super) fn parse(text: &str, file: &str) -> Result<Suite, SuiteError> {
    let fail = |what: String| SuiteError { file: file.into(), what };
    let own_fault = |error: toml::de::Error| {
        let (line, what) = cr_trace::config_text::explain(text, error.span(), error.message());
        SuiteError { file: format!("{file}:{line}"), what }
    };
    // A suite of its own is read in one go, so that errors keep their lines.
    let own = toml::from_str::<Suite>(text);
    let Ok(table) = text.parse::<Table>() else {
        return own.map_err(own_fault);
    };
    if !table.contains_key("extends") {
        return own.map_err(own_fault);
    }
    let whole = resolve(table, Path::new(file), MOST_STEPS).map_err(fail)?;
    Value::Table(whole).try_into().map_err(|error: toml::de::Error| fail(error.message().to_owned()))
}

/// The table with everything that it extends.
fn resolve(mut table: Table, file: &Path, steps: usize) -> Result<Table, String> {
    let Some(extends) = table.remove("extends") else { return Ok(table) };
    let Value::String(name) = extends else {
        return Err("extends must be the name of a suite's file, in quotes".into());
    };
    let path: PathBuf = file.parent().unwrap_or(Path::new("")).join(&name);
    if steps == 0 {
        return Err(format!(
            "extends {name:?}: suites extend one another in a circle, or more than {MOST_STEPS} deep"
        ));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("extends {name:?}: cannot read {}: {error}", path.display()))?;
    let base = text
        .parse::<Table>()
        .map_err(|error| format!("extends {name:?}: {}: {}", path.display(), error.message()))?;
    let mut base = resolve(base, &path, steps - 1)?;
    merge(&mut base, table);
    Ok(base)
}

/// Lays `over` over `base`.
fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().expect("is TOML")
    }

    #[test]
    fn tables_merge_and_everything_else_is_replaced() {
        let mut base = table("a = 1\nlist = [1, 2]\n[t]\nx = 1\ny = 2\n[t.deep]\nz = 3");
        merge(&mut base, table("list = [9]\n[t]\ny = 5\n[t.deep]\nw = 4\n[u]\nv = 6"));
        assert_eq!(base, table("a = 1\nlist = [9]\n[t]\nx = 1\ny = 5\n[t.deep]\nz = 3\nw = 4\n[u]\nv = 6"));
    }

    #[test]
    fn a_fault_is_one_line_with_its_place() {
        let of = |text: &str| parse(text, "s.toml").expect_err("is no suite").to_string();
        let unknown = of("schema = \"cacheroute.suite/1\"\nname = \"a\"\nseedz = [1]\n");
        assert!(
            unknown.starts_with("s.toml:3: unknown field \"seedz\"; did you mean \"seeds\"?"),
            "{unknown}"
        );
        assert!(!unknown.contains('\n'), "{unknown}");
        let broken = of("a = 1\n[t\n");
        assert!(broken.starts_with("s.toml:2: ") && !broken.contains('\n'), "{broken}");
    }

    #[test]
    fn circles_and_missing_files_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let (a, b) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        std::fs::write(&a, "extends = \"b.toml\"").expect("is written");
        std::fs::write(&b, "extends = \"a.toml\"").expect("is written");
        let error = resolve(table("extends = \"b.toml\""), &a, MOST_STEPS).expect_err("is a circle");
        assert!(error.contains("in a circle"), "{error}");
        let error = resolve(table("extends = \"c.toml\""), &a, MOST_STEPS).expect_err("is missing");
        assert!(error.contains("extends \"c.toml\": cannot read"), "{error}");
        let error = resolve(table("extends = 1"), &a, MOST_STEPS).expect_err("is no name");
        assert!(error.contains("in quotes"), "{error}");
    }
}
