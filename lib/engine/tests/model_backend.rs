//! The model behind the scheduler's trait: batches in, durations and tokens out.
#![allow(clippy::unwrap_used)]

use candle_core::Device;
use cr_cost::{CostModel, StepWork};
use cr_engine::model::{Model, ModelBackend, ModelConfig, StepTimes};
use cr_engine::{Backend, Batch, BatchSeq};
use cr_trace::{ContentId, Request, RequestId, Segment, Time};
use std::sync::Arc;

fn request(id: u64, prompt: &[(&str, u32)]) -> Request {
    Request {
        id: RequestId(id),
        t_s: 0.0,
        key: "k".into(),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        prompt: prompt.iter().map(|&(content, n)| Segment(ContentId::new(content), n)).collect(),
        output_tokens: 4,
    }
}

fn backend(times: StepTimes) -> ModelBackend {
    let config = ModelConfig::by_name_or_path("llama-tiny").unwrap();
    let model = Arc::new(Model::random(&config, 42, &Device::Cpu).unwrap());
    ModelBackend::new(&model, 16, 16, times).unwrap()
}

fn step(backend: &mut ModelBackend, seqs: &[BatchSeq<'_>], work: StepWork) -> Time {
    backend.step(&Batch { seqs: seqs.to_vec(), work }).unwrap()
}

#[test]
fn measured_steps_take_time_and_yield_one_token_a_sequence_that_emits() {
    let mut backend = backend(StepTimes::Measured);
    let (a, b) = (request(0, &[("g:t", 20), ("k:x", 5)]), request(1, &[("g:t", 20), ("k:y", 9)]));
    let prefill = [
        BatchSeq { request: &a, start: 0, tokens: 25, blocks: &[0, 1], emits: true },
        BatchSeq { request: &b, start: 0, tokens: 10, blocks: &[2, 3], emits: false },
    ];
    assert!(step(&mut backend, &prefill, StepWork::default()) > Time::ZERO);
    assert_eq!(backend.emitted().len(), 1);
    let mixed = [
        BatchSeq { request: &a, start: 25, tokens: 1, blocks: &[0, 1], emits: true },
        BatchSeq { request: &b, start: 10, tokens: 19, blocks: &[2, 3], emits: true },
    ];
    step(&mut backend, &mixed, StepWork::default());
    assert_eq!(backend.emitted().len(), 2);
    let none = [BatchSeq { request: &b, start: 0, tokens: 10, blocks: &[4], emits: false }];
    assert!(step(&mut backend, &none, StepWork::default()) > Time::ZERO);
    assert!(backend.emitted().is_empty());
    assert_eq!(backend.context_tokens(), Some(4096));
    backend.forget(&a);
}

#[test]
fn modelled_steps_compute_the_same_tokens_and_take_what_the_model_says() {
    let cost = CostModel::from_toml(
        "schema = \"cacheroute.cost/1\"\nname = \"x\"\nsource = \"x\"\n[step]\nbase_ms = 5.0\nprefill_token_ms = 0.1",
        "x.toml",
    )
    .unwrap();
    let request = request(3, &[("g:t", 30)]);
    let seqs = [BatchSeq { request: &request, start: 0, tokens: 30, blocks: &[9, 4], emits: true }];
    let mut work = StepWork::default();
    work.add_prefill(30, 0);
    let mut modelled = backend(StepTimes::Modelled(cost));
    assert_eq!(step(&mut modelled, &seqs, work), Time::from_s(0.008));
    let mut measured = backend(StepTimes::Measured);
    step(&mut measured, &seqs, work);
    assert_eq!(modelled.emitted(), measured.emitted());
}

#[test]
fn a_shared_prefix_read_from_the_pool_gives_the_tokens_of_a_cold_run() {
    let (a, b) = (request(0, &[("g:t", 32), ("k:x", 8)]), request(1, &[("g:t", 32), ("k:y", 8)]));
    let mut cold = backend(StepTimes::Measured);
    let whole = [BatchSeq { request: &b, start: 0, tokens: 40, blocks: &[5, 2, 8], emits: true }];
    step(&mut cold, &whole, StepWork::default());

    let mut warm = backend(StepTimes::Measured);
    let donor = [BatchSeq { request: &a, start: 0, tokens: 40, blocks: &[0, 1, 2], emits: true }];
    step(&mut warm, &donor, StepWork::default());
    let reuse = [BatchSeq { request: &b, start: 32, tokens: 8, blocks: &[0, 1, 3], emits: true }];
    step(&mut warm, &reuse, StepWork::default());
    assert_eq!(warm.emitted(), cold.emitted());
}

#[test]
fn a_malformed_batch_is_an_error_and_no_panic() {
    let request = request(0, &[("g:t", 40)]);
    let seqs = [BatchSeq { request: &request, start: 0, tokens: 40, blocks: &[0, 99, 1], emits: true }];
    let error = backend(StepTimes::Measured).step(&Batch { seqs: seqs.to_vec(), ..Batch::default() });
    assert!(error.unwrap_err().to_string().contains("block 99 of a pool of 16"));
}
