// RUN: pagoda-opt %s -pagoda-nvidia-lower-fragments -split-input-file -verify-diagnostics

// expected-error @+1 {{must say its threads by nvvm.reqntid}}
llvm.func @f() {
  %pipe = pagoda_nv.pipeline at 0 : !pagoda_nv.pipeline<1 of 16x16xf16>
  llvm.return
}

// -----

llvm.func @f(%c: i1) attributes {nvvm.reqntid = array<i32: 32>} {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{cannot give a pagoda_nv type, expected scf.for or an op of pagoda_nv}}
  %x = scf.if %c -> !pagoda_nv.fragment<16x1xf32, row> {
    %a = pagoda_nv.splat %zero : !pagoda_nv.fragment<16x1xf32, row>
    scf.yield %a : !pagoda_nv.fragment<16x1xf32, row>
  } else {
    %b = pagoda_nv.splat %zero : !pagoda_nv.fragment<16x1xf32, row>
    scf.yield %b : !pagoda_nv.fragment<16x1xf32, row>
  }
  llvm.return
}

// -----

llvm.func @f(%from: !llvm.ptr<1>, %limit: i32) attributes {nvvm.reqntid = array<i32: 32>} {
  %zero = arith.constant 0 : i32
  %pipe = pagoda_nv.pipeline at 0 : !pagoda_nv.pipeline<1 of 16x512xf16>
  %tile = pagoda_nv.slot %pipe[%zero] : !pagoda_nv.pipeline<1 of 16x512xf16>
  // expected-error @+1 {{rows of 64 chunks need as many threads, got 32}}
  pagoda_nv.copy_rows %tile below %limit {
  ^bb0(%row: i32):
    pagoda_nv.yield %from : !llvm.ptr<1>
  } : !pagoda_nv.shared<16x512xf16>
  llvm.return
}
