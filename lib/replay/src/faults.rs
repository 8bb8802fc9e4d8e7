//! What happens to shards during a run: they die, slow down, come back cold.
//!
//! A fault is a sentence, in flags and in suites alike:
//!
//! * `down 3 at 60s for 30s` — shard 3 takes no requests from second 60 on and returns, with an empty cache, at second 90;
//!   without `for` it never returns;
//! * `slow 3 at 60s for 30s by 2x` — its steps that start in that time take twice as long;
//! * `cold 3 at 60s` — it restarts at once: what it serves is sent elsewhere or back to it, its cache is empty.

use cr_trace::{ShardId, Time};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Factors of a slow shard: from a thousandth to a thousandfold.
const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fault {
    /// Whom it hits.
    pub shard: ShardId,
    /// When, in run time.
    pub at: Time,
    /// What happens.
    pub kind: FaultKind,
}

/// What happens to a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// It dies, and returns after this long with an empty cache; never where absent.
    Down(Option<Time>),
    /// Its steps take this many times as long, for this long; to the end where absent.
    Slow(f64, Option<Time>),
    /// It restarts at once with an empty cache.
    Cold,
}

/// A sentence that is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fault {text:?}: {what}; write \"down 3 at 60s for 30s\", \"slow 3 at 60s for 30s by 2x\" or \"cold 3 at 60s\""
)]
pub struct FaultError {
    text: String,
    what: String,
}

impl Fault {
    /// When it ends: never for one that lasts, and for `cold`, which is over at once.
    pub fn ends_at(&self) -> Option<Time> {
        match self.kind {
            FaultKind::Down(lasting) | FaultKind::Slow(_, lasting) => {
                lasting.map(|lasting| self.at + lasting)
            }
            FaultKind::Cold => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shard, at_s) = (self.shard, self.at.as_s());
        let (word, lasting, by) = match self.kind {
            FaultKind::Down(lasting) => ("down", lasting, None),
            FaultKind::Slow(by, lasting) => ("slow", lasting, Some(by)),
            FaultKind::Cold => ("cold", None, None),
        };
        write!(f, "{word} {shard} at {at_s}s")?;
        if let Some(lasting) = lasting {
            write!(f, " for {}s", lasting.as_s())?;
        }
        by.map_or(Ok(()), |by| write!(f, " by {by}x"))
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> String {
        fault.to_string()
    }
}

impl TryFrom<String> for Fault {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Fault, FaultError> {
        text.parse()
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        parse(text).map_err(|what| FaultError { text: text.into(), what })
    }
}

/// The parts of a sentence that follow its first two words.
#[derive(Default)]
struct Clauses {
    at: Option<Time>,
    lasting: Option<Time>,
    by: Option<f64>,
}

fn parse(text: &str) -> Result<Fault, String> {
    let mut words = text.split_whitespace();
    let word = words.next().ok_or("it is empty")?;
    if !["down", "slow", "cold"].contains(&word) {
        return Err(format!("{word:?} is no fault; there are down, slow and cold"));
    }
    let shard = words.next().ok_or("the shard is missing")?;
    let shard = shard.parse().map_err(|_| format!("{shard:?} is no shard; shards are numbered from 0"))?;
    let clauses = clauses(words)?;
    let at = clauses.at.ok_or("\"at\" with a time is missing")?;
    let kind = match (word, clauses.lasting, clauses.by) {
        ("down", lasting, None) => FaultKind::Down(lasting),
        ("slow", lasting, Some(by)) => FaultKind::Slow(by, lasting),
        ("slow", _, None) => return Err("\"by\" with a factor is missing".into()),
        ("cold", None, None) => FaultKind::Cold,
        ("cold", Some(_), _) => return Err("a restart has no length, so no \"for\"".into()),
        _ => return Err(format!("\"by\" belongs to slow, not to {word}")),
    };
    Ok(Fault { shard: ShardId(shard), at, kind })
}

fn clauses<'a>(words: impl Iterator<Item = &'a str>) -> Result<Clauses, String> {
    const KEYWORDS: [&str; 3] = ["at", "for", "by"];
    let mut clauses = Clauses::default();
    let mut words = words.peekable();
    while let Some(keyword) = words.next() {
        if !KEYWORDS.contains(&keyword) {
            return Err(format!("{keyword:?} is not understood"));
        }
        let mut value = String::new();
        while let Some(part) = words.next_if(|word| !KEYWORDS.contains(word)) {
            value.push_str(part);
        }
        let twice = match keyword {
            "at" => clauses.at.replace(seconds(&value)?).is_some(),
            "for" => clauses.lasting.replace(lasting(&value)?).is_some(),
            _ => clauses.by.replace(factor(&value)?).is_some(),
        };
        if twice {
            return Err(format!("{keyword:?} comes twice"));
        }
    }
    Ok(clauses)
}

