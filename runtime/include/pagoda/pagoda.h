/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * pagoda.h - the runtime's C API.
 *
 * Plain C99, for engines in any language: block manager, sequences and block
 * tables, prefix cache, kernels, plans, launcher. Tensors are passed in the
 * structs of kernel_abi.h, with explicit strides in elements.
 *
 * Every function that can fail returns a pagoda_status; on an error (16 or
 * more) nothing has changed and pagoda_last_error() has the text, for the
 * calling thread. Statuses below 16 are answers that a correct caller meets
 * every day. Out parameters may be null where the text says so.
 *
 * Objects refer to each other and must be destroyed in the reverse order of
 * creation; destroying null does nothing. Threads: one thread at a time may use
 * an object and those it was created from, except that launchers may be used
 * from any thread and functions that only read may run beside each other.
 */
#ifndef PAGODA_PAGODA_H
#define PAGODA_PAGODA_H

#include "pagoda/kernel_abi.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ---- */

typedef enum pagoda_status {
  PAGODA_OK = 0,
  PAGODA_OUT_OF_BLOCKS = 1,    /* too few free and idle blocks            */
  PAGODA_OUT_OF_SEQUENCES = 2, /* every sequence slot is taken            */
  PAGODA_STALE = 3,            /* part of a prefix hit has been evicted   */
  PAGODA_UNKNOWN = 4,          /* pagoda_kv_remove: no such sequence      */
  PAGODA_INVALID_ARGUMENT = 16,
  PAGODA_UNKNOWN_BLOCK = 17,
  PAGODA_DOUBLE_RELEASE = 18,
  PAGODA_REF_OVERFLOW = 19,
  PAGODA_UNKNOWN_SEQUENCE = 20,
  PAGODA_TOO_LONG = 21,
  PAGODA_MISMATCH = 22,
  PAGODA_BAD_LIBRARY = 23,
  PAGODA_OUT_OF_MEMORY = 24,
  PAGODA_INTERNAL = 25,
  PAGODA_NO_DEVICE = 26
} pagoda_status;

/* The text of the calling thread's last error; empty when there was none. Valid
 * until the thread's next call. */
const char *pagoda_last_error(void);
/* "ok", "out of blocks", "double release" and so on; "no status" for a number
 * that is none. */
const char *pagoda_status_name(int status);
/* PAGODA_ABI_VERSION that the library was built with. */
uint32_t pagoda_abi_version(void);

typedef struct pagoda_blocks pagoda_blocks;     /* who owns which block    */
typedef struct pagoda_pool pagoda_pool;         /* the blocks' memory      */
typedef struct pagoda_kv pagoda_kv;             /* sequences, block tables */
typedef struct pagoda_prefix pagoda_prefix;     /* prefix cache            */
typedef struct pagoda_hit pagoda_hit;           /* answer to a lookup      */
typedef struct pagoda_kernels pagoda_kernels;   /* kernels for one model   */
typedef struct pagoda_plan pagoda_plan;         /* work of one step        */
typedef struct pagoda_launcher pagoda_launcher; /* threads                 */
typedef struct pagoda_cuda pagoda_cuda;         /* an NVIDIA GPU           */
typedef struct pagoda_cuda_launcher pagoda_cuda_launcher;

/* ---- Blocks ---- */

pagoda_status pagoda_blocks_create(int32_t num_blocks, pagoda_blocks **out);
void pagoda_blocks_destroy(pagoda_blocks *blocks);
/* Takes `count` blocks, or none: PAGODA_OUT_OF_BLOCKS. */
pagoda_status pagoda_blocks_allocate(pagoda_blocks *blocks, int32_t count,
                                     int32_t *out);
pagoda_status pagoda_blocks_share(pagoda_blocks *blocks, const int32_t *ids,
                                  int32_t count);
pagoda_status pagoda_blocks_release(pagoda_blocks *blocks, const int32_t *ids,
                                    int32_t count);
pagoda_status pagoda_blocks_refs(const pagoda_blocks *blocks, int32_t id,
                                 uint32_t *out);
/* Blocks that nobody owns; with those that only a prefix cache owns. */
int32_t pagoda_blocks_free(const pagoda_blocks *blocks);
int32_t pagoda_blocks_available(const pagoda_blocks *blocks);

