//===- ModsTest.cpp - A user's mask, score and range functions ------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the examples of tests/mods into kernels and compares them with the
// oracle, which asks an evaluator of the same text. Auxiliary tensors are
// guarded: a read outside of one faults.
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/NamedFixture.h"

#include "compiler/import/ModEvaluator.h"
#include "llvm/Support/MemoryBuffer.h"

#include <array>
#include <functional>
#include <random>

using namespace pagoda;
using namespace pagoda::conformance;

namespace {

std::string example(const std::string &name) {
  auto text = llvm::MemoryBuffer::getFile(PAGODA_MODS_DIR "/" + name + ".mlir");
  EXPECT_TRUE(bool(text)) << name;
  return text ? (*text)->getBuffer().str() : "";
}

/// Auxiliary tensors of 4-byte elements, dense.
struct AuxTensors {
  std::vector<pagoda_aux_tensor> records;
  std::vector<std::unique_ptr<GuardedBuffer>> memory;

  template <typename T>
  void add(std::vector<int64_t> shape,
           const std::function<T(int64_t, int64_t)> &element) {
    int64_t columns = shape.size() == 2 ? shape[1] : 1;
    memory.push_back(
        std::make_unique<GuardedBuffer>(size_t(shape[0] * columns * 4)));
    T *data = memory.back()->as<T>();
    for (int64_t i = 0; i < shape[0] * columns; ++i)
      data[i] = element(i / columns, i % columns);
    pagoda_aux_tensor record{};
    record.data = data;
    record.dtype =
        std::is_same_v<T, float> ? int32_t(PAGODA_F32) : PAGODA_AUX_I32;
    record.rank = int32_t(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      record.shape[d] = shape[d];
      record.strides[d] = d + 1 == shape.size() ? 1 : columns;
    }
    records.push_back(record);
  }
};

class Mods : public NamedTest {
protected:
  /// Runs `c` with `text` under every plan and layout.
  void checkMods(Case c, const std::string &text, const AuxTensors &aux) {
    c.mods = text;
    auto evaluator = ModEvaluator::create(text, c.name);
    ASSERT_TRUE(bool(evaluator)) << llvm::toString(evaluator.takeError());
    (*evaluator)->bind(aux.records.data());
    ASSERT_EQ((*evaluator)->aux().size(), aux.records.size());
    for (KvLayout layout : {KvLayout::HND, KvLayout::NHD})
      for (int64_t splits : {0, 1, 3})
        for (int kernel : {0, 1}) {
          c.spec.layout = layout;
          c.splits = splits;
          c.kernel = kernel;
          CaseData data(c);
          data.args.aux = aux.records.data();
          data.args.aux_count = int32_t(aux.records.size());
          data.problem.maskMod = [&](auto... position) {
            return (*evaluator)->mask(position...);
          };
          data.problem.scoreMod = [&](double score, auto... position) {
            return (*evaluator)->score(score, position...);
          };
          check(c, data);
        }
  }
};

TEST_F(Mods, TreeMaskOfSpeculatedTokens) {
  constexpr int64_t drafts = 7;
  Case c = makeCase("tree", {{drafts, 100}, {drafts, 47}, {drafts, drafts}});
  AuxTensors aux;
  aux.add<int32_t>({drafts, drafts}, [](int64_t i, int64_t j) {
    while (i > j)
      i = (i - 1) / 2; // a binary tree
    return int32_t(i == j);
  });
  aux.add<int32_t>({3}, [](int64_t s, int64_t) {
    return std::array<int32_t, 3>{93, 40, 0}[s];
  });
  checkMods(c, example("tree_mask"), aux);
}

TEST_F(Mods, DocumentsOfOneSequence) {
  Case c = makeCase("documents", {{250, 250}, {33, 90}, {1, 200}, {0, 4}});
  auto documentOf = [](int64_t s, int64_t position) {
    return int32_t(position / (30 + 17 * s));
  };
  AuxTensors aux;
  // The order in which the functions name them.
  aux.add<int32_t>({4, 250}, documentOf);
  aux.add<int32_t>({4, 250}, [&](int64_t s, int64_t position) {
    return int32_t(position / (30 + 17 * s) * (30 + 17 * s));
  });
  checkMods(c, example("documents"), aux);
}

TEST_F(Mods, RelativeBias) {
  Case c = makeCase("bias", {{130, 130}, {1, 300}, {5, 37}});
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  AuxTensors aux;
  aux.add<float>({4, 300}, [&](int64_t, int64_t) { return normal(random); });
  checkMods(c, example("relative_bias"), aux);
}

// A score function may hide keys by itself, and features of the op come on top:
// the soft cap and the sinks see the function's score.
TEST_F(Mods, ScoreOfMinusInfinityHidesAKey) {
  Case c = makeCase("hidden", {{40, 40}, {1, 70}});
  c.spec.window = 20;
  c.spec.sinks = true;
  checkMods(c, R"(
    func.func @score_mod(%score: f32, %seq: i32, %head: i32, %q: i32, %kv: i32)
        -> f32 {
      %three = arith.constant 3 : i32
      %rest = arith.remsi %kv, %three : i32
      %zero = arith.constant 0 : i32
      %third = arith.cmpi eq, %rest, %zero : i32
      %lowest = arith.constant 0xFF800000 : f32
      %size = math.absf %score : f32
      %root = math.sqrt %size : f32
      %power = math.exp %root : f32
      %used = arith.select %third, %lowest, %power : f32
      return %used : f32
    })",
            {});
}

