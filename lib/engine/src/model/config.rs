//! The shape of a model, and its TOML (`cacheroute.model/1`).

use crate::EngineError;
use serde::{Deserialize, Serialize};

/// The models whose shape is part of the binary, so that their names work from any folder.
const BUILT_IN: [(&str, &str); 2] = [
    ("llama-8m", include_str!("../../../../configs/models/llama-8m.toml")),
    ("llama-tiny", include_str!("../../../../configs/models/llama-tiny.toml")),
];

const SCHEMA: &str = "cacheroute.model/1";

/// Limits that a mistyped number meets before an allocation does.
const MAX_DIM: usize = 1 << 20;
const MAX_LAYERS: usize = 1024;
const MAX_PARAMETERS: u64 = 20_000_000_000;
/// Entries of the table of rotary positions.
const MAX_POSITIONS_WIDTH: u64 = 1 << 28;

/// The shape of a Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub(super) schema: String,
    /// A short name for events and reports.
    pub name: String,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward part.
    pub ff: usize,
    /// Number of layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head, even; `hidden / heads` where the file leaves it out.
    #[serde(default)]
    pub head_dim: usize,
    /// Number of token values.
    pub vocab: usize,
    /// The longest sequence, in tokens.
    pub context: usize,
    /// The base of the rotary frequencies.
    pub rope_theta: f64,
    /// The ε of RMSNorm.
    pub norm_eps: f64,
    /// Whether the output projection is the embedding.
    #[serde(default = "yes")]
    pub tied_embeddings: bool,
    /// Whether queries, keys and values have biases (Qwen2).
    #[serde(default)]
    pub qkv_bias: bool,
    /// Whether each head's query and key pass an RMSNorm before rotation (Qwen3).
    #[serde(default)]
    pub qk_norm: bool,
    /// How the rotary frequencies were changed for a longer context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RopeScaling>,
}

/// How rotary frequencies are changed for a longer context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RopeScaling {
    /// Every frequency divided by the factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3.1: long wavelengths divided by the factor, short ones kept, a ramp between.
    Llama3 {
        /// The divisor of the longest wavelengths.
        factor: f64,
        /// Wavelengths above `original_context / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The context before the change.
        original_context: f64,
    },
    /// A divisor for each frequency, as GGUF files carry them.
    Divisors {
        /// `head_dim / 2` of them.
        divisors: Vec<f32>,
    },
}

fn yes() -> bool {
    true
}

impl ModelConfig {
    /// The names that [`ModelConfig::by_name_or_path`] knows without a file.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in model by its name, or the TOML file at a path.
    ///
    /// # Errors
    /// No such name and no such file (with the nearest name), or a file that is no valid model.
    pub fn by_name_or_path(text: &str) -> Result<ModelConfig, EngineError> {
        if let Some((name, toml)) = BUILT_IN.iter().find(|(name, _)| *name == text) {
            return Self::from_toml(toml, &format!("configs/models/{name}.toml"));
        }
        match std::fs::read_to_string(text) {
            Ok(toml) => Self::from_toml(&toml, text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err(EngineError::Config(unknown_model(text)))
            }
            Err(e) => Err(EngineError::Config(format!("{text}: {e}"))),
        }
    }

