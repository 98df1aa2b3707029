// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: func.func private @plain(!pagoda.kv_cache<heads = 8, k_dim = 576, v_dim = 512, block = 64, layout = nhd, elt = bf16>)
func.func private @plain(!pagoda.kv_cache<heads = 8, k_dim = 576, v_dim = 512, block = 64,
                         layout = nhd, elt = bf16>)

// CHECK: func.func private @scaled(!pagoda.kv_cache<heads = 1, k_dim = 1, v_dim = 1, block = 1, layout = hnd, elt = f8E4M3FN, scales = token>)
func.func private @scaled(!pagoda.kv_cache<heads = 1, k_dim = 1, v_dim = 1, block = 1, layout = hnd,
                          elt = f8E4M3FN, scales = token>)

// CHECK: elt = i8, scales = head
func.func private @integer(!pagoda.kv_cache<heads = 1, k_dim = 1, v_dim = 1, block = 1, layout = hnd,
                           elt = i8, scales = head>)

// CHECK: elt = f8E5M2>
func.func private @none(!pagoda.kv_cache<heads = 1, k_dim = 1, v_dim = 1, block = 1, layout = hnd,
                        elt = f8E5M2, scales = none>)
