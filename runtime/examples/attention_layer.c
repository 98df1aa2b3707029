/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * attention_layer.c - one attention layer of an engine, in C.
 *
 *   attention_layer KERNELS.so
 *
 * KERNELS.so is a generated library with f32 kernels for 16 query heads, 8 KV
 * heads, head dim 128, block size 16, layout hnd, causal. The example runs two
 * requests that share a prompt's beginning: the second starts with the first
 * one's blocks. Both are prefilled and then decoded in one batch; the results
 * are compared with plain attention.
 */
#include <pagoda/pagoda.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  Q_HEADS = 16,
  KV_HEADS = 8,
  DIM = 128,
  BLOCK = 16,
  BLOCKS = 64,
  PROMPT = 40,
  STEPS = 8,
  MAX_TOKENS = 64,
  REQUESTS = 2
};

#define CHECK(call)                                                            \
  do {                                                                         \
    pagoda_status status = (call);                                             \
    if (status != PAGODA_OK) {                                                 \
      fprintf(stderr, "%s: %s: %s\n", #call, pagoda_status_name(status),       \
              pagoda_last_error());                                            \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* A stand-in for the projections of a model: values that depend on the tokens
 * up to a position, as K and V do. */
static void project(const int32_t *tokens, int32_t position, int32_t salt,
                    int32_t count, float *out) {
  uint32_t state = 2166136261u + (uint32_t)salt;
  int32_t i;
  for (i = 0; i <= position; ++i)
    state = (state ^ (uint32_t)tokens[i]) * 16777619u;
  for (i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    out[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
  }
}

enum { SALT_Q = 1, SALT_K = 2, SALT_V = 3 };

/* Attention of one query as the definition has it. */
static void plain(const int32_t *tokens, int32_t position, int32_t head,
                  float scale, double *out) {
  static float q[Q_HEADS * DIM], k[KV_HEADS * DIM], v[KV_HEADS * DIM];
  double sum = 0;
  int32_t j, d, kv = head / (Q_HEADS / KV_HEADS);
  memset(out, 0, DIM * sizeof(double));
  project(tokens, position, SALT_Q, Q_HEADS * DIM, q);
  for (j = 0; j <= position; ++j) {
    double score = 0, weight;
    project(tokens, j, SALT_K, KV_HEADS * DIM, k);
    project(tokens, j, SALT_V, KV_HEADS * DIM, v);
    for (d = 0; d < DIM; ++d)
      score += (double)q[head * DIM + d] * k[kv * DIM + d];
    weight = exp(score * scale);
    sum += weight;
    for (d = 0; d < DIM; ++d)
      out[d] += weight * v[kv * DIM + d];
  }
  for (d = 0; d < DIM; ++d)
    out[d] /= sum;
}

typedef struct request {
  int64_t seq;
  int32_t length; /* tokens so far */
  int32_t done;   /* tokens whose K and V are in the pool */
  int32_t tokens[MAX_TOKENS];
} request;

typedef struct engine {
  pagoda_blocks *blocks;
  pagoda_pool *pool;
  pagoda_kv *kv;
  pagoda_prefix *prefix;
  pagoda_hit *hit;
  pagoda_kernels *kernels;
  pagoda_launcher *launcher;
  pagoda_plan *plan;
} engine;

static void open_engine(engine *e, const char *path) {
  pagoda_kernel_spec spec = {0};
  pagoda_kv_format format = {0};
  pagoda_kv_options sequences = {0};
  pagoda_prefix_options prefixes = {0};
  spec.q_heads = Q_HEADS;
  spec.kv_heads = format.kv_heads = KV_HEADS;
  spec.head_dim = format.head_dim = DIM;
  spec.v_head_dim = format.v_head_dim = DIM;
  spec.block_size = format.block_size = BLOCK;
  spec.layout = format.layout = PAGODA_HND;
  spec.features = PAGODA_FEATURE_CAUSAL; /* all data types are f32, 0 */
  sequences.block_size = prefixes.block_size = BLOCK;
  sequences.max_sequences = REQUESTS;
  sequences.max_tokens = MAX_TOKENS;
  CHECK(pagoda_kernels_open(path, &spec, &e->kernels));
  CHECK(pagoda_blocks_create(BLOCKS, &e->blocks));
  CHECK(pagoda_pool_create(&format, BLOCKS, 1, NULL, 0, &e->pool));
  CHECK(pagoda_kernels_check(e->kernels, e->pool));
  CHECK(pagoda_prefix_create(e->blocks, &prefixes, &e->prefix));
  CHECK(pagoda_hit_create(&e->hit));
  CHECK(pagoda_kv_create(e->blocks, &sequences, &e->kv));
  CHECK(pagoda_launcher_create(0, &e->launcher));
  CHECK(pagoda_plan_create(e->kernels, e->launcher, NULL, &e->plan));
}

static void close_engine(engine *e) {
  pagoda_plan_destroy(e->plan);
  pagoda_launcher_destroy(e->launcher);
  pagoda_kv_destroy(e->kv);
  pagoda_hit_destroy(e->hit);
  pagoda_prefix_destroy(e->prefix);
  pagoda_pool_destroy(e->pool);
  pagoda_blocks_destroy(e->blocks);
  pagoda_kernels_destroy(e->kernels);
}

/* Writes K and V of the tokens that are not in the pool yet. */
static void write_new_tokens(engine *e, request *r) {
  static float k[MAX_TOKENS * KV_HEADS * DIM], v[MAX_TOKENS * KV_HEADS * DIM];
  int64_t slots[MAX_TOKENS];
  pagoda_append_args args = {0};
  int32_t i, count = r->length - r->done;
  for (i = 0; i < count; ++i) {
    project(r->tokens, r->done + i, SALT_K, KV_HEADS * DIM,
            k + i * KV_HEADS * DIM);
    project(r->tokens, r->done + i, SALT_V, KV_HEADS * DIM,
            v + i * KV_HEADS * DIM);
  }
  CHECK(pagoda_kv_slot_mapping(e->kv, r->seq, 0, r->done, count, slots));
  args.k_new = k;
  args.v_new = v;
  args.k_token_stride = args.v_token_stride = KV_HEADS * DIM;
  args.k_head_stride = args.v_head_stride = DIM;
  args.slot_mapping = slots;
  CHECK(pagoda_pool_views(e->pool, 0, &args.k, &args.v));
  CHECK(pagoda_append(e->launcher, e->kernels, &args, count));
}

/* One step of the layer for all requests; returns the largest error. */
static double step(engine *e, request *requests) {
  static float q[REQUESTS * MAX_TOKENS * Q_HEADS * DIM];
  static float o[REQUESTS * MAX_TOKENS * Q_HEADS * DIM];
  int32_t q_lens[REQUESTS], kv_lens[REQUESTS], rows[REQUESTS];
  const pagoda_block_copy *copies;
  pagoda_attention_args args = {0};
  pagoda_batch batch = {0};
  double worst = 0;
  int32_t n, i, h, d, count, row = 0;

  CHECK(pagoda_kv_pending_copies(e->kv, &copies, &count));
  CHECK(pagoda_pool_copy_blocks(e->pool, copies, count));
  CHECK(pagoda_kv_copies_done(e->kv));
  for (n = 0; n < REQUESTS; ++n) {
    request *r = &requests[n];
    write_new_tokens(e, r);
    q_lens[n] = r->length - r->done;
    kv_lens[n] = r->length;
    CHECK(pagoda_kv_row(e->kv, r->seq, &rows[n]));
    for (i = r->done; i < r->length; ++i)
      project(r->tokens, i, SALT_Q, Q_HEADS * DIM, q + row++ * Q_HEADS * DIM);
  }

  batch.sequences = REQUESTS;
  batch.q_lens = q_lens;
  batch.kv_lens = kv_lens;
  batch.table_rows = rows;
  CHECK(pagoda_plan_build(e->plan, &batch)); /* once for all layers */

  args.q = q;
  args.o = o;
  args.q_token_stride = args.o_token_stride = Q_HEADS * DIM;
  args.q_head_stride = args.o_head_stride = DIM;
  args.scale = 1.0f / sqrtf(DIM);
  CHECK(pagoda_pool_views(e->pool, 0, &args.k, &args.v));
  CHECK(
      pagoda_kv_tables(e->kv, 0, &args.block_table, &args.block_table_stride));
  CHECK(pagoda_attention(e->launcher, e->plan, e->kernels, &args));

  for (n = 0, row = 0; n < REQUESTS; ++n) {
    request *r = &requests[n];
    for (i = r->done; i < r->length; ++i, ++row)
      for (h = 0; h < Q_HEADS; ++h) {
        double expected[DIM];
        plain(r->tokens, i, h, args.scale, expected);
        for (d = 0; d < DIM; ++d) {
          double error = fabs(o[(row * Q_HEADS + h) * DIM + d] - expected[d]);
          if (!(error <= worst))
            worst = error;
        }
      }
    r->done = r->length;
    CHECK(pagoda_prefix_store(e->prefix, e->kv, r->seq, r->tokens, r->length,
                              NULL, 0, 0));
  }
  return worst;
}

int main(int argc, char **argv) {
  engine e = {0};
  request requests[REQUESTS];
  double worst = 0;
  int32_t n, i, s, reused = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: %s KERNELS.so\n", argv[0]);
    return 2;
  }
  open_engine(&e, argv[1]);
  memset(requests, 0, sizeof(requests));

  /* The first request runs alone once, so that the second finds its blocks. */
  for (n = 0; n < REQUESTS; ++n) {
    request *r = &requests[n];
    for (i = 0; i < PROMPT; ++i)
      r->tokens[i] = i < PROMPT - 5 ? i : 100 * n + i;
    CHECK(pagoda_kv_add(e.kv, &r->seq));
    CHECK(pagoda_prefix_lookup(e.prefix, r->tokens, PROMPT, NULL, 0, e.hit,
                               &reused));
    CHECK(pagoda_prefix_attach(e.prefix, e.kv, r->seq, e.hit));
    r->done = reused;
    CHECK(pagoda_kv_append(e.kv, r->seq, PROMPT - reused));
    r->length = PROMPT;
    if (n == 0) {
      write_new_tokens(&e, r);
      CHECK(pagoda_prefix_store(e.prefix, e.kv, r->seq, r->tokens, PROMPT, NULL,
                                0, 0));
    }
  }
  for (s = 0; s <= STEPS; ++s) {
    double error = step(&e, requests);
    if (!(error <= worst))
      worst = error;
    for (n = 0; s < STEPS && n < REQUESTS; ++n) {
      requests[n].tokens[requests[n].length++] = 1000 + 7 * s + n;
      CHECK(pagoda_kv_append(e.kv, requests[n].seq, 1));
    }
  }
  close_engine(&e);
  printf("tokens reused %d, largest error %g\n", (int)reused, worst);
  return worst < 1e-4 && reused == PROMPT / BLOCK * BLOCK ? 0 : 1;
}
