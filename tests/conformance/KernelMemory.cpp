//===- KernelMemory.cpp - Kernels touch what is theirs, nothing else ------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a generated library's kernels on a batch in which every byte but the
// valid rows is forbidden: gaps between rows and blocks, unused slots of the
// last block, blocks of nobody, table entries past the end. Says so to
// AddressSanitizer, if built with it, or to valgrind's memcheck.
//
//   pagoda-kernel-memory LIBRARY.so [--forbid-a-valid-row]
//
// With the option, the last row of V is forbidden, too: the checker must
// object.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Data.h"
#include "tests/conformance/ManualPlan.h"
#include "tests/reference/Compare.h"
#include "tests/reference/Element.h"

#include "pagoda/Kernel.h"

#include <cstdio>
#include <cstring>
#include <exception>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGODA_ASAN
#endif
#endif
#ifdef PAGODA_ASAN
#include <sanitizer/asan_interface.h>
#elif __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

void forbid([[maybe_unused]] const void *start, [[maybe_unused]] size_t bytes) {
#ifdef PAGODA_ASAN
  ASAN_POISON_MEMORY_REGION(start, bytes);
#elif defined(VALGRIND_MAKE_MEM_NOACCESS)
  (void)VALGRIND_MAKE_MEM_NOACCESS(start, bytes);
#endif
}

void allow([[maybe_unused]] const void *start, [[maybe_unused]] size_t bytes) {
#ifdef PAGODA_ASAN
  ASAN_UNPOISON_MEMORY_REGION(start, bytes);
#elif defined(VALGRIND_MAKE_MEM_DEFINED)
  (void)VALGRIND_MAKE_MEM_DEFINED(start, bytes);
#endif
}

/// A batch with each kind of sequence, for kernels as `info` says.
Case caseFor(const pagoda_kernel_info &info) {
  Case c = makeCase(
      "memory",
      {{1, 37}, {0, 0}, {20, 20}, {5, 43}, {0, 5}, {4, 2}, {1, 0}, {1, 16}});
  c.padding = 3;
  AttentionSpec &spec = c.spec;
  spec.qHeads = info.q_heads;
  spec.kvHeads = info.kv_heads;
  spec.headDim = info.head_dim;
  spec.vHeadDim = info.v_head_dim;
  spec.blockSize = info.block_size;
  spec.layout = KvLayout(info.layout);
  spec.qType = DType(info.q_dtype);
  spec.kvType = DType(info.k_dtype);
  auto has = [&](uint32_t feature) { return (info.features & feature) != 0; };
  spec.causal = has(PAGODA_FEATURE_CAUSAL);
  if (has(PAGODA_FEATURE_WINDOW))
    spec.window = 20;
  if (has(PAGODA_FEATURE_CHUNK))
    spec.chunk = 24;
  if (has(PAGODA_FEATURE_SOFTCAP))
    spec.softcap = 3;
  spec.sinks = has(PAGODA_FEATURE_SINKS);
  spec.prefixLm = has(PAGODA_FEATURE_PREFIX_LM);
  return c;
}

/// Forbids all memory of `data` but what the kernels are for, as long as it
/// lives.
class OnlyValidRows {
public:
  OnlyValidRows(const Case &c, CaseData &data, bool lastRowToo) : data(data) {
    data.forEachTensor(forbid);
    // Rows are found by the table, so its pieces come first.
    for (size_t s = 0; s < c.lengths.size(); ++s)
      allow(data.args.block_table + s * data.args.block_table_stride,
            (c.lengths[s].kv + c.spec.blockSize - 1) / c.spec.blockSize *
                sizeof(int32_t));
    size_t q = reference::elementBytes(int32_t(c.spec.qType));
    size_t kv = reference::elementBytes(int32_t(c.spec.kvType));
    size_t dim = c.spec.headDim, vDim = c.spec.vHeadDim;
    const char *lastRow = nullptr;
    for (int64_t s = 0; s < int64_t(c.lengths.size()); ++s) {
      for (int64_t t = 0; t < c.lengths[s].q; ++t)
        for (int64_t h = 0; h < c.spec.qHeads; ++h) {
          allow(at(data.args.q, data.queryRow(s, t, h), q), dim * q);
          allow(at(data.args.o, data.outputRow(s, t, h), q), vDim * q);
          allow(data.lseSlot(s, t, h), sizeof(float));
        }
      for (int64_t t = 0; t < c.lengths[s].kv; ++t) {
        if (data.args.block_table[s * data.args.block_table_stride +
                                  t / c.spec.blockSize] < 0)
          continue; // a window has let go of it
        for (int64_t h = 0; h < c.spec.kvHeads; ++h) {
          allow(at(data.args.k.base, data.keyRow(s, t, h), kv), dim * kv);
          lastRow = at(data.args.v.base, data.valueRow(s, t, h), kv);
          allow(lastRow, vDim * kv);
        }
      }
    }
    if (lastRowToo)
      forbid(lastRow, vDim * kv);
  }
  ~OnlyValidRows() { data.forEachTensor(allow); }

private:
  /// Where the row is that were at `row` if elements of \p base were floats.
  static const char *at(const void *base, const float *row, size_t bytes) {
    return static_cast<const char *>(base) +
           (row - static_cast<const float *>(base)) * int64_t(bytes);
  }

  CaseData &data;
};

/// Every attention kernel, whole and in splits.
int run(const char *path, bool lastRowToo) {
  KernelLibrary library = KernelLibrary::open(path);
  KernelSpec wanted = KernelSpec::of(library.kernels().front());
  KernelSet set = library.select(wanted);
  Case c = caseFor(*set.attention.front());
  int runs = 0;
  for (const pagoda_kernel_info *kernel : set.attention)
    for (int64_t splits : {1, 3}) {
      CaseData data(c);
      ManualPlan plan(data.problem, *kernel, splits);
      plan.attach(data.args);
      {
        OnlyValidRows guard(c, data, lastRowToo);
        runKernel(*kernel, &data.args, int64_t(plan.items.size()), 1);
        runKernel(*set.merge, &data.args, int64_t(plan.merges.size()), 1);
      }
      reference::Comparison comparison = reference::compare(data.problem);
      std::string damage = data.damage();
      if (!comparison.ok() || !damage.empty()) {
        std::printf("%s, %d splits: %s %s\n", kernel->name, int(splits),
                    comparison.worst.text().c_str(), damage.c_str());
        return 1;
      }
      ++runs;
    }
  std::printf("%d runs of %s\n", runs, describe(c).c_str());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s LIBRARY.so [--forbid-a-valid-row]\n",
                 argv[0]);
    return 2;
  }
  try {
    return run(argv[1],
               argc > 2 && !std::strcmp(argv[2], "--forbid-a-valid-row"));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
