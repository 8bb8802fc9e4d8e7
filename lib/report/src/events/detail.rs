//! What a failed request is told with.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Words, with numbers. Most failures of an overloaded fleet are late requests that nobody reads about, so theirs are put into words
/// only where somebody does.
#[derive(Clone, Debug)]
pub enum Detail {
    /// In words.
    Text(String),
    /// It was not finished so many seconds after its arrival.
    NotFinishedAfter(f64),
}

impl Default for Detail {
    fn default() -> Detail {
        Detail::Text(String::new())
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Detail {
        Detail::Text(text)
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Detail {
        Detail::Text(text.into())
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detail::Text(text) => f.write_str(text),
            Detail::NotFinishedAfter(seconds) => write!(f, "not finished {seconds} s after its arrival"),
        }
    }
}

/// Equal where they read alike.
impl PartialEq for Detail {
    fn eq(&self, other: &Detail) -> bool {
        match (self, other) {
            (Detail::Text(one), Detail::Text(other)) => one == other,
            _ => self.to_string() == other.to_string(),
        }
    }
}

impl Serialize for Detail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Detail, D::Error> {
        String::deserialize(deserializer).map(Detail::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ones_read_back_as_what_was_written() {
        let late = Detail::NotFinishedAfter(30.25);
        let text = serde_json::to_string(&late).expect("is written");
        assert_eq!(text, r#""not finished 30.25 s after its arrival""#);
        let read: Detail = serde_json::from_str(&text).expect("is read");
        assert!(matches!(read, Detail::Text(_)));
        assert_eq!((&read, &late), (&late, &read));
        assert_ne!(read, Detail::NotFinishedAfter(30.5));
    }
}
