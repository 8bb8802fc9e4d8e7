//! Figures as SVG, one file each. The same record gives the same bytes.
//!
//! Backgrounds are transparent and every colour is a mid-tone, so that a figure reads well on a light and on a dark page; lines and
//! points differ in shape or dash as well as in colour.

mod capacity_bars;
mod heat_map;
mod hit_imbalance;
mod p99_rate;
mod palette;
mod shard_load;
mod sheet;
mod timeline;
mod tornado;
mod ttft_cdf;
mod waterfall;

pub use palette::{INK, Rgb, SERIES, contrast};

use crate::record::Record;

/// Why a figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{figure}: {what}")]
pub struct DrawError {
    /// The figure's file name.
    pub figure: &'static str,
    /// The drawing library's word.
    pub what: String,
}

/// A figure of a report.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its file name.
    pub file: &'static str,
    /// Its heading in the report.
    pub heading: &'static str,
    /// How to read it.
    pub caption: &'static str,
    /// Whether it shows all variants of a suite; the others show the first one.
    of_suite: bool,
    draw: fn(&Record) -> Result<Option<String>, String>,
}

impl Figure {
    /// The SVG text; `None` where the record holds nothing to draw it from.
    ///
    /// # Errors
    /// Where the drawing library fails, which no record is known to bring about.
    pub fn draw(&self, record: &Record) -> Result<Option<String>, DrawError> {
        let first = record.file.design.variants.first().filter(|_| !self.of_suite);
        let drawn = match first {
            Some(variant) => (self.draw)(&record.of_variant(&variant.label)),
            None => (self.draw)(record),
        };
        drawn.map_err(|what| DrawError { figure: self.file, what })
    }
}

/// Every figure, in the order in which a report shows them.
pub const FIGURES: [Figure; 9] = [
    Figure {
        file: "regimes.svg",
        heading: "Regime map",
        caption: "Each place is a variant of the suite; the number is the candidate's capacity over the baseline's (the baseline's p99 TTFT over the \
                  candidate's where there is no ladder), the sign is the verdict over paired seeds, the bar how far that is from a tie. Letters are published regimes, where both served hits are nearest.",
        of_suite: true,
        draw: heat_map::draw,
    },
    Figure {
        file: "tornado.svg",
        heading: "What the result hangs on",
        caption: "Each parameter is moved by itself over its range; a bar spans the ratios of candidate to baseline that follow, the widest on top. Red bars hold a \
                  value at which the verdict is another.",
        of_suite: true,
        draw: tornado::draw,
    },
    Figure {
        file: "hit-imbalance.svg",
        heading: "Served hit against imbalance",
        caption: "Up is better (more prompt tokens come from a cache), left is better (shards serve equally many requests). Points are means over \
                  seeds, whiskers their 95 % confidence intervals.",
        of_suite: false,
        draw: hit_imbalance::draw,
    },
    Figure {
        file: "shard-load.svg",
        heading: "Load of each shard",
        caption: "Bars: requests that each shard finished, divided by the mean over shards; shards are sorted within each run and averaged \
                  over seeds. Short lines: the same shards' time spent in steps. A flat row at 1 is perfect balance.",
        of_suite: false,
        draw: shard_load::draw,
    },
    Figure {
        file: "ttft-cdf.svg",
        heading: "Distribution of TTFT",
        caption: "The share of requests whose first token came within a time, all seeds taken together, on a logarithmic axis. \
                  Further left is better; the p99 is where a line crosses 99 %.",
        of_suite: false,
        draw: ttft_cdf::draw,
    },
    Figure {
        file: "p99-rate.svg",
        heading: "p99 TTFT against the rate",
        caption: "Means over seeds with their 95 % confidence intervals, on logarithmic axes. A line ends in a cross at the first rate \
                  at which the policy is saturated in any run: from there on no latency is quoted.",
        of_suite: false,
        draw: p99_rate::draw,
    },
    Figure {
        file: "capacity.svg",
        heading: "Capacity",
        caption: "The highest rate of the ladder up to which every rate meets the objective (p99 of TTFT within the bound, at most 5 % \
                  failures): mean over seeds; the line below is its 95 % confidence interval, dots are seeds. A bar that ends in an arrow reaches \
                  beyond the ladder (≥), an empty one lies below it (<).",
        of_suite: false,
        draw: capacity_bars::draw,
    },
    Figure {
        file: "waterfall.svg",
        heading: "Ablation, step by step",
        caption: "Each row adds one part to the row above; a bar runs from the value above to its own. Means over seeds.",
        of_suite: false,
        draw: waterfall::draw,
    },
    Figure {
        file: "timeline.svg",
        heading: "Hits and p99 over time",
        caption: "Requests by the time at which they finished, means over seeds. Dashed lines mark where a routing table was installed, \
                  crosses where a shard changed its state, both in the first seed.",
        of_suite: false,
        draw: timeline::draw,
    },
];
