#!/usr/bin/env bash
# Compiles and links the CUDA build on a machine with neither a CUDA toolkit nor a GPU, and says what came out:
#
#     scripts/check-cuda.sh [FOLDER]      # default: target/cuda
#
# The toolkit is assembled from PyPI (cuda-home.sh). The build takes about half an hour of processor time; that it compiles is
# all it shows. FOLDER/cr-serve is the binary to carry to a GPU machine, and scripts/gpu-smoke.sh what to run there.
# CUDA_COMPUTE_CAP chooses the cards: 90 (Hopper) by default, 80 Ampere, 89 Ada, 120 consumer Blackwell.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-target/cuda}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
CUDA_HOME=$(scripts/cuda-home.sh "${CR_CUDA_HOME:-$folder/toolkit}")
export CUDA_HOME CUDA_PATH=$CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-90}
# Where the linker looks; the build flags stay as they are, so that dependencies are shared with a CPU build.
export LIBRARY_PATH=$CUDA_HOME/lib:$CUDA_HOME/lib/stubs${LIBRARY_PATH:+:$LIBRARY_PATH}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$folder/target}
# A third of the size of the kernels, and a binary that can be carried.
export NVCC_APPEND_FLAGS="--compress-mode=size${NVCC_APPEND_FLAGS:+ $NVCC_APPEND_FLAGS}"

cargo build --release --locked -p cr-serve --features cuda
strip -o "$folder/cr-serve" "$CARGO_TARGET_DIR/release/cr-serve"

size=$(stat -c %s "$folder/cr-serve")
echo "$folder/cr-serve: $((size / 1000000)) MB stripped, for compute capability $CUDA_COMPUTE_CAP; it needs"
readelf -d "$folder/cr-serve" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/    \1/p'
limit=64000000
if [ "$size" -ge "$limit" ]; then
    echo "check-cuda: the binary is larger than the $((limit / 1000000)) MB that may be carried" >&2
    exit 1
fi
