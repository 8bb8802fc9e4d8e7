//! The summary of one run as text.

mod common;

use common::suite::{POLICIES, run};
use common::worked_example;
use cr_report::aggregate::Aggregator;
use cr_report::text;

#[test]
fn the_worked_example_as_text() {
    let (head, events) = worked_example();
    let mut aggregator = Aggregator::new(&head);
    events.iter().for_each(|event| aggregator.observe(event));
    insta::assert_snapshot!(text::summary(&aggregator.summary(true)), @r#"
    flat, seed 42: complete
      requests    2 offered, 2 completed, 0 failed
      rate        2000 QPS offered, 84.0 achieved
      window      0 s to 23.8 ms
      served hit  41.4 % of prompt tokens (41.4 % mean per request, 37.5 % by blocks)
      by scope    g 27.6 %, k 13.8 %
      imbalance   1.00 by requests, 1.00 by tokens, 1.00 by busy time (max / mean)
                 mean      p50      p90      p99      max    count
      TTFT    13.8 ms  10.8 ms  16.8 ms  16.8 ms  16.8 ms        2
      TPOT    6.50 ms  6.50 ms  6.50 ms  6.50 ms  6.50 ms        1
      e2e     20.3 ms  16.8 ms  23.8 ms  23.8 ms  23.8 ms        2
      queue   4.90 ms      0 s  9.80 ms  9.80 ms  9.80 ms        2
      fairness    Jain 1.00, worst tenant k1 at 1.00 times the mean TTFT
    "#);
}

#[test]
fn what_went_wrong_is_said() {
    let mut summary = run(POLICIES[5], 3, 12.0, 4, 400).summary;
    (summary.complete, summary.saturated, summary.in_sample) = (false, true, true);
    (summary.requests.failed, summary.requests.cancelled, summary.requests.interrupted) = (30, 2, 12);
    summary.requests.failed_by_reason.insert("timeout".into(), 30);
    summary.tpot_s = Default::default();
    insta::assert_snapshot!(text::summary(&summary), @r#"
    cacheroute, seed 3: stopped before its end, partial figures
      requests    400 offered, 400 completed, 30 failed, 2 cancelled, 12 interrupted
      failures    30 timeout
      rate        12.2 QPS offered, 12.2 achieved
      window      0 s to 32.8 s
      served hit  73.1 % of prompt tokens (72.8 % mean per request, 72.6 % by blocks)
      by scope    g 36.5 %, k 36.5 %
      imbalance   1.15 by requests, 1.06 by tokens, 1.06 by busy time (max / mean)
      in 10 s     1.08 p50, 1.19 p95 by busy time over 3 spans
                 mean      p50      p90      p99      max    count  (saturated)
      TTFT    40.3 ms  34.8 ms  71.0 ms   118 ms   135 ms      400
      TPOT                                               no values
      e2e      100 ms  94.8 ms   131 ms   178 ms   195 ms      400
      queue   3.24 ms      0 s  6.00 ms  62.7 ms  89.9 ms      400
      fairness    Jain 0.977, worst tenant k6 at 1.33 times the mean TTFT
      slowdown    Jain 0.999, worst tenant k5 takes 1.10 times its service
      saturated   more than 5 % of the requests failed: the latencies mean nothing
      in sample   the table was planned from a trace; if from this one, it knew what would come
    "#);
}