// What a mask hides the range may skip, and must not make a difference.
TEST_F(Mods, WindowWrittenByHand) {
  Case c = makeCase("window", {{90, 90}, {1, 200}, {7, 33}});
  checkMods(c, R"(
    func.func @mask_mod(%seq: i32, %head: i32, %q: i32, %kv: i32) -> i1 {
      %distance = arith.subi %q, %kv : i32
      %window = arith.constant 20 : i32
      %near = arith.cmpi slt, %distance, %window : i32
      return %near : i1
    }
    func.func @kv_range(%seq: i32, %lo: i32, %hi: i32) -> (i32, i32, i32, i32) {
      %past = arith.constant 19 : i32
      %first = arith.subi %lo, %past : i32
      %full = arith.subi %hi, %past : i32
      %most = arith.constant 2147483647 : i32
      return %first, %full, %most, %most : i32, i32, i32, i32
    })",
            {});
}

// Later rows see fewer keys; causal ones more, then fewer.
TEST_F(Mods, RangeThatEndsEarlierTheLaterTheRow) {
  for (bool causal : {false, true}) {
    Case c = makeCase("shrinking", {{150, 150}, {1, 120}, {20, 90}});
    c.spec.causal = causal;
    checkMods(c, R"(
      func.func @mask_mod(%seq: i32, %head: i32, %q: i32, %kv: i32) -> i1 {
        %sum = arith.addi %q, %kv : i32
        %most = arith.constant 150 : i32
        %before = arith.cmpi slt, %sum, %most : i32
        return %before : i1
      }
      func.func @kv_range(%seq: i32, %lo: i32, %hi: i32)
          -> (i32, i32, i32, i32) {
        %zero = arith.constant 0 : i32
        %most = arith.constant 150 : i32
        %full = arith.subi %most, %hi : i32
        %end = arith.subi %most, %lo : i32
        return %zero, %zero, %full, %end : i32, i32, i32, i32
      })",
              {});
  }
}

TEST_F(Mods, RefusalsNameFileAndLine) {
  auto error = [](const char *text) {
    auto result = ModEvaluator::create(text, "my.mlir");
    return result ? std::string() : llvm::toString(result.takeError());
  };
  EXPECT_EQ(error("func.func @mask() { return }"),
            "my.mlir:1:1: is no function that attention knows, expected "
            "kv_range, mask_mod or score_mod, got mask");
  EXPECT_EQ(error("func.func private @mask_mod(i32, i32, i32, i32) -> i1"),
            "my.mlir:1:1: must have a body of one block: no calls, loops or "
            "branches");
  EXPECT_EQ(error("func.func @mask_mod(%a: i32) -> i1 {\n"
                  "  %c = arith.constant true\n  return %c : i1\n}"),
            "my.mlir:1:1: must be ('i32', 'i32', 'i32', 'i32', tensors...) -> "
            "('i1'), got '(i32) -> i1'");
  EXPECT_EQ(error("func.func @score_mod(%s: f32, %a: i32, %b: i32, %c: i32, "
                  "%d: i32) -> f32 {\n  %x = math.sin %s : f32\n"
                  "  return %x : f32\n}"),
            "my.mlir:2:8: is not supported in a mask or score function");
  EXPECT_EQ(error("func.func @score_mod(%s: f32, %a: i32, %b: i32, %c: i32, "
                  "%d: i32, %t: tensor<?xf32>) -> f32 {\n"
                  "  return %s : f32\n}"),
            "my.mlir:1:1: argument 5 must have a name: {pagoda.aux = \"...\"}");
  EXPECT_EQ(error(""), "my.mlir:1:1: expected kv_range, mask_mod or score_mod, "
                       "got no function");
  EXPECT_NE(error("nonsense"), "");
}

} // namespace
