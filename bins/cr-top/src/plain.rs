//! Without a screen: a line a second, and the summary.

use cr_cli::exit::bad_input;
use cr_cli::signals::Interrupt;
use cr_report::summary::Summary;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::{count, percent, rate, seconds};
use crate::ingest::Feed;
use crate::state::live::{Live, Phase};
use crate::state::log::Kind;
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

/// Follows the run to its end.
///
/// # Errors
/// An input that holds no events, and a failed write.
pub fn follow(feed: &Feed, lines: Lines, out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<Left> {
    let mut printed = Instant::now();
    let mut told = false;
    loop {
        if let Some(what) = feed.fault() {
            return Err(bad_input(what));
        }
        if interrupt.is_set() {
            return Ok(Left::Interrupted);
        }
        if feed.is_over() {
            return Ok(Left::Quit);
        }
        if feed.is_broken() {
            anyhow::bail!("the thread that reads events has died");
        }
        let run = feed.run();
        // The last line of a stream: in a file that is followed nothing comes after it.
        if run.live.phase == Phase::Ended {
            return Ok(Left::Quit);
        }
        let line = (printed.elapsed() >= EVERY && lines == Lines::EverySecond).then(|| line(&run.live));
        drop(run);
        if let Some(line) = line {
            printed += EVERY;
            // A line that says that nothing has come yet is said once.
            if line.is_some() || !told {
                told |= line.is_none();
                writeln!(out, "{}", line.unwrap_or_else(|| note(feed)))?;
                out.flush()?;
            }
        }
        sleep(LOOK);
    }
}

fn note(feed: &Feed) -> String {
    let run = feed.run();
    run.live.note.clone().unwrap_or_else(|| format!("waiting for events from {}", run.live.name))
}

/// One line on how the run stands; `None` before its header.
pub fn line(live: &Live) -> Option<String> {
    let header = live.header.as_ref()?;
    let of = header.requests_expected.map_or(String::new(), |n| format!("/{}", count(n)));
    let mut text = format!("t {}  {}{of} requests", seconds(live.t_s), count(live.done_requests()));
    if let Some(summary) = &live.summary {
        text.push_str(&format!(
            "  hit {}  max/mean {:.2}  TTFT p50 {} p99 {}  offered {} achieved {} QPS",
            percent(summary.served_hit),
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
    Some(text)
}

/// The summary in words, and what a reader must know of the stream itself.
pub fn summary(live: &Live, summary: &Summary) -> String {
    let mut text = cr_report::text::summary(summary);
    if live.phase == Phase::CutShort {
        text.push_str("incomplete: the stream ended without a summary\n");
    }
    if live.bad_lines > 0 {
        let last = live.log.last(Kind::BadLine).map_or("", |entry| entry.text.as_str());
        text.push_str(&format!("bad lines: {}, the last one {last}\n", count(live.bad_lines)));
    }
    text
}
