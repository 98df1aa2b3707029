// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @q_rank(%q: tensor<?x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q must be a tensor of rank 3, got 'tensor<?x128xf32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @o_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op o must be a tensor of rank 3, got 'tensor<?x1024xf32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x1024xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @lse_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op lse must be a tensor of rank 2, got 'tensor<?xf32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @unranked(%q: tensor<*xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q must be a tensor of rank 3, got 'tensor<*xf32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<*xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @table_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op block_table must be a tensor of rank 2, got 'tensor<?xi32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @starts_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?x?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q_starts must be a tensor of rank 1, got 'tensor<?x?xi32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?x?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @lens_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<i32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op kv_lens must be a tensor of rank 1, got 'tensor<i32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<i32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @q_dim(%q: tensor<?x16x64xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q dimension 2 must be 128, got 64 (S2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x64xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @o_heads(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op o dimension 1 must be 16, got 8 (S2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x8x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @o_dim(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op o dimension 2 must be 64, got 128 (S2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x128xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @lse_heads(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op lse dimension 1 must be 16, got 15 (S2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x15xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @alibi_heads(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32, %a: tensor<8xf32>) {
  // expected-error @below {{'pagoda.attention' op alibi dimension 0 must be 16, got 8 (S2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) alibi(%a : tensor<8xf32>)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @sinks_rank(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32, %a: tensor<16x1xf32>) {
  // expected-error @below {{'pagoda.attention' op sinks must be a tensor of rank 1, got 'tensor<16x1xf32>' (S1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) sinks(%a : tensor<16x1xf32>)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @group(%q: tensor<?x12x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q heads must be a static multiple of 8 kv heads, got 12 (S3)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x12x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x12x64xf32>, tensor<?x12xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @no_heads(%q: tensor<?x0x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op q heads must be a static multiple of 8 kv heads, got 0 (S3)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) 
    : tensor<?x0x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x0x64xf32>, tensor<?x0xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @window(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32, %n: i32) {
  // expected-error @below {{'pagoda.attention' op window needs causal (S4)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) window(%n)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @chunk(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32, %n: i32) {
  // expected-error @below {{'pagoda.attention' op chunk needs causal (S4)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) chunk(%n)
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @schedules(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op schedules must hold #pagoda.schedule, got 1 : i64 (S5)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) {schedules = [1]}
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @mask_arguments(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op mask_mod region must take ('i32', 'i32', 'i32', 'i32'), got ('i32', 'i32') (R1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) mask_mod {
    ^bb0(%a: i32, %b: i32):
      %t = arith.constant true
      pagoda.yield %t : i1
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @mask_yield(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op mask_mod region must yield ('i1'), got ('i32') (R2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) mask_mod {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
      pagoda.yield %a : i32
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @mask_terminator(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op mask_mod region must end in pagoda.yield (R2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) mask_mod {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
      llvm.unreachable
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @mask_empty(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op mask_mod region must yield ('i1'), got () (R2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) mask_mod {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @score_arguments(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op score_mod region must take ('f32', 'i32', 'i32', 'i32', 'i32'), got ('i32', 'i32', 'i32', 'i32') (R1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) score_mod {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
      pagoda.yield %scale : f32
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @score_yield(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op score_mod region must yield ('f32'), got () (R2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) score_mod {
    ^bb0(%s: f32, %a: i32, %b: i32, %c: i32, %d: i32):
      pagoda.yield
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @range_arguments(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op kv_range region must take ('i32', 'i32', 'i32'), got ('i32') (R1)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) kv_range {
    ^bb0(%a: i32):
      pagoda.yield %a, %a, %a, %a : i32, i32, i32, i32
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}

// -----

!cache = !pagoda.kv_cache<heads = 8, k_dim = 128, v_dim = 64, block = 16, layout = hnd, elt = f32>

func.func @range_yield(%q: tensor<?x16x128xf32>, %cache: !cache, %table: tensor<?x?xi32>, %starts: tensor<?xi32>,
    %lens: tensor<?xi32>, %scale: f32) {
  // expected-error @below {{'pagoda.attention' op kv_range region must yield ('i32', 'i32', 'i32', 'i32'), got ('i32') (R2)}}
  %o, %lse = pagoda.attention %q, %cache, %table, %starts, %lens scale(%scale) kv_range {
    ^bb0(%a: i32, %b: i32, %c: i32):
      pagoda.yield %a : i32
    } 
    : tensor<?x16x128xf32>, !cache, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
    -> tensor<?x16x64xf32>, tensor<?x16xf32>
  return
}
