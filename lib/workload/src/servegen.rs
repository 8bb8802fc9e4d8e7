//! ServeGen's published clients: a folder of `chunk-N-trace.csv`, each the arrivals of one client as a series of rates.
//!
//! A row is `start_s,rate,cv,family,…`: from `start_s` to the next row's, `rate` requests per second with gaps of the named
//! family (`Gamma`, `Weibull`; none where the rate is 0) and coefficient of variation `cv`. The columns behind those are the
//! publishers' fits of the family's parameters, whose means differ from `1/rate`; rate and cv are what was measured and what is
//! used here. From "ServeGen: Workload Characterization and Generation of Large Language Model Serving in Production"
//! (arXiv 2505.09999). The folder tells nothing of lengths or of shared content: the caller chooses them.

use crate::arrivals::{Gaps, round_us};
use crate::length::LengthSampler;
use crate::{Length, WorkloadError};
use compact_str::format_compact;
use cr_trace::{ContentId, Key, Prompt, Request, RequestId, Segment, Stream, Time, stream};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

const FIELD: &str = "servegen";
/// The last row of a series lasts as long as the one before it, or so long where it is alone.
const LONE_ROW_S: f64 = 600.0;

/// Variations are taken to lie in this range. Beyond it (1 in 100 published rows, up to 1,038) a single gap outlasts the
/// stretch that it was measured in, and the rate would no longer come out.
const MIN_CV: f64 = 0.05;
const MAX_CV: f64 = 30.0;

/// What the folder does not tell.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeGenOptions {
    /// The seed; every client draws from a stream of its own.
    pub seed: u64,
    /// The window of the published time that is generated, in seconds; requests count time from its start.
    pub window_s: (f64, f64),
    /// Every rate is multiplied by this.
    pub rate_scale: f64,
    /// Tokens of a client's context, which leads its prompts; 0 for none.
    pub key_tokens: u32,
    /// Tokens of a request beyond that.
    pub user_tokens: Length,
    /// Tokens to decode.
    pub output_tokens: Length,
}

impl ServeGenOptions {
    fn check(&self) -> Result<(), WorkloadError> {
        let (from, to) = self.window_s;
        if !(0.0 <= from && from < to && to <= Time::MAX_S) {
            return Err(WorkloadError::field(
                FIELD,
                format!(
                    "the window from {from} to {to} s must lie within 0 and {} s and not be empty",
                    Time::MAX_S
                ),
            ));
        }
        crate::error::within("servegen.rate_scale", self.rate_scale, 1e-9..=1e6)
    }
}

/// A stretch of one rate.
#[derive(Clone, Debug)]
struct Piece {
    end_s: f64,
    rate: f64,
    gaps: Gaps,
}

/// One client: its key, its stretches within the window in reverse order, and where it is.
#[derive(Clone, Debug)]
struct Client {
    key: Key,
    pieces: Vec<Piece>,
    now_s: f64,
    rng: Stream,
}

impl Client {
    /// The next arrival; `None` when the window is over.
    ///
    /// The gap is drawn in the stretch where it begins and spent at the rates that it crosses.
    fn next_s(&mut self) -> Option<f64> {
        while self.pieces.last()?.rate == 0.0 {
            self.now_s = self.pieces.pop()?.end_s;
        }
        let mut left = self.pieces.last_mut()?.gaps.draw(&mut self.rng);
        loop {
            let piece = self.pieces.last()?;
            let room = piece.rate * (piece.end_s - self.now_s);
            if left < room {
                self.now_s += left / piece.rate;
                return Some(self.now_s);
            }
            left -= room.max(0.0);
            self.now_s = piece.end_s;
            self.pieces.pop();
        }
    }
}

/// The requests of all clients, in order of arrival. Memory depends on the clients and on the window, not on the requests.
#[derive(Clone, Debug)]
pub struct ServeGen {
    clients: Vec<Client>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    from_s: f64,
    key_tokens: u32,
    user: LengthSampler,
    output: LengthSampler,
    lengths: Stream,
    next_id: u64,
}

