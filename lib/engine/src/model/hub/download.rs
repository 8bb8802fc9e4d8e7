//! One file from the hub into the cache: what an earlier attempt left is gone on with, and what arrives is checked.

use super::cache::Repository;
use super::client::{Client, Content};
use super::{Progress, is_plain};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use ureq::http::StatusCode;

/// Attempts in a row that bring nothing new before it is given up.
const MOST_ATTEMPTS: u32 = 3;

/// Where files come from.
pub(super) struct Source<'a> {
    pub(super) client: &'a Client,
    pub(super) repository: &'a str,
    pub(super) commit: &'a str,
}

/// Makes sure that the cache has a file of a commit.
pub(super) fn download(
    source: &Source<'_>,
    repository: &Repository,
    file: &str,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), String> {
    debug_assert!(is_plain(file), "names of the server's are chosen with care");
    let mut url = source.client.url(source.repository, source.commit, file);
    let content = source.client.content(&mut url).map_err(|e| e.to_string())?;
    let blob = repository.blob(&content.hash);
    let in_cache = |e: Error| format!("{}: {e}", repository.folder().display());
    if !blob.is_file() {
        let mut partial = Partial::open(&blob).map_err(in_cache)?;
        // Another program may have been faster while this one waited for the lock.
        if !blob.is_file() {
            partial.complete(source.client, &url, &content, &mut |done| {
                progress(Progress { file, done, total: content.bytes });
            })?;
            std::fs::rename(&partial.path, &blob).map_err(in_cache)?;
        }
    }
    repository.link(source.commit, file, &content.hash).map_err(in_cache)
}

/// A file that is not whole yet, locked.
struct Partial {
    path: PathBuf,
    file: File,
    /// Of what is there.
    hash: Sha256,
    bytes: u64,
}

impl Partial {
    fn open(blob: &Path) -> Result<Partial, Error> {
        if let Some(folder) = blob.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let path = blob.with_added_extension("incomplete");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        file.lock()?;
        let mut hash = Sha256::new();
        let bytes = std::io::copy(&mut file, &mut hash)?;
        Ok(Partial { path, file, hash, bytes })
    }

    fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    /// Gets what is missing and checks the whole.
    fn complete(
        &mut self,
        client: &Client,
        url: &str,
        content: &Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), String> {
        if self.bytes > content.bytes {
            self.restart().map_err(|e| self.at_path(e))?;
        }
        let mut attempts = 0;
        while self.bytes < content.bytes {
            let before = self.bytes;
            let attempt = self.receive(client, url, content, progress);
            attempts = if self.bytes > before { 0 } else { attempts + 1 };
            match attempt {
                Err(Broken::ForGood(what)) => return Err(what),
                Err(Broken::Off(what)) if attempts == MOST_ATTEMPTS => {
                    return Err(format!(
                        "{} of {} bytes are there ({what}); the next download goes on from them",
                        self.bytes, content.bytes
                    ));
                }
                _ => {}
            }
        }
        self.file.sync_all().map_err(|e| self.at_path(e))?;
        self.check(content)
    }

    /// Holds a large file's content against its hash. What is wrong is thrown away.
    fn check(&mut self, content: &Content) -> Result<(), String> {
        let is_sha256 = content.hash.len() == 64 && content.hash.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_sha256 {
            return Ok(());
        }
        let found: String = self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found.eq_ignore_ascii_case(&content.hash) {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(|e| self.at_path(e))?;
        Err(format!("what came has the SHA-256 {found} and not {}; it was thrown away", content.hash))
    }

    /// Appends one answer of the server's.
    fn receive(
        &mut self,
        client: &Client,
        url: &str,
        content: &Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Broken> {
        let mut response = client.get(url, self.bytes).map_err(|e| match e.is_unreachable() {
            true => Broken::Off(e.to_string()),
            false => Broken::ForGood(e.to_string()),
        })?;
        if response.status() != StatusCode::PARTIAL_CONTENT && self.bytes > 0 {
            // It does not give parts.
            self.restart().map_err(|e| self.broken(e))?;
        }
        let mut reader = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 18];
        loop {
            progress(self.bytes);
            let n = reader.read(&mut buffer).map_err(|e| Broken::Off(e.to_string()))?;
            if n == 0 {
                return Err(Broken::Off("the connection ended".into()));
            }
            if self.bytes + n as u64 > content.bytes {
                let more = format!("more than the {} bytes came that the hub had announced", content.bytes);
                self.restart().map_err(|e| self.broken(e))?;
                return Err(Broken::ForGood(more));
            }
            self.file.write_all(&buffer[..n]).map_err(|e| self.broken(e))?;
            self.hash.update(&buffer[..n]);
            self.bytes += n as u64;
            if self.bytes == content.bytes {
                progress(self.bytes);
                return Ok(());
            }
        }
    }

    fn at_path(&self, error: Error) -> String {
        format!("{}: {error}", self.path.display())
    }

    fn broken(&self, error: Error) -> Broken {
        Broken::ForGood(self.at_path(error))
    }
}

/// Why an answer ended early.
enum Broken {
    /// The connection: another attempt may do.
    Off(String),
    /// Nothing will help.
    ForGood(String),
}
