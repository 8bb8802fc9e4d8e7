//! Numbers as people read them: few digits, with their unit.

/// Seconds as `840 µs`, `12.3 ms`, `1.24 s`, `3m 05s`.
pub fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "–".into(),
        s if s <= 0.0 => "0 ms".into(),
        s if s < 0.000_999_5 => format!("{:.0} µs", s * 1e6),
        s if s < 0.009_995 => format!("{:.2} ms", s * 1e3),
        s if s < 0.099_95 => format!("{:.1} ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s => clock(s),
    }
}

/// The same where there is a value, a dash where there is none.
pub fn maybe_seconds(s: Option<f64>) -> String {
    s.map_or_else(|| "–".into(), seconds)
}

/// Whole seconds as `12 s`, `3m 05s`, `2h 03m`.
pub fn clock(s: f64) -> String {
    if !s.is_finite() || s < 0.0 {
        return "–".into();
    }
    let whole = s.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}m {:02}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h {:02}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d {:02}h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// A share as `71.2 %`, `100 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".into();
    }
    if share >= 0.9995 { "100 %".into() } else { format!("{:.1} %", share * 100.0) }
}

/// The same where there is a value, a dash where there is none.
pub fn maybe_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), percent)
}

/// A ratio as `1.24×`, a dash where there is none.
pub fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".into(),
        Some(ratio) if ratio >= 99.95 => format!("{ratio:.0}×"),
        Some(ratio) if ratio >= 9.995 => format!("{ratio:.1}×"),
        Some(ratio) => format!("{ratio:.2}×"),
    }
}

/// A count as `912`, `40,071`, `1.52M`.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{},{:03}", n / 1000, n % 1000),
        1_000_000..1_000_000_000 => format!("{:.2}M", n as f64 / 1e6),
        _ => format!("{:.2}G", n as f64 / 1e9),
    }
}

/// A rate as `20.1`, `812`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        r if !r.is_finite() => "–".into(),
        r if r < 99.95 => format!("{r:.1}"),
        r => count(r.round() as u64),
    }
}

/// The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below `value`: the end of an axis.
pub fn nice_ceiling(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|end| *end >= value * 0.999_999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        let cases = [
            (0.0, "0 ms"),
            (0.000_42, "420 µs"),
            (0.001_234, "1.23 ms"),
            (0.0123, "12.3 ms"),
            (0.3, "300 ms"),
            (1.239, "1.24 s"),
            (35.26, "35.3 s"),
            (185.0, "3m 05s"),
            (7380.0, "2h 03m"),
            (f64::NAN, "–"),
        ];
        for (s, text) in cases {
            assert_eq!(seconds(s), text);
        }
    }

    #[test]
    fn counts_shares_and_axis_ends() {
        assert_eq!([count(912), count(40_071), count(1_520_000)], ["912", "40,071", "1.52M"]);
        assert_eq!([percent(0.712), percent(1.0), percent(0.99949)], ["71.2 %", "100 %", "99.9 %"]);
        assert_eq!([times(Some(1.239)), times(Some(12.34)), times(None)], ["1.24×", "12.3×", "–"]);
        for (value, end) in [(0.0, 1.0), (0.011, 0.02), (2.1, 2.5), (3.0, 5.0), (10.0, 10.0), (1.2e9, 2e9)] {
            assert!((nice_ceiling(value) / end - 1.0).abs() < 1e-9, "{value}: {}", nice_ceiling(value));
        }
        assert_eq!(nice_ceiling(f64::NAN), 1.0);
    }
}