fn lasting(text: &str) -> Result<Time, String> {
    match seconds(text)? {
        Time::ZERO => Err("\"for\" takes a time above 0".into()),
        time => Ok(time),
    }
}

/// `60s`, `1.5s`, `250ms`, `1h30m`, or seconds as a bare number.
fn seconds(text: &str) -> Result<Time, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    let seconds = match number {
        Some(seconds) => Some(seconds),
        None => humantime::parse_duration(text).ok().map(|time| time.as_secs_f64()),
    };
    match seconds {
        Some(seconds) if (0.0..=Time::MAX_S).contains(&seconds) => Ok(Time::from_s(seconds)),
        _ => Err(format!("{text:?} is no time")),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.strip_suffix(['x', 'X']).unwrap_or(text).parse() {
        Ok(by) if FACTORS.contains(&by) => Ok(by),
        _ => {
            Err(format!("{text:?} is no factor; it lies between {}x and {}x", FACTORS.start(), FACTORS.end()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> Fault {
        text.parse().expect("is a fault")
    }

    fn error(text: &str) -> String {
        text.parse::<Fault>().expect_err("is none").to_string()
    }

    #[test]
    fn sentences_say_what_they_say() {
        let at = Time::from_s(60.0);
        let thirty = Some(Time::from_s(30.0));
        let of = |kind| Fault { shard: ShardId(3), at, kind };
        assert_eq!(fault("down 3 at 60s for 30s"), of(FaultKind::Down(thirty)));
        assert_eq!(fault("down 3 at 1m"), of(FaultKind::Down(None)));
        assert_eq!(fault("slow 3 at 60s for 30s by 2x"), of(FaultKind::Slow(2.0, thirty)));
        assert_eq!(fault("slow 3 by 2 for 0m 30s at 60"), of(FaultKind::Slow(2.0, thirty)));
        assert_eq!(fault(" cold  3 at 60000ms "), of(FaultKind::Cold));
        assert_eq!(fault("down 3 at 60s for 30s").ends_at(), Some(Time::from_s(90.0)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            error("dwon 3 at 60s"),
            "fault \"dwon 3 at 60s\": \"dwon\" is no fault; there are down, slow and cold; write \"down 3 at 60s for 30s\", \
             \"slow 3 at 60s for 30s by 2x\" or \"cold 3 at 60s\""
        );
        for (text, what) in [
            ("", "it is empty"),
            ("down", "the shard is missing"),
            ("down x at 1s", "\"x\" is no shard"),
            ("down -1 at 1s", "\"-1\" is no shard"),
            ("down 3", "\"at\" with a time is missing"),
            ("down 3 at", "\"\" is no time"),
            ("down 3 at soon", "\"soon\" is no time"),
            ("down 3 at -1s", "\"-1s\" is no time"),
            ("down 3 at nan", "\"nan\" is no time"),
            ("down 3 at 1s at 2s", "\"at\" comes twice"),
            ("down 3 at 1s for 0s", "\"for\" takes a time above 0"),
            ("down 3 at 1s by 2x", "\"by\" belongs to slow, not to down"),
            ("down 3 60s", "\"60s\" is not understood"),
            ("slow 3 at 1s", "\"by\" with a factor is missing"),
            ("slow 3 at 1s by 0x", "\"0x\" is no factor"),
            ("slow 3 at 1s by infx", "\"infx\" is no factor"),
            ("cold 3 at 1s for 2s", "a restart has no length"),
        ] {
            assert!(error(text).contains(what), "{text}: {}", error(text));
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(shard in 0u32..100, at in 0u64..1 << 50, lasting in proptest::option::of(1u64..1 << 50), by in 0.01..50.0f64, which in 0..3) {
            let lasting = lasting.map(Time);
            let kind = [FaultKind::Down(lasting), FaultKind::Slow(by, lasting), FaultKind::Cold][which as usize];
            let fault = Fault { shard: ShardId(shard), at: Time(at), kind };
            prop_assert_eq!(fault.to_string().parse::<Fault>().map(String::from), Ok(fault.to_string()));
        }

        #[test]
        fn no_text_panics(text in "(down|slow|cold|at|for|by|[0-9a-z. -]{0,6}| ){0,8}") {
            let _ = text.parse::<Fault>();
        }
    }
}
