//===- PlanTest.cpp - pagoda plan as its users meet it --------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Worked examples with published numbers through the command line, models with
// layers that keep less than everything, drawings, mistakes.
//
//===----------------------------------------------------------------------===//

#include "CliTesting.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace pagoda::test;

namespace {

/// The report of `plan ARGUMENTS --json`.
json::Object planned(const std::string &arguments) {
  Outcome outcome = pagodaTool("plan --json " + arguments, false);
  EXPECT_EQ(outcome.code, 0) << arguments;
  Expected<json::Value> value = json::parse(outcome.out);
  if (!value) {
    ADD_FAILURE() << toString(value.takeError()) << outcome.out;
    return {};
  }
  return std::move(*value->getAsObject());
}

/// A number by its path, "kinds.0.paged.bytes".
double at(const json::Object &root, StringRef path) {
  SmallVector<StringRef> steps;
  path.split(steps, '.');
  const json::Value *value = root.get(steps[0]);
  for (StringRef step : drop_begin(steps)) {
    size_t index;
    if (!value)
      break;
    if (const json::Array *array = value->getAsArray())
      value = !step.getAsInteger(10, index) && index < array->size()
                  ? &(*array)[index]
                  : nullptr;
    else
      value = value->getAsObject() ? value->getAsObject()->get(step) : nullptr;
  }
  if (!value || !value->getAsNumber()) {
    ADD_FAILURE() << "no number at " << path.str();
    return -1;
  }
  return *value->getAsNumber();
}

std::string config(StringRef name) {
  return ("--config " + StringRef(PAGODA_CONFIGS) + "/" + name + ".json ")
      .str();
}

/// What stands between a pool's title and the next empty line.
std::string drawing(StringRef text, StringRef title) {
  size_t begin = text.find("\n" + title.str() + "\n");
  if (begin == StringRef::npos)
    return "no pool " + title.str();
  StringRef rest = text.substr(begin + title.size() + 2);
  return rest.substr(0, rest.find("\n\n")).rtrim().str();
}

TEST(PlanExamples, pool_of_a_28_layer_model) {
  std::string load = "--heads 16 --kv-heads 8 --head-dim 128 --layers 28 "
                     "--tables per-layer --lengths 100";
  json::Object plan = planned(load);
  EXPECT_EQ(at(plan, "kinds.0.block_bytes"), 131072);
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 196);
  EXPECT_EQ(at(plan, "kinds.0.paged.bytes"), 24.5 * 1024 * 1024);
  EXPECT_EQ(at(plan, "kinds.0.paged.reserved_slots"), 7 * 16);
  EXPECT_EQ(at(plan, "kinds.0.paged.wasted_slots"), 12);
  EXPECT_TRUE(StringRef(pagodaTool("plan " + load).out)
                  .contains("10.71%     196  128 KiB  24.5 MiB"));
  // One table for all layers: fewer and larger blocks.
  plan = planned("--heads 16 --kv-heads 8 --head-dim 128 --layers 28 "
                 "--lengths 100");
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 7);
  EXPECT_EQ(at(plan, "bytes.paged"), 24.5 * 1024 * 1024);
}

TEST(PlanExamples, waste_contiguous_vs_paged) {
  std::string shape = "--heads 1 --head-dim 8 --block-size 4 --max-len 8 ";
  json::Object plan = planned(shape + "--lengths 3,5,2");
  EXPECT_EQ(at(plan, "kinds.0.contiguous.reserved_slots"), 24);
  EXPECT_EQ(at(plan, "kinds.0.contiguous.wasted_slots"), 14);
  EXPECT_NEAR(at(plan, "kinds.0.contiguous.waste"), 0.5833, 1e-4);
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 4);
  EXPECT_EQ(at(plan, "kinds.0.paged.reserved_slots"), 16);
  EXPECT_EQ(at(plan, "kinds.0.paged.wasted_slots"), 6);
  EXPECT_EQ(at(plan, "kinds.0.paged.waste"), 0.375);
  Outcome drawn = pagodaTool("plan " + shape + "--lengths 3,5,2 --draw");
  EXPECT_EQ(drawing(drawn.out, "contiguous"), "       0  a-Bbc-");
  EXPECT_EQ(drawing(drawn.out, "paged, attention"), "       0  aBbc..");
  // From 5 to 7 tokens takes nothing more in either.
  plan = planned(shape + "--lengths 3,7,2");
  EXPECT_EQ(at(plan, "kinds.0.contiguous.reserved_slots"), 24);
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 4);
}

