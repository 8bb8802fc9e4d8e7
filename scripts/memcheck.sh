#!/usr/bin/env bash
# The tests of the unsafe kernels under valgrind's memcheck: reads and writes out of bounds, after a free, and of memory that was never
# written. Valgrind has no AVX-512, so what runs is the AVX2 and the portable bodies; they are the same source, but for 8-bit products.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || { echo "memcheck: install valgrind" >&2; exit 2; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --release --locked --workspace --lib --test model_kernels --no-run 2>&1 | tee "$log" >&2
program() { sed -n "s|.*Executable.*(\(.*/$1-[0-9a-f]*\))|\1|p" "$log"; }

# The random products of f32 take minutes more; the other program multiplies, too.
valgrind --quiet --error-exitcode=1 "$(program cr_engine)" model::kernel --skip the_product_is_the_product
valgrind --quiet --error-exitcode=1 "$(program model_kernels)"
