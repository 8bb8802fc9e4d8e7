//! The file of a fit (`cacheroute.fit/1`).

use cr_trace::Stream;
use rand::RngExt;
use serde::Deserialize;
use toml::Value;

const SCHEMA: &str = "cacheroute.fit/1";

/// What is searched, and against what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    schema: String,
    /// The suite whose `[[published]]` values are to be met; from the fit's own folder.
    pub suite: String,
    /// The seed of the search.
    pub seed: u64,
    /// Sets of parameters that are tried.
    pub evaluations: u32,
    /// Seeds of the runs of the search.
    pub search_seeds: Vec<u64>,
    /// So many of them first: a set that is far behind the best on those is tried no further.
    #[serde(default)]
    pub screen_seeds: Option<usize>,
    /// Seeds on which the chosen set is tried at the end.
    pub held_out_seeds: Vec<u64>,
    /// The rates of the search, where the suite's own ladder has more than it needs.
    #[serde(default)]
    pub qps: Vec<f64>,
    /// What is searched.
    pub parameter: Vec<Parameter>,
    /// What the requests must show whatever the parameters.
    #[serde(default)]
    pub fact: Vec<Fact>,
}

/// A parameter: a field of the suite, and a range or a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The field, as in `[[vary]]`.
    pub field: String,
    /// From here,
    pub low: Option<f64>,
    /// to here,
    pub high: Option<f64>,
    /// evenly, or evenly in logarithms,
    #[serde(default)]
    pub log: bool,
    /// rounded to whole numbers.
    #[serde(default)]
    pub whole: bool,
    /// Instead of a range: these values.
    #[serde(default)]
    pub values: Vec<Value>,
}

/// A bound on a statistic of the first search seed's requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its place in `cr-gen stats --format json`, as in `input_tokens.mean`.
    pub of: String,
    /// At least this,
    pub low: f64,
    /// at most this.
    pub high: f64,
}

impl FitSpec {
    /// Parses a fit; `file` names it in errors.
    ///
    /// # Errors
    /// Text that is no TOML of this schema, or ranges that are none.
    pub fn from_toml(text: &str, file: &str) -> Result<FitSpec, String> {
        let spec: FitSpec = toml::from_str(text).map_err(|error| {
            let (line, what) = cr_trace::config_text::explain(text, error.span(), error.message());
            format!("{file}:{line}: {what}")
        })?;
        let fault = match () {
            () if spec.schema != SCHEMA => Some(format!("schema is {:?}, expected {SCHEMA:?}", spec.schema)),
            () if spec.evaluations == 0 || spec.parameter.is_empty() => {
                Some("give at least one evaluation and one [[parameter]]".into())
            }
            () if spec.search_seeds.is_empty() || spec.held_out_seeds.is_empty() => {
                Some("give search_seeds and held_out_seeds".into())
            }
            () if spec.screen_seeds.is_some_and(|count| count == 0 || count >= spec.search_seeds.len()) => {
                Some("screen_seeds must leave some of search_seeds".into())
            }
            () => match spec.search_seeds.iter().find(|seed| spec.held_out_seeds.contains(seed)) {
                Some(seed) => Some(format!("seed {seed} is searched with and held out; it must not be both")),
                None => spec.parameter.iter().find_map(Parameter::fault),
            },
        };
        fault.map_or(Ok(spec), |what| Err(format!("{file}: {what}")))
    }
}

impl Parameter {
    fn fault(&self) -> Option<String> {
        let field = &self.field;
        match (self.low, self.high) {
            (None, None) if !self.values.is_empty() => None,
            (Some(low), Some(high)) if self.values.is_empty() && low < high => (self.log && low <= 0.0)
                .then(|| format!("parameter {field:?}: a logarithm needs low above 0")),
            _ => Some(format!("parameter {field:?} needs either low below high, or values")),
        }
    }

    /// The value at a place from 0 to 1 of its range.
    pub(super) fn at(&self, place: f64) -> Value {
        let (Some(low), Some(high)) = (self.low, self.high) else {
            let last = self.values.len().saturating_sub(1);
            return self.values[((place * self.values.len() as f64) as usize).min(last)].clone();
        };
        let value = match self.log {
            true => libm::exp(libm::log(low) + place * (libm::log(high) - libm::log(low))),
            false => low + place * (high - low),
        };
        match self.whole {
            true => Value::Integer(value.round() as i64),
            false => Value::Float(crate::suite::sweep::three_digits(value)),
        }
    }
}

/// A set of parameters, each as a place from 0 to 1.
pub(super) type Places = Vec<f64>;

/// Anywhere.
pub(super) fn anywhere(count: usize, rng: &mut Stream) -> Places {
    (0..count).map(|_| rng.random::<f64>()).collect()
}

/// Near `centre`: about half of the parameters move, by up to `width`; ends reflect.
pub(super) fn near(centre: &Places, width: f64, rng: &mut Stream) -> Places {
    let moved = |place: &f64| {
        let (stays, by) = (rng.random::<f64>() < 0.5, (rng.random::<f64>() - 0.5) * 2.0 * width);
        let there = (place + if stays { 0.0 } else { by }).abs();
        if there > 1.0 { 2.0 - there } else { there }
    };
    centre.iter().map(moved).collect()
}
