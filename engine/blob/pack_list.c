/*
 * pack_list.c - which records a segment has (pack_list.h). The index lock is
 * held while they are copied, never while records are read.
 */
#include "engine/blob/pack_list.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/pack_indexes.h"
#include "format/bytes/bytes.h"

static enum wal_status list_index(const struct wal__pack_index *index,
                                  uint64_t id, struct wal__buf *places)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.posting_count && status == WAL_OK;
         i++) {
        struct wal__pack_place place;

        memcpy(place.digest.bytes,
               index->digests + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        place.position =
            wal__position(id, wal__get32(index->offsets + (size_t)i * 4));
        status = wal__buf_append(places, &place, sizeof(place));
    }
    return status;
}

static enum wal_status list_tail(const struct wal__blob_store *blobs,
                                 uint64_t id, struct wal__buf *places)
{
    const struct wal__pack_entry *entries =
        (const void *)blobs->tail.entries.data;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < blobs->tail.count && status == WAL_OK; i++) {
        const struct wal__pack_place place = {
            entries[i].digest, wal__position(id, entries[i].offset)};

        status = wal__buf_append(places, &place, sizeof(place));
    }
    return status;
}

/* With the index lock for writing, and the indexes loaded. */
static enum wal_status list_locked(struct wal__blob_store *blobs, uint64_t id,
                                   struct wal__index_header *header,
                                   struct wal__buf *places)
{
    const struct wal__segment *tail = blobs->log.tail_segment;

    for (uint32_t i = 0; i < blobs->index_count; i++) {
        const struct wal__pack_index *index = &blobs->indexes[i].index;

        if (blobs->indexes[i].id == id) {
            *header = index->header;
            return list_index(index, id, places);
        }
    }
    return tail != NULL && tail->id == id ? list_tail(blobs, id, places)
                                          : WAL_ENOTFOUND;
}

enum wal_status wal__pack_list(struct wal__blob_store *blobs, uint64_t id,
                               struct wal__index_header *header,
                               struct wal__buf *places, struct wal_error *error)
{
    enum wal_status status = wal__blob_store_read_lock(blobs, error);

    places->size = 0;
    memset(header, 0, sizeof(*header));
    if (status != WAL_OK) {
        return status;
    }
    wal__blob_store_unlock(blobs);
    pthread_rwlock_wrlock(&blobs->index_lock);
    status = wal__pack_indexes_load(blobs, error);
    if (status == WAL_OK) {
        status = list_locked(blobs, id, header, places);
        if (status != WAL_OK) {
            wal__fail(error, status, "cannot list a segment of the pack");
        }
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}
