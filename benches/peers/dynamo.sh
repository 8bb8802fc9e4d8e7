#!/usr/bin/env bash
# How fast is the simulator beside NVIDIA Dynamo's offline replayer (PyPI), and do both find the same reuse? One trace, eight workers,
# blocks of 512 tokens, 4,000 of them, round robin; runs of both take turns, and CPU time counts, since it survives a busy machine.
# Installs the peer into a temporary folder, or uses the Python that DYNAMO_PYTHON names. CR_TRACES names the folder of real traces.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=1.3.1
rounds=${1:-3}
trace=${CR_TRACES:?"CR_TRACES names the folder that has mooncake/conversation_trace.jsonl"}/mooncake/conversation_trace.jsonl
bin=${CR_BIN:-target/release}
[ -x "$bin/cr-serve" ] || cargo build --release --locked --bin cr-serve --bin cr-gen
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${DYNAMO_PYTHON:-}
if [ -z "$python" ]; then
    python3 -m venv "$folder/venv"
    # The replayer is native; what the rest of the package depends on is not needed.
    "$folder/venv/bin/pip" install --quiet --no-deps "ai-dynamo==$version" "ai-dynamo-runtime==$version"
    python=$folder/venv/bin/python
fi
"$bin/cr-gen" import --from mooncake "$trace" -q -o "$folder/trace.jsonl"
"$python" benches/peers/dynamo.py "$trace" "$folder/trace.jsonl" "$bin/cr-serve" "$python" "$rounds"
