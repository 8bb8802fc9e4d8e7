//! Numbers as people read them.

/// With three significant digits: `0.0123`, `1.23`, `123`, `12,345`.
pub fn three(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ => (2 - size.log10().floor() as i64).clamp(0, 6) as usize,
    };
    if size >= 1e4 { grouped(value.round()) } else { format!("{value:.decimals$}") }
}

/// A whole number in groups of three digits.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn grouped(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs() as u64))
}

/// Seconds in the unit that suits: `1.23 s`, `12.3 ms`, `820 µs`.
pub fn seconds(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0 s".into(),
        _ if size >= 0.9995 => format!("{} s", three(value)),
        _ if size >= 0.9995e-3 => format!("{} ms", three(value * 1e3)),
        _ => format!("{} µs", three(value * 1e6)),
    }
}

/// Seconds as on an axis, without trailing zeros: `20 ms`, `0.5 s` as `500 ms`.
pub fn axis_seconds(value: f64) -> String {
    let text = seconds(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// A rate in requests per second, without trailing zeros: `30`, `2.5`.
pub fn rate(value: f64) -> String {
    let text = three(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A share in per cent with one decimal: `71.2 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A ratio with two decimals.
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// A mean and the half width of its interval, where there is one.
pub fn plus_minus(mean: f64, half: Option<f64>, text: impl Fn(f64) -> String) -> String {
    match half {
        Some(half) => format!("{} ± {}", text(mean), text(half)),
        None => text(mean),
    }
}

/// Seconds with an interval in one unit, that of the larger of the two: `1.41 ± 0.87 s`.
pub fn seconds_plus_minus(mean: f64, half: Option<f64>) -> String {
    let Some(half) = half else {
        return seconds(mean);
    };
    let size = mean.abs().max(half);
    let (factor, unit) = match size {
        _ if size >= 0.9995 || size == 0.0 => (1.0, "s"),
        _ if size >= 0.9995e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    let decimals = match size * factor {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{:.decimals$} ± {:.decimals$} {unit}", mean * factor, half * factor)
}

/// A share in per cent with an interval: `71.2 ± 0.4 %`.
pub fn percent_plus_minus(share: f64, half: Option<f64>) -> String {
    match half {
        Some(half) => format!("{:.1} ± {:.1} %", share * 100.0, half * 100.0),
        None => percent(share),
    }
}

/// A ratio with an interval.
pub fn ratio_plus_minus(value: f64, half: Option<f64>) -> String {
    plus_minus(value, half, ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let texts = [0.0, 0.01234, 1.2345, 99.96, 123.4, 12345.6, -0.5].map(three);
        assert_eq!(texts, ["0", "0.0123", "1.23", "100", "123", "12,346", "-0.500"]);
        let texts = [0.0, 1.5, 0.0123, 0.00082, 3601.0, -0.25].map(seconds);
        assert_eq!(texts, ["0 s", "1.50 s", "12.3 ms", "820 µs", "3601 s", "-250 ms"]);
        assert_eq!(
            [0, 999, 1000, 128_824, 1_000_000].map(count),
            ["0", "999", "1,000", "128,824", "1,000,000"]
        );
        assert_eq!(plus_minus(30.0, Some(4.25), rate), "30 ± 4.25");
        assert_eq!(percent_plus_minus(0.5, Some(0.01)), "50.0 ± 1.0 %");
        assert_eq!(percent_plus_minus(0.5, None), "50.0 %");
        let texts =
            [(1.41, 0.873), (0.09, 0.0012), (-0.2, 3.57), (0.0, 0.0), (0.000_3, 0.000_02), (0.995, 1.58)];
        let texts = texts.map(|(mean, half)| seconds_plus_minus(mean, Some(half)));
        assert_eq!(
            texts,
            [
                "1.41 ± 0.87 s",
                "90.0 ± 1.2 ms",
                "-0.20 ± 3.57 s",
                "0.00 ± 0.00 s",
                "300 ± 20 µs",
                "0.99 ± 1.58 s"
            ]
        );
    }
}
