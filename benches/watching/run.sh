#!/usr/bin/env bash
# What watching costs, in one run on this machine: events a second that cr-top takes from a pipe, its memory over a long stream, its start,
# and what writing all events adds to a simulated run. Usage: benches/watching/run.sh [REQUESTS], after `just build`.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=$PWD/target/release
requests=${1:-2000000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Wall seconds, processor seconds and peak KiB of a command, its output thrown away.
timed() {
    /usr/bin/time -f '%e %U %S %M' -o times "$@" >/dev/null 2>errors || { cat errors >&2; exit 1; }
    cat times
}

"$bin/cr-gen" zipf --keys 500 --requests "$requests" --qps 400 --seed 1 -o w.jsonl -q
serve=("$bin/cr-serve" run w.jsonl --engine sim --shards 16 --policy flat -q --format json)

echo "simulating $requests requests, best of three: wall s, user s, system s"
for events in off on; do
    flags=()
    [ $events = on ] && flags=(-o run.ndjson)
    for _ in 1 2 3; do timed "${serve[@]}" "${flags[@]}"; done | sort -n | head -n 1 |
        awk -v e=$events '{ printf "  events %-3s  %6.2f %6.2f %5.2f\n", e, $1, $2, $3 }'
done

lines=$(wc -l <run.ndjson)
bytes=$(wc -c <run.ndjson)
echo "cr-top --once on $lines events ($((bytes / lines)) bytes each) from a pipe, best of three"
for _ in 1 2 3; do timed bash -c "cat run.ndjson | $bin/cr-top --once"; done | sort -n | head -n 1 |
    awk -v n="$lines" '{ printf "  %.0f events/s, %.2f s, %.2f s of processor, %.0f MiB at the peak\n", n / $1, $1, $2 + $3, $4 / 1024 }'
echo "cr-top --once on the first thousandth: start and memory to compare with"
head -n $((lines / 1000 + 1)) run.ndjson >head.ndjson
timed "$bin/cr-top" head.ndjson --once | awk '{ printf "  %.0f ms, %.0f MiB at the peak\n", 1000 * $1, $4 / 1024 }'
