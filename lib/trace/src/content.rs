//! What a prompt is made of.
//!
//! A prompt is an ordered list of segments, each a number of tokens of some named content. Two prompts share the
//! tokens of their common leading run of equal (content id, offset within the segment); a shortened segment still
//! shares what it has in common with the longer one.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// The name of a piece of content, such as `k:k17`. Its first letter is its [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentId(pub CompactString);

impl ContentId {
    /// A content id from its text form. Use [`ContentId::is_valid`] on text from outside.
    pub fn new(text: impl AsRef<str>) -> ContentId {
        ContentId(CompactString::new(text))
    }

    /// The template that every request shares.
    pub fn global(name: &str) -> ContentId {
        ContentId(compact_str::format_compact!("g:{name}"))
    }

    /// The context of one key.
    pub fn key(key: &str) -> ContentId {
        ContentId(compact_str::format_compact!("k:{key}"))
    }

    /// The user's turn of one request.
    pub fn user(request: crate::RequestId) -> ContentId {
        ContentId::numbered(Scope::User, request.0)
    }

    /// The answer to one request: the content of its decoded tokens.
    pub fn answer(request: crate::RequestId) -> ContentId {
        ContentId::numbered(Scope::Answer, request.0)
    }

    /// One imported hash block.
    pub fn block(hash_id: u64) -> ContentId {
        ContentId::numbered(Scope::Block, hash_id)
    }

    /// `x:123`, without going through `fmt`: imports make dozens of these a request.
    fn numbered(scope: Scope, number: u64) -> ContentId {
        let mut text = CompactString::const_new(scope.prefix());
        text.push_str(itoa::Buffer::new().format(number));
        ContentId(text)
    }

    /// Whether the text has the form `x:…` with a known scope letter and a name.
    pub fn is_valid(text: &str) -> bool {
        let bytes = text.as_bytes();
        bytes.len() > 2 && bytes[1] == b':' && Scope::from_letter(bytes[0]).is_some()
    }

    /// The scope named by the first letter; `None` for text that is no valid id.
    pub fn scope(&self) -> Option<Scope> {
        self.0.as_bytes().first().copied().and_then(Scope::from_letter)
    }

    /// The number of the request whose turn or answer this is, as in `u:17` or `u:17/question`; `None` for what belongs to no
    /// single request.
    #[inline]
    pub fn request_number(&self) -> Option<u64> {
        let [b'u' | b'a', b':', digits @ ..] = self.0.as_bytes() else { return None };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || !matches!(digits.get(count), None | Some(b'/')) {
            return None;
        }
        digits[..count]
            .iter()
            .try_fold(0u64, |number, &digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
    }

    /// A 64-bit hash (xxh3) of the text: what block hashes and token values are computed from.
    pub fn hash64(&self) -> u64 {
        XxHash3_64::oneshot(self.0.as_bytes())
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who shares a piece of content: the first letter of a [`ContentId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `g`: every request of the workload.
    Global,
    /// `k`: all requests of one key.
    Key,
    /// `d`: a document of a pool.
    Document,
    /// `u`: the user's turn of one request.
    User,
    /// `a`: the answer to one request.
    Answer,
    /// `b`: an imported hash block, whose scope the source does not tell.
    Block,
}

impl Scope {
    /// Every scope, in the order of the contract.
    pub const ALL: [Scope; 6] =
        [Scope::Global, Scope::Key, Scope::Document, Scope::User, Scope::Answer, Scope::Block];

    /// The scope of a letter of a content id.
    pub fn from_letter(letter: u8) -> Option<Scope> {
        Some(match letter {
            b'g' => Scope::Global,
            b'k' => Scope::Key,
            b'd' => Scope::Document,
            b'u' => Scope::User,
            b'a' => Scope::Answer,
            b'b' => Scope::Block,
            _ => return None,
        })
    }

    /// The letter of a content id, as text.
    pub fn letter(self) -> &'static str {
        match self {
            Scope::Global => "g",
            Scope::Key => "k",
            Scope::Document => "d",
            Scope::User => "u",
            Scope::Answer => "a",
            Scope::Block => "b",
        }
    }

    /// The letter and the colon after it.
    const fn prefix(self) -> &'static str {
        match self {
            Scope::Global => "g:",
            Scope::Key => "k:",
            Scope::Document => "d:",
            Scope::User => "u:",
            Scope::Answer => "a:",
            Scope::Block => "b:",
        }
    }

    /// The position in [`Scope::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A run of tokens of one content, from its offset 0. In JSON: `["k:k17",180]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment(
    /// Whose tokens these are.
    pub ContentId,
    /// How many, at least one.
    pub u32,
);

impl Segment {
    /// The content.
    pub fn content(&self) -> &ContentId {
        &self.0
    }

    /// The number of tokens.
    pub fn tokens(&self) -> u32 {
        self.1
    }
}

/// The number of tokens of a prompt.
pub fn prompt_tokens(prompt: &[Segment]) -> u64 {
    prompt.iter().map(|segment| u64::from(segment.tokens())).sum()
}

/// How many leading tokens two prompts share, ignoring block borders.
pub fn shared_tokens(a: &[Segment], b: &[Segment]) -> u64 {
    let mut shared = 0;
    for (x, y) in a.iter().zip(b) {
        if x.content() != y.content() {
            break;
        }
        shared += u64::from(x.tokens().min(y.tokens()));
        if x.tokens() != y.tokens() {
            break;
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(parts: &[(&str, u32)]) -> Vec<Segment> {
        parts.iter().map(|&(id, tokens)| Segment(ContentId::new(id), tokens)).collect()
    }

    #[test]
    fn ids_carry_their_scope() {
        for scope in Scope::ALL {
            let id = ContentId::new(format!("{}:x", scope.letter()));
            assert_eq!(
                ContentId::numbered(scope, u64::MAX).as_str(),
                format!("{}:{}", scope.letter(), u64::MAX)
            );
            assert_eq!(id.scope(), Some(scope));
            assert!(ContentId::is_valid(id.as_str()));
        }
        for bad in ["", "g", "g:", "z:1", "k17", ":x", "gg:x"] {
            assert!(!ContentId::is_valid(bad), "{bad}");
        }
    }

    #[test]
    fn numbered_ids_read_as_they_should() {
        let request = crate::RequestId(u64::MAX);
        assert_eq!(ContentId::user(request).as_str(), "u:18446744073709551615");
        assert_eq!(ContentId::answer(crate::RequestId(0)).as_str(), "a:0");
        assert_eq!(ContentId::block(17).as_str(), "b:17");
    }

    #[test]
    fn a_shortened_segment_shares_its_common_part() {
        let a = prompt(&[("g:t", 32), ("k:1", 16), ("u:0", 4)]);
        let b = prompt(&[("g:t", 32), ("k:1", 10), ("u:1", 4)]);
        assert_eq!(shared_tokens(&a, &b), 42);
        assert_eq!(shared_tokens(&a, &a), 52);
        assert_eq!(shared_tokens(&a, &prompt(&[("k:1", 16)])), 0);
    }

    #[test]
    fn a_segment_is_a_pair_in_json() {
        let segment: Segment = serde_json::from_str(r#"["k:k17",180]"#).expect("parses");
        assert_eq!(segment, Segment(ContentId::key("k17"), 180));
        assert_eq!(serde_json::to_string(&segment).expect("serialises"), r#"["k:k17",180]"#);
    }
}
