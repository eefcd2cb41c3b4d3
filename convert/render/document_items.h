/*
 * document_items.h - the items of a session whose dialect stores documents, one
 * per file of a directory.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_DOCUMENT_ITEMS_H
#define AGENTWAL_CONVERT_RENDER_DOCUMENT_ITEMS_H

#include "convert/render/session_items.h"

/* Calls `each` for the documents whose keys begin with `prefix`, until it
 * returns false. Values are valid until the scratch memory is reset. */
enum wal_status wal__document_items_scan(
    struct wal__session_items *items, const char *prefix,
    bool (*each)(void *ctx, const char *key, struct wal__json_span value),
    void *ctx, struct wal_error *error) WAL_MUST_USE;

enum wal_status wal__document_items_read(struct wal__session_items *items,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
