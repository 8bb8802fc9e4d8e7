//! Cutting a trace to size: a window, a limit, clipped lengths, another pace.

use crate::ids::IdSet;
use crate::number::plain;
use crate::{Prompt, Request, Time, TraceError};

/// What to cut. The default changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Keep only arrivals in `[from, to)` seconds of the source, and count time from `from`.
    pub window_s: Option<(f64, f64)>,
    /// Keep at most this many requests.
    pub limit: Option<u64>,
    /// Clip prompts to this many tokens: the leading ones stay, so what was shared stays shared.
    pub max_input_tokens: Option<u64>,
    /// Clip outputs to this many tokens.
    pub max_output_tokens: Option<u32>,
    /// Divide arrival times by this; think times are people's and stay.
    pub speedup: f64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { window_s: None, limit: None, max_input_tokens: None, max_output_tokens: None, speedup: 1.0 }
    }
}

/// What [`Shape`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Requests kept.
    pub kept: u64,
    /// Prompts that were longer than allowed.
    pub clipped_inputs: u64,
    /// Outputs that were longer than allowed.
    pub clipped_outputs: u64,
    /// Requests whose predecessor was cut away, which therefore no longer wait for it.
    pub released: u64,
}

/// Requests cut to a [`Shape`].
#[derive(Debug)]
pub struct Shaped<I> {
    source: I,
    shape: Shape,
    kept: IdSet,
    cuts: Cuts,
}

impl<I> Shaped<I> {
    /// Cuts `source`, which is ordered by arrival.
    pub fn new(source: I, shape: Shape) -> Shaped<I> {
        Shaped { source, shape, kept: IdSet::new(1 << 20), cuts: Cuts::default() }
    }

    /// What was cut so far.
    pub fn cuts(&self) -> Cuts {
        self.cuts
    }

    fn cut(&mut self, mut request: Request) -> Result<Request, TraceError> {
        let start = self.shape.window_s.map_or(0.0, |(from, _)| from);
        request.t_s = ((request.t_s - start) / self.shape.speedup).max(0.0);
        if request.t_s > Time::MAX_S {
            let (t_s, speedup) = (plain(request.t_s), plain(self.shape.speedup));
            let what =
                format!("arrives at {t_s} s at a speed-up of {speedup}; a trace ends at {} s", Time::MAX_S);
            return Err(TraceError::File { file: format!("request {}", request.id), what });
        }
        if let Some(max) = self.shape.max_input_tokens
            && clip(&mut request.prompt, max.max(1))
        {
            self.cuts.clipped_inputs += 1;
        }
        if let Some(max) = self.shape.max_output_tokens
            && request.output_tokens > max.max(1)
        {
            request.output_tokens = max.max(1);
            self.cuts.clipped_outputs += 1;
        }
        if request.after.is_some_and(|after| !self.kept.contains(after.0)) {
            (request.after, request.think_s) = (None, None);
            self.cuts.released += 1;
        }
        self.kept.insert(request.id.0);
        self.cuts.kept += 1;
        Ok(request)
    }
}

/// Shortens a prompt to at most `max` tokens; whether it was longer.
fn clip(prompt: &mut Prompt, max: u64) -> bool {
    let mut left = max;
    for index in 0..prompt.len() {
        let tokens = u64::from(prompt[index].tokens());
        if tokens > left {
            prompt[index].1 = left as u32;
            prompt.truncate(if left > 0 { index + 1 } else { index });
            return true;
        }
        left -= tokens;
    }
    false
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for Shaped<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.shape.limit.is_some_and(|limit| self.cuts.kept >= limit) {
            return None;
        }
        loop {
            let request = match self.source.next()? {
                Ok(request) => request,
                error => return Some(error),
            };
            match self.shape.window_s {
                Some((from, _)) if request.t_s < from => continue,
                Some((_, to)) if request.t_s >= to => return None,
                _ => return Some(self.cut(request)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentId, RequestId, Segment};

    fn request(id: u64, t_s: f64) -> Request {
        Request {
            id: RequestId(id),
            t_s,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: id.checked_sub(1).map(RequestId),
            think_s: Some(2.0),
            prompt: [(0, 32), (1, 16), (2, 10)]
                .map(|(n, tokens)| Segment(ContentId::block(n), tokens))
                .into_iter()
                .collect(),
            output_tokens: 50,
        }
    }

    fn shaped(shape: Shape) -> (Vec<Request>, Cuts) {
        let mut shaped = Shaped::new((0..10).map(|id| Ok(request(id, id as f64))), shape);
        let out: Result<_, _> = shaped.by_ref().collect();
        (out.expect("has no errors"), shaped.cuts())
    }

    #[test]
    fn nothing_is_cut_by_default() {
        let (out, cuts) = shaped(Shape::default());
        let wanted: Vec<Request> = (0..10).map(|id| request(id, id as f64)).collect();
        // The first request of the sample names no predecessor.
        assert_eq!(out, wanted);
        assert_eq!(cuts, Cuts { kept: 10, ..Cuts::default() });
    }

    #[test]
    fn a_window_counts_from_its_start_and_frees_the_orphans() {
        let (out, cuts) = shaped(Shape {
            window_s: Some((3.0, 6.0)),
            speedup: 2.0,
            limit: Some(2),
            max_output_tokens: Some(7),
            ..Shape::default()
        });
        assert_eq!(out.iter().map(|r| (r.id.0, r.t_s)).collect::<Vec<_>>(), [(3, 0.0), (4, 0.5)]);
        assert_eq!((out[0].after, out[0].think_s, out[1].after), (None, None, Some(RequestId(3))));
        assert_eq!(cuts, Cuts { kept: 2, clipped_outputs: 2, released: 1, ..Cuts::default() });
    }

    #[test]
    fn arrivals_that_leave_the_clock_are_refused() {
        let source = [0.0, 20.0].into_iter().zip(0..).map(|(t_s, id)| Ok(request(id, t_s)));
        let slow = Shape { speedup: 1e-6, ..Shape::default() };
        let made: Vec<_> = Shaped::new(source, slow).map(|one| one.map_err(|e| e.to_string())).collect();
        assert!(made[0].is_ok());
        let told = "request 1: arrives at 20000000 s at a speed-up of 0.000001; a trace ends at 15000000 s";
        assert_eq!(made[1].as_ref().expect_err("is too late"), told);
    }

    #[test]
    fn clipping_keeps_the_leading_tokens() {
        for (max, segments, tokens) in [(1, 1, 1), (32, 1, 32), (33, 2, 33), (57, 3, 57), (58, 3, 58)] {
            let (out, cuts) = shaped(Shape { max_input_tokens: Some(max), ..Shape::default() });
            assert_eq!((out[0].prompt.len(), out[0].prompt_tokens()), (segments, tokens), "{max}");
            assert_eq!(cuts.clipped_inputs, if max < 58 { 10 } else { 0 });
        }
    }
}
