//===- Passes.td - Pagoda's passes -------------------------*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_PASSES
#define PAGODA_COMPILER_PASSES

include "mlir/Pass/PassBase.td"

def ExpandFeatures : Pass<"pagoda-expand-features", "::mlir::ModuleOp"> {
  let summary = "Turn attributes of pagoda.attention into regions";
  let description = [{
    Causal, window, chunk, soft cap and ALiBi become the `kv_range`, `mask_mod` and
    `score_mod` regions; what is already in a region is kept and composed with
    (a key counts if both say so; the user's score comes first). Later passes look
    at regions only.

    Before:

    ```mlir
    %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
        {causal} : ...
    ```

    After:

    ```mlir
    %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
        kv_range {
        ^bb0(%q_lo: i32, %q_hi: i32):
          %c0 = arith.constant 0 : i32
          %c1 = arith.constant 1 : i32
          %full = arith.addi %q_lo, %c1 : i32
          %hi = arith.addi %q_hi, %c1 : i32
          pagoda.yield %c0, %c0, %full, %hi : i32, i32, i32, i32
        } mask_mod {
        ^bb0(%seq: i32, %head: i32, %q_pos: i32, %kv_pos: i32):
          %sees = arith.cmpi sle, %kv_pos, %q_pos : i32
          pagoda.yield %sees : i1
        } : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
}

def SelectTiles : Pass<"pagoda-select-tiles", "::mlir::ModuleOp"> {
  let summary = "Choose the schedules of each pagoda.attention";
  let description = [{
    Writes the `schedules` attribute: one per kernel variant (prefill, decode), by
    the SRAM-fit formula for the machine. An attribute that is already there is
    kept, so that a schedule can be given by hand.

    After: `{schedules = [#pagoda.schedule<...>, #pagoda.schedule<...>]}`
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"host\"", "machine name">,
    ListOption<"overrides", "override", "std::string", "key=value, applied to each schedule">
  ];
  let dependentDialects = ["::pagoda::PagodaDialect"];
}

def TileAttention : Pass<"pagoda-tile-attention", "::mlir::ModuleOp"> {
  let summary = "Attention level to tiled level: one kernel per schedule";
  let description = [{
    Replaces each function that holds one `pagoda.attention` by a `pagoda.kernel`
    per schedule and one that merges partial states. The regions of the attention
    op move into the tiled ops; values that they capture become `pagoda.arg`.

    Before: `func.func @attention(...) { pagoda.attention ... {schedules = [...]} }`

    After (one schedule, causal):

    ```mlir
    pagoda.kernel @attention_prefill(%a) attributes {...} {
      pagoda.for_items %a {
      ^bb0(%w: !pagoda.item):
        %q = pagoda.load_q %a, %w : ...
        ...
        %st:3 = pagoda.kv_loop %j = %begin to %full_end step 64 carry(...) : ... {...}
        %st2:3 = pagoda.kv_loop %j = %full_end to %end step 64 carry(...) : ... {...}
        pagoda.store ...
      }
    }
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"host\"", "machine name">
  ];
  let dependentDialects = ["::pagoda::PagodaDialect", "::mlir::arith::ArithDialect"];
}

def CpuAssignLayouts : Pass<"pagoda-cpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Annotate tile types with #pagoda.lanes";
  let description = [{
    The schedule's `lanes` decides: queries across lanes gives `rows` with panels of
    `block_vectors` vectors; head dim across lanes gives `cols` with panels of
    `block_rows` rows.

    Before: `!pagoda.tile<1x96x128xf32>`

    After: `!pagoda.tile<1x96x128xf32, #pagoda.lanes<rows, panel = 24>>`
  }];
}

def CpuLowerTiles : Pass<"pagoda-cpu-lower-tiles", "::mlir::ModuleOp"> {
  let summary = "Tiled level to vector, scf, arith and llvm on a CPU";
  let description = [{
    Each `pagoda.kernel` becomes an `llvm.func` of type `pagoda_kernel_fn` with
    `scf` loops inside, op by op, by the emitter of the tiles' layout. Tiles live at
    fixed offsets of the caller's scratch memory.

    After: `llvm.func @k(%args: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr)`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

def CpuLowerCache : Pass<"pagoda-cpu-lower-cache", "::mlir::ModuleOp"> {
  let summary = "append_kv and copy_blocks to vector, scf, arith and llvm on a CPU";
  let description = [{
    Each function that holds one `pagoda.append_kv` or `pagoda.copy_blocks` becomes an
    `llvm.func` of type `pagoda_kernel_fn`: one index is one token, or one copy. There
    is nothing to tile: rows are copied, or rotated, a few vectors at a time.

    Before: `func.func @append(...) { pagoda.append_kv ... }`

    After: `llvm.func @append(%args: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr)`
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"host\"", "machine name">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

def CpuExpandMath : Pass<"pagoda-cpu-expand-math"> {
  let summary = "Elementary functions to polynomials";
  let description = [{
    LLVM turns `math.exp2`, `math.log` and `math.tanh` into libm calls, one per lane
    for vectors. This pass expands f32 exp2, scalar or vector, by Pagoda's polynomial
    (FastExp2.h states its error), log and tanh by MLIR's approximations, so that
    kernels are fast and call no library.

    Before: `%y = math.exp2 %x : vector<8xf32>`

    After: `arith` and `vector.fma` on `vector<8xf32>`
  }];
  let options = [Option<"scalef", "scalef", "bool", "false",
    "Multiply vectors of 16 by powers of two with AVX-512's vscalefps">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

def NvidiaAssignLayouts : Pass<"pagoda-nvidia-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Annotate tile types with #pagoda.fragment";
  let description = [{
    In attention kernels the query tile becomes operand `a` of a matrix product,
    scores, probabilities and o its accumulator `acc`, and m, l and alpha `row`.
    Merge kernels multiply no matrices: their tiles stay as they are.

    Before: `!pagoda.tile<1x64x64xf32>`

    After: `!pagoda.tile<1x64x64xf32, #pagoda.fragment<acc, warps = 4>>`
  }];
}

def NvidiaLowerTiles : Pass<"pagoda-nvidia-lower-tiles", "::mlir::ModuleOp"> {
  let summary = "Tiled level to fragments, shared tiles and pipelines";
  let description = [{
    Each `pagoda.kernel` becomes a GPU kernel in one `gpu.module`, op by op: what is
    done with tiles by ops of the pagoda_nv dialect, addresses, loops and branches by
    arith, scf and llvm. The kernel takes `pagoda_attention_args` by value.

    After:

    ```mlir
    gpu.module @pagoda_kernels [#nvvm.target<chip = "sm_80", O = 3>] {
      llvm.mlir.global external @pagoda_shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
      llvm.func @k(%args: !llvm.ptr {llvm.byval = !llvm.array<352 x i8>, ...})
          attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
        ...
        %s = pagoda_nv.mma %q, %k transposed, %zero : ...
        %m = pagoda_nv.row_reduce max %s : ...
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::gpu::GPUDialect", "::pagoda::nv::NvDialect"];
}

def NvidiaLowerFragments : Pass<"pagoda-nvidia-lower-fragments", "::mlir::ModuleOp"> {
  let summary = "The pagoda_nv dialect to NVVM, Ampere style";
  let description = [{
    Fragments become registers of one thread, loops carry those, shared tiles become
    addresses; steps become cp.async, ldmatrix, mma.sync m16n8k16, shuffles and
    barriers. Everything else stays.

    Before: `%m = pagoda_nv.row_reduce max %s : !pagoda_nv.fragment<16x16xf32, acc> -> ...`

    After: `arith.maxnumf` of a thread's eight registers, two `nvvm.shfl.sync bfly` per row
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def NvidiaLowerCache : Pass<"pagoda-nvidia-lower-cache", "::mlir::ModuleOp"> {
  let summary = "append_kv and copy_blocks to GPU kernels";
  let description = [{
    Each function that holds one `pagoda.append_kv` or `pagoda.copy_blocks` becomes a
    kernel in the `gpu.module`: a block writes one token, or copies one block of the
    cache. The parameter is the role's argument struct, by value.

    Before: `func.func @append(...) { pagoda.append_kv ... }`

    After: `llvm.func @append(%args: !llvm.ptr {llvm.byval = !llvm.array<216 x i8>, ...})`
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"sm_80\"", "machine name">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect"];
}

def NvidiaExpandMath : Pass<"pagoda-nvidia-expand-math", "::mlir::ModuleOp"> {
  let summary = "Elementary functions to the hardware's approximations";
  let description = [{
    f32 only. exp2, exp, log2, log and tanh by ex2.approx and lg2.approx, division by
    rcp.approx, or by a product where the divisor is a constant. A subnormal divisor
    counts as 0. What has an instruction of its own (fma, sqrt, abs, ...) is left.
    Anything else is an error: there is no library to call.

    Before: `%y = math.exp2 %x : f32`

    After: `%y = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%x) : (f32) -> f32`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect"];
}

def NvidiaEmulate : Pass<"pagoda-nvidia-emulate", "::mlir::ModuleOp"> {
  let summary = "NVVM ops to calls of the emulator";
  let description = [{
    Kernels leave their `gpu.module` and become functions of the host, run once per
    CUDA thread; what only a GPU can do becomes a call of runtime/emulator. Loads and
    stores of global memory are announced, so that the emulator can check them.

    Before: `nvvm.barrier0`

    After: `llvm.call @pagoda_emu_barrier(%op) : (i32) -> ()`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // PAGODA_COMPILER_PASSES
