"""Times the planner of veloxquant-mlx and ours on the same keys, in one run.

Usage: compare.py ROUTING_FOLDER TIME_PLAN_BINARY WORK_FOLDER

128,824 lognormal rates (sigma 1.648), 30 shards, all admitted, nearly all with one copy. Only the package's routing
module is imported, since the package itself wants mlx. Both plans must be equal, load by load, before times count.
"""

import importlib
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time
import types

KEYS, SHARDS, QCAP, WARM_SLOTS = 128_824, 30, 10.0, 10_000.0
PYTHON_RUNS, OUR_RUNS = 5, 50


def import_routing(folder):
    """The routing module, under packages that do not run their own __init__."""
    for name in ("veloxquant_mlx", "veloxquant_mlx.core", "veloxquant_mlx.routing"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[name] = package
    return importlib.import_module("veloxquant_mlx.routing.cacheroute")


def draw_rates():
    rng = random.Random(42)
    raw = [rng.lognormvariate(0.0, 1.648) for _ in range(KEYS)]
    scale = 10_000.0 / sum(raw)
    return [rate * scale for rate in raw]


def time_python(module, rates):
    planner = module.CacheRoutePlanner(n_shards=SHARDS, qcap=QCAP, warm_slots_per_shard=WARM_SLOTS)
    sessions = [module.SessionRate(owner=owner, rate=rate) for owner, rate in enumerate(rates)]
    times = []
    for _ in range(PYTHON_RUNS):
        start = time.perf_counter()
        table = planner.plan(sessions)
        times.append((time.perf_counter() - start) * 1e3)
    return times, table


def time_ours(binary, rates, folder):
    path = folder / "rates.csv"
    path.write_text("key,rate\n" + "".join(f"{owner},{rate!r}\n" for owner, rate in enumerate(rates)))
    command = [binary, path, SHARDS, QCAP, WARM_SLOTS, OUR_RUNS]
    done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    packages, binary, folder = (pathlib.Path(arg) for arg in sys.argv[1:4])
    rates = draw_rates()
    python_ms, table = time_python(import_routing(packages), rates)
    ours = time_ours(binary, rates, folder)
    if ours["admitted"] != len(table.shards) or ours["loads"] != table.expected_load:
        sys.exit("the two plans differ: the times say nothing")
    python_median, our_median = statistics.median(python_ms), statistics.median(ours["ms"])
    print(f"{KEYS} lognormal keys, {SHARDS} shards, {ours['admitted']} admitted, equal loads to the last bit")
    print(f"python  median {python_median:8.2f} ms  (min {min(python_ms):.2f}, {PYTHON_RUNS} runs)")
    print(f"cr-plan median {our_median:8.2f} ms  (min {min(ours['ms']):.2f}, {OUR_RUNS} runs)")
    print(f"ratio   {python_median / our_median:.0f} times by medians, {min(python_ms) / min(ours['ms']):.0f} by minima")


if __name__ == "__main__":
    main()