TEST(PlanExamples, score_matrix_memory) {
  json::Object plan = planned("--heads 1 --head-dim 64 --lengths 100000");
  EXPECT_EQ(at(plan, "score_matrix.elements"), 1e10);
  EXPECT_EQ(at(plan, "score_matrix.bytes"), 40e9);
  double tile = at(plan, "score_matrix.tile_bytes");
  EXPECT_GT(tile, 0);
  // What is kept does not grow with the length.
  plan = planned("--heads 1 --head-dim 64 --lengths 1000000");
  EXPECT_EQ(at(plan, "score_matrix.bytes"), 4e12);
  EXPECT_EQ(at(plan, "score_matrix.tile_bytes"), tile);
}

TEST(PlanExamples, duplicated_prefix) {
  std::string load = "--heads 1 --head-dim 8 --lengths 11,11 "
                     "--shared-prefix 5 --block-size ";
  json::Object plan = planned(load + "1");
  EXPECT_EQ(at(plan, "prefix_slots.apart"), 10);
  EXPECT_EQ(at(plan, "prefix_slots.shared"), 5);
  EXPECT_EQ(at(plan, "kinds.0.paged.reserved_slots"), 22);
  EXPECT_EQ(at(plan, "kinds.0.paged_shared.reserved_slots"), 17);
  EXPECT_EQ(
      drawing(pagodaTool("plan --draw " + load + "1").out, "paged, attention"),
      "       0  #####AAAAAABBBBB B.....");
  // Of larger blocks only full ones are shared.
  plan = planned(load + "4");
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 6);
  EXPECT_EQ(at(plan, "kinds.0.paged_shared.blocks"), 5);
}

TEST(PlanExamples, fragmentation) {
  std::string load = "--heads 1 --head-dim 8 --block-size 2 --lengths 4,4,4,4 "
                     "--reserve length --ended 2,4 --next 6 ";
  json::Object plan = planned(load);
  const json::Array &pools = *plan.getArray("pools");
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].getAsObject()->getBoolean("next_fits"), false);
  EXPECT_EQ(pools[1].getAsObject()->getBoolean("next_fits"), true);
  EXPECT_EQ(at(plan, "pools.0.free_blocks"), 4);
  EXPECT_EQ(at(plan, "pools.0.largest_hole"), 2);
  EXPECT_EQ(at(plan, "pools.1.free_blocks"), 1);
  Outcome drawn = pagodaTool("plan --draw " + load);
  EXPECT_EQ(drawing(drawn.out, "contiguous"), "       0  AA..CC..");
  std::string paged = drawing(drawn.out, "paged, attention");
  EXPECT_EQ(StringRef(paged).count('E'), 3u) << paged;
  EXPECT_EQ(StringRef(paged).count('.'), 1u) << paged;
  EXPECT_TRUE(StringRef(drawn.out).contains("does not fit")) << drawn.out;
}

TEST(Plan, WindowedLayersLetGo) {
  json::Object plan = planned(config("gemma3-1b") + "--seqs 3 --prompt-len "
                                                    "4000 --decode-steps 8");
  // 22 layers see 512 keys, 4 see all; bf16, one KV head of 256.
  EXPECT_EQ(at(plan, "kinds.0.layers"), 22);
  EXPECT_EQ(at(plan, "kinds.0.window"), 512);
  EXPECT_EQ(at(plan, "kinds.0.block_bytes"), 22 * 16 * 2 * 256 * 2);
  // Keys 3496 .. 4007 are in blocks 218 .. 250.
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 3 * 33);
  EXPECT_EQ(at(plan, "kinds.0.paged.wasted_slots"), 3 * (33 * 16 - 512));
  EXPECT_EQ(at(plan, "kinds.1.layers"), 4);
  EXPECT_EQ(at(plan, "kinds.1.paged.blocks"), 3 * 251);
  EXPECT_EQ(at(plan, "bytes.paged"),
            at(plan, "kinds.0.paged.bytes") + at(plan, "kinds.1.paged.bytes"));
  // A prefix that the windows have left is of use to full layers alone.
  plan = planned(config("gemma3-1b") + "--seqs 3 --prompt-len 4000 "
                                       "--shared-prefix 1600");
  EXPECT_EQ(at(plan, "kinds.0.paged_shared.blocks"), 3 * 33);
  EXPECT_EQ(at(plan, "kinds.1.paged_shared.blocks"), 100 + 3 * 151);
  // Chunks bound what is seen as windows do.
  plan = planned("--heads 1 --head-dim 8 --attention-chunk 32 --lengths 100 "
                 "--block-size 8");
  EXPECT_EQ(at(plan, "kinds.0.paged.blocks"), 5);
}

