// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: !pagoda.args, %g: !pagoda.merge, %c: f32) {
  // expected-error @below {{'pagoda.merge_partials' op m must be 8x2x1, got 8x16x1 (T8)}}
  %m, %l, %o = pagoda.merge_partials %a, %g factor %c
      : !pagoda.tile<8x16x1xf32>, !pagoda.tile<8x2x128xf32>
  return
}

// -----

func.func @f(%a: !pagoda.args, %g: !pagoda.merge, %c: f32) {
  // expected-error @below {{'pagoda.merge_partials' op l must be 8x2x1, got 4x2x1 (T8)}}
  %m, %l, %o = "pagoda.merge_partials"(%a, %g, %c) : (!pagoda.args, !pagoda.merge, f32)
      -> (!pagoda.tile<8x2x1xf32>, !pagoda.tile<4x2x1xf32>, !pagoda.tile<8x2x128xf32>)
  return
}
