//! From a specification to requests.

use crate::arrivals::ArrivalClock;
use crate::drift::KeyPicker;
use crate::length::LengthSampler;
use crate::parts::PartState;
use crate::threads::{Loop, ThreadDraws};
use crate::{Spec, WorkloadError};
use compact_str::format_compact;
use cr_trace::{ContentId, Key, Prompt, Request, RequestId, Segment, SessionId, Stream, stream};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

/// The requests of a specification, in order of arrival. Memory depends on the number of keys and of threads that are
/// under way, not on the number of requests.
#[derive(Clone, Debug)]
pub struct Generator {
    requests: u64,
    duration_s: f64,
    mode: Loop,
    key_per_thread: bool,
    clock: ArrivalClock,
    keys: KeyPicker,
    parts: Vec<PartState>,
    output: LengthSampler,
    outputs: Stream,
    threads: Option<ThreadDraws>,
    /// When the next thread starts; a request without threads is a thread of one turn.
    next_start_s: f64,
    started: u64,
    /// Threads that have turns left, by the time of the next one in microseconds, and by their number.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    active: BTreeMap<u64, Thread>,
    next_id: u64,
}

/// A thread under way. Its lengths and think times are drawn when it starts, so that how threads interleave, which the
/// rate decides, changes none of them.
#[derive(Clone, Debug)]
struct Thread {
    number: u64,
    rank: usize,
    key: Key,
    /// Turns still to come, the next one last.
    turns: Vec<Turn>,
    history: Vec<(RequestId, Turn)>,
}

#[derive(Clone, Debug)]
struct Turn {
    /// One length for each part of scope `request`.
    user: SmallVec<[u32; 2]>,
    output_tokens: u32,
    /// Seconds after the turn before it; 0 for the first.
    think_s: f64,
}

impl Generator {
    /// Prepares the requests of a specification whose files are relative to `folder`.
    ///
    /// # Errors
    ///
    /// As [`Spec::check`]; a population that cannot be drawn; a file that cannot be used.
    pub fn new(spec: &Spec, folder: &Path) -> Result<Generator, WorkloadError> {
        spec.check()?;
        let seed = spec.seed;
        let population = spec.popularity.draw(seed, folder)?;
        let parts: Result<Vec<_>, _> = spec
            .prompt
            .iter()
            .map(|part| PartState::new(part, population.shares.len(), seed, folder))
            .collect();
        let turns = spec.threads.as_ref().map_or(1.0, |threads| threads.expected_turns());
        let mut clock = ArrivalClock::new(&spec.arrivals, spec.rate.as_ref(), turns, seed, folder)?;
        Ok(Generator {
            requests: spec.requests.unwrap_or(u64::MAX),
            duration_s: spec.duration_s.unwrap_or(f64::INFINITY),
            mode: spec.threads.as_ref().map_or(Loop::Open, |threads| threads.mode),
            key_per_thread: spec.threads.as_ref().is_some_and(|threads| threads.key_per_thread),
            next_start_s: clock.next_s(),
            clock,
            keys: KeyPicker::new(population, spec.popularity.drift.as_ref(), seed)?,
            parts: parts?,
            output: spec.output_tokens.sampler("output_tokens", folder)?,
            outputs: stream(seed, "output-tokens"),
            threads: spec.threads.as_ref().map(|threads| ThreadDraws::new(threads, seed)),
            started: 0,
            waiting: BinaryHeap::new(),
            active: BTreeMap::new(),
            next_id: 0,
        })
    }

    /// How many requests there will be in all. Where only a duration is given, this draws what decides it once.
    pub fn total(&self) -> u64 {
        if self.duration_s.is_infinite() {
            return self.requests;
        }
        if self.threads.is_some() {
            return Iterator::count(self.clone()) as u64;
        }
        let (mut clock, mut next_s, mut total) = (self.clock.clone(), self.next_start_s, 0);
        while total < self.requests && next_s < self.duration_s {
            next_s = clock.next_s();
            total += 1;
        }
        total
    }

    /// Whether when requests come changes nothing else about them: no turns of threads interleave, and no keys drift.
    pub fn is_timeless(&self) -> bool {
        self.threads.is_none() && !self.keys.drifts()
    }

