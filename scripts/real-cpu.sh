#!/usr/bin/env bash
# Real models on this CPU, and what the simulator makes of the same suites: scripts/real-cpu.sh CR_SERVE [FOLDER]
#
# Calibrates a cost model for each model, runs its suites on the model and again simulated with that cost at the same rate, and keeps the
# difference beside them. SmolLM2 is used where CR_MODEL_DIR holds its GGUF. Every suite resumes where it was interrupted.
set -euo pipefail
serve=$1
out=${2:-reports/real-cpu}
mkdir -p "$out"

# suites MODEL NAME...: runs configs/suites/real-NAME.toml for each NAME on MODEL
suites() {
    local model=$1 label=$2
    shift 2
    local cost=$out/$label.toml
    [ -s "$cost" ] || "$serve" calibrate --model "$model" -o "$cost"
    for name in "$@"; do
        "$serve" sweep "configs/suites/real-$name.toml" --model "$model" --report "$out/$name" > /dev/null
        qps=$(grep -o '"qps": *[0-9.]*' "$out/$name/result.json" | head -n 1 | grep -o '[0-9.]*$')
        "$serve" sweep "configs/suites/real-$name.toml" --cost "$cost" --qps "$qps" --report "$out/$name-simulated" > /dev/null
        # The simulator is expected to differ; the table is the point, not the exit code.
        "$serve" compare "$out/$name" "$out/$name-simulated" > "$out/$name-against-simulated.txt" || [ $? -eq 3 ]
    done
}

suites llama-8m llama-8m-cpu 8m-4 8m-8
smollm2=$(find "${CR_MODEL_DIR:-/nonexistent}" -iname '*smollm2*.gguf' 2> /dev/null | head -n 1 || true)
if [ -n "$smollm2" ]; then
    suites "$smollm2" smollm2-135m-cpu smollm2-4 sessions
else
    echo "real-cpu: CR_MODEL_DIR has no SmolLM2 GGUF; its suites are left out" >&2
fi
