/*
 * documents.h - the documents of one session, or of the store: each key with its versions, newest
 * first (SPEC.md 5.8). Built from postings; the texts of keys stay in the log.
 *
 * A document is identified by the hash of its key: the writer of a document refuses a key whose
 * hash equals that of another key.
 *
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_STORE_DOCUMENTS_H
#define AGENTWAL_ENGINE_STORE_DOCUMENTS_H

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

/* The order by key, built when documents are first listed. */
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

void wal__documents_init(struct wal__documents *documents, const struct wal__heap *heap);
void wal__documents_deinit(struct wal__documents *documents);

/* Adds a DOC or DOC_DELETE, in log order; other types are ignored. WAL_ENOMEM leaves the state
 * unchanged. */
enum wal_status wal__documents_add(struct wal__documents *documents,
                                   const struct wal__posting *posting,
                                   uint64_t position) WAL_MUST_USE;

/* The document of a key, deleted ones included; or null. Valid until the next add. */
struct wal__document *wal__documents_find(const struct wal__documents *documents,
                                          uint64_t key_hash);

/* The version with this sequence number, or null. */
const struct wal__doc_version *wal__documents_find_version(const struct wal__documents *documents,
                                                           uint64_t sequence);

/* The newest version of a document, and the one before a version or null. */
const struct wal__doc_version *wal__documents_newest(const struct wal__documents *documents,
                                                     const struct wal__document *document);
const struct wal__doc_version *wal__documents_previous(const struct wal__documents *documents,
                                                       const struct wal__doc_version *version);

/*
 * Listing documents in the order of their keys: a prefix is found by binary search. Every call here
 * writes.
 */

/* Reads keys. WAL_ENOTFOUND: the key is unreadable, and the document comes before all others. *key
 * is valid until the next call. */
struct wal__document_keys {
    enum wal_status (*read)(void *ctx, const struct wal__document *document, struct wal__span *key);
    void *ctx;
};

/* The documents to visit: those with an unreadable key, then those with keys from `from` on, up to
 * the first that does not begin with `prefix`. All keys that begin with it follow `from`. */
struct wal__document_range {
    struct wal__span from;
    struct wal__span prefix;
};

/* Calls `visit` with the rank of each document of the range, and whether its key is readable, in
 * order, deleted ones included; stops at its first failure. WAL_ENOMEM; WAL_ECORRUPT or what
 * keys->read failed with: the order is then built anew by the next call. */
typedef enum wal_status wal__document_visitor(void *ctx, uint32_t rank, bool is_readable);
enum wal_status wal__documents_visit(struct wal__documents *documents,
                                     const struct wal__document_keys *keys,
                                     const struct wal__document_range *range,
                                     wal__document_visitor *visit, void *ctx) WAL_MUST_USE;

#endif
