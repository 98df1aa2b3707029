//===- Measure.cpp - What a GPU can do, and what kernels make of it -------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All times are of device events. Kernels are warmed up, then run in five
// rounds of about 60 ms each; the median counts.
//
//===----------------------------------------------------------------------===//

#include "tests/device/Measure.h"

#include "tests/device/DeviceCase.h"
#include "tests/reference/Compare.h"
#include "tests/reference/Element.h"

#include "pagoda/AttentionPlan.h"
#include "pagoda/CudaLauncher.h"
#include "pagoda/Kernel.h"
#include "pagoda/KvPool.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>

namespace pagoda::device {

namespace {

/// Device memory that is given back.
class Memory {
public:
  Memory(CudaDevice &device, size_t bytes)
      : device(device), start(device.allocate(bytes)) {}
  ~Memory() {
    try {
      device.release(start);
    } catch (const std::exception &) {
      // A device that has failed says so elsewhere.
    }
  }
  Memory(const Memory &) = delete;
  void *get() const { return start; }

private:
  CudaDevice &device;
  void *start;
};

/// Milliseconds of one `body`.
double median(CudaDevice &device, const std::function<void()> &body) {
  constexpr double round = 60;
  double once = device.time(body, 1);
  once = std::min(once, device.time(body, 1));
  int times = int(std::clamp(round / std::max(once, 1e-3), 1.0, 1000.0));
  std::vector<double> rounds;
  for (int i = 0; i < 5; ++i)
    rounds.push_back(device.time(body, times));
  std::nth_element(rounds.begin(), rounds.begin() + 2, rounds.end());
  return rounds[2];
}

constexpr int limitThreads = 256, limitProducts = 8;

} // namespace

Limits measureLimits(CudaDevice &device, const std::filesystem::path &code,
                     int64_t copyBytes, int64_t productRounds) {
  Limits limits;
  KernelCode image(code);
  {
    size_t bytes = size_t(copyBytes);
    Memory from(device, bytes), to(device, bytes);
    CudaDevice::Kernel kernel =
        image.load(device, "limit_copy", limitThreads, 0);
    pagoda_attention_args args{};
    args.q = from.get();
    args.o = to.get();
    args.q_token_stride = int64_t(bytes / 16);
    int64_t blocks = int64_t(device.multiprocessors()) *
                     device.blocksPerMultiprocessor(kernel);
    double time = median(device, [&] { device.launch(kernel, blocks, &args); });
    limits.copyBytes = 2 * double(bytes) / time * 1e3;
  }
  for (auto [name, rate] : {std::pair("limit_mma_f16", &limits.productsF16),
                            {"limit_mma_bf16", &limits.productsBf16}}) {
    CudaDevice::Kernel kernel = image.load(device, name, limitThreads, 0);
    int64_t blocks = int64_t(device.multiprocessors()) *
                     device.blocksPerMultiprocessor(kernel);
    Memory out(device, size_t(blocks) * limitThreads * 4);
    pagoda_attention_args args{};
    args.o = out.get();
    args.q_token_stride = productRounds;
    double time = median(device, [&] { device.launch(kernel, blocks, &args); });
    double products = double(blocks) * (limitThreads / 32) *
                      double(productRounds) * limitProducts;
    *rate = products * 2 * 16 * 8 * 16 / time * 1e3;
  }
  return limits;
}

std::vector<Workload> readWorkloads(const std::filesystem::path &list) {
  std::ifstream stream(list);
  std::vector<Workload> result;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream fields(line);
    Workload w;
    if (fields >> w.name >> w.library >> w.sequences >> w.qLen >> w.kvLen)
      result.push_back(std::move(w));
    else
      throw std::runtime_error(list.string() + ": not a workload: " + line);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Workloads
//===----------------------------------------------------------------------===//

namespace {

/// `bytes` of random elements of `dtype` between -1 and 1. A pattern repeats
/// after a prime number of them, so that no two rows are alike.
std::vector<uint8_t> randomElements(size_t bytes, int32_t dtype,
                                    uint64_t seed) {
  constexpr size_t period = 524287;
  std::mt19937_64 random(seed);
  std::vector<double> values(period);
  for (double &value : values)
    value = double(random() >> 11) * 0x1p-52 - 1;
  size_t pattern = period * reference::elementBytes(dtype);
  std::vector<uint8_t> once(pattern), result(bytes);
  reference::storeRow(once.data(), dtype, 0, int64_t(period), values.data());
  for (size_t at = 0; at < bytes; at += pattern)
    std::memcpy(result.data() + at, once.data(), std::min(pattern, bytes - at));
  return result;
}

/// Compares sampled rows of `o` with the oracle.
std::string checkRows(const reference::Problem &problem,
                      const std::vector<uint8_t> &o) {
  const reference::Shape &shape = problem.shape;
  std::mt19937_64 random(3);
  reference::Row row;
  std::vector<double> actual;
  actual.resize(size_t(shape.vHeadDim));
  for (int sample = 0; sample < 12; ++sample) {
    auto s = int64_t(random() % problem.sequences.size());
    int64_t tokens = problem.sequences[size_t(s)].qLen;
    // The last token sees most.
    int64_t token =
        sample % 2 ? tokens - 1 : int64_t(random() % uint64_t(tokens));
    auto head = int64_t(random() % uint64_t(shape.qHeads));
    reference::attendRow(problem, s, token, head, row);
    int64_t at = (problem.sequences[size_t(s)].qBegin + token) *
                     problem.args->o_token_stride +
                 head * problem.args->o_head_stride;
    reference::loadRow(o.data(), shape.qType, at, shape.vHeadDim,
                       actual.data());
    for (int64_t d = 0; d < shape.vHeadDim; ++d) {
      double error = std::fabs(actual[size_t(d)] - row.o[size_t(d)]);
      if (!(error <= reference::outputBound(row, d, shape.qType)))
        return "seq " + std::to_string(s) + ", token " + std::to_string(token) +
               ", head " + std::to_string(head) + ", dim " + std::to_string(d) +
               ": " + std::to_string(actual[size_t(d)]) + ", expected " +
               std::to_string(row.o[size_t(d)]);
    }
  }
  return "";
}

} // namespace

WorkloadResult runWorkload(CudaDevice &device, const Workload &workload,
                           const std::filesystem::path &folder) {
  WorkloadResult result;
  result.workload = workload;
  KernelLibrary library =
      KernelLibrary::open((folder / workload.library).string());
  if (!library.image())
    throw std::runtime_error(workload.library + ": has no code for a GPU");
  KernelSet set =
      library.selectForGpu(KernelSpec::of(library.kernels().front()));
  const pagoda_kernel_info &kernel = *set.attention.front();
  result.qHeads = kernel.q_heads;
  result.kvHeads = kernel.kv_heads;
  result.headDim = kernel.head_dim;
  result.dtype = kernel.q_dtype;
  CudaLauncher launcher(device, set, *library.image());

  auto [name, file, sequences, qLen, kvLen] = workload;
  auto count = size_t(sequences);
  std::vector<int32_t> qLens(count, int32_t(qLen));
  std::vector<int32_t> kvLens(count, int32_t(kvLen));
  PlanOptions options;
  options.threads = launcher.threads();
  AttentionPlan plan(set.attention, options);
  plan.build({qLens, kvLens, {}, nullptr, 0});
  launcher.reserve(PlanExtents::of(plan));
  launcher.upload(plan);

  // Shuffled blocks, as after a while of serving.
  int64_t tableStride = (kvLen + kernel.block_size - 1) / kernel.block_size;
  std::vector<int32_t> table(size_t(sequences * tableStride));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937_64(1));
  KvFormat format = KernelSpec::of(kernel).format();
  size_t poolBytes = KvPool::bytesNeeded(format, int32_t(table.size()), 1);
  std::vector<uint8_t> pool = randomElements(poolBytes + 64, kernel.k_dtype, 1);
  auto *poolStart = reinterpret_cast<uint8_t *>(
      (reinterpret_cast<uintptr_t>(pool.data()) + 63) / 64 * 64);
  size_t element = reference::elementBytes(kernel.q_dtype);
  size_t rows = size_t(sequences * qLen * kernel.q_heads);
  std::vector<uint8_t> q = randomElements(
      rows * size_t(kernel.head_dim) * element, kernel.q_dtype, 2);
  std::vector<uint8_t> o(rows * size_t(kernel.v_head_dim) * element);

  Memory devicePool(device, poolBytes), deviceQ(device, q.size()),
      deviceO(device, o.size()), deviceTable(device, table.size() * 4);
  device.upload(devicePool.get(), poolStart, poolBytes);
  device.upload(deviceQ.get(), q.data(), q.size());
  device.upload(deviceTable.get(), table.data(), table.size() * 4);
  auto argsFor = [&](void *pool, const void *q, void *o, const void *table_) {
    KvPool view(format, int32_t(table.size()), 1, pool, poolBytes);
    pagoda_attention_args args{};
    args.q = q;
    args.q_head_stride = kernel.head_dim;
    args.q_token_stride = int64_t(kernel.q_heads) * kernel.head_dim;
    args.o = o;
    args.o_head_stride = kernel.v_head_dim;
    args.o_token_stride = int64_t(kernel.q_heads) * kernel.v_head_dim;
    args.k = view.k();
    args.v = view.v();
    args.block_table = static_cast<const int32_t *>(table_);
    args.block_table_stride = tableStride;
    args.scale = 1 / std::sqrt(float(kernel.head_dim));
    return args;
  };
  pagoda_attention_args args = argsFor(devicePool.get(), deviceQ.get(),
                                       deviceO.get(), deviceTable.get());
  launcher.run(args);
  device.synchronize();
  device.download(o.data(), deviceO.get(), o.size());

  pagoda_attention_args onHost =
      argsFor(poolStart, q.data(), o.data(), table.data());
  reference::Problem problem;
  problem.shape = reference::shapeOf(kernel);
  problem.args = &onHost;
  for (int64_t s = 0; s < sequences; ++s)
    problem.sequences.push_back({s * qLen, qLen, kvLen, s});
  result.fault = checkRows(problem, o);

  // Token t of q sees kv - q + t + 1 keys.
  double pairs =
      double(sequences) * double(qLen) * (double(kvLen) - double(qLen - 1) / 2);
  result.flop =
      pairs * kernel.q_heads * 2 * (kernel.head_dim + kernel.v_head_dim);
  result.bytes = double(q.size()) + double(o.size()) +
                 double(sequences * kvLen) * kernel.kv_heads *
                     double(kernel.head_dim + kernel.v_head_dim) *
                     double(element);
  if (result.fault.empty())
    result.milliseconds = median(device, [&] { launcher.run(args); });
  return result;
}

} // namespace pagoda::device
