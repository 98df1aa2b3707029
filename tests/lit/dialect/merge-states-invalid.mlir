// RUN: pagoda-opt %s -split-input-file -verify-diagnostics

func.func @f(%o: tensor<?x16xf32>, %l: tensor<?x16xf32>) {
  // expected-error @below {{'pagoda.merge_states' op o must be a tensor of rank 3, got 'tensor<?x16xf32>' (S1)}}
  %a, %b = pagoda.merge_states %o, %l, %o, %l : tensor<?x16xf32>, tensor<?x16xf32>
  return
}

// -----

func.func @f(%o: tensor<?x16x128xf32>, %l: tensor<?xf32>) {
  // expected-error @below {{'pagoda.merge_states' op lse must be a tensor of rank 2, got 'tensor<?xf32>' (S1)}}
  %a, %b = pagoda.merge_states %o, %l, %o, %l : tensor<?x16x128xf32>, tensor<?xf32>
  return
}

// -----

func.func @f(%o: tensor<?x16x128xf32>, %l: tensor<?x8xf32>) {
  // expected-error @below {{'pagoda.merge_states' op lse dimension 1 must be 16, got 8 (S2)}}
  %a, %b = pagoda.merge_states %o, %l, %o, %l : tensor<?x16x128xf32>, tensor<?x8xf32>
  return
}
