//! `cr-top`: watch a run live.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli: cr_top::cli::Cli = cr_cli::config::parse();
    cli.common.apply();
    cr_cli::run("cr-top", || cr_top::program::run(&cli))
}
