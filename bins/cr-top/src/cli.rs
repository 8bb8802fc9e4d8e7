//! Flags.

use clap::{Parser, ValueEnum, ValueHint};
use cr_cli::common::{Color, CommonArgs};
use cr_cli::extras::Extra;
use std::path::PathBuf;

use crate::palette::{Env, Level};

const EXAMPLES: &str = "\
Examples:
  cr-serve run w.jsonl --table table.json | cr-top
                                 watch a run; keys work although stdin is the pipe
  cr-serve run w.jsonl -o run.ndjson -q > /dev/null &  cr-top run.ndjson
                                 follow a file that grows, or does not exist yet
  cr-top run.ndjson --once       print what a finished run came down to
  cr-top run.ndjson --once --format json | jq .served_hit
  cr-top run.ndjson --plain      a line a second, for a log
  cr-top flat.ndjson cacheroute.ndjson
                                 two runs side by side
  cr-top run.ndjson --replay --speed 10
                                 play a finished run from its start

Without a terminal (stdout is a file or a pipe, or there is no controlling terminal) --plain is implied.
Exit codes: 0 done, 1 failed, 2 usage or input, 130 interrupted.";

/// Watch a run live: served hit, load imbalance and TTFT, shard by shard
#[derive(Parser, Clone, Debug)]
#[command(name = "cr-top", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Events of a run (NDJSON), `-` for stdin; up to four are compared [default: -]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// Print a line a second and the summary instead of a screen
    #[arg(long)]
    pub plain: bool,
    /// Read what is there, print the summary, end
    #[arg(long)]
    pub once: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Where the summary goes; `-` for stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Connect to a run started with cr-serve run --listen SOCKET; waits until it listens
    #[arg(long, value_name = "SOCKET", conflicts_with = "files", value_hint = ValueHint::FilePath)]
    pub connect: Option<PathBuf>,
    /// Show a table's planned shards and rates beside the actual ones
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub table: Option<String>,
    /// Play a finished file from its start
    #[arg(long, conflicts_with_all = ["once", "plain"])]
    pub replay: bool,
    /// Run time per wall time of a replay, 0.125 to 1024
    #[arg(long, value_name = "X", default_value = "1", requires = "replay", value_parser = speed)]
    pub speed: f64,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Colours to use on the screen
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub palette: PaletteArg,
    /// Let the mouse wheel scroll lists (the terminal's own selection then needs Shift)
    #[arg(long)]
    pub mouse: bool,
    /// Flags that every program has.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Completions and manual page.
    #[command(subcommand)]
    pub extra: Option<Extra>,
}

/// How the summary is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// As `cacheroute.summary/1`
    Json,
}

/// Colours to use on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PaletteArg {
    /// By `NO_COLOR`, `COLORTERM` and `TERM`
    #[default]
    Auto,
    /// None: bold and reverse only
    None,
    /// The eight ANSI colours
    #[value(name = "8")]
    Ansi8,
    /// The sixteen
    #[value(name = "16")]
    Ansi16,
    /// The 256 of xterm
    #[value(name = "256")]
    Indexed,
    /// 24 bits
    True,
}

/// A speed of replay.
fn speed(text: &str) -> Result<f64, String> {
    let value = cr_cli::quantity::positive(text.trim_end_matches(['x', '×']))?;
    if (0.125..=1024.0).contains(&value) { Ok(value) } else { Err("must lie between 0.125 and 1024".into()) }
}

impl Cli {
    /// The palette level: what was asked for, else what the environment says.
    pub fn level(&self, env: &Env) -> Level {
        match (self.palette, self.common.color) {
            (PaletteArg::None, _) => Level::None,
            (PaletteArg::Ansi8, _) => Level::Ansi8,
            (PaletteArg::Ansi16, _) => Level::Ansi16,
            (PaletteArg::Indexed, _) => Level::Indexed,
            (PaletteArg::True, _) => Level::True,
            (PaletteArg::Auto, Color::Never) => Level::None,
            (PaletteArg::Auto, Color::Always) => env.level_if_coloured(),
            (PaletteArg::Auto, Color::Auto) => env.level(),
        }
    }

    /// Whether only ASCII may be drawn: asked for, or the locale is known to show nothing else.
    pub fn is_ascii(&self) -> bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .find(|value| !value.is_empty());
        self.ascii || locale.is_some_and(|locale| locale == "C" || locale == "POSIX")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_asked_for_beats_the_environment() {
        let env = Env { no_color: true, colorterm: "truecolor".into(), term: "xterm".into() };
        let level = |args: &[&str]| Cli::parse_from([&["cr-top"], args].concat()).level(&env);
        assert_eq!(level(&[]), Level::None);
        assert_eq!(level(&["--color", "always"]), Level::True);
        assert_eq!(level(&["--palette", "256"]), Level::Indexed);
        assert_eq!(level(&["--color", "never", "--palette", "16"]), Level::Ansi16);
    }
}
