//===- PeerBench.h - Rows of other people's code ----------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Peers as benchmarks of pagoda-bench.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_BENCH_KERNELS_PEERBENCH_H
#define PAGODA_BENCH_KERNELS_PEERBENCH_H

#include "bench/peers/SgemmAttention.h"
#include "compiler/Driver.h"
#include "tools/pagoda/Workbench.h"

namespace pagoda {

/// Registers "peer/<peer>/<name>" for each peer: it and Pagoda's kernel on the
/// same caches, in turns. `setting` describes the specification.
void registerPeers(const peers::Peers &peers, const std::string &name,
                   const std::string &setting, const AttentionSpec &spec,
                   const StepShape &shape, const CompileOptions &options);

} // namespace pagoda

#endif // PAGODA_BENCH_KERNELS_PEERBENCH_H
