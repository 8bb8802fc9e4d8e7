//! A population given by name: rates in the specification, or in a CSV file.

use crate::WorkloadError;
use crate::popularity::{MAX_KEYS, Population, normalise};
use cr_trace::Key;
use cr_trace::bounded::BoundedLines;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// One row of a file of rates; further columns are ignored.
#[derive(serde::Deserialize)]
struct Row {
    key: Key,
    rate: f64,
}

/// The population of the given rates, or of the file's: most popular first, equal ones by name. Keys of rate 0 drop out.
pub(crate) fn population(
    rates: Option<&BTreeMap<String, f64>>,
    file: Option<&Path>,
    folder: &Path,
) -> Result<Population, WorkloadError> {
    let mut keys: Vec<(Key, f64)> = match (rates, file) {
        (Some(rates), _) => rates.iter().map(|(key, &rate)| (Key::from(key), rate)).collect(),
        (None, Some(file)) => read(&folder.join(file))?,
        (None, None) => Vec::new(),
    };
    if let Some((key, rate)) = keys.iter().find(|(_, rate)| !(rate.is_finite() && *rate >= 0.0)) {
        return Err(WorkloadError::field(
            "popularity.rates",
            format!("the rate of {key:?} is {rate}; it must be finite and not negative"),
        ));
    }
    keys.retain(|(key, rate)| *rate > 0.0 && !key.is_empty());
    if keys.is_empty() {
        return Err(WorkloadError::field("popularity.rates", "no key has a rate above 0"));
    }
    keys.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let (names, mut shares): (Vec<Key>, Vec<f64>) = keys.into_iter().unzip();
    normalise(&mut shares, 1.0);
    Ok(Population { shares, names })
}

fn read(path: &Path) -> Result<Vec<(Key, f64)>, WorkloadError> {
    let error =
        |line: Option<usize>, what: String| WorkloadError::file("popularity.rates_file", path, line, what);
    let file = File::open(path).map_err(|cause| error(None, format!("cannot be read: {cause}")))?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(BoundedLines::new(file));
    let mut seen = BTreeSet::new();
    let mut keys = Vec::new();
    for row in reader.deserialize::<Row>() {
        let line = keys.len() + 2;
        let row = row.map_err(|cause| {
            let at = cause.position().map_or(line, |position| position.line() as usize);
            let what = match cause.kind() {
                csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
                _ => cause.to_string(),
            };
            error(Some(at), format!("{what}; a file of rates has the columns key and rate"))
        })?;
        if !(row.rate.is_finite() && row.rate >= 0.0) || row.key.is_empty() {
            return Err(error(
                Some(line),
                format!("key {:?}, rate {}: a name and a rate of at least 0 are wanted", row.key, row.rate),
            ));
        }
        if !seen.insert(row.key.clone()) {
            return Err(error(Some(line), format!("key {:?} was given before", row.key)));
        }
        keys.push((row.key, row.rate));
        if keys.len() as u64 > MAX_KEYS {
            return Err(error(None, format!("more than {MAX_KEYS} keys")));
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sorted_and_sum_to_one() {
        let rates =
            BTreeMap::from([("a".into(), 1.0), ("b".into(), 3.0), ("c".into(), 0.0), ("d".into(), 1.0)]);
        let population = population(Some(&rates), None, Path::new("")).expect("is valid");
        assert_eq!(population.names, ["b", "a", "d"]);
        assert!(population.shares.iter().zip([0.6, 0.2, 0.2]).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn files_and_their_faults() {
        let folder = tempfile::tempdir().expect("is made");
        let read = |text: &str| {
            std::fs::write(folder.path().join("r.csv"), text).expect("writes");
            population(None, Some(Path::new("r.csv")), folder.path())
        };
        let good = read("key,rate,prefix_tokens\nx,1,9\ny,3,9\n").expect("is valid");
        assert_eq!((good.names[0].as_str(), good.shares[0]), ("y", 0.75));
        for (text, end) in [
            ("key,rate\nx,1\nx,2\n", "r.csv:3: key \"x\" was given before"),
            ("key,rate\nx,-1\n", "r.csv:2: key \"x\", rate -1: a name and a rate of at least 0 are wanted"),
            ("key,rate\nx,nan\n", "r.csv:2: key \"x\", rate NaN: a name and a rate of at least 0 are wanted"),
            ("name,rate\nx,1\n", "missing field `key`; a file of rates has the columns key and rate"),
            ("key,rate\n", "popularity.rates: no key has a rate above 0"),
        ] {
            let error = read(text).expect_err("is refused").to_string();
            assert!(error.ends_with(end), "{error}");
        }
        assert!(population(None, Some(Path::new("none.csv")), folder.path()).is_err());
    }
}