/* ---- Pool ---- */

typedef struct pagoda_kv_format {
  int32_t kv_heads;
  int32_t head_dim;
  int32_t v_head_dim;
  int32_t block_size;
  int32_t layout;     /* pagoda_layout                                      */
  int32_t k_dtype;    /* pagoda_dtype                                       */
  int32_t v_dtype;    /* pagoda_dtype                                       */
  int32_t v_inside_k; /* 1: V is the first v_head_dim elements of K's rows  */
} pagoda_kv_format;

/* Bytes that a pool of `num_blocks` blocks and `planes` layers takes. */
pagoda_status pagoda_pool_bytes(const pagoda_kv_format *format,
                                int32_t num_blocks, int32_t planes,
                                size_t *out);
/* `memory` null: the pool maps its own, on huge pages where it can get them.
 * Otherwise `bytes` bytes of the caller's, aligned to 64. */
pagoda_status pagoda_pool_create(const pagoda_kv_format *format,
                                 int32_t num_blocks, int32_t planes,
                                 void *memory, size_t bytes, pagoda_pool **out);
void pagoda_pool_destroy(pagoda_pool *pool);
/* K and V of one layer; either out parameter may be null. */
pagoda_status pagoda_pool_views(const pagoda_pool *pool, int32_t plane,
                                pagoda_kv_view *k, pagoda_kv_view *v);
pagoda_status pagoda_pool_copy_blocks(pagoda_pool *pool,
                                      const pagoda_block_copy *copies,
                                      int32_t count);

/* ---- Sequences ---- */

typedef struct pagoda_table_group {
  int32_t window;      /* keys that a query sees, itself included; 0: all   */
  int32_t sink_tokens; /* leading tokens whose blocks stay, for masks of
                          the user's own that look at them                  */
} pagoda_table_group;

typedef struct pagoda_kv_options {
  int32_t block_size;
  int32_t max_sequences;
  int32_t max_tokens; /* of one sequence */
  int32_t num_groups; /* block tables a sequence has; 0: one for all layers */
  const pagoda_table_group *groups; /* [num_groups]; null: see everything   */
} pagoda_kv_options;

pagoda_status pagoda_kv_create(pagoda_blocks *blocks,
                               const pagoda_kv_options *options,
                               pagoda_kv **out);
void pagoda_kv_destroy(pagoda_kv *kv);
/* PAGODA_OUT_OF_SEQUENCES when every slot is taken. */
pagoda_status pagoda_kv_add(pagoda_kv *kv, int64_t *seq);
/* Makes room for more tokens; PAGODA_OUT_OF_BLOCKS changes nothing. */
pagoda_status pagoda_kv_append(pagoda_kv *kv, int64_t seq, int32_t tokens);
/* A sequence that shares the first `tokens` tokens of `parent` (-1: all). */
pagoda_status pagoda_kv_fork(pagoda_kv *kv, int64_t parent, int32_t tokens,
                             int64_t *seq);
/* Drops the tokens from position `tokens` on, as when speculated ones are
 * rejected. */
pagoda_status pagoda_kv_truncate(pagoda_kv *kv, int64_t seq, int32_t tokens);
/* Lets go of what no query at `first_query` (-1: the length) or later sees;
 * `released` (may be null) says how many blocks. Store them first if later
 * prompts are to find them. */
pagoda_status pagoda_kv_release_window(pagoda_kv *kv, int64_t seq,
                                       int32_t first_query, int32_t *released);
/* Ends a sequence; PAGODA_UNKNOWN when there is none. Store its blocks in a
 * prefix cache first if later prompts are to find them. */
pagoda_status pagoda_kv_remove(pagoda_kv *kv, int64_t seq);
/* Releases the blocks of a sequence and keeps its slot and length. It goes on
 * with pagoda_kv_resume, which takes new blocks for its length
 * (PAGODA_OUT_OF_BLOCKS changes nothing) whose K and V must be written anew, or
 * with pagoda_prefix_attach and pagoda_kv_append for what the hit lacks. */
pagoda_status pagoda_kv_preempt(pagoda_kv *kv, int64_t seq);
pagoda_status pagoda_kv_resume(pagoda_kv *kv, int64_t seq);
/* Block copies (every layer, K and V) to make before new tokens are written;
 * then pagoda_kv_copies_done. */
