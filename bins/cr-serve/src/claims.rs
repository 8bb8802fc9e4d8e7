//! `cr-serve claims`: the claims of several reports, each beside its evidence.

use clap::Args;
use cr_cli::{Exit, InputContext, Output, bad_input};
use cr_report::load_result;
use cr_report::markdown::escape;
use cr_report::result::ResultFile;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct ClaimsArgs {
    /// Reports' folders
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Write the page (Markdown) here [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
}

/// Prints one table over all reports; exits with 3 where a claim fails.
pub(crate) fn run(args: &ClaimsArgs) -> anyhow::Result<Exit> {
    let mut reports = Vec::with_capacity(args.dirs.len());
    for dir in &args.dirs {
        if !dir.exists() {
            return Err(bad_input(format!("cannot open {}: no such folder", dir.display())));
        }
        crate::report::reserve(dir);
        reports.push((dir, load_result(dir).bad_input()?));
    }
    let mut page = String::from("# Claims and evidence\n\n");
    let all = || reports.iter().flat_map(|(_, result)| &result.evidence);
    let holding = all().filter(|evidence| evidence.holds == Some(true)).count();
    let failing = all().filter(|evidence| evidence.holds == Some(false)).count();
    let open = all().count() - holding - failing;
    let shown = if open > 0 { format!(", {open} not shown") } else { String::new() };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{holding} of {} claims hold, {failing} fail{shown}.\n", all().count());
    page.push_str(
        "| suite | claim | | evidence, means over seeds | seeds | caveat |\n|---|---|---|---|---:|---|\n",
    );
    for (dir, result) in &reports {
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        rows(&mut page, &name, result);
    }
    let bare = reports.iter().filter(|(_, result)| result.evidence.is_empty());
    let names: Vec<String> = bare
        .map(|(dir, _)| dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy())
        .map(|name| format!("[{name}]({name}/report.md)"))
        .collect();
    if !names.is_empty() {
        let _ = writeln!(
            page,
            "\nReports that claim nothing and show how the answer moves: {}.",
            names.join(", ")
        );
    }
    let mut output = Output::create(args.output.as_deref())?;
    output.write_all(page.as_bytes())?;
    output.finish()?;
    Ok(if failing == 0 { Exit::Done } else { Exit::No })
}

fn rows(page: &mut String, name: &str, result: &ResultFile) {
    for (claim, evidence) in result.design.claims.iter().zip(&result.evidence) {
        let _ = writeln!(
            page,
            "| [{name}]({name}/report.md) | {} | **{}** | {} | {} | {} |",
            escape(&claim.text),
            evidence.word(),
            escape(&evidence.said.join("; ")),
            evidence.seeds,
            escape(claim.caveat.as_deref().unwrap_or_default()),
        );
    }
}
