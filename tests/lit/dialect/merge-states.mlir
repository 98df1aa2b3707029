// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK: %{{.*}}, %{{.*}} = pagoda.merge_states %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x16x128xf32>, tensor<?x16xf32>
func.func @merge(%oa: tensor<?x16x128xf32>, %la: tensor<?x16xf32>, %ob: tensor<?x16x128xf32>,
                 %lb: tensor<?x16xf32>) -> (tensor<?x16x128xf32>, tensor<?x16xf32>) {
  %o, %lse = pagoda.merge_states %oa, %la, %ob, %lb : tensor<?x16x128xf32>, tensor<?x16xf32>
  return %o, %lse : tensor<?x16x128xf32>, tensor<?x16xf32>
}
