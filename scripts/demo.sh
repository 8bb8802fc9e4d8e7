#!/usr/bin/env bash
# A run on the built-in model in one pane of tmux, cr-top in the other: `demo.sh FOLDER_OF_THE_PROGRAMS`.
# DEMO_REQUESTS (default 1000) says how long it goes on: some three minutes on two cores.
set -euo pipefail

bin=$(cd "${1:-target/release}" && pwd)
requests=${DEMO_REQUESTS:-1000}

if ! command -v tmux >/dev/null; then
    echo "demo: tmux is not installed; \`just bench\` in one terminal and \`just watch\` in another show the same" >&2
    exit 1
fi
if [ ! -t 1 ]; then
    echo "demo: this wants a terminal; \`just bench\` does without" >&2
    exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bin/cr-gen" zipf --keys 64 --alpha 0.9 --qps 20 --requests "$requests" --global-tokens 64 --key-tokens 256 --user-tokens 32 \
    --output-tokens 8 --seed 1 -o "$folder/w.jsonl"

serve="cr-serve run w.jsonl --shards 6 --kv-blocks 400 --policy cacheroute --plan-from 20% --slo-ttft-p99 2s -o run.ndjson"
# The shell that stays shows how the run ended; leaving it, or q in cr-top, ends the session.
left="cd $folder; PATH=$bin:\$PATH; clear; echo '\$ $serve'; $serve; echo; echo 'q beside this ends the demo.'; read -r"
right="PATH=$bin:\$PATH; cr-top $folder/run.ndjson"
session="cacheroute-$$"
tmux new-session -d -s "$session" -x "$(tput cols)" -y "$(tput lines)" "bash -c \"$left\""
tmux split-window -h -l 66% -t "$session" "bash -c \"$right\"; tmux kill-session -t $session"
if [ -n "${TMUX:-}" ]; then
    tmux switch-client -t "$session"
    while tmux has-session -t "$session" 2>/dev/null; do sleep 1; done
else
    tmux attach -t "$session"
fi
