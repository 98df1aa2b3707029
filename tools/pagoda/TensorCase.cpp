//===- TensorCase.cpp - The user's tensors --------------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a case from a safetensors file, pages its K and V into shuffled blocks,
// runs one step and writes o and lse.
//
//===----------------------------------------------------------------------===//

#include "tests/reference/Element.h"
#include "tools/pagoda/Workload.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llvm;

namespace pagoda {

namespace {

/// cu_seqlens: from 0, never falling, up to `total`.
llvm::Expected<std::vector<int64_t>>
readStarts(const SafetensorsFile &file, const char *name, int64_t total) {
  Expected<std::vector<int64_t>> starts = file.integers(name, 1);
  if (!starts)
    return starts.takeError();
  auto fail = [&](const std::string &what) {
    return createStringError(file.name() + ": tensor '" + name + "': " + what);
  };
  if (starts->empty() || starts->front() != 0)
    return fail("expected 0 first");
  for (size_t i = 1; i < starts->size(); ++i)
    if ((*starts)[i] < (*starts)[i - 1])
      return fail(formatv("element {0} is {1}, less than the {2} before it", i,
                          (*starts)[i], (*starts)[i - 1]));
  if (starts->back() != total)
    return fail(formatv("ends with {0}, expected the {1} rows there are",
                        starts->back(), total));
  return starts;
}

/// `values` as elements of `dtype`, rounded to nearest even.
std::vector<uint8_t> rounded(const std::vector<float> &values, int32_t dtype) {
  std::vector<double> wide(values.begin(), values.end());
  std::vector<uint8_t> result(values.size() * reference::elementBytes(dtype));
  reference::storeRow(result.data(), dtype, 0, int64_t(wide.size()),
                      wide.data());
  return result;
}

} // namespace

Expected<TensorCase> TensorCase::read(StringRef path) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  TensorCase result;
  const Tensor *tensors[3];
  std::vector<float> *values[3] = {&result.q, &result.k, &result.v};
  const char *names[3] = {"q", "k", "v"};
  for (int i = 0; i < 3; ++i) {
    Expected<const Tensor *> tensor = file->get(names[i], 3);
    if (!tensor)
      return tensor.takeError();
    tensors[i] = *tensor;
    for (int64_t extent : drop_begin(tensors[i]->shape))
      if (extent < 1)
        return createStringError(file->name() + ": tensor '" + names[i] +
                                 "' is " + tensors[i]->text() +
                                 ", expected at least one head and dimension");
    Expected<std::vector<float>> data = file->floats(names[i], 3);
    if (!data)
      return data.takeError();
    *values[i] = std::move(*data);
  }
  const std::vector<int64_t> &q = tensors[0]->shape, &k = tensors[1]->shape,
                             &v = tensors[2]->shape;
  auto mismatch = [&](const char *what, int a, int b) {
    return createStringError(file->name() + ": '" + names[a] + "' is " +
                             tensors[a]->text() + " and '" + names[b] +
                             "' is " + tensors[b]->text() + ", " + what);
  };
  if (k[0] != v[0] || k[1] != v[1])
    return mismatch("expected the same tokens and heads", 1, 2);
  if (q[2] != k[2])
    return mismatch("expected the same head dim", 0, 1);
  if (q[1] % k[1])
    return mismatch("expected a whole number of q heads per kv head", 0, 1);
  result.shape = {file->name(), q[1], k[1], q[2], v[2]};

  for (auto [name, rows, starts] :
       {std::tuple{"cu_seqlens_q", q[0], &result.qStarts},
        std::tuple{"cu_seqlens_k", k[0], &result.kvStarts}}) {
    if (rows > INT32_MAX)
      return createStringError(formatv("{0}: {1} rows are too many, at most "
                                       "{2}",
                                       file->name(), rows, INT32_MAX));
    Expected<std::vector<int64_t>> values = readStarts(*file, name, rows);
    if (!values)
      return values.takeError();
    *starts = std::move(*values);
  }
  if (result.qStarts.size() != result.kvStarts.size())
    return createStringError(formatv(
        "{0}: cu_seqlens_q names {1} sequences, cu_seqlens_k {2}", file->name(),
        result.qStarts.size() - 1, result.kvStarts.size() - 1));
  return result;
}

