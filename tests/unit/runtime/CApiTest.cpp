//===- CApiTest.cpp - The C API, call by call -----------------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statuses, last errors and answers of every function. What the functions do is
// tested through the C++ classes; the installed example runs a whole layer.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"
#include "pagoda/pagoda.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

using namespace pagoda::test;

#define EXPECT_STATUS(call, status, part)                                      \
  do {                                                                         \
    EXPECT_EQ(call, status);                                                   \
    EXPECT_NE(std::string(pagoda_last_error()).find(part), std::string::npos)  \
        << pagoda_last_error();                                                \
  } while (false)

#define OK(call) ASSERT_EQ(call, PAGODA_OK) << pagoda_last_error()

TEST(CApi, Blocks) {
  pagoda_blocks *blocks = nullptr;
  OK(pagoda_blocks_create(4, &blocks));
  int32_t ids[5];
  EXPECT_EQ(pagoda_blocks_allocate(blocks, 5, ids), PAGODA_OUT_OF_BLOCKS);
  EXPECT_STREQ(pagoda_last_error(), "");
  OK(pagoda_blocks_allocate(blocks, 3, ids));
  EXPECT_EQ(pagoda_blocks_free(blocks), 1);
  EXPECT_EQ(pagoda_blocks_available(blocks), 1);
  OK(pagoda_blocks_share(blocks, ids, 2));
  uint32_t refs = 0;
  OK(pagoda_blocks_refs(blocks, ids[1], &refs));
  EXPECT_EQ(refs, 2u);
  OK(pagoda_blocks_release(blocks, ids, 3));
  EXPECT_STATUS(pagoda_blocks_release(blocks, ids + 2, 1),
                PAGODA_DOUBLE_RELEASE, "block 2: cannot release");
  ids[0] = 9;
  EXPECT_STATUS(pagoda_blocks_share(blocks, ids, 1), PAGODA_UNKNOWN_BLOCK,
                "expected an id from 0 to 3");
  EXPECT_STATUS(pagoda_blocks_share(nullptr, ids, 1), PAGODA_INVALID_ARGUMENT,
                "blocks: expected a pointer, got null");
  EXPECT_STATUS(pagoda_blocks_share(blocks, nullptr, 1),
                PAGODA_INVALID_ARGUMENT, "ids: expected a pointer");
  EXPECT_STATUS(pagoda_blocks_share(blocks, ids, -1), PAGODA_INVALID_ARGUMENT,
                "ids: expected 0 elements or more, got -1");
  pagoda_blocks *none = nullptr;
  EXPECT_STATUS(pagoda_blocks_create(-3, &none), PAGODA_INVALID_ARGUMENT,
                "got -3");
  EXPECT_STATUS(pagoda_blocks_create(3, nullptr), PAGODA_INVALID_ARGUMENT,
                "out");
  pagoda_blocks_destroy(blocks);
  pagoda_blocks_destroy(nullptr);
}

TEST(CApi, LastErrorIsPerThread) {
  EXPECT_EQ(pagoda_blocks_create(-3, nullptr), PAGODA_INVALID_ARGUMENT);
  std::string ours = pagoda_last_error();
  std::thread([] { EXPECT_STREQ(pagoda_last_error(), ""); }).join();
  EXPECT_EQ(pagoda_last_error(), ours);
  pagoda_blocks *blocks = nullptr;
  OK(pagoda_blocks_create(1, &blocks));
  EXPECT_STREQ(pagoda_last_error(), "");
  pagoda_blocks_destroy(blocks);
}

TEST(CApi, StatusNames) {
  EXPECT_STREQ(pagoda_status_name(PAGODA_OK), "ok");
  EXPECT_STREQ(pagoda_status_name(PAGODA_OUT_OF_BLOCKS), "out of blocks");
  EXPECT_STREQ(pagoda_status_name(PAGODA_DOUBLE_RELEASE), "double release");
  EXPECT_STREQ(pagoda_status_name(PAGODA_MISMATCH), "mismatch");
  EXPECT_STREQ(pagoda_status_name(99), "no status");
  for (int code = 16; code <= 25; ++code)
    EXPECT_STRNE(pagoda_status_name(code), "no status") << code;
  EXPECT_EQ(pagoda_abi_version(), PAGODA_ABI_VERSION);
}

