//! Models by hub name, from a stand-in for the hub, into a cache of the test's own.
#![allow(clippy::unwrap_used)]

mod support;

use candle_core::quantized::GgmlDType;
use cr_engine::model::{Hub, HubName, Inspection, LoadOptions, load};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::files::{write_folder, write_gguf};
use support::hub::{HubServer, Served, sha256};
use support::{checkpoint, config};

const SAFE: &str = "model-00001-of-00002.safetensors";

/// A tiny llama as a folder, or as two GGUF files, with what else lies in a repository.
fn repository(gguf: bool) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let config =
        config("hidden = 64\nff = 64\nlayers = 2\nheads = 2\nkv_heads = 1\nvocab = 96\ncontext = 128");
    let weights = checkpoint(&config).0;
    if gguf {
        for (name, dtype) in [("tiny-Q8_0.gguf", GgmlDType::Q8_0), ("tiny-F16.gguf", GgmlDType::F16)] {
            write_gguf(&folder.path().join(name), "llama", &config, &weights, dtype);
        }
    } else {
        write_folder(folder.path(), "llama", &config, &weights);
    }
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        files.insert(path.file_name().unwrap().to_str().unwrap().into(), std::fs::read(path).unwrap());
    }
    files.insert("README.md".into(), b"read me".to_vec());
    files.insert("../escape.safetensors".into(), b"no".to_vec());
    Served { files, ..Served::default() }
}

struct Case {
    server: HubServer,
    cache: tempfile::TempDir,
}

impl Case {
    fn new(served: Served) -> Case {
        Case { server: HubServer::start(served), cache: tempfile::tempdir().unwrap() }
    }

    fn hub(&self) -> Hub {
        Hub {
            endpoint: self.server.endpoint.clone(),
            cache: self.cache.path().into(),
            token: None,
            offline: false,
        }
    }

    fn fetch(&self, spec: &str) -> Result<PathBuf, String> {
        let hub = self.hub();
        hub.fetch(spec, &mut |_| {}).map_err(|e| e.to_string())?;
        Ok(hub.cached(&HubName::of(spec).unwrap()).unwrap())
    }

    fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.server.served.lock().unwrap());
    }

    /// What an interrupted download of the first weights would have left.
    fn leave(&self, bytes: &[u8]) -> PathBuf {
        let content = self.server.served.lock().unwrap().files[SAFE].clone();
        let blobs = self.cache.path().join("models--org--tiny/blobs");
        std::fs::create_dir_all(&blobs).unwrap();
        let path = blobs.join(format!("{}.incomplete", sha256(&content)));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Every file that was chosen is the server's, through links into the blobs.
    fn assert_whole(&self, folder: &Path) {
        let served = self.server.served.lock().unwrap().files.clone();
        for name in ["config.json", SAFE, "model-00002-of-00002.safetensors"] {
            assert_eq!(std::fs::read(folder.join(name)).unwrap(), served[name], "{name}");
            assert!(std::fs::read_link(folder.join(name)).unwrap().starts_with("../../blobs"));
        }
        assert!(!folder.join("README.md").exists());
        assert!(!folder.join("../escape.safetensors").exists());
    }
}

fn one_sentence(error: &str) {
    assert!(!error.contains('\n') && !error.contains(". "), "{error}");
}

#[test]
fn a_folder_is_downloaded_once_and_loads() {
    let case = Case::new(repository(false));
    let mut last = Vec::new();
    case.hub().fetch("org/tiny", &mut |at| last = vec![at.done, at.total]).unwrap();
    assert_eq!(last[0], last[1]);
    let folder = case.fetch("org/tiny").unwrap();
    assert!(folder.ends_with("models--org--tiny/snapshots/c0ffee"));
    case.assert_whole(&folder);
    assert_eq!(
        load(folder.to_str().unwrap(), &LoadOptions::new(candle_core::Device::Cpu))
            .unwrap()
            .model
            .config()
            .vocab,
        96
    );
    let asked = case.server.seen.lock().unwrap().len();
    let offline = Hub { offline: true, endpoint: "http://127.0.0.1:1".into(), ..case.hub() };
    offline.fetch("org/tiny", &mut |_| panic!("nothing is downloaded")).unwrap();
    assert_eq!(offline.cached(&HubName::of("org/tiny").unwrap()).unwrap(), folder);
    assert_eq!(case.server.seen.lock().unwrap().len(), asked, "the second time nobody is asked");
}