impl ServeGen {
    /// Reads the clients of a folder.
    ///
    /// # Errors
    ///
    /// Options out of range; a folder without clients; a file that is no series of rates, with its line.
    pub fn open(folder: &Path, options: &ServeGenOptions) -> Result<ServeGen, WorkloadError> {
        options.check()?;
        let mut clients = Vec::new();
        for (number, path) in series(folder)? {
            let pieces = read(&path, options)?;
            clients.push(Client {
                key: format_compact!("c{number}"),
                pieces,
                now_s: options.window_s.0,
                rng: stream(options.seed, &format!("servegen/{number}")),
            });
        }
        let next = clients
            .iter_mut()
            .enumerate()
            .filter_map(|(index, client)| Some(Reverse((microseconds(client.next_s()?), index))))
            .collect();
        Ok(ServeGen {
            clients,
            next,
            from_s: options.window_s.0,
            key_tokens: options.key_tokens,
            user: options.user_tokens.sampler("user_tokens", Path::new(""))?,
            output: options.output_tokens.sampler("output_tokens", Path::new(""))?,
            lengths: stream(options.seed, "servegen-tokens"),
            next_id: 0,
        })
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }
}

fn microseconds(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// The files of a folder that are series of rates, by the client's number.
fn series(folder: &Path) -> Result<Vec<(u64, PathBuf)>, WorkloadError> {
    let unreadable =
        |error: std::io::Error| WorkloadError::file(FIELD, folder, None, format!("cannot be read: {error}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("chunk-").and_then(|rest| rest.strip_suffix("-trace.csv"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    if found.is_empty() {
        return Err(WorkloadError::file(FIELD, folder, None, "has no files called chunk-N-trace.csv"));
    }
    found.sort();
    Ok(found)
}

/// The stretches of a series that lie in the window, last one first.
fn read(path: &Path, options: &ServeGenOptions) -> Result<Vec<Piece>, WorkloadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| WorkloadError::file(FIELD, path, None, format!("cannot be read: {error}")))?;
    let mut rows: Vec<(f64, Row<'_>)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fault = |what: String| WorkloadError::file(FIELD, path, Some(index + 1), what);
        let (start_s, row) = row(line).map_err(fault)?;
        if rows.last().is_some_and(|(last, _)| *last >= start_s) {
            return Err(fault(format!("the start {start_s} s is not after the row before")));
        }
        rows.push((start_s, row));
    }
    let (from, to) = options.window_s;
    let mut pieces = Vec::new();
    for (index, (start_s, row)) in rows.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| start_s - rows[before].0);
        let end_s = rows.get(index + 1).map_or(start_s + before.unwrap_or(LONE_ROW_S), |next| next.0);
        if end_s <= from || *start_s >= to {
            continue;
        }
        if pieces.is_empty() && *start_s > from {
            pieces.push(Piece { end_s: *start_s, rate: 0.0, gaps: Gaps::Poisson });
        }
        pieces.push(Piece { end_s: end_s.min(to), rate: row.rate * options.rate_scale, gaps: row.gaps() });
    }
    pieces.reverse();
    Ok(pieces)
}

/// What a row tells beyond its start.
struct Row<'a> {
    rate: f64,
    cv: f64,
    family: &'a str,
}

impl Row<'_> {
    fn gaps(&self) -> Gaps {
        match self.family {
            "Gamma" => Gaps::gamma(self.cv.clamp(MIN_CV, MAX_CV)),
            "Weibull" => Gaps::weibull(self.cv.clamp(MIN_CV, MAX_CV)),
            _ => Gaps::Poisson,
        }
    }
}

fn row(line: &str) -> Result<(f64, Row<'_>), String> {
    let mut fields = line.split(',').map(str::trim);
    let mut number = |what: &str, range: std::ops::RangeInclusive<f64>| {
        let field = fields.next().unwrap_or_default();
        let value = field.parse::<f64>().map_err(|_| format!("the {what} {field:?} is no number"))?;
        if range.contains(&value) {
            return Ok(value);
        }
        Err(format!("the {what} is {value}, it must lie between {} and {}", range.start(), range.end()))
    };
    let start_s = number("start", 0.0..=Time::MAX_S)?;
    let rate = number("rate", 0.0..=1e9)?;
    let cv = number("cv", 0.0..=f64::MAX)?;
    let family = fields.next().unwrap_or_default();
    match family {
        "" if rate == 0.0 => {}
        "Gamma" | "Weibull" => {}
        _ => {
            return Err(format!("the family {family:?} is not known; Gamma or Weibull, or none with rate 0"));
        }
    }
    Ok((start_s, Row { rate, cv, family }))
}

