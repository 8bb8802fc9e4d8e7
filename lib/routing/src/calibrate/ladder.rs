//! Reading a load ladder: `result.json` of a sweep, or CSV.

use super::Rung;
use cr_trace::TraceError;
use serde::Deserialize;
use std::collections::BTreeSet;

const SCHEMA: &str = "cacheroute.result/1";

/// What a ladder needs of `cacheroute.result/1`.
#[derive(Deserialize)]
struct ResultFile {
    schema: String,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    policy: String,
    seed: u64,
    /// The rate that the suite asked for.
    qps: Option<f64>,
    variant: Option<String>,
    requests: Requests,
    ttft_s: Ttft,
    saturated: bool,
}

#[derive(Deserialize)]
struct Requests {
    completed: u64,
    failed: u64,
    offered_qps: f64,
}

#[derive(Deserialize)]
struct Ttft {
    p99: f64,
}

/// The rungs of a text that errors call `file`: JSON is the result of a sweep, of which the runs of `policy` are taken (it may
/// be left out where there is one policy only); anything else is CSV with the columns `qps,p99[,failed][,run]`.
///
/// # Errors
/// Text that is neither, numbers that nothing measures, or a policy that is not there or is needed and not named.
pub fn read_ladder(text: &str, file: &str, policy: Option<&str>) -> Result<Vec<Rung>, TraceError> {
    if text.trim_start().starts_with('{') { from_result(text, file, policy) } else { from_csv(text, file) }
}

fn from_result(text: &str, file: &str, policy: Option<&str>) -> Result<Vec<Rung>, TraceError> {
    let fault = |what: String| TraceError::File { file: file.into(), what };
    let result: ResultFile = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        TraceError::line(file, (error.line() as u64).max(1), format!("no result of a sweep: {what}"))
    })?;
    if result.schema != SCHEMA {
        return Err(fault(format!("the schema is {:?}, a result has {SCHEMA:?}", result.schema)));
    }
    let policies: BTreeSet<&str> = result.runs.iter().map(|run| run.policy.as_str()).collect();
    let all = policies.iter().copied().collect::<Vec<_>>().join(", ");
    let policy = match (policy, policies.len()) {
        (Some(policy), _) if policies.contains(policy) => policy,
        (Some(policy), _) => return Err(fault(format!("no runs of {policy:?}; there are {all}"))),
        (None, 0 | 1) => policies.first().copied().unwrap_or_default(),
        (None, _) => {
            return Err(fault(format!("runs of several policies; name one of {all} by --policy")));
        }
    };
    let runs = || result.runs.iter().filter(|run| run.policy == policy);
    let variants: BTreeSet<&str> = runs().filter_map(|run| run.variant.as_deref()).collect();
    if variants.len() > 1 {
        let all = variants.into_iter().collect::<Vec<_>>().join("; ");
        return Err(fault(format!(
            "runs of several variants ({all}), which are no one ladder; sweep one alone"
        )));
    }
    let rungs: Vec<Rung> = runs()
        .map(|run| Rung {
            run: run.seed,
            // Repetitions of one load meet at the rate that was asked for; what came of it differs from seed to seed.
            qps: run.qps.unwrap_or(run.requests.offered_qps),
            p99_s: run.ttft_s.p99,
            failed: run.requests.failed as f64 / (run.requests.completed + run.requests.failed).max(1) as f64,
            saturated: run.saturated,
        })
        .collect();
    match rungs.iter().position(|rung| !is_measured(rung)) {
        Some(at) => Err(fault(format!("run {} of {policy}: {MEASURED}", at + 1))),
        None => Ok(rungs),
    }
}

const MEASURED: &str = "qps and p99 are finite and not negative, failed lies between 0 and 1";

fn is_measured(rung: &Rung) -> bool {
    let fine = |value: f64| value.is_finite() && value >= 0.0;
    fine(rung.qps) && fine(rung.p99_s) && (0.0..=1.0).contains(&rung.failed)
}

/// One row of CSV.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    qps: f64,
    p99: f64,
    #[serde(default)]
    failed: f64,
    #[serde(default)]
    run: u64,
}

