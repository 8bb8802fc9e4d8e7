//! Every family from safetensors and from GGUF, on tiny random checkpoints that the test writes itself.
#![allow(clippy::unwrap_used)]

mod support;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{llama, qwen2, qwen3};
use cr_engine::model::{Inspection, LoadOptions, Loaded, ModelConfig, Quant, best_runner, load};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::files::{write_folder, write_gguf};
use support::*;

const SHAPE: &str =
    "hidden = 128\nff = 160\nlayers = 2\nheads = 4\nkv_heads = 2\nvocab = 288\ncontext = 512\n";

fn llama3() -> ModelConfig {
    config(&format!(
        "{SHAPE}rope_scaling = {{ kind = \"llama3\", factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, \
         original_context = 64.0 }}"
    ))
}

fn qwen2() -> ModelConfig {
    config(&format!("{SHAPE}tied_embeddings = false\nqkv_bias = true"))
}

/// Heads wider than `hidden / heads`, as in Qwen3.
fn qwen3() -> ModelConfig {
    config(&format!("{SHAPE}head_dim = 64\nqk_norm = true"))
}

fn tokens() -> Vec<u32> {
    sequences(&[200], 288).remove(0)
}

/// The logits after the last token, from candle-transformers.
fn expect(family: &str, config: &ModelConfig, weights: &HashMap<String, Tensor>) -> Vec<f32> {
    let vars = VarBuilder::from_tensors(weights.clone(), DType::F32, &Device::Cpu);
    let input = Tensor::new(tokens(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let logits = match family {
        "llama" => {
            let theirs = support::theirs::llama_config(config);
            let mut cache = llama::Cache::new(true, DType::F32, &theirs, &Device::Cpu).unwrap();
            llama::Llama::load(vars, &theirs).unwrap().forward(&input, 0, &mut cache).unwrap()
        }
        "qwen2" => {
            let theirs = qwen2::Config {
                vocab_size: config.vocab,
                hidden_size: config.hidden,
                intermediate_size: config.ff,
                num_hidden_layers: config.layers,
                num_attention_heads: config.heads,
                num_key_value_heads: config.kv_heads,
                max_position_embeddings: config.context,
                sliding_window: config.context,
                max_window_layers: config.layers,
                tie_word_embeddings: config.tied_embeddings,
                rope_theta: config.rope_theta,
                rms_norm_eps: config.norm_eps,
                use_sliding_window: false,
                hidden_act: Activation::Silu,
            };
            qwen2::ModelForCausalLM::new(&theirs, vars).unwrap().forward(&input, 0).unwrap()
        }
        _ => {
            let theirs = qwen3::Config {
                vocab_size: config.vocab,
                hidden_size: config.hidden,
                intermediate_size: config.ff,
                num_hidden_layers: config.layers,
                num_attention_heads: config.heads,
                head_dim: config.head_dim,
                attention_bias: false,
                num_key_value_heads: config.kv_heads,
                max_position_embeddings: config.context,
                sliding_window: None,
                max_window_layers: config.layers,
                tie_word_embeddings: config.tied_embeddings,
                rope_theta: config.rope_theta,
                rms_norm_eps: config.norm_eps,
                use_sliding_window: false,
                hidden_act: Activation::Silu,
            };
            qwen3::ModelForCausalLM::new(&theirs, vars).unwrap().forward(&input, 0).unwrap()
        }
    };
    logits.flatten_all().unwrap().to_vec1().unwrap()
}

fn options() -> LoadOptions {
    LoadOptions::new(Device::Cpu)
}

fn load_path(path: &Path, options: &LoadOptions) -> Loaded {
    load(path.to_str().unwrap(), options).unwrap()
}

/// The logits after the last token, from a loaded model, its prompt fed in two chunks.
fn logits(loaded: Loaded) -> Vec<f32> {
    let model = Arc::new(loaded.model);
    let runner = best_runner(&model, 16).unwrap();
    let mut pool = runner.alloc(13, 16).unwrap();
    let (tokens, tables) = (vec![tokens()], vec![(0..13).rev().collect::<Vec<u32>>()]);
    run(&*runner, &mut pool, &tokens, &tables, &[(0, 0, 77, false)]);
    run(&*runner, &mut pool, &tokens, &tables, &[(0, 77, 123, true)]).remove(0)
}

#[test]
fn every_family_loads_from_safetensors_and_gguf() {
    for (family, config) in [("llama", llama3()), ("qwen2", qwen2()), ("qwen3", qwen3())] {
        let weights = checkpoint(&config).0;
        let expect = expect(family, &config, &weights);
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), family, &config, &weights);
        let loaded = load_path(folder.path(), &options());
        assert!(
            loaded.tokenizer.is_none() && loaded.notes[0].contains("tokenizer.json"),
            "{:?}",
            loaded.notes
        );
        assert_close(&logits(loaded), &expect, 1e-5, &format!("{family} from safetensors"));

        let path = folder.path().join("model.gguf");
        write_gguf(&path, family, &config, &weights, GgmlDType::F32);
        assert_close(&logits(load_path(&path, &options())), &expect, 1e-5, &format!("{family} from GGUF"));

        let bf16 = LoadOptions { quant: Some(Quant::Bf16), ..options() };
        assert_close(&logits(load_path(folder.path(), &bf16)), &expect, 0.03, &format!("{family} as bf16"));
        let quantised = LoadOptions { quant: Some(Quant::Q8), ..options() };
        let ours = logits(load_path(folder.path(), &quantised));
        // Weights and activations are rounded to 8 bits, and random weights pass the error on undamped.
        assert_close(&ours, &expect, 0.1, &format!("{family} quantised to q8"));
    }
}

