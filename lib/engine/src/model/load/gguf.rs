//! GGUF files of the Llama, Qwen2 and Qwen3 families.

use super::{LoadOptions, Loaded, file_error};
use crate::EngineError;
use crate::model::linear::Product;
use crate::model::weights::{Stored, WeightSource};
use crate::model::{Model, ModelConfig, RopeScaling, TextTokenizer};
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{DType, Device, Result, bail};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Architectures, by their GGUF name.
const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

/// An opened GGUF file: its header, no weights yet.
pub(in crate::model) struct GgufModel {
    path: PathBuf,
    content: Content,
    config: ModelConfig,
}

impl GgufModel {
    pub(super) fn open(path: &Path) -> std::result::Result<GgufModel, EngineError> {
        let file = File::open(path).map_err(|e| file_error(path, e))?;
        let mut reader = BufReader::new(file);
        refuse_no_alignment(&mut reader).map_err(|e| file_error(path, e))?;
        let content = Content::read(&mut reader)
            .map_err(|e| file_error(path, format!("no readable GGUF file: {e}")))?;
        let config = read_config(&content, path).map_err(|what| file_error(path, what))?;
        Ok(GgufModel { path: path.into(), content, config })
    }

    pub(super) fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Whether its linear layers are in a quantised type.
    pub(super) fn is_quantised(&self) -> bool {
        let float = |dtype| matches!(dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        self.content.tensor_infos.values().any(|info| !float(info.ggml_dtype))
    }

    /// The types of its tensors, the most frequent first.
    pub(super) fn format(&self) -> String {
        let types = self.content.tensor_infos.values().map(|info| format!("{:?}", info.ggml_dtype));
        format!("GGUF, tensors: {}", count(types))
    }

    pub(super) fn load(
        &self,
        options: &LoadOptions,
        dtype: DType,
        product: Product,
    ) -> std::result::Result<Loaded, EngineError> {
        let source = GgufSource {
            gguf: self,
            device: &options.device,
            dtype,
            keep_all: !options.requantise,
            unpack_all: options.unpacks(),
            changed: Mutex::default(),
        };
        let model = Model::from_source(&self.config, &source, &options.device, product)
            .map_err(|e| file_error(&self.path, e))?;
        let mut notes = Vec::new();
        let changed = source.changed.into_inner().unwrap_or_default();
        if !changed.is_empty() {
            let types = count(changed.into_values());
            let path = self.path.display();
            notes.push(format!(
                "{path}: requantised {types} tensors to Q8_0, which is faster here; --no-requant keeps them"
            ));
        }
        let tokenizer = TextTokenizer::from_gguf(&self.content)
            .map_err(|e| notes.push(format!("{}: no tokenizer: {e}", self.path.display())))
            .ok();
        Ok(Loaded { model, tokenizer, notes })
    }
}

/// Refuses a file that aligns its tensors to multiples of nothing, by which candle would divide. All else that a header can
/// get wrong is an error of candle's.
fn refuse_no_alignment(reader: &mut (impl Read + Seek)) -> std::result::Result<(), String> {
    const KEY: &[u8] = b"general.alignment";
    /// Metadata is shorter than this.
    const HEADER_BYTES: u64 = 64 << 20;
    let mut header = Vec::new();
    reader.by_ref().take(HEADER_BYTES).read_to_end(&mut header).map_err(|e| e.to_string())?;
    reader.rewind().map_err(|e| e.to_string())?;
    for at in memchr::memmem::find_iter(&header, KEY) {
        let value = &header[at + KEY.len()..];
        // The type of the value, then the value, little-endian.
        let width = match value.first_chunk::<4>().map(|kind| u32::from_le_bytes(*kind)) {
            Some(0 | 1) => 1,
            Some(2 | 3) => 2,
            Some(4 | 5) => 4,
            _ => continue,
        };
        if value[4..].iter().take(width).all(|&byte| byte == 0) {
            return Err("general.alignment is 0".into());
        }
    }
    Ok(())
}

/// "210 Q4_1, 61 F32": how often each name comes, the most frequent first.
fn count(names: impl Iterator<Item = String>) -> String {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_insert(0usize) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<_> = counts.into_iter().map(|(name, count)| format!("{count} {name}")).collect();
    counts.join(", ")
}

/// The shape, from the metadata.
fn read_config(content: &Content, path: &Path) -> std::result::Result<ModelConfig, String> {
    let get = |key: &str| content.metadata.get(key);
    let architecture = get("general.architecture")
        .and_then(|value| value.to_string().ok())
        .ok_or("general.architecture is missing")?;
    if !ARCHITECTURES.contains(&architecture.as_str()) {
        return Err(format!(
            "architecture {architecture} is not supported; supported are {}",
            ARCHITECTURES.join(", ")
        ));
    }
    let optional = |key: &str| get(&format!("{architecture}.{key}"));
    let number = |key: &str| match optional(key) {
        Some(value) => integer(value).map(Some).ok_or_else(|| format!("{architecture}.{key} is no number")),
        None => Ok(None),
    };
    let required = |key: &str| number(key)?.ok_or_else(|| format!("{architecture}.{key} is missing"));
    let float = |key: &str| optional(key).and_then(|value| value.to_f32().ok()).map(f64::from);
    let embedding = content.tensor_infos.get("token_embd.weight").ok_or("token_embd.weight is missing")?;
    let (hidden, heads) = (required("embedding_length")?, required("attention.head_count")?);
    let head_dim = match number("attention.key_length")? {
        Some(dim) => dim,
        None => hidden.checked_div(heads).ok_or("attention.head_count is 0")?,
    };
    let config = ModelConfig {
        schema: ModelConfig::schema(),
        name: path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        hidden,
        ff: required("feed_forward_length")?,
        layers: required("block_count")?,
        heads,
        kv_heads: number("attention.head_count_kv")?.unwrap_or(heads),
        head_dim,
        vocab: embedding.shape.dims().first().copied().unwrap_or(0),
        context: required("context_length")?,
        rope_theta: float("rope.freq_base").unwrap_or(10_000.0),
        norm_eps: float("attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
        tied_embeddings: !content.tensor_infos.contains_key("output.weight"),
        qkv_bias: content.tensor_infos.contains_key("blk.0.attn_q.bias"),
        qk_norm: content.tensor_infos.contains_key("blk.0.attn_q_norm.weight"),
        rope_scaling: read_scaling(content, architecture, path)?,
    };
    config.validate()?;
    Ok(config)
}

fn read_scaling(
    content: &Content,
    architecture: &str,
    path: &Path,
) -> std::result::Result<Option<RopeScaling>, String> {
    let get = |key: &str| content.metadata.get(&format!("{architecture}.rope.scaling.{key}"));
    if content.tensor_infos.contains_key("rope_freqs.weight") {
        let divisors = File::open(path)
            .map_err(|e| e.to_string())
            .and_then(|mut file| {
                let tensor = content.tensor(&mut file, "rope_freqs.weight", &Device::Cpu);
                tensor.and_then(|t| t.dequantize(&Device::Cpu)?.to_vec1()).map_err(|e| e.to_string())
            })
            .map_err(|e| format!("rope_freqs.weight: {e}"))?;
        return Ok(Some(RopeScaling::Divisors { divisors }));
    }
    match get("type").and_then(|kind| kind.to_string().ok()).map(String::as_str) {
        None | Some("none") => Ok(None),
        Some("linear") => {
            let factor =
                get("factor").and_then(|f| f.to_f32().ok()).ok_or("rope.scaling.factor is missing")?;
            Ok(Some(RopeScaling::Linear { factor: f64::from(factor) }))
        }
        Some(other) => {
            Err(format!("rope scaling {other} is not supported; supported are linear and rope_freqs"))
        }
    }
}

fn integer(value: &Value) -> Option<usize> {
    match *value {
        Value::U8(v) => Some(v.into()),
        Value::U16(v) => Some(v.into()),
        Value::U32(v) => usize::try_from(v).ok(),
        Value::U64(v) => usize::try_from(v).ok(),
        Value::I32(v) => usize::try_from(v).ok(),
        Value::I64(v) => usize::try_from(v).ok(),
        _ => None,
    }
}

/// Gives the tensors of a GGUF file under their Hugging Face names.
struct GgufSource<'a> {
    gguf: &'a GgufModel,
    device: &'a Device,
    dtype: DType,
    /// Whether quantised types are kept even where they are slow.
    keep_all: bool,
    /// Whether they are unpacked, as a type was asked for that is none of theirs.
    unpack_all: bool,
    /// Tensors unpacked to be quantised again, and their types.
    changed: Mutex<BTreeMap<String, String>>,
}

/// Whether a type has a fast product on a CPU: Q8_0 with our kernel, Q4K with candle's for these shapes.
fn is_fast(dtype: GgmlDType, dims: &[usize]) -> bool {
    match dtype {
        GgmlDType::Q8_0 => true,
        GgmlDType::Q4K => matches!(dims, [rows, columns] if rows % 16 == 0 && columns % 256 == 0),
        _ => false,
    }
}

impl WeightSource for GgufSource<'_> {
    fn stored(&self, name: &str, shape: &[usize]) -> Result<Stored> {
        let gguf_name = gguf_name(name);
        let mut file = File::open(&self.gguf.path)?;
        if !self.gguf.content.tensor_infos.contains_key(&gguf_name) {
            bail!("tensor {gguf_name} is missing")
        }
        let tensor = match self.gguf.content.tensor(&mut file, &gguf_name, &Device::Cpu) {
            Ok(tensor) => tensor,
            Err(e) => bail!("tensor {gguf_name}: {e}; is the file truncated?"),
        };
        if tensor.shape().dims() != shape {
            bail!("tensor {gguf_name} is {:?}, expected {shape:?}", tensor.shape().dims())
        }
        // ggml rotates neighbouring elements, so its Llama files have the rows of queries and keys interleaved.
        let interleaved = self
            .gguf
            .content
            .metadata
            .get("general.architecture")
            .is_some_and(|architecture| architecture.to_string().is_ok_and(|a| a == "llama"))
            && (name.contains("q_proj") || name.contains("k_proj"));
        let tensor = if interleaved { uninterleave(&tensor, self.gguf.config.head_dim)? } else { tensor };
        let dtype = tensor.dtype();
        let is_float = matches!(dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        // The embedding is looked up by rows as well; quantised or not, the head reads it under the same name.
        let is_linear = shape.len() == 2;
        let is_packed = is_linear && !is_float && self.device.is_cpu() && !self.unpack_all;
        if is_packed && (self.keep_all || is_fast(dtype, shape)) {
            return Ok(Stored::Quantised(tensor));
        }
        let dense = tensor.dequantize(&Device::Cpu)?.to_dtype(self.dtype)?.to_device(self.device)?;
        if is_packed {
            if let Ok(mut changed) = self.changed.lock() {
                changed.insert(gguf_name, format!("{dtype:?}"));
            }
            return Ok(Stored::Unpacked(dense));
        }
        Ok(Stored::Dense(dense))
    }
}

/// Puts rows `2i` and `2i + 1` of each head to `i` and `i + head_dim / 2`. A row stays whole, so this works on any type.
fn uninterleave(tensor: &QTensor, head_dim: usize) -> Result<QTensor> {
    let shape = tensor.shape().clone();
    let rows = shape.dims().first().copied().unwrap_or(0);
    let data = tensor.data()?;
    if rows == 0 || !rows.is_multiple_of(head_dim) || !data.len().is_multiple_of(rows) {
        bail!("{rows} rows are no heads of {head_dim}")
    }
    let row_bytes = data.len() / rows;
    let mut out = Vec::with_capacity(data.len());
    for head in data.chunks_exact(row_bytes * head_dim) {
        for parity in [0, 1] {
            for row in head.chunks_exact(row_bytes).skip(parity).step_by(2) {
                out.extend_from_slice(row);
            }
        }
    }
    QTensor::new(QStorage::from_data(Cow::Owned(out), &Device::Cpu, tensor.dtype())?, shape)
}

/// The GGUF name of a Hugging Face name.
fn gguf_name(name: &str) -> String {
    const PARTS: [(&str, &str); 15] = [
        ("model.embed_tokens.", "token_embd."),
        ("model.norm.", "output_norm."),
        ("lm_head.", "output."),
        ("model.layers.", "blk."),
        ("self_attn.q_proj.", "attn_q."),
        ("self_attn.k_proj.", "attn_k."),
        ("self_attn.v_proj.", "attn_v."),
        ("self_attn.o_proj.", "attn_output."),
        ("self_attn.q_norm.", "attn_q_norm."),
        ("self_attn.k_norm.", "attn_k_norm."),
        ("mlp.gate_proj.", "ffn_gate."),
        ("mlp.up_proj.", "ffn_up."),
        ("mlp.down_proj.", "ffn_down."),
        ("post_attention_layernorm.", "ffn_norm."),
        ("input_layernorm.", "attn_norm."),
    ];
    PARTS.iter().fold(name.to_string(), |name, (from, to)| name.replace(from, to))
}