#[test]
fn the_gguf_file_asked_for_or_the_best_one_is_downloaded_alone() {
    let case = Case::new(repository(true));
    let best = case.fetch("org/tiny").unwrap();
    assert!(best.ends_with("tiny-Q8_0.gguf"));
    assert!(!best.with_file_name("tiny-F16.gguf").exists());
    let other = case.fetch("org/tiny:f16").unwrap();
    assert_eq!(case.fetch("org/tiny:tiny-F16.gguf").unwrap(), other);
    for path in [best, other] {
        let inspection =
            Inspection::of(path.to_str().unwrap(), &LoadOptions::new(candle_core::Device::Cpu)).unwrap();
        assert_eq!(inspection.config.vocab, 96);
    }
    let error = case.fetch("org/tiny:q2_k").unwrap_err();
    assert!(error.contains("no q2_k there; there are tiny-F16.gguf, tiny-Q8_0.gguf"), "{error}");
}

#[test]
fn what_an_interruption_left_is_gone_on_with() {
    let case = Case::new(repository(false));
    let content = case.server.served.lock().unwrap().files[SAFE].clone();
    let partial = case.leave(&content[..5000]);
    case.assert_whole(&case.fetch("org/tiny").unwrap());
    assert!(case.server.downloads().contains(&format!("GET /cdn/{SAFE} 5000")));
    assert!(!partial.exists());
}

#[test]
fn a_server_without_parts_and_a_partial_file_that_is_too_long_start_anew() {
    let case = Case::new(Served { no_ranges: true, ..repository(false) });
    case.leave(b"some other file's beginning");
    case.assert_whole(&case.fetch("org/tiny").unwrap());
    let case = Case::new(repository(false));
    case.leave(&vec![7; 1 << 20]);
    case.assert_whole(&case.fetch("org/tiny").unwrap());
}

#[test]
fn a_connection_that_breaks_again_and_again_gets_there_piece_by_piece() {
    let case = Case::new(Served { cut_after: Some(20_000), ..repository(false) });
    case.assert_whole(&case.fetch("org/tiny").unwrap());
    let parts = case.server.downloads().iter().filter(|line| line.contains(&format!("/cdn/{SAFE}"))).count();
    assert!(parts > 1, "{parts}");
}

#[test]
fn a_download_that_gets_no_further_says_how_far_it_is_and_later_goes_on() {
    let case = Case::new(Served { cut_after: Some(0), ..repository(false) });
    let error = case.fetch("org/tiny").unwrap_err();
    assert!(error.contains("config.json: 0 of ") && error.contains("goes on"), "{error}");
    one_sentence(&error);
    case.change(|served| served.cut_after = None);
    case.assert_whole(&case.fetch("org/tiny").unwrap());
}

#[test]
fn wrong_content_is_thrown_away() {
    let case = Case::new(Served { wrong_hash: true, ..repository(false) });
    let error = case.fetch("org/tiny").unwrap_err();
    assert!(error.contains("SHA-256") && error.contains("thrown away"), "{error}");
    let blobs = case.cache.path().join("models--org--tiny/blobs");
    assert!(
        std::fs::read_dir(blobs).unwrap().all(|f| !f
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .starts_with("000"))
    );
    case.change(|served| served.wrong_hash = false);
    case.assert_whole(&case.fetch("org/tiny").unwrap());
}

#[test]
fn a_file_of_another_size_than_announced_is_refused() {
    let case = Case::new(Served { announce_more: 10, ..repository(false) });
    let error = case.fetch("org/tiny").unwrap_err();
    assert!(error.contains("416"), "{error}");
    let shorter = Served { announce_more: usize::MAX - 9, ..repository(false) };
    let error = Case::new(shorter).fetch("org/tiny").unwrap_err();
    assert!(error.contains("more than the"), "{error}");
}

#[test]
fn what_is_not_there_or_not_for_everybody_is_said() {
    let case = Case::new(Served { token: Some("secret".into()), ..repository(false) });
    let error = case.fetch("org/tiny").unwrap_err();
    assert!(error.contains("401") && error.contains("HF_TOKEN"), "{error}");
    one_sentence(&error);
    let hub = Hub { token: Some("secret".into()), ..case.hub() };
    hub.fetch("org/tiny", &mut |_| {}).unwrap();
    case.change(|served| served.token = None);
    let error = case.fetch("org/other").unwrap_err();
    assert!(error.starts_with("org/other: http://127.0.0.1") && error.contains("no such model"), "{error}");
}

#[test]
fn without_a_network_the_error_says_where_it_looked() {
    let cache = tempfile::tempdir().unwrap();
    let hub = |offline: bool| Hub {
        endpoint: "http://127.0.0.1:1".into(),
        cache: cache.path().into(),
        token: None,
        offline,
    };
    for (offline, expect) in [(true, "HF_HUB_OFFLINE"), (false, "http://127.0.0.1:1 cannot be reached")] {
        let error = hub(offline).fetch("org/tiny", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(expect) && error.contains("models--org--tiny"), "{error}");
        one_sentence(&error);
    }
    hub(true).fetch("llama-8m", &mut |_| {}).unwrap();
}