pagoda_status pagoda_kv_pending_copies(const pagoda_kv *kv,
                                       const pagoda_block_copy **copies,
                                       int32_t *count);
pagoda_status pagoda_kv_copies_done(pagoda_kv *kv);
pagoda_status pagoda_kv_length(const pagoda_kv *kv, int64_t seq,
                               int32_t *tokens);
/* The sequence's row in the tables of every group. */
pagoda_status pagoda_kv_row(const pagoda_kv *kv, int64_t seq, int32_t *row);
/* block_table of a group, [max_sequences, stride]; it never moves. */
pagoda_status pagoda_kv_tables(const pagoda_kv *kv, int32_t group,
                               const int32_t **tables, int64_t *stride);
/* block * block_size + slot of positions first .. first + count - 1. */
pagoda_status pagoda_kv_slot_mapping(const pagoda_kv *kv, int64_t seq,
                                     int32_t group, int32_t first,
                                     int32_t count, int64_t *slots);

/* ---- Prefix cache ---- */

typedef struct pagoda_extra_key {
  uint32_t tag; /* 1: adapter, 2: salt, 3: image, from 256 on: the caller's */
  int32_t position; /* of the first token that depends on it               */
  const void *bytes;
  size_t size;
} pagoda_extra_key;

typedef struct pagoda_prefix_options {
  int32_t block_size;
  int32_t num_groups; /* as in pagoda_kv_options */
  const pagoda_table_group *groups;
  int32_t no_retention; /* 1: forget a block when its last owner goes */
  int32_t seeded;       /* 1: hash with `seed`, else a random one     */
  uint64_t seed;
  int32_t event_capacity; /* 0: 1024 */
} pagoda_prefix_options;

typedef struct pagoda_prefix_event {
  int32_t removed; /* 0: stored */
  int32_t group;
  int32_t block;
  int32_t reserved;
  uint64_t hash[2];
  uint64_t parent[2]; /* 0, 0: none */
} pagoda_prefix_event;

typedef struct pagoda_prefix_counters {
  int64_t acquisitions;
  int64_t prompt_tokens;
  int64_t acquired_tokens;
  int64_t stored;
  int64_t duplicates;
  int64_t evicted;
  int64_t lost_events;
  int64_t idle_blocks;   /* now */
  int64_t stored_blocks; /* now */
} pagoda_prefix_counters;

pagoda_status pagoda_prefix_create(pagoda_blocks *blocks,
                                   const pagoda_prefix_options *options,
                                   pagoda_prefix **out);
void pagoda_prefix_destroy(pagoda_prefix *prefix);
pagoda_status pagoda_hit_create(pagoda_hit **out);
void pagoda_hit_destroy(pagoda_hit *hit);
/* Longest cached beginning of a prompt, at least one token short of it. Changes
 * nothing but `hit`; `hit_tokens` may be null. */
pagoda_status pagoda_prefix_lookup(const pagoda_prefix *prefix,
                                   const int32_t *tokens, int32_t count,
                                   const pagoda_extra_key *keys,
                                   int32_t num_keys, pagoda_hit *hit,
                                   int32_t *hit_tokens);
/* Gives an empty or preempted sequence the hit's blocks, and its length; do it
 * before taking new ones. PAGODA_STALE: look it up again. */
pagoda_status pagoda_prefix_attach(pagoda_prefix *prefix, pagoda_kv *kv,
                                   int64_t seq, const pagoda_hit *hit);
/* Stores the full blocks of a sequence whose first `count` tokens are written.
 * Call it between steps: table entries may change to blocks of equal content.
 */
pagoda_status pagoda_prefix_store(pagoda_prefix *prefix, pagoda_kv *kv,
                                  int64_t seq, const int32_t *tokens,
                                  int32_t count, const pagoda_extra_key *keys,
                                  int32_t num_keys, int32_t priority);
/* Makes the hit's blocks the most recently used ones of their priority. Blocks
 * of a higher priority, 0 to 3, are evicted later, pinned ones never: a pin is
 * an owner (PAGODA_STALE: look the hit up again). clear forgets all that is not
 * pinned. */
pagoda_status pagoda_prefix_touch(pagoda_prefix *prefix, const pagoda_hit *hit);
pagoda_status pagoda_prefix_set_priority(pagoda_prefix *prefix,
                                         const pagoda_hit *hit,
                                         int32_t priority);