    /// Starts the arrivals anew, those of `spec`, whose other fields are those that this was made from. Returns when the
    /// requests that were drawn already arrive then, in seconds; where that is fewer of them, the others come too late. What
    /// is drawn from here on follows them. Nothing is drawn yet, or this [is timeless](Generator::is_timeless).
    ///
    /// # Errors
    ///
    /// A file of gaps that cannot be used.
    pub fn retime(&mut self, spec: &Spec, folder: &Path) -> Result<Vec<f64>, WorkloadError> {
        let mut times = Vec::with_capacity(self.next_id as usize);
        if self.next_id > 0 {
            self.clock = ArrivalClock::new(&spec.arrivals, spec.rate.as_ref(), 1.0, spec.seed, folder)?;
            self.next_start_s = self.clock.next_s();
        }
        while times.len() < self.next_id as usize && self.next_start_s < self.duration_s {
            times.push(self.next_start_s);
            self.next_start_s = self.clock.next_s();
        }
        Ok(times)
    }

    /// Draws everything about the thread that starts at `t_s`.
    fn start(&mut self, t_s: f64) -> Thread {
        let rank = self.keys.pick(t_s);
        let count = self.threads.as_mut().map_or(1, ThreadDraws::turns);
        let mut turns: Vec<Turn> = (0..count)
            .map(|index| Turn {
                user: self
                    .parts
                    .iter_mut()
                    .filter(|part| part.is_request())
                    .map(PartState::draw_tokens)
                    .collect(),
                output_tokens: self.output.draw(&mut self.outputs),
                think_s: match &mut self.threads {
                    Some(threads) if index > 0 => threads.think_s(),
                    _ => 0.0,
                },
            })
            .collect();
        turns.reverse();
        let number = self.started;
        self.started += 1;
        Thread { number, rank, key: self.keys.name(rank), turns, history: Vec::new() }
    }

    /// The next turn of a thread as a request.
    fn request(&mut self, thread: &mut Thread, turn: &Turn, t_s: f64) -> Request {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let prompt = self.prompt(thread, turn, id);
        let last = thread.history.last().map(|(id, _)| *id);
        let closed = self.mode == Loop::Closed && last.is_some();
        let session = self.threads.is_some().then(|| -> SessionId { format_compact!("s{}", thread.number) });
        let (key, tenant) = match &session {
            Some(session) if self.key_per_thread => (session.clone(), Some(thread.key.clone())),
            _ => (thread.key.clone(), None),
        };
        Request {
            id,
            t_s,
            key,
            tenant,
            turn: session.is_some().then_some(thread.history.len() as u32 + 1),
            session,
            after: last.filter(|_| closed),
            think_s: closed.then_some(turn.think_s),
            prompt,
            output_tokens: turn.output_tokens,
        }
    }

    fn prompt(&mut self, thread: &Thread, turn: &Turn, id: RequestId) -> Prompt {
        let mut prompt = Prompt::new();
        let mut user = 0;
        for index in 0..self.parts.len() {
            if self.parts[index].is_thread() {
                for (earlier, turn) in &thread.history {
                    let requests = self.parts.iter().filter(|part| part.is_request());
                    prompt.extend(
                        requests.zip(&turn.user).map(|(part, &tokens)| part.user_segment(*earlier, tokens)),
                    );
                    prompt.push(Segment(ContentId::answer(*earlier), turn.output_tokens));
                }
            } else if self.parts[index].is_request() {
                prompt.push(self.parts[index].user_segment(id, turn.user[user]));
                user += 1;
            } else {
                prompt.extend(self.parts[index].shared_segment(thread.rank, &thread.key));
            }
        }
        prompt
    }

    /// The next turn in time: of a waiting thread, or the first of a new one. `None` once that lies past the duration.
    fn next_turn(&mut self) -> Option<(f64, Thread)> {
        let waiting = self.waiting.peek().map(|&Reverse((at_us, number))| (at_us as f64 / 1e6, number));
        match waiting {
            Some((at_s, number)) if at_s <= self.next_start_s => {
                if at_s >= self.duration_s {
                    return None;
                }
                self.waiting.pop();
                self.active.remove(&number).map(|thread| (at_s, thread))
            }
            _ => {
                let at_s = self.next_start_s;
                if at_s >= self.duration_s {
                    return None;
                }
                self.next_start_s = self.clock.next_s();
                Some((at_s, self.start(at_s)))
            }
        }
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.next_id >= self.requests {
            return None;
        }
        let (t_s, mut thread) = self.next_turn()?;
        let turn = thread.turns.pop()?;
        let request = self.request(&mut thread, &turn, t_s);
        if let Some(next) = thread.turns.last() {
            let at_us = ((t_s + next.think_s) * 1e6).round() as u64;
            self.waiting.push(Reverse((at_us, thread.number)));
            thread.history.push((request.id, turn));
            self.active.insert(thread.number, thread);
        }
        Some(request)
    }
}