namespace {

/// Everything a layer needs, on the plain kernels.
struct Layer {
  Layer() : fake(FakeSpec{}) {
    const pagoda_kernel_info &k = fake.kernel(0);
    spec = {k.q_heads,  k.kv_heads, k.head_dim, k.v_head_dim, k.block_size,
            k.layout,   k.q_dtype,  k.k_dtype,  k.v_dtype,    k.o_dtype,
            k.features, 0,          k.mods_hash};
    format = {k.kv_heads, k.head_dim, k.v_head_dim, k.block_size,
              k.layout,   k.k_dtype,  k.v_dtype,    0};
    pagoda_kv_options kvOptions = {k.block_size, 4, 64, 0, nullptr};
    pagoda_prefix_options prefixOptions = {};
    prefixOptions.block_size = k.block_size;
    EXPECT_EQ(pagoda_blocks_create(16, &blocks), PAGODA_OK);
    EXPECT_EQ(pagoda_pool_create(&format, 16, 2, nullptr, 0, &pool), PAGODA_OK);
    EXPECT_EQ(pagoda_prefix_create(blocks, &prefixOptions, &prefix), PAGODA_OK);
    EXPECT_EQ(pagoda_kv_create(blocks, &kvOptions, &kv), PAGODA_OK);
    EXPECT_EQ(pagoda_hit_create(&hit), PAGODA_OK);
    EXPECT_EQ(pagoda_kernels_wrap(fake.info(), &spec, &kernels), PAGODA_OK);
    EXPECT_EQ(pagoda_launcher_create(2, &launcher), PAGODA_OK);
    EXPECT_EQ(pagoda_plan_create(kernels, launcher, nullptr, &plan), PAGODA_OK);
  }
  ~Layer() {
    pagoda_plan_destroy(plan);
    pagoda_launcher_destroy(launcher);
    pagoda_kernels_destroy(kernels);
    pagoda_hit_destroy(hit);
    pagoda_kv_destroy(kv);
    pagoda_prefix_destroy(prefix);
    pagoda_pool_destroy(pool);
    pagoda_blocks_destroy(blocks);
  }
  FakeLibrary fake;
  pagoda_kernel_spec spec;
  pagoda_kv_format format;
  pagoda_blocks *blocks = nullptr;
  pagoda_pool *pool = nullptr;
  pagoda_kv *kv = nullptr;
  pagoda_prefix *prefix = nullptr;
  pagoda_hit *hit = nullptr;
  pagoda_kernels *kernels = nullptr;
  pagoda_launcher *launcher = nullptr;
  pagoda_plan *plan = nullptr;
};

} // namespace

