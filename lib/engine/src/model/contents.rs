//! The token values of a sequence: its prompt's content, then its answer, the trace's or the model's own.

use cr_trace::{ContentId, Request, tokens::token_at};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Answers that later prompts may contain; the oldest are forgotten beyond this many.
const REMEMBERED: usize = 1 << 16;

/// What a model itself has answered (`--free-run`), shared by the shards of a fleet: the next turn of a conversation contains the
/// answer to the one before, whichever shard gave it. An answer that is forgotten reads as the trace's.
#[derive(Clone, Debug, Default)]
pub struct Answers(Arc<Mutex<Finished>>);

#[derive(Debug, Default)]
struct Finished {
    by_content: FxHashMap<u64, Arc<[u32]>>,
    order: VecDeque<u64>,
}

impl Answers {
    fn get(&self, content: u64) -> Option<Arc<[u32]>> {
        let finished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        finished.by_content.get(&content).cloned()
    }

    fn put(&self, content: u64, tokens: Arc<[u32]>) {
        let mut finished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.by_content.insert(content, tokens).is_some() {
            return;
        }
        finished.order.push_back(content);
        if finished.order.len() > REMEMBERED
            && let Some(oldest) = finished.order.pop_front()
        {
            finished.by_content.remove(&oldest);
        }
    }
}

/// One segment of a prompt.
struct Part {
    /// The position behind it.
    end: u32,
    content: u64,
    /// Its tokens, where it is an answer that a model gave itself.
    own: Option<Arc<[u32]>>,
}

/// The contents of a sequence, hashed once: its prompt's segments, then its answer without end.
pub(super) struct Contents {
    parts: Vec<Part>,
    answer: u64,
    prompt_tokens: u32,
    /// What the model has answered so far, where it goes on from that and not from the trace's answer.
    own: Option<Vec<u32>>,
}

impl Contents {
    pub(super) fn of(request: &Request, answers: Option<&Answers>) -> Contents {
        let mut end = 0;
        let part = |segment: &cr_trace::Segment| {
            end += segment.tokens();
            let content = segment.content().hash64();
            Part { end, content, own: answers.and_then(|answers| answers.get(content)) }
        };
        let parts: Vec<Part> = request.prompt.iter().map(part).collect();
        let prompt_tokens = parts.last().map_or(0, |part| part.end);
        let answer = ContentId::answer(request.id).hash64();
        Contents { parts, answer, prompt_tokens, own: answers.map(|_| Vec::new()) }
    }

    /// The model has decoded the token of this position.
    pub(super) fn decoded(&mut self, position: u32, token: u32) {
        let Some(own) = &mut self.own else { return };
        // After a preemption positions are fed, and decoded, again.
        if position.checked_sub(self.prompt_tokens) == Some(own.len() as u32) {
            own.push(token);
        }
    }

    /// The answer is complete, or given up.
    pub(super) fn finish(self, answers: Option<&Answers>) {
        if let (Some(answers), Some(own)) = (answers, self.own) {
            answers.put(self.answer, own.into());
        }
    }

    /// Appends the token values of `count` positions from `start` on.
    pub(super) fn push_tokens(&self, start: u32, count: u32, vocab: u32, out: &mut Vec<u32>) {
        let stop = start + count;
        let (mut position, mut begin) = (start, 0);
        for part in &self.parts {
            let until = part.end.min(stop);
            let token = |p: u32| {
                let own = part.own.as_ref().and_then(|own| own.get((p - begin) as usize));
                own.copied().unwrap_or_else(|| token_at(part.content, p - begin, vocab))
            };
            out.extend((position..until).map(token));
            position = position.max(until);
            begin = part.end;
        }
        let token = |p: u32| {
            let own = self.own.as_ref().and_then(|own| own.get((p - begin) as usize));
            own.copied().unwrap_or_else(|| token_at(self.answer, p - begin, vocab))
        };
        out.extend((position..stop).map(token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::tokens::push_prompt_tokens;
    use cr_trace::{RequestId, Segment};

    fn request(id: u64, prompt: &[(ContentId, u32)]) -> Request {
        Request {
            id: RequestId(id),
            t_s: 0.0,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: prompt.iter().map(|(content, tokens)| Segment(content.clone(), *tokens)).collect(),
            output_tokens: 4,
        }
    }

    fn first() -> Request {
        request(7, &[(ContentId::global("t"), 5), (ContentId::key("k"), 3)])
    }

    fn tokens(contents: &Contents, start: u32, count: u32) -> Vec<u32> {
        let mut tokens = Vec::new();
        contents.push_tokens(start, count, 100, &mut tokens);
        tokens
    }

    #[test]
    fn a_sequence_is_its_prompt_and_then_its_answer() {
        let mut expect = Vec::new();
        push_prompt_tokens(&first().prompt, 100, &mut expect);
        push_prompt_tokens(&[Segment(ContentId::answer(RequestId(7)), 4)], 100, &mut expect);
        let contents = Contents::of(&first(), None);
        for start in 0..12u32 {
            for count in 1..=12 - start {
                assert_eq!(tokens(&contents, start, count), expect[start as usize..(start + count) as usize]);
            }
        }
    }

    #[test]
    fn a_free_run_goes_on_from_what_the_model_said_also_in_the_next_turn() {
        let answers = Answers::default();
        let mut contents = Contents::of(&first(), Some(&answers));
        contents.decoded(8, 91);
        contents.decoded(9, 92);
        // Fed again after a preemption: what was said stays said.
        contents.decoded(9, 93);
        assert_eq!(tokens(&contents, 8, 2), [91, 92]);
        contents.finish(Some(&answers));
        let answer = ContentId::answer(RequestId(7));
        let next = request(
            8,
            &[
                (ContentId::global("t"), 5),
                (ContentId::key("k"), 3),
                (answer, 2),
                (ContentId::user(RequestId(8)), 1),
            ],
        );
        let contents = Contents::of(&next, Some(&answers));
        assert_eq!(tokens(&contents, 8, 2), [91, 92]);
        assert_eq!(tokens(&contents, 0, 8), tokens(&Contents::of(&first(), None), 0, 8));
        assert_ne!(
            tokens(&Contents::of(&next, None), 8, 2),
            [91, 92],
            "teacher forcing knows the trace's answer only"
        );
    }

    #[test]
    fn old_answers_are_forgotten() {
        let answers = Answers::default();
        (0..REMEMBERED as u64 + 10).for_each(|n| answers.put(n, [1].into()));
        assert!(answers.get(9).is_none() && answers.get(10).is_some());
    }
}
