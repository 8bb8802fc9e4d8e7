//! Near misses: what somebody may have meant.

/// The name closest to `typed`, where it is close enough to be a slip.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A clause to append to "unknown X": the nearest name, then all names.
pub fn hint<'a>(typed: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let all = names.clone().into_iter().collect::<Vec<_>>().join(", ");
    match nearest(typed, names) {
        Some(name) => format!("did you mean {name:?}? (one of {all})"),
        None => format!("one of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let names = ["flat", "sticky", "cacheroute"];
        assert_eq!(nearest("cacherout", names), Some("cacheroute"));
        assert_eq!(nearest("stiky", names), Some("sticky"));
        assert_eq!(nearest("zebra", names), None);
        assert!(hint("flta", names).starts_with("did you mean \"flat\"?"));
    }
}