TEST(CApi, Sequences) {
  Layer l;
  int64_t a, b;
  OK(pagoda_kv_add(l.kv, &a));
  OK(pagoda_kv_append(l.kv, a, 6));
  OK(pagoda_kv_fork(l.kv, a, -1, &b));
  OK(pagoda_kv_append(l.kv, b, 1));
  const pagoda_block_copy *copies = nullptr;
  int32_t count = 0;
  OK(pagoda_kv_pending_copies(l.kv, &copies, &count));
  ASSERT_EQ(count, 1);
  EXPECT_EQ(copies[0].src, 1);
  EXPECT_EQ(copies[0].dst, 2);
  OK(pagoda_pool_copy_blocks(l.pool, copies, count));
  pagoda_copy_args copyArgs = {};
  copyArgs.copies = copies;
  OK(pagoda_pool_views(l.pool, 1, &copyArgs.k, &copyArgs.v));
  OK(pagoda_copy(l.launcher, l.kernels, &copyArgs, count));
  OK(pagoda_kv_copies_done(l.kv));
  int32_t length = 0, row = -1;
  OK(pagoda_kv_length(l.kv, b, &length));
  EXPECT_EQ(length, 7);
  OK(pagoda_kv_row(l.kv, b, &row));
  const int32_t *tables = nullptr;
  int64_t stride = 0;
  OK(pagoda_kv_tables(l.kv, 0, &tables, &stride));
  EXPECT_EQ(stride, 16);
  EXPECT_EQ(tables[row * stride + 1], 2);
  int64_t slots[2];
  OK(pagoda_kv_slot_mapping(l.kv, b, 0, 5, 2, slots));
  EXPECT_EQ(slots[0], 2 * 4 + 1);
  OK(pagoda_kv_truncate(l.kv, b, 2));
  int32_t released = -1;
  OK(pagoda_kv_release_window(l.kv, b, -1, &released));
  EXPECT_EQ(released, 0);
  OK(pagoda_kv_preempt(l.kv, b));
  EXPECT_STATUS(pagoda_kv_append(l.kv, b, 1), PAGODA_INVALID_ARGUMENT,
                "preempted");
  OK(pagoda_kv_resume(l.kv, b));
  EXPECT_STATUS(pagoda_kv_append(l.kv, b, 100), PAGODA_TOO_LONG, "at most 64");
  EXPECT_EQ(pagoda_kv_append(l.kv, b, 60), PAGODA_OUT_OF_BLOCKS);
  // Without a place for the answer nothing happens.
  EXPECT_STATUS(pagoda_kv_add(l.kv, nullptr), PAGODA_INVALID_ARGUMENT, "seq");
  EXPECT_STATUS(pagoda_kv_fork(l.kv, a, 0, nullptr), PAGODA_INVALID_ARGUMENT,
                "seq");
  EXPECT_EQ(pagoda_kv_remove(l.kv, b), PAGODA_OK);
  EXPECT_EQ(pagoda_kv_remove(l.kv, b), PAGODA_UNKNOWN);
  EXPECT_STATUS(pagoda_kv_length(l.kv, b, &length), PAGODA_UNKNOWN_SEQUENCE,
                "live sequence");
  EXPECT_STATUS(pagoda_kv_tables(l.kv, 1, &tables, &stride),
                PAGODA_INVALID_ARGUMENT, "table group");
  for (int i = 0; i != 3; ++i)
    OK(pagoda_kv_add(l.kv, &b));
  EXPECT_EQ(pagoda_kv_add(l.kv, &b), PAGODA_OUT_OF_SEQUENCES);
  EXPECT_EQ(pagoda_kv_fork(l.kv, a, 0, &b), PAGODA_OUT_OF_SEQUENCES);
}

