#!/usr/bin/env bash
# Assembles a CUDA toolkit from the packages that NVIDIA publishes on PyPI, for a machine that has neither a toolkit nor a GPU:
#
#     scripts/cuda-home.sh FOLDER      # prints the folder to use as CUDA_HOME
#
# What comes out compiles and links; it runs only where a driver (libcuda) is. A finished folder is left as it is.
# The versions are 13.0, which drivers from 580 on run; override them by CR_CUDA_VERSION (13.0) and CR_CURAND_VERSION (10.4.0).
set -euo pipefail

home=${1:?usage: scripts/cuda-home.sh FOLDER}
version=${CR_CUDA_VERSION:-13.0}
curand=${CR_CURAND_VERSION:-10.4.0}
for tool in python3 gcc; do
    command -v "$tool" >/dev/null || { echo "cuda-home: $tool is missing" >&2; exit 2; }
done
if [ -e "$home/complete" ]; then
    echo "$home"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "cuda-home: downloading CUDA $version from PyPI (about 700 MB)" >&2
packages=()
for part in cuda-nvcc cuda-crt cuda-runtime cuda-cccl cuda-nvrtc nvvm cublas; do
    packages+=("nvidia-$part==$version.*")
done
# CR_WHEELS: a folder that has the wheels already.
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" \
    ${CR_WHEELS:+--no-index --find-links "$CR_WHEELS"} "${packages[@]}" "nvidia-curand==$curand.*" >&2

mkdir -p "$home"
for wheel in "$work"/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
    rm "$wheel"
done
# All of them unpack into one tree, named after the major version.
cp -R "$work"/unpacked/nvidia/cu"${version%%.*}"/. "$home"/
chmod +x "$home"/bin/* "$home"/nvvm/bin/*
ln -sfn lib "$home/lib64"

# Wheels carry libraries under their versioned names only; the linker looks for the bare ones.
for library in "$home"/lib/lib*.so.*; do
    bare=${library%%.so.*}.so
    [ -e "$bare" ] || ln -s "$(basename "$library")" "$bare"
done

# libcuda comes with a driver. To link without one, a library of its name does that defines every function of cuda.h; the
# real one is found at run time.
mkdir -p "$home/lib/stubs"
grep -oE '\bcu[A-Z][A-Za-z0-9_]+\b' "$home/include/cuda.h" | sort -u | sed 's/.*/void &(void) {}/' |
    gcc -shared -fPIC -x c -w -Wl,-soname,libcuda.so.1 -o "$home/lib/stubs/libcuda.so" -
touch "$home/complete"
echo "$home"
