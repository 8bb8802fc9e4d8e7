//! The terminal: taken over for a while, and given back on every way out.

use cr_cli::signals::Interrupt;
use ratatui::Terminal;
use ratatui::TerminalOptions;
use ratatui::Viewport;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    self, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Assumed where the terminal does not know its size (a pty without one reports 0×0).
const DEFAULT_SIZE: (u16, u16) = (80, 24);

static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// A taken-over terminal. Dropping it gives the terminal back; so does a panic, before its message is printed.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Whether a screen can be shown: stdout is a terminal that can move its cursor, and keys can be read from the
    /// controlling terminal, whatever stdin is.
    pub fn is_possible() -> bool {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let keys = || {
            io::stdin().is_terminal()
                || std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
        };
        !dumb && io::stdout().is_terminal() && keys()
    }

    /// Takes the terminal over.
    ///
    /// # Errors
    /// A terminal that cannot be switched to raw mode.
    pub fn enter(mouse: bool) -> io::Result<Screen> {
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                previous(info);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let mut out = io::stdout();
        let entered = execute!(out, EnterAlternateScreen, Hide)
            .and_then(|()| if mouse { execute!(out, EnableMouseCapture) } else { Ok(()) });
        let options = TerminalOptions { viewport: Viewport::Fixed(size()) };
        match entered.and_then(|()| Terminal::with_options(CrosstermBackend::new(out), options)) {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws a frame at the size that the terminal has now.
    ///
    /// # Errors
    /// A terminal that cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        let size = size();
        if self.terminal.get_frame().area() != size {
            self.terminal.resize(size)?;
        }
        self.terminal.draw(|frame| draw(frame.area(), frame.buffer_mut())).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// How long after a signal the loop may take to leave by itself.
const GRACE: Duration = Duration::from_millis(1500);

/// Sees to it that the process ends after a signal even where the loop cannot: reading keys from a terminal that has gone
/// away never returns.
pub fn leave_on_signal(interrupt: &Interrupt) {
    let interrupt = interrupt.clone();
    std::thread::spawn(move || {
        while !interrupt.is_set() {
            std::thread::sleep(GRACE / 10);
        }
        std::thread::sleep(GRACE);
        restore();
        std::process::exit(130);
    });
}

/// Gives the terminal back, once. What fails is left: there is nothing better to do on the way out.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = out.flush();
    }
}

/// The terminal's size: its own word, else `COLUMNS` and `LINES`, else 80×24.
pub fn size() -> Rect {
    let from_env = |name: &str, or: u16| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0).unwrap_or(or)
    };
    let (width, height) = match terminal::size() {
        Ok((width, height)) if width > 0 && height > 0 => (width, height),
        _ => (from_env("COLUMNS", DEFAULT_SIZE.0), from_env("LINES", DEFAULT_SIZE.1)),
    };
    Rect::new(0, 0, width, height)
}
