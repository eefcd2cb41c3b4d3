/*
 * pack_tail.c - digests of a segment in memory, and its index made of them
 * (SPEC.md 2.20).
 */
#include "engine/blob/pack_tail.h"

#include <stdlib.h>
#include <string.h>

#include "format/bytes.h"
#include "format/frame.h"

void wal__pack_tail_init(struct wal__pack_tail *tail,
                         const struct wal__heap *heap)
{
    memset(tail, 0, sizeof(*tail));
    wal__buf_init(&tail->entries, heap);
    wal__map_init(&tail->map, heap);
}

void wal__pack_tail_deinit(struct wal__pack_tail *tail)
{
    wal__buf_deinit(&tail->entries);
    wal__map_deinit(&tail->map);
    tail->count = 0;
}

void wal__pack_tail_reset(struct wal__pack_tail *tail)
{
    const struct wal__heap *heap = tail->entries.heap;

    wal__pack_tail_deinit(tail);
    wal__pack_tail_init(tail, heap);
}

static const struct wal__pack_entry *entry_at(const struct wal__pack_tail *tail,
                                              uint32_t rank)
{
    const void *entries = tail->entries.data;

    return (const struct wal__pack_entry *)entries + rank;
}

enum wal_status wal__pack_tail_add(struct wal__pack_tail *tail,
                                   const struct wal__digest *digest,
                                   uint32_t offset)
{
    struct wal__pack_entry entry = {*digest, offset};

    if (wal__map_reserve(&tail->map, 1) != WAL_OK ||
        wal__buf_append(&tail->entries, &entry, sizeof(entry)) != WAL_OK ||
        wal__map_add(&tail->map, wal__digest_hash(digest), tail->count) !=
            WAL_OK) {
        return WAL_ENOMEM;
    }
    tail->count++;
    return WAL_OK;
}

enum wal_status wal__pack_tail_take(struct wal__pack_tail *tail,
                                    const struct wal__pack_index *index)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK;
         i++) {
        struct wal__digest digest;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        status = wal__pack_tail_add(tail, &digest,
                                    wal__get32(index->offsets + (size_t)i * 4));
    }
    return status;
}

bool wal__pack_tail_find(const struct wal__pack_tail *tail,
                         const struct wal__digest *digest, uint32_t *offset)
{
    uint32_t cursor = 0;
    uint32_t rank;
    bool found = false;

    while (
        wal__map_find(&tail->map, wal__digest_hash(digest), &cursor, &rank)) {
        const struct wal__pack_entry *entry = entry_at(tail, rank);

        if (memcmp(entry->digest.bytes, digest->bytes, WAL__DIGEST_SIZE) == 0 &&
            (!found || entry->offset > *offset)) {
            *offset = entry->offset;
            found = true;
        }
    }
    return found;
}

static int compare_entries(const void *a, const void *b)
{
    const struct wal__pack_entry *x = a;
    const struct wal__pack_entry *y = b;
    int order = memcmp(x->digest.bytes, y->digest.bytes, WAL__DIGEST_SIZE);

    if (order != 0) {
        return order;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

enum wal_status wal__pack_tail_encode(const struct wal__pack_tail *tail,
                                      struct wal__index_header *header,
                                      struct wal__buf *out)
{
    size_t size = (size_t)wal__pack_index_size(tail->count);
    struct wal__buf sorted;
    enum wal_status status;
    uint8_t *at;

    wal__buf_init(&sorted, out->heap);
    status = wal__buf_append(&sorted, tail->entries.data, tail->entries.size);
    if (status == WAL_OK) {
        status = wal__buf_reserve(out, WAL__FRAME_SIZE + size, &at);
    }
    if (status == WAL_OK) {
        const struct wal__pack_entry *entries = (void *)sorted.data;

        if (tail->count > 0) {
            qsort(sorted.data, tail->count, sizeof(*entries), compare_entries);
        }
        memset(at, 0, WAL__FRAME_SIZE);
        for (uint32_t i = 0; i < tail->count; i++) {
            wal__pack_index_put(at + WAL__FRAME_SIZE, tail->count, i,
                                &entries[i].digest, entries[i].offset);
        }
        header->posting_count = tail->count;
        wal__pack_index_seal(header, at + WAL__FRAME_SIZE);
        out->size += WAL__FRAME_SIZE + size;
    }
    wal__buf_deinit(&sorted);
    return status;
}
