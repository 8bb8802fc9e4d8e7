//! A prompt: its segments, and what everybody who serves it needs to know of them, computed once.

use crate::approach::wanted;
use crate::content::{Scope, Segment};
use crate::tokens::mix64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

/// The segments of a prompt, in order. Four fit without a heap allocation: a template, a key, a document and a turn.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    segments: SmallVec<[Segment; 4]>,
    outline: OnceLock<Box<Outline>>,
}

/// One segment as caches know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// A hash of its content and of all segments before it with their lengths: two prompts that have a part of this name in common
    /// share its leading tokens, as many as both have, and everything before it.
    pub name: u64,
    /// Its tokens.
    pub tokens: u32,
    /// Whose content it is, as the position in [`Scope::ALL`]; beyond those where the content id has no scope.
    scope: u8,
}

/// What is computed from a prompt. A suite serves the same prompts dozens of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    parts: SmallVec<[Part; 4]>,
    tokens: u64,
    history: u64,
    /// The first part that belongs to one request, by its place, and that request.
    first_owned: Option<(usize, u64)>,
    /// Some turn belongs to another request than that, or to none that can be told.
    owners_differ: bool,
    has_answers: bool,
}

/// The leading tokens that two prompts share, from their parts: as [`crate::content::shared_tokens`] tells from their segments.
pub fn shared_tokens(one: &[Part], other: &[Part]) -> u64 {
    let alike = one.iter().zip(other).take_while(|(a, b)| a.name == b.name);
    alike.map(|(a, b)| u64::from(a.tokens.min(b.tokens))).sum()
}

/// A hash of what comes after a part.
#[inline]
fn history_after(name: u64, tokens: u32) -> u64 {
    mix64(name ^ u64::from(tokens))
}

impl Outline {
    fn of(segments: &[Segment]) -> Outline {
        let mut outline = Outline {
            parts: SmallVec::with_capacity(segments.len()),
            tokens: 0,
            history: 0,
            first_owned: None,
            owners_differ: false,
            has_answers: false,
        };
        for (place, segment) in segments.iter().enumerate() {
            let (content, tokens) = (segment.content(), segment.tokens());
            let name = mix64(outline.history ^ content.hash64());
            let scope = content.scope();
            outline.parts.push(Part {
                name,
                tokens,
                scope: scope.map_or(u8::MAX, |scope| scope.index() as u8),
            });
            outline.history = history_after(name, tokens);
            outline.tokens += u64::from(tokens);
            outline.has_answers |= scope == Some(Scope::Answer);
            if matches!(scope, Some(Scope::User | Scope::Answer)) {
                let owner = content.request_number();
                if outline.first_owned.is_none() {
                    outline.first_owned = owner.map(|owner| (place, owner));
                }
                outline.owners_differ |=
                    owner.is_none() || outline.first_owned.map(|(_, first)| first) != owner;
            }
        }
        outline
    }

    /// The segments, in order.
    #[inline]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The number of tokens.
    #[inline]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// A hash of the whole prompt, which the answer goes on from.
    #[inline]
    pub fn history(&self) -> u64 {
        self.history
    }

    /// Whether it has the answer to some request.
    #[inline]
    pub fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// Whether it has, as the prompt of request `own`, what may be the turn or the answer of another one.
    #[inline]
    pub fn quotes_others(&self, own: u64) -> bool {
        self.has_answers || self.owners_differ || self.first_owned.is_some_and(|(_, owner)| owner != own)
    }

    /// The place of the first part that belongs to request `own` and to no other, if it quotes nobody.
    #[inline]
    pub fn first_of(&self, own: u64) -> Option<usize> {
        self.first_owned.filter(|&(_, owner)| owner == own).map(|(place, _)| place)
    }

    /// How many of the leading `tokens` tokens fall into each scope, in the order of [`Scope::ALL`].
    #[inline]
    pub fn tokens_by_scope(&self, tokens: u64) -> [u64; 6] {
        let (mut by_scope, mut left) = ([0; 6], tokens);
        for part in &self.parts {
            let here = left.min(u64::from(part.tokens));
            if let Some(sum) = by_scope.get_mut(usize::from(part.scope)) {
                *sum += here;
            }
            left -= here;
            if left == 0 {
                break;
            }
        }
        by_scope
    }
}

impl Prompt {
    /// No segments.
    pub fn new() -> Prompt {
        Prompt::default()
    }

    /// What is computed from it: the first time it is asked for, and after a change.
    #[inline]
    pub fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Box::new(Outline::of(&self.segments)))
    }

    /// A hint to the processor: the outline is wanted soon, if there is one. This looks at the prompt itself, which had better be at hand.
    #[inline]
    pub fn outline_approaches(&self) {
        if let Some(outline) = self.outline.get() {
            wanted(&outline.parts);
            wanted(&outline.tokens);
            wanted(&outline.has_answers);
        }
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: Segment) {
        self.outline.take();
        self.segments.push(segment);
    }

    /// Keeps the first `segments` segments.
    pub fn truncate(&mut self, segments: usize) {
        self.outline.take();
        self.segments.truncate(segments);
    }
}

