//! nginx 1.15.1 or later.
//!
//! A `map` names the upstream of each admitted key. `random two least_conn` is exactly power of two choices; a key whose
//! shard does not answer is sent to the fleet at once. nginx compares the keys of a map without regard to case. An update is
//! a new map file and a reload, in which old workers finish their requests.

use super::{ExportError, ExportedFile, FleetFile, check_fleet, place, replica_sets};
use crate::table::RoutingTable;
use cr_trace::ShardId;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The configuration (to be included in the `http` block), the map, and a script that installs a new map. `folder` is where
/// the files will lie.
///
/// # Errors
/// Another number of shards than the fleet file has, or a key that a map cannot hold.
pub fn nginx(
    table: &RoutingTable,
    fleet: &FleetFile,
    folder: &str,
) -> Result<Vec<ExportedFile>, ExportError> {
    check_fleet(table, fleet)?;
    let (map, longest) = map(table)?;
    let file = |name, text| ExportedFile { name, text, executable: false };
    Ok(vec![
        file("cacheroute.conf", config(table, fleet, folder, longest)),
        file("cacheroute.map", map),
        ExportedFile { name: "update.sh", text: update_script(folder), executable: true },
    ])
}

fn config(table: &RoutingTable, fleet: &FleetFile, folder: &str, longest: usize) -> String {
    let header = fleet.key_header().to_ascii_lowercase().replace('-', "_");
    // A bucket holds the longest key with its bookkeeping; the table has room for twice the keys.
    let bucket = (longest + 64).next_power_of_two().max(128);
    let size = (2 * table.admitted_keys()).next_power_of_two().max(2_048);
    let mut text = String::from("# Written by cr-plan export; include it in the http block.\n");
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "map_hash_max_size {size};\nmap_hash_bucket_size {bucket};\nmap $http_{header} $cacheroute_place {{\n    default fleet;\n    include {folder}/cacheroute.map;\n}}\n"
    );
    let all: Vec<ShardId> = (0..table.shards()).map(ShardId).collect();
    upstream(&mut text, "fleet", "random two least_conn", &all, fleet);
    for &shard in &all {
        upstream(&mut text, &place(&[shard]), "", &[shard], fleet);
    }
    for set in replica_sets(table) {
        upstream(&mut text, &place(&set), "least_conn", &set, fleet);
    }
    let _ = write!(
        text,
        "server {{\n    listen {};\n    location / {{\n        proxy_pass http://$cacheroute_place;\n        proxy_http_version 1.1;\n        proxy_set_header Connection \"\";\n        # The shard does not answer: any other one at once.\n        error_page 502 504 = @fleet;\n    }}\n    location @fleet {{\n        proxy_pass http://fleet;\n        proxy_http_version 1.1;\n        proxy_set_header Connection \"\";\n    }}\n}}\n",
        fleet.listen()
    );
    text
}

fn upstream(text: &mut String, name: &str, method: &str, shards: &[ShardId], fleet: &FleetFile) {
    let _ = writeln!(text, "upstream {name} {{");
    if shards.len() > 1 && !method.is_empty() {
        let _ = writeln!(text, "    {method};");
    }
    for shard in shards {
        let _ = writeln!(text, "    server {};", fleet.addresses()[shard.index()]);
    }
    text.push_str("    keepalive 64;\n}\n");
}

/// A line a key: the key in quotes, its place, a semicolon. Also the length of the longest key.
fn map(table: &RoutingTable) -> Result<(String, usize), ExportError> {
    let mut text = String::new();
    let mut longest = 0;
    let mut lower = BTreeSet::new();
    for (key, shards) in table.places() {
        let refuse = |what| Err(ExportError::Key { key: key.to_string(), what });
        if key.bytes().any(|b| b.is_ascii_control()) {
            return refuse("holds control characters, which no header can carry");
        }
        if key.len() > 4_096 {
            return refuse("is longer than the 4,096 bytes that nginx reads in a configuration");
        }
        if !lower.insert(key.to_ascii_lowercase()) {
            return refuse("differs from another key only in case, which nginx's maps do not tell apart");
        }
        longest = longest.max(key.len());
        // A backslash in front keeps a key from being read as a pattern or as one of the map's own words.
        let first = if key.starts_with('~')
            || ["default", "hostnames", "include", "volatile"].contains(&key.as_str())
        {
            "\\"
        } else {
            ""
        };
        let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(text, "\"{first}{escaped}\" {};", place(shards));
    }
    Ok((text, longest))
}

fn update_script(folder: &str) -> String {
    format!(
        r#"#!/usr/bin/env bash
# Written by cr-plan export. Installs NEW.map and, where given, NEW.conf, and reloads nginx; open requests are finished by
# the old workers. A configuration that nginx refuses is rolled back.
# Usage: update.sh NEW.map [NEW.conf]      (NGINX names the binary and its flags; default: nginx)
set -euo pipefail
folder={folder}
nginx=${{NGINX:-nginx}}

backup=$(mktemp -d)
trap 'rm -rf "$backup"' EXIT
cp "$folder/cacheroute.map" "$folder/cacheroute.conf" "$backup"
cp "$1" "$folder/cacheroute.map.new" && mv "$folder/cacheroute.map.new" "$folder/cacheroute.map"
if [ $# -gt 1 ]; then
    cp "$2" "$folder/cacheroute.conf.new" && mv "$folder/cacheroute.conf.new" "$folder/cacheroute.conf"
fi
if ! $nginx -t -q; then
    cp "$backup/cacheroute.map" "$backup/cacheroute.conf" "$folder"
    echo "update.sh: nginx refuses the new configuration; the old one stays" >&2
    exit 1
fi
$nginx -s reload
"#
    )
}
