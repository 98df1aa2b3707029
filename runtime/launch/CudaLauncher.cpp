//===- CudaLauncher.cpp - Runs plans on an NVIDIA GPU ---------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan's arrays stand in one piece of device memory, each at a fixed place
// with room for `room` elements, items once for each attention kernel, and in
// pinned host memory in the same form. Only what a plan fills is copied.
//
//===----------------------------------------------------------------------===//

#include "pagoda/CudaLauncher.h"

#include "launch/LaunchChecks.h"
#include "pagoda/GpuArgs.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace pagoda;

namespace {

/// A kernel and how it is launched.
struct Loaded {
  const pagoda_kernel_info *info = nullptr;
  CudaDevice::Kernel kernel;
  int64_t blocks = 0; ///< that the device runs at once
};

/// Where the plan's arrays are, in bytes from the start of both memories.
struct Places {
  std::vector<size_t> items; ///< of each attention kernel
  size_t counts = 0, rowMap = 0, rowPos = 0, rowSeq = 0, merges = 0;
  size_t mergeSlots = 0, bytes = 0;

  Places(size_t kernels, const PlanExtents &room) {
    auto place = [&](int64_t count, size_t size) {
      constexpr size_t alignment = 256;
      size_t at = bytes;
      bytes += (size_t(count) * size + alignment - 1) / alignment * alignment;
      return at;
    };
    counts = place(int64_t(2 * kernels), sizeof(int32_t));
    for (size_t i = 0; i < kernels; ++i)
      items.push_back(place(room.items, sizeof(pagoda_work_item)));
    for (size_t *map : {&rowMap, &rowPos, &rowSeq})
      *map = place(room.rows, sizeof(int32_t));
    merges = place(room.merges, sizeof(pagoda_merge_item));
    mergeSlots = place(room.mergeSlots, sizeof(int32_t));
  }
};

[[noreturn]] void bad(const std::string &text) {
  throw Error(ErrorCode::InvalidArgument, "launch: " + text);
}

} // namespace

struct CudaLauncher::Impl {
  CudaDevice &device;
  std::vector<Loaded> attention;
  Loaded merge, append, copy;
  PlanExtents room;
  Places places;
  char *memory = nullptr, *staging = nullptr;
  void *partialO = nullptr, *partialMl = nullptr;
  void *uploaded = nullptr; ///< the device has read `staging`
  PlanOptions planned;

  Impl(CudaDevice &device, const KernelSet &set,
       const pagoda_device_image &image)
      : device(device), places(set.attention.size(), room) {
    for (const pagoda_kernel_info *info : set.attention)
      attention.push_back(load(*info, image));
    for (auto [info, loaded] : {std::pair(set.merge, &merge),
                                {set.append, &append},
                                {set.copy, &copy}})
      if (info)
        *loaded = load(*info, image);
    uploaded = device.createEvent();
  }
  ~Impl() {
    try {
      device.synchronize();
      release();
      if (uploaded)
        device.destroyEvent(uploaded);
    } catch (const std::exception &) {
      // A device that has failed takes its memory along.
    }
  }

  Loaded load(const pagoda_kernel_info &info,
              const pagoda_device_image &image) {
    Loaded result{&info, {}, 0};
    auto from = [&](const void *code) {
      result.kernel =
          device.load(code, info.name, info.threads, info.shared_bytes);
    };
    if (!image.cubin)
      from(image.ptx);
    else if (!image.ptx)
      from(image.cubin);
    else
      try {
        from(image.cubin);
      } catch (const std::runtime_error &) {
        from(image.ptx); // another GPU than it was assembled for
      }
    result.blocks = int64_t(device.multiprocessors()) *
                    std::max(device.blocksPerMultiprocessor(result.kernel), 1);
    return result;
  }

  void release() {
    for (void *held : {static_cast<void *>(memory), partialO, partialMl})
      if (held)
        device.release(held);
    if (staging)
      device.releasePinned(staging);
    memory = staging = nullptr;
    partialO = partialMl = nullptr;
  }

