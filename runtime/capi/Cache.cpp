//===- Cache.cpp - The C API of blocks, pools, sequences, prefixes --------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates between C types and the classes under cache/. See pagoda.h.
//
//===----------------------------------------------------------------------===//

#include "capi/Handles.h"

using namespace pagoda;
using namespace pagoda::capi;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

pagoda_status pagoda_blocks_create(int32_t num_blocks, pagoda_blocks **out) {
  return created(out,
                 [&] { return new pagoda_blocks{BlockManager(num_blocks)}; });
}

void pagoda_blocks_destroy(pagoda_blocks *blocks) { delete blocks; }

pagoda_status pagoda_blocks_allocate(pagoda_blocks *blocks, int32_t count,
                                     int32_t *out) {
  return guarded([&] {
    return given(blocks, "blocks").object.allocate(array(out, count, "out"))
               ? PAGODA_OK
               : PAGODA_OUT_OF_BLOCKS;
  });
}

pagoda_status pagoda_blocks_share(pagoda_blocks *blocks, const int32_t *ids,
                                  int32_t count) {
  return guarded([&] {
    given(blocks, "blocks").object.share(array(ids, count, "ids"));
    return PAGODA_OK;
  });
}

pagoda_status pagoda_blocks_release(pagoda_blocks *blocks, const int32_t *ids,
                                    int32_t count) {
  return guarded([&] {
    given(blocks, "blocks").object.release(array(ids, count, "ids"));
    return PAGODA_OK;
  });
}

pagoda_status pagoda_blocks_refs(const pagoda_blocks *blocks, int32_t id,
                                 uint32_t *out) {
  return guarded([&] {
    given(out, "out") = given(blocks, "blocks").object.refs(id);
    return PAGODA_OK;
  });
}

int32_t pagoda_blocks_free(const pagoda_blocks *blocks) {
  return blocks ? blocks->object.numFree() : 0;
}

int32_t pagoda_blocks_available(const pagoda_blocks *blocks) {
  return blocks ? blocks->object.numAvailable() : 0;
}

//===----------------------------------------------------------------------===//
// Pool
//===----------------------------------------------------------------------===//

