// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%o: !pagoda.tile<1x96x128xf32>, %alpha: !pagoda.tile<1x48x1xf32>) {
  // expected-error @below {{'pagoda.rescale' op alpha must be 1x96x1, got 1x48x1 (T8)}}
  %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x48x1xf32>
      -> !pagoda.tile<1x96x128xf32>
  return
}

// -----

func.func @f(%o: !pagoda.tile<1x96x128xf32>, %alpha: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.rescale' op result must be '!pagoda.tile<1x96x128xf32>', got '!pagoda.tile<1x96x64xf32>' (T8)}}
  %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x64xf32>
  return
}

// -----

func.func @f(%o: !pagoda.tile<1x96x128xf32>, %alpha: !pagoda.tile<1x96x1xf32>) {
  // expected-error @below {{'pagoda.rescale' op result must be '!pagoda.tile<1x96x128xf32>', got '!pagoda.tile<1x96x128xbf16>' (T8)}}
  %o1 = pagoda.rescale %o, %alpha : !pagoda.tile<1x96x128xf32>, !pagoda.tile<1x96x1xf32>
      -> !pagoda.tile<1x96x128xbf16>
  return
}
