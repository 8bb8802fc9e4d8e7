//! `completions SHELL` and `man`, for any program.

use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};

/// The two subcommands that every program has besides its own.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Extra {
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (roff)
    Man,
}

impl Extra {
    /// Writes what was asked for to stdout.
    ///
    /// # Errors
    /// A failed write.
    pub fn print<C: CommandFactory>(&self) -> io::Result<()> {
        let mut command = C::command();
        let mut text = Vec::new();
        match self {
            Extra::Completions { shell } => {
                let name = command.get_name().to_string();
                clap_complete::generate(*shell, &mut command, name, &mut text);
            }
            Extra::Man => clap_mangen::Man::new(command).render(&mut text)?,
        }
        let mut out = io::stdout().lock();
        out.write_all(&text)?;
        out.flush()
    }
}
