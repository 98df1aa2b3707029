//===- Attributes.td - Attributes of the pagoda dialect ----*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_ATTRIBUTES
#define PAGODA_DIALECT_ATTRIBUTES

include "dialect/Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Pagoda_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Pagoda_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Pagoda_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::pagoda";
  let genSpecializedAttr = 0;
}

def Pagoda_CacheLayout : Pagoda_Enum<"CacheLayout",
    "order of the dimensions of one cache block", [
      I32EnumAttrCase<"nhd", 0>,  // [slot][head][dim]
      I32EnumAttrCase<"hnd", 1>   // [head][slot][dim]
    ]>;

def Pagoda_ScaleGranularity : Pagoda_Enum<"ScaleGranularity",
    "what shares one scale in an 8-bit cache", [
      I32EnumAttrCase<"none", 0>,
      I32EnumAttrCase<"tensor", 1>,
      I32EnumAttrCase<"head", 2>,
      I32EnumAttrCase<"token", 3>
    ]>;

def Pagoda_KvPart : Pagoda_Enum<"KvPart", "which half of a cache is meant", [
      I32EnumAttrCase<"key", 0>,
      I32EnumAttrCase<"value", 1>
    ]>;
def Pagoda_KvPartAttr : EnumAttr<Pagoda_Dialect, Pagoda_KvPart, "part">;

def Pagoda_Role : Pagoda_Enum<"Role",
    "what a kernel computes; the values are those of pagoda_role", [
      I32EnumAttrCase<"attention", 0>,
      I32EnumAttrCase<"merge", 1>,
      I32EnumAttrCase<"append", 2>,
      I32EnumAttrCase<"copy", 3>
    ]>;
def Pagoda_RoleAttr : EnumAttr<Pagoda_Dialect, Pagoda_Role, "role">;

def Pagoda_LoopOrder : Pagoda_Enum<"LoopOrder",
    "which loop is outside, and what is kept between rounds", [
      I32EnumAttrCase<"naive", 0>,    // the whole score matrix, then softmax
      I32EnumAttrCase<"gather", 1>,   // copy the pages together, then attend
      I32EnumAttrCase<"kv_outer", 2>, // FlashAttention: keys outside
      I32EnumAttrCase<"q_outer", 3>,  // FlashAttention-2: queries outside
      I32EnumAttrCase<"split_kv", 4>  // q_outer, keys split between workers
    ]>;

def Pagoda_Lanes : Pagoda_Enum<"Lanes",
    "which dimension lies across the lanes of a vector", [
      I32EnumAttrCase<"queries", 0>,
      I32EnumAttrCase<"head_dim", 1>
    ]>;

