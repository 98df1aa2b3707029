//===- Predict.cpp - The cost model's bytes of one step -------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   pagoda-order-bytes prefill|decode OVERRIDES HEADS HEAD_DIM QUERIES KEYS
//                      SPLITS BYTES WAYS
//
// Prints the bytes that come in and go back for one KV head, f32, causal,
// blocks of 16, by the schedule that the overrides give on an AVX2 machine,
// with a fast memory of so many bytes and ways.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/OrderBytes.h"
#include "compiler/tiling/SramFit.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace pagoda;

int main(int argc, char **argv) {
  if (argc != 10) {
    llvm::errs() << "usage: " << argv[0]
                 << " prefill|decode overrides heads head_dim queries keys "
                    "splits bytes ways\n";
    return 2;
  }
  auto number = [&](int index) { return int64_t(std::atoll(argv[index])); };
  Machine machine = llvm::cantFail(Machine::named("x86-64-v3"));
  AttentionSpec spec;
  spec.qHeads = number(3);
  spec.kvHeads = 1;
  spec.headDim = spec.vHeadDim = number(4);
  Variant variant = llvm::StringRef(argv[1]) == nameOf(Variant::Decode)
                        ? Variant::Decode
                        : Variant::Prefill;
  llvm::Expected<TileCandidate> tile =
      selectTile(machine, spec, variant, {std::string(argv[2])});
  if (!tile) {
    llvm::errs() << "error: " << llvm::toString(tile.takeError()) << '\n';
    return 1;
  }
  MovedBytes bytes =
      orderBytes(machine, spec, tile->schedule, {number(5), number(6)},
                 {number(8), number(9)}, number(7));
  llvm::outs() << int64_t(bytes.in) << ' ' << int64_t(bytes.out) << '\n';
  return 0;
}
