#!/usr/bin/env python3
"""Bytes that each loop order moves: the cost model against a simulated cache.

Generates one kernel an order, runs a small step under cachegrind with a last level of
32 KiB, and counts the lines of data that come into it: reads and writes that miss. The
same program without the step is subtracted. Lines that go back are not counted by the
simulator. Prints a Markdown table. Exit codes: 0, 1 (something failed), 77 (skipped,
with the reason).
"""

import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys

LAST_LEVEL = 32768
LINE = 64
# One panel of queries a tile, so that a tile meets its keys once. `gather` takes so many
# keys at a time that the copy, `naive` so many that the scores, find no room.
TILE = "q_tile=16,block_rows=4,block_vectors=2,prefetch=0,pack=0"
PREFILL = [("q_outer", 16), ("kv_outer", 16), ("gather", 128), ("naive", 1024)]
STEPS = [(order, "prefill", f"order={order},kv_tile={keys},{TILE}", 1024, 1024, 1) for order, keys in PREFILL]
STEPS += [(f"split_kv, {splits} runs", "decode", "order=split_kv,q_tile=1,kv_tile=16", 1, 4096, splits)
          for splits in (1, 4)]


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def lines_in(valgrind, program, arguments):
    """Lines that come into the last level, for data."""
    text = run([valgrind, "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
                "--I1=32768,8,64", "--D1=16384,8,64", f"--LL={LAST_LEVEL},16,{LINE}", program, *arguments])
    found = re.search(r"LLd misses:\s+([\d,]+)", text)
    if not found:
        sys.exit(f"cachegrind printed no LLd misses:\n{text}")
    return int(found.group(1).replace(",", ""))


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
    print("| order | queries x keys | model | measured | measured / model |")
    print("| --- | --- | --- | --- | --- |")
    for name, kind, overrides, queries, keys, splits in STEPS:
        predicted, _ = run([options.bin / "pagoda-order-bytes", kind, overrides, queries, keys,
                            splits]).split(maxsplit=1)
        scoped = ",".join(f"{kind}.{field}" for field in overrides.split(","))
        run([options.bin / "pagoda", "gen", "--heads", 1, "--head-dim", 64, "--target", "x86-64-v3",
             "--db", "none", "--schedule", scoped, "-o", options.work, "--name", "order"])
        library = options.work / "liborder.so"
        arguments = [library, queries, keys, splits]
        program = options.bin / "pagoda-order-step"
        with_step = lines_in(valgrind, program, [*arguments, 1])
        without = lines_in(valgrind, program, [*arguments, 0])
        measured = (with_step - without) * LINE
        print(f"| {name} | {queries} x {keys} | {int(predicted) / 1e6:.2f} MB | "
              f"{measured / 1e6:.2f} MB | {measured / int(predicted):.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
