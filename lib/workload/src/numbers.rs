//! Files of one number a line, which distributions are resampled from.

use crate::WorkloadError;
use std::path::Path;

/// So many numbers are read at most; more would only cost memory.
const MAX_NUMBERS: usize = 10_000_000;

/// Reads the numbers of a file: one a line, blank lines and lines that begin with `#` left out.
///
/// # Errors
///
/// A file that cannot be read, has no number, too many, or one that `accept` turns down (it says why).
pub(crate) fn read(
    field: &'static str,
    path: &Path,
    accept: impl Fn(f64) -> Result<(), String>,
) -> Result<Vec<f64>, WorkloadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| WorkloadError::file(field, path, None, format!("cannot be read: {error}")))?;
    let mut numbers = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = match line.parse::<f64>() {
            Ok(number) => match accept(number) {
                Ok(()) => {
                    numbers.push(number);
                    None
                }
                Err(why) => Some(why),
            },
            Err(_) => Some(format!("{line:?} is no number; the file has one a line")),
        };
        if let Some(what) = fault {
            return Err(WorkloadError::file(field, path, Some(index + 1), what));
        }
        if numbers.len() > MAX_NUMBERS {
            return Err(WorkloadError::file(field, path, None, format!("more than {MAX_NUMBERS} numbers")));
        }
    }
    if numbers.is_empty() {
        return Err(WorkloadError::file(field, path, None, "has no numbers; one a line is wanted"));
    }
    Ok(numbers)
}