impl Deref for Prompt {
    type Target = [Segment];
    #[inline]
    fn deref(&self) -> &[Segment] {
        &self.segments
    }
}

impl DerefMut for Prompt {
    fn deref_mut(&mut self) -> &mut [Segment] {
        self.outline.take();
        &mut self.segments
    }
}

impl Extend<Segment> for Prompt {
    fn extend<I: IntoIterator<Item = Segment>>(&mut self, segments: I) {
        self.outline.take();
        self.segments.extend(segments);
    }
}

impl FromIterator<Segment> for Prompt {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Prompt {
        Prompt { segments: segments.into_iter().collect(), outline: OnceLock::new() }
    }
}

impl From<Vec<Segment>> for Prompt {
    fn from(segments: Vec<Segment>) -> Prompt {
        Prompt { segments: segments.into(), outline: OnceLock::new() }
    }
}

impl<'a> IntoIterator for &'a Prompt {
    type Item = &'a Segment;
    type IntoIter = std::slice::Iter<'a, Segment>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.segments.iter()
    }
}

/// Equal where the segments are.
impl PartialEq for Prompt {
    fn eq(&self, other: &Prompt) -> bool {
        self.segments == other.segments
    }
}

impl Eq for Prompt {}

/// As the list of its segments.
impl Serialize for Prompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.segments.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Prompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Prompt, D::Error> {
        Ok(Prompt { segments: SmallVec::deserialize(deserializer)?, outline: OnceLock::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{self, ContentId, prompt_tokens};
    use proptest::prelude::*;

    fn prompts() -> impl Strategy<Value = Prompt> {
        let name = prop_oneof![
            "[gkdb]:[ab]",
            "[ua]:[0-3]",
            Just("u:3/b".to_owned()),
            Just("u:x".to_owned()),
            Just("z".to_owned())
        ];
        let segment = (name, 1u32..4).prop_map(|(name, tokens)| Segment(ContentId::new(name), tokens));
        proptest::collection::vec(segment, 0..6).prop_map(Prompt::from)
    }

    proptest! {
        /// Parts of one name share what their prompts share.
        #[test]
        fn names_tell_what_is_shared(one in prompts(), other in prompts()) {
            let (first, second) = (one.outline(), other.outline());
            let shared = shared_tokens(first.parts(), second.parts());
            prop_assert_eq!(shared, content::shared_tokens(&one, &other));
            prop_assert_eq!(first.history() == second.history(), one == other);
            prop_assert_eq!(first.tokens(), prompt_tokens(&one));
        }

        /// What a look at every segment says.
        #[test]
        fn it_knows_whom_it_quotes(prompt in prompts(), own in 0u64..4, tokens in 0u64..20) {
            let outline = prompt.outline();
            let scopes = || prompt.iter().map(|segment| segment.content().scope());
            prop_assert_eq!(outline.has_answers(), scopes().any(|scope| scope == Some(Scope::Answer)));
            let others = prompt.iter().any(|segment| match segment.content().scope() {
                Some(Scope::Answer) => true,
                Some(Scope::User) => segment.content().request_number() != Some(own),
                _ => false,
            });
            prop_assert_eq!(outline.quotes_others(own), others);
            let first = prompt.iter().position(|segment| segment.content().request_number() == Some(own));
            if !others {
                prop_assert_eq!(outline.first_of(own), first);
            }
            let mut by_scope = [0; 6];
            let each = prompt.iter().flat_map(|segment| (0..segment.tokens()).map(|_| segment.content().scope()));
            each.take(tokens as usize).flatten().for_each(|scope| by_scope[scope.index()] += 1);
            prop_assert_eq!(outline.tokens_by_scope(tokens), by_scope);
        }

        #[test]
        fn a_changed_prompt_is_looked_at_anew(mut prompt in prompts(), keep in 0usize..6) {
            let again = |prompt: &Prompt| prompt.iter().cloned().collect::<Prompt>().outline().clone();
            prompt.outline();
            prompt.push(Segment(ContentId::new("k:new"), 1));
            prop_assert_eq!(prompt.outline(), &again(&prompt));
            if let Some(last) = prompt.last_mut() {
                last.1 += 1;
            }
            prop_assert_eq!(prompt.outline(), &again(&prompt));
            prompt.extend([Segment(ContentId::new("u:1"), 2)]);
            prop_assert_eq!(prompt.outline(), &again(&prompt));
            prompt.truncate(keep);
            prop_assert_eq!(prompt.outline(), &again(&prompt));
        }
    }
}
