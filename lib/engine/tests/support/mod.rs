//! What the tests of the model share: tiny random checkpoints, and candle-transformers' Llama as the reference.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod files;
pub mod hub;
pub mod theirs;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama};
use cr_engine::model::weights::{RandomWeights, Stored, WeightSource};
use cr_engine::model::{
    AttnBackend, FusedAttention, Isa, KvPool, Model, ModelConfig, ModelRunner, Product, Runner, Step,
    StockAttention,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A checkpoint in memory.
pub struct Checkpoint(pub HashMap<String, Tensor>);

impl WeightSource for Checkpoint {
    fn stored(&self, name: &str, shape: &[usize]) -> Result<Stored> {
        let tensor = self.0.get(name).ok_or_else(|| candle_core::Error::Msg(format!("no {name}")))?;
        assert_eq!(tensor.dims(), shape, "{name}");
        Ok(Stored::Dense(tensor.clone()))
    }
}

/// A shape from its TOML fields.
pub fn config(fields: &str) -> ModelConfig {
    let text = format!(
        "schema = \"cacheroute.model/1\"\nname = \"test\"\nrope_theta = 10000.0\nnorm_eps = 1e-5\n{fields}"
    );
    ModelConfig::from_toml(&text, "test").unwrap()
}

/// A shape whose head width is 24: no power of two, no multiple of 16.
pub fn odd_config() -> ModelConfig {
    config("hidden = 144\nff = 200\nlayers = 3\nheads = 6\nkv_heads = 2\nvocab = 301\ncontext = 1200")
}

/// A shape with a head width of 64 and an output projection of its own.
pub fn even_config() -> ModelConfig {
    config(
        "hidden = 256\nff = 256\nlayers = 3\nheads = 4\nkv_heads = 2\nvocab = 500\ncontext = 1200\n\
         tied_embeddings = false",
    )
}

/// Random weights with uneven norms, scaled so that logits reach about 100.
pub fn checkpoint(config: &ModelConfig) -> Checkpoint {
    let source = RandomWeights { seed: 3, device: Device::Cpu, dtype: DType::F32 };
    let mut map = HashMap::new();
    let mut put = |name: String, shape: &[usize]| {
        let tensor = if name.ends_with("norm.weight") {
            let noise = source.tensor(&format!("{name}/noise"), shape).unwrap();
            noise.affine(2.0, 1.0).unwrap()
        } else if name == "lm_head.weight" || (config.tied_embeddings && name.contains("embed_tokens")) {
            (source.tensor(&name, shape).unwrap() * 25.0).unwrap()
        } else {
            source.tensor(&name, shape).unwrap()
        };
        map.insert(name, tensor);
    };
    let (hidden, ff) = (config.hidden, config.ff);
    put("model.embed_tokens.weight".into(), &[config.vocab, hidden]);
    put("model.norm.weight".into(), &[hidden]);
    if !config.tied_embeddings {
        put("lm_head.weight".into(), &[config.vocab, hidden]);
    }
    for layer in 0..config.layers {
        for (part, shape) in [
            ("input_layernorm", vec![hidden]),
            ("post_attention_layernorm", vec![hidden]),
            ("self_attn.q_proj", vec![config.q_width(), hidden]),
            ("self_attn.k_proj", vec![config.kv_width(), hidden]),
            ("self_attn.v_proj", vec![config.kv_width(), hidden]),
            ("self_attn.o_proj", vec![hidden, config.q_width()]),
            ("mlp.gate_proj", vec![ff, hidden]),
            ("mlp.up_proj", vec![ff, hidden]),
            ("mlp.down_proj", vec![hidden, ff]),
        ] {
            put(format!("model.layers.{layer}.{part}.weight"), &shape);
        }
        let (q, kv) = (config.q_width(), config.kv_width());
        for (part, width) in [("q_proj", q), ("k_proj", kv), ("v_proj", kv)] {
            if config.qkv_bias {
                put(format!("model.layers.{layer}.self_attn.{part}.bias"), &[width]);
            }
        }
        for part in ["q_norm", "k_norm"] {
            if config.qk_norm {
                put(format!("model.layers.{layer}.self_attn.{part}.weight"), &[config.head_dim]);
            }
        }
    }
    Checkpoint(map)
}

/// The logits after each sequence's last token, from candle-transformers, one sequence at a time.
pub fn reference(config: &ModelConfig, checkpoint: &Checkpoint, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    assert_eq!(
        config.head_dim * config.heads,
        config.hidden * (config.head_dim * config.heads) / config.hidden
    );
    let theirs = theirs::llama_config(config);
    let vars = VarBuilder::from_tensors(checkpoint.0.clone(), DType::F32, &Device::Cpu);
    let llama = Llama::load(vars, &theirs).unwrap();
    sequences
        .iter()
        .map(|tokens| {
            let mut cache = Cache::new(true, DType::F32, &theirs, &Device::Cpu).unwrap();
            let input = Tensor::new(tokens.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            llama.forward(&input, 0, &mut cache).unwrap().squeeze(0).unwrap().to_vec1().unwrap()
        })
        .collect()
}

/// Sequences of the given lengths with reproducible tokens.
pub fn sequences(lengths: &[usize], vocab: usize) -> Vec<Vec<u32>> {
    let token = |i: usize, j: usize| ((j * 31 + i * 17 + j * j) % vocab) as u32;
    lengths.iter().enumerate().map(|(i, &n)| (0..n).map(|j| token(i, j)).collect()).collect()
}

/// A block table for each sequence, interleaved and descending so that neighbours never adjoin; and the pool's size.
pub fn scattered_tables(lengths: &[usize], block_tokens: usize) -> (Vec<Vec<u32>>, usize) {
    let longest = lengths.iter().max().unwrap().div_ceil(block_tokens);
    let (n, blocks) = (lengths.len(), lengths.len() * longest);
    let tables = (0..n).map(|i| (0..longest).map(|j| (blocks - 1 - (j * n + i)) as u32).collect()).collect();
    (tables, blocks)
}

/// One sequence's part of a step: sequence, first position, rows, whether its logits are wanted.
pub type Part = (usize, usize, usize, bool);

/// Runs one step over parts of sequences; gives the logits of the emitting parts.
pub fn run(
    runner: &dyn Runner,
    pool: &mut KvPool,
    sequences: &[Vec<u32>],
    tables: &[Vec<u32>],
    parts: &[Part],
) -> Vec<Vec<f32>> {
    let mut step = Step::default();
    for &(seq, start, rows, emits) in parts {
        step.push(&sequences[seq][start..start + rows], start + rows, &tables[seq], emits);
    }
    let logits = runner.step(&step, pool).unwrap();
    logits.to_dtype(DType::F32).unwrap().to_vec2().unwrap()
}

/// The stock runner of a checkpoint.
pub fn stock(config: &ModelConfig, checkpoint: &Checkpoint) -> ModelRunner<StockAttention> {
    let model = Arc::new(Model::from_source(config, checkpoint, &Device::Cpu, Product::Candle).unwrap());
    let attention = StockAttention::new(&model).unwrap();
    runner(model, attention)
}

/// The runner of a checkpoint on the CPU kernels.
pub fn fused(
    config: &ModelConfig,
    checkpoint: &Checkpoint,
    block_tokens: usize,
    isa: Isa,
) -> ModelRunner<FusedAttention> {
    let model = Arc::new(Model::from_source(config, checkpoint, &Device::Cpu, Product::Kernel).unwrap());
    let attention =
        FusedAttention::for_model(&model, block_tokens, isa).expect("the kernels cover the shape");
    runner(model, attention)
}

/// A runner of any backend.
pub fn runner<A: AttnBackend>(model: Arc<Model>, attention: A) -> ModelRunner<A> {
    ModelRunner::new(model, attention)
}

/// Asserts that logits agree within `tolerance` of the reference's largest magnitude.
pub fn assert_close(ours: &[f32], reference: &[f32], tolerance: f32, what: &str) {
    let scale = reference.iter().fold(0f32, |m, v| m.max(v.abs()));
    let worst = ours.iter().zip(reference).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
    assert_eq!(ours.len(), reference.len(), "{what}");
    assert!(scale > 1.0, "{what}: the reference is flat ({scale})");
    assert!(worst <= tolerance * scale, "{what}: off by {worst} at scale {scale}");
}

/// Values of variance 1, `[rows, width]`.
pub fn noise(seed: u64, rows: usize, width: usize) -> Tensor {
    let source = RandomWeights { seed, device: Device::Cpu, dtype: DType::F32 };
    source.tensor("noise", &[rows * width, 1]).unwrap().reshape((rows, width)).unwrap()
}
