"""Runs Dynamo's offline replayer and cr-serve in turns and compares CPU time, memory and reuse. Called by dynamo.sh."""

import json
import os
import resource
import subprocess
import sys
import time

# The peer's default is 8,192 batched tokens; ours is told the same.
BUDGET = 8192
THEIRS = """
import json, sys, time
from dynamo._core import MockEngineArgs
from dynamo.replay.api import run_trace_replay
engine = {"num_gpu_blocks": 4000, "block_size": 512, "max_num_batched_tokens": %d}
args = MockEngineArgs.from_json(json.dumps(engine))
start, cpu = time.perf_counter(), time.process_time()
found = run_trace_replay(sys.argv[1], extra_engine_args=args, num_workers=8, trace_block_size=512)
spent = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
print(json.dumps({**spent, **{k: found[k] for k in ("completed_requests", "prefix_cache_reused_ratio")}}))
""" % BUDGET


def measured(command):
    """Stdout of a command, with the CPU seconds and the wall time of its whole process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "DYN_LOG": "error", "RUST_LOG": "error"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout.decode(), cpu_s, wall_s


def ours(serve, trace, cost):
    run = ["run", trace, "--engine", "sim", "--shards", "8", "--block-tokens", "512", "--kv-blocks", "4000"]
    run += ["--policy", "round-robin", "--token-budget", str(BUDGET), "--cost", cost, "--format", "json", "-q"]
    text, cpu_s, wall_s = measured([serve, *run])
    summary = json.loads(text)
    return summary["served_hit"], summary["requests"]["completed"], cpu_s, wall_s


def main():
    rows, trace, serve, python, rounds = sys.argv[1:]
    best = {"theirs": [], "replay alone": [], "ours": []}
    for number in range(int(rounds)):
        text, cpu_s, wall_s = measured([python, "-c", THEIRS, rows])
        # Its log goes to stdout, too.
        found = json.loads(text.splitlines()[-1])
        hit, completed, our_cpu_s, our_wall_s = ours(serve, trace, "8b-h100")
        best["theirs"].append(cpu_s)
        best["replay alone"].append(found["cpu_s"])
        best["ours"].append(our_cpu_s)
        print(
            f"round {number + 1}: Dynamo {cpu_s:.2f} s of CPU ({found['cpu_s']:.2f} s the replay alone, {wall_s:.2f} s on the clock), "
            f"cr-serve {our_cpu_s:.3f} s ({our_wall_s:.3f} s), start and parsing included"
        )
        print(f"  reuse {found['prefix_cache_reused_ratio']:.7f} of {found['completed_requests']}, ours {hit:.7f} of {completed}")
    least = {who: min(seconds) for who, seconds in best.items()}
    print(f"CPU time, the best of each: {least['replay alone'] / least['ours']:.0f} times faster than the replay alone, "
          f"{least['theirs'] / least['ours']:.0f} times than its whole process")
    for cost in ("8b-h100", "32b-2xh100", "70b-2xh100"):
        print(f"our reuse at the speed of {cost}: {ours(serve, trace, cost)[0]:.7f}")


if __name__ == "__main__":
    main()