/// Numbers need no quotes, so a line is a row.
fn from_csv(text: &str, file: &str) -> Result<Vec<Rung>, TraceError> {
    let mut rungs = Vec::new();
    let mut header: Option<csv::StringRecord> = None;
    let lines =
        text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    for (line, number) in lines {
        let fields: csv::StringRecord =
            line.split(',').map(|field| field.trim().trim_matches('"')).collect::<Vec<_>>().into();
        let fault = |what: String| TraceError::line(file, number, what);
        let Some(header) = &header else {
            header = Some(fields);
            continue;
        };
        if fields.len() != header.len() {
            return Err(fault(format!("the row has {} fields, the header {}", fields.len(), header.len())));
        }
        let row: Row = fields.deserialize(Some(header)).map_err(|error| {
            let what = match error.kind() {
                csv::ErrorKind::Deserialize { err, .. } => {
                    let name = err.field().and_then(|at| header.get(at as usize)).unwrap_or("the row");
                    format!("{name}: {}", err.kind())
                }
                other => format!("{other:?}"),
            };
            fault(format!("{what}; the columns are qps,p99[,failed][,run]"))
        })?;
        let rung = Rung { run: row.run, qps: row.qps, p99_s: row.p99, failed: row.failed, saturated: false };
        if !is_measured(&rung) {
            return Err(fault(MEASURED.into()));
        }
        rungs.push(rung);
    }
    Ok(rungs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result of one policy, with so many seeds and variants.
    fn result(runs: &[(u64, f64, Option<&str>)]) -> String {
        let run = |&(seed, qps, variant): &(u64, f64, Option<&str>)| {
            let variant = variant.map_or("null".into(), |label| format!("{label:?}"));
            format!(
                r#"{{"policy":"flat","seed":{seed},"qps":{qps},"variant":{variant},"saturated":false,"ttft_s":{{"p99":0.5}},
                "requests":{{"offered":200,"completed":90,"failed":10,"cancelled":100,"offered_qps":{}}}}}"#,
                qps + 0.01 * seed as f64
            )
        };
        let runs: Vec<String> = runs.iter().map(run).collect();
        format!(r#"{{"schema":"{SCHEMA}","runs":[{}]}}"#, runs.join(","))
    }

    #[test]
    fn repetitions_of_a_load_meet_at_the_rate_asked_for() {
        let text = result(&[(1, 30.0, None), (2, 30.0, None), (1, 60.0, None), (2, 60.0, None)]);
        let rungs = read_ladder(&text, "r.json", None).expect("reads");
        assert_eq!(rungs.iter().map(|rung| rung.qps).collect::<Vec<_>>(), [30.0, 30.0, 60.0, 60.0]);
        // Of those that came to an end.
        assert!((rungs[0].failed - 0.1).abs() < 1e-12);
        let text = result(&[(1, 30.0, Some("k=16")), (1, 30.0, Some("k=32"))]);
        let error = read_ladder(&text, "r.json", None).expect_err("two ladders").to_string();
        assert!(error.contains("runs of several variants (k=16; k=32)"), "{error}");
    }

    #[test]
    fn rows_and_their_faults() {
        let rungs = read_ladder("qps,p99,failed\n\n10, 0.5,0\n20,1.5,0.1\n", "l.csv", None).expect("reads");
        assert_eq!((rungs[1].qps, rungs[1].p99_s, rungs[1].failed, rungs[1].run), (20.0, 1.5, 0.1, 0));
        for (text, wanted) in [
            (
                "qps,p99\n\n10,-1\n",
                "l.csv:3: qps and p99 are finite and not negative, failed lies between 0 and 1",
            ),
            (
                "qps,p99\n10,x\n",
                "l.csv:2: p99: invalid float literal; the columns are qps,p99[,failed][,run]",
            ),
            ("qps,p99\n10\n", "l.csv:2: the row has 1 fields, the header 2"),
            (
                "{\n\"schema\":1}",
                "l.csv:2: no result of a sweep: invalid type: integer `1`, expected a string",
            ),
            (
                "{\"schema\":\"x\",\"runs\":[]}",
                "l.csv: the schema is \"x\", a result has \"cacheroute.result/1\"",
            ),
        ] {
            assert_eq!(read_ladder(text, "l.csv", None).expect_err(text).to_string(), wanted);
        }
    }
}