// A chunk is kept as a window of its length, and the report says so.
TEST(Plan, ChunksCountAsWindows) {
  auto says = [](const char *option) {
    std::string shape = "plan --heads 1 --head-dim 64 --lengths 17 ";
    return pagodaTool(shape + option)
               .out.find("\nchunks keep what a window of "
                         "their length keeps\n") != std::string::npos;
  };
  EXPECT_TRUE(says("--attention-chunk 16"));
  EXPECT_FALSE(says("--window 16"));
}

TEST(Plan, LatentCaches) {
  std::string load = config("deepseek-v3") + "--lengths 160 ";
  json::Object plan = planned(load);
  EXPECT_EQ(at(plan, "kinds.0.layers"), 61);
  EXPECT_EQ(at(plan, "bytes.paged"), 160.0 * 61 * 576 * 2);
  // The latent row belongs to every rank.
  EXPECT_EQ(at(planned(load + "--tp 8"), "bytes.paged"), 160.0 * 61 * 576 * 2);
  plan = planned(load + "--mla expanded");
  EXPECT_EQ(at(plan, "bytes.paged"), 160.0 * 61 * 128 * (192 + 128) * 2);
  EXPECT_EQ(at(planned(load + "--mla expanded --tp 8"), "bytes.paged"),
            160.0 * 61 * 16 * (192 + 128) * 2);
}

TEST(Plan, LayersWithoutACache) {
  json::Object plan = planned(config("nemotron-3-nano-30b") + "--lengths 16");
  EXPECT_EQ(at(plan, "kinds.0.layers"), 6);
  EXPECT_EQ(at(plan, "layers_without_cache.mamba"), 23);
  EXPECT_TRUE(StringRef(pagodaTool("plan " + config("nemotron-3-nano-30b")).out)
                  .contains("no cache of their own: 23 mamba"));
}

TEST(Plan, LayersThatReadAnothersCache) {
  SmallString<128> path;
  int file;
  ASSERT_FALSE(sys::fs::createTemporaryFile("plan", "json", file, path));
  raw_fd_ostream(file, true)
      << R"({"model_type":"gemma3n_text","num_hidden_layers":10,)"
         R"("hidden_size":2048,"num_attention_heads":8,)"
         R"("num_key_value_heads":2,"head_dim":256,"sliding_window":512,)"
         R"("num_kv_shared_layers":5,"torch_dtype":"bfloat16"})";
  json::Object plan = planned("--config " + path.str().str() + " --lengths 16");
  double layers = 0;
  for (size_t i = 0; i != plan.getArray("kinds")->size(); ++i)
    layers += at(plan, "kinds." + std::to_string(i) + ".layers");
  EXPECT_EQ(layers, 5);
  EXPECT_EQ(at(plan, "bytes.paged"), 5.0 * 16 * 2 * 2 * 256 * 2);
  sys::fs::remove(path);
}

TEST(Plan, SequencesThatFit) {
  // 64 KiB a token: 28 layers would be too easy a number.
  std::string shape = "--heads 32 --kv-heads 8 --head-dim 128 --dtype f16 "
                      "--layers 16 --seqs 10 --prompt-len 1000 "
                      "--decode-steps 24 --max-len 8192 --memory ";
  json::Object plan = planned(shape + "8GiB");
  EXPECT_EQ(at(plan, "kinds.0.block_bytes"), 16 * 65536);
  EXPECT_EQ(at(plan, "fits.contiguous"), 16);
  EXPECT_EQ(at(plan, "fits.paged"), 128);
  plan = planned(shape + "8GiB --shared-prefix 512");
  EXPECT_EQ(at(plan, "fits.paged_shared"), (8192 - 32) / 32);
  EXPECT_EQ(at(planned(shape + "8589934591"), "fits.paged"), 127);
  EXPECT_EQ(at(planned(shape + "0.5GiB"), "fits.paged"), 8);
  EXPECT_EQ(at(planned(shape + "64MB"), "fits.contiguous"), 0);
}

