/*
 * pack_live.h - what of the pack is live (SPEC.md 3.9): contents that records
 * or callers name, the chunks of larger ones, and the chunks that deltas are
 * based on.
 *
 * Memory: 80 bytes for each live content and chunk. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_PACK_PACK_LIVE_H
#define AGENTWAL_ENGINE_COMPACT_PACK_PACK_LIVE_H

#include "engine/base/hashmap.h"
#include "engine/blob/blob_store.h"

struct wal__live_blob {
    struct wal__digest digest;
    uint64_t position; /* of its newest record; 0: it is not stored */
    uint32_t size;     /* bytes of that; 0: its header cannot be read */
    uint32_t base;     /* rank + 1 of the chunk that it is based on; 0: none */
    bool is_named;     /* else it is only a base */
    bool is_list;      /* of files, which are named too */
    bool is_kept;      /* a base of what is not encoded anew */
};

struct wal__pack_live {
    struct wal__blob_store *blobs;
    const struct wal__heap *heap;
    struct wal__hashmap map; /* hash of the digest -> rank */
    struct wal__live_blob *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t followed; /* items before it are complete */
};

void wal__pack_live_init(struct wal__pack_live *live,
                         struct wal__blob_store *blobs);
void wal__pack_live_deinit(struct wal__pack_live *live);

/* Adds content that something names; `is_list`: a list of files. Content that
 * is not stored does no harm. WAL_ENOMEM. */
enum wal_status wal__pack_live_name(struct wal__pack_live *live,
                                    const struct wal__digest *digest,
                                    bool is_list) WAL_MUST_USE;
/* Adds what the contents consist of: files of lists, chunks, bases. Again after
 * more were named. WAL_ECORRUPT: what a content consists of cannot be read. */
enum wal_status wal__pack_live_follow(struct wal__pack_live *live,
                                      struct wal_error *error) WAL_MUST_USE;
/* Keeps the chunks that this one is based on, as it is not encoded anew. */
void wal__pack_live_keep_bases(struct wal__pack_live *live, uint32_t rank);
/* Returns NULL when the digest was not added. */
const struct wal__live_blob *
wal__pack_live_find(const struct wal__pack_live *live,
                    const struct wal__digest *digest);

static inline bool wal__live_blob_stays(const struct wal__live_blob *blob)
{
    return blob->is_named || blob->is_kept;
}

#endif
