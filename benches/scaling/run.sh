#!/usr/bin/env bash
# How time and memory of the simulator grow with requests, keys and shards, one factor at a time; the table and its figure go to
# reports/scaling. Five minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${CR_BIN:-target/release}
[ -x "$bin/cr-serve" ] || cargo build --release --locked --bin cr-serve
mkdir -p reports/scaling
python3 benches/scaling/scaling.py "$bin/cr-serve" reports/scaling
