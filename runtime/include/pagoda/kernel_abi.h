/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * kernel_abi.h - the contract between generated kernels and whoever calls them.
 *
 * Plain C99 (and C++20), no includes beyond <stdint.h>. The compiler reads the
 * field offsets of these structs from this header; the runtime fills them. A
 * generated library can be driven from this header alone.
 *
 * Words: a *row* is one query token. A *packed row* is a (token, head-in-group)
 * pair: an item with R rows and a group of G query heads per KV head has R * G
 * packed rows. All strides are in elements of the tensor they belong to; the
 * innermost dimension (head dim) always has stride 1.
 */
#ifndef PAGODA_KERNEL_ABI_H
#define PAGODA_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tables of fields, one a line, their comments in a column. */
/* clang-format off */

/* Changes whenever a struct below changes. Kernels and runtime must agree. */
#define PAGODA_ABI_VERSION 1u

/* Element types of tensors. */
enum pagoda_dtype {
  PAGODA_F32 = 0,
  PAGODA_F16 = 1,
  PAGODA_BF16 = 2,
  PAGODA_F8E4M3 = 3,
  PAGODA_F8E5M2 = 4,
  PAGODA_I8 = 5
};

/* Order of the dimensions of one cache block.
 *   NHD: [slot][head][dim] (token-major)   HND: [head][slot][dim] (head-major) */
enum pagoda_layout { PAGODA_NHD = 0, PAGODA_HND = 1 };

/* What a kernel computes, and so which argument struct its entry takes. */
enum pagoda_role {
  PAGODA_ROLE_ATTENTION = 0, /* pagoda_attention_args, one index = one item  */
  PAGODA_ROLE_MERGE = 1,     /* pagoda_attention_args, one index = one merge */
  PAGODA_ROLE_APPEND = 2,    /* pagoda_append_args,    one index = one token */
  PAGODA_ROLE_COPY = 3       /* pagoda_copy_args,      one index = one copy  */
};

/* Which scores count and how. A kernel built with a feature reads its run-time
 * argument; one built without ignores it. */
enum pagoda_feature {
  PAGODA_FEATURE_CAUSAL = 1 << 0,
  PAGODA_FEATURE_WINDOW = 1 << 1,   /* reads window                       */
  PAGODA_FEATURE_SOFTCAP = 1 << 2,  /* reads softcap                      */
  PAGODA_FEATURE_ALIBI = 1 << 3,    /* reads alibi_slopes                 */
  PAGODA_FEATURE_SINKS = 1 << 4,    /* reads sinks                        */
  PAGODA_FEATURE_CHUNK = 1 << 5,    /* reads chunk                        */
  PAGODA_FEATURE_PREFIX_LM = 1 << 6,/* reads prefix_lens                  */
  PAGODA_FEATURE_CUSTOM = 1 << 7    /* user regions; may read aux tensors */
};

/* Instruction-set extensions a CPU kernel needs (kernel_info.cpu_features). */
enum pagoda_cpu_feature {
  PAGODA_CPU_AVX2 = 1 << 0,
  PAGODA_CPU_FMA = 1 << 1,
  PAGODA_CPU_F16C = 1 << 2,
  PAGODA_CPU_AVX512F = 1 << 3,
  PAGODA_CPU_AVX512BW = 1 << 4,
  PAGODA_CPU_AVX512DQ = 1 << 5,
  PAGODA_CPU_AVX512VL = 1 << 6,
  PAGODA_CPU_AVX512_BF16 = 1 << 7,
  PAGODA_CPU_NEON = 1 << 8
};

/* Flags of a work item. */
enum pagoda_item_flag {
  /* The item holds the first keys of its rows: a sink logit enters here and in
   * no other split of the same rows. */
  PAGODA_ITEM_FIRST_SPLIT = 1 << 0
};

/* One piece of work: some query rows of some KV heads against a run of keys. */
typedef struct pagoda_work_item {
  int32_t table_row;      /* row of block_table that names the keys' blocks      */
  int32_t row_map_offset; /* first entry of this item in row_map/row_pos/row_seq */
  int32_t row_count;      /* query tokens, 1 .. kernel_info.max_rows             */
  int32_t head_begin;     /* first KV head; a multiple of heads_per_item         */
  int32_t head_count;     /* KV heads; equals kernel_info.heads_per_item         */
  int32_t kv_begin;       /* first key position (inclusive)                      */
  int32_t kv_end;         /* last key position (exclusive), at most the length   */
  int32_t q_pos0;         /* position of the first row: row_pos[row_map_offset]  */
  int32_t partial_slot;   /* -1: write o and lse; otherwise row i writes its
                             unnormalised state to partial slot partial_slot + i */
  int32_t flags;          /* pagoda_item_flag                                    */
} pagoda_work_item;

