/*
 * pack_memtable.c - the digests of a pack segment in memory, and the encoding
 * of its index (pack_memtable.h; SPEC.md 2.20).
 *
 * Invariant: entries has `count` entries, and map one value per entry. The
 * caller's lock: one writer, or any readers.
 */
#include "engine/blob/pack_memtable.h"

#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/segment/frame.h"

void wal__pack_memtable_init(struct wal__pack_memtable *memtable,
                             const struct wal__heap *heap)
{
    memset(memtable, 0, sizeof(*memtable));
    wal__buf_init(&memtable->entries, heap);
    wal__hashmap_init(&memtable->map, heap);
}

void wal__pack_memtable_deinit(struct wal__pack_memtable *memtable)
{
    wal__buf_deinit(&memtable->entries);
    wal__hashmap_deinit(&memtable->map);
    memtable->count = 0;
}

void wal__pack_memtable_reset(struct wal__pack_memtable *memtable)
{
    const struct wal__heap *heap = memtable->entries.heap;

    wal__pack_memtable_deinit(memtable);
    wal__pack_memtable_init(memtable, heap);
}

static const struct wal__pack_entry *
entry_at(const struct wal__pack_memtable *memtable, uint32_t rank)
{
    const void *entries = memtable->entries.data;

    WAL__ASSERT(rank < memtable->count);
    return (const struct wal__pack_entry *)entries + rank;
}

enum wal_status wal__pack_memtable_add(struct wal__pack_memtable *memtable,
                                       const struct wal__digest *digest,
                                       uint32_t offset)
{
    struct wal__pack_entry entry = {*digest, offset};

    if (wal__hashmap_reserve(&memtable->map, 1) != WAL_OK ||
        wal__buf_append(&memtable->entries, &entry, sizeof(entry)) != WAL_OK ||
        wal__hashmap_add(&memtable->map, wal__digest_hash(digest),
                         memtable->count) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memtable->count++;
    WAL__ASSERT(memtable->map.count == memtable->count &&
                memtable->entries.size == memtable->count * sizeof(entry));
    return WAL_OK;
}

enum wal_status wal__pack_memtable_load(struct wal__pack_memtable *memtable,
                                        const struct wal__pack_index *index)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK;
         i++) {
        struct wal__digest digest;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE,
               WAL__DIGEST_SIZE);
        status = wal__pack_memtable_add(
            memtable, &digest, wal__get32(index->offsets + (size_t)i * 4));
    }
    return status;
}

bool wal__pack_memtable_find(const struct wal__pack_memtable *memtable,
                             const struct wal__digest *digest, uint32_t *offset)
{
    uint32_t cursor = 0;
    uint32_t rank;
    bool found = false;

    while (wal__hashmap_find(&memtable->map, wal__digest_hash(digest), &cursor,
                             &rank)) {
        const struct wal__pack_entry *entry = entry_at(memtable, rank);

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

enum wal_status
wal__pack_memtable_encode(const struct wal__pack_memtable *memtable,
                          struct wal__index_header *header,
                          struct wal__buf *out)
{
    size_t size = (size_t)wal__pack_index_size(memtable->count);
    const struct wal__pack_entry *entries;
    struct wal__buf sorted;
    enum wal_status status;
    uint8_t *frame;

    wal__buf_init(&sorted, out->heap);
    status = wal__buf_append(&sorted, memtable->entries.data,
                             memtable->entries.size);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__buf_reserve(out, WAL__FRAME_SIZE + size, &frame);
    if (status != WAL_OK) {
        goto done;
    }
    entries = (void *)sorted.data;
    WAL__ASSERT(sorted.size == memtable->count * sizeof(*entries));
    if (memtable->count > 0) {
        qsort(sorted.data, memtable->count, sizeof(*entries), compare_entries);
    }
    memset(frame, 0, WAL__FRAME_SIZE);
    for (uint32_t i = 0; i < memtable->count; i++) {
        wal__pack_index_put(frame + WAL__FRAME_SIZE, memtable->count, i,
                            &entries[i].digest, entries[i].offset);
    }
    header->posting_count = memtable->count;
    wal__pack_index_finish(header, frame + WAL__FRAME_SIZE);
    out->size += WAL__FRAME_SIZE + size;
done:
    wal__buf_deinit(&sorted);
    return status;
}
