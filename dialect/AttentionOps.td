//===- AttentionOps.td - The attention level: what ---------*- tablegen -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_DIALECT_ATTENTIONOPS
#define PAGODA_DIALECT_ATTENTIONOPS

include "dialect/Dialect.td"
include "dialect/Types.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pagoda_Op<string opMnemonic, list<Trait> traits = []>
    : Op<Pagoda_Dialect, opMnemonic, traits>;

def Pagoda_AttentionOp : Pagoda_Op<"attention",
    [AttrSizedOperandSegments, Pure]> {
  let summary = "Attention of a ragged batch of queries over a paged cache";
  let description = [{
    For each sequence b with n_q(b) new queries and n_kv(b) keys in the cache, for
    each query head h and each query: `o = softmax(score) V`, where
    `score = scale * (q . k)` over the keys that count. The queries of a
    sequence sit at positions `n_kv - n_q` to `n_kv - 1`. KV head `h / group`
    serves query head h. A query that sees no key gives 0, and -inf for lse.

    Operands: `q [tokens, q_heads, k_dim]`, the cache, the block table
    `[sequences, max_blocks]`, `q_starts [sequences + 1]` (prefix sums of n_q),
    `kv_lens [sequences]`, and the scale. Results: `o [tokens, q_heads, v_dim]`
    and the natural-logarithm `lse [tokens, q_heads]`.

    Which scores count and how is said by three optional regions:

    - `kv_range (seq, q_lo, q_hi) -> (lo, full_lo, full_hi, hi)`: for the queries
      of sequence seq at positions q_lo to q_hi (inclusive), keys outside [lo, hi) are seen by
      none of them and keys in [full_lo, full_hi) by all. Tiles outside are
      skipped, tiles inside need no mask.
    - `mask_mod (seq, head, q_pos, kv_pos) -> i1`: whether the query sees the key.
    - `score_mod (score, seq, head, q_pos, kv_pos) -> f32`: the score to use.

    The attribute `causal`, and the operands `window`, `softcap`, `chunk`, `alibi`,
    `prefix_lens` (keys at the beginning of a sequence that all its queries see)
    and `sinks` are sugar: `pagoda-expand-features` turns all but `sinks` (which
    add to the sum, not to a score) into regions, and only regions are lowered.
    `features` then records what was expanded (`pagoda_feature` bits), and
    `schedules` holds one schedule per kernel to make.

    Example:

    ```mlir
    %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale)
        {causal} : tensor<?x16x128xf32>, !pagoda.kv_cache<heads = 8, k_dim = 128,
        v_dim = 128, block = 16, layout = hnd, elt = f32>
        -> tensor<?x16x128xf32>, tensor<?x16xf32>
    ```
  }];
  let arguments = (ins
    TensorOf<[AnyFloat]>:$q,
    Pagoda_KvCacheType:$cache,
    TensorOf<[I32]>:$block_table,
    TensorOf<[I32]>:$q_starts,
    TensorOf<[I32]>:$kv_lens,
    F32:$scale,
    Optional<I32>:$window,
    Optional<I32>:$chunk,
    Optional<F32>:$softcap,
    Optional<TensorOf<[F32]>>:$alibi,
    Optional<TensorOf<[F32]>>:$sinks,
    Optional<TensorOf<[I32]>>:$prefix_lens,
    UnitAttr:$causal,
    DefaultValuedAttr<I32Attr, "0">:$features,
    OptionalAttr<ArrayAttr>:$schedules
  );
  let results = (outs TensorOf<[AnyFloat]>:$o, TensorOf<[F32]>:$lse);
  let regions = (region
    MaxSizedRegion<1>:$kv_range,
    MaxSizedRegion<1>:$mask_mod,
    MaxSizedRegion<1>:$score_mod);
  let assemblyFormat = [{
    $q `,` $cache `,` $block_table `,` $q_starts `,` $kv_lens `scale` `(` $scale `)`
    oilist( `window` `(` $window `)` | `chunk` `(` $chunk `)`
          | `softcap` `(` $softcap `)`
          | `alibi` `(` $alibi `:` type($alibi) `)`
          | `sinks` `(` $sinks `:` type($sinks) `)`
          | `prefix_lens` `(` $prefix_lens `:` type($prefix_lens) `)` )
    (`kv_range` custom<ClosedRegion>($kv_range)^)?
    (`mask_mod` custom<ClosedRegion>($mask_mod)^)?
    (`score_mod` custom<ClosedRegion>($score_mod)^)?
    attr-dict `:` type($q) `,` qualified(type($cache)) `,` type($block_table) `,`
    type($q_starts) `,` type($kv_lens) `->` type($o) `,` type($lse)
  }];
  let extraClassDeclaration = [{
    int64_t getQHeads() {
      return ::llvm::cast<::mlir::RankedTensorType>(getQ().getType()).getDimSize(1);
    }
    int64_t getGroup() { return getQHeads() / getCache().getType().getHeads(); }
  }];
  let hasVerifier = 1;
}

