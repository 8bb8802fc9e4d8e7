//! SentencePiece tokenizers (`tokenizer.ggml.model = llama`: Llama 2, TinyLlama, Mistral) from GGUF metadata.
//!
//! The file has pieces and their scores. SentencePiece joins neighbours as long as what they give is a piece, the best score
//! first; written as the merges of a byte-pair encoding, that is every way to cut a piece into two others, ordered by the
//! score of the whole. Spaces are `▁`, and what no piece covers is spelt in bytes.

use candle_core::quantized::gguf_file::{Content, Value};
use std::collections::HashMap;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

const SPACE: &str = "▁";

/// Kinds of pieces, as `tokenizer.ggml.token_type` numbers them.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// From the metadata of a GGUF file.
///
/// # Errors
/// Metadata that is missing or of another length than the vocabulary.
pub(super) fn from_gguf(content: &Content) -> Result<Tokenizer, String> {
    let get = |key: &str| content.metadata.get(&format!("tokenizer.ggml.{key}"));
    let list = |key: &str| match get(key) {
        Some(Value::Array(values)) => Ok(values),
        _ => Err(format!("tokenizer.ggml.{key} is missing or no list")),
    };
    let pieces: Vec<String> = list("tokens")?
        .iter()
        .map(|value| {
            value.to_string().cloned().map_err(|_| "tokenizer.ggml.tokens holds no text".to_string())
        })
        .collect::<Result<_, _>>()?;
    let scores: Vec<f32> = list("scores")?.iter().map(|value| value.to_f32().unwrap_or(0.0)).collect();
    let kinds: Vec<i64> = list("token_type")?.iter().map(number).collect();
    if pieces.len() != scores.len() || pieces.len() != kinds.len() {
        let lengths = (pieces.len(), scores.len(), kinds.len());
        return Err(format!("{} tokens have {} scores and {} types", lengths.0, lengths.1, lengths.2));
    }
    let flag = |key: &str, default: bool| get(key).and_then(|value| value.to_bool().ok()).unwrap_or(default);
    let id = |key: &str| {
        get(key).map(number).and_then(|id| usize::try_from(id).ok()).filter(|&id| id < pieces.len())
    };

    let unknown = kinds.iter().position(|&kind| kind == UNKNOWN);
    let mut tokenizer = Tokenizer::new(model(&pieces, &scores, unknown)?);
    let mut normalizers = vec![];
    if flag("add_space_prefix", true) {
        normalizers.push(Prepend::new(SPACE.into()).into());
    }
    normalizers.push(NormalizerWrapper::Replace(Replace::new(" ", SPACE).map_err(text)?));
    tokenizer.with_normalizer(Some(Sequence::new(normalizers))).map_err(text)?;
    tokenizer.with_decoder(Some(decoder(flag("add_space_prefix", true))?));
    let begin = id("bos_token_id").filter(|_| flag("add_bos_token", true));
    let end = id("eos_token_id").filter(|_| flag("add_eos_token", false));
    if begin.is_some() || end.is_some() {
        tokenizer.with_post_processor(Some(template(&pieces, begin, end)?));
    }
    let of_kind = |wanted: &[i64], special: bool| -> Vec<AddedToken> {
        let chosen = pieces.iter().zip(&kinds).filter(|(_, kind)| wanted.contains(kind));
        chosen.map(|(piece, _)| AddedToken::from(piece.clone(), special).normalized(false)).collect()
    };
    tokenizer.add_special_tokens(of_kind(&[UNKNOWN, CONTROL], true)).map_err(text)?;
    tokenizer.add_tokens(of_kind(&[USER_DEFINED], false)).map_err(text)?;
    Ok(tokenizer)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn number(value: &Value) -> i64 {
    match *value {
        Value::U8(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U16(v) => v.into(),
        Value::I16(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::I32(v) => v.into(),
        Value::I64(v) => v,
        Value::U64(v) => i64::try_from(v).unwrap_or(-1),
        _ => -1,
    }
}

/// The pieces as a byte-pair encoding.
fn model(pieces: &[String], scores: &[f32], unknown: Option<usize>) -> Result<BPE, String> {
    let ids: HashMap<&str, usize> =
        pieces.iter().enumerate().map(|(id, piece)| (piece.as_str(), id)).collect();
    // A piece and a cut of it: the ids of the whole, the left part and the right part.
    let mut cuts: Vec<(usize, usize, usize)> = Vec::new();
    for (whole, piece) in pieces.iter().enumerate() {
        for (at, _) in piece.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) = (ids.get(&piece[..at]), ids.get(&piece[at..])) {
                cuts.push((whole, left, right));
            }
        }
    }
    cuts.sort_by(|a, b| scores[b.0].total_cmp(&scores[a.0]).then(a.cmp(b)));
    let merges =
        cuts.into_iter().map(|(_, left, right)| (pieces[left].clone(), pieces[right].clone())).collect();
    let vocab: Vocab = pieces.iter().enumerate().map(|(id, piece)| (piece.clone(), id as u32)).collect();
    let mut builder = BPE::builder().vocab_and_merges(vocab, merges).byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = unknown {
        builder = builder.unk_token(pieces[unknown].clone());
    }
    builder.build().map_err(text)
}

fn decoder(strip: bool) -> Result<DecoderWrapper, String> {
    let mut parts = vec![
        DecoderWrapper::Replace(Replace::new(SPACE, " ").map_err(text)?),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if strip {
        parts.push(Strip::new(' ', 1, 0).into());
    }
    Ok(tokenizers::decoders::sequence::Sequence::new(parts).into())
}

/// What is put around a text.
fn template(
    pieces: &[String],
    begin: Option<usize>,
    end: Option<usize>,
) -> Result<TemplateProcessing, String> {
    let name = |id: Option<usize>| id.map(|id| pieces[id].clone());
    let parts: Vec<String> = name(begin).into_iter().chain(["$A".to_string()]).chain(name(end)).collect();
    let specials: Vec<(String, u32)> =
        [begin, end].into_iter().flatten().map(|id| (pieces[id].clone(), id as u32)).collect();
    let mut builder = TemplateProcessing::builder();
    builder.try_single(parts).map_err(text)?.special_tokens(specials).build().map_err(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::quantized::gguf_file::VersionedMagic;

    /// The three control pieces, all bytes, and a few words.
    fn content(change: impl FnOnce(&mut HashMap<String, Value>)) -> Content {
        let mut pieces: Vec<(String, f32, i32)> =
            vec![("<unk>".into(), 0.0, 2), ("<s>".into(), 0.0, 3), ("</s>".into(), 0.0, 3)];
        pieces.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
        for (piece, score) in [
            ("▁", -20.0),
            ("a", -21.0),
            ("b", -22.0),
            ("c", -23.0),
            ("ab", -1.0),
            ("bc", -0.5),
            ("▁ab", -2.0),
            ("abc", -9.0),
        ] {
            pieces.push((piece.into(), score, 1));
        }
        let array = |values: Vec<Value>| Value::Array(values);
        let mut metadata: HashMap<String, Value> = [
            ("tokenizer.ggml.model", Value::String("llama".into())),
            ("tokenizer.ggml.tokens", array(pieces.iter().map(|p| Value::String(p.0.clone())).collect())),
            ("tokenizer.ggml.scores", array(pieces.iter().map(|p| Value::F32(p.1)).collect())),
            ("tokenizer.ggml.token_type", array(pieces.iter().map(|p| Value::I32(p.2)).collect())),
            ("tokenizer.ggml.bos_token_id", Value::U32(1)),
            ("tokenizer.ggml.eos_token_id", Value::U32(2)),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_string(), value))
        .collect();
        change(&mut metadata);
        Content {
            magic: VersionedMagic::GgufV3,
            metadata,
            tensor_infos: HashMap::new(),
            tensor_data_offset: 0,
        }
    }

    fn pieces_of(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer.encode(text, true).expect("encodes").get_tokens().to_vec()
    }

    #[test]
    fn the_best_score_joins_first() {
        let tokenizer = from_gguf(&content(|_| {})).expect("reads");
        assert_eq!(pieces_of(&tokenizer, "ab"), ["<s>", "▁ab"]);
        // `bc` scores higher than `ab`, so `abc` comes from a and bc.
        assert_eq!(pieces_of(&tokenizer, "abc a"), ["<s>", "▁", "abc", "▁", "a"]);
        assert_eq!(pieces_of(&tokenizer, "é</s>"), ["<s>", "▁", "<0xC3>", "<0xA9>", "</s>"]);
        for text in ["abc ab", "aé b", " a"] {
            let ids = tokenizer.encode(text, true).expect("encodes");
            assert_eq!(tokenizer.decode(ids.get_ids(), true).expect("decodes"), text);
        }
    }

    #[test]
    fn the_flags_of_the_file_are_followed() {
        let plain = content(|metadata| {
            metadata.insert("tokenizer.ggml.add_bos_token".into(), Value::Bool(false));
            metadata.insert("tokenizer.ggml.add_eos_token".into(), Value::Bool(true));
            metadata.insert("tokenizer.ggml.add_space_prefix".into(), Value::Bool(false));
        });
        assert_eq!(pieces_of(&from_gguf(&plain).expect("reads"), "ab"), ["ab", "</s>"]);
    }

    #[test]
    fn metadata_that_does_not_fit_together_is_refused() {
        let missing = content(|metadata| {
            metadata.remove("tokenizer.ggml.scores");
        });
        assert!(from_gguf(&missing).expect_err("refused").contains("tokenizer.ggml.scores is missing"));
        let short = content(|metadata| {
            metadata.insert("tokenizer.ggml.scores".into(), Value::Array(vec![Value::F32(0.0)]));
        });
        assert!(from_gguf(&short).expect_err("refused").contains("267 tokens have 1 scores"));
        let beyond = content(|metadata| {
            metadata.insert("tokenizer.ggml.bos_token_id".into(), Value::U32(1 << 30));
        });
        assert_eq!(pieces_of(&from_gguf(&beyond).expect("reads"), "ab"), ["▁ab"]);
    }
}
