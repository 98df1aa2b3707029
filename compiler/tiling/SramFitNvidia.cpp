//===- SramFitNvidia.cpp - What an NVIDIA kernel keeps where --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counting of NVIDIA kernels, and what they claim of a multiprocessor.
// Every constant is explained, with its measurement, in
// compiler/tiling/README.md.
//
//===----------------------------------------------------------------------===//

#include "compiler/tiling/SramFitAccount.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace llvm;
using namespace pagoda;

// Updating the state costs each KV tile as much as this many keys.
constexpr double stateKeys = 2;
// Registers per thread beyond those of tiles, and the most a kernel may use.
constexpr int64_t otherRegisters = 40, usableRegisters = 240;
// Registers per thread that ptxas needs beside the counted ones to do without
// spills (bench/results/ptxas.md); more where rows of K or V pass through
// registers, because they begin anywhere, or where threads are left over,
// because the chunks of a row do not divide them.
constexpr int64_t ptxasRegisters = 48, gatherRegisters = 32,
                  unevenRegisters = 16;
// Counted registers above which ptxas spills on some chips, and what using all
// that may be used costs.
constexpr int64_t easyRegisters = 160;
constexpr double registerStrain = 0.1;

/// The claim of a kernel with `counted` registers, step by step.
static void claim(Account &a, const Machine &machine, int64_t counted,
                  int64_t sharedBytes) {
  int64_t threads = a.s.warps * 32, copies = 0;
  for (int64_t dim : {a.spec.headDim, a.spec.vHeadDim}) {
    int64_t chunks = int64_t(alignTo(dim, 16)) / 8;
    copies = std::max(copies, dim % 8 != 0            ? gatherRegisters
                              : threads % chunks != 0 ? unevenRegisters
                                                      : 0);
  }
  int64_t need = counted + ptxasRegisters + copies;
  RegisterClaim made = claimRegisters(machine, need, threads, sharedBytes);
  ResidentBlocks blocks =
      residentBlocks(machine, std::min(need, machine.registersPerThread),
                     threads, sharedBytes);
  a.step("registers needed", "counted + 48 + copies",
         {{"counted", double(counted)}, {"copies", double(copies)}},
         double(need), "regs");
  a.step("blocks claimed", "least of these, at least 1",
         {{"by registers", double(blocks.byRegisters)},
          {"shared memory", double(blocks.bySharedMemory)},
          {"threads", double(blocks.byThreads)},
          {"slots", double(blocks.bySlots)}},
         double(made.blocks), "blocks");
  a.step("registers claimed", "the most that leave room for these blocks",
         {{"of a multiprocessor", double(machine.multiprocessorRegisters)},
          {"threads", double(threads)}},
         double(made.registers), "regs");
  a.candidate.claim = made;
}

/// NVIDIA: Q and the stages of K and V in shared memory, S, P and O in
/// registers. A warp owns 16 rows, so a thread holds half a register per column
/// of S and O in f32, and a quarter per column of P in 16 bits.
TileCandidate pagoda::evaluateNvidia(const Schedule &s, const Machine &machine,
                                     const AttentionSpec &spec, bool explain) {
  // What small tiles gain at the edge of a window, and lose to barriers, is
  // measured on no GPU: tiles are those of a kernel without one.
  AttentionSpec unwindowed = spec;
  unwindowed.window.reset();
  Account a(s, unwindowed, explain);
  int64_t kColumns = alignTo(spec.headDim, 16);
  int64_t vColumns = alignTo(spec.vHeadDim, 16);
  int64_t qBytes = s.qTile * kColumns * byteSize(spec.qType);
  int64_t kvBytes = (kColumns + vColumns) * byteSize(spec.kvType);
  a.paper(machine.sharedBytes / byteSize(spec.kvType));
  double sharedRows =
      a.step("keys by shared memory", "(shared - q) / (stages * key and value)",
             {{"shared", double(machine.sharedBytes)},
              {"q", double(qBytes)},
              {"stages", double(s.stages)},
              {"key and value", double(kvBytes)}},
             std::floor(double(machine.sharedBytes - qBytes) /
                        double(s.stages * kvBytes)),
             "keys");
  double registerRows = a.step(
      "keys by registers", "(240 - 40 - v_head_dim / 2) / (1/2 + 1/4)",
      {{"v_head_dim", double(vColumns)}},
      std::floor(double(usableRegisters - otherRegisters - vColumns / 2) /
                 0.75),
      "keys");
  a.step("largest legal kv_tile", "smaller of both, down to a multiple of 16",
         {{"by shared memory", sharedRows}, {"by registers", registerRows}},
         16 * std::floor(std::min(sharedRows, registerRows) / 16), "keys");
  const LevelUse &shared =
      a.level({"shared memory",
               "B",
               {{"Q", qBytes}, {"K and V", s.stages * s.kvTile * kvBytes}},
               machine.sharedBytes,
               /*hard=*/true});
  a.cost("one block per multiprocessor",
         "0.05 if a second one finds no shared memory", {},
         2 * shared.total() > machine.sharedBytes ? 0.05 : 0);
  const LevelUse &registers =
      a.level({"registers",
               "",
               {{"S", s.kvTile / 2},
                {"P", s.kvTile / 4},
                {"O", vColumns / 2},
                {"other", otherRegisters}},
               std::min(usableRegisters, machine.registersPerThread),
               /*hard=*/true});
  claim(a, machine, registers.total(), shared.total());
  double strain =
      double(std::max<int64_t>(0, registers.total() - easyRegisters));
  a.cost("registers near the limit", "0.1 * (registers - 160) / 80, at least 0",
         {{"registers", double(registers.total())}},
         registerStrain * strain / double(usableRegisters - easyRegisters));
  a.cost("copies that nothing hides", "0.2 / stages^2",
         {{"stages", double(s.stages)}}, 0.2 / double(s.stages * s.stages));
  a.stateUpdate(stateKeys);
  a.beyondDiagonal(a.tokens(), s.kvTile);
  return a.finish();
}
