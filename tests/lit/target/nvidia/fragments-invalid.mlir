// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{fragment rows must be a multiple of 16, got 8}}
func.func private @f(!pagoda_nv.fragment<8x16xf32, acc>)

// -----

// expected-error @+1 {{fragment of form acc must have elements of f32, got 'f16'}}
func.func private @f(!pagoda_nv.fragment<16x16xf16, acc>)

// -----

// expected-error @+1 {{fragment of form a must have elements of f16 or bf16, got 'f32'}}
func.func private @f(!pagoda_nv.fragment<16x16xf32, a>)

// -----

// expected-error @+1 {{fragment of form row must have 1 column, got 2}}
func.func private @f(!pagoda_nv.fragment<16x2xf32, row>)

// -----

// expected-error @+1 {{shared tile must have elements of f16 or bf16, got 'f32'}}
func.func private @f(!pagoda_nv.shared<16x16xf32>)

// -----

// expected-error @+1 {{pipeline must have at least 1 slot, got 0}}
func.func private @f(!pagoda_nv.pipeline<0 of 16x16xf16>)

// -----

func.func @f(%a: !pagoda_nv.fragment<16x32xf16, a>, %b: !pagoda_nv.shared<16x16xf16>, %c: !pagoda_nv.fragment<16x16xf32, acc>) {
  // expected-error @+1 {{columns of A must be rows of B, got 32 and 16}}
  %d = pagoda_nv.mma %a, %b, %c : !pagoda_nv.fragment<16x32xf16, a>, !pagoda_nv.shared<16x16xf16>, !pagoda_nv.fragment<16x16xf32, acc>
  return
}

// -----

func.func @f(%a: !pagoda_nv.fragment<16x32xf16, a>, %b: !pagoda_nv.shared<32x32xf16>, %c: !pagoda_nv.fragment<16x16xf32, acc>) {
  // expected-error @+1 {{B and C must have the same columns, got 32 and 16}}
  %d = pagoda_nv.mma %a, %b transposed, %c : !pagoda_nv.fragment<16x32xf16, a>, !pagoda_nv.shared<32x32xf16>, !pagoda_nv.fragment<16x16xf32, acc>
  return
}

// -----

func.func @f(%s: !pagoda_nv.fragment<16x16xf32, acc>, %m: !pagoda_nv.fragment<32x1xf32, row>) {
  // expected-error @+1 {{fragments must have the same rows, got 16 and 32}}
  %t = pagoda_nv.scale %s, %m : !pagoda_nv.fragment<16x16xf32, acc>, !pagoda_nv.fragment<32x1xf32, row>
  return
}

// -----

func.func @f(%s: !pagoda_nv.fragment<16x8xf32, acc>) {
  // expected-error @+1 {{columns must be a multiple of 16, got 8}}
  %m = pagoda_nv.row_reduce max %s : !pagoda_nv.fragment<16x8xf32, acc> -> !pagoda_nv.fragment<16x1xf32, row>
  return
}

// -----

func.func @f(%tile: !pagoda_nv.shared<16x16xf16>, %limit: i32) {
  // expected-error @+1 {{region must yield ('!llvm.ptr<1>'), got ('i32')}}
  pagoda_nv.copy_rows %tile below %limit {
  ^bb0(%row: i32):
    pagoda_nv.yield %row : i32
  } : !pagoda_nv.shared<16x16xf16>
  return
}

// -----

func.func @f(%s: !pagoda_nv.fragment<16x16xf32, acc>, %first: i32) {
  // expected-error @+1 {{region must take ('f32', 'i32'), got ('f32')}}
  %t = pagoda_nv.map %s from %first {
  ^bb0(%score: f32):
    pagoda_nv.yield %score : f32
  } : !pagoda_nv.fragment<16x16xf32, acc>
  return
}
