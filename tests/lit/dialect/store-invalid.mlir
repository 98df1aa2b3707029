// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %m: !pagoda.tile<1x96x128xf32>,
    %l: !pagoda.tile<1x96x1xf32>, %o: !pagoda.tile<1x96x128xf32>, %c: f32) {
  // expected-error @below {{'pagoda.store' op m must be 1x96x1, got 1x96x128 (T8)}}
  pagoda.store %m, %l, %o, %a, %w factor %c : !pagoda.tile<1x96x128xf32>,
      !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>, !pagoda.item
  return
}

// -----

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %m: !pagoda.tile<1x96x1xf32>,
    %l: !pagoda.tile<1x32x1xf32>, %o: !pagoda.tile<1x96x128xf32>, %c: f32) {
  // expected-error @below {{'pagoda.store' op l must be 1x96x1, got 1x32x1 (T8)}}
  pagoda.store %m, %l, %o, %a, %w factor %c : !pagoda.tile<1x96x1xf32>,
      !pagoda.tile<1x32x1xf32>, !pagoda.tile<1x96x128xf32>, !pagoda.item
  return
}

// -----

func.func @f(%a: !pagoda.args, %m: !pagoda.tile<1x96x1xf32>, %o: !pagoda.tile<1x96x128xf32>, %c: f32) {
  // expected-error @below {{operand #4 must be}}
  pagoda.store %m, %m, %o, %a, %a factor %c : !pagoda.tile<1x96x1xf32>,
      !pagoda.tile<1x96x1xf32>, !pagoda.tile<1x96x128xf32>, !pagoda.args
  return
}