TensorResult runTensors(const AttentionSpec &spec, const KernelSet &kernels,
                        const TensorCase &input, int threads, uint64_t seed,
                        bool verify, const ModInputs *mods, Device *device) {
  int64_t count = int64_t(input.qStarts.size()) - 1;
  int64_t rows = input.qStarts.back();
  EngineOptions options;
  options.maxSequences = std::max<int32_t>(int32_t(count), 1);
  options.threads = threads;
  options.seed = seed;
  options.device = device;
  int64_t blocks = 1; // one that nobody takes
  for (int64_t s = 0; s < count; ++s) {
    int64_t length = input.kvStarts[s + 1] - input.kvStarts[s];
    blocks += (length + spec.blockSize - 1) / spec.blockSize;
    options.maxTokens = std::max(options.maxTokens, int32_t(length));
  }
  options.blocks = int32_t(blocks + blocks / 4);

  Engine engine(spec, kernels, options);
  TensorResult result;
  Phase phase;
  phase.name = "step";
  phase.steps = 1;
  phase.tokens = rows;
  std::vector<SeqId> ids;
  std::vector<int32_t> qLens;
  std::vector<ContiguousSequence> flat;
  pagoda_kv_view k = engine.pool().k(), v = engine.pool().v();
  int32_t qType = int32_t(spec.qType), kvType = int32_t(spec.kvType);
  std::vector<uint8_t> q = rounded(input.q, qType),
                       flatK = rounded(input.k, kvType),
                       flatV = rounded(input.v, kvType);
  size_t element = reference::elementBytes(kvType);
  auto copyRow = [&](const std::vector<uint8_t> &from, int64_t row, int64_t dim,
                     const pagoda_kv_view &to, int64_t offset) {
    std::memcpy(static_cast<uint8_t *>(to.base) + offset * int64_t(element),
                from.data() + row * dim * int64_t(element),
                size_t(dim) * element);
  };
  for (int64_t s = 0; s < count; ++s) {
    int64_t length = input.kvStarts[s + 1] - input.kvStarts[s];
    int64_t queries = input.qStarts[s + 1] - input.qStarts[s];
    ids.push_back(engine.sequences().add());
    qLens.push_back(int32_t(queries));
    if (length)
      engine.append(ids.back(), int32_t(length));
    for (int64_t t = 0; t < length; ++t)
      for (int64_t h = 0; h < spec.kvHeads; ++h) {
        int64_t from = (input.kvStarts[s] + t) * spec.kvHeads + h;
        copyRow(flatK, from, spec.headDim, k,
                engine.keyOffset(ids.back(), int32_t(t)) + h * k.head_stride);
        copyRow(flatV, from, spec.vHeadDim, v,
                engine.valueOffset(ids.back(), int32_t(t)) + h * v.head_stride);
      }
    flat.push_back({input.qStarts[s], queries, input.kvStarts[s], length});
    phase.add(spec, queries, length, 1);
  }

  int64_t outputs = rows * spec.qHeads * spec.vHeadDim;
  std::vector<uint8_t> o(size_t(outputs) * reference::elementBytes(qType));
  reference::fillNaN(o.data(), qType, outputs);
  result.lse.assign(rows * spec.qHeads, NAN);
  pagoda_attention_args args =
      denseRows(spec, q.data(), o.data(), result.lse.data());
  if (mods)
    mods->attach(args);
  phase.planSeconds = engine.plan(ids, qLens);
  phase.runSeconds = engine.run(0, args);
  std::vector<double> values(outputs);
  reference::loadRow(o.data(), qType, 0, outputs, values.data());
  result.o.assign(values.begin(), values.end());
  result.phases.push_back(phase);
  result.blocks = options.blocks;
  result.peakBlocks = blocks - 1;
  result.poolBytes = double(engine.pool().bytes());
  result.verified = verify;
  if (verify)
    result.merge(verifyStep(spec, args, flatK.data(), flatV.data(), flat,
                            engine.threads(), mods),
                 "the step");
  return result;
}

llvm::Error writeTensors(StringRef path, const TensorResult &result,
                         const AttentionSpec &spec) {
  int64_t rows = int64_t(result.lse.size()) / spec.qHeads;
  auto bytes = [](const std::vector<float> &values) {
    return StringRef(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(float));
  };
  return writeSafetensors(
      path,
      {{"o", {"F32", {rows, spec.qHeads, spec.vHeadDim}, bytes(result.o)}},
       {"lse", {"F32", {rows, spec.qHeads}, bytes(result.lse)}}});
}

} // namespace pagoda
