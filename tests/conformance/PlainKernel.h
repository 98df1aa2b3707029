//===- PlainKernel.h - A kernel without tricks, with faults -----*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention and merge kernels written against kernel_abi.h in plain C++, to
// test the tests with: faultless they pass everything, and each fault that can
// be planted in them must be found. f32, causal or not, no other feature.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_CONFORMANCE_PLAINKERNEL_H
#define PAGODA_TESTS_CONFORMANCE_PLAINKERNEL_H

#include "compiler/import/AttentionSpec.h"

#include "pagoda/Kernel.h"

namespace pagoda::conformance {

enum class Fault {
  None,
  TailKeys,       ///< keys up to the end of the last block take part
  TailValues,     ///< tail values are multiplied by 0 and added
  CausalOffByOne, ///< a query does not see itself
  StartAligned,   ///< causal positions counted from 0 instead of the end
  ValueStride,    ///< V addressed with K's strides
  HeadMap,        ///< query head modulo KV heads
  FiniteMask,     ///< -5e4 in place of -infinity
  EmptyRow,       ///< 0 / 0 where no key is seen
  LostLastRow,    ///< the last row of an item is not stored
  OverrunStore,   ///< one element too many is stored
  Log2Lse,        ///< lse in base 2
  LseNotWritten,
  EmptySplit,    ///< an empty split keeps the state it finds
  MergeForgets,  ///< the last partial state is not merged
  WritesCache,   ///< K is changed
  IdentityTable, ///< the block table is not read
  NaNScratch,    ///< scratch is taken to be zero
  Count
};

/// The kernels of one specification: attention of at most 1 row (all KV heads
/// of a block in an item) and of at most 8 rows (one head), merge, append
/// without rotation, and copy. A kernel's entry takes no context, so one object
/// at a time is in use: the one made last.
class PlainKernels {
public:
  explicit PlainKernels(const AttentionSpec &spec, Fault fault = Fault::None);
  KernelSet set() const {
    return {{&infos[0], &infos[1]}, &infos[2], &infos[3], &infos[4]};
  }

private:
  pagoda_kernel_info infos[5];
};

} // namespace pagoda::conformance

#endif // PAGODA_TESTS_CONFORMANCE_PLAINKERNEL_H
