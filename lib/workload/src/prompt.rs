//! What a prompt is made of: an ordered list of parts, each shared by some scope of requests.

use crate::{Length, WorkloadError};
use serde::{Deserialize, Serialize};

/// Who shares a part of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartScope {
    /// Every request: a template.
    Global,
    /// All requests of one key: its context.
    Key,
    /// This request: the user's turn.
    Request,
}

/// One part of the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Who shares it.
    pub scope: PartScope,
    /// Tells parts of one scope apart; the second and later ones need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it is: drawn once for `global`, once for each key, or for each request.
    pub tokens: Length,
}

impl Part {
    /// A part without a name.
    pub fn new(scope: PartScope, tokens: Length) -> Part {
        Part { scope, name: None, tokens }
    }
}

/// Checks a whole prompt.
///
/// # Errors
///
/// No parts, a bad length, or two parts that would be the same content.
pub fn check(prompt: &[Part]) -> Result<(), WorkloadError> {
    if prompt.is_empty() {
        return Err(WorkloadError::field("prompt", "has no parts; give at least one [[prompt]] table"));
    }
    for (index, part) in prompt.iter().enumerate() {
        part.tokens.check("prompt.tokens")?;
        if prompt[..index].iter().any(|other| other.scope == part.scope && other.name == part.name) {
            return Err(WorkloadError::field(
                "prompt.name",
                format!(
                    "two parts of scope {:?} are called {:?}; give the second a name of its own",
                    part.scope,
                    part.name.as_deref().unwrap_or("")
                ),
            ));
        }
        if part.name.as_deref().is_some_and(|name| name.is_empty() || name.contains(['/', ':'])) {
            return Err(WorkloadError::field("prompt.name", "must not be empty nor hold a slash or a colon"));
        }
    }
    Ok(())
}