impl Iterator for ServeGen {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let Reverse((at_us, index)) = self.next.pop()?;
        let client = &mut self.clients[index];
        if let Some(next_s) = client.next_s() {
            self.next.push(Reverse((microseconds(next_s), index)));
        }
        let key = client.key.clone();
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let mut prompt = Prompt::new();
        if self.key_tokens > 0 {
            prompt.push(Segment(ContentId::key(&key), self.key_tokens));
        }
        prompt.push(Segment(ContentId::user(id), self.user.draw(&mut self.lengths)));
        Some(Request {
            id,
            t_s: round_us((at_us as f64 / 1e6 - self.from_s).max(0.0)),
            key,
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt,
            output_tokens: self.output.draw(&mut self.lengths),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn options(window_s: (f64, f64)) -> ServeGenOptions {
        ServeGenOptions {
            seed: 3,
            window_s,
            rate_scale: 1.0,
            key_tokens: 100,
            user_tokens: Length::Constant(50),
            output_tokens: Length::Constant(10),
        }
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("is made");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        folder
    }

    #[test]
    fn clients_come_at_their_rates() {
        let folder = folder(&[
            ("chunk-0-trace.csv", "0,2,1.5,Gamma,9,9\n600,0,0,,0,0\n1200,4,0.8,Weibull,9,9\n"),
            ("chunk-12-trace.csv", "0,1,1,Gamma,9,9\n600,1,1,Gamma,9,9\n1200,1,1,Gamma,9,9\n"),
            ("readme.md", "ignored"),
        ]);
        let generator = ServeGen::open(folder.path(), &options((0.0, 1800.0))).expect("is valid");
        assert_eq!(generator.clients(), 2);
        let mut counts: BTreeMap<(Key, u64), f64> = BTreeMap::new();
        let mut last = 0.0;
        for request in generator {
            assert!(request.fault().is_none() && request.t_s >= last);
            last = request.t_s;
            *counts.entry((request.key, (request.t_s / 600.0) as u64)).or_default() += 1.0;
        }
        let of = |key: &str, piece| counts.get(&(key.into(), piece)).copied().unwrap_or_default();
        assert_eq!(of("c0", 1), 0.0);
        // Renewals over a stretch vary by about cv · √n around rate · time.
        for (count, expected, cv) in
            [(of("c0", 0), 1200.0f64, 1.5), (of("c0", 2), 2400.0, 0.8), (of("c12", 0), 600.0, 1.0)]
        {
            assert!((count - expected).abs() < 4.0 * cv * expected.sqrt(), "{count} of {expected}");
        }
    }

    #[test]
    fn a_window_starts_at_zero_and_scales() {
        let folder = folder(&[("chunk-0-trace.csv", "0,10,1,Gamma,9,9\n600,10,1,Gamma,9,9\n")]);
        let scaled = ServeGenOptions { rate_scale: 0.1, ..options((300.0, 900.0)) };
        let times: Vec<f64> =
            ServeGen::open(folder.path(), &scaled).expect("is valid").map(|r| r.t_s).collect();
        assert!(
            (500..700).contains(&times.len()) && times[0] < 30.0 && times[times.len() - 1] < 600.0,
            "{}",
            times.len()
        );
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let cases = [
            ("x,1,1,Gamma\n", "chunk-0-trace.csv:1: the start \"x\" is no number"),
            ("0,1\n", "chunk-0-trace.csv:1: the cv \"\" is no number"),
            ("0,1,1,Gamma\n0,1,1,Gamma\n", "chunk-0-trace.csv:2: the start 0 s is not after the row before"),
            ("0,-1,1,Gamma\n", "chunk-0-trace.csv:1: the rate is -1, it must lie between 0 and 1000000000"),
            ("0,1,1,Pareto\n", "the family \"Pareto\" is not known; Gamma or Weibull, or none with rate 0"),
        ];
        for (text, end) in cases {
            let folder = folder(&[("chunk-0-trace.csv", text)]);
            let error =
                ServeGen::open(folder.path(), &options((0.0, 600.0))).expect_err("is refused").to_string();
            assert!(error.ends_with(end), "{error}");
        }
        let empty = folder(&[]);
        assert!(ServeGen::open(empty.path(), &options((0.0, 600.0))).is_err());
        let good = folder(&[("chunk-0-trace.csv", "0,1,1,Gamma\n")]);
        assert!(ServeGen::open(good.path(), &options((9.0, 9.0))).is_err());
    }

    /// The published folder brings the rates that its files add up to.
    #[test]
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
    fn the_published_folder() {
        let Ok(traces) = std::env::var("CR_TRACES") else {
            println!("skipped: CR_TRACES names no folder of published traces");
            return;
        };
        let folder = Path::new(&traces).join("servegen/m-mid");
        let window = ServeGenOptions { rate_scale: 0.1, ..options((480_000.0, 480_600.0)) };
        let generator = ServeGen::open(&folder, &window).expect("is valid");
        assert_eq!(generator.clients(), 109);
        let count = generator.count() as f64;
        assert!((count / 600.0 - 257.99).abs() < 26.0, "{count}");
    }
}