pagoda_status pagoda_prefix_pin(pagoda_prefix *prefix, const pagoda_hit *hit);
pagoda_status pagoda_prefix_unpin(pagoda_prefix *prefix, const pagoda_hit *hit);
pagoda_status pagoda_prefix_clear(pagoda_prefix *prefix);
/* Moves the oldest events, up to `capacity`, to `events`. */
pagoda_status pagoda_prefix_drain_events(pagoda_prefix *prefix,
                                         pagoda_prefix_event *events,
                                         int32_t capacity, int32_t *count);
pagoda_status pagoda_prefix_get_counters(const pagoda_prefix *prefix,
                                         pagoda_prefix_counters *out);

/* ---- Kernels ---- */

typedef struct pagoda_kernel_spec {
  int32_t q_heads;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t v_head_dim;
  int32_t block_size;
  int32_t layout; /* pagoda_layout */
  int32_t q_dtype;
  int32_t k_dtype;
  int32_t v_dtype;
  int32_t o_dtype;
  uint32_t features;  /* pagoda_feature                                     */
  int32_t rotary_dim; /* dims of a key that the append kernel rotates, -1:
                         none; 0: not said, for libraries with one rotation */
  uint64_t mods_hash;
} pagoda_kernel_spec;

/* The kernels for `spec` in a generated library, of a CPU or of a GPU;
 * PAGODA_MISMATCH prints both sides. */
pagoda_status pagoda_kernels_open(const char *path,
                                  const pagoda_kernel_spec *spec,
                                  pagoda_kernels **out);
/* The same from a library in memory, which must outlive the kernels. */
pagoda_status pagoda_kernels_wrap(const pagoda_library_info *library,
                                  const pagoda_kernel_spec *spec,
                                  pagoda_kernels **out);
void pagoda_kernels_destroy(pagoda_kernels *kernels);
/* PAGODA_MISMATCH unless the kernels can work on the pool. Views of a pool do
 * not tell its types: check each pool once. */
pagoda_status pagoda_kernels_check(const pagoda_kernels *kernels,
                                   const pagoda_pool *pool);

/* ---- Plans ---- */

typedef struct pagoda_plan_options {
  int32_t threads;             /* to balance for; 0: as the launcher has   */
  int32_t deterministic;       /* 1: bits do not depend on neighbours      */
  int32_t deterministic_split; /* keys a split; 0: the default             */
  int32_t cascade;             /* 1: shared prefixes once for their group;
                                  no effect on kernels with a window, chunks,
                                  a prefix or user regions                 */
  int32_t window;              /* run-time arguments of the kernels        */
  int32_t chunk;
} pagoda_plan_options;

typedef struct pagoda_batch {
  int32_t sequences;
  int32_t reserved;
  const int32_t *q_lens;      /* [sequences] new tokens                     */
  const int32_t *kv_lens;     /* [sequences] tokens in all, with the new
                                 ones; a query before position 0 sees no key */
  const int32_t *table_rows;  /* [sequences]; null: 0, 1, 2, ...            */
  const int32_t *block_table; /* what kernels get; read by cascade plans   */
  int64_t block_table_stride;
} pagoda_batch;

typedef struct pagoda_plan_info {
  int32_t rows;
  int32_t items;
  int32_t merges;
  int32_t partial_slots;
  int64_t scratch_bytes; /* a thread */
} pagoda_plan_info;

/* `launcher` may be null when options.threads is given; `options` may be null.
 */
pagoda_status pagoda_plan_create(const pagoda_kernels *kernels,
                                 const pagoda_launcher *launcher,
                                 const pagoda_plan_options *options,
                                 pagoda_plan **out);
void pagoda_plan_destroy(pagoda_plan *plan);
pagoda_status pagoda_plan_build(pagoda_plan *plan, const pagoda_batch *batch);
pagoda_status pagoda_plan_get_info(const pagoda_plan *plan,
                                   pagoda_plan_info *out);
/* Sets the plan's fields of `args`, for callers that launch by themselves. */
pagoda_status pagoda_plan_fill(const pagoda_plan *plan,
                               pagoda_attention_args *args);

/* ---- Launching ---- */

