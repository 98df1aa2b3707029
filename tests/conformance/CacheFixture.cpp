//===- CacheFixture.cpp - Pools and tokens for append and copy ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/CacheFixture.h"

#include "tests/reference/Element.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace pagoda::conformance {

//===----------------------------------------------------------------------===//
// The rotation, by its definition
//===----------------------------------------------------------------------===//

double referenceFrequency(const RopeConfig &rope, int64_t i, int64_t length) {
  double d = double(rope.rotaryDim),
         original = double(rope.originalMaxPosition);
  double plain = 1 / std::pow(rope.theta, 2 * double(i) / d);
  switch (rope.kind) {
  case RopeKind::None:
    return 0;
  case RopeKind::Default:
    return plain;
  case RopeKind::Linear:
    return plain / rope.factor;
  case RopeKind::Dynamic: {
    double longest = std::max(double(length), original);
    double base = rope.theta *
                  std::pow(rope.factor * longest / original - (rope.factor - 1),
                           d / (d - 2));
    return 1 / std::pow(base, 2 * double(i) / d);
  }
  case RopeKind::LongRope:
    return plain / (length > rope.originalMaxPosition ? rope.longFactor
                                                      : rope.shortFactor)[i];
  case RopeKind::Proportional:
    return double(i) < rope.rotatedFraction * d / 2 - 0.5 ? plain / rope.factor
                                                          : 0;
  case RopeKind::Llama3: {
    double wavelength = 2 * std::numbers::pi / plain;
    if (wavelength < original / rope.highFreqFactor)
      return plain;
    if (wavelength > original / rope.lowFreqFactor)
      return plain / rope.factor;
    double smooth = (original / wavelength - rope.lowFreqFactor) /
                    (rope.highFreqFactor - rope.lowFreqFactor);
    return (1 - smooth) * plain / rope.factor + smooth * plain;
  }
  case RopeKind::Yarn: {
    auto correction = [&](double rotations) {
      return d * std::log(original / (rotations * 2 * std::numbers::pi)) /
             (2 * std::log(rope.theta));
    };
    double low = correction(rope.betaFast), high = correction(rope.betaSlow);
    if (rope.truncate)
      low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, d - 1);
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    return plain / rope.factor * ramp + plain * (1 - ramp);
  }
  }
  return 0;
}

void NewTokens::rotate(const RopeConfig &rope, int64_t length,
                       const std::vector<int32_t> &at) {
  positions = at;
  int64_t half = rope.rotaryDim / 2;
  for (int64_t row = 0; row < count * spec.kvHeads; ++row)
    for (int64_t i = 0; i < half && rope.kind != RopeKind::None; ++i) {
      int64_t x = row * spec.headDim + (rope.interleaved ? 2 * i : i);
      int64_t y = x + (rope.interleaved ? 1 : half);
      double angle =
          positions[row / spec.kvHeads] * referenceFrequency(rope, i, length);
      double c = rope.attentionFactor * std::cos(angle);
      double s = rope.attentionFactor * std::sin(angle);
      double kx = k[x], ky = k[y];
      k[x] = kx * c - ky * s;
      k[y] = ky * c + kx * s;
      kScale[x] = kScale[y] =
          rope.attentionFactor * (std::abs(kx) + std::abs(ky));
    }
}

//===----------------------------------------------------------------------===//
// New tokens
//===----------------------------------------------------------------------===//

NewTokens::NewTokens(const AttentionSpec &spec, int64_t count, int64_t padding)
    : spec(spec), count(count), padding(padding), slots(count, -1),
      positions(count, 0) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  auto fill = [&](std::vector<uint8_t> &input, std::vector<double> &expected,
                  int64_t dim) {
    int64_t rows = count * spec.kvHeads, elements = rows * (dim + padding);
    int32_t dtype = int32_t(spec.qType);
    input.resize(elements * reference::elementBytes(dtype));
    reference::fillNaN(input.data(), dtype, elements);
    expected.resize(rows * dim);
    for (double &value : expected)
      value = normal(random);
    for (int64_t row = 0; row < rows; ++row) {
      double *values = expected.data() + row * dim;
      int64_t at = row * (dim + padding);
      reference::storeRow(input.data(), dtype, at, dim, values);
      reference::loadRow(input.data(), dtype, at, dim, values);
    }
  };
  fill(kInput, k, spec.headDim);
  fill(vInput, v, spec.vHeadDim);
  kScale.assign(k.size(), 0);
}

