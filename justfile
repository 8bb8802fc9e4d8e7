# Everything people do twice. `just` lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

# cuda, metal, or nothing for the CPU: what this machine has
accelerator := `scripts/accelerator.sh`
features := if accelerator == "" { "" } else { "--features cr-serve/" + accelerator }
bin := "target/release"

[private]
default:
    @just --list --unsorted --list-heading $'What there is to do:\n'

# See it: a run on a real model in tmux, and cr-top beside it
[group('try')]
demo: build
    @scripts/demo.sh {{ bin }}

# Compare flat, sticky and cacheroute on a real model; the report goes to reports/bench
[group('try')]
bench: build
    @mkdir -p reports/bench
    {{ bin }}/cr-serve sweep configs/suites/bench.toml --report reports/bench --output reports/bench/events.ndjson

# The paper's evaluation, simulated, a report a suite; then every claim beside its evidence
[group('paper')]
paper: build
    #!/usr/bin/env bash
    set -euo pipefail
    for suite in configs/suites/paper-*.toml; do
        name=$(basename "$suite" .toml)
        {{ bin }}/cr-serve sweep "$suite" --report "reports/paper/${name#paper-}" > /dev/null
    done
    # A claim that fails is a finding, not an error. The record of the sensitivity is too large to be kept in git.
    {{ bin }}/cr-serve claims $(dirname reports/paper/*/result.json) -o reports/paper/README.md || [ $? -eq 3 ]

# What the primary table hangs on: each parameter that the paper leaves unsaid, moved by itself (about ten minutes)
[group('paper')]
paper-sensitivity: build
    {{ bin }}/cr-serve sensitivity configs/suites/sensitivity-primary.toml --report reports/paper/sensitivity > /dev/null

# Search the parameters that the paper leaves unsaid: 45 minutes at most
[group('paper')]
fit-paper LIMIT="45m": build
    {{ bin }}/cr-serve fit configs/fits/paper-primary.toml --limit {{ LIMIT }} --output reports/fit-paper.jsonl

# Real models on this CPU, and what the simulator makes of the same suites: three quarters of an hour
[group('paper')]
real-cpu: build
    scripts/real-cpu.sh {{ bin }}/cr-serve

# Watch the bench that is running, or look at the last one
[group('try')]
watch:
    {{ bin }}/cr-top reports/bench/events.ndjson

# Build the four programs, with the GPU where there is one
[group('build')]
build:
    @echo "building for {{ if accelerator == "" { "the CPU" } else { accelerator } }}" >&2
    cargo build --release --locked --bins {{ features }}

# cr-serve for an NVIDIA GPU, with the CUDA toolkit that is installed (nvcc on the PATH)
[group('build')]
build-cuda:
    @command -v nvcc >/dev/null || { echo "nvcc is not on the PATH; without a CUDA toolkit: just check-cuda" >&2; exit 2; }
    cargo build --release --locked -p cr-serve --features cuda

# Compile for CUDA where there is neither a toolkit nor a GPU, with NVIDIA's packages from PyPI (half an hour)
[group('check')]
check-cuda:
    scripts/check-cuda.sh

# On a machine with a GPU: is it right, how fast is it, and the bench; kept in reports/gpu (needs the CUDA build)
[group('measure')]
gpu-smoke *ARGS:
    scripts/gpu-smoke.sh {{ ARGS }}

# All tests
[group('check')]
test:
    cargo test --release --locked --workspace

# What a reviewer would not want to say: formatting and lints
[group('check')]
lint:
    cargo fmt --all --check
    cargo clippy --release --locked --workspace --all-targets -- -D warnings

# Formatting, lints and tests, as CI runs them
[group('check')]
check: lint test

# Benchmarks of the parts, all or by name: `just microbench planner`
[group('measure')]
microbench *FILTER:
    cargo bench --locked --workspace --benches -- {{ FILTER }}

# The unsafe kernels' tests under valgrind
[group('check')]
sanitize:
    scripts/memcheck.sh

# Fuzz one parser for a minute or for so many seconds: `just fuzz native`, `just fuzz tables 600`
[group('check')]
fuzz TARGET SECONDS="60":
    scripts/fuzz.sh {{ TARGET }} {{ SECONDS }}

# What watching costs: events a second into cr-top, and what writing them adds to a run
[group('measure')]
bench-watching: build
    benches/watching/run.sh

# The published Python planner against ours, in one run (installs it into a temporary folder)
[group('measure')]
bench-python-planner:
    benches/python-planner/run.sh

# llama.cpp against ours on SmolLM2, in one run (builds it, about ten minutes)
[group('measure')]
peer-llama-cpp *ARGS:
    benches/peers/llama-cpp.sh {{ ARGS }}

# Does NVIDIA's aiperf read our Mooncake output, and count the same? (installs it into a temporary folder)
[group('measure')]
peer-aiperf:
    benches/peers/aiperf.sh

# NVIDIA Dynamo's offline replayer against the simulator on one trace, in one run (installs it into a temporary folder; CR_TRACES names the traces)
[group('measure')]
peer-dynamo *ROUNDS:
    benches/peers/dynamo.sh {{ ROUNDS }}

# How time and memory of the simulator grow with requests, keys and shards; kept in reports/scaling
[group('measure')]
bench-scaling: build
    benches/scaling/run.sh

# Install the four programs into ~/.cargo/bin, linked as a whole: minutes more to build, simulated suites a few percent faster
[group('build')]
install:
    cargo install --locked --profile dist --path bins/cr-gen
    cargo install --locked --profile dist --path bins/cr-plan
    cargo install --locked --profile dist --path bins/cr-top
    cargo install --locked --profile dist --path bins/cr-serve {{ if accelerator == "" { "" } else { "--features " + accelerator } }}
