//! A request as its line of a trace, the bytes that serde would write, in a third of the time.
//!
//! An imported trace is mostly segments, dozens a request: here each is a few copies into one buffer.

use crate::json::{float, number, text};
use crate::{Request, Segment};

/// Room for a segment, about: more is made where it is not enough.
const SEGMENT_BYTES: usize = 32;

/// Appends the request as one JSON object, without a line end.
///
/// # Errors
/// None for requests in memory: what `serde_json` would say of a writer that fails.
pub(crate) fn append(out: &mut Vec<u8>, request: &Request) -> Result<(), serde_json::Error> {
    let Request { id, t_s, key, tenant, session, turn, after, think_s, prompt, output_tokens } = request;
    out.extend_from_slice(b"{\"id\":");
    number(out, id.0);
    out.extend_from_slice(b",\"t_s\":");
    float(out, *t_s)?;
    out.extend_from_slice(b",\"key\":");
    text(out, key)?;
    for (name, value) in [(&b",\"tenant\":"[..], tenant), (b",\"session\":", session)] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            text(out, value)?;
        }
    }
    for (name, value) in [(&b",\"turn\":"[..], turn.map(u64::from)), (b",\"after\":", after.map(|id| id.0))] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            number(out, value);
        }
    }
    if let Some(think_s) = think_s {
        out.extend_from_slice(b",\"think_s\":");
        float(out, *think_s)?;
    }
    out.extend_from_slice(b",\"prompt\":[");
    out.reserve(SEGMENT_BYTES * prompt.len());
    for (at, Segment(content, tokens)) in prompt.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
        text(out, content.as_str())?;
        out.push(b',');
        number(out, *tokens);
        out.push(b']');
    }
    out.extend_from_slice(b"],\"output_tokens\":");
    number(out, *output_tokens);
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentId, Key, RequestId};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bytes_are_those_of_serde(
            numbers in (any::<u64>(), any::<f64>(), any::<u32>()),
            names in ("\\PC{0,30}|[\\x00-\\x7f]{0,12}", proptest::option::of("[\"\\\\é\n a-z]{0,9}"), proptest::option::of(".{0,9}")),
            loops in (any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<f64>>()),
            prompt in proptest::collection::vec(("[a-z]:\\PC{0,12}|.{0,40}", any::<u32>()), 0..9),
        ) {
            let request = Request {
                id: RequestId(numbers.0),
                t_s: numbers.1,
                key: Key::new(names.0),
                tenant: names.1.map(Key::from),
                session: names.2.map(Key::from),
                turn: loops.0,
                after: loops.1.map(RequestId),
                think_s: loops.2,
                prompt: prompt.iter().map(|(id, tokens)| Segment(ContentId::new(id), *tokens)).collect(),
                output_tokens: numbers.2,
            };
            let mut line = b"before".to_vec();
            append(&mut line, &request).expect("writes");
            let wanted = format!("before{}", serde_json::to_string(&request).expect("writes"));
            prop_assert_eq!(String::from_utf8(line).expect("is text"), wanted);
        }
    }
}
