//! From flags to an exit code.

use anyhow::Context;
use cr_cli::exit::{InputContext, bad_input};
use cr_cli::signals::Interrupt;
use cr_cli::{Exit, Output};
use cr_routing::table::{RoutingTable, read_tables};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::cli::{Cli, Format};
use crate::last_words;
use crate::palette::{Env, Palette};
use crate::plain::{self, Lines};
use crate::session::Session;
use crate::source::{Follow, Input, Stop};
use crate::system::Monitor;
use crate::term::Screen;
use crate::ui::{self, Left, Options};
use crate::view::Look;

/// The most runs that are compared.
const MAX_RUNS: usize = 4;

/// Does what the flags say.
///
/// # Errors
/// Input that holds no events (the user's to mend), a terminal or an output that cannot be used.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    if let Some(extra) = &cli.extra {
        extra.print::<Cli>()?;
        return Ok(Exit::Done);
    }
    let inputs = inputs(cli)?;
    let tables = tables(cli)?;
    let interrupt = Interrupt::install().context("cannot catch signals")?;
    for input in &inputs {
        if let Input::File(path) = input {
            cr_cli::opened::reserve(path);
        }
    }
    let output = Output::create(cli.output.as_deref())?;
    let follow = if cli.once { Follow::Once } else { Follow::Growing };
    let on_screen = !cli.once && !cli.plain && Screen::is_possible();
    if cli.replay && !on_screen {
        return Err(bad_input("--replay needs a terminal; --once prints the summary of a finished file"));
    }
    let mut session = Session::open(inputs, follow, tables);
    let left = if on_screen {
        await_first(&session);
        if let Some(what) = session.fault() {
            return Err(bad_input(what));
        }
        let stop = Stop::default();
        let options = Options {
            look: Look { palette: Palette { level: cli.level(&Env::read()) }, ascii: cli.is_ascii() },
            mouse: cli.mouse,
            replay: cli.replay.then_some(cli.speed),
            monitor: Monitor::start(stop.clone()),
        };
        let left = ui::show(&mut session, &options, &interrupt);
        stop.set();
        left?
    } else {
        let quiet = cli.once || cli.common.quiet || cli.common.no_progress;
        let lines = if quiet { Lines::None } else { Lines::EverySecond };
        plain::follow(&session, lines, &mut io::stdout(), &interrupt)?
    };
    sum_up(&session, cli.format, output)?;
    Ok(match left {
        Left::Quit => Exit::Done,
        Left::Interrupted => Exit::Interrupted,
    })
}

/// How long a pipe may keep silent before the screen is taken.
const FIRST: Duration = Duration::from_millis(500);

/// Leaves the terminal to whoever is piped in until it sends something, for a moment: what it refuses can then be read.
fn await_first(session: &Session) {
    let begun = Instant::now();
    let silent = || {
        let piped = session.feeds().iter().all(|feed| !feed.is_file() && !feed.is_over());
        piped && session.fault().is_none() && session.lock().iter().all(|run| run.live.header.is_none())
    };
    while begun.elapsed() < FIRST && silent() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What is to be read.
fn inputs(cli: &Cli) -> anyhow::Result<Vec<Input>> {
    if let Some(socket) = &cli.connect {
        return Ok(vec![Input::Socket(socket.clone())]);
    }
    if cli.files.len() > MAX_RUNS {
        return Err(bad_input(format!("{} files; at most {MAX_RUNS} runs are compared", cli.files.len())));
    }
    let files = if cli.files.is_empty() { vec!["-".to_string()] } else { cli.files.clone() };
    if files.iter().filter(|file| *file == "-").count() > 1 {
        return Err(bad_input("`-` is given twice; stdin can be read once"));
    }
    if files.iter().any(|file| file == "-") && io::stdin().is_terminal() {
        return Err(bad_input("nothing to read: name a file of events, or pipe cr-serve run into cr-top"));
    }
    Ok(files.iter().map(|file| Input::parse(file)).collect())
}

fn tables(cli: &Cli) -> anyhow::Result<Vec<RoutingTable>> {
    let Some(path) = &cli.table else { return Ok(Vec::new()) };
    if path == "-" {
        return Err(bad_input("--table - : stdin is for events; name a file"));
    }
    let input = cr_cli::Input::open(path)?;
    read_tables(input.reader, &input.name).bad_input()
}

/// Prints what the runs came down to, as far as they were read.
fn sum_up(session: &Session, format: Format, mut output: Output) -> anyhow::Result<()> {
    let mut texts = Vec::new();
    for mut run in session.lock() {
        run.refresh();
        match format {
            Format::Text => texts.extend(last_words::texts(&run.live)),
            Format::Json => texts.extend(last_words::json(&run.live)?),
        }
    }
    let between = if format == Format::Text { "\n" } else { "" };
    output.write_all(texts.join(between).as_bytes())?;
    output.finish()
}
