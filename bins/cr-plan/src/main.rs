//! `cr-plan`: per-key rates in, a routing table out.
#![forbid(unsafe_code)]

mod args;
mod plan;
mod show;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    args.common.apply();
    cr_cli::run("cr-plan", || match &args.command {
        None => plan::run(&args.plan, &args.common),
        Some(Command::Show(show)) => show::run(show),
        Some(Command::Extra(extra)) => {
            extra.print::<Args>()?;
            Ok(cr_cli::Exit::Done)
        }
    })
}
