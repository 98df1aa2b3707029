//===- FakeLibraryFile.cpp - The plain kernels as a shared library --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exports FakeKernels.h as a file that looks like a generated library, for
// tests of loading and of the installed example. Its shape is the example's.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"

using namespace pagoda::test;

static FakeSpec exampleSpec() {
  FakeSpec spec;
  spec.qHeads = 16;
  spec.kvHeads = 8;
  spec.headDim = spec.vHeadDim = 128;
  spec.blockSize = 16;
  spec.maxRows = {1, 16};
  spec.headsPerItem = 8;
  spec.kvTile = 16;
  return spec;
}

static FakeLibrary library(exampleSpec());
extern "C" {
extern pagoda_library_info pagoda_library;
pagoda_library_info pagoda_library = *library.info();
}
