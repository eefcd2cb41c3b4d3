/*
 * document_order.h - the documents of a session in the order of their keys,
 * built when they are first listed (SPEC.md 5.8): a prefix is found by binary
 * search. Keys are not kept in memory: they are read from the log where they
 * are compared.
 *
 * Locks as in documents.h; every call here writes.
 */
#ifndef AGENTWAL_ENGINE_INDEX_DOCUMENT_ORDER_H
#define AGENTWAL_ENGINE_INDEX_DOCUMENT_ORDER_H

#include "engine/base/buf.h"
#include "engine/index/documents.h"

/* Reads keys. WAL_ENOTFOUND: the key is unreadable, and the document comes
 * before all others. *key is valid until the next call. */
struct wal__document_keys {
    enum wal_status (*read)(void *ctx, const struct wal__document *document,
                            struct wal__span *key);
    void *ctx;
};

/* The documents to visit: those with an unreadable key, then those with keys
 * from `from` on, up to the first that does not begin with `prefix`. All keys
 * that begin with it follow `from`. */
struct wal__document_range {
    struct wal__span from;
    struct wal__span prefix;
};

/* Calls `visit` with the rank of each document of the range, and whether its
 * key is readable, in order, deleted ones included; stops at its first failure.
 * WAL_ENOMEM; WAL_ECORRUPT or what keys->read failed with: the order is then
 * built anew by the next call. */
typedef enum wal_status wal__document_visitor(void *ctx, uint32_t rank,
                                              bool is_readable);
enum wal_status wal__documents_visit(struct wal__documents *documents,
                                     const struct wal__document_keys *keys,
                                     const struct wal__document_range *range,
                                     wal__document_visitor *visit,
                                     void *ctx) WAL_MUST_USE;

#endif
