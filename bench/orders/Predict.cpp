//===- Predict.cpp - The cost model's bytes of one step -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   pagoda-order-bytes prefill|decode OVERRIDES QUERIES KEYS SPLITS
//
// Prints the bytes that one head of 64 dims, f32, causal, blocks of 16, moves
// by the schedule that the overrides give on an AVX2 machine, and the schedule.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/OrderBytes.h"
#include "compiler/tiling/SramFit.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace pagoda;

int main(int argc, char **argv) {
  if (argc != 6) {
    llvm::errs() << "usage: " << argv[0]
                 << " prefill|decode overrides queries keys splits\n";
    return 2;
  }
  Machine machine = llvm::cantFail(Machine::named("x86-64-v3"));
  AttentionSpec spec;
  spec.qHeads = spec.kvHeads = 1;
  spec.headDim = spec.vHeadDim = 64;
  Variant variant = llvm::StringRef(argv[1]) == nameOf(Variant::Decode)
                        ? Variant::Decode
                        : Variant::Prefill;
  llvm::Expected<TileCandidate> tile =
      selectTile(machine, spec, variant, {std::string(argv[2])});
  if (!tile) {
    llvm::errs() << "error: " << llvm::toString(tile.takeError()) << '\n';
    return 1;
  }
  SequenceWork work{std::atoll(argv[3]), std::atoll(argv[4])};
  llvm::outs() << int64_t(orderBytes(spec, tile->schedule, work,
                                     std::atoll(argv[5])))
               << ' ' << tile->schedule.str() << '\n';
  return 0;
}
