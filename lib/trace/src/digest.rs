//! Knowing a trace again.

use crate::Request;
use serde::{Deserialize, Serialize};
use std::fmt;
use twox_hash::XxHash3_64;

/// A trace, or the beginning of one: how many requests, and a running hash of their ids, keys and times.
///
/// Since the hash runs, whoever reads a longer trace can tell that it began with this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDigest {
    /// Requests so far.
    pub requests: u64,
    /// The hash so far.
    pub digest: Digest,
}

/// A hash that JSON carries as sixteen hexadecimal digits: as a number it would not survive every reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        match u64::from_str_radix(&text, 16) {
            Ok(value) if text.len() == 16 => Ok(Digest(value)),
            _ => Err(format!("{text:?} is no digest of 16 hexadecimal digits")),
        }
    }
}

impl TraceDigest {
    /// Takes in one request.
    pub fn observe(&mut self, request: &Request) {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&request.id.0.to_le_bytes());
        head[8..].copy_from_slice(&request.t_s.to_bits().to_le_bytes());
        let seed = XxHash3_64::oneshot_with_seed(self.digest.0, &head);
        self.digest = Digest(XxHash3_64::oneshot_with_seed(seed, request.key.as_bytes()));
        self.requests += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(lines: &[&str]) -> TraceDigest {
        let mut digest = TraceDigest::default();
        for line in lines {
            digest.observe(&serde_json::from_str(line).expect("is a request"));
        }
        digest
    }

    #[test]
    fn a_trace_is_known_again_and_another_is_not() {
        let a = r#"{"id":0,"t_s":0.5,"key":"a","prompt":[["k:a",4]],"output_tokens":1}"#;
        let b = r#"{"id":1,"t_s":0.5,"key":"b","prompt":[["k:b",4]],"output_tokens":1}"#;
        assert_eq!(digest(&[a, b]), digest(&[a, b]));
        assert_ne!(digest(&[a, b]).digest, digest(&[b, a]).digest);
        assert_ne!(digest(&[a]).digest, digest(&[&a.replace("0.5", "0.6")]).digest);
        let text = serde_json::to_string(&digest(&[a, b])).expect("is JSON");
        assert_eq!(serde_json::from_str::<TraceDigest>(&text).expect("reads"), digest(&[a, b]));
        assert!(serde_json::from_str::<TraceDigest>(r#"{"requests":1,"digest":"12"}"#).is_err());
    }
}