TEST(Plan, DrawingsAreNarrowAndPlain) {
  Outcome drawn =
      pagodaTool("plan --draw " + config("qwen3-0.6b") + "--shared-prefix 256");
  EXPECT_EQ(drawn.code, 0);
  StringRef text = drawn.out;
  EXPECT_EQ(text.find('\x1b'), StringRef::npos); // no terminal, no colours
  EXPECT_TRUE(text.contains("38 lines like the one above")) << drawn.out;
  EXPECT_TRUE(text.contains("       0  ################ AAAAAAAAAAAAAAAA "
                            "aBBBBBBBBBBBBBBB BbCCCCCCCCCCCCCC\n"))
      << drawn.out;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_LE(line.size(), 100u) << line.str();
  // In little memory some find no room.
  json::Object plan = planned("--draw --heads 8 --head-dim 64 --lengths "
                              "40,40,40 --max-len 64 --memory 384KiB");
  EXPECT_EQ(at(plan, "pools.0.refused"), 2);
  EXPECT_EQ(at(plan, "pools.1.refused"), 1);
  plan = planned("--draw --heads 8 --head-dim 64 --lengths 40,40,40 "
                 "--shared-prefix 40 --memory 64KiB");
  EXPECT_EQ(at(plan, "pools.1.refused"), 3);
}

TEST(Plan, EveryModel) {
  std::error_code error;
  int models = 0;
  for (sys::fs::directory_iterator it(PAGODA_CONFIGS, error), end;
       it != end && !error; it.increment(error), ++models) {
    Outcome outcome = pagodaTool("plan --config " + it->path());
    EXPECT_EQ(outcome.code, 0) << it->path() << outcome.out;
  }
  EXPECT_GE(models, 58);
}

TEST(Plan, MistakesAreNamed) {
  std::string shape = "plan --heads 1 --head-dim 8 ";
  expectError("plan", "give --config, or --heads and --head-dim");
  expectError(shape + "--block-size 0", "--block-size 0: expected a number");
  expectError(shape + "--lengths 3,9 --max-len 8",
              "--lengths: expected at most 8 tokens in a sequence, --max-len, "
              "got 9");
  expectError(shape + "--prompt-len 9 --max-len 16",
              "--prompt-len and --decode-steps: expected at most 16");
  expectError("plan --prompt-len 5000 " + config("llama-2-7b"),
              "expected at most 4096 tokens in a sequence, the model's "
              "longest, got 5008");
  expectError(shape + "--lengths -3", "--lengths -3: expected a number from 0");
  expectError(shape + "--lengths 3,x", "--lengths 3,x: expected whole numbers");
  expectError(shape + "--lengths 3 --seqs 4", "--seqs: not together with");
  expectError(shape + "--seqs 0", "--seqs 0: expected a number from 1");
  expectError(shape + "--lengths 5,6 --shared-prefix 6",
              "--shared-prefix 6: expected a number from 0 to 5");
  expectError(shape + "--shared-prefix 513", "expected a number from 0 to 512");
  expectError(shape + "--max-len 0", "--max-len 0: expected a number from 1");
  expectError(shape + "--tables both", "--tables both: expected shared or");
  expectError(shape + "--reserve some", "--reserve some: expected max or");
  expectError(shape + "--mla some", "--mla some: expected latent or expanded");
  expectError(shape + "--ended 5", "--ended 5: expected a number from 1 to 4");
  expectError(shape + "--next 9 --lengths 4 --max-len 8",
              "--next: expected at most 8");
  for (const char *size : {"24XB", "0", "-1GiB", "GiB", "9000000TiB", "1e3"})
    expectError(shape + "--memory " + size, "--memory " + std::string(size));
  expectError("plan --layers 3 " + config("qwen3-0.6b"),
              "--layers: not together with --config");
  expectError(shape + "--layers 65536 --seqs 1099511627776 --prompt-len "
                      "536870912",
              "expected less than 2^63");
  expectError(shape + "--draw --seqs 1000000",
              "expected at most 65,536 blocks and 1,024 sequences");
}

} // namespace