pagoda_status pagoda_pool_bytes(const pagoda_kv_format *format,
                                int32_t num_blocks, int32_t planes,
                                size_t *out) {
  return guarded([&] {
    given(out, "out") = KvPool::bytesNeeded(formatOf(given(format, "format")),
                                            num_blocks, planes);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_pool_create(const pagoda_kv_format *format,
                                 int32_t num_blocks, int32_t planes,
                                 void *memory, size_t bytes,
                                 pagoda_pool **out) {
  return created(out, [&] {
    KvFormat f = formatOf(given(format, "format"));
    return memory
               ? new pagoda_pool{KvPool(f, num_blocks, planes, memory, bytes)}
               : new pagoda_pool{KvPool(f, num_blocks, planes)};
  });
}

void pagoda_pool_destroy(pagoda_pool *pool) { delete pool; }

pagoda_status pagoda_pool_views(const pagoda_pool *pool, int32_t plane,
                                pagoda_kv_view *k, pagoda_kv_view *v) {
  return guarded([&] {
    const KvPool &object = given(pool, "pool").object;
    pagoda_kv_view keys = object.k(plane), values = object.v(plane);
    if (k)
      *k = keys;
    if (v)
      *v = values;
    return PAGODA_OK;
  });
}

pagoda_status pagoda_pool_copy_blocks(pagoda_pool *pool,
                                      const pagoda_block_copy *copies,
                                      int32_t count) {
  return guarded([&] {
    given(pool, "pool").object.copyBlocks(array(copies, count, "copies"));
    return PAGODA_OK;
  });
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

pagoda_status pagoda_kv_create(pagoda_blocks *blocks,
                               const pagoda_kv_options *options,
                               pagoda_kv **out) {
  return created(out, [&] {
    const pagoda_kv_options &o = given(options, "options");
    PagedKVOptions with;
    with.blockSize = o.block_size;
    with.maxSequences = o.max_sequences;
    with.maxTokens = o.max_tokens;
    with.groups = groupsOf(o.groups, o.num_groups);
    return new pagoda_kv{PagedKV(given(blocks, "blocks").object, with)};
  });
}

void pagoda_kv_destroy(pagoda_kv *kv) { delete kv; }

pagoda_status pagoda_kv_add(pagoda_kv *kv, int64_t *seq) {
  return guarded([&] {
    int64_t &id = given(seq, "seq");
    id = given(kv, "kv").object.add();
    return id == NoSequence ? PAGODA_OUT_OF_SEQUENCES : PAGODA_OK;
  });
}

pagoda_status pagoda_kv_append(pagoda_kv *kv, int64_t seq, int32_t tokens) {
  return guarded([&] {
    return given(kv, "kv").object.append(seq, tokens) ? PAGODA_OK
                                                      : PAGODA_OUT_OF_BLOCKS;
  });
}

pagoda_status pagoda_kv_fork(pagoda_kv *kv, int64_t parent, int32_t tokens,
                             int64_t *seq) {
  return guarded([&] {
    int64_t &id = given(seq, "seq");
    id = given(kv, "kv").object.fork(parent, tokens);
    return id == NoSequence ? PAGODA_OUT_OF_SEQUENCES : PAGODA_OK;
  });
}

pagoda_status pagoda_kv_truncate(pagoda_kv *kv, int64_t seq, int32_t tokens) {
  return guarded([&] {
    given(kv, "kv").object.truncate(seq, tokens);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_release_window(pagoda_kv *kv, int64_t seq,
                                       int32_t first_query, int32_t *released) {
  return guarded([&] {
    int32_t count = given(kv, "kv").object.releaseWindow(seq, first_query);
    if (released)
      *released = count;
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_remove(pagoda_kv *kv, int64_t seq) {
  return guarded([&] {
    return given(kv, "kv").object.remove(seq) ? PAGODA_OK : PAGODA_UNKNOWN;
  });
}

pagoda_status pagoda_kv_preempt(pagoda_kv *kv, int64_t seq) {
  return guarded([&] {
    given(kv, "kv").object.preempt(seq);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_resume(pagoda_kv *kv, int64_t seq) {
  return guarded([&] {
    return given(kv, "kv").object.resume(seq) ? PAGODA_OK
                                              : PAGODA_OUT_OF_BLOCKS;
  });
}

pagoda_status pagoda_kv_pending_copies(const pagoda_kv *kv,
                                       const pagoda_block_copy **copies,
                                       int32_t *count) {
  return guarded([&] {
    auto pending = given(kv, "kv").object.pendingCopies();
    given(count, "count") = static_cast<int32_t>(pending.size());
    given(copies, "copies") = pending.data();
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_copies_done(pagoda_kv *kv) {
  return guarded([&] {
    given(kv, "kv").object.copiesDone();
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_length(const pagoda_kv *kv, int64_t seq,
                               int32_t *tokens) {
  return guarded([&] {
    given(tokens, "tokens") = given(kv, "kv").object.length(seq);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_row(const pagoda_kv *kv, int64_t seq, int32_t *row) {
  return guarded([&] {
    given(row, "row") = given(kv, "kv").object.row(seq);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_tables(const pagoda_kv *kv, int32_t group,
                               const int32_t **tables, int64_t *stride) {
  return guarded([&] {
    const PagedKV &object = given(kv, "kv").object;
    given(tables, "tables") = object.tables(group);
    if (stride)
      *stride = object.tableStride();
    return PAGODA_OK;
  });
}

pagoda_status pagoda_kv_slot_mapping(const pagoda_kv *kv, int64_t seq,
                                     int32_t group, int32_t first,
                                     int32_t count, int64_t *slots) {
  return guarded([&] {
    given(kv, "kv").object.slotMapping(seq, first, array(slots, count, "slots"),
                                       group);
    return PAGODA_OK;
  });
}

//===----------------------------------------------------------------------===//
// Prefix cache
//===----------------------------------------------------------------------===//

static std::vector<ExtraKey> keysOf(const pagoda_extra_key *keys,
                                    int32_t count) {
  std::vector<ExtraKey> result;
  for (const pagoda_extra_key &key : array(keys, count, "keys")) {
    auto bytes = static_cast<const char *>(key.bytes);
    if (key.size)
      (void)given(bytes, "keys: bytes");
    result.push_back({key.tag, {bytes, key.size}, key.position});
  }
  return result;
}

pagoda_status pagoda_prefix_create(pagoda_blocks *blocks,
                                   const pagoda_prefix_options *options,
                                   pagoda_prefix **out) {
  return created(out, [&] {
    const pagoda_prefix_options &o = given(options, "options");
    PrefixCacheOptions with;
    with.blockSize = o.block_size;
    with.groups = groupsOf(o.groups, o.num_groups);
    with.retain = !o.no_retention;
    if (o.seeded)
      with.seed = o.seed;
    if (o.event_capacity)
      with.eventCapacity = o.event_capacity;
    return new pagoda_prefix{PrefixCache(given(blocks, "blocks").object, with)};
  });
}

void pagoda_prefix_destroy(pagoda_prefix *prefix) { delete prefix; }

pagoda_status pagoda_hit_create(pagoda_hit **out) {
  return created(out, [&] { return new pagoda_hit{}; });
}

void pagoda_hit_destroy(pagoda_hit *hit) { delete hit; }

pagoda_status pagoda_prefix_lookup(const pagoda_prefix *prefix,
                                   const int32_t *tokens, int32_t count,
                                   const pagoda_extra_key *keys,
                                   int32_t num_keys, pagoda_hit *hit,
                                   int32_t *hit_tokens) {
  return guarded([&] {
    int32_t length =
        given(prefix, "prefix")
            .object.lookup(array(tokens, count, "tokens"),
                           keysOf(keys, num_keys), given(hit, "hit").object);
    if (hit_tokens)
      *hit_tokens = length;
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_attach(pagoda_prefix *prefix, pagoda_kv *kv,
                                   int64_t seq, const pagoda_hit *hit) {
  return guarded([&] {
    return given(kv, "kv").object.attachPrefix(
               seq, given(prefix, "prefix").object, given(hit, "hit").object)
               ? PAGODA_OK
               : PAGODA_STALE;
  });
}

pagoda_status pagoda_prefix_store(pagoda_prefix *prefix, pagoda_kv *kv,
                                  int64_t seq, const int32_t *tokens,
                                  int32_t count, const pagoda_extra_key *keys,
                                  int32_t num_keys, int32_t priority) {
  return guarded([&] {
    given(kv, "kv").object.storePrefix(seq, given(prefix, "prefix").object,
                                       array(tokens, count, "tokens"),
                                       keysOf(keys, num_keys), priority);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_touch(pagoda_prefix *prefix,
                                  const pagoda_hit *hit) {
  return guarded([&] {
    given(prefix, "prefix").object.touch(given(hit, "hit").object);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_set_priority(pagoda_prefix *prefix,
                                         const pagoda_hit *hit,
                                         int32_t priority) {
  return guarded([&] {
    given(prefix, "prefix")
        .object.setPriority(given(hit, "hit").object, priority);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_pin(pagoda_prefix *prefix, const pagoda_hit *hit) {
  return guarded([&] {
    return given(prefix, "prefix").object.pin(given(hit, "hit").object)
               ? PAGODA_OK
               : PAGODA_STALE;
  });
}

pagoda_status pagoda_prefix_unpin(pagoda_prefix *prefix,
                                  const pagoda_hit *hit) {
  return guarded([&] {
    given(prefix, "prefix").object.unpin(given(hit, "hit").object);
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_clear(pagoda_prefix *prefix) {
  return guarded([&] {
    given(prefix, "prefix").object.clear();
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_drain_events(pagoda_prefix *prefix,
                                         pagoda_prefix_event *events,
                                         int32_t capacity, int32_t *count) {
  return guarded([&] {
    PrefixCache &cache = given(prefix, "prefix").object;
    int32_t &n = given(count, "count");
    n = 0;
    for (pagoda_prefix_event &event : array(events, capacity, "events")) {
      CacheEvent e;
      if (cache.drainEvents({&e, 1}) == 0)
        break;
      event = {e.kind == CacheEvent::Removed,
               e.group,
               e.block,
               0,
               {e.hash.low, e.hash.high},
               {e.parent.low, e.parent.high}};
      ++n;
    }
    return PAGODA_OK;
  });
}

pagoda_status pagoda_prefix_get_counters(const pagoda_prefix *prefix,
                                         pagoda_prefix_counters *out) {
  return guarded([&] {
    const PrefixCache &cache = given(prefix, "prefix").object;
    const CacheCounters &c = cache.counters();
    given(out, "out") = {c.acquisitions, c.promptTokens,  c.acquiredTokens,
                         c.stored,       c.duplicates,    c.evicted,
                         c.lostEvents,   cache.numIdle(), cache.numStored()};
    return PAGODA_OK;
  });
}
