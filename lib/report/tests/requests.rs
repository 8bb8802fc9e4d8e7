//! The table of requests, read back by another reader.

mod common;

use common::suite::{POLICIES, events};
use common::{fail, worked_example};
use cr_report::events::{Event, FailReason};
use cr_report::requests::{COLUMNS, RequestTable};

fn table(events: &[Event]) -> String {
    let mut out = Vec::new();
    let mut table = RequestTable::new(&mut out).expect("a head");
    events.iter().for_each(|event| table.observe(event).expect("a row"));
    table.flush().expect("flushed");
    drop(table);
    String::from_utf8(out).expect("text")
}

#[test]
fn the_worked_example_as_a_table() {
    let (_, mut events) = worked_example();
    let mut failed = fail(7, 0.02, FailReason::PromptTooLong);
    failed.key = "a \"strange\", key".into();
    events.push(Event::Fail(failed));
    let want = "id,key,tenant,outcome,reason,measured,shard,admitted,arrival_s,end_s,queue_s,ttft_s,tpot_s,e2e_s,prompt_tokens,cached_tokens,\
                cached_g,cached_k,cached_d,cached_u,cached_a,cached_b,output_tokens,retries,preemptions\n\
                1,k1,k1,finished,,true,0,false,0.001,0.0178,0.0098,0.0168,,0.0168,58,48,32,16,0,0,0,0,1,0,0\n\
                0,k1,k1,finished,,true,0,false,0,0.0238,0,0.0108,0.0065,0.0238,58,0,0,0,0,0,0,0,3,0,0\n\
                7,\"a \"\"strange\"\", key\",,failed,prompt_too_long,true,,,,0.02,,,,,,,,,,,,,,0,\n";
    assert_eq!(table(&events), want);
}

#[test]
fn every_request_has_a_row_and_every_row_all_columns() {
    let (_, events) = events(POLICIES[1], 1, 10.0, 3, 120);
    let text = table(&events);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(reader.headers().expect("a head").iter().collect::<Vec<_>>(), COLUMNS);
    let rows: Vec<csv::StringRecord> =
        reader.records().map(|row| row.expect("a row as long as the head")).collect();
    assert_eq!(rows.len(), 120);
    let sum =
        |column: usize| rows.iter().map(|row| row[column].parse::<u64>().expect("a number")).sum::<u64>();
    assert_eq!(sum(15), (16..22).map(sum).sum::<u64>(), "scopes add up to the cached tokens");
}
