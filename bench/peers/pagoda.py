# Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pagoda through its C API: a shuffled pool, a plan for each step, a launcher.

The structures mirror runtime/include/pagoda/kernel_abi.h and pagoda.h.
"""

import ctypes as c

import numpy as np

HND, CAUSAL = 1, 1
DTYPES = {"f32": 0, "f16": 1, "bf16": 2}


def _struct(name, **fields):
    return type(name, (c.Structure,), {"_fields_": list(fields.items())})


_KvView = _struct("KvView", base=c.c_void_p, block_stride=c.c_int64,
                  head_stride=c.c_int64, token_stride=c.c_int64)
_KvFormat = _struct("KvFormat", **{name: c.c_int32 for name in (
    "kv_heads", "head_dim", "v_head_dim", "block_size", "layout", "k_dtype",
    "v_dtype", "v_inside_k")})
_KernelSpec = _struct("KernelSpec", **{name: c.c_int32 for name in (
    "q_heads", "kv_heads", "head_dim", "v_head_dim", "block_size", "layout",
    "q_dtype", "k_dtype", "v_dtype", "o_dtype")}, features=c.c_uint32,
    reserved=c.c_uint32, mods_hash=c.c_uint64)
_Batch = _struct("Batch", sequences=c.c_int32, reserved=c.c_int32,
                 q_lens=c.c_void_p, kv_lens=c.c_void_p, table_rows=c.c_void_p,
                 block_table=c.c_void_p, block_table_stride=c.c_int64)
_Args = _struct(
    "Args", q=c.c_void_p, q_token_stride=c.c_int64, q_head_stride=c.c_int64,
    o=c.c_void_p, o_token_stride=c.c_int64, o_head_stride=c.c_int64,
    lse=c.c_void_p, lse_token_stride=c.c_int64, lse_head_stride=c.c_int64,
    k=_KvView, v=_KvView, k_scale=_KvView, v_scale=_KvView,
    block_table=c.c_void_p, block_table_stride=c.c_int64, items=c.c_void_p,
    counts=c.c_void_p, row_map=c.c_void_p, row_pos=c.c_void_p,
    row_seq=c.c_void_p, partial_o=c.c_void_p, partial_ml=c.c_void_p,
    merges=c.c_void_p, merge_slots=c.c_void_p, sinks=c.c_void_p,
    alibi_slopes=c.c_void_p, prefix_lens=c.c_void_p, aux=c.c_void_p,
    aux_count=c.c_int32, scale=c.c_float, softcap=c.c_float, window=c.c_int32,
    chunk=c.c_int32, reserved=c.c_int32 * 3)
assert c.sizeof(_Args) == 352 and c.sizeof(_KernelSpec) == 56


class Runtime:
    """The shared library; a failing call is an exception with its text."""

    def __init__(self, path):
        self._library = c.CDLL(path)
        self._library.pagoda_last_error.restype = c.c_char_p

    def __getattr__(self, name):
        function = getattr(self._library, "pagoda_" + name)

        def call(*args):
            if function(*args) != 0:
                text = self._library.pagoda_last_error().decode()
                raise RuntimeError(f"pagoda_{name}: {text}")
        return call

    def create(self, what, *args):
        handle = c.c_void_p()
        getattr(self, what)(*args, c.byref(handle))
        return handle


class Pagoda:
    """Every sequence of the tensors in one pool of 16-token blocks."""

    name, detail = "pagoda", "block 16 hnd, shuffled"
    block = 16

    def __init__(self, tensors, threads, runtime, kernels):
        t = tensors
        self.tensors, self.runtime = t, runtime
        dtype = DTYPES[t.dtype]
        spec = _KernelSpec(t.q_heads, t.kv_heads, t.dim, t.dim, self.block, HND,
                           dtype, dtype, dtype, dtype, CAUSAL)
        self.kernels = runtime.create("kernels_open", kernels.encode(),
                                      c.byref(spec))
        self.launcher = runtime.create("launcher_create", c.c_int32(threads))
        blocks = t.kv_len // self.block
        if blocks * self.block != t.kv_len:
            raise ValueError(f"{t.kv_len} tokens: expected whole blocks")
        self.table = np.random.default_rng(1).permutation(
            t.sequences * blocks).astype(np.int32).reshape(t.sequences, blocks)
        form = _KvFormat(t.kv_heads, t.dim, t.dim, self.block, HND, dtype,
                         dtype, 0)
        self.pool = runtime.create("pool_create", c.byref(form),
                                   c.c_int32(self.table.size), c.c_int32(1),
                                   None, c.c_size_t(0))
        k, v = _KvView(), _KvView()
        runtime.pool_views(self.pool, c.c_int32(0), c.byref(k), c.byref(v))
        self._fill(k, t.k)
        self._fill(v, t.v)
        self.o = np.empty_like(t.q)
        self.args = _Args(
            q=t.q.ctypes.data, q_token_stride=t.q_heads * t.dim,
            q_head_stride=t.dim, o=self.o.ctypes.data,
            o_token_stride=t.q_heads * t.dim, o_head_stride=t.dim, k=k, v=v,
            block_table=self.table.ctypes.data, block_table_stride=blocks,
            scale=t.scale)
        self.plans = [self._plan(sequence) for sequence in range(t.sequences)]

    def _fill(self, view, dense):
        """dense: [sequence, head, token, dim]."""
        t = self.tensors
        shape = (self.table.size, t.kv_heads, self.block, t.dim)
        bytes_ = int(np.prod(shape)) * dense.itemsize
        pool = np.frombuffer((c.c_uint8 * bytes_).from_address(view.base),
                             dense.dtype).reshape(shape)
        for row, sequence in zip(self.table, dense):
            pages = sequence.reshape(t.kv_heads, -1, self.block, t.dim)
            pool[row] = pages.swapaxes(0, 1)

    def _plan(self, sequence):
        t = self.tensors
        plan = self.runtime.create("plan_create", self.kernels, self.launcher,
                                   None)
        numbers = np.array([t.q_len, t.kv_len, sequence], np.int32)
        at = [numbers[i:].ctypes.data for i in range(3)]
        batch = _Batch(1, 0, *at, self.table.ctypes.data, self.table.shape[1])
        self.runtime.plan_build(plan, c.byref(batch))
        return plan

    def run(self, sequence):
        self.runtime.attention(self.launcher, self.plans[sequence],
                               self.kernels, c.byref(self.args))

    def output(self):
        return self.o

    def close(self):
        library = self.runtime._library
        for plan in self.plans:
            library.pagoda_plan_destroy(plan)
        library.pagoda_launcher_destroy(self.launcher)
        library.pagoda_kernels_destroy(self.kernels)
        library.pagoda_pool_destroy(self.pool)
