//! What a prompt is made of: an ordered list of parts, each shared by some scope of requests.

use crate::error::within;
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
    /// Requests of one key that retrieve the same document of the key's pool.
    Pool,
    /// The earlier turns of the thread and their answers.
    Thread,
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
    /// `pool`: documents of each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<u32>,
    /// `pool`: the probability that a request's document differs from that of the key's request before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_probability: Option<f64>,
    /// How long it is: drawn once for `global`, once for each key or document, or for each request. `thread` has none:
    /// it is as long as what it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Length>,
}

impl Part {
    /// A part without a name.
    pub fn new(scope: PartScope, tokens: Length) -> Part {
        Part { scope, name: None, documents: None, break_probability: None, tokens: Some(tokens) }
    }

    /// A pool of documents of each key.
    pub fn pool(documents: u32, break_probability: f64, tokens: Length) -> Part {
        Part {
            documents: Some(documents),
            break_probability: Some(break_probability),
            ..Part::new(PartScope::Pool, tokens)
        }
    }

    /// The earlier turns and answers.
    pub fn thread() -> Part {
        Part { scope: PartScope::Thread, name: None, documents: None, break_probability: None, tokens: None }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let error = |field, what: &str| Err(WorkloadError::field(field, what));
        match (&self.tokens, self.scope) {
            (Some(_), PartScope::Thread) => {
                return error(
                    "prompt.tokens",
                    "does not belong to the scope thread, which repeats what was said",
                );
            }
            (None, PartScope::Thread) => {}
            (None, _) => return error("prompt.tokens", "is missing"),
            (Some(tokens), _) => tokens.check("prompt.tokens")?,
        }
        match (self.scope, self.documents, self.break_probability) {
            (PartScope::Pool, None, _) => return error("prompt.documents", "is missing; a pool needs it"),
            (PartScope::Pool, _, None) => {
                return error("prompt.break_probability", "is missing; a pool needs it");
            }
            (PartScope::Pool, Some(0), _) => return error("prompt.documents", "0 documents; at least 1"),
            (PartScope::Pool, Some(documents), Some(probability)) => {
                within("prompt.break_probability", probability, 0.0..=1.0)?;
                if documents == 1 && probability > 0.0 {
                    return error(
                        "prompt.documents",
                        "a pool of 1 document cannot break; break_probability must be 0",
                    );
                }
            }
            (_, None, None) => {}
            _ => return error("prompt.documents", "and break_probability belong to the scope pool only"),
        }
        if self.scope == PartScope::Thread && self.name.is_some() {
            return error("prompt.name", "does not belong to the scope thread");
        }
        if self.name.as_deref().is_some_and(|name| name.is_empty() || name.contains(['/', ':'])) {
            return error("prompt.name", "must not be empty nor hold a slash or a colon");
        }
        Ok(())
    }
}

/// Checks a whole prompt.
///
/// # Errors
///
/// No parts that every request has, a bad part, or two parts that would be the same content.
pub fn check(prompt: &[Part]) -> Result<(), WorkloadError> {
    if prompt.iter().all(|part| part.scope == PartScope::Thread) {
        return Err(WorkloadError::field(
            "prompt",
            "has no parts; give at least one [[prompt]] table with tokens",
        ));
    }
    for (index, part) in prompt.iter().enumerate() {
        part.check()?;
        if prompt[..index].iter().any(|other| other.scope == part.scope && other.name == part.name) {
            let name =
                part.name.as_deref().map_or("have no name".into(), |name| format!("are called {name:?}"));
            return Err(WorkloadError::field(
                "prompt.name",
                format!("two parts of one scope {name}; give the second a name of its own"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_prompts_are_named() {
        let user = || Part::new(PartScope::Request, Length::Constant(9));
        let cases = [
            (vec![], "prompt: has no parts; give at least one [[prompt]] table with tokens"),
            (vec![Part::thread()], "prompt: has no parts; give at least one [[prompt]] table with tokens"),
            (
                vec![user(), user()],
                "prompt.name: two parts of one scope have no name; give the second a name of its own",
            ),
            (vec![Part { tokens: None, ..user() }], "prompt.tokens: is missing"),
            (
                vec![Part { tokens: Some(Length::Constant(1)), ..Part::thread() }, user()],
                "prompt.tokens: does not belong to the scope thread, which repeats what was said",
            ),
            (
                vec![Part { documents: Some(3), ..user() }],
                "prompt.documents: and break_probability belong to the scope pool only",
            ),
            (
                vec![Part::pool(1, 0.5, Length::Constant(1))],
                "prompt.documents: a pool of 1 document cannot break; break_probability must be 0",
            ),
            (
                vec![Part::pool(3, 1.5, Length::Constant(1))],
                "prompt.break_probability: is 1.5, it must lie between 0 and 1",
            ),
            (
                vec![Part { name: Some("a/b".into()), ..user() }],
                "prompt.name: must not be empty nor hold a slash or a colon",
            ),
        ];
        for (prompt, expected) in cases {
            assert_eq!(check(&prompt).expect_err("is refused").to_string(), expected);
        }
        let named = Part { name: Some("b".into()), ..user() };
        assert!(check(&[user(), named, Part::thread(), Part::pool(1, 0.0, Length::Constant(1))]).is_ok());
    }
}
