//===- Data.cpp - Memory for a conformance case ---------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places, poisons and fills the tensors of a case.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/Data.h"

#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

namespace pagoda::conformance {

using reference::elementBytes;
using reference::loadRow;
using reference::storeRow;

namespace {

void fill(void *base, int32_t dtype, int64_t n, double value) {
  constexpr int64_t Chunk = 1024;
  std::vector<double> values(Chunk, value);
  for (int64_t i = 0; i < n; i += Chunk)
    storeRow(base, dtype, i, std::min(Chunk, n - i), values.data());
}

double poisonValue(Poison poison, int32_t dtype) {
  if (dtype == PAGODA_I8)
    return 127; // no NaN to be had; scores this large cannot be missed
  return poison == Poison::NaN ? std::nan("")
                               : std::numeric_limits<double>::infinity();
}

uint64_t hashBytes(uint64_t hash, const GuardedBuffer &buffer) {
  // FNV-1a on words; the tail by bytes.
  const uint8_t *bytes = buffer.as<uint8_t>();
  size_t i = 0;
  for (; i + 8 <= buffer.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  for (; i < buffer.size(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

} // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) : bytes(bytes) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  size_t inner = (bytes + page - 1) / page * page;
  mapped = inner + 2 * page;
  void *memory = mmap(nullptr, mapped, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED ||
      (inner && mprotect(static_cast<std::byte *>(memory) + page, inner,
                         PROT_READ | PROT_WRITE)))
    throw std::bad_alloc();
  mapping = static_cast<std::byte *>(memory);
  start = mapping + page + inner - bytes;
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping, mapped); }

CaseData::CaseData(const Case &theCase) : c(theCase) {
  const AttentionSpec &spec = c.spec;
  reference::Shape &shape = problem.shape;
  shape.qHeads = spec.qHeads;
  shape.kvHeads = spec.kvHeads;
  shape.headDim = spec.headDim;
  shape.vHeadDim = spec.vHeadDim;
  shape.blockSize = spec.blockSize;
  shape.qType = int32_t(spec.qType);
  shape.kvType = int32_t(spec.kvType);
  shape.features = (spec.causal ? PAGODA_FEATURE_CAUSAL : 0) |
                   (spec.window ? PAGODA_FEATURE_WINDOW : 0) |
                   (spec.chunk ? PAGODA_FEATURE_CHUNK : 0) |
                   (spec.softcap ? PAGODA_FEATURE_SOFTCAP : 0) |
                   (spec.sinks ? PAGODA_FEATURE_SINKS : 0) |
                   (spec.prefixLm ? PAGODA_FEATURE_PREFIX_LM : 0) |
                   (spec.alibiSlopes.empty() ? 0 : PAGODA_FEATURE_ALIBI);
  problem.args = &args;
  args.scale = float(spec.scale);
  args.window = int32_t(spec.window.value_or(0));
  args.chunk = int32_t(spec.chunk.value_or(0));
  args.softcap = float(spec.softcap.value_or(0));
  args.alibi_slopes = c.spec.alibiSlopes.data();

  for (const Length &length : c.lengths) {
    problem.sequences.push_back(
        {totalRows, length.q, length.kv, int64_t(problem.sequences.size())});
    totalRows += length.q;
  }

  // Queries and outputs [rows, q_heads, dim], both strides padded.
  size_t qBytes = elementBytes(shape.qType);
  args.q_head_stride = shape.headDim + c.padding;
  args.q_token_stride = shape.qHeads * args.q_head_stride + 3 * c.padding;
  args.o_head_stride = shape.vHeadDim + 2 * c.padding;
  args.o_token_stride = shape.qHeads * args.o_head_stride + c.padding;
  args.lse_head_stride = 1;
  args.lse_token_stride = shape.qHeads + c.padding;
  q = std::make_unique<GuardedBuffer>(totalRows * args.q_token_stride * qBytes);
  o = std::make_unique<GuardedBuffer>(
      (totalRows * args.o_token_stride + 2 * GuardElements) * qBytes);
  lse = std::make_unique<GuardedBuffer>(
      (totalRows * args.lse_token_stride + 2 * GuardElements) * sizeof(float));
  args.q = q->data();
  args.o = o->as<std::byte>() + GuardElements * qBytes;
  args.lse = lse->as<float>() + GuardElements;

  makeTables(c.seed);

  // Pools. K is dense; V has padding where K has none.
  auto view = [&](int64_t dim, int64_t padding) {
    pagoda_kv_view result{};
    if (spec.layout == KvLayout::NHD) {
      result.head_stride = dim;
      result.token_stride = spec.kvHeads * dim + padding;
      result.block_stride = spec.blockSize * result.token_stride;
    } else {
      result.token_stride = dim;
      result.head_stride = spec.blockSize * dim;
      result.block_stride = spec.kvHeads * result.head_stride + padding;
    }
    return result;
  };
  args.k = view(shape.headDim, 0);
  args.v = view(shape.vHeadDim, c.padding);
  size_t kvBytes = elementBytes(shape.kvType);
  k = std::make_unique<GuardedBuffer>(physicalBlocks * args.k.block_stride *
                                      kvBytes);
  v = std::make_unique<GuardedBuffer>(physicalBlocks * args.v.block_stride *
                                      kvBytes);
  args.k.base = k->data();
  args.v.base = v->data();

  sinks = std::make_unique<GuardedBuffer>(shape.qHeads * sizeof(float));
  args.sinks = sinks->as<float>();
  prefixes =
      std::make_unique<GuardedBuffer>(c.lengths.size() * sizeof(int32_t));
  args.prefix_lens = prefixes->as<int32_t>();
  writeValues();
  letGo();
  sealInputs();
  resetOutputs();
}

void CaseData::makeTables(uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t needed = 0, widest = 0;
  auto blocksOf = [&](const Length &length) {
    return (length.kv + c.spec.blockSize - 1) / c.spec.blockSize;
  };
  for (const Length &length : c.lengths) {
    needed += blocksOf(length);
    widest = std::max(widest, blocksOf(length));
  }
  // Block 0 is nobody's; so is about every second one.
  physicalBlocks = 2 * needed + 3;
  std::vector<int32_t> ids(physicalBlocks - 1);
  std::iota(ids.begin(), ids.end(), 1);
  std::shuffle(ids.begin(), ids.end(), random);

  // A row has up to two entries too many: the first names a block of poison
  // (a block allocated ahead), the rest are -1, as are all of an empty
  // sequence's.
  int64_t stride = std::max<int64_t>(widest + int64_t(seed % 3), 1);
  table = std::make_unique<GuardedBuffer>(c.lengths.size() * stride *
                                          sizeof(int32_t));
  args.block_table = table->as<int32_t>();
  args.block_table_stride = stride;
  std::fill_n(table->as<int32_t>(), c.lengths.size() * stride, -1);
  size_t next = 0;
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    int32_t *row = table->as<int32_t>() + s * stride;
    int64_t count = blocksOf(c.lengths[s]);
    for (int64_t b = 0; b < count; ++b)
      row[b] = ids[next++];
    if (count > 0 && count < stride)
      row[count] = ids[physicalBlocks - 2];
  }
}

/// Blocks that no query of a sequence sees have been let go of: they are
/// somebody else's, and the table says -1 (PagedKV::releaseWindow).
void CaseData::letGo() {
  if ((!c.spec.window && !c.spec.chunk) || c.spec.prefixLm)
    return;
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    const Length &length = c.lengths[s];
    if (length.q == 0)
      continue;
    int64_t query = length.kv - length.q, first = 0; // what the first one sees
    if (c.spec.window)
      first = std::max(first, query - *c.spec.window + 1);
    if (c.spec.chunk)
      first = std::max(first, query / *c.spec.chunk * *c.spec.chunk);
    int64_t gone = first / c.spec.blockSize;
    std::vector<double> row(
        std::max(problem.shape.headDim, problem.shape.vHeadDim),
        poisonValue(c.poison, problem.shape.kvType));
    for (int64_t t = 0; t < gone * c.spec.blockSize; ++t)
      for (int64_t h = 0; h < problem.shape.kvHeads; ++h) {
        storeRow(k->data(), problem.shape.kvType, offsetOf(args.k, s, t, h),
                 problem.shape.headDim, row.data());
        storeRow(v->data(), problem.shape.kvType, offsetOf(args.v, s, t, h),
                 problem.shape.vHeadDim, row.data());
      }
    std::fill_n(table->as<int32_t>() + s * args.block_table_stride, gone, -1);
  }
}

void CaseData::writeValues() {
  const reference::Shape &shape = problem.shape;
  double poison = poisonValue(c.poison, shape.kvType);
  fill(k->data(), shape.kvType, k->size() / elementBytes(shape.kvType), poison);
  fill(v->data(), shape.kvType, v->size() / elementBytes(shape.kvType), poison);
  fill(q->data(), shape.qType, q->size() / elementBytes(shape.qType),
       poisonValue(c.poison, shape.qType));

  std::mt19937_64 random(c.seed + 0x5eed);
  std::normal_distribution<double> normal;
  auto draw = [&](std::vector<double> &row, size_t from = 0) {
    std::fill(row.begin(), row.end(), 0);
    for (size_t i = from; i < row.size(); ++i)
      row[i] = normal(random);
  };
  int64_t dim = shape.headDim, vDim = shape.vHeadDim;
  size_t firstLane =
      c.values == Values::LastLanes ? size_t(std::max<int64_t>(dim - 3, 0)) : 0;
  std::vector<double> row(dim), vRow(vDim);
  for (int64_t s = 0; s < int64_t(c.lengths.size()); ++s) {
    const reference::Sequence &sequence = problem.sequences[s];
    for (int64_t t = 0; t < sequence.qLen; ++t)
      for (int64_t h = 0; h < shape.qHeads; ++h) {
        draw(row, firstLane);
        if (c.values == Values::LowScores)
          std::fill(row.begin(), row.end(), 1);
        storeRow(q->data(), shape.qType,
                 (sequence.qBegin + t) * args.q_token_stride +
                     h * args.q_head_stride,
                 dim, row.data());
      }
    for (int64_t t = 0; t < sequence.kvLen; ++t)
      for (int64_t h = 0; h < shape.kvHeads; ++h) {
        draw(row, firstLane);
        draw(vRow);
        if (c.values == Values::LowScores)
          std::fill(row.begin(), row.end(), -10 / (args.scale * double(dim)));
        if (c.values == Values::Peaks && random() % 8 == 0)
          for (double &value : row)
            value *= 64;
        if (c.values == Values::OneHot) {
          std::fill(vRow.begin(), vRow.end(), 0);
          vRow[t % vDim] = 1;
        }
        if (c.values == Values::HeadIndex)
          std::fill(vRow.begin(), vRow.end(), double(h));
        if (c.values == Values::Tiny)
          for (double &value : vRow)
            value = std::ldexp(value, shape.qType == PAGODA_F16 ? -14 : -126);
        storeRow(k->data(), shape.kvType, offsetOf(args.k, s, t, h), dim,
                 row.data());
        storeRow(v->data(), shape.kvType, offsetOf(args.v, s, t, h), vDim,
                 vRow.data());
      }
  }
  for (int64_t h = 0; h < shape.qHeads; ++h)
    sinks->as<float>()[h] = float(normal(random));
  // None, part, all and more than the sequence.
  for (size_t s = 0; s < c.lengths.size(); ++s)
    prefixes->as<int32_t>()[s] =
        int32_t(random() % uint64_t(c.lengths[s].kv + 3));
}

int64_t CaseData::offsetOf(const pagoda_kv_view &view, int64_t s, int64_t t,
                           int64_t h) const {
  int64_t block =
      args.block_table[s * args.block_table_stride + t / c.spec.blockSize];
  return block * view.block_stride + h * view.head_stride +
         t % c.spec.blockSize * view.token_stride;
}

void CaseData::resetOutputs() {
  int32_t dtype = problem.shape.qType;
  fill(o->data(), dtype, o->size() / elementBytes(dtype), Sentinel);
  fill(lse->data(), PAGODA_F32, lse->size() / sizeof(float), Sentinel);
}

uint64_t CaseData::inputHash() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto *buffer : {&q, &k, &v, &table, &sinks, &prefixes})
    hash = hashBytes(hash, **buffer);
  return hash;
}

