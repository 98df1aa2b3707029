//===- Launch.cpp - The C API of kernels, plans, launchers ----------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates between C types and the classes under launch/, the conversions,
// and errors. See pagoda.h.
//
//===----------------------------------------------------------------------===//

#include "capi/Handles.h"
#include "launch/LaunchChecks.h"
#include "pagoda/Conversions.h"

#include <algorithm>
#include <new>

using namespace pagoda;
using namespace pagoda::capi;

//===----------------------------------------------------------------------===//
// Status
//===----------------------------------------------------------------------===//

static thread_local std::string lastError;

static pagoda_status statusOf(ErrorCode code) {
  switch (code) {
  case ErrorCode::InvalidArgument:
    return PAGODA_INVALID_ARGUMENT;
  case ErrorCode::UnknownBlock:
    return PAGODA_UNKNOWN_BLOCK;
  case ErrorCode::DoubleRelease:
    return PAGODA_DOUBLE_RELEASE;
  case ErrorCode::RefOverflow:
    return PAGODA_REF_OVERFLOW;
  case ErrorCode::UnknownSequence:
    return PAGODA_UNKNOWN_SEQUENCE;
  case ErrorCode::TooLong:
    return PAGODA_TOO_LONG;
  case ErrorCode::Mismatch:
    return PAGODA_MISMATCH;
  case ErrorCode::BadLibrary:
    return PAGODA_BAD_LIBRARY;
  case ErrorCode::NoDevice:
    return PAGODA_NO_DEVICE;
  }
  return PAGODA_INTERNAL;
}

void capi::succeeded() noexcept { lastError.clear(); }

pagoda_status capi::failed() noexcept {
  auto note = [](const char *text) {
    try {
      lastError = text;
    } catch (...) {
      lastError.clear();
    }
  };
  try {
    throw;
  } catch (const Error &error) {
    note(error.what());
    return statusOf(error.code());
  } catch (const std::bad_alloc &) {
    note("out of memory");
    return PAGODA_OUT_OF_MEMORY;
  } catch (const std::exception &error) {
    note(error.what());
    return PAGODA_INTERNAL;
  } catch (...) {
    note("unknown exception");
    return PAGODA_INTERNAL;
  }
}

const char *pagoda_last_error(void) { return lastError.c_str(); }

const char *pagoda_status_name(int status) {
  switch (status) {
  case PAGODA_OK:
    return "ok";
  case PAGODA_OUT_OF_BLOCKS:
    return "out of blocks";
  case PAGODA_OUT_OF_SEQUENCES:
    return "out of sequences";
  case PAGODA_STALE:
    return "stale";
  case PAGODA_UNKNOWN:
    return "unknown";
  case PAGODA_OUT_OF_MEMORY:
    return "out of memory";
  case PAGODA_INTERNAL:
    return "internal error";
  default:
    for (int code = 1; code <= int(ErrorCode::NoDevice); ++code)
      if (statusOf(ErrorCode(code)) == status)
        return errorName(ErrorCode(code));
    return "no status";
  }
}

uint32_t pagoda_abi_version(void) { return PAGODA_ABI_VERSION; }

KvFormat capi::formatOf(const pagoda_kv_format &format) {
  KvFormat result;
  result.kvHeads = format.kv_heads;
  result.headDim = format.head_dim;
  result.vHeadDim = format.v_head_dim;
  result.blockSize = format.block_size;
  result.layout = format.layout;
  result.kType = format.k_dtype;
  result.vType = format.v_dtype;
  result.vInsideK = format.v_inside_k != 0;
  return result;
}

