//! Quantities as people type them: counts `40k`, durations `30s`, shares `25%`.
//!
//! Each function is a clap `value_parser`.

/// A count: digits with an optional `k`, `M` or `G` (powers of ten) and `_` or `,` between digits.
///
/// # Errors
/// Anything else, in words.
pub fn count(text: &str) -> Result<u64, String> {
    let clean: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, factor) = match clean.char_indices().last() {
        Some((at, 'k' | 'K')) => (&clean[..at], 1e3),
        Some((at, 'm' | 'M')) => (&clean[..at], 1e6),
        Some((at, 'g' | 'G')) => (&clean[..at], 1e9),
        _ => (clean.as_str(), 1.0),
    };
    let wrong = || format!("{text:?} is no count; write 4000, 4k, 1.5M");
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let value = digits.parse::<f64>().map_err(|_| wrong())? * factor;
    // 4.1 times a million misses the whole number by rounding.
    let whole = value.round();
    if (value - whole).abs() > 4.0 * f64::EPSILON * value || whole > 9.0e15 {
        return Err(wrong());
    }
    Ok(whole as u64)
}

/// A count that fits 32 bits and is at least one.
///
/// # Errors
/// As [`count`], and a count that is 0 or above 4,294,967,295.
pub fn positive_u32(text: &str) -> Result<u32, String> {
    match u32::try_from(count(text)?) {
        Ok(0) => Err("must be at least 1".into()),
        Ok(value) => Ok(value),
        Err(_) => Err(format!("{text} is too large; at most {}", u32::MAX)),
    }
}

/// A duration in seconds: `30s`, `5m`, `1h 30m`, `250ms`, or a bare number of seconds.
///
/// # Errors
/// Anything else, in words.
pub fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(value) = text.trim().parse::<f64>() {
        return if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(format!("{text:?} is no duration; it must be a finite number of seconds, not negative"))
        };
    }
    humantime::parse_duration(text.trim())
        .map(|d| d.as_secs_f64())
        .map_err(|_| format!("{text:?} is no duration; write 30s, 250ms, 1h 30m, or seconds as 12.5"))
}

/// A share between 0 and 1: `25%` or `0.25`.
///
/// # Errors
/// Anything else, in words.
pub fn share(text: &str) -> Result<f64, String> {
    let clean = text.trim();
    let value = match clean.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|p| p / 100.0),
        None => clean.parse::<f64>(),
    };
    match value {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(format!("{text:?} is no share; write 25% or 0.25, between 0 and 1")),
    }
}

/// A finite number above 0.
///
/// # Errors
/// Anything else, in words.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("{text:?} must be a finite number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("40k", 40_000),
            ("1.5M", 1_500_000),
            ("12", 12),
            ("1_000", 1000),
            ("0", 0),
            ("2G", 2_000_000_000),
            ("4.1M", 4_100_000),
            ("8.2M", 8_200_000),
            ("16.1k", 16_100),
            ("2.01k", 2_010),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["", "k", "-1", "1.5", "1.0001k", "4x", "1e400", "inf", "nan", ".5", "٤", "40é"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(positive_u32("0").is_err() && positive_u32("5G").is_err());
    }

    #[test]
    fn durations_and_shares() {
        assert_eq!(seconds("250ms"), Ok(0.25));
        assert_eq!(seconds("1h 30m"), Ok(5400.0));
        assert_eq!(seconds("12.5"), Ok(12.5));
        for text in ["", "-1", "nan", "inf", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(share("25%"), Ok(0.25));
        assert_eq!(share("0.25"), Ok(0.25));
        for text in ["", "250%", "-1", "nan%", "x"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert!(positive("0").is_err() && positive("nan").is_err() && positive("2.5").is_ok());
    }
}
