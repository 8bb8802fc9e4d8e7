//! A suite's runs and what they say together: all that a report is made of.

use crate::capacity::Capacity;
use crate::design::Design;
use crate::events::Slo;
use crate::objective::Objective;
use crate::result::{Aggregate, ResultFile, aggregates, capacities};
use crate::run::{DETAIL_SCHEMA, Detail, RunDetail, RunReport};
use crate::{claims, files, json, published, result};
use serde_json::Map;

/// What the caller of a suite hands over.
#[derive(Clone, Debug, Default)]
pub struct SuiteReport {
    /// The suite's name, such as `bench`.
    pub suite: String,
    /// The report's heading.
    pub title: String,
    /// The policy that others are held against; must be among the runs to have an effect.
    pub baseline: Option<String>,
    /// The policy that the report is about; the last one in the order of the runs where none is named.
    pub candidate: Option<String>,
    /// Bounds that the runs are held against.
    pub slo: Slo,
    /// Commands that reproduce the result, in order.
    pub commands: Vec<String>,
    /// What a reader should know besides, a sentence each.
    pub notes: Vec<String>,
    /// Policies that build on one another step by step; they get a waterfall where at least two were run.
    pub ablation: Vec<String>,
    /// How many runs the suite has; a report of fewer is partial and says so. Not checked where none is given.
    pub expected_runs: Option<u64>,
    /// Objectives, the ladder, and the variants.
    pub design: Design,
    /// The runs in the order of the suite: it must not depend on which of them ended first.
    pub runs: Vec<RunReport>,
}

/// Why a stored result cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No valid JSON, or not of this form.
    #[error("{file}:{line}: {what}")]
    Json {
        /// Which file.
        file: String,
        /// From 1.
        line: usize,
        /// The parser's word.
        what: String,
    },
    /// Valid, but not usable.
    #[error("{file}: {what}")]
    Content {
        /// Which file.
        file: String,
        /// What is wrong, and what would be right.
        what: String,
    },
}

/// All that a report is made of. It is made from the text of the files that are written, so that a report rebuilt from them is
/// the same to the byte.
#[derive(Clone, Debug)]
pub struct Record {
    /// `result.json`.
    pub file: ResultFile,
    /// The runs, in the same order.
    pub runs: Vec<RunReport>,
}

/// A record and the files it was made from.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What a report is made of.
    pub record: Record,
    /// The text of `result.json`.
    pub result_json: String,
    /// The text of `detail.json`.
    pub detail_json: String,
}

impl Stored {
    /// From a suite that was just run.
    ///
    /// # Errors
    /// Where a value cannot be written and read back, such as a rate that is not finite.
    pub fn new(suite: &SuiteReport) -> Result<Stored, RecordError> {
        // A run that was stopped before anything was measured is no run of no hits.
        let runs =
            || suite.runs.iter().filter(|run| run.summary.complete || run.summary.requests.offered > 0);
        let file = ResultFile {
            schema: result::SCHEMA.into(),
            suite: suite.suite.clone(),
            runs: runs().map(|run| run.summary.clone()).collect(),
            aggregates: Vec::new(),
            title: suite.title.clone(),
            baseline: suite.baseline.clone(),
            candidate: suite.candidate.clone(),
            slo: suite.slo,
            commands: suite.commands.clone(),
            notes: suite.notes.clone(),
            ablation: suite.ablation.clone(),
            expected_runs: suite.expected_runs,
            design: suite.design.clone(),
            capacity: Vec::new(),
            evidence: Vec::new(),
            beside: Vec::new(),
        };
        let rest = Map::from_iter([("schema".to_owned(), DETAIL_SCHEMA.into())]);
        let detail_json = text(files::DETAIL, json::stable_list(rest, "runs", runs().map(RunDetail::from)))?;
        // Written numbers are rounded; everything that follows starts from the rounded ones.
        let record = Record::from_json(&text(files::RESULT, json::stable(&file))?, &detail_json)?;
        Stored::of(record, detail_json)
    }

    /// From a record and the text of `detail.json` that it was made from.
    ///
    /// # Errors
    /// Where a value cannot be written.
    pub fn of(record: Record, detail_json: String) -> Result<Stored, RecordError> {
        let result_json = text(files::RESULT, json::stable(&record.file))?;
        Ok(Stored { record, result_json, detail_json })
    }
}

impl Record {
    /// From the text of `result.json` and `detail.json`. Aggregates are computed anew.
    ///
    /// # Errors
    /// Where a file is no valid JSON, of another schema, or the two do not hold the same runs.
    pub fn from_json(result_json: &str, detail_json: &str) -> Result<Record, RecordError> {
        let mut file = result_file(files::RESULT, result_json)?;
        let detail: Detail = parse(files::DETAIL, detail_json)?;
        schema(files::DETAIL, &detail.schema, DETAIL_SCHEMA)?;
        let same = |run: &RunDetail, summary: &crate::summary::Summary| {
            run.header.policy == summary.policy
                && run.header.seed == summary.seed
                && run.header.qps == summary.qps
                && run.header.variant == summary.variant
        };
        if detail.runs.len() != file.runs.len()
            || !detail.runs.iter().zip(&file.runs).all(|(r, s)| same(r, s))
        {
            return Err(RecordError::Content {
                file: files::DETAIL.into(),
                what: "its runs are not those of result.json; both files must come from one report".into(),
            });
        }
        let runs: Vec<RunReport> =
            detail.runs.into_iter().zip(&file.runs).map(|(run, s)| run.with(s.clone())).collect();
        file.aggregates = aggregates(&runs, file.baseline.as_deref(), &file.design.ladder_qps);
        file.capacity = capacities(&file.runs, &file.objectives(), &file.design.ladder_qps);
        let mut record = Record { file, runs };
        record.file.evidence = claims::evaluate(&record);
        record.file.beside = published::beside(&record);
        Ok(record)
    }

