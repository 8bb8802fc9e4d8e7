#!/usr/bin/env python3
"""Alternates llama.cpp's own benches with `cr-serve model bench` and prints medians and ratios as Markdown.

Called by llama-cpp.sh. Every round measures every engine once; a ratio is the median over rounds of ours / theirs in that round, so that a
machine that slows down for a while slows both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROMPT, BATCHES = 512, (1, 4, 8, 16)
# Name, llama.cpp's file, our weights (file and type), and what ours should at least reach: prefill, batch 1, batches above.
PAIRS = [
    ("Q8_0", "Q8_0.gguf", ("Q8_0.gguf", "q8"), (1.1, 0.8, 1.1)),
    ("F32", "F32.gguf", ("F32.gguf", "f32"), (1.0, None, 0.8)),
    ("Q4_0 (theirs) and Q8_0 (ours)", "Q4_0.gguf", ("Q8_0.gguf", "q8"), (None, None, None)),
]


def run(command, threads):
    """What a program prints; an error of its ends everything, with its own words."""
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"peers: {' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def llama_cpp(peers, file, threads, steps):
    """Tokens per second: prefill, then decode by batch behind a prompt."""
    bench = [peers / "llama-bench", "-m", peers / file, "-t", threads, "-o", "json", "-r", 1]
    rates = {}
    prefill = json.loads(run([*map(str, bench), "-p", str(PROMPT), "-n", "0"], threads))
    rates["prefill"] = prefill[0]["avg_ts"]
    decode = json.loads(run([*map(str, bench), "-p", "0", "-n", str(steps), "-d", str(PROMPT)], threads))
    rates[1] = decode[0]["avg_ts"]
    most = max(BATCHES)
    batched = [peers / "llama-batched-bench", "-m", peers / file, "-t", threads, "-npp", PROMPT, "-ntg", steps]
    batched += ["-npl", ",".join(str(b) for b in BATCHES if b > 1), "-c", most * (PROMPT + steps), "--output-format", "jsonl"]
    for line in run([str(part) for part in batched], threads).splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            rates[row["pl"]] = row["speed_tg"]
    return rates


def ours(binary, file, quant, threads, steps):
    """The same of ours, and the time to load and the gain of a cached prefix."""
    command = [binary, "model", "bench", file, "--quant", quant, "--prompt", PROMPT, "--steps", steps, "--repeats", 1]
    command += ["--batch", ",".join(map(str, BATCHES)), "--format", "json", "--quiet"]
    result = json.loads(run([str(part) for part in command], threads))
    rates = {int(batch): rate for batch, rate in result["decode_tokens_per_s"].items()}
    rates["prefill"] = result["prefill_tokens_per_s"]
    return rates, result["load_s"], result["reuse_gain"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=32, help="decoded tokens a sequence")
    parser.add_argument("--weights", help="only these formats of theirs, as in Q8_0,F32")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    chosen = args.weights.split(",") if args.weights else [theirs.removesuffix(".gguf") for _, theirs, *_ in PAIRS]
    pairs = [pair for pair in PAIRS if pair[1].removesuffix(".gguf") in chosen]
    if not pairs:
        sys.exit(f"peers: --weights {args.weights} names none of Q8_0, F32, Q4_0")

    measured = {name: [] for name, *_ in pairs}
    loads, gains = [], []
    for i in range(args.rounds):
        for name, theirs, (file, quant), _ in pairs:
            print(f"peers: round {i + 1} of {args.rounds}, {name}", file=sys.stderr)
            a, load, gain = ours(args.bin, args.peers / file, quant, args.threads, args.steps)
            measured[name].append((a, llama_cpp(args.peers, theirs, args.threads, args.steps)))
            if quant == "q8":
                loads.append(load)
                gains.append(gain)

    lines = [
        f"SmolLM2-135M, {args.threads} threads, prompts of {PROMPT} tokens, {args.steps} decoded tokens a sequence;"
        f" medians of {args.rounds} alternating rounds, tokens/s. The last column is the median of the ratios of each round.",
        "",
        "| weights | what | llama.cpp | ours | ours / llama.cpp | wanted |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name, _, _, (prefill, one, more) in pairs:
        for what in ("prefill", *BATCHES):
            both = [(a[what], b[what]) for a, b in measured[name]]
            ratio = statistics.median(a / b for a, b in both)
            wanted = {"prefill": prefill, 1: one}.get(what, more)
            label = "prefill" if what == "prefill" else f"decode, batch {what}"
            mine, their = statistics.median(a for a, _ in both), statistics.median(b for _, b in both)
            lines.append(f"| {name} | {label} | {their:.0f} | {mine:.0f} | {ratio:.2f} | {f'≥ {wanted}' if wanted else ''} |")
    if loads:
        lines += [
            "",
            f"Load from GGUF: {statistics.median(loads):.2f} s (wanted below 2). First token of {PROMPT} cached and 64 new tokens against"
            f" {PROMPT + 64} cold: {statistics.median(gains):.1f} times faster (wanted at least 6).",
        ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
