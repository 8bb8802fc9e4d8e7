//! Progress bars on stderr, for people at a terminal.

use crate::CommonArgs;
use crate::common::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A progress bar, or nothing where none is wanted.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Lines are left out, too.
    quiet: bool,
}

impl Progress {
    /// A bar over `total` units where it is known, a counter otherwise.
    pub fn new(common: &CommonArgs, what: &str, unit: &str, total: Option<u64>) -> Progress {
        if !common.shows_progress() {
            return Progress::hidden(common);
        }
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        let template = match total {
            Some(_) => format!(
                "{{prefix}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{per_sec}} eta {{eta}} {{msg}}"
            ),
            None => format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{per_sec}} {{elapsed}} {{msg}}"),
        };
        // The template is fixed above; the default style is a fair substitute should it ever be refused.
        bar.set_style(
            ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_prefix(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, quiet: false }
    }

    /// Sets how much there is to do, where that is found out on the way.
    pub fn length(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// No bar, only lines.
    pub fn hidden(common: &CommonArgs) -> Progress {
        Progress { bar: ProgressBar::hidden(), quiet: common.is_silent() }
    }

    /// Sets how far it is.
    pub fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Advances by `delta` units.
    pub fn inc(&self, delta: u64) {
        self.bar.inc(delta);
    }

    /// A word at the end of the line.
    pub fn message(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Prints a line above the bar, or just on stderr where there is none; nothing under `--quiet`.
    pub fn line(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.bar.suspend(|| say(text.as_ref()));
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