/* `threads` 0: one for each CPU that the process may run on. */
pagoda_status pagoda_launcher_create(int32_t threads, pagoda_launcher **out);
void pagoda_launcher_destroy(pagoda_launcher *launcher);
int32_t pagoda_launcher_threads(const pagoda_launcher *launcher);
/* One layer of attention. `args` holds tensors, tables and scalars; what the
 * plan and the launcher own is filled in. `kernels` are those that the plan was
 * made for (PAGODA_MISMATCH), of a CPU; the table of a cascade plan is the one
 * it was built from. Whether views and tables are those of this layer and its
 * group cannot be seen from them: only strides are checked. */
pagoda_status pagoda_attention(pagoda_launcher *launcher,
                               const pagoda_plan *plan,
                               const pagoda_kernels *kernels,
                               const pagoda_attention_args *args);
pagoda_status pagoda_append(pagoda_launcher *launcher,
                            const pagoda_kernels *kernels,
                            const pagoda_append_args *args, int64_t tokens);
pagoda_status pagoda_copy(pagoda_launcher *launcher,
                          const pagoda_kernels *kernels,
                          const pagoda_copy_args *args, int64_t copies);

/* ---- NVIDIA GPUs ----
 * As CudaLauncher.h says: a step is an upload of its plan and, for each layer,
 * an attention call, which a CUDA graph may capture once for all steps.
 * Pointers in `args` are to device memory; `stream` is a CUstream, null the
 * default one. */

/* Opens the driver and device `index`, with its primary context current on this
 * thread. PAGODA_NO_DEVICE: there is none. */
pagoda_status pagoda_cuda_open(int32_t index, pagoda_cuda **out);
void pagoda_cuda_close(pagoda_cuda *cuda);
pagoda_status pagoda_cuda_launcher_create(pagoda_cuda *cuda,
                                          const pagoda_kernels *kernels,
                                          pagoda_cuda_launcher **out);
void pagoda_cuda_launcher_destroy(pagoda_cuda_launcher *launcher);
/* What pagoda_plan_options.threads should be; 0 for null. */
int32_t pagoda_cuda_threads(const pagoda_cuda_launcher *launcher);
/* Room for plans of up to `most`, of which scratch_bytes is not read. Graphs
 * that were captured with less room must be captured again. */
pagoda_status pagoda_cuda_reserve(pagoda_cuda_launcher *launcher,
                                  const pagoda_plan_info *most);
pagoda_status pagoda_cuda_upload(pagoda_cuda_launcher *launcher,
                                 const pagoda_plan *plan, void *stream);
pagoda_status pagoda_cuda_attention(pagoda_cuda_launcher *launcher,
                                    const pagoda_attention_args *args,
                                    void *stream);
pagoda_status pagoda_cuda_append(pagoda_cuda_launcher *launcher,
                                 const pagoda_append_args *args, int64_t tokens,
                                 void *stream);
pagoda_status pagoda_cuda_copy(pagoda_cuda_launcher *launcher,
                               const pagoda_copy_args *args, int64_t copies,
                               void *stream);

/* ---- Conversions ----
 * Lengths in tokens, `table` [sequences, stride]. `num_blocks` bounds the ids;
 * -1: unknown. Outputs are the caller's memory; `capacity` counts its elements,
 * and too little of it is PAGODA_INVALID_ARGUMENT. */

pagoda_status pagoda_table_to_pages(const int32_t *table, int64_t stride,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int32_t *indptr, int32_t *indices,
                                    int64_t capacity, int32_t *last_page_len);
pagoda_status pagoda_pages_to_table(const int32_t *indptr,
                                    const int32_t *indices,
                                    const int32_t *last_page_len,
                                    int32_t sequences, int32_t block_size,
                                    int32_t num_blocks, int32_t *table,
                                    int64_t stride, int32_t *seq_lens);
pagoda_status pagoda_table_to_slots(const int32_t *table, int64_t stride,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int64_t *slots, int64_t capacity);
pagoda_status pagoda_slots_to_table(const int64_t *slots,
                                    const int32_t *seq_lens, int32_t sequences,
                                    int32_t block_size, int32_t num_blocks,
                                    int32_t *table, int64_t stride);

#ifdef __cplusplus
}
#endif

#endif /* PAGODA_PAGODA_H */
