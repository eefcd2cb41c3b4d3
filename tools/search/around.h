/*
 * around.h - the entries before and after a hit.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_SEARCH_AROUND_H
#define AGENTWAL_TOOLS_SEARCH_AROUND_H

#include "tools/cli/cli.h"

/* Calls `each` for up to `count` entries before the entry on its branch, the
 * entry, and up to `count` after it on the live branch, if it is there. The id
 * may be that of a message that was imported as documents. */
typedef void search_around_fn(void *ctx, const struct wal_entry *entry,
                              bool is_hit);
enum wal_status search_visit_around(struct wal_store *store,
                                    struct wal_session *session,
                                    struct wal_slice entry_id, uint64_t count,
                                    search_around_fn *each, void *ctx,
                                    struct wal_error *error);

#endif
