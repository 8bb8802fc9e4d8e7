//! Without a screen: a line a second.

use cr_cli::exit::bad_input;
use cr_cli::signals::Interrupt;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::{count, percent, rate, seconds};
use crate::session::Session;
use crate::state::live::{Live, Phase};
use crate::ui::Left;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(1);
/// Time between two looks at the input.
const LOOK: Duration = Duration::from_millis(20);

/// What is printed besides the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A line a second.
    EverySecond,
    /// Nothing.
    None,
}

/// Follows the runs to their end.
///
/// # Errors
/// An input that holds no events, and a failed write.
pub fn follow(
    session: &Session,
    lines: Lines,
    out: &mut dyn Write,
    interrupt: &Interrupt,
) -> anyhow::Result<Left> {
    let mut printed = Instant::now();
    let mut told = vec![false; session.feeds().len()];
    loop {
        if let Some(what) = session.fault() {
            return Err(bad_input(what));
        }
        if interrupt.is_set() {
            return Ok(Left::Interrupted);
        }
        // A file that ends with a summary is not followed beyond it; a pipe may bring another run.
        if session.feeds().iter().all(|feed| {
            feed.is_over()
                || (feed.run().live.phase == Phase::Ended && feed.is_file() && feed.has_caught_up())
        }) {
            return Ok(Left::Quit);
        }
        if session.is_broken() {
            anyhow::bail!("the thread that reads events has died");
        }
        if printed.elapsed() >= EVERY && lines == Lines::EverySecond {
            printed += EVERY;
            let texts: Vec<String> = session
                .lock()
                .iter_mut()
                .zip(&mut told)
                .filter_map(|(run, told)| {
                    run.refresh();
                    tick(&run.live, told)
                })
                .collect();
            for text in texts {
                writeln!(out, "{text}")?;
            }
            out.flush()?;
        }
        sleep(LOOK);
    }
}

/// A run's line of this second. That nothing has come yet is said once.
fn tick(live: &Live, told: &mut bool) -> Option<String> {
    let line = line(live);
    if line.is_none() && std::mem::replace(told, true) {
        return None;
    }
    line.or_else(|| live.note.clone()).or_else(|| Some(format!("waiting for events from {}", live.name)))
}

/// One line on how the run stands; `None` before its header.
pub fn line(live: &Live) -> Option<String> {
    let header = live.header.as_ref()?;
    let of = header.requests_expected.map_or(String::new(), |n| format!("/{}", count(n)));
    let mut text = format!("t {}  {}{of} requests", seconds(live.t_s), count(live.done_requests()));
    if let Some(summary) = &live.summary {
        text.push_str(&format!(
            "  hit {}  max/mean requests {:.2} tokens {:.2}  TTFT p50 {} p99 {}  offered {} achieved {} QPS",
            percent(summary.served_hit),
            summary.imbalance.requests,
            summary.imbalance.tokens,
            seconds(summary.ttft_s.p50),
            seconds(summary.ttft_s.p99),
            rate(summary.requests.offered_qps),
            rate(summary.requests.achieved_qps),
        ));
    }
    text.push_str(&format!("  in flight {}", count(live.fleet.in_flight())));
    if live.failed > 0 {
        text.push_str(&format!("  failed {}", count(live.failed)));
    }
    if live.bad_lines > 0 {
        text.push_str(&format!("  bad lines {}", count(live.bad_lines)));
    }
    if !live.findings.is_empty() {
        let names: Vec<&str> = live.findings.iter().map(|finding| finding.name.as_str()).collect();
        text.push_str(&format!("  warnings {}", names.join(", ")));
    }
    Some(text)
}
