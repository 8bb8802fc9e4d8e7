//! What a step of steady decoding allocates: the scheduler and the pools nothing, the real engine nothing beyond candle's
//! tensors.
//!
//! The counts are the whole process's, so this is a program without a test harness, whose thread allocates now and then.
#![allow(clippy::unwrap_used)]

use candle_core::Device;
use cr_cost::{CostModel, StepWork};
use cr_engine::model::{Model, ModelBackend, ModelConfig, Step, StepTimes, best_runner};
use cr_engine::{
    Backend, Batch, BatchSeq, BlockPool, EngineError, Pool, RunPool, Shard, ShardConfig, SimBackend,
};
use cr_trace::{ContentId, Request, RequestId, Segment, Time};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What `act` allocates, in calls of the allocator that may take memory.
fn allocations(act: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    act();
    let change = region.change();
    change.allocations + change.reallocations
}

fn request(id: u64, output_tokens: u32) -> Arc<Request> {
    let contents = [
        (ContentId::global("t"), 200),
        (ContentId::key(&(id % 5).to_string()), 100),
        (ContentId::user(RequestId(id)), 30),
    ];
    Arc::new(Request {
        id: RequestId(id),
        t_s: 0.0,
        key: "k".into(),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        prompt: contents.into_iter().map(|(content, n)| Segment(content, n)).collect(),
        output_tokens,
    })
}

/// A backend that is handed every batch, as the real one is, and reads all of it.
struct Reads(u64);

impl Backend for Reads {
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError> {
        self.0 += batch.seqs.iter().map(|seq| u64::from(seq.start) + seq.blocks.len() as u64).sum::<u64>();
        Ok(Time(self.0 % 1_000 + 1))
    }
}

/// What a shard allocates in 400 steps in which each of 32 sequences decodes, and fills blocks and evicts for them.
fn shard_allocations<P: Pool>(backend: Box<dyn Backend>) -> usize {
    let config = ShardConfig { kv_blocks: 1_300, ..ShardConfig::default() };
    let mut shard = Shard::<P>::new(config, backend);
    let (mut now, mut departed) = (Time::ZERO, Vec::new());
    let mut step = |shard: &mut Shard<P>| {
        if let Some(duration) = shard.start_step(now, &mut departed).unwrap() {
            // Of a leap, too, one step at a time.
            now = shard.cut_leap(now + Time(1)).unwrap_or(now + duration);
            shard.end_step(now, &mut departed);
        }
    };
    // Fill the pool, so that it has to evict.
    (0..300).for_each(|id| shard.enqueue(request(id, 2), Time::ZERO, false).unwrap());
    while shard.has_work() {
        step(&mut shard);
    }
    (1_000..1_032).for_each(|id| shard.enqueue(request(id, 1_000), Time::ZERO, false).unwrap());
    (0..100).for_each(|_| step(&mut shard));
    let evicted = shard.usage().evicted;
    let counted = allocations(|| (0..400).for_each(|_| step(&mut shard)));
    assert_eq!((shard.running(), shard.queued()), (32, 0));
    assert!(shard.usage().evicted > evicted, "the pool was meant to be full");
    counted
}

const TABLES: [[u32; 3]; 8] = {
    let mut tables = [[0; 3]; 8];
    let mut i = 0;
    while i < 24 {
        tables[i / 3][i % 3] = i as u32;
        i += 1;
    }
    tables
};

/// What ten steps of the real backend allocate, each of so many sequences decoding its 41st token or so; and what the same
/// ten steps allocate that are handed to the model without a backend around it.
fn model_allocations(seqs: usize) -> [usize; 2] {
    let config = ModelConfig::by_name_or_path("llama-tiny").unwrap();
    let model = Arc::new(Model::random(&config, 42, &Device::Cpu).unwrap());
    let requests: Vec<_> = (0..seqs as u64).map(|id| request(id, 50)).collect();
    let batch = |start| Batch {
        seqs: requests
            .iter()
            .zip(&TABLES)
            .map(|(request, blocks)| BatchSeq { request, start, tokens: 1, blocks, emits: true })
            .collect(),
        work: StepWork::default(),
    };
    let mut backend = ModelBackend::new(&model, 24, 16, StepTimes::Measured).unwrap();
    let batches: Vec<_> = (0..20).map(|step| batch(24 + step)).collect();
    batches[..10].iter().for_each(|batch| _ = backend.step(batch).unwrap());
    let with = allocations(|| batches[10..].iter().for_each(|batch| _ = backend.step(batch).unwrap()));

    let runner = best_runner(&model, 16).unwrap();
    let mut pool = runner.alloc(24, 16).unwrap();
    let mut greedy = Vec::with_capacity(seqs);
    let steps = batches.iter().map(|batch| {
        let mut step = Step::default();
        batch.seqs.iter().for_each(|seq| step.push(&[7], seq.start as usize + 1, seq.blocks, true));
        step
    });
    let steps: Vec<_> = steps.collect();
    let mut run = |step: &Step<'_>| {
        let logits = runner.step(step, &mut pool).unwrap();
        runner.argmax(&logits, &mut greedy).unwrap();
    };
    steps[..10].iter().for_each(&mut run);
    [with, allocations(|| steps[10..].iter().for_each(&mut run))]
}

fn main() {
    let cost = Arc::new(CostModel::by_name_or_path("70b-2xh100").unwrap());
    let sim = || Box::new(SimBackend::new(Arc::clone(&cost)));
    assert_eq!(shard_allocations::<RunPool>(sim()), 0, "leaps over runs");
    assert_eq!(shard_allocations::<BlockPool>(sim()), 0, "simulated steps over blocks");
    assert_eq!(shard_allocations::<BlockPool>(Box::new(Reads(0))), 0, "steps that are handed to a backend");

    // One thread that is rayon's own: handing work over to a pool allocates now and then.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let [one, bare] = alone.install(|| model_allocations(1));
    let [eight, bare_of_eight] = alone.install(|| model_allocations(8));
    assert_eq!((one, eight), (bare, bare_of_eight), "the backend adds nothing to the model");
    // As many tensors for eight sequences as for one, and nothing else that comes once a sequence.
    assert_eq!(one, eight);
}
