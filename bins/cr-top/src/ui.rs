//! The loop: keys in, frames out.

use anyhow::{Context, bail};
use cr_cli::exit::bad_input;
use cr_cli::signals::Interrupt;
use ratatui::crossterm::event;
use std::time::{Duration, Instant};

use crate::ingest::Feed;
use crate::input;
use crate::state::app::{App, Outcome};
use crate::state::live::Live;
use crate::term::Screen;
use crate::view::{self, Look};

/// Time between two frames where no key is pressed.
const FRAME: Duration = Duration::from_millis(100);
/// The longest time until a signal is seen.
const WAIT: Duration = Duration::from_millis(40);

/// How the user left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By the key for it.
    Quit,
    /// By Ctrl-C or a signal.
    Interrupted,
}

/// Shows the run until the user leaves.
///
/// # Errors
/// An input that holds no events, and a terminal that cannot be used.
pub fn show(feed: &Feed, look: Look, mouse: bool, interrupt: &Interrupt) -> anyhow::Result<Left> {
    let mut screen = Screen::enter(mouse).context("cannot use the terminal; try --plain")?;
    let mut app = App::default();
    let mut frozen: Option<Box<Live>> = None;
    let mut drawn: Option<Instant> = None;
    loop {
        if interrupt.is_set() {
            return Ok(Left::Interrupted);
        }
        if let Some(what) = feed.fault() {
            return Err(bad_input(what));
        }
        if feed.is_broken() {
            bail!("the thread that reads events has died");
        }
        match (app.paused, frozen.is_some()) {
            (true, false) => frozen = Some(Box::new(feed.run().live.clone())),
            (false, true) => frozen = None,
            _ => {}
        }
        if drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            screen.draw(|frame| match &frozen {
                Some(live) => view::draw(frame, &mut app, live, look),
                None => view::draw(frame, &mut app, &feed.run().live, look),
            })?;
            drawn = Some(Instant::now());
        }
        let mut wait = WAIT;
        while event::poll(wait)? {
            match input::handle(&mut app, &event::read()?) {
                Outcome::Stay => {}
                Outcome::Quit => return Ok(Left::Quit),
                Outcome::Interrupt => return Ok(Left::Interrupted),
            }
            // What is pressed is seen at once; what is pressed meanwhile, together with it.
            (wait, drawn) = (Duration::ZERO, None);
        }
    }
}
