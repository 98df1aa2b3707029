// RUN: pagoda-opt %s -pagoda-nvidia-emulate -split-input-file -verify-diagnostics

gpu.module @pagoda_kernels {
  llvm.func @unknown(%args: !llvm.ptr) {
    %mask = llvm.mlir.constant(-1 : i32) : i32
    // expected-error @below {{'nvvm.bar.warp.sync' is not emulated}}
    nvvm.bar.warp.sync %mask : i32
    llvm.return
  }
}

// -----

gpu.module @pagoda_kernels {
  llvm.func @shuffle(%args: !llvm.ptr) {
    %c = llvm.mlir.constant(1 : i32) : i32
    // expected-error @below {{only butterfly shuffles are emulated}}
    %s = nvvm.shfl.sync up %c, %c, %c, %c : i32 -> i32
    llvm.return
  }
}

// -----

gpu.module @pagoda_kernels {
  llvm.func @intrinsic(%args: !llvm.ptr) {
    %c = llvm.mlir.constant(1.0 : f32) : f32
    // expected-error @below {{intrinsic llvm.nvvm.sin.approx.f is not emulated}}
    %s = llvm.call_intrinsic "llvm.nvvm.sin.approx.f"(%c) : (f32) -> f32
    llvm.return
  }
}

// -----

gpu.module @pagoda_kernels {
  llvm.func @shared(%args: !llvm.ptr<3>) {
    // expected-error @below {{only accesses of 16 bytes to shared memory are emulated, got 4}}
    %s = llvm.load %args : !llvm.ptr<3> -> i32
    llvm.return
  }
}