std::vector<TableGroup> capi::groupsOf(const pagoda_table_group *groups,
                                       int32_t count) {
  if (count < 0)
    throw Error(ErrorCode::InvalidArgument,
                "num_groups: expected 0 or more, got " + std::to_string(count));
  std::vector<TableGroup> result(std::max(count, 1));
  if (groups)
    for (int32_t g = 0; g != count; ++g)
      result[g] = {groups[g].window, groups[g].sink_tokens};
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static KernelSpec specOf(const pagoda_kernel_spec &spec) {
  KernelSpec result;
  result.qHeads = spec.q_heads;
  result.kvHeads = spec.kv_heads;
  result.headDim = spec.head_dim;
  result.vHeadDim = spec.v_head_dim;
  result.blockSize = spec.block_size;
  result.layout = spec.layout;
  result.qType = spec.q_dtype;
  result.kType = spec.k_dtype;
  result.vType = spec.v_dtype;
  result.oType = spec.o_dtype;
  result.features = spec.features;
  result.modsHash = spec.mods_hash;
  if (spec.rotary_dim)
    result.rotaryDim = std::max(spec.rotary_dim, 0);
  return result;
}

static pagoda_kernels *select(KernelLibrary library,
                              const pagoda_kernel_spec *spec) {
  KernelSpec wanted = specOf(given(spec, "spec"));
  KernelSet set =
      library.image() ? library.selectForGpu(wanted) : library.select(wanted);
  return new pagoda_kernels{std::move(library), std::move(set)};
}

pagoda_status pagoda_kernels_open(const char *path,
                                  const pagoda_kernel_spec *spec,
                                  pagoda_kernels **out) {
  return created(out, [&] {
    return select(KernelLibrary::open(&given(path, "path")), spec);
  });
}

pagoda_status pagoda_kernels_wrap(const pagoda_library_info *library,
                                  const pagoda_kernel_spec *spec,
                                  pagoda_kernels **out) {
  return created(out,
                 [&] { return select(KernelLibrary::wrap(library), spec); });
}

void pagoda_kernels_destroy(pagoda_kernels *kernels) { delete kernels; }

pagoda_status pagoda_kernels_check(const pagoda_kernels *kernels,
                                   const pagoda_pool *pool) {
  return guarded([&] {
    const KernelSet &set = given(kernels, "kernels").set;
    const KvFormat &format = given(pool, "pool").object.format();
    for (const pagoda_kernel_info *kernel : set.attention)
      checkCompatible(*kernel, format);
    for (const pagoda_kernel_info *kernel : {set.append, set.copy})
      if (kernel)
        checkCompatible(*kernel, format);
    return PAGODA_OK;
  });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

pagoda_status pagoda_plan_create(const pagoda_kernels *kernels,
                                 const pagoda_launcher *launcher,
                                 const pagoda_plan_options *options,
                                 pagoda_plan **out) {
  return created(out, [&] {
    const KernelSet &set = given(kernels, "kernels").set;
    PlanOptions with;
    if (launcher)
      with.threads = launcher->pool.threads();
    if (options) {
      if (options->threads)
        with.threads = options->threads;
      with.deterministic = options->deterministic != 0;
      if (options->deterministic_split)
        with.deterministicSplit = options->deterministic_split;
      with.cascade = options->cascade != 0;
      with.window = options->window;
      with.chunk = options->chunk;
    }
    return new pagoda_plan{AttentionPlan(set.attention, with)};
  });
}

void pagoda_plan_destroy(pagoda_plan *plan) { delete plan; }

pagoda_status pagoda_plan_build(pagoda_plan *plan, const pagoda_batch *batch) {
  return guarded([&] {
    const pagoda_batch &b = given(batch, "batch");
    BatchShape shape;
    shape.qLens = array(b.q_lens, b.sequences, "q_lens");
    shape.kvLens = array(b.kv_lens, b.sequences, "kv_lens");
    if (b.table_rows)
      shape.tableRows = array(b.table_rows, b.sequences, "table_rows");
    shape.blockTable = b.block_table;
    shape.blockTableStride = b.block_table_stride;
    given(plan, "plan").object.build(shape);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_plan_get_info(const pagoda_plan *plan,
                                   pagoda_plan_info *out) {
  return guarded([&] {
    const AttentionPlan &p = given(plan, "plan").object;
    given(out, "out") = {p.numRows(), static_cast<int32_t>(p.items().size()),
                         static_cast<int32_t>(p.merges().size()),
                         p.partialSlots(), p.scratchBytes()};
    return PAGODA_OK;
  });
}

pagoda_status pagoda_plan_fill(const pagoda_plan *plan,
                               pagoda_attention_args *args) {
  return guarded([&] {
    given(plan, "plan").object.fill(given(args, "args"));
    return PAGODA_OK;
  });
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

pagoda_status pagoda_launcher_create(int32_t threads, pagoda_launcher **out) {
  return created(out, [&] { return new pagoda_launcher(threads); });
}

void pagoda_launcher_destroy(pagoda_launcher *launcher) { delete launcher; }

int32_t pagoda_launcher_threads(const pagoda_launcher *launcher) {
  return launcher ? launcher->pool.threads() : 0;
}

pagoda_status pagoda_attention(pagoda_launcher *launcher,
                               const pagoda_plan *plan,
                               const pagoda_kernels *kernels,
                               const pagoda_attention_args *args) {
  return guarded([&] {
    const AttentionPlan &p = given(plan, "plan").object;
    const KernelSet &set = given(kernels, "kernels").set;
    checkPlanned(p, set.attention);
    given(launcher, "launcher").object.run(p, set.merge, given(args, "args"));
    return PAGODA_OK;
  });
}

/// A kernel that a library may lack.
static const pagoda_kernel_info &present(const pagoda_kernel_info *kernel,
                                         const char *role) {
  if (!kernel)
    throw Error(ErrorCode::InvalidArgument,
                std::string("kernels: expected a kernel with role ") + role +
                    ", got none");
  return *kernel;
}

pagoda_status pagoda_append(pagoda_launcher *launcher,
                            const pagoda_kernels *kernels,
                            const pagoda_append_args *args, int64_t tokens) {
  return guarded([&] {
    given(launcher, "launcher")
        .object.append(present(given(kernels, "kernels").set.append, "append"),
                       given(args, "args"), tokens);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_copy(pagoda_launcher *launcher,
                          const pagoda_kernels *kernels,
                          const pagoda_copy_args *args, int64_t copies) {
  return guarded([&] {
    given(launcher, "launcher")
        .object.copy(present(given(kernels, "kernels").set.copy, "copy"),
                     given(args, "args"), copies);
    return PAGODA_OK;
  });
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

template <typename T>
static void copyOut(const std::vector<T> &from, T *to, int64_t capacity,
                    const char *name) {
  if (int64_t(from.size()) > capacity)
    throw Error(ErrorCode::InvalidArgument,
                std::string(name) + ": expected room for " +
                    std::to_string(from.size()) + " elements, got " +
                    std::to_string(capacity));
  auto out = array(to, static_cast<int64_t>(from.size()), name);
  std::copy(from.begin(), from.end(), out.begin());
}

static std::span<const int32_t> tableOf(const int32_t *table, int64_t stride,
                                        int32_t sequences) {
  return array(table, stride * sequences, "table");
}

pagoda_status pagoda_table_to_pages(const int32_t *table, int64_t stride,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int32_t *indptr, int32_t *indices,
                                    int64_t capacity, int32_t *last_page_len) {
  return guarded([&] {
    PageList list = toPageList(tableOf(table, stride, sequences), stride,
                               array(seq_lens, sequences, "seq_lens"),
                               block_size, num_blocks);
    copyOut(list.indices, indices, capacity, "indices");
    copyOut(list.indptr, indptr, int64_t(sequences) + 1, "indptr");
    copyOut(list.lastPageLen, last_page_len, sequences, "last_page_len");
    return PAGODA_OK;
  });
}

pagoda_status pagoda_pages_to_table(const int32_t *indptr,
                                    const int32_t *indices,
                                    const int32_t *last_page_len,
                                    int32_t sequences, int32_t block_size,
                                    int32_t num_blocks, int32_t *table,
                                    int64_t stride, int32_t *seq_lens) {
  return guarded([&] {
    auto starts = array(indptr, int64_t(sequences) + 1, "indptr");
    BlockTable result = fromPageList(
        starts, array(indices, std::max(starts.back(), 0), "indices"),
        array(last_page_len, sequences, "last_page_len"), block_size, stride,
        num_blocks);
    copyOut(result.blocks, table, stride * sequences, "table");
    copyOut(result.seqLens, seq_lens, sequences, "seq_lens");
    return PAGODA_OK;
  });
}

pagoda_status pagoda_table_to_slots(const int32_t *table, int64_t stride,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int64_t *slots, int64_t capacity) {
  return guarded([&] {
    copyOut(toSlotMapping(tableOf(table, stride, sequences), stride,
                          array(seq_lens, sequences, "seq_lens"), block_size,
                          num_blocks),
            slots, capacity, "slots");
    return PAGODA_OK;
  });
}

pagoda_status pagoda_slots_to_table(const int64_t *slots,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int32_t *table, int64_t stride) {
  return guarded([&] {
    auto lengths = array(seq_lens, sequences, "seq_lens");
    int64_t total = 0;
    for (int32_t length : lengths)
      total += std::max(length, 0);
    copyOut(fromSlotMapping(array(slots, total, "slots"), lengths, block_size,
                            stride, num_blocks)
                .blocks,
            table, stride * sequences, "table");
    return PAGODA_OK;
  });
}