TEST(CApi, PrefixCache) {
  Layer l;
  std::vector<int32_t> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  pagoda_extra_key key = {1, 0, "lora", 4};
  int64_t a, b;
  int32_t tokens = -1;
  OK(pagoda_kv_add(l.kv, &a));
  OK(pagoda_kv_append(l.kv, a, 9));
  OK(pagoda_prefix_store(l.prefix, l.kv, a, prompt.data(), 9, &key, 1, 0));
  OK(pagoda_prefix_lookup(l.prefix, prompt.data(), 9, nullptr, 0, l.hit,
                          &tokens));
  EXPECT_EQ(tokens, 0);
  OK(pagoda_prefix_lookup(l.prefix, prompt.data(), 9, &key, 1, l.hit, &tokens));
  EXPECT_EQ(tokens, 8);
  OK(pagoda_kv_add(l.kv, &b));
  OK(pagoda_prefix_attach(l.prefix, l.kv, b, l.hit));
  int32_t length = 0;
  OK(pagoda_kv_length(l.kv, b, &length));
  EXPECT_EQ(length, 8);
  OK(pagoda_prefix_pin(l.prefix, l.hit));
  OK(pagoda_prefix_unpin(l.prefix, l.hit));
  EXPECT_STATUS(pagoda_prefix_unpin(l.prefix, l.hit), PAGODA_INVALID_ARGUMENT,
                "pinned");
  OK(pagoda_prefix_touch(l.prefix, l.hit));
  OK(pagoda_prefix_set_priority(l.prefix, l.hit, 1));
  EXPECT_STATUS(pagoda_prefix_set_priority(l.prefix, l.hit, 9),
                PAGODA_INVALID_ARGUMENT, "priority");
  pagoda_prefix_event events[8];
  int32_t count = -1;
  OK(pagoda_prefix_drain_events(l.prefix, events, 8, &count));
  ASSERT_EQ(count, 2);
  EXPECT_EQ(events[0].removed, 0);
  EXPECT_EQ(events[1].parent[0], events[0].hash[0]);
  EXPECT_EQ(events[0].parent[0], 0u);
  pagoda_prefix_counters counters;
  OK(pagoda_prefix_get_counters(l.prefix, &counters));
  EXPECT_EQ(counters.stored, 2);
  EXPECT_EQ(counters.acquired_tokens, 8);
  EXPECT_EQ(counters.prompt_tokens, 9);
  EXPECT_EQ(counters.stored_blocks, 2);
  EXPECT_EQ(counters.idle_blocks, 0);
  OK(pagoda_kv_remove(l.kv, a));
  OK(pagoda_kv_remove(l.kv, b));
  OK(pagoda_prefix_clear(l.prefix));
  EXPECT_EQ(pagoda_blocks_free(l.blocks), 16);
  EXPECT_EQ(pagoda_prefix_pin(l.prefix, l.hit), PAGODA_STALE);
  OK(pagoda_kv_add(l.kv, &b));
  EXPECT_EQ(pagoda_prefix_attach(l.prefix, l.kv, b, l.hit), PAGODA_STALE);
}

TEST(CApi, OneLayer) {
  Layer l;
  OK(pagoda_kernels_check(l.kernels, l.pool));
  int64_t seq;
  OK(pagoda_kv_add(l.kv, &seq));
  OK(pagoda_kv_append(l.kv, seq, 3));
  int64_t slots[3];
  OK(pagoda_kv_slot_mapping(l.kv, seq, 0, 0, 3, slots));
  // Scores are all 0, so the output is the mean of V.
  std::vector<float> k(3 * 16, 0.0f), v(3 * 16), q(32, 1.0f), o(32, -1.0f);
  for (int t = 0; t != 3; ++t)
    std::fill_n(v.begin() + t * 16, 16, float(1 << t));
  pagoda_append_args append = {};
  append.k_new = k.data();
  append.v_new = v.data();
  append.k_token_stride = append.v_token_stride = 16;
  append.k_head_stride = append.v_head_stride = 8;
  append.slot_mapping = slots;
  OK(pagoda_pool_views(l.pool, 0, &append.k, &append.v));
  OK(pagoda_append(l.launcher, l.kernels, &append, 3));
  int32_t qLen = 1, kvLen = 3, row = -1;
  OK(pagoda_kv_row(l.kv, seq, &row));
  pagoda_batch batch = {1, 0, &qLen, &kvLen, &row, nullptr, 0};
  OK(pagoda_plan_build(l.plan, &batch));
  pagoda_plan_info info;
  OK(pagoda_plan_get_info(l.plan, &info));
  EXPECT_EQ(info.rows, 1);
  EXPECT_EQ(info.items, 1);
  EXPECT_EQ(info.merges, 0);
  pagoda_attention_args args = {};
  args.q = q.data();
  args.o = o.data();
  args.q_token_stride = args.o_token_stride = 32;
  args.q_head_stride = args.o_head_stride = 8;
  args.scale = 1;
  args.k = append.k;
  args.v = append.v;
  OK(pagoda_kv_tables(l.kv, 0, &args.block_table, &args.block_table_stride));
  OK(pagoda_attention(l.launcher, l.plan, l.kernels, &args));
  for (float x : o)
    EXPECT_NEAR(x, 7.0f / 3, 1e-6);
  pagoda_attention_args filled = {};
  OK(pagoda_plan_fill(l.plan, &filled));
  EXPECT_EQ(filled.items[0].kv_end, 3);
  EXPECT_EQ(filled.counts[0], 1);
  args.scale = -1;
  EXPECT_STATUS(pagoda_attention(l.launcher, l.plan, l.kernels, &args),
                PAGODA_INVALID_ARGUMENT, "scale");
  EXPECT_EQ(pagoda_launcher_threads(l.launcher), 2);
  qLen = -1;
  EXPECT_STATUS(pagoda_plan_build(l.plan, &batch), PAGODA_INVALID_ARGUMENT,
                "q_lens[0]");
}

