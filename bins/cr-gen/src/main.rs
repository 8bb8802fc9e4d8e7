//! Synthesise or import LLM-serving traffic.
#![forbid(unsafe_code)]

mod cli;
mod emit;
mod import;
mod input;
mod plot;
mod stats;
mod stats_table;
mod synth;
mod text;

use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli: Cli = cr_cli::config::parse();
    cli.common.apply();
    cr_cli::run("cr-gen", || match &cli.command {
        Command::Zipf(args) => synth::run(&args.spec()?, &args.synth, &cli.common),
        Command::Aggregate(args) => synth::run(&args.spec()?, &args.synth, &cli.common),
        Command::Whales(args) => synth::run(&args.spec()?, &args.synth, &cli.common),
        Command::Threads(args) => synth::run(&args.spec()?, &args.synth, &cli.common),
        Command::Spec(args) => synth::run_file(args, &cli.common),
        Command::Import(args) => import::run(args, &cli.common),
        Command::Stats(args) => stats::run(args, &cli.common),
        Command::Extra(extra) => {
            extra.print::<Cli>()?;
            Ok(cr_cli::Exit::Done)
        }
    })
}
