//! Figures as SVG, one file each. The same record gives the same bytes.
//!
//! Backgrounds are transparent and every colour is a mid-tone, so that a figure reads well on a light and on a dark page; lines and
//! points differ in shape or dash as well as in colour.

mod hit_imbalance;
mod palette;
mod shard_load;
mod sheet;
mod ttft_cdf;

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
    draw: fn(&Record) -> Result<Option<String>, String>,
}

impl Figure {
    /// The SVG text; `None` where the record holds nothing to draw it from.
    ///
    /// # Errors
    /// Where the drawing library fails, which no record is known to bring about.
    pub fn draw(&self, record: &Record) -> Result<Option<String>, DrawError> {
        (self.draw)(record).map_err(|what| DrawError { figure: self.file, what })
    }
}

/// Every figure, in the order in which a report shows them.
pub const FIGURES: [Figure; 3] = [
    Figure {
        file: "hit-imbalance.svg",
        heading: "Served hit against imbalance",
        caption: "Up is better (more prompt tokens come from a cache), left is better (shards are evenly busy). Points are means over \
                  seeds, whiskers their 95 % confidence intervals.",
        draw: hit_imbalance::draw,
    },
    Figure {
        file: "shard-load.svg",
        heading: "Load of each shard",
        caption: "Busy time of each shard divided by the mean over shards, shards sorted by load within each run and averaged over \
                  seeds. A flat row at 1 is perfect balance.",
        draw: shard_load::draw,
    },
    Figure {
        file: "ttft-cdf.svg",
        heading: "Distribution of TTFT",
        caption: "The share of requests whose first token came within a time, all seeds taken together, on a logarithmic axis. \
                  Further left is better; the p99 is where a line crosses 99 %.",
        draw: ttft_cdf::draw,
    },
];