pagoda_append_args NewTokens::args(const CachePools &pools) const {
  pagoda_append_args args{};
  args.k_new = kInput.data();
  args.k_head_stride = spec.headDim + padding;
  args.k_token_stride = spec.kvHeads * args.k_head_stride;
  args.v_new = vInput.data();
  args.v_head_stride = spec.vHeadDim + padding;
  args.v_token_stride = spec.kvHeads * args.v_head_stride;
  args.k = pools.k();
  args.v = pools.v();
  args.slot_mapping = slots.data();
  args.positions = positions.data();
  return args;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// The bits of a quiet NaN that few other elements near have.
uint32_t CachePools::poison(int64_t index) const {
  uint32_t hash = uint32_t(index) * 2654435761u;
  if (spec.kvType == DType::F32)
    return 0x7fc00000u | hash >> 10;
  return spec.kvType == DType::F16 ? 0x7e00u | hash >> 23
                                   : 0x7fc0u | hash >> 26;
}

uint32_t CachePools::bits(int part, int64_t index) const {
  if (spec.kvType == DType::F32)
    return pools[part]->as<uint32_t>()[index];
  return pools[part]->as<uint16_t>()[index];
}

CachePools::CachePools(const AttentionSpec &spec, int64_t blocks,
                       int64_t padding)
    : spec(spec), blocks(blocks), dims{spec.headDim, spec.vHeadDim} {
  for (int part : {0, 1}) {
    int64_t row = dims[part] + (part ? padding : 0);
    bool nhd = spec.layout == KvLayout::NHD;
    pagoda_kv_view &view = views[part];
    view.head_stride = nhd ? row : row * spec.blockSize;
    view.token_stride = nhd ? row * spec.kvHeads : row;
    view.block_stride =
        row * spec.kvHeads * spec.blockSize + (part ? 0 : padding);
    int64_t elements = blocks * view.block_stride;
    pools[part] = std::make_unique<GuardedBuffer>(
        elements * reference::elementBytes(int32_t(spec.kvType)));
    view.base = pools[part]->data();
    for (int64_t i = 0; i < elements; ++i)
      if (spec.kvType == DType::F32)
        pools[part]->as<uint32_t>()[i] = poison(i);
      else
        pools[part]->as<uint16_t>()[i] = uint16_t(poison(i));
  }
}

int64_t CachePools::offset(int part, int64_t block, int64_t head,
                           int64_t slot) const {
  const pagoda_kv_view &view = views[part];
  return block * view.block_stride + head * view.head_stride +
         slot * view.token_stride;
}

void CachePools::expectUnchanged(int part,
                                 const std::vector<bool> &written) const {
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i])
      ASSERT_EQ(bits(part, int64_t(i)), poison(int64_t(i)))
          << (part ? "v" : "k") << " element " << i << " was changed";
}

/// How far a cache element may be from `want`. Tables, one product and the sum
/// are rounded to f32: three halves of an epsilon of the pair. Then the cache's
/// type rounds what rotated or had another type. All else is exact.
static double bound(const AttentionSpec &spec, double want, double scale) {
  double f32 = 1.5 * std::numeric_limits<float>::epsilon() * scale;
  if (spec.kvType == DType::F32 || (scale == 0 && spec.kvType == spec.qType))
    return f32;
  double subnormal = spec.kvType == DType::F16 ? std::ldexp(1.0, -25) : 0;
  double half = reference::epsilon(int32_t(spec.kvType)) / 2;
  return f32 + std::max(half * (std::abs(want) + f32), subnormal);
}

