//! Spreading arrivals whose timestamps were rounded.
//!
//! Published traces often round times to a grid (the conversation trace to 3 s), so that requests arrive in bunches that
//! nobody sent. Requests of one timestamp are spread evenly up to the next timestamp; the last bunch takes the gap before it.

use crate::{Request, TraceError};
use std::collections::VecDeque;

/// Requests with their bunches spread. Holds one bunch and the request after it.
#[derive(Debug)]
pub struct Unbunch<I> {
    source: I,
    ready: VecDeque<Result<Request, TraceError>>,
    bunch: Vec<Request>,
    gap_s: f64,
}

impl<I> Unbunch<I> {
    /// Spreads the bunches of `source`, which is ordered by arrival.
    pub fn new(source: I) -> Unbunch<I> {
        Unbunch { source, ready: VecDeque::new(), bunch: Vec::new(), gap_s: 0.0 }
    }

    /// Spreads the bunch over `gap_s`.
    fn release(&mut self) {
        let step = self.gap_s / self.bunch.len().max(1) as f64;
        for (index, mut request) in self.bunch.drain(..).enumerate() {
            // To the microsecond, as generated arrivals.
            request.t_s = ((request.t_s + index as f64 * step) * 1e6).round() / 1e6;
            self.ready.push_back(Ok(request));
        }
    }
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for Unbunch<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            match self.source.next() {
                Some(Ok(request)) => {
                    if let Some(first) = self.bunch.first()
                        && request.t_s > first.t_s
                    {
                        self.gap_s = request.t_s - first.t_s;
                        self.release();
                    }
                    self.bunch.push(request);
                }
                Some(Err(error)) => {
                    self.release();
                    self.ready.push_back(Err(error));
                }
                None if self.bunch.is_empty() => return None,
                None => self.release(),
            }
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentId, RequestId, Segment};

    fn spread(times: &[f64]) -> Vec<f64> {
        let request = |(id, &t_s): (usize, &f64)| {
            Ok(Request {
                id: RequestId(id as u64),
                t_s,
                key: "k".into(),
                tenant: None,
                session: None,
                turn: None,
                after: None,
                think_s: None,
                prompt: [Segment(ContentId::block(0), 1)].into_iter().collect(),
                output_tokens: 1,
            })
        };
        let spread: Result<Vec<_>, _> = Unbunch::new(times.iter().enumerate().map(request)).collect();
        let spread = spread.expect("has no errors");
        assert!(spread.iter().enumerate().all(|(index, request)| request.id.0 == index as u64));
        spread.iter().map(|request| request.t_s).collect()
    }

    #[test]
    fn bunches_spread_up_to_the_next() {
        assert_eq!(spread(&[0.0, 0.0, 0.0, 3.0, 6.0, 6.0]), [0.0, 1.0, 2.0, 3.0, 6.0, 7.5]);
        assert!(spread(&[]).is_empty());
        assert_eq!(spread(&[2.0, 2.0]), [2.0, 2.0], "a lone bunch has no gap to spread over");
    }
}
