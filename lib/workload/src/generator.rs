//! From a specification to requests.

use crate::arrivals::ArrivalClock;
use crate::popularity::KeyPicker;
use crate::prompt::{Part, PartScope};
use crate::{Spec, WorkloadError};
use compact_str::{CompactString, format_compact};
use cr_trace::{ContentId, Key, Prompt, Request, RequestId, Segment, Stream, stream};

/// The requests of a specification, in order of arrival. Memory depends on the number of keys, not of requests.
#[derive(Clone, Debug)]
pub struct Generator {
    spec: Spec,
    clock: ArrivalClock,
    keys: KeyPicker,
    parts: Vec<PartState>,
    outputs: Stream,
    next_id: u64,
}

/// What a part of the prompt carries from request to request.
#[derive(Clone, Debug)]
struct PartState {
    part: Part,
    /// The content of a global part.
    global: Option<Segment>,
    /// The length of a key's part, by rank of the key; empty where the length is constant.
    by_key: Vec<u32>,
    rng: Stream,
}

impl PartState {
    fn new(part: &Part, keys: u64, seed: u64) -> PartState {
        let purpose = match part.scope {
            PartScope::Global => "global-tokens",
            PartScope::Key => "key-tokens",
            PartScope::Request => "user-tokens",
        };
        let mut rng =
            stream(seed, &part.name.as_ref().map_or(purpose.into(), |name| format!("{purpose}/{name}")));
        let (mut global, mut by_key) = (None, Vec::new());
        match (part.scope, &part.tokens) {
            (PartScope::Global, tokens) => {
                let name = part.name.as_deref().unwrap_or("template");
                global = Some(Segment(ContentId::global(name), tokens.draw(&mut rng)));
            }
            (PartScope::Key, crate::Length::Drawn(_)) => {
                by_key = (0..keys).map(|_| part.tokens.draw(&mut rng)).collect();
            }
            _ => {}
        }
        PartState { part: part.clone(), global, by_key, rng }
    }

    fn segment(&mut self, rank: usize, key: &Key, id: RequestId) -> Segment {
        if let Some(global) = &self.global {
            return global.clone();
        }
        let tokens = match self.by_key.get(rank) {
            Some(&tokens) => tokens,
            None => self.part.tokens.draw(&mut self.rng),
        };
        let mut content = match self.part.scope {
            PartScope::Request => ContentId::user(id).0,
            PartScope::Key | PartScope::Global => key_content(key),
        };
        if let Some(name) = &self.part.name {
            content.push('/');
            content.push_str(name);
        }
        Segment(ContentId(content), tokens)
    }
}

fn key_content(key: &Key) -> CompactString {
    let mut content = CompactString::const_new("k:");
    content.push_str(key);
    content
}

impl Generator {
    /// Prepares the requests of a specification.
    ///
    /// # Errors
    ///
    /// As [`Spec::check`], and a population that cannot be drawn.
    pub fn new(spec: &Spec) -> Result<Generator, WorkloadError> {
        spec.check()?;
        let keys = KeyPicker::new(spec.popularity.shares(spec.seed)?, spec.seed)?;
        let parts =
            spec.prompt.iter().map(|part| PartState::new(part, spec.popularity.keys, spec.seed)).collect();
        Ok(Generator {
            clock: ArrivalClock::new(&spec.arrivals, spec.seed),
            keys,
            parts,
            outputs: stream(spec.seed, "output-tokens"),
            next_id: 0,
            spec: spec.clone(),
        })
    }

    /// How many requests there will be in all. Where only a duration is given, this draws the arrivals once.
    pub fn total(&self) -> u64 {
        let limit = self.spec.requests.unwrap_or(u64::MAX);
        let Some(duration_s) = self.spec.duration_s else { return limit };
        let mut clock = ArrivalClock::new(&self.spec.arrivals, self.spec.seed);
        let mut count = 0;
        while count < limit && clock.next_s() < duration_s {
            count += 1;
        }
        count
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.spec.requests.is_some_and(|requests| self.next_id >= requests) {
            return None;
        }
        let t_s = self.clock.next_s();
        if self.spec.duration_s.is_some_and(|duration_s| t_s >= duration_s) {
            // Nothing later can be earlier: the stream has ended for good.
            self.spec.requests = Some(self.next_id);
            return None;
        }
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let rank = self.keys.pick();
        let key: Key = format_compact!("k{rank}");
        let prompt: Prompt = self.parts.iter_mut().map(|part| part.segment(rank, &key, id)).collect();
        let output_tokens = self.spec.output_tokens.draw(&mut self.outputs);
        Some(Request {
            id,
            t_s,
            key,
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt,
            output_tokens,
        })
    }
}
