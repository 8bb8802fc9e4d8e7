#!/usr/bin/env bash
# What a machine with a GPU runs, with nothing but cr-serve built for it and the libraries it needs (libcuda of the driver; libcublas,
# libcurand and libcudart of CUDA 13), in under five minutes:
#
#     scripts/gpu-smoke.sh [--bin PATH] [--model MODEL] [--out DIR]
#
# It checks that logits equal the CPU's, measures prefill and decode against the card's memory bandwidth, and runs the everyday
# bench. What it prints is kept in reports/gpu/<card>/. On a machine without a GPU the same steps run on the CPU and are kept
# nowhere: how the script is tested.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=target/release/cr-serve
[ -x target/cuda/cr-serve ] && bin=target/cuda/cr-serve
model=
out=
while [ $# -gt 0 ]; do
    case $1 in
        --bin) bin=$2; shift 2 ;;
        --model) model=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) echo "usage: scripts/gpu-smoke.sh [--bin PATH] [--model MODEL] [--out DIR]" >&2; exit 2 ;;
    esac
done
[ -x "$bin" ] || { echo "gpu-smoke: $bin is no program; build with just build-cuda or just check-cuda, or give --bin" >&2; exit 2; }
if ! "$bin" --version >/dev/null; then
    echo "gpu-smoke: $bin does not start; the CUDA libraries must be on LD_LIBRARY_PATH" >&2
    exit 1
fi

device=$("$bin" model inspect llama-tiny --format json | sed -n 's/.*"device": "\(.*\)".*/\1/p')
case $device in
    cuda) card=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1) ;;
    metal) card=$(sysctl -n machdep.cpu.brand_string) ;;
    *) card=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1) ;;
esac
if [ -z "$out" ]; then
    out=$(mktemp -d)
    [ "$device" = cpu ] || out=reports/gpu/$(echo "$card" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9.-')
fi
mkdir -p "$out"

failed=0
# step LIMIT NAME COMMAND…: prints and keeps what a command says; a failure is told and the rest goes on.
step() {
    local limit=$1 name=$2 begin=$SECONDS status=0
    shift 2
    echo "## $name"
    echo "    $*" | sed "s|$bin|cr-serve|"
    timeout "$limit" "$@" || status=$?
    [ "$status" = 0 ] || { failed=1; echo "FAILED with $status"; }
    echo "($((SECONDS - begin)) s)"
    echo
}

smoke() {
    echo "# $card ($device)"
    echo
    [ "$device" != cuda ] || nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv
    "$bin" --version
    echo
    # In f32 the device and the CPU agree to rounding; in the device's own type and in q8 as far as that allows.
    step 40 "Logits in f32" "$bin" model check llama-8m --quant f32
    step 40 "Logits in the device's type" "$bin" model check llama-8m
    step 40 "Logits in q8" "$bin" model check llama-8m --quant q8
    step 40 "Rates of the default model" "$bin" model bench llama-8m --batch 1,8,32,128
    if [ "$device" != cpu ]; then
        step 90 "Rates of a model that fills the card better" "$bin" model bench configs/models/llama-1b.toml --batch 1,8,32,128
    fi
    if [ -n "$model" ]; then
        step 60 "Logits of $model" "$bin" model check "$model"
        step 60 "Rates of $model" "$bin" model bench "$model"
        step 30 "Text" "$bin" generate --model "$model" --max-tokens 24 "The capital of France is"
    fi
    step 180 "The everyday bench" "$bin" --no-progress sweep configs/suites/bench.toml --report "$out/bench"
    [ "$failed" = 0 ] && echo "all passed" || echo "SOME FAILED"
    return "$failed"
}

status=0
smoke 2>&1 | tee "$out/smoke.txt" || status=$?
echo "kept in $out" >&2
exit "$status"
