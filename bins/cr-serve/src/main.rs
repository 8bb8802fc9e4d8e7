//! `cr-serve`: a trace replayed over a fleet of shards under a routing policy.
#![forbid(unsafe_code)]

mod args;
mod board;
mod calibrate;
mod claims;
mod compare;
mod engine;
mod fit;
mod fleet;
mod gate;
mod generate;
mod in_sample;
mod listen;
mod model;
mod piped;
mod report;
mod requests;
mod run;
mod sweep;
mod tables;
mod validate;
mod watch;

use args::{Args, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Args = cr_cli::config::parse();
    args.common.apply();
    let common = &args.common;
    cr_cli::run("cr-serve", || match &args.command {
        Command::Run(args) => run::run(args, common),
        Command::Sweep(args) => sweep::run(args, common),
        Command::Calibrate(args) => calibrate::run(args, common),
        Command::Validate(args) => validate::run(args, common),
        Command::Fit(args) => fit::run(args, common),
        Command::Gate(args) => gate::run(args, common),
        Command::Sensitivity(args) => sweep::sensitivity(args, common),
        Command::Generate(args) => generate::run(args, common),
        Command::Model(command) => model::run(command, common),
        Command::Report(args) => compare::report(args, common),
        Command::Claims(args) => claims::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Extra(extra) => {
            extra.print::<Args>()?;
            Ok(cr_cli::Exit::Done)
        }
    })
}
