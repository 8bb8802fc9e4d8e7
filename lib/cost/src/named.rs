//! Cost models by name or by path.

use crate::{CostError, CostModel};
use cr_trace::bounded;

/// The cost models that are part of the binary, so that their names work from any folder.
const BUILT_IN: &[(&str, &str)] = &[
    ("8b-h100", include_str!("../../../configs/costs/8b-h100.toml")),
    ("32b-2xh100", include_str!("../../../configs/costs/32b-2xh100.toml")),
    ("70b-2xh100", include_str!("../../../configs/costs/70b-2xh100.toml")),
    ("70b-fp16-2xh100", include_str!("../../../configs/costs/70b-fp16-2xh100.toml")),
    ("worked-example", include_str!("../../../configs/costs/worked-example.toml")),
];

impl CostModel {
    /// The names that [`CostModel::by_name_or_path`] knows without a file.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in cost model by its name, or the TOML file at a path.
    ///
    /// # Errors
    /// No such name and no such file, or a file that is no valid cost model.
    pub fn by_name_or_path(text: &str) -> Result<CostModel, CostError> {
        if let Some((name, toml)) = BUILT_IN.iter().find(|(name, _)| *name == text) {
            return Self::from_toml(toml, &format!("configs/costs/{name}.toml"));
        }
        let toml = bounded::read_file(text).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => CostError::Unknown {
                name: text.into(),
                known: Self::built_in_names().collect::<Vec<_>>().join(", "),
            },
            _ => CostError::Toml { file: text.into(), what: error.to_string() },
        })?;
        Self::from_toml(&toml, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_model_is_valid_and_bears_its_name() {
        for name in CostModel::built_in_names() {
            assert_eq!(CostModel::by_name_or_path(name).expect("is valid").name, name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = CostModel::by_name_or_path("70b").expect_err("is unknown").to_string();
        assert!(error.contains("no cost model \"70b\"") && error.contains("70b-2xh100"), "{error}");
    }
}
