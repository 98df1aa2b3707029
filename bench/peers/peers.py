#!/usr/bin/env python3
# Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pagoda beside attention of packages from PyPI, on the same values, in turns.

Ratios are medians over turns, a peer's time over Pagoda's in the same turn, with
a 99% interval. Sampled rows of every output are compared with f64.
"""

import argparse
import gc
import json
import math
import os
import platform
import statistics
import time

import numpy as np

import frameworks
import pagoda

ROTATED_BYTES = 512 << 20  # of a peer's cache in decode: beyond any L3 here
LONGEST = 3.0  # seconds; a slower step is sampled once
# Largest error allowed, as a share of sum_j p_j |v_j|.
BOUNDS = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}


def numpy_type(dtype):
    if dtype == "bf16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"f32": np.float32, "f16": np.float16}[dtype])


class Tensors:
    """q [q_len, q_heads, dim]; k, v [sequences, kv_heads, kv_len, dim]."""

    q_heads, kv_heads, dim = 16, 8, 128
    scale = 1 / math.sqrt(128)

    def __init__(self, q_len, kv_len, dtype):
        self.q_len, self.kv_len, self.dtype = q_len, kv_len, dtype
        kind = numpy_type(dtype)
        self.kv_bytes = 2 * kv_len * self.kv_heads * self.dim * kind.itemsize
        self.sequences = 1
        if q_len == 1:
            # Odd, so that no cache of a peer is a power of two bytes.
            self.sequences = math.ceil(ROTATED_BYTES / self.kv_bytes) | 1
        random = np.random.default_rng(0)

        def draw(*shape):
            return random.standard_normal(shape, np.float32).astype(kind)
        self.q = draw(q_len, self.q_heads, self.dim)
        shape = (self.sequences, self.kv_heads, kv_len, self.dim)
        self.k, self.v = draw(*shape), draw(*shape)

    def pairs(self):
        """(query, key) pairs that a causal mask leaves, of one head."""
        past = self.kv_len - self.q_len
        return self.q_len * past + self.q_len * (self.q_len + 1) // 2

    def flops(self):
        return 4 * self.pairs() * self.q_heads * self.dim

    def worst(self, output, sequence):
        """The largest error of sampled rows, as a share of its bound."""
        worst = 0.0
        tokens = sorted({0, self.q_len // 3, self.q_len // 2, self.q_len - 1})
        for token in tokens:
            for head in range(token % 3, self.q_heads, 3):
                kv_head = head * self.kv_heads // self.q_heads
                seen = self.kv_len - self.q_len + token + 1
                q = self.q[token, head].astype(np.float64)
                k = self.k[sequence, kv_head, :seen].astype(np.float64)
                v = self.v[sequence, kv_head, :seen].astype(np.float64)
                scores = k @ q * self.scale
                p = np.exp(scores - scores.max())
                p /= p.sum()
                error = np.abs(output[token, head].astype(np.float64) - p @ v)
                ratio = error / (BOUNDS[self.dtype] * (p @ np.abs(v)))
                # A NaN is worse than anything.
                worst = max(worst, float(np.nan_to_num(ratio, nan=np.inf).max()))
        return worst


def median_interval(values):
    """Of the median at 99%, from the order of the samples."""
    ordered = sorted(values)
    rank = int((len(ordered) - 2.576 * math.sqrt(len(ordered))) / 2)
    if rank < 0:
        return None
    return [ordered[rank], ordered[-1 - rank]]


def timed(peer, sequence):
    start = time.perf_counter()
    peer.run(sequence)
    return time.perf_counter() - start


def measure(tensors, makers, seconds):
    """Rows of one step, Pagoda's first, and what is missing."""
    rows, missing = [], []
    for make in makers:
        try:
            peer = make(tensors)
        except frameworks.Missing as reason:
            missing.append(f"{make.name}, {tensors.dtype}: {reason}")
            continue
        first = timed(peer, 0)
        if first <= LONGEST:
            first = timed(peer, tensors.sequences - 1)
        rows.append({"peer": peer.name, "detail": peer.detail, "run": peer,
                     "seconds": [first] if first > LONGEST else [],
                     "slow": first > LONGEST})
    quick = [row for row in rows if not row["slow"]]
    start, turn = time.perf_counter(), 0
    while turn < 5 or (turn < 300 and time.perf_counter() - start < seconds):
        for i, row in enumerate(quick if turn % 2 == 0 else quick[::-1]):
            sequence = (turn * len(quick) + i) % tensors.sequences
            row["seconds"].append(timed(row["run"], sequence))
        turn += 1
    ours = rows[0]["seconds"]
    for row in rows:
        peer = row.pop("run")
        peer.run(tensors.sequences - 1)
        row["error_of_bound"] = tensors.worst(
            np.asarray(peer.output()).reshape(tensors.q.shape),
            tensors.sequences - 1)
        if row["slow"]:
            ratios = [row["seconds"][0] / statistics.median(ours)]
        else:
            ratios = [a / b for a, b in zip(row["seconds"], ours)]
        row["ratio"] = statistics.median(ratios)
        row["interval"] = median_interval(ratios)
        median = statistics.median(row["seconds"])
        row["gflops"] = tensors.flops() / median / 1e9
        row["gb_per_second"] = tensors.kv_bytes / median / 1e9
        if hasattr(peer, "close"):
            peer.close()
    return rows, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", required=True, help="libpagoda_runtime.so")
    parser.add_argument("--kernels", required=True,
                        help="folder with libf32.so, libf16.so, ...")
    parser.add_argument("--threads", default="1,0", help="0: one for each CPU")
    parser.add_argument("--types", default="f32,f16")
    parser.add_argument("--prefill", default="512,2048,4096", help="tokens")
    parser.add_argument("--decode", default="4096,16384", help="tokens")
    parser.add_argument("--seconds", type=float, default=8, help="for each step")
    parser.add_argument("--json", help="file for every sample")
    options = parser.parse_args()
    numbers = lambda text: [int(x) for x in text.split(",") if x]

    runtime = pagoda.Runtime(options.runtime)
    cpus = len(os.sched_getaffinity(0))
    steps = [(tokens, tokens) for tokens in numbers(options.prefill)]
    steps += [(1, tokens) for tokens in numbers(options.decode)]
    results, missing, wrong = [], [], []
    print("| step | type | threads | peer | ms | | times Pagoda's (99%) |\n"
          "| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for threads in sorted({n or cpus for n in numbers(options.threads)}):
        for dtype in options.types.split(","):
            for q_len, kv_len in steps:
                tensors = Tensors(q_len, kv_len, dtype)

                def ours(t):
                    return pagoda.Pagoda(t, threads, runtime, os.path.join(
                        options.kernels, f"lib{dtype}.so"))

                def bound(peer):
                    make = lambda t: peer(t, threads)
                    make.name = peer.name
                    return make
                rows, reasons = measure(
                    tensors, [ours, *map(bound, frameworks.ALL)],
                    options.seconds)
                missing += [r for r in reasons if r not in missing]
                step = ("decode" if q_len == 1 else "prefill") + f" {kv_len}"
                for row in rows:
                    row.update(step=step, dtype=dtype, threads=threads)
                    show(row)
                    if not row["error_of_bound"] <= 1:
                        wrong.append(row)
                results += rows
                del tensors
                gc.collect()
    for reason in missing:
        print("skipped", reason)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"cpu": platform.processor(), "cpus": cpus,
                       "missing": missing, "rows": results}, file, indent=1)
    for row in wrong:
        print(f"wrong output: {row['peer']}, {row['step']}: "
              f"{row['error_of_bound']:.3g} times the bound")
    return 1 if any(row["peer"] == "pagoda" for row in wrong) else 0


def show(row):
    prefill = row["step"].startswith("prefill")
    rate = (f"{row['gflops']:.1f} GFLOP/s" if prefill
            else f"{row['gb_per_second']:.1f} GB/s")
    ratio = f"{row['ratio']:.2f}"
    if row["peer"] == "pagoda":
        ratio = ""
    elif row["slow"]:
        ratio += " (one sample)"
    elif row["interval"]:
        ratio += " ({:.2f} to {:.2f})".format(*row["interval"])
    if not row["error_of_bound"] <= 1:
        ratio = "wrong output"
    print(f"| {row['step']} | {row['dtype']} | {row['threads']} | {row['peer']} "
          f"{row['detail']} | {1e3 * statistics.median(row['seconds']):.3g} | "
          f"{rate} | {ratio} |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
