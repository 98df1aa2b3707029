//===- SearchSpace.h - Schedules that may be faster -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a tuner measures: the SRAM-fit formula's candidates and what lies around
// them, without what the formula holds for hopeless; and, to judge the formula
// itself, samples of all that is legal. Pure functions: the same arguments give
// the same schedules in the same order. Every schedule passes checkSchedule.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_TUNE_SEARCHSPACE_H
#define PAGODA_COMPILER_TUNE_SEARCHSPACE_H

#include "compiler/tiling/SramFit.h"

#include <vector>

namespace pagoda {

/// The legal schedules that differ from `schedule` by one step in one choice:
/// tiles, register block, lanes, heads per item, prefetch distance, packing;
/// stages and warps on a GPU.
std::vector<Schedule> neighbours(const Schedule &schedule,
                                 const Machine &machine,
                                 const AttentionSpec &spec, Variant variant);

/// At most `most` schedules: the formula's first (the default), then its other
/// candidates and the neighbourhood of the best of them. A schedule that the
/// formula costs more than 1.5 times the default is left out. The order
/// spreads: each next one is cheap and unlike those before it, so that any
/// first part of the list is worth measuring alone. Empty where no schedule is
/// legal.
std::vector<Schedule> tuningSpace(const Machine &machine,
                                  const AttentionSpec &spec, Variant variant,
                                  size_t most);

/// `count` different schedules, or all where there are fewer, drawn evenly from
/// a grid of everything that kernels can be built with, whatever the formula
/// thinks of it.
std::vector<Schedule> sampleSchedules(const Machine &machine,
                                      const AttentionSpec &spec,
                                      Variant variant, size_t count,
                                      uint64_t seed);

} // namespace pagoda

#endif // PAGODA_COMPILER_TUNE_SEARCHSPACE_H
