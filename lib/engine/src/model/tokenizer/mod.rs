//! Text to tokens and back.

mod sentencepiece;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use std::path::Path;
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

/// A tokenizer, and the tokens that end an answer.
#[derive(Debug)]
pub struct TextTokenizer {
    inner: Tokenizer,
    end: Vec<u32>,
}

/// Names of end-of-turn tokens of the families that are supported.
const END_TOKENS: [&str; 5] = ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>"];

impl TextTokenizer {
    /// From the metadata of a GGUF file.
    ///
    /// # Errors
    /// A kind of tokenizer that is not supported (byte-pair encodings and SentencePiece are), or metadata that is missing.
    pub fn from_gguf(content: &Content) -> Result<TextTokenizer, String> {
        let kind = content.metadata.get("tokenizer.ggml.model").and_then(|value| value.to_string().ok());
        let mut inner = match kind.map(String::as_str) {
            Some("llama") => sentencepiece::from_gguf(content)?,
            _ => Tokenizer::from_gguf(content).map_err(|e| e.to_string())?,
        };
        let metadata = |key: &str| content.metadata.get(&format!("tokenizer.ggml.{key}"));
        let pre = metadata("pre").and_then(|value| value.to_string().ok());
        if pre.is_some_and(|pre| pre == "smollm") {
            // candle adds a space before the text, which corrupts chat prompts; llama.cpp does not.
            let parts: Vec<PreTokenizerWrapper> =
                vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()];
            inner.with_pre_tokenizer(Some(PreTokenizerWrapper::from(Sequence::new(parts))));
        }
        let mut tokenizer = TextTokenizer { end: Vec::new(), inner };
        tokenizer.end = tokenizer.known_end_tokens();
        let eos = metadata("eos_token_id").and_then(|value| value.to_u32().ok());
        tokenizer.add_end_tokens(eos);
        Ok(tokenizer)
    }

    /// From a `tokenizer.json`, with the end tokens that a `generation_config.json` names, where there is one.
    ///
    /// # Errors
    /// A file that cannot be read as a tokenizer.
    pub fn from_file(path: &Path, generation_config: &Path) -> Result<TextTokenizer, String> {
        let inner = Tokenizer::from_file(path).map_err(|e| e.to_string())?;
        let mut tokenizer = TextTokenizer { end: Vec::new(), inner };
        tokenizer.end = tokenizer.known_end_tokens();
        let config = std::fs::read_to_string(generation_config).unwrap_or_default();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap_or_default();
        let named = match &config["eos_token_id"] {
            serde_json::Value::Array(ids) => ids.iter().filter_map(serde_json::Value::as_u64).collect(),
            id => id.as_u64().into_iter().collect::<Vec<_>>(),
        };
        tokenizer.add_end_tokens(named.into_iter().filter_map(|id| u32::try_from(id).ok()));
        Ok(tokenizer)
    }

    fn known_end_tokens(&self) -> Vec<u32> {
        END_TOKENS.iter().filter_map(|token| self.inner.token_to_id(token)).collect()
    }

    fn add_end_tokens(&mut self, ids: impl IntoIterator<Item = u32>) {
        for id in ids {
            if !self.end.contains(&id) {
                self.end.push(id);
            }
        }
    }

    /// The tokens of a text. Special tokens written out in it are recognised; those the model wants around a text are
    /// added.
    ///
    /// # Errors
    /// Text that the tokenizer refuses.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(self.inner.encode(text, true).map_err(|e| e.to_string())?.get_ids().to_vec())
    }

    /// The text of tokens, special ones left out.
    ///
    /// # Errors
    /// Tokens that the tokenizer does not know.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, String> {
        self.inner.decode(tokens, true).map_err(|e| e.to_string())
    }

    /// Whether a token ends an answer.
    pub fn is_end(&self, token: u32) -> bool {
        self.end.contains(&token)
    }

    /// Decodes token by token: hand it each token in turn, and it gives the text that has become certain (a character
    /// may take several tokens).
    pub fn stream(&self) -> impl FnMut(u32) -> Option<String> + '_ {
        let mut stream = self.inner.decode_stream(true);
        move |token| stream.step(token).ok().flatten()
    }
}
