/*
 * catalogue_source.c - finds the sessions that were imported from a source
 * (catalogue.h), so that an import finds the sessions of its files without
 * reading all others.
 *
 * Invariant: by_source has each session that was visible with a source when its
 * number was indexed, once; what is deleted since stays there, and is not found.
 * The caller's lock: one writer to index, any readers to iterate.
 */
#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static uint64_t hash_source(struct wal__span source)
{
    return wal__id_hash(source.data, source.size);
}

enum wal_status wal__catalogue_index_sources(struct wal__catalogue *catalogue)
{
    while (catalogue->sources_indexed < catalogue->last_session) {
        uint32_t number = catalogue->sources_indexed + 1;
        struct wal__summary summary;
        enum wal_status status =
            wal__catalogue_get(catalogue, number, &summary);

        if (status == WAL_OK && summary.source.size > 0 &&
            !wal__summary_is_hidden(&summary)) {
            status = wal__hashmap_add(&catalogue->by_source,
                                      hash_source(summary.source), number);
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        catalogue->sources_indexed = number;
    }
    return WAL_OK;
}

/* Adds the session to the heap when it passes the filter; `capacity` items have
 * room. */
static enum wal_status add_session(struct wal__catalogue_iter *iter,
                                   const struct wal__catalogue *catalogue,
                                   uint32_t number, uint32_t capacity)
{
    struct wal__summary summary;
    struct wal__list_key key;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    key = wal__summary_list_key(&summary);
    if (!wal__summary_is_hidden(&summary) &&
        wal__list_key_is_after(&key, &iter->filter.after) &&
        wal__catalogue_filter_matches(&iter->filter, &summary)) {
        WAL__ASSERT(iter->item_count < capacity);
        iter->items[iter->item_count++] = wal__list_key_to_item(&key);
    }
    return WAL_OK;
}

static uint32_t count_hashes(const struct wal__hashmap *map, uint64_t hash)
{
    uint32_t cursor = 0;
    uint32_t number;
    uint32_t count = 0;

    while (wal__hashmap_find(map, hash, &cursor, &number)) {
        count++;
    }
    return count;
}

enum wal_status
wal__catalogue_iter_sources(struct wal__catalogue_iter *iter,
                            const struct wal__catalogue *catalogue)
{
    const struct wal__hashmap *map = &catalogue->by_source;
    uint64_t hash = hash_source(iter->filter.source);
    uint32_t capacity = count_hashes(map, hash);
    uint32_t cursor = 0;
    uint32_t number;

    WAL__ASSERT(wal__catalogue_has_sources(catalogue));
    if (capacity == 0) {
        return WAL_OK;
    }
    iter->items =
        wal__heap_resize(catalogue->heap, NULL, capacity, sizeof(*iter->items));
    if (iter->items == NULL) {
        return WAL_ENOMEM;
    }
    while (wal__hashmap_find(map, hash, &cursor, &number)) {
        enum wal_status status = add_session(iter, catalogue, number, capacity);

        if (status != WAL_OK) {
            wal__heap_free(catalogue->heap, iter->items);
            iter->items = NULL;
            return status;
        }
    }
    wal__heapsort_make_heap(iter->items, iter->item_count);
    return WAL_OK;
}
