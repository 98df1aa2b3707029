//===- TileOps.td - The tiled level: how -------------------*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_TILEOPS
#define PAGODA_DIALECT_TILEOPS

include "dialect/AttentionOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/LoopLikeInterface.td"

//===----------------------------------------------------------------------===//
// Structure: kernel, loops
//===----------------------------------------------------------------------===//

def Pagoda_KernelOp : Pagoda_Op<"kernel",
    [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "A kernel: what the runtime calls with an argument struct";
  let description = [{
    Holds one `pagoda.for_items` (attention) or `pagoda.for_merges` (merge) and the
    ops that read its arguments. `cache` and `q_heads` say what it was built for,
    `schedule` how it runs, `target` on what; `features` are `pagoda_feature` bits.

    Example:

    ```mlir
    pagoda.kernel @k(%a) attributes {role = #pagoda<role attention>, ...} { ... }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Pagoda_RoleAttr:$role,
    TypeAttrOf<Pagoda_KvCacheType>:$cache,
    I64Attr:$q_heads,
    TypeAttr:$q_type,
    Pagoda_ScheduleAttr:$schedule,
    OptionalAttr<Pagoda_TargetAttr>:$target,
    DefaultValuedAttr<I32Attr, "0">:$features
  );
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    KvCacheType getCacheType() { return ::llvm::cast<KvCacheType>(getCache()); }
    int64_t getGroup() { return getQHeads() / getCacheType().getHeads(); }
    ::mlir::BlockArgument getArgs() { return getBody().front().getArgument(0); }
  }];
}

class Pagoda_ForOp<string opMnemonic>
    : Pagoda_Op<opMnemonic, [SingleBlockImplicitTerminator<"YieldOp">,
                             HasParent<"KernelOp">]> {
  let arguments = (ins Pagoda_ArgsType:$args);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$args custom<ClosedRegion>($body) attr-dict";
  let hasRegionVerifier = 1;
}

def Pagoda_ForItemsOp : Pagoda_ForOp<"for_items"> {
  let summary = "Visit the work items that the caller gave to this call";
  let description = [{
    The region's argument is the item. Items are independent of each other.

    Example: `pagoda.for_items %a { ^bb0(%w: !pagoda.item): ... }`
  }];
}

def Pagoda_ForMergesOp : Pagoda_ForOp<"for_merges"> {
  let summary = "Visit the merges that the caller gave to this call";
  let description = [{
    The region's argument is the merge: one query row, all its heads.

    Example: `pagoda.for_merges %a { ^bb0(%g: !pagoda.merge): ... }`
  }];
}

def Pagoda_KvLoopOp : Pagoda_Op<"kv_loop",
    [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Visit the KV tiles of a range, carrying the softmax state";
  let description = [{
    For j = lo, lo + step, ... while j < hi. The carried tiles are used once per
    round (constraint T6), so that a target may update them in place. The last
    tile may stick out over hi; ops inside that care name the limit.

    Example:

    ```mlir
    %st:3 = pagoda.kv_loop %j = %lo to %hi step 64
        carry(%m = %m0, %l = %l0, %o = %o0) : tile types { ... }
    ```
  }];
  let arguments = (ins I32:$lo, I32:$hi, I64Attr:$step,
                       Variadic<Pagoda_TileType>:$inits);
  let results = (outs Variadic<Pagoda_TileType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getIndex() { return getBody().front().getArgument(0); }
    ::mlir::ValueRange getCarried() { return getBody().front().getArguments().drop_front(); }
  }];
}

//===----------------------------------------------------------------------===//
// Reading the item and the arguments
//===----------------------------------------------------------------------===//

def Pagoda_ArgOp : Pagoda_Op<"arg", [Pure]> {
  let summary = "A scalar of the argument struct, or an element of one of its arrays";
  let description = [{
    `field` is the name in kernel_abi.h: `scale`, `softcap`, `window`, `chunk`; or,
    with an index, `alibi_slopes`, `sinks` (by query head), `prefix_lens` (by
    sequence). `aux.N` is an element of auxiliary tensor N, with one index per
    dimension; an index outside of the tensor is moved to its edge.

    Example: `%w = pagoda.arg %a "window" : i32`,
    `%s = pagoda.arg %a "alibi_slopes"[%head] : f32`,
    `%t = pagoda.arg %a "aux.0"[%i, %j] : i32`
  }];
  let arguments = (ins Pagoda_ArgsType:$args, StrAttr:$field, Variadic<I32>:$indices);
  let results = (outs AnyTypeOf<[I32, F32]>:$result);
  let assemblyFormat = "$args $field (`[` $indices^ `]`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Pagoda_LoadQOp : Pagoda_Op<"load_q"> {
  let summary = "The query tile of an item, through the row map";
  let description = [{
    Rows beyond the item's hold anything that is finite; they are never stored.

    Example: `%q = pagoda.load_q %a, %w : !pagoda.tile<1x96x128xf32>`
  }];
  let arguments = (ins Pagoda_ArgsType:$args, Pagoda_ItemType:$item);
  let results = (outs Pagoda_TileType:$tile);
  let assemblyFormat = "$args `,` $item attr-dict `:` qualified(type($tile))";
}

def Pagoda_CoordsOp : Pagoda_Op<"coords"> {
  let summary = "Sequence, query head and position of each row of an item";
  let description = [{
    Example: `%c = pagoda.coords %a, %w : !pagoda.coords<1x96>`
  }];
  let arguments = (ins Pagoda_ArgsType:$args, Pagoda_ItemType:$item);
  let results = (outs Pagoda_CoordsType:$coords);
  let assemblyFormat = "$args `,` $item attr-dict `:` qualified(type($coords))";
}

def Pagoda_KvRangeOp : Pagoda_Op<"kv_range",
    [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "The keys that an item visits, in three runs of whole tiles";
  let description = [{
    The region gives, for the queries of sequence seq at positions q_lo to q_hi
    (the first and last of the item), `(lo, full_lo, full_hi, hi)` as in `pagoda.attention`; an
    empty region means that every query sees every key. The results are clipped
    to the item's own keys and rounded outward (lo) and inward (the full run) to
    multiples of `step` counted from the item's first key:
    `begin <= full_begin <= full_end <= end`, tiles in [full_begin, full_end) are
    whole and seen by all rows.

    Example:

    ```mlir
    %begin, %full_begin, %full_end, %end = pagoda.kv_range %w, %c step 64 {
    ^bb0(%seq: i32, %q_lo: i32, %q_hi: i32):
      ...
      pagoda.yield %lo, %flo, %fhi, %hi : i32, i32, i32, i32
    } : !pagoda.coords<1x96>
    ```
  }];
  let arguments = (ins Pagoda_ItemType:$item, Pagoda_CoordsType:$coords, I64Attr:$step);
  let results = (outs I32:$begin, I32:$full_begin, I32:$full_end, I32:$end);
  let regions = (region MaxSizedRegion<1>:$body);
  let assemblyFormat = "$item `,` $coords `step` $step (custom<OptionalClosedRegion>($body)^)? attr-dict `:` qualified(type($coords))";
  let hasRegionVerifier = 1;
}

def Pagoda_KvRefOp : Pagoda_Op<"kv_ref"> {
  let summary = "Refer to one tile of keys or values through the block table";
  let description = [{
    Names the rows of keys `j` to `j + keys - 1`. With a limit, only rows below
    it exist: the others are never read as values, and are never addressed
    outside the block table. Without one, every row exists.

    Example: `%k = pagoda.kv_ref key %a, %w, %j limit %end : !pagoda.kv<1x64x128xf32>`
  }];
  let arguments = (ins Pagoda_KvPartAttr:$part, Pagoda_ArgsType:$args,
                       Pagoda_ItemType:$item, I32:$j, Optional<I32>:$limit);
  let results = (outs Pagoda_KvType:$ref);
  let assemblyFormat = [{
    $part $args `,` $item `,` $j (`limit` $limit^)? attr-dict `:` qualified(type($ref))
  }];
}

//===----------------------------------------------------------------------===//
// The online softmax
//===----------------------------------------------------------------------===//

def Pagoda_StateInitOp : Pagoda_Op<"state_init"> {
  let summary = "The state before any key: m = -inf, l = 0, o = 0";
  let description = [{
    With sinks, the first split of a row starts at m = the sink's logit (in score
    units: divided by the exponent's factor, times log2 e), l = 1: a key with no
    value.

    Example: `%m, %l, %o = pagoda.state_init %a, %w factor %c {sinks}
    : !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>`
  }];
  let arguments = (ins Pagoda_ArgsType:$args, Pagoda_ItemType:$item, F32:$factor,
                       UnitAttr:$sinks);
  let results = (outs Pagoda_TileType:$m, Pagoda_TileType:$l, Pagoda_TileType:$o);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Pagoda_QkOp : Pagoda_Op<"qk"> {
  let summary = "Scores: S = Q K^T, unscaled";
  let description = [{
    Columns of S past the reference's limit hold any value, NaN included; a
    `mask_scores` with the same limit must follow.

    Example: `%s = pagoda.qk %q, %k : !pagoda.tile<1x96x128xf32>, !pagoda.kv<1x64x128xf32>
    -> !pagoda.tile<1x96x64xf32>`
  }];
  let arguments = (ins Pagoda_TileType:$q, Pagoda_KvType:$k);
  let results = (outs Pagoda_TileType:$s);
  let assemblyFormat = "$q `,` $k attr-dict `:` qualified(type($q)) `,` qualified(type($k)) `->` qualified(type($s))";
  let hasVerifier = 1;
}

def Pagoda_MapScoresOp : Pagoda_Op<"map_scores",
    [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Apply the score region to each score";
  let description = [{
    The region gets the scaled score (score * scale), the sequence, the query
    head, the query's and the key's position.

    Example: `%t = pagoda.map_scores %s, %c, %j scale %x { ^bb0(%score: f32, %seq: i32,
    %head: i32, %q_pos: i32, %kv_pos: i32): ... } : ...`
  }];
  let arguments = (ins Pagoda_TileType:$s, Pagoda_CoordsType:$coords, I32:$j, F32:$scale);
  let results = (outs Pagoda_TileType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $s `,` $coords `,` $j `scale` $scale custom<ClosedRegion>($body) attr-dict `:` qualified(type($s)) `,` qualified(type($coords))
    `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Pagoda_MaskScoresOp : Pagoda_Op<"mask_scores",
    [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Set the scores that do not count to -inf";
  let description = [{
    A score counts if its key is below the limit and the region (if any) says so.
    The region gets the sequence, the query head, the query's and the key's position.

    Example: `%u = pagoda.mask_scores %s, %c, %j limit %end { ^bb0(%seq: i32, %head: i32,
    %q_pos: i32, %kv_pos: i32): ... } : ...`
  }];
  let arguments = (ins Pagoda_TileType:$s, Pagoda_CoordsType:$coords, I32:$j, I32:$limit);
  let results = (outs Pagoda_TileType:$result);
  let regions = (region MaxSizedRegion<1>:$body);
  let assemblyFormat = [{
    $s `,` $coords `,` $j `limit` $limit (custom<OptionalClosedRegion>($body)^)? attr-dict `:` qualified(type($s)) `,`
    qualified(type($coords)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Pagoda_SoftmaxStepOp : Pagoda_Op<"softmax_step"> {
  let summary = "One step of the online softmax over a tile of scores";
  let description = [{
    `m' = max(m, rowmax(S))`, `P = 2^((S - m') c)`, `alpha = 2^((m - m') c)`,
    `l' = l alpha + rowsum(P)`, with the exponent's factor c (log2 e, times the
    scale when S is unscaled). Where m' is -inf, P is 0 and alpha is 1.

    Example: `%p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c : ...`
  }];
  let arguments = (ins Pagoda_TileType:$s, Pagoda_TileType:$m, Pagoda_TileType:$l, F32:$factor);
  let results = (outs Pagoda_TileType:$p, Pagoda_TileType:$m_out, Pagoda_TileType:$l_out,
                      Pagoda_TileType:$alpha);
  let assemblyFormat = [{
    $s `,` $m `,` $l `factor` $factor attr-dict `:` qualified(type($s)) `,` qualified(type($m))
    `,` qualified(type($l)) `->` qualified(type($p)) `,` qualified(type($m_out)) `,`
    qualified(type($l_out)) `,` qualified(type($alpha))
  }];
  let hasVerifier = 1;
}

def Pagoda_RescaleOp : Pagoda_Op<"rescale"> {
  let summary = "Multiply each row of the accumulator by its factor";
  let description = [{
    Example: `%o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32>`
  }];
  let arguments = (ins Pagoda_TileType:$o, Pagoda_TileType:$alpha);
  let results = (outs Pagoda_TileType:$result);
  let assemblyFormat = "$o `,` $alpha attr-dict `:` qualified(type($o)) `,` qualified(type($alpha)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Pagoda_PvOp : Pagoda_Op<"pv"> {
  let summary = "Accumulate O + P V";
  let description = [{
    Rows of V past the reference's limit take no part.

    Example: `%o2 = pagoda.pv %p, %v, %o1 : ...`
  }];
  let arguments = (ins Pagoda_TileType:$p, Pagoda_KvType:$v, Pagoda_TileType:$o);
  let results = (outs Pagoda_TileType:$result);
  let assemblyFormat = "$p `,` $v `,` $o attr-dict `:` qualified(type($p)) `,` qualified(type($v)) `,` qualified(type($o)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

def Pagoda_StoreOp : Pagoda_Op<"store"> {
  let summary = "Write the rows of an item: final values, or a partial state";
  let description = [{
    With partial_slot = -1, and for merges: `o / l` and `lse = m c ln 2 + ln l`
    (0 and -inf where l = 0). Otherwise the state m, l, o as it is.

    Example: `pagoda.store %m, %l, %o, %a, %w factor %c : ...`
  }];
  let arguments = (ins Pagoda_TileType:$m, Pagoda_TileType:$l, Pagoda_TileType:$o,
                       Pagoda_ArgsType:$args, AnyTypeOf<[Pagoda_ItemType, Pagoda_MergeType]>:$item,
                       F32:$factor);
  let assemblyFormat = [{
    $m `,` $l `,` $o `,` $args `,` $item `factor` $factor attr-dict `:` qualified(type($m)) `,`
    qualified(type($l)) `,` qualified(type($o)) `,` qualified(type($item))
  }];
  let hasVerifier = 1;
}

def Pagoda_MergePartialsOp : Pagoda_Op<"merge_partials"> {
  let summary = "Join the partial states that a merge names";
  let description = [{
    `m = max m_i`, `l = sum l_i 2^((m_i - m) c)`, `o = sum o_i 2^((m_i - m) c)`.
    Slots with m_i = -inf do not count. Rows are the query heads of each KV head.

    Example: `%m, %l, %o = pagoda.merge_partials %a, %g factor %c
    : !pagoda.tile<8x2x1xf32>, !pagoda.tile<8x2x128xf32>`
  }];
  let arguments = (ins Pagoda_ArgsType:$args, Pagoda_MergeType:$merge, F32:$factor);
  let results = (outs Pagoda_TileType:$m, Pagoda_TileType:$l, Pagoda_TileType:$o);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // PAGODA_DIALECT_TILEOPS