  int32_t *countsOf(size_t kernel) {
    return reinterpret_cast<int32_t *>(staging + places.counts) + 2 * kernel;
  }
  /// Puts `values` at `place`, `before` of them being there already.
  template <typename T>
  void put(size_t place, std::span<const T> values, size_t before = 0) {
    std::memcpy(staging + place + before * sizeof(T), values.data(),
                values.size_bytes());
  }
  void send(size_t place, size_t bytes, CudaStream stream) {
    if (bytes)
      device.uploadAsync(memory + place, staging + place, bytes, stream);
  }
  template <typename T> T *onDevice(size_t place) {
    return reinterpret_cast<T *>(memory + place);
  }
};

CudaLauncher::CudaLauncher(CudaDevice &device, const KernelSet &set,
                           const pagoda_device_image &image) {
  if (set.attention.empty())
    bad("kernels: expected an attention kernel, got none");
  if (!image.cubin && !image.ptx)
    bad("image: expected a cubin or PTX, got neither");
  P = std::make_unique<Impl>(device, set, image);
}

CudaLauncher::~CudaLauncher() = default;

int CudaLauncher::threads() const { return int(P->attention.front().blocks); }

const PlanExtents &CudaLauncher::room() const { return P->room; }

void CudaLauncher::reserve(const PlanExtents &most) {
  Impl &p = *P;
  const PlanExtents &had = p.room;
  PlanExtents room = {std::max(most.items, had.items),
                      std::max(most.rows, had.rows),
                      std::max(most.merges, had.merges),
                      std::max(most.mergeSlots, had.mergeSlots),
                      std::max(most.partialSlots, had.partialSlots)};
  bool fits = p.memory && room.items == had.items && room.rows == had.rows &&
              room.merges == had.merges && room.mergeSlots == had.mergeSlots &&
              room.partialSlots == had.partialSlots;
  if (fits)
    return;
  p.device.synchronize();
  p.release();
  p.room = {};
  Places places(p.attention.size(), room);
  const pagoda_kernel_info &kernel = *p.attention.front().info;
  size_t states = size_t(room.partialSlots) * size_t(kernel.q_heads);
  try {
    p.memory = static_cast<char *>(p.device.allocate(places.bytes));
    p.staging = static_cast<char *>(p.device.allocatePinned(places.bytes));
    p.partialO =
        p.device.allocate(states * size_t(kernel.v_head_dim) * sizeof(float));
    p.partialMl = p.device.allocate(states * 2 * sizeof(float));
  } catch (...) {
    p.release();
    throw;
  }
  p.places = std::move(places);
  p.room = room;
  // Until a plan is there, kernels find no item.
  std::memset(p.staging, 0, p.places.bytes);
  p.device.upload(p.memory, p.staging, p.places.bytes);
}

