//! HAProxy 2.4 or later.
//!
//! A map from key to place is read at every request. `balance random(2)` is exactly power of two choices; `use-server`
//! pins an admitted key of one shard, and is ignored where that server is down, so that the key falls back at once.
//! Replica sets are `leastconn` backends, left aside where all their servers are down. The map is swapped at run time in one step by `prepare map` and `commit map`.

use super::{ExportError, ExportedFile, FleetFile, check_fleet, place, replica_sets};
use crate::table::RoutingTable;
use cr_trace::ShardId;
use std::fmt::Write as _;

/// The configuration, the map, and a script that swaps the map of a running proxy. `folder` is where the files will lie.
///
/// # Errors
/// Another number of shards than the fleet file has, or a key that a map cannot hold.
pub fn haproxy(
    table: &RoutingTable,
    fleet: &FleetFile,
    folder: &str,
) -> Result<Vec<ExportedFile>, ExportError> {
    check_fleet(table, fleet)?;
    let map = map(table)?;
    let file = |name, text| ExportedFile { name, text, executable: false };
    let mut files = vec![file("haproxy.cfg", config(table, fleet, folder)), file("cacheroute.map", map)];
    if let Some(socket) = fleet.admin_socket() {
        files.push(ExportedFile { name: "update.sh", text: update_script(socket, folder), executable: true });
    }
    Ok(files)
}

fn config(table: &RoutingTable, fleet: &FleetFile, folder: &str) -> String {
    let mut text =
        String::from("# Written by cr-plan export.\nglobal\n    log stderr format short daemon warning\n");
    if let Some(socket) = fleet.admin_socket() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    stats socket {socket} mode 600 level admin");
    }
    text += "\ndefaults\n    mode http\n    log global\n    timeout connect 5s\n    timeout client 10m\n    timeout server 10m\n    option redispatch\n    retries 2\n";
    let _ = write!(
        text,
        "\nfrontend cacheroute\n    bind {}\n    http-request set-var(txn.place) req.hdr({}),map_str({folder}/cacheroute.map,cold)\n    use_backend %[var(txn.place)] if {{ var(txn.place) -m beg set_ }} {{ var(txn.place),nbsrv gt 0 }}\n    default_backend fleet\n",
        fleet.listen(),
        fleet.key_header()
    );
    text += "\n# Cold keys: the less loaded of two random shards. Admitted keys of one shard: that shard while it is up.\nbackend fleet\n    balance random(2)\n";
    for shard in 0..fleet.addresses().len() {
        let _ = writeln!(text, "    use-server s{shard} if {{ var(txn.place) -m str s{shard} }}");
    }
    let all: Vec<ShardId> = (0..table.shards()).map(ShardId).collect();
    servers(&mut text, &all, fleet, |_| "check".into());
    for set in replica_sets(table) {
        let _ = write!(text, "\nbackend {}\n    balance leastconn\n", place(&set));
        servers(&mut text, &set, fleet, |shard| format!("track fleet/s{shard}"));
    }
    text
}

/// One line a server; `health` says how HAProxy learns whether it is up.
fn servers(text: &mut String, shards: &[ShardId], fleet: &FleetFile, health: impl Fn(ShardId) -> String) {
    for &shard in shards {
        let _ = writeln!(text, "    server s{shard} {} {}", fleet.addresses()[shard.index()], health(shard));
    }
}

/// A line a key: the key, a space, its place.
fn map(table: &RoutingTable) -> Result<String, ExportError> {
    let mut text = String::new();
    for (key, shards) in table.places() {
        let what = if key.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control()) {
            Some("holds white space or control characters, which end a key in HAProxy's maps")
        } else if key.starts_with('#') {
            Some("starts with #, which begins a comment in HAProxy's maps")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(ExportError::Key { key: key.to_string(), what });
        }
        let _ = writeln!(text, "{key} {}", place(shards));
    }
    Ok(text)
}

fn update_script(socket: &str, folder: &str) -> String {
    format!(
        r#"#!/usr/bin/env bash
# Written by cr-plan export. Swaps the map of the running HAProxy for NEW in one step: no request sees half of it.
# Usage: update.sh NEW.map      (needs socat)
# Exit 3: NEW uses replica sets that the running configuration lacks; reload HAProxy with the new haproxy.cfg instead.
set -euo pipefail
new=$1
socket={socket}
map={folder}/cacheroute.map

ask() {{ socat -t 30 - "UNIX-CONNECT:$socket"; }}

missing=$(comm -23 <(awk '$2 ~ /^set_/ {{ print $2 }}' "$new" | sort -u) <(echo "show backend" | ask | sort -u))
if [ -n "$missing" ]; then
    echo "update.sh: the running configuration has no backend $(echo $missing); reload it with the new haproxy.cfg" >&2
    exit 3
fi
version=$(echo "prepare map $map" | ask | sed -n 's/^New version created: \([0-9]*\)$/\1/p')
[ -n "$version" ] || {{ echo "update.sh: HAProxy knows no map $map" >&2; exit 1; }}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
# A command must fit HAProxy's buffer of 16 kB.
split -C 8000 "$new" "$parts/part."
for part in "$parts"/part.*; do
    [ -e "$part" ] || continue
    answer=$({{ echo "add map @$version $map <<"; cat "$part"; echo; }} | ask)
    [ -z "${{answer//[$'\n ']/}}" ] || {{ echo "update.sh: $answer" >&2; exit 1; }}
done
echo "commit map @$version $map" | ask >/dev/null
# The file too, so that a restart reads the same.
cp "$new" "$map.new" && mv "$map.new" "$map"
"#
    )
}
