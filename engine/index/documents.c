/*
 * documents.c - keys and their versions (documents.h). No section of SPEC.md.
 * Invariant: versions ascend by sequence, and each names the one before it of
 * its key. The caller's lock: one writer, or any readers.
 */
#include "engine/index/documents.h"

#include <string.h>

#include "format/frame.h"

void wal__documents_init(struct wal__documents *documents,
                         const struct wal__heap *heap)
{
    memset(documents, 0, sizeof(*documents));
    documents->heap = heap;
    wal__map_init(&documents->by_hash, heap);
}

void wal__documents_deinit(struct wal__documents *documents)
{
    if (documents->heap == NULL) {
        return;
    }
    for (uint32_t i = 0; i < documents->count; i++) {
        wal__heap_free(documents->heap, documents->items[i].key);
    }
    wal__heap_free(documents->heap, documents->items);
    wal__heap_free(documents->heap, documents->versions);
    wal__map_deinit(&documents->by_hash);
    wal__documents_init(documents, documents->heap);
}

static enum wal_status reserve_version(struct wal__documents *documents)
{
    uint32_t capacity =
        documents->version_capacity == 0 ? 16 : documents->version_capacity * 2;
    struct wal__doc_version *versions;

    if (documents->version_count < documents->version_capacity) {
        return WAL_OK;
    }
    versions = capacity < documents->version_capacity
                   ? NULL
                   : wal__heap_resize(documents->heap, documents->versions,
                                      capacity, sizeof(*versions));
    if (versions == NULL) {
        return WAL_ENOMEM;
    }
    documents->versions = versions;
    documents->version_capacity = capacity;
    return WAL_OK;
}

/* A new document of this hash, with its first version to come. */
static enum wal_status add_document(struct wal__documents *documents,
                                    uint64_t key_hash)
{
    enum wal_status status;

    if (documents->count == documents->capacity) {
        uint32_t capacity =
            documents->capacity == 0 ? 16 : documents->capacity * 2;
        struct wal__document *items = wal__heap_resize(
            documents->heap, documents->items, capacity, sizeof(*items));

        if (items == NULL) {
            return WAL_ENOMEM;
        }
        documents->items = items;
        documents->capacity = capacity;
    }
    status = wal__map_add(&documents->by_hash, key_hash, documents->count);
    if (status != WAL_OK) {
        return status;
    }
    documents->items[documents->count] =
        (struct wal__document){.key_hash = key_hash};
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
    status = reserve_version(documents);
    if (status != WAL_OK) {
        return status;
    }
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
    version = &documents->versions[documents->version_count];
    version->sequence = posting->sequence;
    version->position = position;
    version->before = before;
    version->deleted = posting->type == WAL__FRAME_DOC_DELETE;
    document->newest = documents->version_count;
    documents->version_count++;
    return WAL_OK;
}

struct wal__document *
wal__documents_find(const struct wal__documents *documents, uint64_t key_hash)
{
    uint32_t cursor = 0;
    uint32_t at;

    while (wal__map_find(&documents->by_hash, key_hash, &cursor, &at)) {
        if (documents->items[at].key_hash == key_hash) {
            return &documents->items[at];
        }
    }
    return NULL;
}

const struct wal__doc_version *
wal__documents_newest(const struct wal__documents *documents,
                      const struct wal__document *document)
{
    return &documents->versions[document->newest];
}

const struct wal__doc_version *
wal__documents_before(const struct wal__documents *documents,
                      const struct wal__doc_version *version)
{
    return version->before == 0 ? NULL
                                : &documents->versions[version->before - 1];
}

enum wal_status wal__documents_name(struct wal__documents *documents,
                                    struct wal__document *document,
                                    struct wal__span key)
{
    uint8_t *copy = wal__heap_alloc(documents->heap, key.size);

    if (copy == NULL) {
        return WAL_ENOMEM;
    }
    memcpy(copy, key.data, key.size);
    document->key = copy;
    document->key_size = (uint32_t)key.size;
    return WAL_OK;
}