    /// The record of every variant that was run, with its label; the record itself where nothing varies.
    pub fn parts(&self) -> Vec<(Option<String>, Record)> {
        let variants = &self.file.design.variants;
        if variants.is_empty() {
            return vec![(None, self.clone())];
        }
        let part = |label: &String| (Some(label.clone()), self.of_variant(label));
        let parts = variants.iter().map(|variant| part(&variant.label));
        parts.filter(|(_, part)| !part.file.aggregates.is_empty()).collect()
    }

    /// The part of the record that one variant makes; its runs keep their label.
    #[must_use]
    pub fn of_variant(&self, label: &str) -> Record {
        let is = |variant: &Option<String>| variant.as_deref() == Some(label);
        let mut file = self.file.clone();
        file.runs.retain(|run| is(&run.variant));
        file.aggregates.retain(|cell| is(&cell.variant));
        file.capacity.retain(|capacity| is(&capacity.variant));
        file.design.variants.clear();
        (file.evidence, file.beside) = (Vec::new(), Vec::new());
        file.expected_runs = None;
        let runs = self.runs.iter().filter(|run| is(&run.summary.variant)).cloned().collect();
        Record { file, runs }
    }

    /// The objective that verdicts go by: the first.
    pub fn objective(&self) -> Option<Objective> {
        self.file.objectives().first().copied()
    }

    /// A policy's capacity under an objective.
    pub fn capacity(&self, policy: &str, objective: Objective) -> Option<&Capacity> {
        self.file.capacity.iter().find(|own| own.policy == policy && own.objective() == objective)
    }

    /// The policies, in the order of the suite.
    pub fn policies(&self) -> Vec<&str> {
        let mut policies: Vec<&str> = Vec::new();
        for cell in &self.file.aggregates {
            if !policies.contains(&cell.policy.as_str()) {
                policies.push(&cell.policy);
            }
        }
        policies
    }

    /// The rates, ascending; a single `None` where the suite sets none.
    pub fn rates(&self) -> Vec<Option<f64>> {
        let mut rates: Vec<Option<f64>> = self.file.aggregates.iter().map(|cell| cell.qps).collect();
        rates.sort_by(|a, b| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
        rates.dedup();
        rates
    }

    /// The rate that policies are compared at: the highest up to which no policy is saturated at any rate, or else the lowest.
    pub fn reference_rate(&self) -> Option<f64> {
        let rates = self.rates();
        let calm = |rate: &&Option<f64>| {
            self.file.aggregates.iter().filter(|cell| cell.qps == **rate).all(|cell| !cell.saturated())
        };
        rates.iter().take_while(calm).last().or(rates.first()).copied().flatten()
    }

    /// The cells at one rate, in the order of the suite.
    pub fn cells_at(&self, qps: Option<f64>) -> Vec<&Aggregate> {
        self.file.aggregates.iter().filter(|cell| cell.qps == qps).collect()
    }

    /// One policy at one rate.
    pub fn cell(&self, policy: &str, qps: Option<f64>) -> Option<&Aggregate> {
        self.file.aggregates.iter().find(|cell| cell.policy == policy && cell.qps == qps)
    }

    /// The runs of a cell.
    pub fn runs_of<'a>(&'a self, cell: &'a Aggregate) -> impl Iterator<Item = &'a RunReport> {
        self.runs.iter().filter(|run| run.summary.policy == cell.policy && run.summary.qps == cell.qps)
    }

    /// The baseline, where it is named and was run.
    pub fn baseline(&self) -> Option<&str> {
        self.file.baseline.as_deref().filter(|name| self.policies().contains(name))
    }

    /// The policy that the report is about.
    pub fn candidate(&self) -> Option<&str> {
        let policies = self.policies();
        let named = self.file.candidate.as_deref().filter(|name| policies.contains(name));
        named.or_else(|| policies.into_iter().rev().find(|policy| Some(*policy) != self.baseline()))
    }

    /// The place of a policy in the order of the suite, which is also the number of its colour.
    pub fn place(&self, policy: &str) -> usize {
        self.policies().iter().position(|known| *known == policy).unwrap_or(0)
    }

    /// Whether all runs were made and came to their end.
    pub fn complete(&self) -> bool {
        self.file.complete()
    }
}

/// Reads `result.json`.
///
/// # Errors
/// Where it is no valid JSON or of another schema.
pub fn result_file(name: &str, text: &str) -> Result<ResultFile, RecordError> {
    let file: ResultFile = parse(name, text)?;
    schema(name, &file.schema, result::SCHEMA)?;
    Ok(file)
}

/// The text of a file, if it could be rendered.
fn text(name: &str, rendered: Result<String, serde_json::Error>) -> Result<String, RecordError> {
    rendered.map_err(|e| RecordError::Content { file: name.into(), what: e.to_string() })
}

fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, RecordError> {
    serde_json::from_str(text).map_err(|e| RecordError::Json {
        file: file.into(),
        line: e.line(),
        what: e.to_string(),
    })
}

fn schema(file: &str, found: &str, wanted: &str) -> Result<(), RecordError> {
    if found == wanted {
        return Ok(());
    }
    Err(RecordError::Content {
        file: file.into(),
        what: format!("schema {found:?}; this version reads {wanted}"),
    })
}
