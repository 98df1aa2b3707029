#!/usr/bin/env python3
"""Times attention of what is installed on this machine at the workloads of a report.

    peers.py report.json [seconds]

Reads the workloads from the report of run.sh, runs the same lengths and
heads in PyTorch (SDPA with its flash and cuDNN kernels; FlexAttention, whose kernels
are Triton's, over contiguous and over paged keys), adds what it finds as "peers" and
prints a table. What cannot run is skipped with its reason. Peers read contiguous keys
unless their name says otherwise; the runner's kernels read shuffled blocks of 16.
"""
import json
import statistics
import sys
import time


def measure(torch, run):
    """Milliseconds of one run: median of five rounds, by device events."""
    run()
    run()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def round_of(times):
        start.record()
        for _ in range(times):
            run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / times

    times = max(1, min(1000, int(60 / max(round_of(1), 1e-3))))
    return statistics.median(round_of(times) for _ in range(5))


def tensors(torch, workload):
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[workload["dtype"]]
    n, d = workload["sequences"], workload["head_dim"]

    def random(heads, rows):
        return torch.rand(n, heads, rows, d, device="cuda", dtype=kind) * 2 - 1

    q = random(workload["q_heads"], workload["q_len"])
    k, v = (random(workload["kv_heads"], workload["kv_len"]) for _ in range(2))
    return q, k, v


def sdpa(torch, workload, backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = tensors(torch, workload)
    rows, keys = workload["q_len"], workload["kv_len"]
    options = {"enable_gqa": True}
    if rows == keys:
        options["is_causal"] = True
    elif rows > 1:
        from torch.nn.attention.bias import causal_lower_right

        options["attn_mask"] = causal_lower_right(rows, keys)

    def run():
        with sdpa_kernel(getattr(SDPBackend, backend)):
            scaled_dot_product_attention(q, k, v, **options)

    return run


def flex(torch, workload, paged):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = tensors(torch, workload)
    n, rows, keys = workload["sequences"], workload["q_len"], workload["kv_len"]

    def causal(batch, head, q_index, kv_index):
        return q_index + (keys - rows) >= kv_index

    mask = create_block_mask(causal, n if paged else None, None, rows, keys, device="cuda")
    compiled = torch.compile(flex_attention)
    if not paged:
        return lambda: compiled(q, k, v, block_mask=mask, enable_gqa=True)

    from torch.nn.attention.experimental._paged_attention import PagedAttention

    page = 128  # its masks come in blocks of this size
    pages = n * ((keys + page - 1) // page)
    cache = PagedAttention(pages, page, n, device="cuda")
    pool_k, pool_v = (
        torch.zeros(1, workload["kv_heads"], pages * page, workload["head_dim"],
                    device="cuda", dtype=q.dtype)
        for _ in range(2)
    )
    everyone = torch.arange(n, device="cuda")
    positions = torch.arange(keys, device="cuda").expand(n, keys)
    for sequence in range(n):
        cache.reserve(torch.tensor(sequence, device="cuda"), torch.tensor(keys, device="cuda"))
    cache.assign(everyone, positions, k, v, pool_k, pool_v)
    there = cache.convert_logical_block_mask(mask)
    return lambda: compiled(q, pool_k, pool_v, block_mask=there, enable_gqa=True)


PEERS = {
    "sdpa flash": lambda torch, w: sdpa(torch, w, "FLASH_ATTENTION"),
    "sdpa cudnn": lambda torch, w: sdpa(torch, w, "CUDNN_ATTENTION"),
    "flex": lambda torch, w: flex(torch, w, paged=False),
    "flex paged": lambda torch, w: flex(torch, w, paged=True),
}


def why_not():
    """(torch, None), or (None, why nothing can run)."""
    try:
        import torch
    except ImportError as error:
        return None, str(error)
    if not torch.cuda.is_available():
        return None, "torch has no CUDA device"
    return torch, None


def run_peers(workloads, seconds, save):
    torch, reason = why_not()
    end = time.monotonic() + seconds
    results = []
    for name, make in PEERS.items():
        for workload in workloads:
            entry = {"peer": name, "workload": workload["name"]}
            results.append(entry)
            if torch is None:
                entry["skipped"] = reason
            elif time.monotonic() > end:
                entry["skipped"] = "out of time"
            else:
                try:
                    entry["milliseconds"] = measure(torch, make(torch, workload))
                except Exception as error:  # whatever an installed peer throws
                    entry["skipped"] = (str(error).strip() or type(error).__name__).split("\n")[0][:160]
                torch.cuda.empty_cache()
        save(results)
    return results


def print_table(workloads, results):
    print(f"\n{'workload':28} {'pagoda ms':>10}" + "".join(f"{name:>14}" for name in PEERS))
    for workload in workloads:
        row = f"{workload['name']:28} {workload['milliseconds']:10.3f}"
        for name in PEERS:
            found = [r for r in results if (r["peer"], r["workload"]) == (name, workload["name"])]
            ms = found[0].get("milliseconds")
            row += f"{'-' if ms is None else f'{ms:.3f}':>14}"
        print(row)
    reasons = {}
    for result in results:
        if "skipped" in result:
            reasons.setdefault((result["peer"], result["skipped"]), []).append(result["workload"])
    for (name, reason), skipped in reasons.items():
        what = "" if len(skipped) == len(workloads) else f" at {', '.join(skipped)}"
        print(f"skipped: {name}{what}: {reason}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1]) as stream:
        report = json.load(stream)
    workloads = [w for w in report.get("workloads", {}).get("workloads", []) if not w["fault"]]
    if not workloads:
        print("skipped: peers: no workload to compare with")
        return

    def save(results):  # after each peer: one that hangs is ended from outside
        report["peers"] = results
        with open(sys.argv[1], "w") as stream:
            json.dump(report, stream, indent=1)

    results = run_peers(workloads, float(sys.argv[2]) if len(sys.argv) == 3 else 120, save)
    print_table(workloads, results)


if __name__ == "__main__":
    main()
