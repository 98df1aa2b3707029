//===- PeerBench.cpp - Rows of other people's code ------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One iteration is a whole measurement: turns of limit, kernel and peer.
//
//===----------------------------------------------------------------------===//

#include "bench/kernels/PeerBench.h"

#include "compiler/tiling/SramFit.h"
#include "tools/pagoda/BenchRows.h"

#include "llvm/Support/FormatVariadic.h"

#include "benchmark/benchmark.h"

namespace pagoda {

/// The label and the counters of pagoda-bench's table. Errors: why there is no
/// row.
static llvm::Error measure(benchmark::State &state, peers::Peers peer,
                           const std::string &setting,
                           const AttentionSpec &spec, const StepShape &shape,
                           const CompileOptions &options) {
  constexpr double seconds = 3;
  bool compute = shape.qLen > 1;
  Variant variant = compute ? Variant::Prefill : Variant::Decode;
  llvm::Expected<TileCandidate> tile =
      selectTile(options.machine, spec, variant, options.schedule);
  if (!tile)
    return tile.takeError();
  llvm::Expected<std::vector<BenchRow>> rows =
      benchAttention(spec, variant, options.machine, shape,
                     {{"default", tile->schedule}}, seconds, &peer);
  if (!rows)
    return rows.takeError();
  const BenchRow &ours = rows->front(), &theirs = rows->back();
  if (!theirs.peer)
    return llvm::createStringError(peer.missing.back());
  if (!ours.wrong.empty())
    return llvm::createStringError("wrong output: " + ours.wrong);
  double percent = 100 * median(theirs.shares);
  double rate = compute ? theirs.gflops() : theirs.gbs();
  state.SetIterationTime(median(theirs.seconds));
  state.counters["rate"] = rate;
  state.counters["limit"] = 100 * rate / percent;
  state.counters["percent"] = percent;
  state.SetLabel(
      llvm::formatv("{0}; {1}, of {2}, {3}; Pagoda {4:F0}%, {5:F2} times the "
                    "speed ({6:F2} to {7:F2})",
                    compute ? "GFLOP/s" : "GB/s", setting, theirs.limit,
                    theirs.schedule, 100 * median(ours.shares),
                    1 / theirs.speedup->median, 1 / theirs.speedup->high,
                    1 / theirs.speedup->low)
          .str());
  return llvm::Error::success();
}

void registerPeers(const peers::Peers &peers, const std::string &name,
                   const std::string &setting, const AttentionSpec &spec,
                   const StepShape &shape, const CompileOptions &options) {
  for (const auto &peer : peers.present) {
    reference::Shape types;
    types.qType = int32_t(spec.qType);
    types.kvType = int32_t(spec.kvType);
    // What multiplies bf16 alone has no rows of f32.
    if (!peer->refusal(types).empty())
      continue;
    benchmark::RegisterBenchmark(
        ("peer/" + peer->library().name + "/" + name).c_str(),
        [=](benchmark::State &state) {
          for (auto _ : state)
            if (llvm::Error error =
                    measure(state, {{peer}, {}}, setting, spec, shape, options))
              state.SkipWithError(llvm::toString(std::move(error)).c_str());
        })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
}

} // namespace pagoda
