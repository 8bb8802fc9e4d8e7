//! `cr-serve`: a trace replayed over a fleet of shards under a routing policy.
#![forbid(unsafe_code)]

mod args;
mod engine;
mod report;
mod run;
mod tables;
mod watch;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    args.common.apply();
    cr_cli::run("cr-serve", || match &args.command {
        Command::Run(run) => run::run(run, &args.common),
        Command::Extra(extra) => {
            extra.print::<Args>()?;
            Ok(cr_cli::Exit::Done)
        }
    })
}
