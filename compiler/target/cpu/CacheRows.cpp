//===- CacheRows.cpp - Rows of the cache, copied and rotated --------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/target/cpu/CacheRows.h"
#include "compiler/target/cpu/NarrowFloat.h"

using namespace mlir;
using namespace pagoda;

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// `width` elements of `row` from `index` on.
Value CacheRows::load(Value row, Value index, Type element, int64_t width) {
  return b.load(VectorType::get({width}, storedAs(element)),
                b.at(row, b.mul(index, bytesOf(element))), bytesOf(element));
}

void CacheRows::store(Value vector, Value row, Value index) {
  int64_t size = bytesOf(cast<VectorType>(vector.getType()).getElementType());
  b.store(vector, b.at(row, b.mul(index, size)), size);
}

void CacheRows::copy(Value from, Value to, int64_t begin, int64_t end) {
  Type read = source, write = target;
  if (source == target) // bits are bits: no float can be changed on the way
    read = write = b.getIntegerType(source.getIntOrFloatBitWidth());
  int64_t bits =
      std::max(read.getIntOrFloatBitWidth(), write.getIntOrFloatBitWidth());
  b.forPieces(begin, end, vectorBits / bits, [&](Value index, int64_t width) {
    store(convertFloat(b, load(from, index, read, width), read, write), to,
          index);
  });
}

void CacheRows::rotate(Value from, Value to, Value cos, Value sin,
                       int64_t rotaryDim, bool interleaved) {
  Type f32 = b.getF32Type();
  int64_t half = rotaryDim / 2;
  b.forPieces(0, half, vectorBits / 32, [&](Value index, int64_t width) {
    auto read = [&](Value at, int64_t count) {
      return convertFloat(b, load(from, at, source, count), source, f32);
    };
    Value x, y, xAt = index, yAt = b.add(index, half);
    if (interleaved) {
      xAt = b.mul(index, 2);
      auto pairs = vector::DeinterleaveOp::create(b, read(xAt, 2 * width));
      x = pairs.getRes1();
      y = pairs.getRes2();
    } else {
      x = read(xAt, width);
      y = read(yAt, width);
    }
    Value c = load(cos, index, f32, width), s = load(sin, index, f32, width);
    Value newX = b.fma(x, c, b.negf(b.mulf(y, s)));
    Value newY = b.fma(y, c, b.mulf(x, s));
    if (interleaved) {
      Value pairs = vector::InterleaveOp::create(b, newX, newY);
      store(convertFloat(b, pairs, f32, target), to, xAt);
    } else {
      store(convertFloat(b, newX, f32, target), to, xAt);
      store(convertFloat(b, newY, f32, target), to, yAt);
    }
  });
}
