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
        let Live { runs_before, summary, findings, gate, earlier, .. } = &mut self.live;
        let runs_before = *runs_before + 1;
        let mut earlier = std::mem::take(earlier);
        if let Some(summary) = summary.take() {
            if earlier.len() == MAX_EARLIER {
                earlier.pop_front();
            }
            earlier.push_back(Past { summary, findings: std::mem::take(findings), gate: gate.take() });
        }
        self.start_over(&format!("run {} of this stream begins", runs_before + 1));
        (self.live.earlier, self.live.runs_before) = (earlier, runs_before);
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
