use super::read::write_table;
use super::*;

/// The example of the contract, word for word but for its lists.
const CONTRACT: &str = r#"{"schema":"cacheroute.table/1","generator":"cr-plan 0.1.0","shards":4,"qcap":50.0,"warm_slots":40.0,"capacity":160.0,"from_s":0.0,"in_sample":true,"admitted_keys":2,"admitted_rate":18.2,"cold_rate":1.8,"expected_load":[5.0,5.0,5.0,5.0],"imbalance":1.0,"keys":{"k17":[3],"k2":[0,2]},"rates":{"k17":4.2}}
"#;

fn read(text: &str) -> Result<Vec<RoutingTable>, cr_trace::TraceError> {
    read_tables(text.as_bytes(), "t.json")
}

#[test]
fn the_contracts_example_round_trips_byte_for_byte() {
    let tables = read(CONTRACT).expect("parses");
    let mut out = Vec::new();
    write_table(&tables[0], &mut out).expect("writes");
    assert_eq!(String::from_utf8(out).expect("is text"), CONTRACT);
    let table = &tables[0];
    assert_eq!(table.shards_of("k2"), Some([ShardId(0), ShardId(2)].as_slice()));
    assert_eq!(table.shards_of("k3"), None);
    assert!(table.is_admitted("k17") && !table.is_admitted("k1"));
    assert_eq!((table.rate_of("k17"), table.rate_of("k2")), (Some(4.2), None));
}

#[test]
fn a_table_may_be_spread_over_lines_and_carry_fields_of_later_versions() {
    let value: serde_json::Value = serde_json::from_str(CONTRACT).expect("parses");
    let pretty = serde_json::to_string_pretty(&value).expect("prints").replacen('{', "{\n\"later\": [1],", 1);
    assert_eq!(read(&pretty).expect("parses"), read(CONTRACT).expect("parses"));
}

#[test]
fn several_tables_come_in_order_of_time() {
    let later = CONTRACT.replace(r#""from_s":0.0"#, r#""from_s":60.0"#);
    let tables = read(&format!("{CONTRACT}{later}")).expect("parses");
    assert_eq!(tables.iter().map(|table| table.meta().from_s).collect::<Vec<_>>(), [0.0, 60.0]);
    let error = read(&format!("{later}{CONTRACT}")).expect_err("is out of order").to_string();
    assert!(error.contains("from 0 s follows one from 60 s"), "{error}");
    let other = later.replace(r#""shards":4"#, r#""shards":3"#).replace("[5.0,5.0,5.0,5.0]", "[5.0,5.0,5.0]");
    let other = other.replace("[3]", "[2]");
    let error = read(&format!("{CONTRACT}{other}")).expect_err("is another fleet").to_string();
    assert!(error.contains("for 3 shards follows one for 4"), "{error}");
}

#[test]
fn bad_tables_say_what_and_where() {
    for (from, to, expect) in [
        ("table/1", "table/9", r#"t.json:1: no routing table: schema is "cacheroute.table/9""#),
        ("[0,2]", "[0,4]", "key \"k2\" is on shard 4, but the last shard is 3"),
        ("[0,2]", "[2,0]", "key \"k2\" has shards that are not ascending and distinct"),
        ("[0,2]", "[2,2]", "not ascending and distinct"),
        ("[0,2]", "[]", "key \"k2\" has no shard"),
        ("[0,2]", "[-1]", "t.json:1:"),
        ("\"k2\":", "\"k17\":", "key \"k17\" is there twice"),
        ("\"k2\":", "\"\":", "is the empty text"),
        ("\"qcap\":50.0", "\"qcap\":-1", "qcap is -1; it must be finite and not negative"),
        ("\"qcap\":50.0", "\"qcap\":1e999", "t.json:1:"),
        ("\"qcap\":50.0,", "", "missing field `qcap`"),
        ("\"shards\":4", "\"shards\":0", "for 0 shards; a fleet has 1 to 65536"),
        ("\"shards\":4", "\"shards\":5", "expected_load has 4 entries for 5 shards"),
        ("\"admitted_keys\":2", "\"admitted_keys\":3", "admitted_keys is 3, but keys has 2 entries"),
        ("\"k17\":4.2", "\"k17\":-4.2", "key \"k17\" has the rate -4.2"),
        ("\"k17\":4.2", "\"k17\":4.2,\"k17\":1", "key \"k17\" is there twice in rates"),
        ("}}", "}", "t.json:"),
    ] {
        let error = read(&CONTRACT.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(expect), "{to}: {error}");
        assert!(!error.contains("at line"), "{error}");
    }
    assert_eq!(
        read("").expect_err("is empty").to_string(),
        "t.json: is empty; a routing table comes from cr-plan"
    );
    let second = read(&format!("{CONTRACT}nonsense\n")).expect_err("has a bad line").to_string();
    assert!(second.starts_with("t.json:2: "), "{second}");
}

#[test]
fn preferred_is_the_least_planned_load_then_the_lowest_id() {
    let mut table = read(CONTRACT).expect("parses").remove(0);
    assert_eq!(table.preferred_shard("k2"), Some(ShardId(0)));
    table.meta.expected_load[2] = 4.0;
    assert_eq!(table.preferred_shard("k2"), Some(ShardId(2)));
    assert_eq!(table.preferred_shard("cold"), None);
}

#[test]
fn an_empty_table_admits_nothing() {
    let table = RoutingTable::empty(3).expect("is valid");
    assert_eq!((table.shards(), table.admitted_keys()), (3, 0));
    assert!(RoutingTable::empty(0).is_err());
    assert!(RoutingTable::empty(u32::MAX).is_err());
}
