//! Conversations of text as requests.
//!
//! The text tells what is said and nothing of when: arrivals are drawn, as are the pauses between the turns of a
//! conversation and the lengths of answers that the text leaves open. A prompt is everything said so far: what was asked as
//! blocks of hashed tokens ([`cr_trace::text`]), what was answered as the answers of the earlier requests. No chat template is
//! applied: the few tokens that a template adds around a turn are not counted.

use crate::WorkloadError;
use crate::arrivals::{ArrivalClock, Arrivals, round_us};
use crate::error::within;
use crate::length::{Length, LengthSampler};
use crate::threads::Loop;
use compact_str::format_compact;
use cr_trace::mooncake::BlockKey;
use cr_trace::text::{Answer, Conversation, TokenBlock, TokenChain};
use cr_trace::trunk::{LOOK_AHEAD_ROWS, Trunk, prefix_key};
use cr_trace::{ContentId, Key, Request, RequestId, Segment, SessionId, Stream, TraceError, stream};
use rand_distr::{Distribution, Exp1};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::path::Path;

/// What text does not tell.
#[derive(Clone, Debug, PartialEq)]
pub struct TextOptions {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// How conversations begin, so many a second.
    pub arrivals: Arrivals,
    /// Seconds between an answer and the next turn, on average; exponential.
    pub think_s: f64,
    /// Whether a turn waits for the answer before it.
    pub mode: Loop,
    /// Tokens of a block: texts share their leading tokens to the block.
    pub block_tokens: u32,
    /// The routing key of a conversation that names none.
    pub key: BlockKey,
    /// The lengths of answers that are not there.
    pub output_tokens: Length,
}

/// Turns text into tokens.
pub type Tokenize = Box<dyn FnMut(&str) -> Result<Vec<u32>, String> + Send>;

/// The requests of conversations, in order of arrival, numbered from 0.
///
/// Holds the conversations under way, and the first [`LOOK_AHEAD_ROWS`] to find what all of them begin with.
pub struct TextImport<I> {
    source: I,
    file: String,
    tokenize: Tokenize,
    options: TextOptions,
    clock: ArrivalClock,
    think: Stream,
    output: LengthSampler,
    outputs: Stream,
    trunk: Option<Trunk>,
    held: VecDeque<Result<Talk, TraceError>>,
    /// The next conversation and when it begins; none before the first look and at the end.
    next: Option<(f64, Talk)>,
    started: u64,
    /// Conversations that have turns left, by the time of the next one in microseconds, and by their number.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    active: BTreeMap<u64, Talk>,
    next_id: u64,
    /// What ends the import, after the request before it.
    error: Option<TraceError>,
    failed: bool,
}

/// A conversation in tokens.
#[derive(Clone, Debug)]
struct Talk {
    number: u64,
    key: Option<Key>,
    /// Turns still to come, the next one last.
    turns: Vec<Said>,
    history: Vec<(RequestId, Said)>,
    many: bool,
}

#[derive(Clone, Debug)]
struct Said {
    asked: Vec<TokenBlock>,
    output_tokens: u32,
    /// Seconds after the turn before it; 0 for the first.
    think_s: f64,
}

impl<I: Iterator<Item = Result<Conversation, TraceError>>> TextImport<I> {
    /// Prepares the requests of the conversations of `source`, which errors call `file`.
    ///
    /// # Errors
    ///
    /// An option that is out of range.
    pub fn new(
        source: I,
        file: &str,
        tokenize: Tokenize,
        options: TextOptions,
    ) -> Result<TextImport<I>, WorkloadError> {
        options.arrivals.check()?;
        within("think_s", options.think_s, 0.0..=1e6)?;
        let seed = options.seed;
        Ok(TextImport {
            source,
            file: file.into(),
            tokenize,
            clock: ArrivalClock::new(&options.arrivals, None, 1.0, seed, Path::new(""))?,
            think: stream(seed, "think"),
            output: options.output_tokens.sampler("output_tokens", Path::new(""))?,
            outputs: stream(seed, "output-tokens"),
            options,
            trunk: None,
            held: VecDeque::new(),
            next: None,
            started: 0,
            waiting: BinaryHeap::new(),
            active: BTreeMap::new(),
            next_id: 0,
            error: None,
            failed: false,
        })
    }

    /// Reads and tokenises the next conversation.
    fn read(&mut self) -> Option<Result<Talk, TraceError>> {
        let conversation = match self.source.next()? {
            Ok(conversation) => conversation,
            Err(error) => return Some(Err(error)),
        };
        let line = conversation.line;
        Some(self.talk(conversation).map_err(|what| TraceError::line(&self.file, line, what)))
    }

