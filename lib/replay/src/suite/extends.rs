//! A suite that says only how it differs from another (`extends = "other.toml"`).
//!
//! Tables are merged key by key; anything else, lists included, replaces what the other suite says. So parameters that several
//! suites must share stand in one file.

use super::spec::{Suite, SuiteError};
use cr_trace::bounded::read_file;
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
    let mut texts = vec![(file.to_owned(), text.to_owned())];
    let base: Table =
        table.iter().filter(|(key, _)| *key == "extends").map(|(k, v)| (k.clone(), v.clone())).collect();
    let whole = resolve(table, Path::new(file), MOST_STEPS, &mut texts).map_err(fail)?;
    // As text again, so that an error knows the line that is to blame.
    let merged = toml::to_string(&whole).map_err(|error| fail(error.to_string()))?;
    toml::from_str(&merged).map_err(|error: toml::de::Error| {
        let (line, what) = cr_trace::config_text::explain(&merged, error.span(), error.message());
        let said = merged.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        if is_suite(base, file) {
            // What it extends is not to blame.
            texts.truncate(1);
        }
        SuiteError { file: place_of(said, &texts).unwrap_or_else(|| file.to_owned()), what }
    })
}

/// A suite's table and those of what it extends, as far as they can be read, each with the folder that it lies in.
pub fn tables_of(text: &str, file: &str) -> Vec<(Table, PathBuf)> {
    let (mut found, mut text, mut file) = (Vec::new(), text.to_owned(), PathBuf::from(file));
    while let Ok(table) = text.parse::<Table>() {
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let next = table.get("extends").and_then(Value::as_str).map(|name| folder.join(name));
        found.push((table, folder));
        match next.and_then(|path| Some((read_file(&path).ok()?, path))) {
            Some(next) if found.len() < MOST_STEPS => (text, file) = next,
            _ => break,
        }
    }
    found
}

/// Whether a table with what it extends is a suite.
fn is_suite(table: Table, file: &str) -> bool {
    resolve(table, Path::new(file), MOST_STEPS, &mut Vec::new())
        .ok()
        .and_then(|whole| toml::to_string(&whole).ok())
        .is_some_and(|text| toml::from_str::<Suite>(&text).is_ok())
}

/// Where a line of the merged suite comes from: the first line that says just this, or else that says it among other things, as inline
/// tables do; the suite's own text first, then what it extends.
fn place_of(said: &str, texts: &[(String, String)]) -> Option<String> {
    let plain = |line: &str| -> String { line.replace('\'', "\"").split_whitespace().collect() };
    let said = plain(said);
    let find = |says: &dyn Fn(&str) -> bool| {
        texts.iter().find_map(|(file, text)| {
            let line = text.lines().position(|line| says(&plain(line)))?;
            Some(format!("{file}:{}", line + 1))
        })
    };
    if said.is_empty() {
        return None;
    }
    find(&|line| line == said).or_else(|| find(&|line| line.contains(&said)))
}

/// The table with everything that it extends; the `texts` of that with their names are appended.
fn resolve(
    mut table: Table,
    file: &Path,
    steps: usize,
    texts: &mut Vec<(String, String)>,
) -> Result<Table, String> {
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
    let text = read_file(&path)
        .map_err(|error| format!("extends {name:?}: cannot read {}: {error}", path.display()))?;
    let base = text
        .parse::<Table>()
        .map_err(|error| format!("extends {name:?}: {}: {}", path.display(), error.message()))?;
    texts.push((path.display().to_string(), text));
    let mut base = resolve(base, &path, steps - 1, texts)?;
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
        let resolve = |text: &str| resolve(table(text), &a, MOST_STEPS, &mut Vec::new());
        let error = resolve("extends = \"b.toml\"").expect_err("is a circle");
        assert!(error.contains("in a circle"), "{error}");
        let error = resolve("extends = \"c.toml\"").expect_err("is missing");
        assert!(error.contains("extends \"c.toml\": cannot read"), "{error}");
        let error = resolve("extends = 1").expect_err("is no name");
        assert!(error.contains("in quotes"), "{error}");
    }

    #[test]
    fn a_fault_of_a_suite_that_extends_another_has_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("base.toml");
        let rest = "title = 't'\npolicies = ['flat']\nbaseline = 'flat'\ncandidate = 'flat'\nseeds = [1]\n[load]\nqps = [5]\n\
                    [fleet]\nshards = 2\n[engine]\nkind = 'sim'\ncost = '8b-h100'\n[workload]\nduration_s = 20.0\n\
                    output_tokens = 5\n[workload.popularity]\nmodel = 'zipf'\nkeys = 40\nalpha = 1.1\n\
                    [workload.arrivals]\nqps = 1.0\n[[workload.prompt]]\nscope = 'key'\ntokens = 30\n";
        let write = |more: &str| {
            let text = format!("schema = 'cacheroute.suite/1'\nname = 'b'\n{more}{rest}");
            std::fs::write(&base, text).expect("is written");
        };
        let own = folder.path().join("own.toml").display().to_string();
        let of = |text: &str| parse(&format!("extends = 'base.toml'\n{text}"), &own).map(|_| ());
        let fault = |text: &str| of(text).expect_err("is no suite").to_string();
        write("");
        of("name = 'own'\n").expect("is a suite");
        let unknown = fault("name = 'own'\n[fleet]\nshardz = 3 # typed in a hurry\n");
        assert!(
            unknown.starts_with(&format!("{own}:4: unknown field \"shardz\"; did you mean \"shards\"?")),
            "{unknown}"
        );
        let wrong = fault("name = 'own'\n[fleet]\nshards = \"three\"\n");
        assert!(wrong.starts_with(&format!("{own}:4: ")) && !wrong.contains('\n'), "{wrong}");
        let inline = fault("name = 'own'\nclaims = [{ text = 't', check = { kind = 'ordr', qps = 5 } }]\n");
        assert!(
            inline.starts_with(&format!("{own}:3: unknown value \"ordr\"; did you mean \"order\"?")),
            "{inline}"
        );
        write("titel = 'x'\n");
        let in_base = fault("name = 'own'\n");
        assert!(in_base.starts_with(&format!("{}:3: unknown field \"titel\"", base.display())), "{in_base}");
    }
}
