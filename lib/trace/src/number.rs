//! Numbers in errors: a slip of the keyboard must not print three hundred digits.

/// A number as people write it: plain where that is short, with an exponent otherwise.
pub fn plain(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !value.is_finite() || (1e-6..1e16).contains(&size) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn short_numbers_stay_and_long_ones_get_an_exponent() {
        let texts = [0.0, -1.0, 0.25, 1e15, 1e300, -2.5e-310, f64::NAN, f64::INFINITY].map(plain);
        assert_eq!(texts, ["0", "-1", "0.25", "1000000000000000", "1e300", "-2.5e-310", "NaN", "inf"]);
    }
}
