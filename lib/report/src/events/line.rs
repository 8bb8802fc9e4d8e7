//! An event as its line of JSON: the bytes that serde would write.
//!
//! Finished requests and snapshots make up nearly all of a stream and are written field by field, several times faster; everything
//! else goes through `serde_json`. `crate::reader` has the same for reading.

use super::{Event, Finish, ShardState, Shards};
use cr_trace::json::{float, number, text};

type Done = Result<(), serde_json::Error>;

/// Appends the event as one JSON object, without a line end.
///
/// # Errors
/// What `serde_json` says of a value that JSON cannot hold; no event has one.
pub fn append(out: &mut Vec<u8>, event: &Event) -> Done {
    match event {
        Event::Finish(event) => finish(out, event),
        Event::Shards(event) => shards(out, event),
        other => serde_json::to_writer(out, other),
    }
}

fn finish(out: &mut Vec<u8>, event: &Finish) -> Done {
    let name = |out: &mut Vec<u8>, name: &str| out.extend_from_slice(name.as_bytes());
    name(out, r#"{"event":"finish","t_s":"#);
    float(out, event.t_s)?;
    name(out, r#","id":"#);
    number(out, event.id.0);
    name(out, r#","key":"#);
    text(out, &event.key)?;
    name(out, r#","tenant":"#);
    text(out, &event.tenant)?;
    name(out, r#","shard":"#);
    number(out, event.shard.0);
    name(out, r#","admitted":"#);
    flag(out, event.admitted);
    for (label, seconds) in [
        (r#","arrival_s":"#, event.arrival_s),
        (r#","queue_s":"#, event.queue_s),
        (r#","ttft_s":"#, event.ttft_s),
    ] {
        name(out, label);
        float(out, seconds)?;
    }
    name(out, r#","tpot_s":"#);
    match event.tpot_s {
        Some(seconds) => float(out, seconds)?,
        None => name(out, "null"),
    }
    name(out, r#","e2e_s":"#);
    float(out, event.e2e_s)?;
    name(out, r#","prompt_tokens":"#);
    number(out, event.prompt_tokens);
    name(out, r#","cached_tokens":"#);
    number(out, event.cached_tokens);
    name(out, r#","cached_by_scope":{"#);
    for (at, (scope, tokens)) in event.cached_by_scope.iter().enumerate() {
        name(out, if at == 0 { "\"" } else { ",\"" });
        name(out, scope.letter());
        name(out, "\":");
        number(out, tokens);
    }
    name(out, r#"},"output_tokens":"#);
    number(out, event.output_tokens);
    name(out, r#","retries":"#);
    number(out, event.retries);
    name(out, r#","preemptions":"#);
    number(out, event.preemptions);
    if !event.measured {
        name(out, r#","measured":false"#);
    }
    out.push(b'}');
    Ok(())
}

fn shards(out: &mut Vec<u8>, event: &Shards) -> Done {
    out.extend_from_slice(br#"{"event":"shards","t_s":"#);
    float(out, event.t_s)?;
    out.extend_from_slice(br#","shards":["#);
    for (at, shard) in event.shards.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        state(out, shard)?;
    }
    out.push(b']');
    if event.window_start {
        out.extend_from_slice(br#","window_start":true"#);
    }
    out.push(b'}');
    Ok(())
}

fn state(out: &mut Vec<u8>, state: &ShardState) -> Done {
    out.extend_from_slice(br#"{"shard":"#);
    number(out, state.shard.0);
    out.extend_from_slice(br#","up":"#);
    flag(out, state.up);
    let counts = |out: &mut Vec<u8>, counts: &[(&str, u64)]| {
        for (name, count) in counts {
            out.extend_from_slice(name.as_bytes());
            number(out, *count);
        }
    };
    counts(
        out,
        &[
            (r#","queued":"#, state.queued),
            (r#","running":"#, state.running),
            (r#","kv_used_blocks":"#, state.kv_used_blocks),
            (r#","kv_total_blocks":"#, state.kv_total_blocks),
            (r#","kv_protected_blocks":"#, state.kv_protected_blocks),
        ],
    );
    out.extend_from_slice(br#","busy_s":"#);
    float(out, state.busy_s)?;
    counts(
        out,
        &[
            (r#","requests":"#, state.requests),
            (r#","prompt_tokens":"#, state.prompt_tokens),
            (r#","cached_tokens":"#, state.cached_tokens),
            (r#","computed_tokens":"#, state.computed_tokens),
            (r#","output_tokens":"#, state.output_tokens),
            (r#","evicted_blocks":"#, state.evicted_blocks),
            (r#","evicted_admitted_blocks":"#, state.evicted_admitted_blocks),
            (r#","preemptions":"#, state.preemptions),
            (r#","recomputed_tokens":"#, state.recomputed_tokens),
        ],
    );
    out.push(b'}');
    Ok(())
}

fn flag(out: &mut Vec<u8>, flag: bool) {
    out.extend_from_slice(if flag { b"true" } else { b"false" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::{RequestId, ShardId};
    use proptest::prelude::*;

    #[track_caller]
    fn as_serde_writes(event: &Event) -> Result<(), TestCaseError> {
        let mut line = Vec::new();
        append(&mut line, event).expect("is written");
        let honest = serde_json::to_string(event).expect("is written");
        prop_assert_eq!(String::from_utf8(line).expect("is text"), honest);
        Ok(())
    }

    fn finish() -> impl Strategy<Value = Event> {
        let times = (any::<[f64; 5]>(), any::<Option<f64>>());
        let texts = ("[a-z]{1,4}|.{0,12}", "[\"\\\\\n\u{1}é]{0,5}");
        let counts = (any::<[u64; 4]>(), any::<[u32; 3]>(), any::<[bool; 2]>());
        let scopes = any::<[u64; 6]>().prop_map(|all| all.map(|n| if n % 3 == 0 { 0 } else { n }));
        (times, texts, counts, scopes).prop_map(
            |((times, tpot_s), (key, tenant), (wide, narrow, flags), scopes)| {
                Event::Finish(Finish {
                    t_s: times[0],
                    id: RequestId(wide[0]),
                    key: key.into(),
                    tenant: tenant.into(),
                    shard: ShardId(narrow[0]),
                    admitted: flags[0],
                    arrival_s: times[1],
                    queue_s: times[2],
                    ttft_s: times[3],
                    tpot_s,
                    e2e_s: times[4],
                    prompt_tokens: wide[1],
                    cached_tokens: wide[2],
                    cached_by_scope: scopes.into(),
                    output_tokens: wide[3],
                    retries: narrow[1],
                    preemptions: narrow[2],
                    measured: flags[1],
                })
            },
        )
    }

    fn state() -> impl Strategy<Value = ShardState> {
        (any::<u32>(), any::<bool>(), any::<f64>(), any::<[u64; 14]>()).prop_map(|(shard, up, busy_s, n)| {
            ShardState {
                shard: ShardId(shard),
                up,
                queued: n[0],
                running: n[1],
                kv_used_blocks: n[2],
                kv_total_blocks: n[3],
                kv_protected_blocks: n[4],
                busy_s,
                requests: n[5],
                prompt_tokens: n[6],
                cached_tokens: n[7],
                computed_tokens: n[8],
                output_tokens: n[9],
                evicted_blocks: n[10],
                evicted_admitted_blocks: n[11],
                preemptions: n[12],
                recomputed_tokens: n[13],
            }
        })
    }

    proptest! {
        #[test]
        fn finished_requests(event in finish()) {
            as_serde_writes(&event)?;
        }

        #[test]
        fn snapshots(t_s in any::<f64>(), shards in proptest::collection::vec(state(), 0..4), window_start in any::<bool>()) {
            as_serde_writes(&Event::Shards(Shards { t_s, shards, window_start }))?;
        }
    }
}
