//! Models by their name on the Hugging Face hub: downloaded once, then read from the local cache without a network.
//!
//! * [`name`](HubName) — what a model argument says: `org/name`, `org/name:FILE.gguf`, `org/name:QUANT`;
//! * [`cache`] — the folder that Hugging Face's own tools use, too;
//! * [`choice`] — which files of a repository are the model;
//! * [`client`], [`download`] — the wire.
//!
//! Only [`Hub::fetch`] touches the network; loading a model never does. What is cached is used as it is: a newer version on
//! the hub is asked for by removing the folder, or with `hf download`.

mod cache;
mod choice;
mod client;
mod download;
mod name;

pub use name::HubName;

use crate::EngineError;
use cache::Repository;
use choice::choose;
use client::Client;
use std::path::{Path, PathBuf};

/// Where models come from and where they are kept.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The server, without a slash at the end.
    pub endpoint: String,
    /// The cache's folder.
    pub cache: PathBuf,
    /// What the server is shown: who asks.
    pub token: Option<String>,
    /// Whether the network is left alone.
    pub offline: bool,
}

/// How far the download of a file is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The file's name in the repository.
    pub file: &'a str,
    /// Bytes that are there, those of an earlier download included.
    pub done: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

impl Hub {
    /// As `huggingface_hub` is configured: `HF_ENDPOINT`, `HF_HUB_CACHE` or `HF_HOME`, `HF_TOKEN` or the token that
    /// `hf auth login` left, `HF_HUB_OFFLINE`.
    pub fn from_env() -> Hub {
        Hub::from_variables(|key| std::env::var_os(key).filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Hub {
        let text = |key: &str| variable(key).and_then(|value| value.into_string().ok());
        let path = |key: &str| variable(key).map(PathBuf::from);
        let home = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .or_else(|| path("HOME").map(|home| home.join(".cache/huggingface")))
            .unwrap_or_else(|| PathBuf::from(".cache/huggingface"));
        let saved =
            || std::fs::read_to_string(path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"))).ok();
        let token = text("HF_TOKEN").or_else(saved).map(|token| token.trim().to_string());
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        let is_set = |text: String| ["1", "true", "yes", "on"].contains(&text.to_lowercase().as_str());
        Hub {
            endpoint: endpoint.trim_end_matches('/').to_string(),
            cache: path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")),
            token: token.filter(|token| !token.is_empty()),
            offline: text("HF_HUB_OFFLINE").is_some_and(is_set),
        }
    }

    /// Makes sure that a hub model lies in the cache, downloading what is missing. Other model arguments need nothing.
    ///
    /// # Errors
    /// It is neither cached nor to be had; the message says where it was looked for and what was tried.
    pub fn fetch(&self, spec: &str, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), EngineError> {
        let Some(name) = HubName::of(spec) else { return Ok(()) };
        let repository = Repository::new(&self.cache, &name.repository);
        if repository.find(name.file.as_deref()).is_some() {
            return Ok(());
        }
        let failed = |what: String| EngineError::Config(format!("{spec}: {what}"));
        if self.offline {
            return Err(failed(not_cached(&repository, "and HF_HUB_OFFLINE forbids to ask for it")));
        }
        let client = Client::new(&self.endpoint, self.token.clone()).map_err(failed)?;
        let listing = client.listing(&name.repository).map_err(|error| {
            failed(match error.is_unreachable() {
                true => {
                    not_cached(&repository, &format!("and {} cannot be reached ({error})", self.endpoint))
                }
                false => error.to_string(),
            })
        })?;
        for file in choose(&listing.files, name.file.as_deref()).map_err(failed)?.files() {
            let source =
                download::Source { client: &client, repository: &name.repository, commit: &listing.commit };
            download::download(&source, &repository, file, progress)
                .map_err(|what| failed(format!("{file}: {what}")))?;
        }
        // Last, so that a name in the cache stands for a whole model.
        repository
            .set_main(&listing.commit)
            .map_err(|e| failed(format!("{}: {e}", repository.folder().display())))
    }

    /// Where a hub model lies in the cache: the folder of a safetensors model, or a GGUF file. The network is not asked.
    ///
    /// # Errors
    /// It is not there; the message says where it was looked for.
    pub fn cached(&self, name: &HubName) -> Result<PathBuf, EngineError> {
        let repository = Repository::new(&self.cache, &name.repository);
        let file = name.file.as_deref();
        repository.find(file).ok_or_else(|| {
            let by = format!("which `cr-serve model inspect {name}` fills");
            EngineError::Config(format!("{name}: {}", not_cached(&repository, &by)))
        })
    }
}

fn not_cached(repository: &Repository, and: &str) -> String {
    format!(
        "no such file, not in the hub cache at {}, {and}; give a path to a GGUF file or a safetensors folder, or fill the \
         cache where there is a network",
        repository.folder().display()
    )
}

/// Whether a name from a server may become the name of a file here.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+'))
}

/// The names of the files in a folder, those behind links included.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_string()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn hub(variables: &[(&str, &str)]) -> Hub {
        let all = variables.to_vec();
        Hub::from_variables(move |key| all.iter().find(|(k, _)| *k == key).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn the_cache_is_where_the_hub_puts_it() {
        assert_eq!(hub(&[("HF_HUB_CACHE", "/x"), ("HF_HOME", "/y")]).cache, Path::new("/x"));
        assert_eq!(hub(&[("HF_HOME", "/x"), ("HOME", "/y")]).cache, Path::new("/x/hub"));
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/x")]).cache, Path::new("/x/huggingface/hub"));
        assert_eq!(hub(&[("HOME", "/x")]).cache, Path::new("/x/.cache/huggingface/hub"));
    }

    #[test]
    fn variables_say_whom_to_ask_and_whether() {
        let usual = hub(&[("HF_HOME", "/nowhere")]);
        assert_eq!(
            (usual.endpoint.as_str(), usual.offline, usual.token),
            ("https://huggingface.co", false, None)
        );
        let mine = hub(&[("HF_ENDPOINT", "http://x:1/"), ("HF_HUB_OFFLINE", "1"), ("HF_TOKEN", " t\n")]);
        assert_eq!(
            (mine.endpoint.as_str(), mine.offline, mine.token.as_deref()),
            ("http://x:1", true, Some("t"))
        );
        assert!(!hub(&[("HF_HUB_OFFLINE", "0")]).offline);
    }
}
