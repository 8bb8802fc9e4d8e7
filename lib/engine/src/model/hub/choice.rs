//! Which files of a repository are the model.

use super::is_plain;

/// The file that says which safetensors file has which tensor.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Types of GGUF weights, the one that is taken first where none is asked for: first what is fast here and nearest to the
/// original, then by size.
const TYPES: [&str; 12] =
    ["Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "F16", "BF16", "F32"];

/// The files of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// A configuration, weights and, where there is one, a tokenizer.
    Folder(Vec<String>),
    /// One GGUF file.
    Gguf(String),
}

impl Choice {
    pub(super) fn files(&self) -> &[String] {
        match self {
            Choice::Folder(files) => files,
            Choice::Gguf(file) => std::slice::from_ref(file),
        }
    }
}

/// Chooses among the files of a repository: the GGUF file, or type, that is asked for; else safetensors; else the best GGUF
/// file. The error says what there is.
pub(super) fn choose(files: &[String], wanted: Option<&str>) -> Result<Choice, String> {
    let mut ggufs: Vec<&str> = files.iter().map(String::as_str).filter(|file| is_gguf(file)).collect();
    ggufs.sort_unstable();
    if let Some(wanted) = wanted {
        let found = ggufs.iter().find(|file| **file == wanted || has_type(file, wanted));
        return found.map(|file| Choice::Gguf((*file).into())).ok_or_else(|| match &ggufs[..] {
            [] => "no GGUF files there that are in one piece".into(),
            ggufs => format!("no {wanted} there; there are {}", ggufs.join(", ")),
        });
    }
    let has = |name: &str| files.iter().any(|file| file == name);
    let weights = files.iter().filter(|file| is_weights(file));
    if has("config.json") && weights.clone().next().is_some() {
        let small = ["config.json", INDEX, "generation_config.json", "tokenizer.json"];
        let small = small.iter().filter(|name| has(name)).map(|name| (*name).to_string());
        return Ok(Choice::Folder(small.chain(weights.cloned()).collect()));
    }
    let best =
        TYPES.iter().find_map(|wanted| ggufs.iter().find(|file| has_type(file, wanted))).or(ggufs.first());
    best.map(|file| Choice::Gguf((*file).into())).ok_or_else(|| {
        "there is neither a config.json with *.safetensors nor a GGUF file in one piece".into()
    })
}

/// Weights as `transformers` reads them; others of that ending are the same weights for other programs, or adapters.
fn is_weights(file: &str) -> bool {
    is_plain(file) && file.starts_with("model") && file.ends_with(".safetensors")
}

/// A whole GGUF file of a language model.
fn is_gguf(file: &str) -> bool {
    let lower = file.to_lowercase();
    is_plain(file) && lower.ends_with(".gguf") && !lower.contains("-of-0") && !lower.starts_with("mmproj")
}

/// Whether a file's name ends in a type, as in `name-Q8_0.gguf`.
fn has_type(file: &str, wanted: &str) -> bool {
    let stem = file[..file.len() - ".gguf".len()].to_uppercase();
    stem.strip_suffix(&wanted.to_uppercase())
        .is_some_and(|rest| rest.is_empty() || rest.ends_with(['-', '.', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &str) -> Vec<String> {
        names.split_whitespace().map(Into::into).collect()
    }

    fn gguf(names: &str, wanted: Option<&str>) -> Choice {
        choose(&files(names), wanted).expect("there is one")
    }

    #[test]
    fn a_folder_is_what_is_read_of_it() {
        let all = files(
            ".gitattributes README.md config.json tokenizer.json consolidated.safetensors model-00001-of-00002.safetensors \
             model-00002-of-00002.safetensors model.safetensors.index.json onnx/model.onnx x-Q8_0.gguf",
        );
        let expect = "config.json model.safetensors.index.json tokenizer.json model-00001-of-00002.safetensors \
                      model-00002-of-00002.safetensors";
        assert_eq!(choose(&all, None), Ok(Choice::Folder(files(expect))));
    }

    #[test]
    fn the_best_gguf_file_is_taken_or_the_one_asked_for() {
        let all = "config.json m-f16.gguf m-q2_k.gguf m-q4_k_m.gguf m-q8_0.gguf mmproj-q8_0.gguf";
        let file = |name: &str| Choice::Gguf(name.into());
        assert_eq!(gguf(all, None), file("m-q8_0.gguf"));
        assert_eq!(gguf(all, Some("Q4_K_M")), file("m-q4_k_m.gguf"));
        assert_eq!(gguf(all, Some("f16")), file("m-f16.gguf"));
        assert_eq!(gguf(all, Some("m-q2_k.gguf")), file("m-q2_k.gguf"));
        assert_eq!(gguf("other.gguf", None), file("other.gguf"));
        assert_eq!(gguf("x-BF16.gguf x-F16.gguf", Some("F16")), file("x-F16.gguf"));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error = |names: &str, wanted: Option<&str>| choose(&files(names), wanted).expect_err("nothing");
        assert!(error("m-q8_0.gguf", Some("q4_0")).contains("no q4_0 there; there are m-q8_0.gguf"));
        assert!(error("README.md", Some("q4_0")).contains("no GGUF"));
        assert!(error("config.json pytorch_model.bin", None).contains("neither"));
        assert!(error("m-00001-of-00002.gguf ../x.gguf a/b.gguf", None).contains("neither"));
    }
}
