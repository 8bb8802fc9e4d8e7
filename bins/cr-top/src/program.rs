//! From flags to an exit code.

use anyhow::Context;
use cr_cli::exit::bad_input;
use cr_cli::signals::Interrupt;
use cr_cli::{Exit, Output};
use std::io::{self, IsTerminal, Write};

use crate::cli::{Cli, Format};
use crate::ingest::Feed;
use crate::palette::{Env, Palette};
use crate::plain::{self, Lines};
use crate::source::{Follow, Input};
use crate::term::Screen;
use crate::ui::{self, Left};
use crate::view::Look;

/// Does what the flags say.
///
/// # Errors
/// Input that holds no events (the user's to mend), a terminal or an output that cannot be used.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    if let Some(extra) = &cli.extra {
        extra.print::<Cli>()?;
        return Ok(Exit::Done);
    }
    let input = Input::parse(cli.file.as_deref().unwrap_or("-"));
    if input == Input::Stdin && io::stdin().is_terminal() {
        return Err(bad_input("nothing to read: name a file of events, or pipe cr-serve run into cr-top"));
    }
    let interrupt = Interrupt::install().context("cannot catch signals")?;
    let output = Output::create(cli.output.as_deref())?;
    let follow = if cli.once { Follow::Once } else { Follow::Growing };
    let feed = Feed::open(input, follow);
    let left = if cli.once || cli.plain || !Screen::is_possible() {
        let quiet = cli.once || cli.common.quiet || cli.common.no_progress;
        let lines = if quiet { Lines::None } else { Lines::EverySecond };
        plain::follow(&feed, lines, &mut io::stdout(), &interrupt)?
    } else {
        let look = Look { palette: Palette { level: cli.level(&Env::read()) }, ascii: cli.is_ascii() };
        ui::show(&feed, look, cli.mouse, &interrupt)?
    };
    feed.stop();
    sum_up(&feed, cli.format, output)?;
    Ok(match left {
        Left::Quit => Exit::Done,
        Left::Interrupted => Exit::Interrupted,
    })
}

/// Prints what the run came down to, as far as it was read.
fn sum_up(feed: &Feed, format: Format, mut output: Output) -> anyhow::Result<()> {
    let mut run = feed.run();
    run.refresh();
    let Some(summary) = &run.live.summary else { return Ok(()) };
    let text = match format {
        Format::Text => crate::plain::summary(&run.live, summary),
        Format::Json => serde_json::to_string(summary)? + "\n",
    };
    drop(run);
    output.write_all(text.as_bytes())?;
    output.finish()
}
