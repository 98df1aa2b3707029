// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %f: f32) {
  // expected-error @below {{'pagoda.state_init' op m must be 1x96x1, got 1x96x2 (T8)}}
  %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x96x2xf32>, !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %f: f32) {
  // expected-error @below {{'pagoda.state_init' op m must be 1x96x1, got 1x48x1 (T8)}}
  %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<1x48x1xf32>, !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %f: f32) {
  // expected-error @below {{'pagoda.state_init' op m must be 1x96x1, got 8x96x1 (T8)}}
  %m, %l, %o = pagoda.state_init %a, %w factor %f : !pagoda.tile<8x96x1xf32>, !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%a: !pagoda.args, %w: !pagoda.item, %f: f32) {
  // expected-error @below {{'pagoda.state_init' op l must be 1x96x1, got 1x95x1 (T8)}}
  %m, %l, %o = "pagoda.state_init"(%a, %w, %f) : (!pagoda.args, !pagoda.item, f32)
      -> (!pagoda.tile<1x96x1xf32>, !pagoda.tile<1x95x1xf32>, !pagoda.tile<1x96x128xf32>)
  return
}
