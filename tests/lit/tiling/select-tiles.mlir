// RUN: pagoda-opt %s --pagoda-select-tiles=machine=x86-64-v3 | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: pagoda-opt %s --pagoda-select-tiles=machine=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: pagoda-opt %s --pagoda-select-tiles="machine=x86-64-v3 override=q_tile=48,decode.kv_tile=32,decode.q_tile=4" | FileCheck %s --check-prefixes=CHECK,OVERRIDE
// RUN: pagoda-opt %s --pagoda-select-tiles=machine=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: pagoda-opt %s --pagoda-select-tiles | FileCheck %s --check-prefixes=CHECK,HOST

// The same schedule whether the features are expanded already or not.
// RUN: pagoda-opt %s --pagoda-expand-features --pagoda-select-tiles=machine=x86-64-v3 | FileCheck %s --check-prefix=AVX2

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

// Two schedules: prefill, then decode.
// CHECK-LABEL: func.func @chosen
// HOST: schedules = [#pagoda.schedule<order = q_outer, {{[^>]*}}>, #pagoda.schedule<order = split_kv, {{[^>]*}}>]
// AVX2: schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 288, kv_tile = 96, heads = 1, block_rows = 4, block_vectors = 3, prefetch = 1, pack = 1>, #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 32, heads = 8, block_rows = 2, block_vectors = 2, prefetch = 1, stages = 2>]
// AVX512: schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 512, kv_tile = 64, heads = 1, block_rows = 4, block_vectors = 4, prefetch = 1>, #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 32, heads = 8, block_rows = 2, block_vectors = 2, prefetch = 1, stages = 2>]
// OVERRIDE: schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 48, kv_tile = 96, heads = 1, block_rows = 4, block_vectors = 3, prefetch = 1, pack = 1>, #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 4, kv_tile = 32, heads = 8, block_rows = 2, block_vectors = 2, prefetch = 1, stages = 2>]
// SM80: schedules = [#pagoda.schedule<order = q_outer, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>, #pagoda.schedule<order = split_kv, lanes = queries, q_tile = 64, kv_tile = 64, heads = 1, stages = 2, warps = 4>]
func.func @chosen(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                  %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32)
    -> (tensor<?x16x128xf32>, tensor<?x16xf32>) {
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return %o, %lse : tensor<?x16x128xf32>, tensor<?x16xf32>
}
