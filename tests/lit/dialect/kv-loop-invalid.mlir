// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op step must be at least 1, got 0 (T5)}}
  %st = pagoda.kv_loop %j = %lo to %hi step 0 carry(%o = %o0) : !pagoda.tile<1x96x128xf32> {
    pagoda.yield %o : !pagoda.tile<1x96x128xf32>
  }
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op step must be at least 1, got -64 (T5)}}
  %st = pagoda.kv_loop %j = %lo to %hi step -64 carry(%o = %o0) : !pagoda.tile<1x96x128xf32> {
    pagoda.yield %o : !pagoda.tile<1x96x128xf32>
  }
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op region must yield the carried types ('!pagoda.tile<1x96x128xf32>'), got ('!pagoda.tile<1x96x1xf32>') (T5)}}
  %st = pagoda.kv_loop %j = %lo to %hi step 64 carry(%o = %o0) : !pagoda.tile<1x96x128xf32> {
    %o1 = pagoda.rescale %o, %x : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32> -> !pagoda.tile<1x96x128xf32>
    pagoda.yield %x : !pagoda.tile<1x96x1xf32>
  }
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op carried tiles must be used exactly once (T6)}}
  %st = pagoda.kv_loop %j = %lo to %hi step 64 carry(%o = %o0) : !pagoda.tile<1x96x128xf32> {
    pagoda.yield %o0 : !pagoda.tile<1x96x128xf32>
  }
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op carried tiles must be used exactly once (T6)}}
  %st = pagoda.kv_loop %j = %lo to %hi step 64 carry(%o = %o0) : !pagoda.tile<1x96x128xf32> {
    %o1 = pagoda.rescale %o, %x : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32> -> !pagoda.tile<1x96x128xf32>
    pagoda.yield %o : !pagoda.tile<1x96x128xf32>
  }
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op region must take i32 and the carried types (T5)}}
  %st = "pagoda.kv_loop"(%lo, %hi, %o0) <{step = 64 : i64}> ({
  ^bb0(%j: i32, %o: !pagoda.tile<1x96x1xf32>):
    "pagoda.yield"(%o) : (!pagoda.tile<1x96x1xf32>) -> ()
  }) : (i32, i32, !pagoda.tile<1x96x128xf32>) -> !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.kv_loop' op region must take i32 and the carried types (T5)}}
  %st = "pagoda.kv_loop"(%lo, %hi, %o0) <{step = 64 : i64}> ({
  ^bb0(%j: i32, %o: !pagoda.tile<1x96x128xf32>):
    "pagoda.yield"(%o) : (!pagoda.tile<1x96x128xf32>) -> ()
  }) : (i32, i32, !pagoda.tile<1x96x128xf32>) -> !pagoda.tile<1x96x1xf32>
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{region #0 ('body') failed to verify constraint: region with 1 blocks}}
  %st = "pagoda.kv_loop"(%lo, %hi, %o0) <{step = 64 : i64}> ({
  }) : (i32, i32, !pagoda.tile<1x96x128xf32>) -> !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%lo: i32, %hi: i32, %o0: !pagoda.tile<1x96x128xf32>, %x: !pagoda.tile<1x96x1xf32>) {
  // expected-error @+1 {{expected 1 types, got 2}}
  %st = pagoda.kv_loop %j = %lo to %hi step 64 carry(%o = %o0) : !pagoda.tile<1x96x128xf32>, i32 {
  }
  return
}
