// RUN: pagoda-opt %s | pagoda-opt | FileCheck %s

// CHECK-LABEL: func.func private @cpu()
// CHECK-SAME: #pagoda.target<kind = "cpu", name = "x86-64-v3", vector_bits = 256, registers = 16, cpu_features = 3>
func.func private @cpu() attributes {t = #pagoda.target<kind = "cpu", name = "x86-64-v3",
  vector_bits = 256, registers = 16, cpu_features = 3>}

// CHECK-LABEL: func.func private @nvidia()
// CHECK-SAME: #pagoda.target<kind = "nvidia", name = "sm_80">
func.func private @nvidia() attributes {t = #pagoda.target<kind = "nvidia", name = "sm_80">}
