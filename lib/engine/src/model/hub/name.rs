//! What a model argument says of a hub model.

use std::fmt::{Display, Formatter, Result};
use std::path::Path;

/// `org/name`, and which GGUF file of it: `org/name:FILE.gguf`, or `org/name:Q4_K_M` for the file of that type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubName {
    /// `org/name`.
    pub(super) repository: String,
    /// The file, or the type of its weights.
    pub(super) file: Option<String>,
}

impl HubName {
    /// The hub name that a model argument is, if it is one: what exists here, or ends in `.gguf` or `.toml` without a
    /// repository before it, is a path.
    pub fn of(spec: &str) -> Option<HubName> {
        let (repository, file) = match spec.split_once(':') {
            Some((repository, file)) => (repository, Some(file)),
            None => (spec, None),
        };
        let (org, name) = repository.split_once('/')?;
        let is_file = |name: &str| [".gguf", ".toml"].iter().any(|end| name.to_lowercase().ends_with(end));
        let plain = super::is_plain(org) && super::is_plain(name) && file.is_none_or(super::is_plain);
        let is_name = plain && !is_file(name) && !Path::new(spec).exists();
        is_name.then(|| HubName { repository: repository.into(), file: file.map(Into::into) })
    }
}

impl Display for HubName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.file {
            Some(file) => write!(f, "{}:{file}", self.repository),
            None => f.write_str(&self.repository),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        for (good, file) in [
            ("HuggingFaceTB/SmolLM2-135M-Instruct", None),
            ("Qwen/Qwen2.5-0.5B", None),
            ("Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m", Some("q4_k_m")),
            ("a/b:c-Q8_0.gguf", Some("c-Q8_0.gguf")),
        ] {
            let name = HubName::of(good).expect(good);
            assert_eq!((name.file.as_deref(), name.to_string().as_str()), (file, good));
        }
        for bad in [
            "llama-8m",
            "./x",
            "../x",
            "/x/y",
            "a/b/c",
            "a/",
            "/a",
            "a b/c",
            "models/x.gguf",
            "models/x.toml",
            "a/b:",
            "a/b:../c",
            "src/model",
        ] {
            assert_eq!(HubName::of(bad), None, "{bad}");
        }
    }
}
