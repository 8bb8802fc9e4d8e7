//! A shard that leaps over uneventful steps against one that takes them one by one: equal whenever somebody looks.

use super::*;
use crate::pool::{BlockPool, RunPool};
use crate::sim::SimBackend;
use cr_cost::CostModel;
use cr_trace::{ContentId, RequestId, Segment};
use proptest::prelude::*;

/// Durations that differ with everything they may depend on, so that no error cancels out.
fn cost() -> Arc<CostModel> {
    let text = "schema = 'cacheroute.cost/1'\nname = 'uneven'\nsource = 'a test'\n[step]\nbase_ms = 1.0\n\
                prefill_token_ms = 0.100000003\nprefill_ctx_ms = 0.000000007\nprefill_pair_ms = 0.000000001\n\
                decode_seq_ms = 0.010000019\ndecode_ctx_ms = 0.000100000011\n";
    Arc::new(CostModel::from_toml(text, "uneven.toml").expect("parses"))
}

/// Microseconds of arrival, segments as (content, tokens), output tokens.
type Sent = (u64, Vec<(u8, u32)>, u32);

#[derive(Clone, Debug)]
struct Case {
    config: ShardConfig,
    requests: Vec<Sent>,
    /// Requests before this one quote no others in their prompts.
    quotes_from: usize,
    /// From this request on the ids of the first ones come again.
    again_from: usize,
    /// Microseconds at which somebody looks.
    looks: Vec<u64>,
}

fn case() -> impl Strategy<Value = Case> {
    let one = (0u64..120_000, proptest::collection::vec((0u8..12, 1u32..90), 1..5), 1u32..90);
    (
        (6u32..60, 1u32..20, 1u32..40, 1u32..8),
        proptest::collection::vec(one, 1..25),
        (proptest::collection::vec(0u64..400_000, 0..30), 0usize..40, 0usize..40),
        proptest::option::of(10_000u64..200_000),
    )
        .prop_map(
            |(
                (kv_blocks, block_tokens, token_budget, max_running),
                mut requests,
                (mut looks, quotes_from, again_from),
                timeout_us,
            )| {
                requests.sort_by_key(|r| r.0);
                looks.sort_unstable();
                let timeout = timeout_us.map(at);
                let config = ShardConfig {
                    block_tokens,
                    kv_blocks,
                    token_budget,
                    max_running,
                    timeout,
                    protect_admitted: looks.len() % 4 == 0,
                    ..ShardConfig::default()
                };
                Case { config, requests, quotes_from, again_from, looks }
            },
        )
}

fn at(us: u64) -> Time {
    Time(us * 1_000_000)
}

/// The prompt of the request at a place in the list: content of a few keys and its own turn. Where it quotes, it goes on from a request just
/// before it and the answer to that, or has another's turn or answer by itself: as of a next turn that comes too soon.
fn prompt(case: &Case, place: usize) -> Vec<Segment> {
    let id = |place: usize| if place < case.again_from { place } else { place - case.again_from } as u64;
    let own = |place: usize, parts: &[(u8, u32)]| -> Vec<Segment> {
        let content = |n: u8| match n {
            3 => ContentId::user(RequestId(id(place))),
            4 => ContentId::new(format!("u:{}/more", id(place))),
            n => ContentId::key(&n.to_string()),
        };
        parts.iter().map(|&(n, tokens)| Segment(content(n), tokens)).collect()
    };
    let (_, parts, _) = &case.requests[place];
    let (n, tokens) = parts[0];
    let before = place.checked_sub(usize::from(n % 3) + 1);
    let Some(before) = before.filter(|_| n >= 5 && place >= case.quotes_from) else {
        return own(place, parts);
    };
    let (_, earlier, output) = &case.requests[before];
    let (turn, answer) = (ContentId::user(RequestId(id(before))), ContentId::answer(RequestId(id(before))));
    let quoted = match n {
        5 => vec![Segment(turn, tokens)],
        6 => vec![Segment(answer, tokens)],
        _ => own(before, earlier).into_iter().chain([Segment(answer, *output)]).collect(),
    };
    quoted.into_iter().chain(own(place, &parts[1..])).collect()
}

