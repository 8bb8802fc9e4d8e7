//! The parts of prompts as requests go by: contents and lengths.

use crate::WorkloadError;
use crate::length::LengthSampler;
use crate::prompt::{Part, PartScope};
use compact_str::CompactString;
use cr_trace::tokens::mix64;
use cr_trace::{ContentId, Key, RequestId, Segment, Stream, stream};
use rand::{Rng, RngExt, SeedableRng};
use std::path::Path;

/// A part and what it carries from request to request.
#[derive(Clone, Debug)]
pub(crate) struct PartState {
    kind: Kind,
    suffix: Option<String>,
    tokens: LengthSampler,
    rng: Stream,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The content is always the same.
    Global(Segment),
    /// The length by rank of the key; empty where it is constant.
    Key(Vec<u32>),
    Pool(Pool),
    Thread,
    Request,
}

/// Documents of each key.
#[derive(Clone, Debug)]
struct Pool {
    documents: u32,
    break_probability: f64,
    /// The document of each key's last request, by rank.
    last: Vec<u32>,
    /// What lengths of documents are drawn from, beside the key and the document.
    length_seed: u64,
    /// Lengths that were drawn lately, by their place: drawing one anew takes a random stream of its own.
    lengths: Vec<Option<(u64, u32)>>,
}

/// Lengths of documents that are remembered at most, a power of two: enough for the hot keys, whatever the population.
const REMEMBERED: usize = 1 << 12;

const NO_DOCUMENT: u32 = u32::MAX;

impl PartState {
    pub(crate) fn new(
        part: &Part,
        keys: usize,
        seed: u64,
        folder: &Path,
    ) -> Result<PartState, WorkloadError> {
        let purpose = match part.scope {
            PartScope::Global => "global-tokens",
            PartScope::Key => "key-tokens",
            PartScope::Pool => "documents",
            PartScope::Thread => "thread",
            PartScope::Request => "user-tokens",
        };
        let purpose = part.name.as_ref().map_or(purpose.into(), |name| format!("{purpose}/{name}"));
        let mut rng = stream(seed, &purpose);
        let tokens = match &part.tokens {
            Some(tokens) => tokens.sampler("prompt.tokens", folder)?,
            None => LengthSampler::Constant(0),
        };
        let kind = match part.scope {
            PartScope::Global => {
                let name = part.name.as_deref().unwrap_or("template");
                Kind::Global(Segment(ContentId::global(name), tokens.draw(&mut rng)))
            }
            PartScope::Key if matches!(tokens, LengthSampler::Constant(_)) => Kind::Key(Vec::new()),
            PartScope::Key => Kind::Key((0..keys).map(|_| tokens.draw(&mut rng)).collect()),
            PartScope::Pool => Kind::Pool(Pool {
                documents: part.documents.unwrap_or(1),
                break_probability: part.break_probability.unwrap_or_default(),
                last: vec![NO_DOCUMENT; keys],
                length_seed: stream(seed, &format!("{purpose}-tokens")).next_u64(),
                lengths: vec![None; REMEMBERED],
            }),
            PartScope::Thread => Kind::Thread,
            PartScope::Request => Kind::Request,
        };
        let suffix =
            part.name.as_ref().filter(|_| part.scope != PartScope::Global).map(|name| format!("/{name}"));
        Ok(PartState { kind, suffix, tokens, rng })
    }

    /// Whether this is the user's turn or a part of it.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request)
    }

    /// Whether this repeats the thread.
    pub(crate) fn is_thread(&self) -> bool {
        matches!(self.kind, Kind::Thread)
    }

    /// The length of the next user's turn.
    pub(crate) fn draw_tokens(&mut self) -> u32 {
        self.tokens.draw(&mut self.rng)
    }

    /// The segment of the user's turn `id`.
    pub(crate) fn user_segment(&self, id: RequestId, tokens: u32) -> Segment {
        Segment(self.named(ContentId::user(id).0), tokens)
    }

    /// The segment that a request of this key has here; `None` for what only a thread or the user's turn can tell.
    pub(crate) fn shared_segment(&mut self, rank: usize, key: &Key) -> Option<Segment> {
        let (content, tokens) = match &mut self.kind {
            Kind::Global(segment) => return Some(segment.clone()),
            Kind::Key(lengths) => {
                let tokens = match (lengths.get(rank), &self.tokens) {
                    (Some(&tokens), _) => tokens,
                    (None, sampler) => sampler.draw(&mut self.rng),
                };
                let mut content = CompactString::const_new("k:");
                content.push_str(key);
                (content, tokens)
            }
            Kind::Pool(pool) => {
                let document = pool.next(rank, &mut self.rng);
                let tokens = match &self.tokens {
                    LengthSampler::Constant(tokens) => *tokens,
                    sampler => pool.length(rank, document, sampler),
                };
                // Without going through `fmt`: there is one in every request.
                let mut content = CompactString::const_new("d:");
                content.push_str(key);
                content.push('/');
                content.push_str(itoa::Buffer::new().format(document));
                (content, tokens)
            }
            Kind::Thread | Kind::Request => return None,
        };
        Some(Segment(self.named(content), tokens))
    }

    fn named(&self, mut content: CompactString) -> ContentId {
        if let Some(suffix) = &self.suffix {
            content.push_str(suffix);
        }
        ContentId(content)
    }
}

impl Pool {
    /// The document of the key's next request: another than the last with the break probability, evenly among the others.
    fn next(&mut self, rank: usize, rng: &mut Stream) -> u32 {
        let last = &mut self.last[rank];
        if *last == NO_DOCUMENT {
            *last = rng.random_range(0..self.documents);
        } else if self.break_probability > 0.0 && rng.random_bool(self.break_probability) {
            *last = (*last + rng.random_range(1..self.documents)) % self.documents;
        }
        *last
    }

    /// The length of a key's document: a function of the two, drawn anew where it is not remembered.
    fn length(&mut self, rank: usize, document: u32, sampler: &LengthSampler) -> u32 {
        let place = mix64(rank as u64) ^ u64::from(document);
        let slot = &mut self.lengths[mix64(place) as usize % REMEMBERED];
        match *slot {
            Some((known, tokens)) if known == place => tokens,
            _ => {
                let tokens = sampler.draw(&mut Stream::seed_from_u64(self.length_seed ^ mix64(place)));
                *slot = Some((place, tokens));
                tokens
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::{Drawn, Length};

    #[test]
    fn remembered_lengths_are_those_drawn_anew() {
        let part = Part::pool(
            50,
            0.5,
            Length::Drawn(Drawn::Lognormal { mean: 700.0, sigma: 1.1, min: None, max: None }),
        );
        let mut state = PartState::new(&part, 10, 3, Path::new(".")).expect("is a part");
        let sampler = state.tokens.clone();
        let Kind::Pool(pool) = &mut state.kind else { panic!("documents are a pool") };
        // More of them than are remembered, and each twice, close together and far apart.
        let documents = (0..400).flat_map(|rank| (0..50).map(move |document| (rank, document)));
        for (rank, document) in documents.clone().flat_map(|one| [one, one]).chain(documents) {
            let seed = pool.length_seed ^ mix64(mix64(rank as u64) ^ u64::from(document));
            let anew = sampler.draw(&mut Stream::seed_from_u64(seed));
            assert_eq!(pool.length(rank, document, &sampler), anew, "document {document} of key {rank}");
        }
    }
}
