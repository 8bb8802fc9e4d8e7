//! Another rate for the same trace: sessions arrive further apart or closer together, and think as long as they did.

use cr_trace::{Request, SessionId};
use rustc_hash::FxHashMap;

/// The mean rate of a trace, in requests per second; 0 where it has no span.
pub fn natural_qps(requests: &[Request]) -> f64 {
    match (requests.first(), requests.last()) {
        (Some(first), Some(last)) if last.t_s > first.t_s => requests.len() as f64 / (last.t_s - first.t_s),
        _ => 0.0,
    }
}

/// The requests with the starts of sessions `factor` times as far from the first arrival; within a session, the gaps stay. A request
/// without a session is one of its own. Sorted by the new arrivals, which start at 0.
pub fn stretched(requests: &[Request], factor: f64) -> Vec<Request> {
    let origin = requests.first().map_or(0.0, |request| request.t_s);
    let mut starts: FxHashMap<&SessionId, f64> = FxHashMap::default();
    let mut moved: Vec<Request> = requests
        .iter()
        .map(|request| {
            let start = match &request.session {
                Some(session) => *starts.entry(session).or_insert(request.t_s),
                None => request.t_s,
            };
            Request { t_s: (start - origin) * factor + (request.t_s - start), ..request.clone() }
        })
        .collect();
    moved.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::{ContentId, RequestId, Segment};

    fn request(id: u64, t_s: f64, session: Option<&str>) -> Request {
        Request {
            id: RequestId(id),
            t_s,
            key: "k".into(),
            tenant: None,
            session: session.map(Into::into),
            turn: None,
            after: None,
            think_s: None,
            prompt: [Segment(ContentId::key("k"), 10)].into_iter().collect(),
            output_tokens: 1,
        }
    }

    #[test]
    fn sessions_move_and_their_gaps_stay() {
        let trace = [
            request(0, 10.0, Some("a")),
            request(1, 11.0, None),
            request(2, 12.0, Some("a")),
            request(3, 14.0, Some("b")),
            request(4, 15.0, Some("b")),
        ];
        let times = |factor| {
            stretched(&trace, factor).iter().map(|request| (request.id.0, request.t_s)).collect::<Vec<_>>()
        };
        assert_eq!(times(1.0), [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0)]);
        assert_eq!(times(0.25), [(0, 0.0), (1, 0.25), (3, 1.0), (2, 2.0), (4, 2.0)]);
        assert_eq!(times(2.0), [(0, 0.0), (1, 2.0), (2, 2.0), (3, 8.0), (4, 9.0)]);
        assert_eq!(natural_qps(&trace), 1.0);
        assert_eq!(natural_qps(&trace[..1]), 0.0);
    }
}