    fn talk(&mut self, conversation: Conversation) -> Result<Talk, String> {
        let mut chain = TokenChain::new(self.options.block_tokens);
        let many = conversation.turns.len() > 1;
        let mut turns = Vec::with_capacity(conversation.turns.len());
        for turn in conversation.turns {
            let tokens = (self.tokenize)(&turn.prompt)?;
            if tokens.is_empty() {
                return Err("the prompt has no tokens".into());
            }
            let asked = chain.ask(&tokens);
            let output_tokens = match turn.answer {
                Answer::Text(text) => {
                    let tokens = (self.tokenize)(&text)?;
                    chain.answer(&tokens);
                    // An empty answer is still the token that ends it.
                    u32::try_from(tokens.len()).map_err(|_| "the answer is too long")?.max(1)
                }
                Answer::Tokens(tokens) => tokens,
                Answer::Unknown => self.output.draw(&mut self.outputs),
            };
            let think_s = if turns.is_empty() {
                0.0
            } else {
                let unit: f64 = Exp1.sample(&mut self.think);
                round_us(self.options.think_s * unit)
            };
            turns.push(Said { asked, output_tokens, think_s });
        }
        turns.reverse();
        Ok(Talk { number: 0, key: conversation.key, turns, history: Vec::new(), many })
    }

    /// Looks for what most conversations begin with, where the key depends on it.
    fn look_ahead(&mut self) -> Trunk {
        if self.options.key != BlockKey::AfterTrunk {
            return Trunk::default();
        }
        while self.held.len() < LOOK_AHEAD_ROWS
            && let Some(talk) = self.read()
        {
            self.held.push_back(talk);
        }
        let rows: Vec<Vec<u64>> = self.held.iter().flatten().map(Talk::first_ids).collect();
        Trunk::of(rows.iter().map(Vec::as_slice))
    }

    /// Draws when the next conversation begins, and gives it its key.
    fn fetch(&mut self) -> Result<(), TraceError> {
        if self.trunk.is_none() {
            self.trunk = Some(self.look_ahead());
        }
        let Some(talk) = self.held.pop_front().or_else(|| self.read()) else {
            self.next = None;
            return Ok(());
        };
        let mut talk = talk?;
        talk.number = self.started;
        self.started += 1;
        if talk.key.is_none() {
            let ids = talk.first_ids();
            talk.key = Some(match (self.options.key, &self.trunk) {
                (BlockKey::Session, _) => talk.session(),
                (BlockKey::Prefix(blocks), _) => prefix_key(&ids, blocks),
                (BlockKey::AfterTrunk, trunk) => {
                    trunk.as_ref().map_or_else(Key::default, |trunk| trunk.key(&ids))
                }
            });
        }
        self.next = Some((self.clock.next_s(), talk));
        Ok(())
    }

    /// The next turn in time: of a conversation under way, or the first of another.
    fn next_turn(&mut self) -> Result<Option<(f64, Talk)>, TraceError> {
        if self.next.is_none() && self.started == 0 {
            self.fetch()?;
        }
        let waiting = self.waiting.peek().map(|&Reverse((at_us, number))| (at_us as f64 / 1e6, number));
        match (waiting, &self.next) {
            (Some((at_s, number)), next) if next.as_ref().is_none_or(|(start_s, _)| at_s <= *start_s) => {
                self.waiting.pop();
                Ok(self.active.remove(&number).map(|talk| (at_s, talk)))
            }
            (_, None) => Ok(None),
            (_, Some(_)) => {
                let next = self.next.take();
                self.error = self.fetch().err();
                Ok(next)
            }
        }
    }

    fn request(&mut self, talk: &Talk, said: &Said, t_s: f64) -> Request {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let mut prompt = cr_trace::Prompt::new();
        for (earlier, said) in &talk.history {
            prompt.extend(said.asked.iter().copied().map(TokenBlock::segment));
            prompt.push(Segment(ContentId::answer(*earlier), said.output_tokens));
        }
        prompt.extend(said.asked.iter().copied().map(TokenBlock::segment));
        let after = talk.history.last().map(|(id, _)| *id).filter(|_| self.options.mode == Loop::Closed);
        Request {
            id,
            t_s,
            key: talk.key.clone().unwrap_or_default(),
            tenant: None,
            session: talk.many.then(|| talk.session()),
            turn: talk.many.then_some(talk.history.len() as u32 + 1),
            after,
            think_s: after.map(|_| said.think_s),
            prompt,
            output_tokens: said.output_tokens,
        }
    }
}

impl Talk {
    fn session(&self) -> SessionId {
        format_compact!("s{}", self.number)
    }

    /// The ids of the blocks that the first turn asks.
    fn first_ids(&self) -> Vec<u64> {
        self.turns.last().map_or_else(Vec::new, |first| first.asked.iter().map(|block| block.id).collect())
    }
}