/* Joins the partial states of one query row (all heads) and writes o and lse. */
typedef struct pagoda_merge_item {
  int32_t q_row;       /* row of q and o                                      */
  int32_t slots_begin; /* first entry in merge_slots                          */
  int32_t slot_count;  /* how many partial slots to join, 1 or more           */
  int32_t flags;       /* 0                                                   */
} pagoda_merge_item;

/* A paged K or V pool. Element (block p, head h, slot s, dim i) is at
 *   base[p * block_stride + h * head_stride + s * token_stride + i]
 * in 64-bit arithmetic. */
typedef struct pagoda_kv_view {
  void *base;
  int64_t block_stride;
  int64_t head_stride;
  int64_t token_stride;
} pagoda_kv_view;

/* Scales of an 8-bit cache: the scale of (block p, head h, slot s) is
 *   base[p * block_stride + h * head_stride + s * token_stride]
 * All strides 0: one scale per tensor. base null: scale 1. */
typedef struct pagoda_scale_view {
  const float *base;
  int64_t block_stride;
  int64_t head_stride;
  int64_t token_stride;
} pagoda_scale_view;

/* An auxiliary tensor captured by a score or mask region. */
typedef struct pagoda_aux_tensor {
  const void *data;
  int32_t dtype; /* pagoda_dtype, or PAGODA_AUX_I32 */
  int32_t rank;  /* 1 .. 4 */
  int64_t shape[4];
  int64_t strides[4];
} pagoda_aux_tensor;
#define PAGODA_AUX_I32 100

/* Arguments of attention and merge kernels. Shapes in brackets. */
typedef struct pagoda_attention_args {
  /* q [rows, q_heads, head_dim], o [rows, q_heads, v_head_dim]; o and lse
   * overlap nothing that is read. Strides keep rows and heads apart; that of a
   * dimension of one is not read. */
  const void *q;
  int64_t q_token_stride;
  int64_t q_head_stride;
  void *o;
  int64_t o_token_stride;
  int64_t o_head_stride;
  /* lse [rows, q_heads], natural logarithm of the sum of exponentials; null:
   * not wanted. A row that sees no key gets -inf. */
  float *lse;
  int64_t lse_token_stride;
  int64_t lse_head_stride;

  pagoda_kv_view k;
  pagoda_kv_view v;
  pagoda_scale_view k_scale;
  pagoda_scale_view v_scale;

  /* block_table [tables, block_table_stride]: physical block ids. Entries of
   * blocks before the window or chunk of every query, or past a sequence's end,
   * may be anything, -1 for example. */
  const int32_t *block_table;
  int64_t block_table_stride;

  const pagoda_work_item *items;
  /* [2]: how many items and merges there are. Read by GPU kernels, whose grid is
   * an upper bound (so that a captured graph serves every step); CPU kernels
   * are given a range instead and never read it. */
  const int32_t *counts;
  /* Per planned row, in ascending order of position within an item:
   *   row_map: row of q and o   row_pos: position in its sequence
   *   row_seq: index of its sequence in the batch */
  const int32_t *row_map;
  const int32_t *row_pos;
  const int32_t *row_seq;

  /* Partial states. Slot s, query head h:
   *   partial_o [slots, q_heads, v_head_dim]: sum of 2^(e_j - e_max) * v_j
   *   partial_ml[slots, q_heads, 2]: m = largest score, l = sum of 2^(e_j - e_max)
   * where e_j = score_j * c. m is in the kernel's score units: q.k before the
   * scale (c = scale * log2 e) when the kernel has no score region, otherwise
   * the region's result (c = log2 e). m = -inf: no key seen. */
  float *partial_o;
  float *partial_ml;
  const pagoda_merge_item *merges;
  const int32_t *merge_slots;

  const float *sinks;        /* [q_heads] logits, natural units     */
  const float *alibi_slopes; /* [q_heads]                           */
  const int32_t *prefix_lens;/* [sequences] for prefix-LM           */
  const pagoda_aux_tensor *aux;
  int32_t aux_count;

  float scale;    /* softmax scale, greater than 0, usually 1/sqrt(head_dim) */
  float softcap;  /* cap c: score = c * tanh(score / c)                      */
  int32_t window; /* keys a query sees, itself included                      */
  int32_t chunk;  /* chunked attention: positions per chunk                  */
  int32_t reserved[3];
} pagoda_attention_args;

/* Writes new K and V rows through a slot mapping. */
typedef struct pagoda_append_args {
  /* k_new [tokens, kv_heads, head_dim], v_new [tokens, kv_heads, v_head_dim] */
  const void *k_new;
  int64_t k_token_stride;
  int64_t k_head_stride;
  const void *v_new;
  int64_t v_token_stride;
  int64_t v_head_stride;
  pagoda_kv_view k;
  pagoda_kv_view v;
  pagoda_scale_view k_scale;
  pagoda_scale_view v_scale;
  /* slot_mapping [tokens]: block * block_size + slot. A token whose entry is
   * negative, or 0xFFFFFFFF (a 32-bit -1 widened without its sign), is skipped:
   * nothing of it is read or written. */
  const int64_t *slot_mapping;
  /* RoPE, for kernels with a rotary_dim: positions [tokens], and cos and sin
   * [max_position, rotary_dim / 2] with rope_stride elements from one position
   * to the next. Factors that scale cos and sin (YaRN, LongRope) are in the
   * tables. Dims past rotary_dim are copied. rope_cos null: keys are written as
   * they are, for layers that do not rotate and keys that are rotated already. */
  const int32_t *positions;
  const float *rope_cos;
  const float *rope_sin;
  int64_t rope_stride;
} pagoda_append_args;

