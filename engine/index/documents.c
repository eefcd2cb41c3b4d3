/*
 * documents.c - keys and their versions (documents.h). No section of SPEC.md.
 * Invariant: versions ascend by sequence, and each links to the version of the
 * same key before it. The caller's lock: one writer, or any readers.
 */
#include "engine/index/documents.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/segment/frame.h"

void wal__documents_init(struct wal__documents *documents,
                         const struct wal__heap *heap)
{
    memset(documents, 0, sizeof(*documents));
    documents->heap = heap;
    wal__hashmap_init(&documents->by_hash, heap);
}

void wal__documents_deinit(struct wal__documents *documents)
{
    if (documents->heap == NULL) {
        return;
    }
    wal__documents_drop_order(documents);
    wal__heap_free(documents->heap, documents->items);
    wal__heap_free(documents->heap, documents->versions);
    wal__hashmap_deinit(&documents->by_hash);
    wal__documents_init(documents, documents->heap);
}

/* Appends a document with this hash; the caller sets its first version. */
static enum wal_status add_document(struct wal__documents *documents,
                                    uint64_t key_hash)
{
    struct wal__document *items = wal__heap_grow_array(
        documents->heap, documents->items, documents->count,
        &documents->capacity, sizeof(*items));
    enum wal_status status;

    if (items == NULL) {
        return WAL_ENOMEM;
    }
    documents->items = items;
    WAL__ASSERT(documents->count < documents->capacity);
    status = wal__hashmap_add(&documents->by_hash, key_hash, documents->count);
    if (status != WAL_OK) {
        return status;
    }
    items[documents->count] = (struct wal__document){.key_hash = key_hash};
    documents->count++;
    return WAL_OK;
}

enum wal_status wal__documents_add(struct wal__documents *documents,
                                   const struct wal__posting *posting,
                                   uint64_t position)
{
    struct wal__doc_version *version;
    struct wal__document *document;
    enum wal_status status;
    uint32_t before = 0;

    if (posting->type != WAL__FRAME_DOC &&
        posting->type != WAL__FRAME_DOC_DELETE) {
        return WAL_OK;
    }
    version = wal__heap_grow_array(
        documents->heap, documents->versions, documents->version_count,
        &documents->version_capacity, sizeof(*version));
    if (version == NULL) {
        return WAL_ENOMEM;
    }
    documents->versions = version;
    document = wal__documents_find(documents, posting->id_hash);
    if (document != NULL) {
        before = document->newest + 1;
    } else {
        status = add_document(documents, posting->id_hash);
        if (status != WAL_OK) {
            return status;
        }
        document = &documents->items[documents->count - 1];
    }
    WAL__ASSERT(documents->version_count < documents->version_capacity);

    WAL__ASSERT(before <= documents->version_count);
    version += documents->version_count;
    version->sequence = posting->sequence;
    version->position = position;
    version->previous = before;
    version->deleted = posting->type == WAL__FRAME_DOC_DELETE;
    document->newest = documents->version_count;
    documents->version_count++;
    return WAL_OK;
}

struct wal__document *
wal__documents_find(const struct wal__documents *documents, uint64_t key_hash)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&documents->by_hash, key_hash, &cursor, &rank)) {
        WAL__ASSERT(rank < documents->count);
        if (documents->items[rank].key_hash == key_hash) {
            return &documents->items[rank];
        }
    }
    return NULL;
}

const struct wal__doc_version *
wal__documents_newest(const struct wal__documents *documents,
                      const struct wal__document *document)
{
    WAL__ASSERT(document->newest < documents->version_count);
    return &documents->versions[document->newest];
}

const struct wal__doc_version *
wal__documents_find_version(const struct wal__documents *documents,
                            uint64_t sequence)
{
    uint32_t low = 0;
    uint32_t high = documents->version_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (documents->versions[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < documents->version_count &&
                   documents->versions[low].sequence == sequence
               ? &documents->versions[low]
               : NULL;
}

const struct wal__doc_version *
wal__documents_previous(const struct wal__documents *documents,
                        const struct wal__doc_version *version)
{
    WAL__ASSERT(version->previous <= documents->version_count);
    return version->previous == 0 ? NULL
                                  : &documents->versions[version->previous - 1];
}
