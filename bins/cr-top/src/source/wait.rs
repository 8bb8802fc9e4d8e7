//! Waiting for a file or a socket that is not there yet.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::{Follow, Message, Sender, Stop};

/// Pause between two looks.
pub const POLL: Duration = Duration::from_millis(50);

/// What is waited for, and whether the user was told so.
#[derive(Debug)]
pub struct Wait<'a> {
    path: &'a Path,
    follow: Follow,
    told: Option<&'static str>,
}

impl<'a> Wait<'a> {
    /// Nobody was told anything yet.
    pub fn new(path: &'a Path, follow: Follow) -> Wait<'a> {
        Wait { path, follow, told: None }
    }

    /// Whether it may still come: what is not there is waited for where its folder is there.
    pub fn may_end(&self) -> bool {
        self.follow == Follow::Growing && folder(self.path).is_dir()
    }

    /// Says why nothing comes, once a reason, and pauses. `None` where nobody listens any more or the program stops.
    pub fn go_on(&mut self, why: &'static str, stop: &Stop, sender: &Sender) -> Option<()> {
        if self.told != Some(why) {
            sender.send(Message::Note(self.note(why))).ok()?;
            self.told = Some(why);
        }
        pause(stop)
    }

    /// What is waited for, and the name in its folder that may have been meant.
    fn note(&self, why: &str) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let others: Vec<String> = fs::read_dir(folder(self.path))
            .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default();
        let others = others.iter().map(String::as_str).filter(|other| *other != name);
        let near = cr_cli::suggest::nearest(&name, others);
        let hint = near.map_or(String::new(), |near| format!(" (there is {near})"));
        format!("waiting for {}: {why} yet{hint}", self.path.display())
    }
}

/// Lets a moment pass. `None` where the program stops.
pub fn pause(stop: &Stop) -> Option<()> {
    sleep(POLL);
    (!stop.is_set()).then_some(())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