/* One block copy, as copy-on-write asks for: K and V, all heads. A copy with a
 * negative id is skipped. */
typedef struct pagoda_block_copy {
  int32_t src;
  int32_t dst;
} pagoda_block_copy;

typedef struct pagoda_copy_args {
  pagoda_kv_view k;
  pagoda_kv_view v;
  const pagoda_block_copy *copies;
} pagoda_copy_args;

/* Entry of a CPU kernel: processes indices [begin, end). `scratch` is private
 * to the calling thread: kernel_info.scratch_bytes, aligned to 64 bytes. `args`
 * is the struct that the kernel's role names. */
typedef void (*pagoda_kernel_fn)(const void *args, int64_t begin, int64_t end,
                                 void *scratch);

/* What a kernel was built for. */
typedef struct pagoda_kernel_info {
  uint32_t abi_version;
  uint32_t struct_size;     /* sizeof(pagoda_kernel_info)                   */
  const char *name;         /* unique in its library                        */
  const char *target;       /* for example "cpu:x86-64-v3"                  */
  const char *schedule;     /* the schedule attribute, as text              */
  pagoda_kernel_fn entry;   /* null for GPU kernels                         */
  int64_t scratch_bytes;    /* per thread                                   */
  uint64_t cpu_features;    /* pagoda_cpu_feature                           */
  uint64_t mods_hash;       /* of user regions; 0: none                     */
  int32_t role;             /* pagoda_role                                  */
  uint32_t features;        /* pagoda_feature                               */
  int32_t q_heads;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t v_head_dim;
  int32_t block_size;
  int32_t layout;           /* pagoda_layout                                */
  int32_t q_dtype;          /* pagoda_dtype, as the three below; of k_new
                               and v_new in append kernels                  */
  int32_t k_dtype;
  int32_t v_dtype;
  int32_t o_dtype;
  int32_t max_rows;         /* query tokens an item may hold                */
  int32_t heads_per_item;   /* KV heads an item holds                       */
  int32_t kv_tile;          /* keys per iteration; splits best at multiples */
  int32_t threads;          /* GPU: threads per block; CPU: 1               */
  int32_t shared_bytes;     /* GPU: dynamic shared memory                   */
  /* Append kernels: how many of a key's first dims rotate, and which pair up: (i,
   * i + rotary_dim / 2), or with rope_interleaved 1 (2i, 2i + 1). 0: none. */
  int32_t rotary_dim;
  int32_t rope_interleaved;
  int32_t reserved;
} pagoda_kernel_info;

/* A generated library exports one object of this type under the name
 * `pagoda_library`. */
typedef struct pagoda_library_info {
  uint32_t abi_version;
  uint32_t kernel_count;
  const pagoda_kernel_info *kernels;
} pagoda_library_info;
#define PAGODA_LIBRARY_SYMBOL "pagoda_library"

/* The code of a library whose kernels are for a GPU, exported beside the table
 * under the name `pagoda_image`: the kernels' names are functions in it. */
typedef struct pagoda_device_image {
  uint32_t abi_version;
  uint32_t reserved;
  const void *cubin;   /* for the table's target; null: not assembled         */
  int64_t cubin_bytes;
  const char *ptx;     /* ends with 0; null: none. The driver compiles it, for
                          the target and for later GPUs                       */
  int64_t ptx_bytes;   /* with the 0                                          */
} pagoda_device_image;
#define PAGODA_IMAGE_SYMBOL "pagoda_image"

#ifdef __cplusplus
#define PAGODA_ABI_ASSERT(cond, name) static_assert(cond, #name)
#else
#define PAGODA_ABI_ASSERT(cond, name) typedef char pagoda_assert_##name[(cond) ? 1 : -1]
#endif
PAGODA_ABI_ASSERT(sizeof(pagoda_work_item) == 40, work_item_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_merge_item) == 16, merge_item_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_kv_view) == 32, kv_view_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_scale_view) == 32, scale_view_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_aux_tensor) == 80, aux_tensor_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_attention_args) == 352, attention_args_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_append_args) == 216, append_args_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_copy_args) == 72, copy_args_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_kernel_info) == 144, kernel_info_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_library_info) == 16, library_info_size);
PAGODA_ABI_ASSERT(sizeof(pagoda_device_image) == 40, device_image_size);

/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif /* PAGODA_KERNEL_ABI_H */
