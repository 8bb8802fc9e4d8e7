//! The block pool and the run-length pool against the honest one, and against each other, on random work.

use super::naive::NaivePool;
use super::{BlockPool, Pool, RunPool};
use cr_trace::{ContentId, Request, RequestId, Segment};
use proptest::prelude::*;

/// One thing that a scheduler may do; the number picks a sequence.
#[derive(Clone, Debug)]
enum Action {
    Open { prompt: Vec<(u8, u32)>, admitted: bool },
    Admit(usize),
    Publish(usize, u32),
    Grow(usize, u32),
    Release(usize),
    Close(usize),
    Clear,
    Lift,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (proptest::collection::vec((0u8..5, 1u32..12), 1..4), any::<bool>())
            .prop_map(|(prompt, admitted)| Action::Open { prompt, admitted }),
        6 => (0usize..8).prop_map(Action::Admit),
        6 => (0usize..8, 0u32..40).prop_map(|(i, n)| Action::Publish(i, n)),
        3 => (0usize..8, 1u32..8).prop_map(|(i, n)| Action::Grow(i, n)),
        4 => (0usize..8).prop_map(Action::Release),
        2 => (0usize..8).prop_map(Action::Close),
        1 => Just(Action::Clear),
        1 => Just(Action::Lift),
    ]
}

/// A few keys, and the answers to earlier requests.
fn content(number: u8, opened: u64) -> ContentId {
    match number {
        0..3 => ContentId::key(&number.to_string()),
        _ => ContentId::answer(RequestId((opened / 2).saturating_sub(u64::from(number) - 3))),
    }
}

struct Sequence<P: Pool> {
    held: P::Held,
    prompt_tokens: u32,
    /// Tokens that room was made for; 0 where nothing is held.
    room: u32,
}

/// A pool under a script of actions; `observe` is what a scheduler could see after each.
struct Script<P: Pool> {
    pool: P,
    sequences: Vec<Sequence<P>>,
    opened: u64,
    block_tokens: u32,
}

impl<P: Pool> Script<P> {
    fn new(blocks: u32, block_tokens: u32) -> Self {
        Script { pool: P::new(blocks, block_tokens), sequences: Vec::new(), opened: 0, block_tokens }
    }

    fn open(&mut self, prompt: &[(u8, u32)], admitted: bool) {
        let prompt = prompt.iter().map(|&(c, n)| Segment(content(c, self.opened), n)).collect();
        // Now and then an id comes again, so that two sequences decode the same answer.
        let id = RequestId(self.opened / 2);
        self.opened += 1;
        let request = Request {
            id,
            t_s: 0.0,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt,
            output_tokens: 1,
        };
        let held = self.pool.open(&request, admitted);
        self.sequences.push(Sequence { held, prompt_tokens: request.prompt_tokens() as u32, room: 0 });
    }

    fn admit(&mut self, i: usize) -> Option<u32> {
        let s = &mut self.sequences[i];
        if s.room > 0 {
            return None;
        }
        let most_cached = (s.prompt_tokens - 1) / self.block_tokens;
        let found = self.pool.admit(&mut s.held, s.prompt_tokens, most_cached)?;
        s.room = s.prompt_tokens;
        Some(found)
    }

    fn release(&mut self, i: usize) {
        let s = &mut self.sequences[i];
        if s.room > 0 {
            self.pool.release(&mut s.held);
            s.room = 0;
        }
    }

    /// Does it, and says what a scheduler would be told.
    fn act(&mut self, action: &Action) -> Option<u32> {
        let pick = |i: &usize, n: usize| (n > 0).then(|| i % n);
        let n = self.sequences.len();
        match action {
            Action::Open { prompt, admitted } => {
                self.open(prompt, *admitted);
                None
            }
            Action::Admit(i) => self.admit(pick(i, n)?),
            Action::Publish(i, tokens) => {
                let s = &mut self.sequences[pick(i, n)?];
                let room = s.room;
                self.pool.publish(&mut s.held, room.min(*tokens));
                None
            }
            Action::Grow(i, more) => {
                let s = &mut self.sequences[pick(i, n)?];
                if s.room == 0 || !self.pool.grow(&mut s.held, s.room + more) {
                    return None;
                }
                s.room += more;
                Some(s.room)
            }
            Action::Release(i) => {
                self.release(pick(i, n)?);
                None
            }
            Action::Close(i) => {
                let i = pick(i, n)?;
                self.release(i);
                self.sequences.remove(i);
                None
            }
            Action::Clear => {
                (0..n).for_each(|i| self.release(i));
                self.pool.clear();
                None
            }
            Action::Lift => {
                self.pool.lift_protection();
                None
            }
        }
    }
}

fn laws<Q: Pool, P: Pool>(
    blocks: u32,
    block_tokens: u32,
    protects: bool,
    actions: &[Action],
) -> Result<(), TestCaseError> {
    let mut fast = Script::<Q>::new(blocks, block_tokens);
    let mut honest = Script::<P>::new(blocks, block_tokens);
    if protects {
        fast.pool.protect_admitted();
        honest.pool.protect_admitted();
    }
    for (number, action) in actions.iter().enumerate() {
        prop_assert_eq!(fast.act(action), honest.act(action), "{}: {:?}", number, action);
        let usage = fast.pool.usage();
        prop_assert_eq!(usage, honest.pool.usage(), "{}: {:?}", number, action);
        prop_assert_eq!(usage.referenced + usage.cached + usage.free, blocks);
        let held: usize = honest.sequences.iter().map(|s| honest.pool.table(&s.held).len()).sum();
        prop_assert!(usage.referenced as usize <= held);
    }
    // References never leak: when every sequence has gone, none is left.
    for s in &mut fast.sequences {
        fast.pool.release(&mut s.held);
    }
    prop_assert_eq!(fast.pool.usage().referenced, 0);
    fast.pool.clear();
    prop_assert_eq!(fast.pool.usage().free, blocks);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn the_block_pool_does_what_the_honest_pool_does(
        blocks in 1u32..14,
        block_tokens in 1u32..5,
        protects in any::<bool>(),
        actions in proptest::collection::vec(action(), 1..80),
    ) {
        laws::<BlockPool, NaivePool>(blocks, block_tokens, protects, &actions)?;
        laws::<RunPool, NaivePool>(blocks, block_tokens, protects, &actions)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 2000 }))]

    /// Larger pools and longer scripts than the honest pool has patience for.
    #[test]
    fn the_run_pool_does_what_the_block_pool_does(
        blocks in 1u32..60,
        block_tokens in 1u32..9,
        protects in any::<bool>(),
        actions in proptest::collection::vec(action(), 1..300),
    ) {
        laws::<RunPool, BlockPool>(blocks, block_tokens, protects, &actions)?;
    }
}
