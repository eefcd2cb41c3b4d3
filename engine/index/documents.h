/*
 * documents.h - the documents of one session, or of the store: each key with
 * its versions, newest first (SPEC.md 5.8). Built from postings; the texts of
 * keys stay in the log (document_order.h).
 *
 * A document is identified by the hash of its key: the writer of a document
 * refuses a key whose hash equals that of another key.
 *
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_INDEX_DOCUMENTS_H
#define AGENTWAL_ENGINE_INDEX_DOCUMENTS_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "format/index/index_fmt.h"

struct wal__doc_version {
    uint64_t sequence;
    uint64_t position;
    uint32_t previous; /* rank + 1 of the key's version before; 0: none */
    bool deleted;
};

struct wal__document {
    uint64_t key_hash;
    uint32_t newest; /* rank of its newest version */
};

/* Ranks of documents, ascending by key. */
struct wal__document_ranks {
    uint32_t *items;
    uint32_t count;
    uint32_t unreadable; /* of these, the first: their keys are unreadable */
};

/* Built by document_order.c. */
struct wal__document_order {
    struct wal__document_ranks sorted;
    struct wal__document_ranks recent; /* not in `sorted` yet */
    uint32_t known;                    /* documents that are in one of them */
};

struct wal__documents {
    const struct wal__heap *heap;
    struct wal__document *items;
    uint32_t count;
    uint32_t capacity;
    struct wal__doc_version *versions; /* ascending by sequence */
    uint32_t version_count;
    uint32_t version_capacity;
    struct wal__hashmap by_hash; /* key hash -> rank in items */
    struct wal__document_order order;
};

void wal__documents_init(struct wal__documents *documents,
                         const struct wal__heap *heap);
void wal__documents_deinit(struct wal__documents *documents);

/* Adds a DOC or DOC_DELETE, in log order; other types are ignored. WAL_ENOMEM
 * leaves the state unchanged. */
enum wal_status wal__documents_add(struct wal__documents *documents,
                                   const struct wal__posting *posting,
                                   uint64_t position) WAL_MUST_USE;

/* The document of a key, deleted ones included; or null. Valid until the next
 * add. */
struct wal__document *
wal__documents_find(const struct wal__documents *documents, uint64_t key_hash);

/* The version with this sequence number, or null. */
const struct wal__doc_version *
wal__documents_find_version(const struct wal__documents *documents,
                            uint64_t sequence);

/* The newest version of a document, and the one before a version or null. */
const struct wal__doc_version *
wal__documents_newest(const struct wal__documents *documents,
                      const struct wal__document *document);
const struct wal__doc_version *
wal__documents_previous(const struct wal__documents *documents,
                        const struct wal__doc_version *version);

/* Frees the order by key, which is built again when it is needed. */
void wal__documents_drop_order(struct wal__documents *documents);

#endif
