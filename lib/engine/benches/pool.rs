//! What the KV pools cost a block: the whole life of a prompt of 75 blocks of 16 tokens.
//!
//! A prompt is hashed and matched, its blocks are allocated, published and, 32 prompts later, let go. The pool is full, so
//! what is not found is allocated by evicting. Divide a second by the items a second for the time of a block.

use cr_engine::{BlockPool, Pool, RunPool};
use cr_trace::{ContentId, Request, RequestId, Segment};
use divan::Bencher;
use divan::counter::ItemsCount;
use std::collections::VecDeque;

const BLOCK_TOKENS: u32 = 16;
/// Of the template that all prompts begin with, of what a key adds, and of what is the request's own.
const BLOCKS: [u32; 3] = [16, 49, 10];
const PROMPT_TOKENS: u32 = (BLOCKS[0] + BLOCKS[1] + BLOCKS[2]) * BLOCK_TOKENS;
/// Prompts held at once.
const HELD: usize = 32;
/// Enough for none of a prompt's own blocks to be left when it comes again.
const PROMPTS: u64 = 10_000;
const POOLS: [u32; 2] = [4_096, 40_960];

fn prompts(keys: u64) -> Vec<Request> {
    let one = |n: u64| {
        let contents = [
            ContentId::global("t"),
            ContentId::key(&format!("k{}", n % keys)),
            ContentId::user(RequestId(n)),
        ];
        Request {
            id: RequestId(n),
            t_s: 0.0,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: contents.into_iter().zip(BLOCKS).map(|(id, n)| Segment(id, n * BLOCK_TOKENS)).collect(),
            output_tokens: 1,
        }
    };
    (0..PROMPTS).map(one).collect()
}

/// Serves prompts in turn; `keys` says how many of them share what a key adds.
fn serve<P: Pool>(bencher: Bencher<'_, '_>, blocks: u32, keys: u64) {
    let prompts = prompts(keys);
    let mut pool = P::new(blocks, BLOCK_TOKENS);
    let mut held: VecDeque<P::Held> = VecDeque::new();
    let mut next = prompts.iter().cycle();
    let mut live = || {
        if held.len() == HELD
            && let Some(mut oldest) = held.pop_front()
        {
            pool.release(&mut oldest);
        }
        let request = next.next()?;
        let mut sequence = pool.open(request, false);
        let found = pool.admit(&mut sequence, PROMPT_TOKENS, (PROMPT_TOKENS - 1) / BLOCK_TOKENS);
        pool.publish(&mut sequence, PROMPT_TOKENS);
        held.push_back(sequence);
        found
    };
    (0..PROMPTS).for_each(|_| _ = live());
    bencher.counter(ItemsCount::new(PROMPT_TOKENS / BLOCK_TOKENS)).bench_local(live);
}

/// Every prompt has a key of its own: 59 of its 75 blocks are allocated.
#[divan::bench(types = [BlockPool, RunPool], args = POOLS, sample_size = 100)]
fn cold<P: Pool>(bencher: Bencher<'_, '_>, blocks: u32) {
    serve::<P>(bencher, blocks, PROMPTS);
}

/// The keys fit the pool: 10 of its 75 blocks are allocated.
#[divan::bench(types = [BlockPool, RunPool], args = POOLS, sample_size = 100)]
fn warm<P: Pool>(bencher: Bencher<'_, '_>, blocks: u32) {
    serve::<P>(bencher, blocks, u64::from(blocks / 100));
}

fn main() {
    divan::main();
}