TEST(CApi, Mismatches) {
  Layer l;
  pagoda_kernel_spec other = l.spec;
  other.head_dim = 64;
  pagoda_kernels *kernels = nullptr;
  EXPECT_STATUS(pagoda_kernels_wrap(l.fake.info(), &other, &kernels),
                PAGODA_MISMATCH, "head_dim: kernel has 8, caller has 64");
  EXPECT_STATUS(pagoda_kernels_open("no/such.so", &other, &kernels),
                PAGODA_BAD_LIBRARY, "no/such.so");
  EXPECT_EQ(kernels, nullptr);
  // Fake append kernels rotate nothing: one that does is missing.
  other = l.spec;
  other.rotary_dim = 8;
  OK(pagoda_kernels_wrap(l.fake.info(), &other, &kernels));
  pagoda_append_args append = {};
  EXPECT_STATUS(pagoda_append(l.launcher, kernels, &append, 1),
                PAGODA_INVALID_ARGUMENT, "a kernel with role append");
  pagoda_kernels_destroy(kernels);
  other.rotary_dim = -1;
  OK(pagoda_kernels_wrap(l.fake.info(), &other, &kernels));
  EXPECT_STATUS(pagoda_append(l.launcher, kernels, &append, 1),
                PAGODA_INVALID_ARGUMENT, "k: base: expected memory");
  pagoda_kernels_destroy(kernels);
  pagoda_kv_format format = l.format;
  format.block_size = 8;
  pagoda_pool *pool = nullptr;
  OK(pagoda_pool_create(&format, 2, 1, nullptr, 0, &pool));
  EXPECT_STATUS(pagoda_kernels_check(l.kernels, pool), PAGODA_MISMATCH,
                "block_size: kernel has 4, caller has 8");
  size_t bytes = 0;
  OK(pagoda_pool_bytes(&format, 2, 1, &bytes));
  EXPECT_STATUS(pagoda_pool_create(&format, 2, 1, &bytes, 1, &pool),
                PAGODA_INVALID_ARGUMENT, "memory: expected");
  pagoda_pool_destroy(pool);
  pagoda_plan_options options = {0, 1, 0, 1, 0, 0};
  pagoda_plan *plan = nullptr;
  EXPECT_STATUS(pagoda_plan_create(l.kernels, l.launcher, &options, &plan),
                PAGODA_INVALID_ARGUMENT, "deterministic");
}

