//! A pseudo-terminal to run the program on, and its screen.

use portable_pty::{Child, CommandBuilder, PtyPair, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a screen may take to show what is wanted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The program on a terminal.
pub(crate) struct Session {
    pub(crate) pair: PtyPair,
    child: Box<dyn Child + Send + Sync>,
    pub(crate) screen: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
}

impl Session {
    /// Runs a shell command on a terminal of the given size; at its end says whether the terminal's modes are as before.
    pub(crate) fn start(script: &str, (rows, cols): (u16, u16)) -> Session {
        let script = format!(
            "before=$(stty -g); {script}; code=$?; [ \"$(stty -g)\" = \"$before\" ] && echo same modes; exit $code"
        );
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pty");
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", &script]);
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for name in ["LC_ALL", "LC_CTYPE", "NO_COLOR", "COLUMNS", "LINES", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.env("TOP", env!("CARGO_BIN_EXE_cr-top"));
        let child = pair.slave.spawn_command(command).expect("spawned");
        let shown = if rows == 0 { (24, 80) } else { (rows, cols) };
        let screen = Arc::new(Mutex::new(vt100::Parser::new(shown.0, shown.1, 0)));
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let parser = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(n) = output.read(&mut buffer) {
                if n == 0 {
                    break;
                }
                parser.lock().expect("no panic").process(&buffer[..n]);
            }
        });
        let keys = pair.master.take_writer().expect("a writer");
        Session { pair, child, screen, keys }
    }

    fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    /// Waits until the screen shows what is wanted.
    fn until(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if wanted(self.screen.lock().expect("no panic").screen()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("never saw {what}; the screen shows\n{}", self.text());
    }

    /// Waits until the screen shows a text.
    pub(crate) fn shows(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// Types keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("written");
        self.keys.flush().expect("flushed");
    }

    /// Waits for the end of the script and checks that the terminal is as it was.
    pub(crate) fn ends(mut self, code: u32) -> String {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end; the screen shows\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(status.exit_code(), code, "{}", self.text());
        self.until("the normal screen", |screen| !screen.alternate_screen() && !screen.hide_cursor());
        self.shows("same modes");
        self.text()
    }
}
