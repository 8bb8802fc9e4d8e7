//! Per-key rates: from a trace, from a list, or live.
//!
//! * this file — [`KeyRates`], what the planner is fed;
//! * [`from_trace`] — counts over the span of a trace;
//! * [`from_list`] — `key,rate[,prefix_tokens]` as CSV or JSON lines;
//! * [`detect`] — which of these an input is;
//! * [`estimator`] — decayed counts of a live stream;
//! * [`window`] — counts of its last seconds;
//! * [`heavy`] — counts of the most frequent keys in bounded memory.

pub mod detect;
pub mod estimator;
pub mod from_list;
pub mod from_trace;
pub mod heavy;
pub mod window;

pub use detect::{Source, read_rates};
pub use estimator::RateEstimator;
pub use from_trace::TraceRates;
pub use window::WindowRates;

use cr_trace::{Key, TraceDigest};

/// The rates of many keys, in the order in which the input names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRates {
    keys: Vec<Key>,
    rates: Vec<f64>,
    prefix_tokens: Option<Vec<u64>>,
    prompt_tokens: Option<Vec<u64>>,
    other_rate: f64,
    source: Option<TraceDigest>,
}

impl KeyRates {
    /// No keys yet; with a prefix length for each key or without.
    fn new(with_prefix_tokens: bool) -> KeyRates {
        KeyRates { prefix_tokens: with_prefix_tokens.then(Vec::new), ..KeyRates::default() }
    }

    fn push(&mut self, key: Key, rate: f64, prefix_tokens: u64) {
        self.keys.push(key);
        self.rates.push(rate);
        if let Some(list) = &mut self.prefix_tokens {
            list.push(prefix_tokens);
        }
    }

    /// The keys, each once.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The rates in requests per second, in the order of the keys; finite and not negative.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The prefix of each key in tokens, in the order of the keys, where the input tells.
    pub fn prefix_tokens(&self) -> Option<&[u64]> {
        self.prefix_tokens.as_deref()
    }

    /// The mean prompt of each key in tokens, in the order of the keys, where they were counted over a trace.
    pub fn prompt_tokens(&self) -> Option<&[u64]> {
        self.prompt_tokens.as_deref()
    }

    /// Requests per second of keys that are not listed, where an estimator had to leave some out.
    pub fn other_rate(&self) -> f64 {
        self.other_rate
    }

    /// The requests that the rates were counted over, where they were.
    pub fn source(&self) -> Option<TraceDigest> {
        self.source
    }

    /// The number of keys, those of rate zero included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl FromIterator<(Key, f64)> for KeyRates {
    /// Rates without prefix lengths. The caller sees to it that keys are distinct and rates finite and not negative.
    fn from_iter<I: IntoIterator<Item = (Key, f64)>>(pairs: I) -> KeyRates {
        let mut rates = KeyRates::new(false);
        for (key, rate) in pairs {
            rates.push(key, rate, 0);
        }
        rates
    }
}
