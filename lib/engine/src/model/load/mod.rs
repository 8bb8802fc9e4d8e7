//! Loading a model: by built-in name, TOML, GGUF file, safetensors folder, or the name of a cached hub model.

mod gguf;
mod safetensors;

use crate::EngineError;
use crate::model::hub::{Hub, HubName};
use crate::model::linear::Product;
use crate::model::weights::RandomWeights;
use crate::model::{Model, ModelConfig, TextTokenizer, compute_dtype};
use candle_core::{DType, Device};
use std::path::Path;

/// The type that dense weights are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quant {
    /// 8-bit integers in blocks of 32 with a scale each (Q8_0).
    Q8,
    /// 32-bit floats.
    F32,
    /// 16-bit brain floats. On a CPU they are widened as they are read: half the memory of f32, the same sums.
    Bf16,
}

impl Quant {
    /// The names, for usage errors.
    pub const NAMES: [&'static str; 3] = ["q8", "f32", "bf16"];

    /// By name.
    pub fn from_name(name: &str) -> Option<Quant> {
        [Quant::Q8, Quant::F32, Quant::Bf16]
            .into_iter()
            .zip(Self::NAMES)
            .find(|(_, n)| *n == name)
            .map(|(q, _)| q)
    }
}

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where the weights go.
    pub device: Device,
    /// Seed of random weights.
    pub seed: u64,
    /// The type of weights that come unquantised, the device's own where none. With `f32` or `bf16` weights that come
    /// quantised are unpacked.
    pub quant: Option<Quant>,
    /// Whether quantised types without a fast path become Q8_0 (CPU).
    pub requantise: bool,
}

impl LoadOptions {
    /// Random weights from seed 0, the device's own type, quantised types made fast.
    pub fn new(device: Device) -> LoadOptions {
        LoadOptions { device, seed: 0, quant: None, requantise: true }
    }

    /// The type of dense tensors, and who multiplies them.
    pub(super) fn dense(&self) -> (DType, Product) {
        match (self.quant, self.device.is_cpu()) {
            (None, _) => (compute_dtype(&self.device), Product::Kernel),
            (Some(Quant::F32), _) => (DType::F32, Product::Kernel),
            (Some(Quant::Q8), _) => (compute_dtype(&self.device), Product::Q8),
            (Some(Quant::Bf16), true) => (DType::F32, Product::Bf16),
            (Some(Quant::Bf16), false) => (DType::BF16, Product::Kernel),
        }
    }
}

impl LoadOptions {
    /// Whether quantised weights are unpacked.
    pub(super) fn unpacks(&self) -> bool {
        matches!(self.quant, Some(Quant::F32 | Quant::Bf16))
    }
}

/// A loaded model and what came with it.
#[derive(Debug)]
pub struct Loaded {
    /// The weights.
    pub model: Model,
    /// The tokenizer; none for random weights, or where the checkpoint has none.
    pub tokenizer: Option<TextTokenizer>,
    /// What a user should know: weights changed at load, a tokenizer that cannot be read.
    pub notes: Vec<String>,
}

/// What a model argument names.
pub(super) enum Source {
    /// Random weights of this shape.
    Random(ModelConfig),
    /// A GGUF file.
    Gguf(gguf::GgufModel),
    /// A folder of safetensors.
    Folder(safetensors::FolderModel),
}

/// Finds out what a model argument names, reading no weights: a built-in name, a TOML or GGUF file, a folder, or a hub
/// name such as `org/name` that [`Hub::fetch`] has put into the cache.
///
/// # Errors
/// Nothing of that name, or a file that cannot be read as what it is.
pub(super) fn open(spec: &str) -> Result<Source, EngineError> {
    let path = match HubName::of(spec) {
        Some(name) => &Hub::from_env().cached(&name)?,
        None => Path::new(spec),
    };
    if path.is_dir() {
        return Ok(Source::Folder(safetensors::FolderModel::open(path)?));
    }
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) {
        return Ok(Source::Gguf(gguf::GgufModel::open(path)?));
    }
    Ok(Source::Random(ModelConfig::by_name_or_path(spec)?))
}

impl Source {
    /// The shape.
    pub(super) fn config(&self) -> &ModelConfig {
        match self {
            Source::Random(config) => config,
            Source::Gguf(gguf) => gguf.config(),
            Source::Folder(folder) => folder.config(),
        }
    }

    /// Whether the weights come quantised.
    pub(super) fn is_quantised(&self) -> bool {
        matches!(self, Source::Gguf(gguf) if gguf.is_quantised())
    }

    /// What the weights are, in words.
    pub(super) fn format(&self) -> String {
        match self {
            Source::Random(_) => "random weights".into(),
            Source::Gguf(gguf) => gguf.format(),
            Source::Folder(folder) => folder.format(),
        }
    }
}

/// Loads a model.
///
/// # Errors
/// Nothing of that name; an architecture, type or tensor that is not supported or missing; a truncated file; options
/// that the device does not allow. The message names the file.
pub fn load(spec: &str, options: &LoadOptions) -> Result<Loaded, EngineError> {
    let (dtype, product) = options.dense();
    load_as(spec, options, dtype, product)
}

/// Loads a model as a reference to hold others against: f32 on the CPU, all products by candle.
///
/// # Errors
/// As for [`load`].
pub fn load_reference(spec: &str, seed: u64) -> Result<Loaded, EngineError> {
    let options = LoadOptions { seed, quant: Some(Quant::F32), ..LoadOptions::new(Device::Cpu) };
    load_as(spec, &options, DType::F32, Product::Candle)
}

fn load_as(spec: &str, options: &LoadOptions, dtype: DType, product: Product) -> Result<Loaded, EngineError> {
    match open(spec)? {
        Source::Random(config) => {
            let source = RandomWeights { seed: options.seed, device: options.device.clone(), dtype };
            let model = Model::from_source(&config, &source, &options.device, product)?;
            Ok(Loaded { model, tokenizer: None, notes: Vec::new() })
        }
        Source::Gguf(gguf) => gguf.load(options, dtype, product),
        Source::Folder(folder) => folder.load(options, dtype, product),
    }
}

/// An error about a file.
fn file_error(path: &Path, what: impl std::fmt::Display) -> EngineError {
    EngineError::Config(format!("{}: {what}", path.display()))
}
