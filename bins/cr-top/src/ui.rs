//! The loop: keys in, frames out.

use anyhow::{Context, bail};
use cr_cli::exit::bad_input;
use cr_cli::signals::Interrupt;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event;
use ratatui::layout::Rect;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::export;
use crate::input;
use crate::palette::{Level, Palette};
use crate::session::Session;
use crate::state::app::{App, Effect, Outcome, Transport};
use crate::state::live::{Live, Phase};
use crate::state::run::Run;
use crate::system::Monitor;
use crate::term::{self, Screen};
use crate::view::{self, Look, Scene};

/// Time between two frames where no key is pressed.
const FRAME: Duration = Duration::from_millis(100);
/// The longest time until a signal is seen.
const WAIT: Duration = Duration::from_millis(40);
/// The time between two summaries is at least this many times what the last one took: with very many tenants they are dear, and
/// reading must go on meanwhile.
const SUMMARY_SHARE: u32 = 4;
/// The most files of one kind that are written beside each other.
const MAX_FILES: u32 = 999;

/// How the user left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By the key for it.
    Quit,
    /// By Ctrl-C or a signal.
    Interrupted,
}

/// How the screen is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Palette and glyphs.
    pub look: Look,
    /// Whether the mouse scrolls.
    pub mouse: bool,
    /// Whether to start with a replay, and how fast.
    pub replay: Option<f64>,
    /// The machine, where it is watched.
    pub monitor: Monitor,
}

/// Shows the runs until the user leaves.
///
/// # Errors
/// An input that holds no events, and a terminal that cannot be used.
pub fn show(session: &mut Session, options: &Options, interrupt: &Interrupt) -> anyhow::Result<Left> {
    term::leave_on_signal(interrupt);
    let mut screen = Screen::enter(options.mouse).context("cannot use the terminal; try --plain")?;
    let mut ui = Ui {
        app: App::new(session.feeds().len()),
        frozen: None,
        look: options.look,
        monitor: options.monitor.clone(),
        replay: options.replay,
        pending: None,
        summed: Instant::now(),
        summary_cost: Duration::ZERO,
    };
    let mut drawn: Option<Instant> = None;
    loop {
        if interrupt.is_set() {
            return Ok(Left::Interrupted);
        }
        if let Some(what) = session.fault() {
            return Err(bad_input(what));
        }
        if session.is_broken() {
            bail!("the thread that reads events has died");
        }
        ui.start_replay(session);
        session.tick();
        ui.catch_up(session);
        if drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            ui.freeze(session);
            screen.draw(|area, buffer| ui.draw(area, buffer, session, options.look))?;
            drawn = Some(Instant::now());
        }
        let mut wait = WAIT;
        while event::poll(wait)? {
            match input::handle(&mut ui.app, &event::read()?) {
                Outcome::Stay => {}
                Outcome::Do(effect) => ui.perform(effect, session),
                Outcome::Quit => return Ok(Left::Quit),
                Outcome::Interrupt => return Ok(Left::Interrupted),
            }
            // What is pressed is seen at once; what is pressed meanwhile, together with it.
            (wait, drawn) = (Duration::ZERO, None);
        }
    }
}

struct Ui {
    app: App,
    frozen: Option<Vec<Live>>,
    look: Look,
    monitor: Monitor,
    /// The speed of a replay that is to start once the file is read.
    replay: Option<f64>,
    /// What is to be written once a seek has arrived.
    pending: Option<Effect>,
    /// When the summaries were last worked out, and how long that took.
    summed: Instant,
    summary_cost: Duration,
}

impl Ui {
    /// Starts the replay that was asked for, once the end of the runs is known.
    fn start_replay(&mut self, session: &mut Session) {
        let Some(speed) = self.replay else { return };
        let known = session.lock().iter().all(|run| matches!(run.live.phase, Phase::Ended | Phase::CutShort));
        if known || session.feeds().iter().all(|feed| feed.has_caught_up()) {
            self.replay = None;
            self.app.message = session.start_replay(speed);
        }
    }