def Pagoda_AppendKvOp : Pagoda_Op<"append_kv", [AttrSizedOperandSegments]> {
  let summary = "Write new keys and values into the cache";
  let description = [{
    Token t of `k [tokens, heads, k_dim]` and `v [tokens, heads, v_dim]` goes to
    slot `slot_mapping[t]` (block * block_size + slot); a negative entry is
    skipped. With `rope`, keys are rotated by cos and sin of `positions[t]` first;
    `interleaved` pairs dims (2i, 2i+1), otherwise (i, i + rotary_dim / 2).

    Example:

    ```mlir
    pagoda.append_kv %k, %v to %cache at %slots
        : tensor<?x8x128xf32>, tensor<?x8x128xf32>, !pagoda.kv_cache<heads = 8,
        k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>
    ```
  }];
  let arguments = (ins
    TensorOf<[AnyFloat]>:$k,
    TensorOf<[AnyFloat]>:$v,
    Pagoda_KvCacheType:$cache,
    TensorOf<[I64]>:$slot_mapping,
    Optional<TensorOf<[I32]>>:$positions,
    Optional<TensorOf<[F32]>>:$cos,
    Optional<TensorOf<[F32]>>:$sin,
    UnitAttr:$interleaved
  );
  let assemblyFormat = [{
    $k `,` $v `to` $cache `at` $slot_mapping
    (`rope` `(` $positions^ `,` $cos `,` $sin `:` type($positions) `,` type($cos) `,` type($sin) `)`)?
    attr-dict `:` type($k) `,` type($v) `,` qualified(type($cache)) `,` type($slot_mapping)
  }];
  let hasVerifier = 1;
}

def Pagoda_MergeStatesOp : Pagoda_Op<"merge_states",
    [Pure, AllTypesMatch<["o_a", "o_b", "o"]>,
     AllTypesMatch<["lse_a", "lse_b", "lse"]>]> {
  let summary = "Join partial attention results by their log-sum-exp";
  let description = [{
    `o = (o_a e^(lse_a - m) + o_b e^(lse_b - m)) / (e^(lse_a - m) + e^(lse_b - m))`
    with `m = max(lse_a, lse_b)`, and `lse = m + ln` of the denominator. A part
    with lse = -inf does not count; two such parts give 0 and -inf.

    Example:

    ```mlir
    %o, %lse = pagoda.merge_states %o_a, %lse_a, %o_b, %lse_b
        : tensor<?x16x128xf32>, tensor<?x16xf32>
    ```
  }];
  let arguments = (ins
    TensorOf<[F32]>:$o_a, TensorOf<[F32]>:$lse_a,
    TensorOf<[F32]>:$o_b, TensorOf<[F32]>:$lse_b);
  let results = (outs TensorOf<[F32]>:$o, TensorOf<[F32]>:$lse);
  let assemblyFormat = [{
    $o_a `,` $lse_a `,` $o_b `,` $lse_b attr-dict `:` type($o) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def Pagoda_CopyBlocksOp : Pagoda_Op<"copy_blocks"> {
  let summary = "Copy cache blocks, as copy-on-write asks for";
  let description = [{
    For each pair (source, destination) of `pairs [n, 2]`, copies K and V of all
    heads of the source block to the destination block. No destination is a source.

    Example:

    ```mlir
    pagoda.copy_blocks %pairs in %cache : tensor<?x2xi32>, !pagoda.kv_cache<heads = 8,
        k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>
    ```
  }];
  let arguments = (ins TensorOf<[I32]>:$pairs, Pagoda_KvCacheType:$cache);
  let assemblyFormat = [{
    $pairs `in` $cache attr-dict `:` type($pairs) `,` qualified(type($cache))
  }];
  let hasVerifier = 1;
}

def Pagoda_YieldOp : Pagoda_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "Ends a region of a pagoda op and hands its values out";
  let description = [{
    Example: `pagoda.yield %visible : i1`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` qualified(type($values)))?";
  let builders = [OpBuilder<(ins), [{ /* yields nothing */ }]>];
}

#endif // PAGODA_DIALECT_ATTENTIONOPS
