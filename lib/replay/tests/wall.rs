//! The wall clock, on steps short enough for a test. Nothing here is asserted of how long anything took.

mod support;

use cr_replay::{Clock, Stop};
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Line, Setting, ends, lines, request};

fn trace(requests: u64) -> Vec<cr_trace::Request> {
    let one = |id: u64| {
        let (key, user) = (format!("k:k{}", id % 5), format!("u:{id}"));
        let mut r = request(id, id as f64 * 0.005, &[("g:t", 16), (&key, 32), (&user, 5)], 3);
        if id % 7 == 3 {
            r.after = Some(cr_trace::RequestId(id - 3));
            r.think_s = Some(0.01);
        }
        r
    };
    (0..requests).map(one).collect()
}

fn setting(policy: &'static str, shards: u32) -> Setting {
    Setting { clock: Clock::Wall, ..Setting::new(policy, shards) }
}

/// Everything ends once (the ledger sees to it), and hits do not depend on how fast the machine is where routing does not.
#[test]
fn a_run_in_real_time_is_whole() {
    let trace = trace(60);
    let (outcome, bytes) = setting("sticky", 3).run(&trace);
    let (mut finished, failed) = ends(&bytes);
    finished.sort_unstable();
    assert_eq!((finished, failed), ((0..60).collect::<Vec<_>>(), vec![]));
    let mut snapshots = 0;
    for line in lines(&bytes) {
        match line {
            Line::Header { clock, .. } => assert_eq!(clock, "wall"),
            Line::Finish { t_s, arrival_s, id, .. } => {
                assert!(arrival_s + 1e-9 >= trace[id as usize].t_s && t_s > arrival_s, "request {id}");
            }
            Line::Shards { t_s, .. } => {
                snapshots += 1;
                assert!(t_s >= 0.0);
            }
            _ => {}
        }
    }
    assert!(snapshots >= 2);
    assert_eq!(outcome.summary.requests.completed, 60);
    assert!(outcome.summary.served_hit > 0.3);
}

#[test]
fn faults_happen_in_real_time_too() {
    let faults = vec!["down 0 at 50ms for 100ms", "slow 1 at 10ms for 50ms by 2x", "cold 1 at 200ms"];
    let faults = faults.into_iter().map(|text| text.parse().expect("is a fault")).collect();
    let (_, bytes) = Setting { faults, ..setting("flat", 2) }.run(&trace(60));
    let (finished, failed) = ends(&bytes);
    assert_eq!(finished.len() + failed.len(), 60);
    let mut kinds: Vec<String> = lines(&bytes)
        .into_iter()
        .filter_map(|line| if let Line::Fault { kind, .. } = line { Some(kind) } else { None })
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["cold", "down", "paced", "slow", "up"]);
}

#[test]
fn an_interruption_loses_nothing() {
    let interrupt = AtomicBool::new(false);
    let trace = trace(400);
    let stop_at_30 = trace.iter().cloned().map(|request| {
        interrupt.fetch_or(request.id.0 == 30, Ordering::Relaxed);
        Ok(request)
    });
    let (outcome, bytes) = setting("flat", 2).run_with(stop_at_30, &interrupt);
    assert!(matches!(outcome.stopped, Some(Stop::Interrupted)));
    let (finished, failed) = ends(&bytes);
    assert!(!finished.is_empty() && finished.len() + failed.len() <= 31);
    assert!(failed.iter().all(|(_, reason)| reason == "interrupted"));
}