def Pagoda_ScheduleAttr : Pagoda_Attr<"Schedule", "schedule"> {
  let summary = "Every choice of how a kernel is executed";
  let description = [{
    One pass (`pagoda-select-tiles`) writes it; later passes only obey.

    - `order`: the loop order.
    - `lanes`: what lies across vector lanes (CPU).
    - `q_tile`: packed query rows per work item, that is query tokens times
      query heads per KV head.
    - `kv_tile`: keys per iteration of the KV loop.
    - `heads`: KV heads per work item.
    - `block_rows` x `block_vectors`: the register block of the inner loops
      (CPU): broadcast rows by vectors. With lanes = head_dim and two stages,
      `block_rows` rows of queries meet a key and a value while these are in the
      first-level cache, in passes of as many as fit the registers.
    - `prefetch`: how far ahead of the keys what follows them is prefetched,
      through the block table: with lanes = head_dim, 1 is V of the same tile and
      n that of n - 1 tiles later; with lanes = queries, what is copied or read
      next of the tile n tiles later; 0 means none (CPU). With lanes = head_dim
      and two stages, up to 1: what later passes over a row find behind it; 2:
      the rows that follow some rows after it, in the next tile, too; 3: those
      of the next tile, token by token if the layout is nhd, while this one is
      visited head by head; 4: as 2, but all values of a tile come before the
      keys of the next one, not beside them: half as much to keep in the
      first-level cache.
    - `pack`: how a tile is copied into scratch memory first, in the order in
      which the register blocks read it (CPU, lanes = queries). 0: not at all.
      1: its values, and keys narrower than f32, as f32. 2: its values, as pairs
      of two keys; then both products are of pairs of bf16, which some machines
      add up in one instruction.
    - `stages`: depth of the KV pipeline. With lanes = head_dim, 2 reads the keys
      of the next tile beside the values of this one, as many streams, and 1 one
      after the other (CPU); tiles under way to shared memory (GPU).
    - `warps`: warps per block (GPU).

    Example:

    ```mlir
    #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64,
                     heads = 1, block_rows = 4, block_vectors = 3>
    ```
  }];
  let parameters = (ins
    EnumParameter<Pagoda_LoopOrder>:$order,
    EnumParameter<Pagoda_Lanes>:$lanes,
    "int64_t":$q_tile,
    "int64_t":$kv_tile,
    "int64_t":$heads,
    DefaultValuedParameter<"int64_t", "1">:$block_rows,
    DefaultValuedParameter<"int64_t", "1">:$block_vectors,
    DefaultValuedParameter<"int64_t", "0">:$prefetch,
    DefaultValuedParameter<"int64_t", "0">:$pack,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "1">:$warps
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Pagoda_TargetAttr : Pagoda_Attr<"Target", "target"> {
  let summary = "The part of a machine that lowering needs";
  let description = [{
    - `kind`: `cpu` or `nvidia`.
    - `name`: the machine's name, for people and for the kernel's info.
    - `vector_bits`, `registers`: vector register width and count (CPU).
    - `cpu_features`: the `pagoda_cpu_feature` bits that kernels may use.

    Example: `#pagoda.target<kind = "cpu", name = "x86-64-v3", vector_bits = 256,
    registers = 16, cpu_features = 7>`
  }];
  let parameters = (ins
    StringRefParameter<"cpu or nvidia">:$kind,
    StringRefParameter<"machine name">:$name,
    DefaultValuedParameter<"int64_t", "0">:$vector_bits,
    DefaultValuedParameter<"int64_t", "0">:$registers,
    DefaultValuedParameter<"int64_t", "0">:$cpu_features
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Pagoda_LanesLayoutAttr : Pagoda_Attr<"LanesLayout", "lanes"> {
  let summary = "CPU layout of a tile";
  let description = [{
    Which dimension of the tile lies across vector lanes, and how many rows are
    processed together (a *panel*). Written by `pagoda-cpu-assign-layouts`.

    - `rows`: stored transposed, `[head][panel][col][row in panel]`.
    - `cols`: stored as `[head][row][col]`, columns padded to whole vectors.

    Example: `!pagoda.tile<1x96x128xf32, #pagoda.lanes<"rows", panel = 24>>`
  }];
  let parameters = (ins
    StringRefParameter<"rows or cols">:$dim,
    "int64_t":$panel
  );
  let assemblyFormat = "`<` $dim `,` `panel` `=` $panel `>`";
  let genVerifyDecl = 1;
}

def Pagoda_FragmentLayoutAttr : Pagoda_Attr<"FragmentLayout", "fragment"> {
  let summary = "NVIDIA layout of a tile";
  let description = [{
    Which register or shared-memory form a tile has inside a thread block.
    Written by `pagoda-nvidia-assign-layouts`.

    - `a`: operand A of an m16n8k16 matrix product, in registers.
    - `acc`: its accumulator, in registers.
    - `row`: one value per row, replicated over the four threads that share it.

    Example: `!pagoda.tile<1x64x64xf32, #pagoda.fragment<"acc", warps = 4>>`
  }];
  let parameters = (ins
    StringRefParameter<"a, acc or row">:$form,
    "int64_t":$warps
  );
  let assemblyFormat = "`<` $form `,` `warps` `=` $warps `>`";
  let genVerifyDecl = 1;
}

#endif // PAGODA_DIALECT_ATTRIBUTES