void CaseData::sealInputs() { sealed = inputHash(); }

std::string CaseData::damage() const {
  if (inputHash() != sealed)
    return "an input (q, k, v, block table, sinks or prefixes) was written to";
  const reference::Shape &shape = problem.shape;
  auto scan = [](const char *name, const GuardedBuffer &buffer, int32_t dtype,
                 int64_t rowCount, int64_t tokenStride, int64_t heads,
                 int64_t headStride, int64_t dim) -> std::string {
    int64_t total = int64_t(buffer.size() / elementBytes(dtype));
    std::vector<double> values(total);
    loadRow(buffer.data(), dtype, 0, total, values.data());
    double expected = Sentinel;
    std::vector<uint8_t> bits(elementBytes(dtype));
    storeRow(bits.data(), dtype, 0, 1, &expected); // as rounded by the type
    loadRow(bits.data(), dtype, 0, 1, &expected);
    for (int64_t i = 0; i < total; ++i) {
      int64_t at = i - GuardElements;
      int64_t inToken = at >= 0 ? at % tokenStride : 0;
      bool isData = at >= 0 && at < rowCount * tokenStride &&
                    inToken < heads * headStride && inToken % headStride < dim;
      if (!isData && values[i] != expected)
        return std::string(name) + " element " + std::to_string(at) +
               ", outside every row, was overwritten with " +
               std::to_string(values[i]);
    }
    return "";
  };
  std::string result =
      scan("o", *o, shape.qType, totalRows, args.o_token_stride, shape.qHeads,
           args.o_head_stride, shape.vHeadDim);
  if (result.empty())
    result = scan("lse", *lse, PAGODA_F32, totalRows, args.lse_token_stride,
                  shape.qHeads, 1, 1);
  return result;
}