    /// Parses the TOML of a model; `file` names it in errors.
    ///
    /// # Errors
    /// Text that is no TOML of this schema, unknown fields, or a shape that cannot be.
    pub fn from_toml(text: &str, file: &str) -> Result<ModelConfig, EngineError> {
        let bad = |what: String| EngineError::Config(format!("{file}: {what}"));
        let mut config: ModelConfig =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim_end().into()))?;
        if config.schema != SCHEMA {
            return Err(bad(format!("schema is {:?}, expected {SCHEMA:?}", config.schema)));
        }
        if config.head_dim == 0 && config.heads > 0 {
            if !config.hidden.is_multiple_of(config.heads) {
                let (hidden, heads) = (config.hidden, config.heads);
                return Err(bad(format!(
                    "hidden {hidden} is no multiple of heads {heads}; state head_dim to mean it"
                )));
            }
            config.head_dim = config.hidden / config.heads;
        }
        config.validate().map_err(bad)?;
        Ok(config)
    }

    /// The schema that a config made from a checkpoint carries.
    pub(super) fn schema() -> String {
        SCHEMA.into()
    }

    /// Says what is wrong with the shape.
    pub(super) fn validate(&self) -> Result<(), String> {
        for (field, value, max) in [
            ("hidden", self.hidden, MAX_DIM),
            ("ff", self.ff, MAX_DIM),
            ("layers", self.layers, MAX_LAYERS),
            ("heads", self.heads, MAX_DIM),
            ("kv_heads", self.kv_heads, MAX_DIM),
            ("head_dim", self.head_dim, MAX_DIM),
            ("vocab", self.vocab, MAX_DIM),
            ("context", self.context, MAX_DIM),
        ] {
            if !(1..=max).contains(&value) {
                return Err(format!("{field} is {value}, must be 1 to {max}"));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(format!("kv_heads {} does not divide heads {}", self.kv_heads, self.heads));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(format!("head_dim is {}, must be even for rotary positions", self.head_dim));
        }
        let table = self.context as u64 * self.head_dim as u64;
        if table > MAX_POSITIONS_WIDTH {
            return Err(format!("context × head_dim is {table}, at most {MAX_POSITIONS_WIDTH} is allowed"));
        }
        if !(self.rope_theta > 1.0 && self.rope_theta.is_finite()) {
            return Err(format!("rope_theta is {}, must be above 1", self.rope_theta));
        }
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return Err(format!("norm_eps is {}, must be between 0 and 1", self.norm_eps));
        }
        let scaling = match &self.rope_scaling {
            Some(RopeScaling::Linear { factor }) => vec![*factor],
            Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => {
                vec![*factor, *low_freq_factor, *high_freq_factor - *low_freq_factor, *original_context]
            }
            Some(RopeScaling::Divisors { divisors }) if divisors.len() != self.head_dim / 2 => {
                return Err(format!("{} rope divisors for heads of {}", divisors.len(), self.head_dim));
            }
            Some(RopeScaling::Divisors { divisors }) => divisors.iter().map(|&d| f64::from(d)).collect(),
            None => Vec::new(),
        };
        if scaling.iter().any(|value| !(*value > 0.0 && value.is_finite())) {
            return Err("rope_scaling needs factors above 0, the high one above the low one".into());
        }
        if self.parameters() > MAX_PARAMETERS {
            return Err(format!("{} parameters, at most {MAX_PARAMETERS} are allowed", self.parameters()));
        }
        Ok(())
    }

    /// Width of the queries of one token: `heads × head_dim`.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of the keys (or values) of one token: `kv_heads × head_dim`.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// The number of weights.
    pub fn parameters(&self) -> u64 {
        let wide = |n: usize| n as u64;
        let attention = wide(self.hidden) * wide(2 * self.q_width() + 2 * self.kv_width());
        let bias = if self.qkv_bias { wide(self.q_width() + 2 * self.kv_width()) } else { 0 };
        let head_norms = if self.qk_norm { 2 * wide(self.head_dim) } else { 0 };
        let layer =
            bias + head_norms + attention + 3 * wide(self.hidden) * wide(self.ff) + 2 * wide(self.hidden);
        let embeddings = if self.tied_embeddings { 1 } else { 2 };
        wide(self.layers) * layer + embeddings * wide(self.vocab) * wide(self.hidden) + wide(self.hidden)
    }
}

fn unknown_model(text: &str) -> String {
    let names: Vec<_> = ModelConfig::built_in_names().collect();
    let nearest = names
        .iter()
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.7);
    let hint = nearest.map_or(String::new(), |(_, name)| format!("; did you mean {name}?"));
    format!("{text}: no such model and no such file (built in: {}){hint}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_eight_million_parameters() {
        let config = ModelConfig::by_name_or_path("llama-8m").expect("built in");
        assert_eq!(config.parameters(), 7_998_720);
        assert_eq!((config.head_dim, config.q_width(), config.kv_width()), (64, 256, 128));
    }

    #[test]
    fn every_built_in_model_parses_under_its_own_name() {
        for name in ModelConfig::built_in_names() {
            assert_eq!(ModelConfig::by_name_or_path(name).expect("parses").name, name);
        }
    }

    #[test]
    fn a_path_works_and_a_near_miss_is_suggested() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/models/llama-tiny.toml");
        assert_eq!(ModelConfig::by_name_or_path(path).expect("reads").name, "llama-tiny");
        let error = ModelConfig::by_name_or_path("lama-8m").expect_err("unknown").to_string();
        assert!(error.contains("did you mean llama-8m?"), "{error}");
        let error = ModelConfig::by_name_or_path("./nowhere/x.toml").expect_err("unknown").to_string();
        assert!(error.contains("no such file") && !error.contains("did you mean"), "{error}");
    }

    #[test]
    fn bad_shapes_say_what_and_where() {
        let good = BUILT_IN[1].1;
        for (from, to, expect) in [
            ("kv_heads = 2", "kv_heads = 3", "kv_heads 3 does not divide heads 4"),
            ("hidden = 64", "hidden = 65", "hidden 65 is no multiple of heads 4"),
            ("hidden = 64", "hidden = 0", "hidden is 0"),
            ("hidden = 64", "hiden = 64", "unknown field `hiden`"),
            ("model/1", "model/2", "expected \"cacheroute.model/1\""),
            ("vocab = 512", "vocab = 512\nhead_dim = 7", "must be even"),
            ("ff = 128", "ff = 99999999999", "ff is 99999999999"),
            ("layers = 2", "layers = 1024\nhead_dim = 65536", "parameters, at most"),
            ("vocab = 512", "vocab = 512\nhead_dim = 1048576", "context × head_dim is 4294967296"),
            ("norm_eps = 1e-5", "norm_eps = nan", "norm_eps is NaN"),
            ("rope_theta = 10000.0", "rope_theta = -1.0", "rope_theta is -1"),
            (
                "norm_eps = 1e-5",
                "norm_eps = 1e-5\nrope_scaling = { kind = \"linear\", factor = 0.0 }",
                "factors above 0",
            ),
            (
                "norm_eps = 1e-5",
                "norm_eps = 1e-5\nrope_scaling = { kind = \"yarn\" }",
                "unknown variant `yarn`",
            ),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{from}");
            let error = ModelConfig::from_toml(&text, "x.toml").expect_err(to).to_string();
            assert!(error.starts_with("x.toml: ") && error.contains(expect), "{error}");
        }
    }
}
