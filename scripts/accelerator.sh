#!/usr/bin/env bash
# Prints the cargo feature for this machine's accelerator: "metal" on a Mac, "cuda" with an NVIDIA GPU and nvcc, else nothing.
# CR_ACCELERATOR=none|cuda|metal overrides it.
set -euo pipefail

case "${CR_ACCELERATOR:-auto}" in
    auto) ;;
    none) exit 0 ;;
    cuda | metal) echo "$CR_ACCELERATOR"; exit 0 ;;
    *) echo "CR_ACCELERATOR is '$CR_ACCELERATOR'; it is auto, none, cuda or metal" >&2; exit 2 ;;
esac

if [ "$(uname -s)" = Darwin ]; then
    echo metal
elif command -v nvcc >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo cuda
fi