void CudaLauncher::upload(const AttentionPlan &plan, CudaStream stream) {
  Impl &p = *P;
  PlanExtents needed = PlanExtents::of(plan);
  auto check = [](const char *field, int64_t needed, int64_t room) {
    if (needed > room)
      bad(std::string("plan: ") + field + ": expected at most " +
          std::to_string(room) + ", which were reserved, got " +
          std::to_string(needed));
  };
  check("items", needed.items, p.room.items);
  check("rows", needed.rows, p.room.rows);
  check("merges", needed.merges, p.room.merges);
  check("merge slots", needed.mergeSlots, p.room.mergeSlots);
  check("partial slots", needed.partialSlots, p.room.partialSlots);
  if (needed.merges)
    checkMerge(plan, p.merge.info);
  if (!p.memory)
    reserve(needed); // an empty plan before any other
  auto numberOf = [&](const pagoda_kernel_info *info) {
    auto at = std::find_if(p.attention.begin(), p.attention.end(),
                           [&](const Loaded &k) { return k.info == info; });
    if (at == p.attention.end())
      throw Error(ErrorCode::Mismatch, std::string("launch: plan: kernel ") +
                                           info->name +
                                           " is not one of the launcher's");
    return size_t(at - p.attention.begin());
  };
  for (const PlanSegment &segment : plan.segments())
    (void)numberOf(segment.kernel);

  p.device.wait(p.uploaded); // the step before may still be read
  for (size_t i = 0; i < p.attention.size(); ++i) {
    p.countsOf(i)[0] = 0;
    p.countsOf(i)[1] = int32_t(needed.merges);
  }
  for (const PlanSegment &segment : plan.segments()) {
    size_t kernel = numberOf(segment.kernel);
    int32_t &count = p.countsOf(kernel)[0];
    int32_t size = segment.end - segment.begin;
    p.put(p.places.items[kernel],
          plan.items().subspan(size_t(segment.begin), size_t(size)),
          size_t(count));
    count += size;
  }
  p.put(p.places.rowMap, plan.rowMap());
  p.put(p.places.rowPos, plan.rowPos());
  p.put(p.places.rowSeq, plan.rowSeq());
  p.put(p.places.merges, plan.merges());
  p.put(p.places.mergeSlots, plan.mergeSlots());

  p.send(p.places.counts, p.attention.size() * 2 * sizeof(int32_t), stream);
  for (size_t i = 0; i < p.attention.size(); ++i)
    p.send(p.places.items[i],
           size_t(p.countsOf(i)[0]) * sizeof(pagoda_work_item), stream);
  for (size_t map : {p.places.rowMap, p.places.rowPos, p.places.rowSeq})
    p.send(map, plan.rowMap().size_bytes(), stream);
  p.send(p.places.merges, plan.merges().size_bytes(), stream);
  p.send(p.places.mergeSlots, plan.mergeSlots().size_bytes(), stream);
  p.device.record(p.uploaded, stream);
  p.planned = plan.options();
}

void CudaLauncher::run(pagoda_attention_args args, CudaStream stream) {
  Impl &p = *P;
  if (!p.memory)
    bad("expected a plan, got none");
  const pagoda_kernel_info &kernel = *p.attention.front().info;
  checkLaunch(kernel, p.planned, args);
  checkTensors(kernel, p.room.rows, args); // a graph may serve any plan
  args.row_map = p.onDevice<int32_t>(p.places.rowMap);
  args.row_pos = p.onDevice<int32_t>(p.places.rowPos);
  args.row_seq = p.onDevice<int32_t>(p.places.rowSeq);
  args.merges = p.onDevice<pagoda_merge_item>(p.places.merges);
  args.merge_slots = p.onDevice<int32_t>(p.places.mergeSlots);
  args.partial_o = static_cast<float *>(p.partialO);
  args.partial_ml = static_cast<float *>(p.partialMl);
  checkGpuArgs(kernel, args);
  auto counts = [&](size_t kernel) {
    return p.onDevice<int32_t>(p.places.counts) + 2 * kernel;
  };
  for (size_t i = 0; i < p.attention.size(); ++i) {
    const Loaded &variant = p.attention[i];
    args.items = p.onDevice<pagoda_work_item>(p.places.items[i]);
    args.counts = counts(i);
    p.device.launch(variant.kernel, variant.blocks, &args, stream);
  }
  if (p.merge.info && p.room.merges)
    p.device.launch(p.merge.kernel, p.merge.blocks, &args, stream);
}

void CudaLauncher::append(const pagoda_append_args &args, int64_t tokens,
                          CudaStream stream) {
  if (!P->append.info)
    bad("kernels: expected a kernel with role append, got none");
  if (tokens == 0)
    return;
  checkLaunch(*P->append.info, args, tokens);
  checkGpuArgs(*P->append.info, args);
  P->device.launch(P->append.kernel, tokens, &args, stream);
}

void CudaLauncher::copy(const pagoda_copy_args &args, int64_t copies,
                        CudaStream stream) {
  if (!P->copy.info)
    bad("kernels: expected a kernel with role copy, got none");
  if (copies == 0)
    return;
  checkLaunch(*P->copy.info, args);
  checkGpuArgs(*P->copy.info, args);
  P->device.launch(P->copy.kernel, copies, &args, stream);
}
