// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// Fields at their default are not printed.
// CHECK-LABEL: func.func private @short()
// CHECK-SAME: {s = #pagoda.schedule<order = q_outer, lanes = queries, q_tile = 96, kv_tile = 64, heads = 1>}
func.func private @short() attributes {s = #pagoda.schedule<order = q_outer, lanes = queries,
  q_tile = 96, kv_tile = 64, heads = 1, block_rows = 1, stages = 1>}

// CHECK-LABEL: func.func private @full()
// CHECK-SAME: #pagoda.schedule<order = split_kv, lanes = head_dim, q_tile = 2, kv_tile = 16, heads = 8, block_rows = 2, block_vectors = 4, prefetch = 1, stages = 2, warps = 4>
func.func private @full() attributes {s = #pagoda.schedule<order = split_kv, lanes = head_dim,
  q_tile = 2, kv_tile = 16, heads = 8, block_rows = 2, block_vectors = 4, prefetch = 1,
  stages = 2, warps = 4>}

// CHECK-LABEL: func.func private @orders()
// CHECK-SAME: order = naive{{.*}}order = gather{{.*}}order = kv_outer
func.func private @orders() attributes {s = [
  #pagoda.schedule<order = naive, lanes = queries, q_tile = 1, kv_tile = 1, heads = 1>,
  #pagoda.schedule<order = gather, lanes = queries, q_tile = 1, kv_tile = 1, heads = 1>,
  #pagoda.schedule<order = kv_outer, lanes = queries, q_tile = 1, kv_tile = 1, heads = 1>]}
