//! Hub names (`org/name`), resolved in the local Hugging Face cache.
//!
//! Nothing is downloaded here: the cache is filled by Hugging Face's own tools. Its layout is
//! `models--org--name/refs/main`, a file that names a commit, and `snapshots/COMMIT/`, the files of it.

use crate::EngineError;
use std::path::{Path, PathBuf};

/// Whether a text has the form `org/name` of a hub name.
pub(super) fn is_hub_name(text: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    matches!(text.split_once('/'), Some((org, name)) if plain(org) && plain(name))
}

/// The folder of a hub model's files.
///
/// # Errors
/// It is not in the cache; the message says where it was looked for and how to get it there.
pub(super) fn snapshot(name: &str) -> Result<PathBuf, EngineError> {
    snapshot_in(&cache_folder(|key| std::env::var_os(key).map(PathBuf::from)), name)
}

/// The cache, as `huggingface_hub` finds it: `HF_HUB_CACHE`, or `hub` in `HF_HOME`, or in `~/.cache/huggingface`.
fn cache_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    variable("HF_HUB_CACHE")
        .or_else(|| variable("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/huggingface/hub")))
        .unwrap_or_else(|| PathBuf::from(".cache/huggingface/hub"))
}

fn snapshot_in(cache: &Path, name: &str) -> Result<PathBuf, EngineError> {
    let repository = cache.join(format!("models--{}", name.replace('/', "--")));
    let missing = || {
        EngineError::Config(format!(
            "{name}: no such file, and not in the hub cache at {}; fetch it with `hf download {name}`, or give a path \
             to a GGUF file or a safetensors folder",
            repository.display()
        ))
    };
    let commit = std::fs::read_to_string(repository.join("refs/main")).map_err(|_| missing())?;
    let folder = repository.join("snapshots").join(commit.trim());
    if folder.is_dir() { Ok(folder) } else { Err(missing()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        for good in ["HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen2.5-0.5B"] {
            assert!(is_hub_name(good), "{good}");
        }
        for bad in ["llama-8m", "./x", "../x", "/x/y", "a/b/c", "a/", "/a", "a b/c"] {
            assert!(!is_hub_name(bad), "{bad}");
        }
    }

    #[test]
    fn the_cache_is_where_the_hub_puts_it() {
        let only = |name: &'static str| move |key: &str| (key == name).then(|| PathBuf::from("/x"));
        assert_eq!(cache_folder(only("HF_HUB_CACHE")), Path::new("/x"));
        assert_eq!(cache_folder(only("HF_HOME")), Path::new("/x/hub"));
        assert_eq!(cache_folder(only("HOME")), Path::new("/x/.cache/huggingface/hub"));
    }

    #[test]
    fn a_cached_model_is_found_and_a_missing_one_says_where_it_looked() {
        let cache = tempfile::tempdir().expect("a folder");
        let error = snapshot_in(cache.path(), "org/name").expect_err("missing").to_string();
        assert!(error.contains("models--org--name") && error.contains("hf download org/name"), "{error}");
        let repository = cache.path().join("models--org--name");
        let folder = repository.join("snapshots/abc");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::create_dir_all(repository.join("refs")).expect("made");
        std::fs::write(repository.join("refs/main"), "abc\n").expect("written");
        assert_eq!(snapshot_in(cache.path(), "org/name").expect("found"), folder);
    }
}
