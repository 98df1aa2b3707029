//===- Compare.cpp - Error bounds and comparison with the oracle ----------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bound of Compare.h as code, and a comparison that spreads rows over
// threads. Any NaN counts as a failure.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Compare.h"

#include "tests/reference/Element.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

namespace pagoda::reference {

namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();

/// The constant c of the table in Compare.h.
double outputConstant(int32_t qType) { return qType == PAGODA_F32 ? 0 : 2; }

/// Relative error of the f32 arithmetic between inputs and output.
double arithmeticError(const Row &row) {
  return epsilon(PAGODA_F32) *
         (8 + (8 + double(row.headDim) / 8) * row.condition +
          std::sqrt(double(row.keys)));
}

void record(const Element &element, Comparison &result) {
  ++result.elements;
  if (!element.ok())
    ++result.failures;
  if (result.worst.seq < 0 || element.ratio() > result.worst.ratio())
    result.worst = element;
  if (element.dim >= 0 &&
      (result.largest.seq < 0 || !(element.error <= result.largest.error)))
    result.largest = element;
}

Element makeElement(int64_t seq, int64_t token, int64_t head, int64_t dim,
                    double actual, double expected, double bound) {
  // Equal infinities differ by 0, not by NaN.
  double error = actual == expected ? 0 : std::fabs(actual - expected);
  return {seq, token, head, dim, actual, expected, error, bound};
}

} // namespace

/// What one rounding may be off by below the normal range of P's and o's type,
/// for f16, whose range ends at 2^-14. The others' ends where f32's does.
static double subnormalRounding(int32_t qType) {
  return qType == PAGODA_F16 ? std::ldexp(1.0, -25) : 0;
}

double outputBound(const Row &row, int64_t dim, int32_t qType) {
  return (outputConstant(qType) * epsilon(qType) + arithmeticError(row)) *
             row.absolute[dim] +
         std::numeric_limits<float>::min() *
             (row.magnitude[dim] + double(row.keys) + 2) +
         subnormalRounding(qType) * (row.magnitude[dim] + 1);
}

double lseBound(const Row &row, int32_t qType) {
  if (std::isinf(row.lse))
    return 0;
  return arithmeticError(row) + 2 * outputConstant(qType) * epsilon(qType);
}

double Element::ratio() const {
  if (error == 0)
    return 0;
  double ratio = error / bound;
  return std::isnan(ratio) ? Infinity : ratio;
}

std::string Element::text() const {
  char buffer[256];
  std::string where = "seq " + std::to_string(seq) + ", token " +
                      std::to_string(token) + ", head " + std::to_string(head) +
                      (dim < 0 ? ", lse" : ", dim " + std::to_string(dim));
  std::snprintf(buffer, sizeof(buffer),
                ": %.9g, expected %.9g, error %.3g, bound %.3g", actual,
                expected, error, bound);
  return where + buffer;
}

void Comparison::merge(const Comparison &other) {
  elements += other.elements;
  failures += other.failures;
  if (other.worst.seq >= 0 &&
      (worst.seq < 0 || other.worst.ratio() > worst.ratio()))
    worst = other.worst;
  if (other.largest.seq >= 0 &&
      (largest.seq < 0 || !(other.largest.error <= largest.error)))
    largest = other.largest;
}

void compareRow(const Problem &problem, int64_t seq, int64_t token,
                int64_t head, const Row &row, Comparison &result) {
  const Shape &shape = problem.shape;
  const pagoda_attention_args &args = *problem.args;
  int64_t qRow = problem.sequences[seq].qBegin + token;
  std::vector<double> actual(shape.vHeadDim);
  loadRow(args.o, shape.qType,
          qRow * args.o_token_stride + head * args.o_head_stride,
          shape.vHeadDim, actual.data());
  for (int64_t d = 0; d < shape.vHeadDim; ++d)
    record(makeElement(seq, token, head, d, actual[d], row.o[d],
                       outputBound(row, d, shape.qType)),
           result);
  if (args.lse)
    record(makeElement(seq, token, head, -1,
                       args.lse[qRow * args.lse_token_stride +
                                head * args.lse_head_stride],
                       row.lse, lseBound(row, shape.qType)),
           result);
}

Comparison compare(const Problem &problem, int threads,
                   const RowFilter &filter) {
  struct Unit {
    int64_t seq, token, head;
  };
  std::vector<Unit> units;
  // Heads outermost: neighbouring units then cost about the same.
  for (int64_t seq = 0; seq < int64_t(problem.sequences.size()); ++seq)
    for (int64_t head = 0; head < problem.shape.qHeads; ++head)
      for (int64_t token = 0; token < problem.sequences[seq].qLen; ++token)
        if (!filter || filter(seq, token, head))
          units.push_back({seq, token, head});

  std::atomic<size_t> next = 0;
  std::vector<Comparison> results(std::max(threads, 1));
  auto work = [&](Comparison &result) {
    Row row;
    for (size_t i; (i = next++) < units.size();) {
      attendRow(problem, units[i].seq, units[i].token, units[i].head, row);
      compareRow(problem, units[i].seq, units[i].token, units[i].head, row,
                 result);
    }
  };
  std::vector<std::thread> workers;
  for (size_t t = 1; t < results.size(); ++t)
    workers.emplace_back(work, std::ref(results[t]));
  work(results[0]);
  for (std::thread &worker : workers)
    worker.join();
  for (size_t t = 1; t < results.size(); ++t)
    results[0].merge(results[t]);
  return results[0];
}

} // namespace pagoda::reference
