/*
 * pack_live.c - what of the pack is live (pack_live.h).
 *
 * Invariant: an item that is named has only named chunks; an item before
 * `followed` has its position, size and base.
 */
#include "engine/compact/pack/pack_live.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/chunk.h"
#include "engine/checkpoint/file_set.h"
#include "format/bytes/assert.h"

void wal__pack_live_init(struct wal__pack_live *live,
                         struct wal__blob_store *blobs)
{
    memset(live, 0, sizeof(*live));
    live->blobs = blobs;
    live->heap = blobs->env->heap;
    wal__hashmap_init(&live->map, live->heap);
}

void wal__pack_live_deinit(struct wal__pack_live *live)
{
    wal__hashmap_deinit(&live->map);
    wal__heap_free(live->heap, live->items);
    live->items = NULL;
}

/* The rank of the digest + 1, or 0. */
static uint32_t find(const struct wal__pack_live *live,
                     const struct wal__digest *digest)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&live->map, wal__digest_hash(digest), &cursor,
                             &rank)) {
        if (wal__digest_equal(&live->items[rank].digest, digest)) {
            return rank + 1;
        }
    }
    return 0;
}

const struct wal__live_blob *
wal__pack_live_find(const struct wal__pack_live *live,
                    const struct wal__digest *digest)
{
    uint32_t rank = find(live, digest);

    return rank == 0 ? NULL : &live->items[rank - 1];
}

/* Adds the digest unless it is there; *rank is its rank + 1. */
static enum wal_status add(struct wal__pack_live *live,
                           const struct wal__digest *digest, uint32_t *rank)
{
    struct wal__live_blob *items;
    enum wal_status status;

    *rank = find(live, digest);
    if (*rank != 0) {
        return WAL_OK;
    }
    items = wal__heap_grow_array(live->heap, live->items, live->count,
                                 &live->capacity, sizeof(*items));
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    live->items = items;
    items[live->count] = (struct wal__live_blob){.digest = *digest};
    status =
        wal__hashmap_add(&live->map, wal__digest_hash(digest), live->count);
    if (status == WAL_OK) {
        live->count++;
        *rank = live->count;
    }
    return status;
}

static enum wal_status add_files(struct wal__pack_live *live,
                                 const struct wal__digest *list,
                                 struct wal_error *error)
{
    struct wal__files files;
    enum wal_status status;

    wal__files_init(&files, live->heap);
    status = wal__files_load(&files, live->blobs, list, error);
    for (uint32_t i = 0; i < files.count && status == WAL_OK; i++) {
        if (files.items[i].kind != WAL__FILE_ABSENT) {
            status = wal__pack_live_name(live, &files.items[i].digest, false);
        }
    }
    wal__files_deinit(&files);
    return status;
}

enum wal_status wal__pack_live_name(struct wal__pack_live *live,
                                    const struct wal__digest *digest,
                                    bool is_list)
{
    uint32_t rank;
    enum wal_status status = add(live, digest, &rank);

    if (status == WAL_OK) {
        live->items[rank - 1].is_named = true;
        if (is_list && !live->items[rank - 1].is_list) {
            live->items[rank - 1].is_list = true;
            live->followed =
                rank - 1 < live->followed ? rank - 1 : live->followed;
        }
    }
    return status;
}

/* Names the chunks of larger content. */
static enum wal_status add_chunks(struct wal__pack_live *live,
                                  const struct wal__digest *digest,
                                  struct wal_error *error)
{
    struct wal__digest chunk;
    struct wal__buf chunks;
    enum wal_status status;
    uint64_t size;

    wal__buf_init(&chunks, live->heap);
    status = wal__blob_list_chunks(live->blobs, digest, &chunks, &size, error);
    for (size_t at = 0; at < chunks.size && status == WAL_OK;
         at += WAL__DIGEST_SIZE) {
        memcpy(chunk.bytes, chunks.data + at, WAL__DIGEST_SIZE);
        status = wal__pack_live_name(live, &chunk, false);
    }
    wal__buf_deinit(&chunks);
    return status;
}

static enum wal_status add_base(struct wal__pack_live *live, uint32_t rank,
                                struct wal__span payload)
{
    struct wal__chunk_record chunk;
    uint32_t base;
    enum wal_status status;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK ||
        chunk.encoding != WAL__CHUNK_DELTA) {
        return WAL_OK; /* of one that is not valid nothing can be read */
    }
    status = add(live, &chunk.base, &base);
    if (status == WAL_OK) {
        live->items[rank].base = base;
    }
    return status;
}

/* Finds the record of an item, and adds what it consists of. */
static enum wal_status follow(struct wal__pack_live *live, uint32_t rank,
                              struct wal__record_buf *scratch,
                              struct wal_error *error)
{
    const struct wal__digest digest = live->items[rank].digest;
    uint64_t position = 0;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status =
        wal__blob_find(live->blobs, &digest, &position, error);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    live->items[rank].position = position;
    /* All of a chunk's payload: its decoder checks the size. */
    status = wal__log_peek(&live->blobs->log, position, WAL__FRAME_PAYLOAD_MAX,
                           scratch, &frame, &payload, error);
    if (status == WAL_ECORRUPT) {
        return WAL_OK; /* the segment is refused */
    }
    if (status != WAL_OK) {
        return status;
    }
    live->items[rank].size = (uint32_t)wal__frame_total_size(frame.stored_size);
    if (frame.type == WAL__FRAME_CHUNK) {
        return add_base(live, rank, payload);
    }
    return add_chunks(live, &digest, error);
}

enum wal_status wal__pack_live_follow(struct wal__pack_live *live,
                                      struct wal_error *error)
{
    struct wal__record_buf scratch;
    enum wal_status status = WAL_OK;

    wal__record_buf_init(&scratch, live->heap);
    while (live->followed < live->count && status == WAL_OK) {
        uint32_t rank = live->followed++;
        struct wal__live_blob *item = &live->items[rank];

        if (item->position == 0) {
            status = follow(live, rank, &scratch, error);
            item = &live->items[rank];
        }
        if (status == WAL_OK && item->is_list && item->position != 0) {
            const struct wal__digest list = item->digest;

            status = add_files(live, &list, error);
        }
    }
    wal__record_buf_deinit(&scratch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

void wal__pack_live_keep_bases(struct wal__pack_live *live, uint32_t rank)
{
    uint32_t base = live->items[rank].base;

    while (base != 0 && !live->items[base - 1].is_kept) {
        live->items[base - 1].is_kept = true;
        base = live->items[base - 1].base;
    }
}