#[test]
fn quantised_gguf_is_made_fast_or_kept() {
    let config = llama3();
    // The reference has the weights as Q4_1 rounds them.
    let weights: HashMap<String, Tensor> = checkpoint(&config)
        .0
        .into_iter()
        .map(|(name, tensor)| {
            if tensor.rank() == 1 {
                return (name, tensor);
            }
            let quantised = QTensor::quantize(&tensor, GgmlDType::Q4_1).unwrap();
            (name, quantised.dequantize(&Device::Cpu).unwrap())
        })
        .collect();
    let expect = expect("llama", &config, &weights);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_gguf(&path, "llama", &config, &weights, GgmlDType::Q4_1);

    let fast = load_path(&path, &options());
    assert!(fast.notes[0].contains("requantised 15 Q4_1 tensors to Q8_0"), "{:?}", fast.notes);
    assert_close(&logits(fast), &expect, 0.1, "requantised");
    let kept = load_path(&path, &LoadOptions { requantise: false, ..options() });
    assert!(kept.notes.iter().all(|note| !note.contains("requantised")), "{:?}", kept.notes);
    assert_close(&logits(kept), &expect, 0.1, "kept");

    let inspection = Inspection::of(path.to_str().unwrap(), &options()).unwrap();
    assert!(inspection.format.contains("15 Q4_1"), "{}", inspection.format);
    assert_eq!(inspection.kv.bytes_per_token(), 2 * 2 * 64 * 4);
    assert_eq!(inspection.tokens_that_fit(1 << 20), 1024);
    assert_eq!(inspection.config.parameters(), config.parameters());
}

fn refusal(path: &Path) -> String {
    load(path.to_str().unwrap(), &options()).unwrap_err().to_string()
}

fn gguf_in(folder: &tempfile::TempDir) -> PathBuf {
    let config = llama3();
    let path = folder.path().join("model.gguf");
    write_gguf(&path, "llama", &config, &checkpoint(&config).0, GgmlDType::F32);
    path
}

#[test]
fn broken_gguf_files_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = gguf_in(&folder);
    let whole = std::fs::read(&path).unwrap();
    for keep in [0, 3, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..keep]).unwrap();
        let error = refusal(&path);
        assert!(error.contains("model.gguf: "), "{keep}: {error}");
    }
    assert!(refusal(&path).contains("remaining in file"), "{}", refusal(&path));
    write_gguf(&path, "gemma", &llama3(), &checkpoint(&llama3()).0, GgmlDType::F32);
    assert!(refusal(&path).contains("gemma is not supported; supported are llama, qwen2, qwen3"));
    let mut weights = checkpoint(&llama3()).0;
    weights.remove("model.layers.1.mlp.up_proj.weight");
    write_gguf(&path, "llama", &llama3(), &weights, GgmlDType::F32);
    assert!(refusal(&path).contains("tensor blk.1.ffn_up.weight is missing"));
}

/// A header changed in one place is refused or read as something else, but never panics or takes the machine's memory.
#[test]
fn hostile_gguf_headers_are_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_gguf(&path, "qwen2", &qwen2(), &checkpoint(&qwen2()).0, GgmlDType::F32);
    // The header, and of the weights, which an inspection does not read, only the beginning.
    let mut whole = std::fs::read(&path).unwrap();
    whole.truncate(8192);
    assert!(Inspection::of(path.to_str().unwrap(), &options()).is_ok());
    for at in (0..3000).step_by(5) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            std::fs::write(&path, &bytes).unwrap();
            if let Err(error) = Inspection::of(path.to_str().unwrap(), &options()) {
                assert!(error.to_string().contains("model.gguf: "), "{at}: {error}");
            }
        }
    }
    let metadata =
        [("general.architecture", Value::String("llama".into())), ("general.alignment", Value::U32(0))];
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let mut bytes = Vec::new();
    gguf_file::write(&mut std::io::Cursor::new(&mut bytes), &metadata, &[]).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert!(refusal(&path).contains("general.alignment is 0"), "{}", refusal(&path));
}

#[test]
fn broken_folders_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path()).contains("config.json"));
    let config = qwen2();
    let mut weights = checkpoint(&config).0;
    write_folder(folder.path(), "mamba", &config, &weights);
    assert!(refusal(folder.path()).contains("model_type mamba is not supported"));
    let file = folder.path().join("model-00002-of-00002.safetensors");
    write_folder(folder.path(), "qwen2", &config, &weights);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(refusal(folder.path()).contains("model-00002-of-00002.safetensors: no readable safetensors"));
    let norm = weights["model.norm.weight"].to_dtype(DType::I64).unwrap();
    weights.insert("model.norm.weight".into(), norm);
    write_folder(folder.path(), "qwen2", &config, &weights);
    assert!(refusal(folder.path()).contains("model.norm.weight is I64, expected f32, f16 or bf16"));
}

#[test]
fn names_that_lead_nowhere_say_where_was_looked() {
    let error = load("no-such-org/no-such-model", &options()).unwrap_err().to_string();
    assert!(
        error.contains("models--no-such-org--no-such-model")
            && error.contains("model inspect no-such-org/no-such-model"),
        "{error}"
    );
    assert!(load("llama-tiny", &options()).is_ok());
}
