//! What can be wrong with a specification.

use cr_trace::number::plain;
use std::path::Path;

/// Why a specification describes no workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A field that is out of range, missing, or at odds with another.
    #[error("{field}: {what}")]
    Field {
        /// The field's path in the specification, such as `popularity.sigma`.
        field: &'static str,
        /// What is wrong and what would be right.
        what: String,
    },
    /// Text that is no specification.
    #[error("{file}:{line}: {what}")]
    Syntax {
        /// What the text is called.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong and what would be right.
        what: String,
    },
    /// A file that the specification names.
    #[error("{field}: {file}: {what}")]
    File {
        /// The field that names it.
        field: &'static str,
        /// Its path, with a line where one is at fault.
        file: String,
        /// What is wrong and what would be right.
        what: String,
    },
}

impl WorkloadError {
    /// An error of one field.
    pub fn field(field: &'static str, what: impl Into<String>) -> WorkloadError {
        WorkloadError::Field { field, what: what.into() }
    }

    /// An error of a file that a field names, on one of its lines where there is one to blame.
    pub fn file(
        field: &'static str,
        file: &Path,
        line: Option<usize>,
        what: impl Into<String>,
    ) -> WorkloadError {
        let mut name = file.display().to_string();
        if let Some(line) = line {
            name = format!("{name}:{line}");
        }
        WorkloadError::File { field, file: name, what: what.into() }
    }
}

/// Checks that a number lies within a range; NaN lies nowhere.
pub(crate) fn within(
    field: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
) -> Result<(), WorkloadError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(WorkloadError::field(field, format!("is {}, it must lie between {low} and {high}", plain(value))))
}
