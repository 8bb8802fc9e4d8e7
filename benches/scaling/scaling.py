"""Runs simulated suites of one cell and writes how their CPU time and peak memory grow. Called by run.sh."""

import math
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

BASE = {"requests": 300_000, "keys": 100_000, "shards": 32}
FACTORS = {
    "requests": [10_000, 100_000, 1_000_000, 10_000_000],
    "keys": [1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    "shards": [4, 16, 64, 256, 1_024],
}
# Requests a second for each shard: busy, and far from the knee.
QPS_A_SHARD = 3.0
SUITE = """schema = "cacheroute.suite/1"
name = "scaling"
title = "Scaling"
baseline = "flat"
candidate = "flat"
policies = ["flat"]
seeds = [1]
[load]
qps = [{qps}]
[fleet]
shards = {shards}
block_tokens = 16
kv_blocks = 40071
token_budget = 512
[engine]
kind = "sim"
cost = "70b-2xh100"
[workload]
requests = {requests}
output_tokens = 85
popularity = {{ model = "zipf", keys = {keys}, alpha = 1.0 }}
arrivals = {{ qps = 1.0 }}
[[workload.prompt]]
scope = "global"
tokens = 178
[[workload.prompt]]
scope = "key"
tokens = 180
[[workload.prompt]]
scope = "pool"
documents = 9
break_probability = 0.67
tokens = {{ model = "lognormal", mean = 845, sigma = 1.14, max = 8192 }}
[[workload.prompt]]
scope = "request"
tokens = 110
"""


def measured(serve, point):
    """CPU seconds and peak megabytes of one run, from process start to the written report."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "scaling.toml")
        suite.write_text(SUITE.format(qps=QPS_A_SHARD * point["shards"], **point))
        command = [serve, "sweep", str(suite), "--restart", "-q", "--jobs", "1", "--report", str(Path(folder, "report"))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} failed")
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def short(value):
    """A label narrow enough to stand beside its neighbours: 10k, 1M."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value:,}"


def figure(rows):
    """Three small log-log plots: CPU time and peak memory against each factor."""
    width, height, gap = 240, 180, 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{3 * (width + gap)}" height="{height + 70}" font-family="sans-serif" font-size="11" fill="#808080">']
    every = [row[3:5] for row in rows]
    lows, highs = ([f(pair[i] for pair in every) for i in (0, 1)] for f in (min, max))
    for panel, factor in enumerate(FACTORS):
        left = panel * (width + gap) + 45
        own = [row for row in rows if row[0] == factor]
        values = [row[1] for row in own]
        x = lambda v: left + (math.log(v / values[0]) / math.log(values[-1] / values[0])) * (width - 20)
        out.append(f'<text x="{left}" y="14">{factor}</text>')
        out.append(f'<path d="M{left} 22V{height + 22}H{left + width}" fill="none" stroke="#808080"/>')
        for value in values:
            out.append(f'<text x="{x(value):.1f}" y="{height + 36}" text-anchor="middle">{short(value)}</text>')
        for i, (colour, dash, name) in enumerate((("#3b82c4", "", "CPU s"), ("#c4703b", "5 3", "peak MB"))):
            y = lambda v: height + 17 - math.log(v / lows[i]) / math.log(highs[i] / lows[i]) * (height - 15)
            points = " ".join(f"{x(row[1]):.1f},{y(row[3 + i]):.1f}" for row in own)
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
            for row in own:
                out.append(f'<circle cx="{x(row[1]):.1f}" cy="{y(row[3 + i]):.1f}" r="2.5" fill="{colour}"/>')
            if panel == 0:
                out.append(f'<text x="{left + 8}" y="{34 + 14 * i}" fill="{colour}">{name}: {lows[i]:.3g} to {highs[i]:,.0f}</text>')
    out.append(f'<text x="45" y="{height + 60}">Both axes logarithmic; a line of each colour has one scale in all three plots.</text></svg>\n')
    return "\n".join(out)


def main():
    serve, folder = sys.argv[1], Path(sys.argv[2])
    rows = []
    for factor, values in FACTORS.items():
        for value in values:
            point = {**BASE, factor: value}
            cpu_s, peak_mb = measured(serve, point)
            rows.append((factor, value, point["requests"], cpu_s, peak_mb))
            print(f"{factor:>9} {value:>10,}  {cpu_s:8.2f} s CPU  {peak_mb:8.0f} MB", flush=True)
    lines = [
        "# How the simulator scales",
        "",
        "`just bench-scaling`: one factor at a time around {requests:,} requests, {keys:,} keys (Zipf, alpha 1) and {shards} shards, flat policy,".format(**BASE),
        f"{QPS_A_SHARD:g} requests per second for each shard, prompts as in the paper's primary suite. CPU time (user and system) of the whole process on one",
        f"core, from its start to the written report, requests drawn as they are served. On {platform.machine()}, {os.cpu_count()} cores shared with others: the ratios",
        "between rows say more than the seconds.",
        "",
        "| factor | value | CPU time | µs a request | peak memory |",
        "|---|--:|--:|--:|--:|",
    ]
    for factor, value, requests, cpu_s, peak_mb in rows:
        lines.append(f"| {factor} | {value:,} | {cpu_s:.2f} s | {cpu_s / requests * 1e6:.2f} | {peak_mb:,.0f} MB |")
    lines += ["", "![CPU time and peak memory against each factor](scaling.svg)", ""]
    notes = Path(__file__).with_name("notes.md")
    if notes.exists():
        lines.append(notes.read_text())
    folder.joinpath("README.md").write_text("\n".join(lines))
    folder.joinpath("scaling.svg").write_text(figure(rows))


if __name__ == "__main__":
    main()