fn request(case: &Case, place: usize) -> Arc<Request> {
    let id = if place < case.again_from { place } else { place - case.again_from } as u64;
    Arc::new(Request {
        id: RequestId(id),
        t_s: 0.0,
        key: "k".into(),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        output_tokens: case.requests[place].2,
        prompt: prompt(case, place).into(),
    })
}

/// Everything that can be seen of a shard at one instant.
fn look<P: Pool>(shard: &Shard<P>, now: Time) -> String {
    let seen = (
        shard.totals(),
        shard.usage(),
        shard.busy(now),
        shard.queued(),
        shard.running(),
        shard.pending_tokens(),
    );
    format!("{now:?} {seen:?}")
}

/// What is seen of a shard, and who leaves it, in order: driven as the virtual clock drives it.
fn drive<P: Pool>(case: &Case) -> (Vec<String>, u64) {
    let mut shard = Shard::<P>::new(case.config, Box::new(SimBackend::new(cost())));
    let (mut log, mut departed, mut events) = (Vec::new(), Vec::new(), 0);
    let (mut arrivals, mut looks) =
        (case.requests.iter().enumerate().peekable(), case.looks.iter().peekable());
    let (mut ends, mut starts): (Option<Time>, Option<Time>) = (None, None);
    loop {
        let arrival = arrivals.peek().map(|(_, sent)| (at(sent.0), 1));
        let next = [ends.map(|t| (t, 0)), arrival, starts.map(|t| (t, 2))].into_iter().flatten().min();
        while let Some(&&us) = looks.peek()
            && next.is_none_or(|(time, _)| at(us) < time)
        {
            shard.catch_up(at(us), true);
            log.push(look(&shard, at(us)));
            looks.next();
        }
        let Some((now, kind)) = next else { return (log, events) };
        events += 1;
        match kind {
            0 => {
                shard.end_step(now, &mut departed);
                ends = None;
                starts = shard.has_work().then_some(now);
            }
            1 => {
                let (place, _) = arrivals.next().expect("was peeked");
                // A fleet hands over what arrives without a look at where the leap is.
                if place % 2 == 0 {
                    shard.catch_up(now, false);
                    log.push(look(&shard, now));
                }
                match shard.enqueue(request(case, place), now, place % 3 == 0) {
                    Err(rejection) => log.push(format!("{rejection:?}")),
                    Ok(()) if ends.is_none() => starts = Some(now),
                    Ok(()) => ends = shard.interrupt_leap(now).or(ends),
                }
            }
            _ => {
                starts = None;
                let duration = shard.start_step(now, &mut departed).expect("the simulator never fails");
                ends = duration.map(|duration| now + duration);
            }
        }
        log.extend(departed.drain(..).map(|gone| format!("{gone:?}")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 1500 }))]

    #[test]
    fn leaps_are_the_steps_they_stand_for(case in case()) {
        let (fast, fewer) = drive::<RunPool>(&case);
        let (slow, more) = drive::<BlockPool>(&case);
        prop_assert_eq!(fast, slow);
        prop_assert!(fewer <= more);
    }
}

#[test]
fn a_lone_request_takes_a_few_leaps() {
    let config = ShardConfig { kv_blocks: 100, ..ShardConfig::default() };
    let case = Case {
        config,
        requests: vec![(0, vec![(0, 100)], 500)],
        quotes_from: 0,
        again_from: 9,
        looks: vec![],
    };
    assert_eq!(drive::<RunPool>(&case).1, 1 + 2 * 2);
    assert_eq!(drive::<BlockPool>(&case).1, 1 + 2 * 500);
    // A long prompt: all whole chunks, the rest, all decodes.
    let config = ShardConfig { token_budget: 16, ..config };
    let case = Case {
        config,
        requests: vec![(0, vec![(0, 1000)], 500)],
        quotes_from: 0,
        again_from: 9,
        looks: vec![],
    };
    assert_eq!(drive::<RunPool>(&case).1, 1 + 2 * 3);
    assert_eq!(drive::<BlockPool>(&case).1, 1 + 2 * (63 + 499));
}
