#!/usr/bin/env bash
# Fuzzes one parser: scripts/fuzz.sh TARGET [SECONDS]. Starts from the files that the tests use; what is found lands in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=$(basename -s .rs fuzz/fuzz_targets/*.rs | paste -sd ' ')
target=${1:-}
seconds=${2:-60}
if [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
    echo "fuzz: name a target: $targets" >&2
    exit 2
fi
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --locked

case $target in
    native | mooncake) seeds=workloads/samples ;;
    rates | tables) seeds=lib/routing/tests/corpus/$target ;;
    fleet | cost | ladder) seeds=lib/routing/tests/corpus/${target}s ;;
    spec) seeds=workloads ;;
    suite) seeds=configs/suites ;;
    fit) seeds=configs/fits ;;
    *) seeds= ;;
esac
features=()
case $target in suite | fit) features=(--features replay) ;; esac
corpus=fuzz/corpus/$target
mkdir -p "$corpus"
if [ -n "$seeds" ]; then
    find "$seeds" -maxdepth 1 -type f -exec cp -n {} "$corpus" \;
fi
# Coverage needs no sanitizer, and so no nightly toolchain; our own code has no `unsafe` that one could catch.
RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "${features[@]}" "$target" "$corpus" -- -max_total_time="$seconds" -max_len=8192 -print_final_stats=1
