//===- Primitives.h - One instruction, one kernel ---------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every instruction and every register map that attention kernels rest on, as a
// kernel of its own, emitted by the builder that emits theirs: what a GPU and
// the emulator disagree on has a name here before a whole kernel is looked at.
// Their arguments are pagoda_attention_args: q and k name inputs, o the output,
// q_token_stride a count.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TESTS_DEVICE_PRIMITIVES_H
#define PAGODA_TESTS_DEVICE_PRIMITIVES_H

#include "compiler/Driver.h"
#include "tests/device/CaseImage.h"

namespace pagoda::device {

/// The kernels of all primitives: PTX, assembled where ptxas is found, or with
/// `emulate` host code for the emulator in `object`. Only names and code are
/// set.
llvm::Expected<Artifact> compilePrimitives(const Machine &machine,
                                           bool emulate);

/// Inputs, and what a plain computation says of the outputs. `cubin` is the
/// file that their kernels are in.
std::vector<CaseImage> primitiveImages(const std::string &cubin);

/// Kernels that do one thing as fast as it goes, for the runner to time, with
/// 256 threads a block and q_token_stride = n:
///  - limit_copy: n chunks of 16 bytes from q to o, spread over the grid;
///  - limit_mma_f16, limit_mma_bf16: n rounds of eight m16n8k16 a warp, from
///    registers; o takes 4 bytes a thread.
inline constexpr int limitThreads = 256;
inline constexpr int limitProducts = 8;

} // namespace pagoda::device

#endif // PAGODA_TESTS_DEVICE_PRIMITIVES_H
