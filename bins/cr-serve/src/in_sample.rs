//! Whether a table was planned from the very requests that it is tested on.
//!
//! A table that `cr-plan` made of a trace names it by its digest. Where the trace to serve is a file, as many of its requests are read
//! beforehand and compared; what comes through a pipe cannot be read twice, so there a table of any trace counts.

use cr_cli::Input;
use cr_routing::RoutingTable;
use cr_trace::{TraceDigest, TraceReader};
use std::path::Path;
use std::sync::Arc;

/// Whether one of the tables knows what is to come, or may do so as far as can be told.
pub(crate) fn is_in_sample(tables: &[Arc<RoutingTable>], trace: &str) -> bool {
    tables.iter().map(|table| table.meta()).filter(|meta| meta.in_sample).any(|meta| match meta.source {
        Some(source) if Path::new(trace).is_file() => begins_with(trace, source),
        _ => true,
    })
}

/// Whether a trace begins with these requests. One that cannot be read does not: the run will say what is wrong with it.
fn begins_with(trace: &str, source: TraceDigest) -> bool {
    let Ok(input) = Input::open(trace) else { return false };
    let Ok(requests) = TraceReader::new(input.reader, &input.name) else { return false };
    let mut seen = TraceDigest::default();
    for request in requests {
        match request {
            Ok(request) => seen.observe(&request),
            Err(_) => return false,
        }
        if seen.requests >= source.requests {
            break;
        }
    }
    seen == source
}
