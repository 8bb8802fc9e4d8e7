//! Tokens by the scope of their content.

use cr_trace::Scope;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Scopes in the order of their letters, in which they are written.
const BY_LETTER: [Scope; 6] =
    [Scope::Answer, Scope::Block, Scope::Document, Scope::Global, Scope::Key, Scope::User];

/// Tokens of each scope. In JSON an object of letters and counts, without the scopes that have none.
///
/// Every finished request has one, so it holds nothing on the heap. Letters that are no scope are passed over when read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeTokens([u64; 6]);

impl ScopeTokens {
    /// The tokens of a scope.
    pub fn get(&self, scope: Scope) -> u64 {
        self.0[scope.index()]
    }

    /// Adds tokens to a scope; a sum beyond 64 bits stays at the largest number.
    pub fn add(&mut self, scope: Scope, tokens: u64) {
        let sum = &mut self.0[scope.index()];
        *sum = sum.saturating_add(tokens);
    }

    /// The scopes that have tokens, in the order of their letters.
    pub fn iter(&self) -> impl Iterator<Item = (Scope, u64)> + '_ {
        BY_LETTER.into_iter().map(|scope| (scope, self.get(scope))).filter(|(_, tokens)| *tokens > 0)
    }
}

/// Of tokens in the order of [`Scope::ALL`].
impl From<[u64; 6]> for ScopeTokens {
    fn from(tokens: [u64; 6]) -> ScopeTokens {
        ScopeTokens(tokens)
    }
}

impl FromIterator<(Scope, u64)> for ScopeTokens {
    fn from_iter<I: IntoIterator<Item = (Scope, u64)>>(pairs: I) -> ScopeTokens {
        let mut sums = ScopeTokens::default();
        pairs.into_iter().for_each(|(scope, tokens)| sums.add(scope, tokens));
        sums
    }
}

impl Serialize for ScopeTokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(scope, tokens)| (scope.letter(), tokens)))
    }
}

impl<'de> Deserialize<'de> for ScopeTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ScopeTokens, D::Error> {
        struct Letters;
        impl<'de> Visitor<'de> for Letters {
            type Value = ScopeTokens;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of scope letters and tokens")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScopeTokens, A::Error> {
                let mut counts = ScopeTokens::default();
                while let Some((name, tokens)) = map.next_entry::<compact_str::CompactString, u64>()? {
                    if let Some(scope) = scope(&name) {
                        counts.0[scope.index()] = tokens;
                    }
                }
                Ok(counts)
            }
        }
        deserializer.deserialize_map(Letters)
    }
}

/// The scope of a name of one letter.
pub(crate) fn scope(name: &str) -> Option<Scope> {
    match name.as_bytes() {
        [letter] => Scope::from_letter(*letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_in_order_and_strangers_are_passed_over() {
        let tokens: ScopeTokens =
            serde_json::from_str(r#"{"k":7,"x":9,"a":1,"kk":3,"g":0}"#).expect("is read");
        assert_eq!(tokens, [(Scope::Key, 7), (Scope::Answer, 1)].into_iter().collect());
        assert_eq!(serde_json::to_string(&tokens).expect("is written"), r#"{"a":1,"k":7}"#);
        assert!(BY_LETTER.map(Scope::letter).is_sorted());
        assert!(serde_json::from_str::<ScopeTokens>(r#"{"k":-1}"#).is_err());
    }
}
