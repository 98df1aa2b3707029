#!/usr/bin/env python3
"""Bytes that each loop order moves: the cost model against a simulated cache.

Generates one kernel an order, runs a small step under callgrind with a last level of
32 KiB, and counts the lines of data that come into it (reads and writes that miss) and
those that go back (misses that evict a written line). The same program without the step
is subtracted. Prints a Markdown table. Exit codes: 0, 1 (something failed, or model and
measurement differ by more than a quarter), 77 (skipped, with the reason).
"""

import argparse
import functools
import pathlib
import platform
import re
import shutil
import subprocess
import sys

BYTES, WAYS, LINE = 32768, 16, 64
MOST = 1.25
PLAIN = "block_rows=4,block_vectors=2,prefetch=0,pack=0"
# Name, kind, query heads, head dim, queries, keys, splits, schedule. Tiles that fit, that do
# not, that have several panels; copies and scores that find room and that do not.
STEPS = [
    ("`q_outer`", "prefill", 1, 64, 1024, 1024, 1, f"order=q_outer,q_tile=16,kv_tile=16,{PLAIN}"),
    ("`q_outer`", "prefill", 1, 64, 1024, 1024, 1, f"order=q_outer,q_tile=48,kv_tile=32,{PLAIN}"),
    ("`q_outer`, packed", "prefill", 1, 64, 1024, 1024, 1,
     "order=q_outer,q_tile=48,kv_tile=64,block_rows=4,block_vectors=2,prefetch=1,pack=1"),
    ("`kv_outer`", "prefill", 1, 64, 1024, 1024, 1, f"order=kv_outer,q_tile=16,kv_tile=16,{PLAIN}"),
    ("`kv_outer`", "prefill", 1, 64, 1024, 1024, 1, f"order=kv_outer,q_tile=48,kv_tile=64,{PLAIN}"),
    ("`gather`", "prefill", 1, 64, 1024, 1024, 1, f"order=gather,q_tile=16,kv_tile=128,{PLAIN}"),
    ("`gather`", "prefill", 1, 64, 1024, 1024, 1, f"order=gather,q_tile=48,kv_tile=1024,{PLAIN}"),
    ("`naive`", "prefill", 1, 64, 1024, 1024, 1, f"order=naive,q_tile=16,kv_tile=1024,{PLAIN}"),
    ("`naive`", "prefill", 1, 64, 1024, 1024, 1, f"order=naive,q_tile=48,kv_tile=64,{PLAIN}"),
    ("`q_outer`", "prefill", 2, 96, 400, 700, 1,
     "order=q_outer,q_tile=48,kv_tile=48,block_rows=4,block_vectors=3,prefetch=0,pack=0"),
    ("`naive`", "prefill", 2, 96, 400, 700, 1,
     "order=naive,q_tile=48,kv_tile=512,block_rows=4,block_vectors=3,prefetch=0,pack=0"),
    ("`split_kv`", "decode", 1, 64, 1, 4096, 1, "order=split_kv,q_tile=1,kv_tile=16"),
    ("`split_kv`, 4 runs", "decode", 1, 64, 1, 4096, 4, "order=split_kv,q_tile=1,kv_tile=16"),
]


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def moved(valgrind, program, arguments):
    """Bytes that come into the last level for data, and that go back."""
    text = run([valgrind, "--tool=callgrind", "--cache-sim=yes", "--simulate-wb=yes",
                "--callgrind-out-file=/dev/null", "--I1=32768,8,64", "--D1=16384,8,64",
                f"--LL={BYTES},{WAYS},{LINE}", program, *arguments])
    names = re.search(r"Events\s*:\s*(.*)", text)
    counts = re.search(r"Collected\s*:\s*(.*)", text)
    if not names or not counts:
        sys.exit(f"callgrind printed no events:\n{text}")
    event = dict(zip(names.group(1).split(), map(int, counts.group(1).split())))
    return (LINE * (event["DLmr"] + event["DLmw"]),
            LINE * (event["ILdmr"] + event["DLdmr"] + event["DLdmw"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--work", default="build/bench/orders/work", type=pathlib.Path)
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if not valgrind:
        print("skipped: valgrind is not installed")
        return 77
    if platform.machine() != "x86_64":
        print("skipped: the kernels are for x86-64")
        return 77
    library = options.work / "liborder.so"

    @functools.cache
    def without(heads, head_dim, queries, keys, splits):
        return moved(valgrind, options.bin / "pagoda-order-step", [library, queries, keys, splits, 0])

    print("| order | heads x dims | queries x keys | tile | model, in + out | measured | measured / model |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong = []
    for name, kind, heads, head_dim, queries, keys, splits, schedule in STEPS:
        coming, going = map(int, run([options.bin / "pagoda-order-bytes", kind, schedule, heads, head_dim,
                                      queries, keys, splits, BYTES, WAYS]).split())
        scoped = ",".join(f"{kind}.{field}" for field in schedule.split(","))
        run([options.bin / "pagoda", "gen", "--heads", heads, "--kv-heads", 1, "--head-dim", head_dim,
             "--target", "x86-64-v3", "--db", "none", "--schedule", scoped, "-o", options.work, "--name", "order"])
        step = [library, queries, keys, splits, 1]
        came, went = (with_step - base for with_step, base in
                      zip(moved(valgrind, options.bin / "pagoda-order-step", step),
                          without(heads, head_dim, queries, keys, splits)))
        ratio = (came + went) / (coming + going)
        field = dict(part.split("=") for part in schedule.split(","))
        print(f"| {name} | {heads} x {head_dim} | {queries} x {keys} | {field['q_tile']} x {field['kv_tile']} | "
              f"{coming / 1e6:.2f} + {going / 1e6:.2f} MB | {came / 1e6:.2f} + {went / 1e6:.2f} MB | "
              f"{ratio:.2f} |", flush=True)
        if not 1 / MOST <= ratio <= MOST:
            wrong.append(f"{name}: measured / model is {ratio:.2f}, expected {1 / MOST:.2f} to {MOST}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
