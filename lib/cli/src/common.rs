//! Flags that every program has.

use clap::{Args, ValueEnum, ValueHint};
use std::io::{IsTerminal, Write};
use tracing_subscriber::filter::LevelFilter;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Flags that every program has.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Common options")]
pub struct CommonArgs {
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more on stderr; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// When to colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Show no progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Take flags that are not given from this file (TOML), under CR_* variables
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<String>,
    /// Print every setting and where it came from, as a file for --config, and end
    #[arg(long, global = true)]
    pub print_config: bool,
}

/// A line on stderr; where nobody can be told, nobody is.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Whether stdout is a pipe.
#[cfg(unix)]
fn is_piped_on() -> bool {
    use std::os::{fd::AsFd, unix::fs::FileTypeExt};
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
    stdout.and_then(|stdout| stdout.metadata()).is_ok_and(|about| about.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_piped_on() -> bool {
    false
}

impl CommonArgs {
    /// Sets colour and log level for the process. Call once.
    pub fn apply(&self) {
        let choice = match self.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let level = match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::ERROR,
            (false, 0) => LevelFilter::WARN,
            (false, 1) => LevelFilter::INFO,
            (false, _) => LevelFilter::DEBUG,
        };
        // A second call (tests in one process) keeps the first subscriber.
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_target(false)
            .without_time()
            .try_init();
    }

    /// Whether to draw progress bars: on a terminal, where notes are not left out, unless told not to.
    pub fn shows_progress(&self) -> bool {
        !self.is_silent() && !self.no_progress && std::io::stderr().is_terminal()
    }

    /// Whether notes are left out: under `--quiet`, and where they would be drawn across what the next program of a pipe shows on the
    /// same terminal.
    pub fn is_silent(&self) -> bool {
        self.quiet || (std::io::stderr().is_terminal() && is_piped_on())
    }

    /// A note on stderr for people, where notes are not left out.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.is_silent() {
            say(text.as_ref());
        }
    }
}
