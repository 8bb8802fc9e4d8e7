//! The layers of a Llama-style decoder.

use crate::EngineError;
use crate::model::attention::AttnBackend;
use crate::model::linear::Linear;
use crate::model::rope::RopeTable;
use crate::model::weights::{RandomWeights, WeightSource};
use crate::model::{KvPool, KvSpec, ModelConfig, Step, compute_dtype};
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::rms_norm;

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
        Ok(Model::from_source(config, &source, device)?)
    }

    /// A model whose weights come from `source`, which gives them on `device` in one type.
    ///
    /// # Errors
    /// A missing tensor or a wrong shape, or a device out of memory.
    pub fn from_source(config: &ModelConfig, source: &dyn WeightSource, device: &Device) -> Result<Model> {
        let embedding = source.tensor("model.embed_tokens.weight", &[config.vocab, config.hidden])?;
        let head = if config.tied_embeddings {
            embedding.clone()
        } else {
            source.tensor("lm_head.weight", &[config.vocab, config.hidden])?
        };
        Ok(Model {
            dtype: embedding.dtype(),
            device: device.clone(),
            layers: (0..config.layers)
                .map(|layer| Layer::load(config, source, layer))
                .collect::<Result<_>>()?,
            norm: source.tensor("model.norm.weight", &[config.hidden])?,
            head: Linear::new(head)?,
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
            let qkv = layer.qkv.forward(&rms_norm(&x, &layer.attention_norm, eps)?)?;
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
    fn load(config: &ModelConfig, source: &dyn WeightSource, layer: usize) -> Result<Layer> {
        let (hidden, ff) = (config.hidden, config.ff);
        let (q, kv) = (config.q_width(), config.kv_width());
        let get = |part: &str, shape: &[usize]| {
            source.tensor(&format!("model.layers.{layer}.{part}.weight"), shape)
        };
        let qkv = Tensor::cat(
            &[
                get("self_attn.q_proj", &[q, hidden])?,
                get("self_attn.k_proj", &[kv, hidden])?,
                get("self_attn.v_proj", &[kv, hidden])?,
            ],
            0,
        )?;
        let gate_up =
            Tensor::cat(&[get("mlp.gate_proj", &[ff, hidden])?, get("mlp.up_proj", &[ff, hidden])?], 0)?;
        Ok(Layer {
            attention_norm: get("input_layernorm", &[hidden])?,
            qkv: Linear::new(qkv)?,
            output: Linear::new(get("self_attn.o_proj", &[hidden, q])?)?,
            ff_norm: get("post_attention_layernorm", &[hidden])?,
            gate_up: Linear::new(gate_up)?,
            down: Linear::new(get("mlp.down_proj", &[hidden, ff])?)?,
        })
    }
}
