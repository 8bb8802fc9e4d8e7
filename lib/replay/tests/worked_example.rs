//! The contract's worked example, from the trace to the last field of the summary.

mod support;

use support::{Line, Setting, lines, request};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn the_worked_example_end_to_end() {
    let trace = [
        request(0, 0.0, &[("g:t", 32), ("k:k1", 16), ("u:0", 10)], 3),
        request(1, 0.001, &[("g:t", 32), ("k:k1", 16), ("u:1", 10)], 1),
    ];
    let (outcome, bytes) = Setting::new("flat", 1).run(&trace);
    let mut finishes = Vec::new();
    for line in lines(&bytes) {
        if let Line::Finish { id, queue_s, ttft_s, tpot_s, e2e_s, cached_tokens, cached_by_scope, .. } = line
        {
            finishes.push((id, queue_s, ttft_s, tpot_s, e2e_s, cached_tokens, cached_by_scope));
        }
    }
    let [b, a] = &finishes[..] else { panic!("two requests finish") };
    assert_eq!((a.0, b.0), (0, 1));
    assert!(
        close(a.1, 0.0)
            && close(a.2, 0.0108)
            && close(a.3.expect("three tokens"), 0.0065)
            && close(a.4, 0.0238)
    );
    assert!(close(b.1, 0.0098) && close(b.2, 0.0168) && b.3.is_none() && close(b.4, 0.0168));
    assert_eq!((a.5, b.5), (0, 48));
    assert_eq!(b.6.iter().map(|(s, n)| (s.as_str(), *n)).collect::<Vec<_>>(), [("g", 32), ("k", 16)]);

    let summary = outcome.summary;
    assert!(close(summary.served_hit, 48.0 / 116.0) && close(summary.hit_request_mean, 48.0 / 116.0));
    assert!(close(summary.hit_block, 3.0 / 8.0));
    assert!(close(summary.work.busy_s, 0.0238) && close(summary.window.to_s, 0.0238));
    assert!(summary.complete && !summary.saturated);
}