std::vector<int32_t> CaseData::qLens() const {
  std::vector<int32_t> result;
  for (const Length &length : c.lengths)
    result.push_back(int32_t(length.q));
  return result;
}

std::vector<int32_t> CaseData::kvLens() const {
  std::vector<int32_t> result;
  for (const Length &length : c.lengths)
    result.push_back(int32_t(length.kv));
  return result;
}

float *CaseData::keyRow(int64_t s, int64_t t, int64_t h) {
  return k->as<float>() + offsetOf(args.k, s, t, h);
}

float *CaseData::valueRow(int64_t s, int64_t t, int64_t h) {
  return v->as<float>() + offsetOf(args.v, s, t, h);
}

float *CaseData::queryRow(int64_t s, int64_t t, int64_t h) {
  return q->as<float>() +
         (problem.sequences[s].qBegin + t) * args.q_token_stride +
         h * args.q_head_stride;
}

const float *CaseData::outputRow(int64_t s, int64_t t, int64_t h) const {
  return static_cast<const float *>(args.o) +
         (problem.sequences[s].qBegin + t) * args.o_token_stride +
         h * args.o_head_stride;
}

const float *CaseData::lseSlot(int64_t s, int64_t t, int64_t h) const {
  return args.lse + (problem.sequences[s].qBegin + t) * args.lse_token_stride +
         h * args.lse_head_stride;
}

void CaseData::forEachTensor(
    const std::function<void(const void *, size_t)> &body) const {
  for (const auto *buffer : {&q, &k, &v, &o, &lse, &table})
    body((*buffer)->data(), (*buffer)->size());
}

} // namespace pagoda::conformance
