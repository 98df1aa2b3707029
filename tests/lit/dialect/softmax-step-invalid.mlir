// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x64xf32>, %l: !pagoda.tile<1x96x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op m must be 1x96x1, got 1x96x64 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x1xf32>, %l: !pagoda.tile<1x1x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op l must be 1x96x1, got 1x1x1 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x1x1xf32>
      -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x1xf32>, %l: !pagoda.tile<1x96x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op m result must be 1x96x1, got 2x96x1 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<2x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x1xf32>, %l: !pagoda.tile<1x96x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op l result must be 1x96x1, got 1x95x1 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x95x1xf32>, !pagoda.tile<1x96x1xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x1xf32>, %l: !pagoda.tile<1x96x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op alpha must be 1x96x1, got 1x96x2 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x2xf32>
  return
}

// -----

func.func @f(%s: !pagoda.tile<1x96x64xf32>, %m: !pagoda.tile<1x96x1xf32>, %l: !pagoda.tile<1x96x1xf32>, %c: f32) {
  // expected-error @below {{'pagoda.softmax_step' op p must be 1x96x64, got 1x96x32 (T8)}}
  %p, %m1, %l1, %alpha = pagoda.softmax_step %s, %m, %l factor %c
      : !pagoda.tile<1x96x64xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x32xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x1xf32>
  return
}
