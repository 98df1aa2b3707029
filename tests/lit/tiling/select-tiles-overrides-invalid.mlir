// RUN: pagoda-opt %s -verify-diagnostics --pagoda-select-tiles="machine=x86-64-v3 override=prefill.kv_tile=66"
// RUN: not pagoda-opt %s --pagoda-select-tiles="machine=x86-64-v3 override=decode.heads=3" 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not pagoda-opt %s --pagoda-select-tiles="machine=x86-64-v3 override=tile=3" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not pagoda-opt %s --pagoda-select-tiles="machine=sm_80 override=order=gather" 2>&1 | FileCheck %s --check-prefix=ORDER
// HEADS: error: 'pagoda.attention' op decode: schedule heads must divide 8 kv heads, got 3 (M4)
// KEY: error: 'pagoda.attention' op prefill: unknown schedule key 'tile' for a cpu target
// ORDER: error: 'pagoda.attention' op prefill: schedule order must be q_outer or split_kv for a nvidia target, got gather (M3)

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 128, block = 16, layout = hnd, elt = f32>

func.func @override(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>,
                    %starts: tensor<?xi32>, %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op prefill: schedule kv_tile must be a multiple of block_rows, 4, got 66 (M6)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {causal}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}
