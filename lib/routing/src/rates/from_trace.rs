//! Rates from a trace: count / (last t − first t), keys in order of first appearance.

use super::KeyRates;
use cr_trace::prompt::{Part, shared_tokens};
use cr_trace::{Key, Request, TraceDigest};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};
use smallvec::SmallVec;

/// Counts requests and what they share, key by key. Memory grows with the keys, not with the requests.
#[derive(Clone, Debug, Default)]
pub struct TraceRates {
    seen: IndexMap<Key, Seen, FxBuildHasher>,
    span_s: Option<(f64, f64)>,
    digest: TraceDigest,
}

#[derive(Clone, Debug)]
struct Seen {
    count: u64,
    last_prompt: SmallVec<[Part; 4]>,
    /// Σ over consecutive pairs of the leading tokens that both share.
    shared_tokens: u64,
    /// Σ of the prompts' tokens.
    prompt_tokens: u64,
}

impl Seen {
    /// The mean prompt, and the mean of what consecutive ones share, rounded; the latter is 0 for a key seen once.
    fn tokens(&self) -> (u64, u64) {
        let pairs = (self.count - 1).max(1);
        let prompt = (self.prompt_tokens + self.count / 2) / self.count;
        (prompt, (self.shared_tokens + pairs / 2) / pairs)
    }
}

/// A trace that has no rates.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoSpan {
    /// Nothing to count.
    #[error("there are no requests, so there are no rates")]
    Empty,
    /// A count over no time is no rate.
    #[error(
        "all {requests} requests arrive at t_s = {at_s}, so no rate can be told; plan from a longer trace, or give key,rate lines"
    )]
    Instant {
        /// How many.
        requests: u64,
        /// When.
        at_s: f64,
    },
}

impl TraceRates {
    /// Counts one request.
    pub fn record(&mut self, request: &Request) {
        self.digest.observe(request);
        let outline = request.prompt.outline();
        let (prompt_tokens, parts) = (outline.tokens(), outline.parts());
        let (first, last) = self.span_s.unwrap_or((request.t_s, request.t_s));
        self.span_s = Some((first.min(request.t_s), last.max(request.t_s)));
        match self.seen.get_mut(&request.key) {
            Some(seen) => {
                seen.count += 1;
                seen.prompt_tokens += prompt_tokens;
                seen.shared_tokens += shared_tokens(&seen.last_prompt, parts);
                seen.last_prompt.clear();
                seen.last_prompt.extend_from_slice(parts);
            }
            None => {
                let last_prompt = parts.into();
                let seen = Seen { count: 1, last_prompt, shared_tokens: 0, prompt_tokens };
                self.seen.insert(request.key.clone(), seen);
            }
        }
    }

    /// Adds to rates that were estimated elsewhere what is known here of prompts and prefixes: nothing (0) of a key not seen.
    pub fn describe(&self, rates: &mut KeyRates) {
        let known = |key: &Key| self.seen.get(key).map_or((0, 0), Seen::tokens);
        let (prompts, prefixes) = rates.keys.iter().map(known).unzip();
        (rates.prompt_tokens, rates.prefix_tokens) = (Some(prompts), Some(prefixes));
    }

    /// Forgets the keys that these rates do not name, so that memory stays that of the rates.
    pub fn keep_only(&mut self, rates: &KeyRates) {
        let named: FxHashSet<&Key> = rates.keys.iter().collect();
        self.seen.retain(|key, _| named.contains(key));
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.digest.requests
    }

    /// The rates in requests per second, each key's mean prompt, and its prefix: the mean over consecutive pairs of its requests of
    /// the leading tokens that both share, rounded; 0 for a key seen once.
    ///
    /// # Errors
    /// No requests, or all at one instant.
    pub fn finish(self) -> Result<KeyRates, NoSpan> {
        let (first_s, last_s) = self.span_s.ok_or(NoSpan::Empty)?;
        self.finish_over(last_s - first_s)
    }

    /// The same over `span_s` seconds, of which the requests need not fill all.
    ///
    /// # Errors
    /// As [`TraceRates::finish`].
    pub fn finish_over(self, span_s: f64) -> Result<KeyRates, NoSpan> {
        let (first_s, _) = self.span_s.ok_or(NoSpan::Empty)?;
        // Two instants so close that a count over them overflows are one instant as well.
        let requests = self.requests();
        if !(requests as f64 / span_s).is_finite() {
            return Err(NoSpan::Instant { requests, at_s: first_s });
        }
        let mut rates = KeyRates::new(true);
        let mut prompts = Vec::with_capacity(self.seen.len());
        for (key, seen) in self.seen {
            let (prompt, prefix) = seen.tokens();
            prompts.push(prompt);
            rates.push(key, seen.count as f64 / span_s, prefix);
        }
        rates.prompt_tokens = Some(prompts);
        rates.source = Some(self.digest);
        Ok(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::{ContentId, RequestId, Segment};

    fn request(id: u64, t_s: f64, key: &str, own_tokens: u32) -> Request {
        Request {
            id: RequestId(id),
            t_s,
            key: Key::new(key),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: [
                Segment(ContentId::global("t"), 32),
                Segment(ContentId::key(key), own_tokens),
                Segment(ContentId::user(RequestId(id)), 9),
            ]
            .into_iter()
            .collect(),
            output_tokens: 1,
        }
    }

    #[test]
    fn rates_are_counts_over_the_span_in_order_of_appearance() {
        let mut counts = TraceRates::default();
        for (id, (t_s, key, tokens)) in
            [(1.0, "b", 16), (1.5, "a", 16), (2.0, "b", 8), (3.0, "b", 8), (5.0, "c", 16)]
                .into_iter()
                .enumerate()
        {
            counts.record(&request(id as u64, t_s, key, tokens));
        }
        let rates = counts.finish().expect("has a span");
        assert_eq!(rates.keys(), ["b", "a", "c"]);
        assert_eq!(rates.rates(), [3.0 / 4.0, 0.25, 0.25]);
        // Both pairs of b share the template and the shorter context, which ends where the other goes on.
        assert_eq!(rates.prefix_tokens(), Some([40, 0, 0].as_slice()));
        assert_eq!(rates.prompt_tokens(), Some([52, 57, 57].as_slice()));
    }

    #[test]
    fn rates_from_elsewhere_are_described() {
        let mut counts = TraceRates::default();
        (0..3).for_each(|id| counts.record(&request(id, 1.0, "a", 16)));
        counts.record(&request(9, 1.0, "b", 16));
        let mut rates: KeyRates = [(Key::new("x"), 1.0), (Key::new("a"), 2.0)].into_iter().collect();
        counts.describe(&mut rates);
        assert_eq!(rates.prefix_tokens(), Some([0, 48].as_slice()));
        assert_eq!(rates.prompt_tokens(), Some([0, 57].as_slice()));
        counts.keep_only(&rates);
        assert_eq!(counts.seen.len(), 1);
    }

    #[test]
    fn a_single_instant_has_no_rate() {
        assert_eq!(TraceRates::default().finish(), Err(NoSpan::Empty));
        let mut counts = TraceRates::default();
        counts.record(&request(0, 2.5, "a", 1));
        counts.record(&request(1, 2.5, "b", 1));
        let error = counts.finish().expect_err("has no span").to_string();
        assert!(error.starts_with("all 2 requests arrive at t_s = 2.5, so no rate can be told"), "{error}");
    }
}
