//! One run with what sums it up.

use cr_report::aggregate::Aggregator;
use cr_report::events::Event;
use cr_routing::table::RoutingTable;
use std::sync::Arc;

use super::findings;
use super::live::{Live, Past, Phase};
use super::log::Kind;

/// The most summaries of earlier runs of a stream that are kept.
pub const MAX_EARLIER: usize = 256;

/// A run and its aggregator. Only [`Run::live`] is drawn, and copied when the picture is frozen.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What is drawn.
    pub live: Live,
    aggregator: Option<Aggregator>,
    /// Events and phase that the summary is of.
    summed: Option<(u64, Phase)>,
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new(name: impl Into<String>) -> Run {
        Run { live: Live::new(name), ..Run::default() }
    }

    /// The same, held against routing tables that the user named, in order of the time they are installed at.
    #[must_use]
    pub fn with_tables(mut self, tables: Arc<Vec<RoutingTable>>) -> Run {
        self.live.tables = tables;
        self
    }

    /// What follows is another stream, and why.
    pub fn start_over(&mut self, why: &str) {
        *self = Run::new(&self.live.name).with_tables(Arc::clone(&self.live.tables));
        self.live.log.push(0.0, Kind::Note, why);
    }

    /// A stream may hold several runs, one after the other. The one that begins is shown; what the ones before came to is kept, of
    /// the last [`MAX_EARLIER`].
    fn next_run(&mut self) {
        self.end();
        let Live { runs_before, summary, findings, gate, earlier, bad_lines, log, .. } = &mut self.live;
        let (runs_before, bad_lines) = (*runs_before + 1, *bad_lines);
        let last_bad_line = log.last(Kind::BadLine).map(|entry| entry.text.clone());
        let mut earlier = std::mem::take(earlier);
        if let Some(summary) = summary.take() {
            if earlier.len() == MAX_EARLIER {
                earlier.pop_front();
            }
            earlier.push_back(Past { summary, findings: std::mem::take(findings), gate: gate.take() });
        }
        self.start_over(&format!("run {} of this stream begins", runs_before + 1));
        (self.live.earlier, self.live.runs_before) = (earlier, runs_before);
        // They are the stream's, not a run's.
        self.live.bad_lines = bad_lines;
        if let Some(text) = last_bad_line {
            self.live.log.push(0.0, Kind::BadLine, text);
        }
    }

    /// Takes over one event that the reader has checked.
    pub fn observe(&mut self, event: &Event) {
        if matches!(event, Event::Header(_)) && self.live.header.is_some() {
            self.next_run();
        }
        match event {
            Event::Header(header) => self.aggregator = Some(Aggregator::new(header)),
            event => {
                if let Some(aggregator) = &mut self.aggregator {
                    aggregator.observe(event);
                }
            }
        }
        self.live.observe(event);
        if let Event::Summary(_) = event {
            self.refresh();
        }
    }

    /// The input is over.
    pub fn end(&mut self) {
        self.live.end();
        self.refresh();
    }

    /// Works out the summary so far, unless nothing has come since the last time. Its cost grows with the number of tenants, so it is not
    /// done for every event, but for everybody who looks. The run's own word, once it has come, stands.
    pub fn refresh(&mut self) {
        let Some(aggregator) = &self.aggregator else { return };
        let now = (self.live.events, self.live.phase);
        if self.summed.replace(now) == Some(now) {
            return;
        }
        self.live.totals = aggregator.shard_totals();
        if self.live.phase != Phase::Ended {
            self.live.summary = Some(aggregator.summary(false));
        }
        self.live.findings = findings::check(&self.live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_report::events::{Header, Plan};

    #[test]
    fn the_next_run_of_a_stream_starts_afresh() {
        let header =
            |seed: u64| Event::Header(Header { policy: "flat".into(), seed, shards: 2, ..Header::default() });
        let plan =
            Plan { t_s: 9.0, admitted_keys: 1, moved_keys: 0, churn: 0.0, imbalance: 1.0, cold_rate: 0.0 };
        let mut run = Run::new("suite.ndjson");
        for event in [header(1), Event::Plan(plan), header(2)] {
            run.observe(&event);
        }
        let live = &run.live;
        assert_eq!(live.header.as_ref().map(|header| header.seed), Some(2));
        assert_eq!((live.t_s, live.plans.len(), live.runs_before), (0.0, 0, 1));
        assert_eq!((live.name.as_str(), live.phase), ("suite.ndjson", Phase::Running));
        assert_eq!(live.earlier.iter().map(|past| past.summary.seed).collect::<Vec<_>>(), [1]);
    }
}
