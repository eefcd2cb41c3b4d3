/*
 * walconv_items.h - a session of a store as items of the neutral model.
 *
 * A line that was imported is read by the dialect that the session's source
 * names; an entry that was appended by the dialect `entries`. Ids and parents
 * are those of the log.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_ITEMS_H
#define AGENTWAL_TOOLS_WALCONV_ITEMS_H

#include "agentwal.h"
#include "format/jsonl/dialect.h"
#include "tools/walconv_arena.h"

/* The caller sets the first seven fields. */
struct walconv_items {
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect; /* of lines; from the source */
    bool (*sink)(void *ctx, struct wal__model_item *item); /* false: stop */
    bool (*is_idle)(void *ctx); /* nothing that was given is needed any more;
                                 * may be null */
    bool (*end)(void *ctx); /* behind the last item, while what was given still
                             * holds; may be null */
    void *ctx;
    uint64_t damaged;    /* out: entries that are no JSON */
    uint64_t redacted;   /* out */
    uint64_t unreadable; /* out: entries the store cannot read */
};

/* Gives all items. WAL_OK also when the sink wanted no more. */
enum wal_status walconv_items_read(struct walconv_items *items,
                                   struct wal_error *error);

/* The dialect of a session's lines: that of its source, or `entries`. */
const struct wal__dialect *
walconv_items_dialect(const struct wal_session_info *info);

/*
 * What a session is known by: what the store says, and what its first lines
 * do. The texts are in `keep`, or in the store's maps. *head is the entry that
 * the session goes on behind, or empty.
 */
enum wal_status
walconv_items_session(struct wal_store *store, struct wal_session *session,
                      struct wal__arena *keep, struct wal__model_session *known,
                      struct wal__json_span *head, struct wal_error *error);

#endif
