// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op unknown argument field 'lse' (T7)}}
  %0 = pagoda.arg %a "lse" : f32
  return
}

// -----

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op field scale is f32, got 'i32' (T7)}}
  %0 = pagoda.arg %a "scale" : i32
  return
}

// -----

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op field window is i32, got 'f32' (T7)}}
  %0 = pagoda.arg %a "window" : f32
  return
}

// -----

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op field chunk takes no index (T7)}}
  %0 = pagoda.arg %a "chunk"[%i] : i32
  return
}

// -----

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op field sinks takes an index (T7)}}
  %0 = pagoda.arg %a "sinks" : f32
  return
}

// -----

func.func @f(%a: !pagoda.args, %i: i32) {
  // expected-error @below {{'pagoda.arg' op field prefix_lens takes an index (T7)}}
  %0 = pagoda.arg %a "prefix_lens" : i32
  return
}
