//! The layers of a Llama-style decoder.

use crate::EngineError;
use crate::model::attention::AttnBackend;
use crate::model::linear::{Linear, Product};
use crate::model::memory::keep_freed_memory;
use crate::model::rope::RopeTable;
use crate::model::weights::{RandomWeights, WeightSource};
use crate::model::{KvPool, KvSpec, ModelConfig, Quant, Step, compute_dtype};
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::rms_norm;
use rayon::prelude::*;

/// The weights of a model, on one device. Shared by all shards.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    dtype: DType,
    device: Device,
    /// `[vocab, hidden]`.
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    rope: RopeTable,
}

/// One layer: attention and feed-forward, each behind a norm and added to the residual stream.
#[derive(Debug)]
struct Layer {
    attention_norm: Tensor,
    /// Queries, keys and values in one product.
    qkv: Linear,
    /// Norms of each head's query and key.
    head_norms: Option<(Tensor, Tensor)>,
    output: Linear,
    ff_norm: Tensor,
    /// Gate and up in one product.
    gate_up: Linear,
    down: Linear,
}

impl Model {
    /// A model with random weights: a pure function of shape and seed.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn random(
        config: &ModelConfig,
        seed: u64,
        device: &Device,
    ) -> std::result::Result<Model, EngineError> {
        let source = RandomWeights { seed, device: device.clone(), dtype: compute_dtype(device) };
        Ok(Model::from_source(config, &source, device, Product::Kernel)?)
    }

    /// A model whose weights come from `source`, which gives them on `device` in one type.
    ///
    /// # Errors
    /// A missing tensor or a wrong shape, or a device out of memory.
    pub fn from_source(
        config: &ModelConfig,
        source: &dyn WeightSource,
        device: &Device,
        product: Product,
    ) -> Result<Model> {
        if device.is_cpu() {
            keep_freed_memory();
        }
        let embedding = source.tensor("model.embed_tokens.weight", &[config.vocab, config.hidden])?;
        let head = if config.tied_embeddings { "model.embed_tokens" } else { "lm_head" };
        let head = Linear::load(source, &[(head, config.vocab)], config.hidden, product, false)?;
        Ok(Model {
            dtype: embedding.dtype(),
            device: device.clone(),
            layers: (0..config.layers)
                .into_par_iter()
                .map(|layer| Layer::load(config, source, layer, product))
                .collect::<Result<_>>()?,
            norm: source.tensor("model.norm.weight", &[config.hidden])?,
            head,
            rope: RopeTable::new(config),
            config: config.clone(),
            embedding,
        })
    }

    /// The shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The type of activations and of the pool.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// What the weights of its linear layers were rounded to, if they were.
    pub fn quant(&self) -> Option<Quant> {
        self.head.quant()
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The rotary table.
    pub fn rope(&self) -> &RopeTable {
        &self.rope
    }

    /// What one token takes in a pool.
    pub fn kv_spec(&self) -> KvSpec {
        KvSpec {
            layers: self.config.layers,
            kv_heads: self.config.kv_heads,
            head_dim: self.config.head_dim,
            dtype: self.dtype,
        }
    }

    /// Feeds a step through all layers and gives the logits `[logit_rows, vocab]` of the rows asked for.
    ///
    /// # Errors
    /// The device refuses.
    pub fn forward<A: AttnBackend>(
        &self,
        attention: &A,
        step: &Step<'_>,
        pool: &mut KvPool,
    ) -> Result<Tensor> {
        let plan = attention.plan(self, step, pool)?;
        let eps = self.config.norm_eps as f32;
        let ids = Tensor::from_slice(&step.tokens, step.tokens.len(), &self.device)?;
        let mut x = self.embedding.index_select(&ids, 0)?;
        for (i, layer) in self.layers.iter().enumerate() {
            let qkv = layer.project(&rms_norm(&x, &layer.attention_norm, eps)?, &self.config, eps)?;
            let attended = attention.write_and_attend(i, &qkv, &plan, pool)?;
            x = (x + layer.output.forward(&attended)?)?;
            let gate_up = layer.gate_up.forward(&rms_norm(&x, &layer.ff_norm, eps)?)?;
            x = (x + layer.down.forward(&attention.swiglu(&gate_up)?)?)?;
        }
        if step.logit_rows.is_empty() {
            return Tensor::zeros((0, self.config.vocab), self.dtype, &self.device);
        }
        let rows = Tensor::from_slice(&step.logit_rows, step.logit_rows.len(), &self.device)?;
        let x = rms_norm(&x.index_select(&rows, 0)?, &self.norm, eps)?;
        self.head.forward(&x)
    }
}

impl Layer {
    fn load(
        config: &ModelConfig,
        source: &dyn WeightSource,
        layer: usize,
        product: Product,
    ) -> Result<Layer> {
        let (hidden, ff) = (config.hidden, config.ff);
        let (q, kv) = (config.q_width(), config.kv_width());
        let part = |name: &str| format!("model.layers.{layer}.{name}");
        let norm = |name: &str, width: usize| source.tensor(&format!("{}.weight", part(name)), &[width]);
        let linear = |parts: &[(&str, usize)], inputs: usize, bias: bool| {
            let parts: Vec<_> = parts.iter().map(|(name, outputs)| (part(name), *outputs)).collect();
            let parts: Vec<_> = parts.iter().map(|(name, outputs)| (name.as_str(), *outputs)).collect();
            Linear::load(source, &parts, inputs, product, bias)
        };
        let heads = [("self_attn.q_proj", q), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv)];
        Ok(Layer {
            attention_norm: norm("input_layernorm", hidden)?,
            qkv: linear(&heads, hidden, config.qkv_bias)?,
            head_norms: if config.qk_norm {
                let dim = config.head_dim;
                Some((norm("self_attn.q_norm", dim)?, norm("self_attn.k_norm", dim)?))
            } else {
                None
            },
            output: linear(&[("self_attn.o_proj", hidden)], q, false)?,
            ff_norm: norm("post_attention_layernorm", hidden)?,
            gate_up: linear(&[("mlp.gate_proj", ff), ("mlp.up_proj", ff)], hidden, false)?,
            down: linear(&[("mlp.down_proj", hidden)], ff, false)?,
        })
    }

    /// Queries, keys and values of all rows, `[rows, qkv_width]`; each head's query and key normed where the model
    /// does that.
    fn project(&self, x: &Tensor, config: &ModelConfig, eps: f32) -> Result<Tensor> {
        let qkv = self.qkv.forward(x)?;
        let Some((q_norm, k_norm)) = &self.head_norms else { return Ok(qkv) };
        let rows = qkv.dim(0)?;
        let normed = |start: usize, heads: usize, norm: &Tensor| {
            let part = qkv.narrow(1, start, heads * config.head_dim)?.contiguous()?;
            let by_head = part.reshape((rows * heads, config.head_dim))?;
            rms_norm(&by_head, norm, eps)?.reshape((rows, heads * config.head_dim))
        };
        let (q, kv) = (config.q_width(), config.kv_width());
        let values = qkv.narrow(1, q + kv, kv)?;
        Tensor::cat(&[normed(0, config.heads, q_norm)?, normed(q, config.kv_heads, k_norm)?, values], 1)
    }
}
