//! `cr-plan`: per-key rates in, a routing table out.
#![forbid(unsafe_code)]

mod args;
mod calibrate;
mod check;
mod diff;
mod export;
mod model;
mod plan;
mod sensitivity;
mod show;
mod stream;

use args::{Args, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Args = cr_cli::config::parse();
    args.common.apply();
    cr_cli::run("cr-plan", || match &args.command {
        None => plan::run(&args.plan, &args.common),
        Some(Command::Show(show)) => show::run(show),
        Some(Command::Diff(diff)) => diff::run(diff),
        Some(Command::Check(check)) => check::run(check),
        Some(Command::Export(export)) => export::run(export, &args.common),
        Some(Command::Calibrate(calibrate)) => calibrate::run(calibrate),
        Some(Command::Sensitivity(sensitivity)) => sensitivity::run(sensitivity),
        Some(Command::Extra(extra)) => {
            extra.print::<Args>()?;
            Ok(cr_cli::Exit::Done)
        }
    })
}
