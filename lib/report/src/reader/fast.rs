//! The two kinds of line that make up nearly all of a stream, read as this project writes them.
//!
//! A line counts here only where its fields stand in the order and spelling of [`crate::events`], with no escapes and no
//! blanks. Anything else, right or wrong, is `None`, and `serde_json` has the word; the tests hold the two against each other.

use crate::events::{Finish, ScopeTokens, ShardState, Shards};
use compact_str::CompactString;
use cr_trace::{RequestId, ShardId};

/// A finish event in its usual form.
pub(super) fn finish(line: &str) -> Option<Finish> {
    let mut at = Cursor { rest: line.as_bytes() };
    let event = Finish {
        t_s: at.key(r#"{"event":"finish","t_s":"#)?.float()?,
        id: RequestId(at.key(r#","id":"#)?.whole()?),
        key: CompactString::new(at.key(r#","key":"#)?.text()?),
        tenant: CompactString::new(at.key(r#","tenant":"#)?.text()?),
        shard: at.key(r#","shard":"#)?.shard()?,
        admitted: at.key(r#","admitted":"#)?.flag()?,
        arrival_s: at.key(r#","arrival_s":"#)?.float()?,
        queue_s: at.key(r#","queue_s":"#)?.float()?,
        ttft_s: at.key(r#","ttft_s":"#)?.float()?,
        tpot_s: at.key(r#","tpot_s":"#)?.maybe_float()?,
        e2e_s: at.key(r#","e2e_s":"#)?.float()?,
        prompt_tokens: at.key(r#","prompt_tokens":"#)?.whole()?,
        cached_tokens: at.key(r#","cached_tokens":"#)?.whole()?,
        cached_by_scope: at.key(r#","cached_by_scope":"#)?.counts()?,
        output_tokens: at.key(r#","output_tokens":"#)?.whole()?,
        retries: u32::try_from(at.key(r#","retries":"#)?.whole()?).ok()?,
        preemptions: u32::try_from(at.key(r#","preemptions":"#)?.whole()?).ok()?,
        measured: match at.eats(r#","measured":"#) {
            true => at.flag()?,
            false => true,
        },
    };
    at.ends("}").then_some(event)
}

/// A snapshot in its usual form.
pub(super) fn shards(line: &str) -> Option<Shards> {
    let mut at = Cursor { rest: line.as_bytes() };
    let t_s = at.key(r#"{"event":"shards","t_s":"#)?.float()?;
    at.key(r#","shards":["#)?;
    // A state takes 250 bytes and more.
    let mut shards = Vec::with_capacity(at.rest.len() / 250 + 1);
    loop {
        shards.push(at.state()?);
        if !at.eats(",") {
            break;
        }
    }
    at.key("]")?;
    let window_start = match at.eats(r#","window_start":"#) {
        true => at.flag()?,
        false => false,
    };
    at.ends("}").then_some(Shards { t_s, shards, window_start })
}

/// What is left of a line.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Passes over exactly this.
    fn key(&mut self, text: &str) -> Option<&mut Self> {
        self.eats(text).then_some(self)
    }

    fn eats(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn ends(&self, text: &str) -> bool {
        self.rest == text.as_bytes()
    }

    /// The leading bytes up to the first that `stop` holds for.
    fn take(&mut self, stop: impl Fn(u8) -> bool) -> &'a [u8] {
        let at = self.rest.iter().position(|byte| stop(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    /// A whole number of at most 19 digits, which is below 2^64.
    fn whole(&mut self) -> Option<u64> {
        let digits = self.take(|byte| !byte.is_ascii_digit());
        let plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.len() <= 19;
        let ends = matches!(self.rest.first(), Some(b',' | b'}' | b']'));
        (plain && ends).then(|| digits.iter().fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0')))
    }

    fn shard(&mut self) -> Option<ShardId> {
        u32::try_from(self.whole()?).ok().map(ShardId)
    }

    /// Digits, a point, digits, perhaps an exponent: how both serde_json and this project write a number of seconds.
    fn float(&mut self) -> Option<f64> {
        let digits = self.take(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
        let leads = match digits {
            [b'0'] | [b'0', b'.' | b'e' | b'E', ..] => true,
            [first, ..] => matches!(first, b'1'..=b'9'),
            [] => false,
        };
        let point = digits.iter().position(|byte| *byte == b'.');
        let pointed = point.is_none_or(|at| digits.get(at + 1).is_some_and(u8::is_ascii_digit));
        let exact = leads && pointed;
        exact.then(|| {
            std::str::from_utf8(digits).ok()?.parse::<f64>().ok().filter(|value| value.is_finite())
        })?
    }

    fn maybe_float(&mut self) -> Option<Option<f64>> {
        if self.eats("null") { Some(None) } else { self.float().map(Some) }
    }

    fn flag(&mut self) -> Option<bool> {
        if self.eats("true") {
            Some(true)
        } else if self.eats("false") {
            Some(false)
        } else {
            None
        }
    }

    /// A string without escapes; the line is known to be UTF-8.
    fn text(&mut self) -> Option<&'a str> {
        self.key("\"")?;
        let text = self.take(|byte| matches!(byte, b'"' | b'\\') || byte < b' ');
        self.key("\"")?;
        std::str::from_utf8(text).ok()
    }

    /// An object of letters and whole numbers, each letter once.
    fn counts(&mut self) -> Option<ScopeTokens> {
        let mut counts = ScopeTokens::default();
        self.key("{")?;
        if self.eats("}") {
            return Some(counts);
        }
        loop {
            let scope = crate::events::scope(self.text()?)?;
            let tokens = self.key(":")?.whole()?;
            // A letter that is there twice is not how this project writes.
            if counts.get(scope) > 0 {
                return None;
            }
            counts.add(scope, tokens);
            if !self.eats(",") {
                break;
            }
        }
        self.key("}")?;
        Some(counts)
    }

    fn state(&mut self) -> Option<ShardState> {
        let state = ShardState {
            shard: self.key(r#"{"shard":"#)?.shard()?,
            up: self.key(r#","up":"#)?.flag()?,
            queued: self.key(r#","queued":"#)?.whole()?,
            running: self.key(r#","running":"#)?.whole()?,
            kv_used_blocks: self.key(r#","kv_used_blocks":"#)?.whole()?,
            kv_total_blocks: self.key(r#","kv_total_blocks":"#)?.whole()?,
            kv_protected_blocks: self.key(r#","kv_protected_blocks":"#)?.whole()?,
            busy_s: self.key(r#","busy_s":"#)?.float()?,
            requests: self.key(r#","requests":"#)?.whole()?,
            prompt_tokens: self.key(r#","prompt_tokens":"#)?.whole()?,
            cached_tokens: self.key(r#","cached_tokens":"#)?.whole()?,
            computed_tokens: self.key(r#","computed_tokens":"#)?.whole()?,
            output_tokens: self.key(r#","output_tokens":"#)?.whole()?,
            evicted_blocks: self.key(r#","evicted_blocks":"#)?.whole()?,
            evicted_admitted_blocks: self.key(r#","evicted_admitted_blocks":"#)?.whole()?,
            preemptions: self.key(r#","preemptions":"#)?.whole()?,
            recomputed_tokens: match self.eats(r#","recomputed_tokens":"#) {
                true => self.whole()?,
                false => 0,
            },
        };
        self.key("}")?;
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use cr_trace::Scope;
    use rand::{Rng, RngExt};
    use serde::de::DeserializeOwned;

    fn sample(rng: &mut impl Rng) -> (Event, Event) {
        let mut time =
            || (rng.random::<u32>() as f64 / 1e6) * 10f64.powi((rng.random::<u8>() % 12) as i32 - 8);
        let finish = Finish {
            t_s: time(),
            id: RequestId(7),
            key: "k17".into(),
            tenant: "ünï".into(),
            shard: ShardId(3),
            admitted: true,
            arrival_s: time(),
            queue_s: time(),
            ttft_s: time(),
            tpot_s: None,
            e2e_s: time(),
            prompt_tokens: 1126,
            cached_tokens: 1024,
            cached_by_scope: [(Scope::Global, 256), (Scope::Key, 768)].into_iter().collect(),
            output_tokens: 24,
            retries: 0,
            preemptions: 1,
            measured: false,
        };
        let state = ShardState {
            shard: ShardId(0),
            up: true,
            queued: 2,
            running: 5,
            kv_used_blocks: 900,
            kv_total_blocks: 4096,
            kv_protected_blocks: 0,
            busy_s: time(),
            requests: 12,
            prompt_tokens: 13000,
            cached_tokens: 9000,
            computed_tokens: 4000,
            output_tokens: 700,
            evicted_blocks: 0,
            evicted_admitted_blocks: 0,
            preemptions: 0,
            recomputed_tokens: 9,
        };
        let other = ShardState { shard: ShardId(1), up: false, busy_s: time(), ..state.clone() };
        let shards = Shards { t_s: time(), shards: vec![state, other], window_start: true };
        (Event::Finish(finish), Event::Shards(shards))
    }

    /// The fast reader says nothing, or what serde_json says.
    fn agrees<T: DeserializeOwned + PartialEq + std::fmt::Debug>(
        line: &str,
        fast: fn(&str) -> Option<T>,
    ) -> bool {
        let read = fast(line);
        if let Some(read) = &read {
            let honest = serde_json::from_str::<T>(line);
            assert_eq!(honest.as_ref().ok(), Some(read), "{line}");
        }
        read.is_some()
    }

    #[test]
    fn what_this_project_writes_is_read_fast_and_the_same() {
        let mut rng = cr_trace::stream(1, "reader-fast");
        for _ in 0..2000 {
            let (one, snapshot) = sample(&mut rng);
            let line = serde_json::to_string(&one).expect("is written");
            assert!(agrees(&line, finish), "{line}");
            let line = serde_json::to_string(&snapshot).expect("is written");
            assert!(agrees(&line, shards), "{line}");
        }
    }

    #[test]
    fn broken_and_odd_lines_are_never_read_otherwise() {
        let mut rng = cr_trace::stream(2, "reader-fast");
        let odd = br#"0123456789.eE+-,:"{}[]\ntfulas "#;
        for _ in 0..20_000 {
            let (one, snapshot) = sample(&mut rng);
            for (event, is_finish) in [(one, true), (snapshot, false)] {
                let mut line = serde_json::to_vec(&event).expect("is written");
                let at = rng.random_range(0..line.len());
                match rng.random_range(0..3) {
                    0 => line[at] = odd[rng.random_range(0..odd.len())],
                    1 => line.insert(at, odd[rng.random_range(0..odd.len())]),
                    _ => drop(line.remove(at)),
                }
                let Ok(line) = String::from_utf8(line) else { continue };
                match is_finish {
                    true => agrees(&line, finish),
                    false => agrees(&line, shards),
                };
            }
        }
    }
}
