use super::*;
use crate::table::ShardSet;
use cr_trace::Key;

const FLEET: &str = r#"
schema = "cacheroute.fleet/1"
listen = "127.0.0.1:8080"
key_header = "x-cacheroute-key"
admin_socket = "/run/haproxy/admin.sock"
[[shards]]
address = "10.0.0.1:8000"
[[shards]]
address = "10.0.0.2:8000"
[[shards]]
address = "[::1]:8000"
"#;

fn fleet() -> FleetFile {
    FleetFile::from_toml(FLEET, "fleet.toml").expect("parses")
}

fn table(places: &[(&str, &[u32])]) -> RoutingTable {
    let meta = RoutingTable::empty(3).expect("is valid").meta().clone();
    let places: Vec<(Key, ShardSet)> = places
        .iter()
        .map(|&(key, shards)| (Key::new(key), shards.iter().map(|&id| ShardId(id)).collect()))
        .collect();
    RoutingTable::new(meta, places).expect("is valid")
}

#[test]
fn haproxy_has_a_backend_a_set_and_a_line_a_key() {
    let files =
        haproxy(&table(&[("a", &[0]), ("b", &[0, 2]), ("c", &[0, 2])]), &fleet(), "/etc/x").expect("exports");
    assert_eq!(files[1].text, "a s0\nb set_0_2\nc set_0_2\n");
    let config = &files[0].text;
    assert!(config.contains("map_str(/etc/x/cacheroute.map,cold)"));
    assert_eq!(config.matches("backend set_0_2\n    balance leastconn\n").count(), 1);
    assert!(config.contains("    server s2 [::1]:8000 track fleet/s2\n"));
    assert!(files[2].executable && files[2].text.contains("/run/haproxy/admin.sock"));
}

#[test]
fn nginx_quotes_keys_and_refuses_what_it_cannot_tell_apart() {
    let files = nginx(&table(&[("~x", &[0]), ("de\"f\\", &[1, 2]), ("default", &[1])]), &fleet(), "/etc/x")
        .expect("exports");
    assert_eq!(files[1].text, "\"de\\\"f\\\\\" set_1_2;\n\"\\default\" s1;\n\"\\~x\" s0;\n");
    assert!(files[0].text.contains("map $http_x_cacheroute_key $cacheroute_place"));
    let error =
        nginx(&table(&[("K1", &[0]), ("k1", &[1])]), &fleet(), "/etc/x").expect_err("collide").to_string();
    assert!(error.contains("only in case"), "{error}");
}

#[test]
fn keys_that_break_a_map_are_refused() {
    // A key with a line break is in no table.
    for bad in ["a b", "#a"] {
        assert!(haproxy(&table(&[(bad, &[0])]), &fleet(), "/x").is_err(), "{bad:?}");
    }
}

#[test]
fn fleet_files_are_checked() {
    for (from, to, expect) in [
        ("fleet/1", "fleet/2", "expected \"cacheroute.fleet/1\""),
        ("listen", "listn", "fleet.toml:3: unknown field \"listn\"; did you mean \"listen\"?"),
        ("10.0.0.1:8000", "10.0.0.1", "not of the form host:port"),
        ("10.0.0.1:8000", "10.0.0.1:80 check\\n", "not of the form host:port"),
        ("x-cacheroute-key", "x key", "is no header name"),
        ("/run/haproxy/admin.sock", "/run/a b", "is no plain path"),
    ] {
        let error = FleetFile::from_toml(&FLEET.replace(from, to), "fleet.toml").expect_err(to).to_string();
        assert!(error.contains(expect), "{error}");
    }
    let meta = RoutingTable::empty(2).expect("is valid");
    assert_eq!(haproxy(&meta, &fleet(), "/x"), Err(ExportError::Shards { table: 2, fleet: 3 }));
}
