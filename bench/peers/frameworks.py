# Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of packages from PyPI. Each class takes the tensors and a number
of threads, raises Missing where it cannot work, and has run(sequence) and
output(). Nothing that depends on the step alone is in the time of run().
"""

import numpy as np


class Missing(Exception):
    """Why a peer has no row."""


class OnnxRuntime:
    """com.microsoft.GroupQueryAttention on a dense cache that it updates in
    place: the new tokens' K and V are copied into it in the time measured."""

    name = "onnxruntime"

    def __init__(self, tensors, threads):
        try:
            import onnxruntime as ort
            from onnx import TensorProto, helper
        except ImportError as error:
            raise Missing(str(error))
        types = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}
        if tensors.dtype not in types:
            raise Missing(f"GroupQueryAttention has no {tensors.dtype} on CPUs")
        self.detail = f"{ort.__version__}, GroupQueryAttention, dense hnd"
        t, dtype = tensors, types[tensors.dtype]
        q_width, kv_width = t.q_heads * t.dim, t.kv_heads * t.dim
        cache = [1, t.kv_heads, t.kv_len, t.dim]

        def value(name, shape, type_=dtype):
            return helper.make_tensor_value_info(name, type_, shape)
        node = helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past_k", "past_v", "last", "total"],
            ["o", "present_k", "present_v"], domain="com.microsoft",
            num_heads=t.q_heads, kv_num_heads=t.kv_heads, scale=t.scale)
        graph = helper.make_graph(
            [node], "attention",
            [value("q", [1, t.q_len, q_width]),
             value("k", [1, t.q_len, kv_width]),
             value("v", [1, t.q_len, kv_width]), value("past_k", cache),
             value("past_v", cache), value("last", [1], TensorProto.INT32),
             value("total", [1], TensorProto.INT32)],
            [value("o", [1, t.q_len, q_width]), value("present_k", cache),
             value("present_v", cache)])
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 21),
            helper.make_opsetid("com.microsoft", 1)])
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # Threads that spin would take the cores of those who are next.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(
            model.SerializeToString(), options,
            providers=["CPUExecutionProvider"])

        share = ort.OrtValue.ortvalue_from_numpy
        self.o = share(np.zeros((1, t.q_len, q_width), t.q.dtype))
        q = share(t.q.reshape(1, t.q_len, q_width))
        last = share(np.array([t.kv_len - 1], np.int32))
        total = share(np.array([t.kv_len], np.int32))
        self.bindings = []
        for k, v in zip(t.k, t.v):
            binding = self.session.io_binding()
            new = [np.ascontiguousarray(
                x[:, -t.q_len:].swapaxes(0, 1)).reshape(1, t.q_len, kv_width)
                for x in (k, v)]
            caches = [share(x[np.newaxis]) for x in (k, v)]
            inputs = [q, *map(share, new), *caches, last, total]
            for name, bound in zip(node.input, inputs):
                binding.bind_ortvalue_input(name, bound)
            for name, bound in zip(node.output, [self.o, *caches]):
                binding.bind_ortvalue_output(name, bound)
            self.bindings.append(binding)

    def run(self, sequence):
        self.session.run_with_iobinding(self.bindings[sequence])

    def output(self):
        return self.o.numpy()


class _OpenVino:
    """Compiles a model and keeps one request. Everything is in the type of the
    tensors: f32, or bf16 where the machine has instructions for it."""

    def __init__(self, tensors):
        try:
            import openvino as ov
        except ImportError as error:
            raise Missing(str(error))
        self.dtype, self.kind = tensors.dtype, tensors.q.dtype
        self.core, self.kept = ov.Core(), []
        if self.dtype == "bf16":
            if "BF16" not in self.core.get_property(
                    "CPU", "OPTIMIZATION_CAPABILITIES"):
                raise Missing("no bf16 on this machine")
        elif self.dtype != "f32":
            raise Missing(f"measured in f32 and bf16 only, not in {self.dtype}")
        self.type = {"f32": ov.Type.f32, "bf16": ov.Type.bf16}[self.dtype]
        self.version = ov.__version__.split("-")[0]

    def compile(self, model, threads, **options):
        compiled = self.core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": self.dtype, **options})
        self.request = compiled.create_infer_request()

    def share(self, array):
        """A tensor on the memory of an array, which it keeps."""
        from openvino import Tensor
        array = np.ascontiguousarray(array)
        if self.dtype != "bf16" or array.dtype != self.kind:
            return Tensor(array, shared_memory=True)
        # numpy's own types have no bf16.
        self.kept.append(array)
        return Tensor(array.view(np.uint16), array.shape, self.type)

    def output(self):
        data = self.request.get_output_tensor(0).data
        return data if data.dtype == self.kind else data.view(self.kind)


