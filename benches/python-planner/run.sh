#!/usr/bin/env bash
# Times our planner against the published Python one on the same keys, in one run. Wants python3 with pip, and network
# for one small wheel. See compare.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m pip download --quiet --no-deps --dest "$folder" veloxquant-mlx==0.94.15
python3 -m zipfile -e "$folder"/veloxquant_mlx-*.whl "$folder/packages"

cargo build --quiet --release -p cr-routing --example time_plan
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
python3 benches/python-planner/compare.py "$folder/packages" "$target/release/examples/time_plan" "$folder"
