#!/usr/bin/env bash
# Does a peer read our Mooncake output, and agree? NVIDIA's aiperf (PyPI) analyses traces that cr-gen wrote; requests and tokens
# must be those that cr-gen counts. Installs aiperf into a temporary folder, or uses the one that AIPERF names.
# Real traces, where CR_TRACES names their folder, are imported, written and compared as well.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.13.0
cr_gen=${CR_GEN:-target/release/cr-gen}
[ -x "$cr_gen" ] || cargo build --release --locked --bin cr-gen
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
aiperf=${AIPERF:-}
if [ -z "$aiperf" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet "aiperf==$version"
    aiperf=$folder/venv/bin/aiperf
fi

"$cr_gen" zipf --requests 5k --keys 300 --user-sigma 0.8 --output-sigma 0.6 --format mooncake -q -o "$folder/zipf.jsonl"
"$cr_gen" threads --requests 5k --turns 4 --format mooncake -q -o "$folder/threads.jsonl"
"$cr_gen" spec workloads/primary.toml --requests 5k --format mooncake -q -o "$folder/primary.jsonl"
real=${CR_TRACES:-}/mooncake/conversation_trace.jsonl
if [ -f "$real" ]; then
    "$cr_gen" import "$real" --format mooncake -q -o "$folder/conversation.jsonl"
fi

for trace in "$folder"/*.jsonl; do
    name=$(basename "$trace" .jsonl)
    "$aiperf" analyze-trace "$trace" --output-file "$folder/$name.aiperf" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
    "$cr_gen" stats "$trace" --from mooncake --format json -q -o "$folder/$name.ours"
    python3 - "$name" "$folder/$name.aiperf" "$folder/$name.ours" <<'PYTHON'
import json, sys

name, theirs, ours = sys.argv[1], *(json.load(open(path)) for path in sys.argv[2:])
pairs = {
    "requests": (theirs["total_requests"], ours["requests"]),
    "input tokens": (round(theirs["avg_isl"] * theirs["total_requests"]), ours["input_tokens"]["sum"]),
    "output tokens": (round(theirs["avg_osl"] * theirs["total_requests"]), ours["output_tokens"]["sum"]),
    "longest input": (theirs["max_isl"], ours["input_tokens"]["max"]),
    "longest output": (theirs["max_osl"], ours["output_tokens"]["max"]),
}
differing = {what: pair for what, pair in pairs.items() if pair[0] != pair[1]}
counts = ", ".join(f"{ours} {what}" for what, (_, ours) in pairs.items())
print(f"{name}: {'aiperf disagrees: ' + str(differing) if differing else 'aiperf agrees'}; {counts}")
sys.exit(bool(differing))
PYTHON
done