class OpenVino(_OpenVino):
    """scaled_dot_product_attention on dense tensors. It has no grouped heads:
    decode packs a group's heads into query rows; a prompt's keys and values are
    repeated for each query head, outside the time."""

    name = "openvino"

    def __init__(self, tensors, threads):
        super().__init__(tensors)
        from openvino import Model, opset13
        t = tensors
        self.detail = f"{self.version}, scaled_dot_product_attention, dense hnd"
        group = t.q_heads // t.kv_heads
        if t.q_len == 1:
            q = t.q.reshape(1, t.kv_heads, group, t.dim)
            self.to_rows = lambda o: o.reshape(1, t.q_heads, t.dim)
            repeats = 1
        else:
            q = np.ascontiguousarray(t.q.swapaxes(0, 1))[np.newaxis]
            self.to_rows = lambda o: o[0].swapaxes(0, 1)
            repeats = group
        kv_shape = [1, t.kv_heads * repeats, t.kv_len, t.dim]
        inputs = [opset13.parameter(list(shape), self.type)
                  for shape in (q.shape, kv_shape, kv_shape)]
        result = opset13.scaled_dot_product_attention(
            *inputs, scale=opset13.constant(t.scale, self.type),
            causal=t.q_len > 1)
        self.compile(Model([result], inputs, "attention"), threads)
        self.q = self.share(q)
        repeat = (lambda x: x) if repeats == 1 else (
            lambda x: np.repeat(x, repeats, 0))
        self.kv = [[self.share(repeat(x)[np.newaxis]) for x in pair]
                   for pair in zip(t.k, t.v)]

    def run(self, sequence):
        for i, tensor in enumerate([self.q, *self.kv[sequence]]):
            self.request.set_input_tensor(i, tensor)
        self.request.infer()

    def output(self):
        return self.to_rows(super().output())


class OpenVinoPaged(_OpenVino):
    """The op that paged models are transformed to, with a cache in its own
    blocks of 32, shuffled. It writes the new tokens' K and V, too."""

    name, block = "openvino-paged", 32

    def __init__(self, tensors, threads):
        super().__init__(tensors)
        from openvino import Model, PartialShape, Tensor, Type, op, opset13
        t = tensors
        self.detail = f"{self.version}, PagedAttention, block 32 hnd, shuffled"

        def parameter(type_, shape):
            return opset13.parameter(PartialShape(shape), type_)

        def numbers(*shape, type_=np.int32):
            return opset13.constant(np.zeros(shape, type_))
        caches = [opset13.parameter(PartialShape.dynamic(4), Type.dynamic)
                  for _ in range(2)]
        inputs = [parameter(self.type, [-1, t.q_heads * t.dim]),
                  parameter(self.type, [-1, t.kv_heads * t.dim]),
                  parameter(self.type, [-1, t.kv_heads * t.dim]), *caches,
                  *(parameter(Type.i32, [-1]) for _ in range(4)),
                  parameter(Type.i32, [])]
        # The rest is switched off by zeros and empty tensors: window, ALiBi,
        # scores for eviction, rotation of blocks, sparsity, sinks, masks.
        none, empty = numbers(), numbers(0)
        floats, bytes_ = numbers(0, type_=np.float32), numbers(0, type_=np.uint8)
        operands = [*inputs[:9], opset13.constant(np.float32(t.scale)), none,
                    floats, inputs[9], empty, empty, empty, floats, floats,
                    none, none, floats, none, *[empty] * 4, bytes_, empty]
        try:
            node = op._PagedAttentionExtension([x.output(0) for x in operands])
        except (AttributeError, RuntimeError) as error:
            raise Missing("this version's op is another: " +
                          str(error).split("\n")[0])
        for key, value in (("num_k_heads", t.kv_heads), ("k_head_size", t.dim),
                           ("num_v_heads", t.kv_heads), ("v_head_size", t.dim)):
            node.get_rt_info()[key] = value
        self.compile(Model([node.output(0)], inputs, "attention"), threads,
                     KV_CACHE_PRECISION=self.dtype)

        blocks = t.kv_len // self.block
        table = np.random.default_rng(1).permutation(
            t.sequences * blocks).astype(np.int32).reshape(t.sequences, blocks)

        def paged(dense):
            pool = np.empty((table.size, t.kv_heads, self.block, t.dim),
                            self.kind)
            for row, sequence in zip(table, dense):
                pool[row] = sequence.reshape(
                    t.kv_heads, blocks, self.block, t.dim).swapaxes(0, 1)
            return pool

        def new(dense):
            return np.ascontiguousarray(
                dense[:, -t.q_len:].swapaxes(0, 1)).reshape(t.q_len, -1)

        share = self.share
        ints = lambda *values: share(np.array(values, np.int32))
        pools = [share(paged(x)) for x in (t.k, t.v)]
        self.inputs = [
            [share(t.q.reshape(t.q_len, -1)), share(new(k)), share(new(v)),
             *pools, ints(t.kv_len - t.q_len), ints(0, t.q_len), share(row),
             ints(0, blocks), Tensor(np.array(t.kv_len, np.int32))]
            for k, v, row in zip(t.k, t.v, table)]

    def run(self, sequence):
        for i, tensor in enumerate(self.inputs[sequence]):
            self.request.set_input_tensor(i, tensor)
        self.request.infer()


ALL = [OnnxRuntime, OpenVino, OpenVinoPaged]