void CachePools::expectWritten(const NewTokens &tokens) const {
  for (int part : {0, 1}) {
    std::vector<bool> written(blocks * views[part].block_stride);
    for (int64_t t = 0; t < tokens.count; ++t) {
      int64_t slot = tokens.slots[t];
      if (slot < 0 || slot >= blocks * spec.blockSize)
        continue;
      for (int64_t h = 0; h < spec.kvHeads; ++h)
        for (int64_t d = 0; d < dims[part]; ++d) {
          int64_t from = (t * spec.kvHeads + h) * dims[part] + d;
          int64_t at =
              offset(part, slot / spec.blockSize, h, slot % spec.blockSize) + d;
          written[at] = true;
          double got, want = (part ? tokens.v : tokens.k)[from];
          reference::loadRow(pools[part]->data(), int32_t(spec.kvType), at, 1,
                             &got);
          ASSERT_NEAR(got, want,
                      bound(spec, want, part ? 0 : tokens.kScale[from]))
              << (part ? "v" : "k") << " of token " << t << ", head " << h
              << ", dim " << d;
        }
    }
    expectUnchanged(part, written);
  }
}

void CachePools::expectCopied(
    const std::vector<pagoda_block_copy> &copies) const {
  for (int part : {0, 1}) {
    std::vector<bool> written(blocks * views[part].block_stride);
    for (const pagoda_block_copy &copy : copies) {
      if (copy.src < 0 || copy.dst < 0)
        continue;
      for (int64_t h = 0; h < spec.kvHeads; ++h)
        for (int64_t s = 0; s < spec.blockSize; ++s)
          for (int64_t d = 0; d < dims[part]; ++d) {
            int64_t at = offset(part, copy.dst, h, s) + d;
            written[at] = true;
            ASSERT_EQ(bits(part, at), poison(offset(part, copy.src, h, s) + d))
                << (part ? "v" : "k") << " of block " << copy.dst << ", head "
                << h << ", slot " << s << ", dim " << d;
          }
    }
    expectUnchanged(part, written);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::string describeCache(const AttentionSpec &spec) {
  return std::to_string(spec.kvHeads) + " heads of " +
         std::to_string(spec.headDim) + " and " +
         std::to_string(spec.vHeadDim) + ", block " +
         std::to_string(spec.blockSize) +
         (spec.layout == KvLayout::NHD ? " nhd" : " hnd") + ", rotary dim " +
         std::to_string(spec.rotaryDim) +
         (spec.ropeInterleaved ? " interleaved" : "") + ", " +
         dtypeName(int32_t(spec.qType)) + " into " +
         dtypeName(int32_t(spec.kvType));
}

AttentionSpec CacheTest::shape(int64_t heads, int64_t kDim, int64_t vDim,
                               int64_t block) {
  AttentionSpec spec;
  spec.qHeads = spec.kvHeads = heads;
  spec.headDim = kDim;
  spec.vHeadDim = vDim;
  spec.blockSize = block;
  spec.scale = 1;
  return spec;
}

std::map<std::string, CacheTest::Entry> &CacheTest::libraries() {
  static std::map<std::string, Entry> instance;
  return instance;
}

const KernelSet &CacheTest::kernels(const AttentionSpec &spec) {
  Entry &entry = libraries()[describeCache(spec)];
  if (!entry.code) {
    CompileOptions options;
    options.cacheOnly = true;
    auto code = JitLibrary::compile({spec}, options);
    if (!code)
      throw Error(ErrorCode::InvalidArgument, llvm::toString(code.takeError()));
    entry.code = std::move(*code);
    KernelLibrary library = KernelLibrary::wrap(entry.code->info());
    entry.set.append = library.find("attention_append");
    entry.set.copy = library.find("attention_copy");
    for (const pagoda_kernel_info *kernel : {entry.set.append, entry.set.copy})
      if (!kernel || !mismatch(*kernel, kernelSpecOf(spec)).empty())
        throw Error(ErrorCode::Mismatch, "a kernel is missing or of another "
                                         "shape");
  }
  return entry.set;
}

} // namespace pagoda::conformance