TEST(CApi, APlanGoesWithItsKernels) {
  Layer full;
  FakeLibrary windowed(
      {.features = PAGODA_FEATURE_CAUSAL | PAGODA_FEATURE_WINDOW});
  FakeLibrary again(FakeSpec{});
  pagoda_kernel_spec spec = full.spec;
  pagoda_kernels *same = nullptr, *copy = nullptr, *other = nullptr;
  OK(pagoda_kernels_wrap(full.fake.info(), &spec, &same));
  OK(pagoda_kernels_wrap(again.info(), &spec, &copy));
  spec.features |= PAGODA_FEATURE_WINDOW;
  OK(pagoda_kernels_wrap(windowed.info(), &spec, &other));
  pagoda_plan *plan = nullptr;
  pagoda_plan_options options = {0, 0, 0, 0, 2, 0};
  OK(pagoda_plan_create(other, full.launcher, &options, &plan));

  int32_t table[] = {0, 1}, qLen = 1, kvLen = 3;
  pagoda_batch batch = {1, 0, &qLen, &kvLen, nullptr, nullptr, 0};
  OK(pagoda_plan_build(full.plan, &batch));
  OK(pagoda_plan_build(plan, &batch));
  std::vector<float> q(32, 1.0f), o(32);
  pagoda_attention_args args = {};
  args.q = q.data();
  args.o = o.data();
  args.q_head_stride = args.o_head_stride = 8;
  args.scale = 1;
  args.window = 2;
  args.block_table = table;
  args.block_table_stride = 2;
  OK(pagoda_pool_views(full.pool, 0, &args.k, &args.v));
  OK(pagoda_attention(full.launcher, full.plan, same, &args));
  OK(pagoda_attention(full.launcher, plan, other, &args));
  EXPECT_STATUS(pagoda_attention(full.launcher, full.plan, other, &args),
                PAGODA_MISMATCH,
                "the plan was made for, attend_1, got attend_1:\nfeatures: "
                "kernel has causal, window, caller has causal");
  EXPECT_STATUS(pagoda_attention(full.launcher, plan, same, &args),
                PAGODA_MISMATCH, "features: kernel has causal, caller");
  EXPECT_STATUS(pagoda_attention(full.launcher, full.plan, copy, &args),
                PAGODA_MISMATCH, "of another library");
  pagoda_plan_destroy(plan);
  for (pagoda_kernels *kernels : {same, copy, other})
    pagoda_kernels_destroy(kernels);
}

TEST(CApi, KernelsFromAFile) {
  pagoda_kernel_spec spec = {
      16, 8, 128, 128, 16, PAGODA_HND, 0, 0, 0, 0, PAGODA_FEATURE_CAUSAL, 0, 0};
  pagoda_kernels *kernels = nullptr;
  OK(pagoda_kernels_open(FAKE_KERNELS_FILE, &spec, &kernels));
  pagoda_plan *plan = nullptr;
  pagoda_plan_options options = {4, 0, 0, 0, 0, 0};
  OK(pagoda_plan_create(kernels, nullptr, &options, &plan));
  pagoda_plan_destroy(plan);
  pagoda_kernels_destroy(kernels);
}

TEST(CApi, Conversions) {
  int32_t table[] = {7, 2, 3, -1}, lens[] = {5, 2};
  int32_t indptr[3], indices[3], last[2];
  OK(pagoda_table_to_pages(table, 2, lens, 2, 4, 8, indptr, indices, 3, last));
  EXPECT_EQ(indptr[2], 3);
  EXPECT_EQ(indices[2], 3);
  EXPECT_EQ(last[0], 1);
  EXPECT_STATUS(
      pagoda_table_to_pages(table, 2, lens, 2, 4, 8, indptr, indices, 2, last),
      PAGODA_INVALID_ARGUMENT, "indices: expected room for 3 elements, got 2");
  int32_t back[4], lensBack[2];
  OK(pagoda_pages_to_table(indptr, indices, last, 2, 4, 8, back, 2, lensBack));
  EXPECT_EQ(std::memcmp(back, table, sizeof(table)), 0);
  EXPECT_EQ(lensBack[0], 5);
  int64_t slots[7];
  OK(pagoda_table_to_slots(table, 2, lens, 2, 4, 8, slots, 7));
  EXPECT_EQ(slots[4], 8);
  OK(pagoda_slots_to_table(slots, lens, 2, 4, 8, back, 2));
  EXPECT_EQ(std::memcmp(back, table, sizeof(table)), 0);
  slots[1] = 77;
  EXPECT_STATUS(pagoda_slots_to_table(slots, lens, 2, 4, 8, back, 2),
                PAGODA_INVALID_ARGUMENT, "slot_mapping[1]");
}
