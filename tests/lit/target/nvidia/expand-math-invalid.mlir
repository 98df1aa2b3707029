// RUN: pagoda-opt %s -pagoda-nvidia-expand-math -split-input-file -verify-diagnostics

func.func @no_library(%x: f32) -> f32 {
  // expected-error @below {{'math.erf' has no lowering on nvidia}}
  %a = math.erf %x : f32
  return %a : f32
}

// -----

func.func @f64(%x: f64) -> f64 {
  // expected-error @below {{'math.exp2' must be of f32 on nvidia, got 'f64'}}
  %a = math.exp2 %x : f64
  return %a : f64
}
