//! Folders as Hugging Face publishes them: `config.json`, `*.safetensors`, `tokenizer.json`.

use super::{LoadOptions, Loaded, file_error};
use crate::EngineError;
use crate::model::linear::Product;
use crate::model::weights::{Stored, WeightSource};
use crate::model::{Model, ModelConfig, RopeScaling, TextTokenizer};
use candle_core::{DType, Device, Result, Tensor, bail};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Architectures, by their `model_type`.
const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

/// An opened folder: its configuration, no weights yet.
pub(in crate::model) struct FolderModel {
    folder: PathBuf,
    files: Vec<PathBuf>,
    config: ModelConfig,
}

/// `config.json`, as far as it matters here.
#[derive(Deserialize)]
struct HfConfig {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rope_theta: Option<f64>,
    rms_norm_eps: Option<f64>,
    #[serde(default)]
    tie_word_embeddings: bool,
    rope_scaling: Option<HfRope>,
    rope_parameters: Option<HfRope>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    use_sliding_window: bool,
    quantization_config: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct HfRope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

impl FolderModel {
    pub(super) fn open(folder: &Path) -> std::result::Result<FolderModel, EngineError> {
        let path = folder.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|e| file_error(&path, e))?;
        let parsed: HfConfig = serde_json::from_str(&text).map_err(|e| file_error(&path, e))?;
        let config = parsed.into_config(folder).map_err(|what| file_error(&path, what))?;
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .map_err(|e| file_error(folder, e))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
            .collect();
        files.sort();
        if files.is_empty() {
            return Err(file_error(folder, "no *.safetensors files in this folder"));
        }
        Ok(FolderModel { folder: folder.into(), files, config })
    }

    pub(super) fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub(super) fn format(&self) -> String {
        format!("safetensors, {} file(s)", self.files.len())
    }

    pub(super) fn load(
        &self,
        options: &LoadOptions,
        dtype: DType,
        product: Product,
    ) -> std::result::Result<Loaded, EngineError> {
        let mut tensors = HashMap::new();
        for path in &self.files {
            let file = candle_core::safetensors::load(path, &Device::Cpu)
                .map_err(|e| file_error(path, format!("no readable safetensors file: {e}")))?;
            tensors.extend(file);
        }
        let source = FolderSource { tensors, dtype, device: &options.device };
        let model = Model::from_source(&self.config, &source, &options.device, product)
            .map_err(|e| file_error(&self.folder, e))?;
        let mut notes = Vec::new();
        let path = self.folder.join("tokenizer.json");
        let tokenizer = TextTokenizer::from_file(&path, &self.folder.join("generation_config.json"))
            .map_err(|e| notes.push(format!("{}: no tokenizer: {e}", path.display())))
            .ok();
        Ok(Loaded { model, tokenizer, notes })
    }
}

impl HfConfig {
    fn into_config(self, folder: &Path) -> std::result::Result<ModelConfig, String> {
        if !ARCHITECTURES.contains(&self.model_type.as_str()) {
            let known = ARCHITECTURES.join(", ");
            return Err(format!("model_type {} is not supported; supported are {known}", self.model_type));
        }
        for (field, set) in [
            ("mlp_bias", self.mlp_bias),
            ("use_sliding_window", self.use_sliding_window),
            ("quantization_config", self.quantization_config.is_some()),
        ] {
            if set {
                return Err(format!("{field} is not supported"));
            }
        }
        let parameters = self.rope_parameters.as_ref();
        let theta = self.rope_theta.or(parameters.and_then(|rope| rope.rope_theta));
        let head_dim = self.hidden_size.checked_div(self.num_attention_heads);
        let config = ModelConfig {
            schema: ModelConfig::schema(),
            name: folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            hidden: self.hidden_size,
            ff: self.intermediate_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            kv_heads: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            head_dim: self.head_dim.or(head_dim).ok_or("num_attention_heads is 0")?,
            vocab: self.vocab_size,
            context: self.max_position_embeddings,
            rope_theta: theta.unwrap_or(10_000.0),
            norm_eps: self.rms_norm_eps.unwrap_or(1e-6),
            tied_embeddings: self.tie_word_embeddings,
            qkv_bias: self.attention_bias || self.model_type == "qwen2",
            qk_norm: self.model_type == "qwen3",
            rope_scaling: match self.rope_scaling.as_ref().or(parameters) {
                Some(rope) => rope.scaling()?,
                None => None,
            },
        };
        if self.attention_bias && self.model_type == "llama" {
            return Err(
                "attention_bias is not supported for llama, whose output projection has one too".into()
            );
        }
        config.validate()?;
        Ok(config)
    }
}

impl HfRope {
    fn scaling(&self) -> std::result::Result<Option<RopeScaling>, String> {
        let need =
            |field: &str, value: Option<f64>| value.ok_or_else(|| format!("rope_scaling has no {field}"));
        match self.rope_type.as_deref() {
            None | Some("default") => Ok(None),
            Some("linear") => Ok(Some(RopeScaling::Linear { factor: need("factor", self.factor)? })),
            Some("llama3") => Ok(Some(RopeScaling::Llama3 {
                factor: need("factor", self.factor)?,
                low_freq_factor: need("low_freq_factor", self.low_freq_factor)?,
                high_freq_factor: need("high_freq_factor", self.high_freq_factor)?,
                original_context: need(
                    "original_max_position_embeddings",
                    self.original_max_position_embeddings,
                )?,
            })),
            Some(other) => Err(format!(
                "rope_scaling {other} is not supported; supported are default, linear and llama3"
            )),
        }
    }
}

/// Gives the tensors of all files.
struct FolderSource<'a> {
    tensors: HashMap<String, Tensor>,
    dtype: DType,
    device: &'a Device,
}

impl WeightSource for FolderSource<'_> {
    fn stored(&self, name: &str, shape: &[usize]) -> Result<Stored> {
        let Some(tensor) = self.tensors.get(name) else { bail!("tensor {name} is missing") };
        if tensor.dims() != shape {
            bail!("tensor {name} is {:?}, expected {shape:?}", tensor.dims())
        }
        if !matches!(tensor.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            bail!("tensor {name} is {:?}, expected f32, f16 or bf16", tensor.dtype())
        }
        Ok(Stored::Dense(tensor.to_dtype(self.dtype)?.to_device(self.device)?))
    }
}