    /// Keeps or drops the frozen picture.
    fn freeze(&mut self, session: &Session) {
        match (self.app.paused, self.frozen.is_some()) {
            (true, false) => {
                let mut runs = session.lock();
                runs.iter_mut().for_each(|run| run.refresh());
                self.frozen = Some(runs.iter().map(|run| run.live.clone()).collect());
            }
            (false, true) => self.frozen = None,
            _ => {}
        }
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, session: &Session, look: Look) {
        self.app.replay = session.replay();
        let usage = self.monitor.latest();
        let mut guards = if self.frozen.is_none() { session.lock() } else { Vec::new() };
        self.sum_up(&mut guards);
        let runs: Vec<&Live> = match &self.frozen {
            Some(frozen) => frozen.iter().collect(),
            None => guards.iter().map(|run| &run.live).collect(),
        };
        let scene = Scene { runs: &runs, system: usage.as_ref(), look };
        view::draw(area, buffer, &mut self.app, &scene);
    }

    /// Brings the summaries up to what is drawn beside them; where they are dear, now and then.
    fn sum_up(&mut self, runs: &mut [MutexGuard<'_, Run>]) {
        let started = Instant::now();
        if started - self.summed >= self.summary_cost * SUMMARY_SHARE {
            runs.iter_mut().for_each(|run| run.refresh());
            (self.summed, self.summary_cost) = (Instant::now(), started.elapsed());
        }
    }

    /// Does what was asked for during a seek.
    fn catch_up(&mut self, session: &mut Session) {
        if !session.is_seeking()
            && let Some(effect) = self.pending.take()
        {
            self.perform(effect, session);
        }
    }

    fn perform(&mut self, effect: Effect, session: &mut Session) {
        if session.is_seeking() && !matches!(effect, Effect::Transport(_)) {
            self.pending = Some(effect);
            return;
        }
        let written = match effect {
            Effect::Transport(step) => {
                self.app.message = session.transport(step);
                if session.replay().is_some() || step == Transport::Follow {
                    self.app.paused = false;
                }
                return;
            }
            Effect::ExportSvg => {
                let title = format!("cr-top, {}", self.app.view.name());
                let frame = self.frame(session, Level::True);
                write_new(&self.stem(), "svg", &export::svg(&frame, &title))
            }
            Effect::ExportText => {
                let frame = self.frame(session, Level::None);
                write_new(&self.stem(), "txt", &export::text(&frame))
            }
            Effect::WriteSummary => match self.summary(session) {
                Some(json) => write_new("cr-top-summary", "json", &json),
                None => return self.app.message = Some("nothing to sum up yet".into()),
            },
        };
        self.app.message = Some(match written {
            Ok(name) => format!("wrote {name}"),
            Err(error) => format!("cannot write here: {}", cr_cli::input::reason(&error)),
        });
    }

    fn stem(&self) -> String {
        format!("cr-top-{}", self.app.view.name().to_lowercase())
    }

    /// The page as it is, at the size of the terminal.
    fn frame(&mut self, session: &Session, level: Level) -> Buffer {
        let area = term::size();
        let mut buffer = Buffer::empty(area);
        let look = Look { palette: Palette { level }, ..self.look };
        // What is kept is exact.
        self.summary_cost = Duration::ZERO;
        self.draw(area, &mut buffer, session, look);
        buffer
    }

    fn summary(&self, session: &Session) -> Option<String> {
        let mut runs = session.lock();
        let run = runs.get_mut(self.app.run)?;
        run.refresh();
        let json = serde_json::to_string_pretty(run.live.summary.as_ref()?).ok()?;
        Some(json + "\n")
    }
}

/// Writes a file under the first free number; never over another.
fn write_new(stem: &str, ending: &str, text: &str) -> io::Result<String> {
    for number in 1..=MAX_FILES {
        let name = format!("{stem}-{number}.{ending}");
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(mut file) => return file.write_all(text.as_bytes()).map(|()| name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{stem}-1 to {MAX_FILES} are taken")))
}