impl<I: Iterator<Item = Result<Conversation, TraceError>>> Iterator for TextImport<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let turn = match self.error.take() {
            Some(error) => Err(error),
            None => self.next_turn(),
        };
        let (t_s, mut talk) = match turn {
            Ok(turn) => turn?,
            Err(error) => {
                self.failed = true;
                return Some(Err(error));
            }
        };
        let said = talk.turns.pop()?;
        let request = self.request(&talk, &said, t_s);
        if let Some(next) = talk.turns.last() {
            let at_us = ((t_s + next.think_s) * 1e6).round() as u64;
            self.waiting.push(Reverse((at_us, talk.number)));
            talk.history.push((request.id, said));
            self.active.insert(talk.number, talk);
        }
        Some(Ok(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::content::shared_tokens;
    use cr_trace::text::{TextForm, TextReader};
    use cr_trace::tolerance::Tolerance;

    fn options() -> TextOptions {
        TextOptions {
            seed: 1,
            arrivals: Arrivals::poisson(2.0),
            think_s: 3.0,
            mode: Loop::Closed,
            block_tokens: 2,
            key: BlockKey::AfterTrunk,
            output_tokens: Length::Constant(9),
        }
    }

    fn import(text: &str, form: TextForm, options: TextOptions) -> Result<Vec<Request>, String> {
        let words = |text: &str| Ok(text.split_whitespace().map(|word| word.len() as u32).collect());
        let reader = TextReader::new(text.as_bytes(), "x", form, None, Tolerance::default()).expect("opens");
        TextImport::new(reader, "x", Box::new(words), options)
            .expect("is valid")
            .map(|request| request.map_err(|error| error.to_string()))
            .collect()
    }

    /// Two conversations of two turns that begin alike, and one of one.
    const TALKS: &str = r#"[{"conversations":[{"from":"human","value":"a bb ccc d"},{"from":"gpt","value":"x y z"},{"from":"human","value":"e"},{"from":"gpt","value":"v"}]},
{"conversations":[{"from":"human","value":"a bb dddd d"},{"from":"gpt","value":"x y z"},{"from":"human","value":"e"},{"from":"gpt","value":"v"}]},
{"conversations":[{"from":"human","value":"a bb q"}]}]"#;

    #[test]
    fn conversations_repeat_what_was_said_and_share_what_they_begin_with() {
        let requests = import(TALKS, TextForm::ShareGpt, options()).expect("imports");
        assert_eq!(requests.len(), 5);
        assert!(requests.iter().all(|request| request.fault().is_none()));
        assert!(requests.is_sorted_by(|a, b| a.t_s <= b.t_s && a.id < b.id));
        let of = |session: &str, turn| {
            requests
                .iter()
                .find(|request| request.session.as_deref() == Some(session) && request.turn == Some(turn))
                .expect("is there")
        };
        let (first, second, other) = (of("s0", 1), of("s0", 2), of("s1", 1));
        assert_eq!((second.after, second.prompt_tokens(), second.output_tokens), (Some(first.id), 8, 1));
        assert!(second.think_s.is_some() && first.after.is_none());
        assert_eq!(second.prompt[2].content(), &ContentId::answer(first.id));
        assert_eq!(shared_tokens(&first.prompt, &second.prompt), 4);
        assert_eq!(shared_tokens(&first.prompt, &other.prompt), 2, "to the block");
        assert_eq!(first.key, second.key);
        // All three begin with one block, which therefore makes no key.
        assert_ne!(first.key, other.key);
        let single = requests.iter().find(|request| request.session.is_none()).expect("is there");
        assert_eq!((single.turn, single.output_tokens), (None, 9));
    }

    #[test]
    fn rates_stretch_arrivals_and_nothing_else() {
        let faster = TextOptions { arrivals: Arrivals::poisson(20.0), ..options() };
        let (slow, fast) =
            (import(TALKS, TextForm::ShareGpt, options()), import(TALKS, TextForm::ShareGpt, faster));
        let first = |requests: Result<Vec<Request>, String>| requests.expect("imports")[0].clone();
        let (slow, fast) = (first(slow), first(fast));
        assert!((slow.t_s / fast.t_s - 10.0).abs() < 0.01);
        assert_eq!(slow.prompt, fast.prompt);
    }

    #[test]
    fn an_open_loop_waits_for_nobody_and_sessions_can_be_keys() {
        let open = TextOptions { mode: Loop::Open, key: BlockKey::Session, ..options() };
        let requests = import(TALKS, TextForm::ShareGpt, open).expect("imports");
        assert!(requests.iter().all(|request| request.after.is_none() && request.think_s.is_none()));
        let keys: std::collections::BTreeSet<_> =
            requests.iter().map(|request| request.key.as_str()).collect();
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["s0", "s1", "s2"]);
    }

    #[test]
    fn a_bad_row_ends_it_with_its_line() {
        let text = "{\"prompt\":\"a\"}\n{\"prompt\":\"\"}\n{\"prompt\":\"b\"}";
        assert_eq!(import(text, TextForm::Custom, options()), Err("x:2: the prompt is empty".into()));
    }
}
