//! The local cache, laid out as Hugging Face's tools do: `models--org--name/` holds `refs/main`, a file that names a commit,
//! `snapshots/COMMIT/`, links to the files of it, and `blobs/`, the files by their hash.

use super::choice::{Choice, INDEX, choose};
use super::names_in;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};

/// One repository in the cache.
#[derive(Clone, Debug)]
pub(super) struct Repository(PathBuf);

impl Repository {
    pub(super) fn new(cache: &Path, name: &str) -> Repository {
        Repository(cache.join(format!("models--{}", name.replace('/', "--"))))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where the model lies: the folder of a safetensors model, or a GGUF file. None where it is not there as a whole.
    pub(super) fn find(&self, file: Option<&str>) -> Option<PathBuf> {
        let commit = std::fs::read_to_string(self.0.join("refs/main")).ok()?;
        let snapshot = self.snapshot(commit.trim());
        match choose(&names_in(&snapshot), file).ok()? {
            Choice::Gguf(file) => Some(snapshot.join(file)),
            Choice::Folder(_) => has_all_shards(&snapshot).then_some(snapshot),
        }
    }

    /// Says that a commit is the one that the repository's name stands for.
    pub(super) fn set_main(&self, commit: &str) -> Result<()> {
        std::fs::create_dir_all(self.0.join("refs"))?;
        std::fs::write(self.0.join("refs/main"), commit)
    }

    /// Where a file with this hash is kept.
    pub(super) fn blob(&self, hash: &str) -> PathBuf {
        self.0.join("blobs").join(hash)
    }

    /// Makes a kept file a file of a commit.
    pub(super) fn link(&self, commit: &str, file: &str, hash: &str) -> Result<()> {
        let snapshot = self.snapshot(commit);
        std::fs::create_dir_all(&snapshot)?;
        let path = snapshot.join(file);
        if path.is_file() {
            return Ok(());
        }
        // A link to nothing is in the way.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(Path::new("../../blobs").join(hash), &path)?;
        #[cfg(not(unix))]
        std::fs::hard_link(self.blob(hash), &path)?;
        Ok(())
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.0.join("snapshots").join(commit)
    }
}

/// Which file has which tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Whether the files that the index names are there; without an index there is nothing to name them.
fn has_all_shards(snapshot: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(snapshot.join(INDEX)) else { return true };
    serde_json::from_str::<Index>(&text)
        .is_ok_and(|index| index.weight_map.values().all(|file| snapshot.join(file).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_once_it_is_whole() {
        let cache = tempfile::tempdir().expect("a folder");
        let repository = Repository::new(cache.path(), "org/name");
        assert_eq!(repository.find(None), None);
        let folder = cache.path().join("models--org--name/snapshots/abc");
        std::fs::create_dir_all(&folder).expect("made");
        repository.set_main("abc\n").expect("written");
        let put = |file: &str, text: &str| std::fs::write(folder.join(file), text).expect("written");
        put("config.json", "{}");
        assert_eq!(repository.find(None), None);
        put(INDEX, "{\"weight_map\": {\"x\": \"model-1.safetensors\", \"y\": \"model-2.safetensors\"}}");
        put("model-1.safetensors", "");
        assert_eq!(repository.find(None), None, "a file is missing");
        put("model-2.safetensors", "");
        assert_eq!(repository.find(None), Some(folder.clone()));
        assert_eq!(repository.find(Some("Q8_0")), None);
        put("x-Q8_0.gguf", "");
        assert_eq!(repository.find(Some("q8_0")), Some(folder.join("x-Q8_0.gguf")));
    }
}
