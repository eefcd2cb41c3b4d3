/*
 * put_unsynced.h - puts content without a sync, by a base, or as the engine does for its records:
 * what the public calls do not show.
 */
#ifndef AGENTWAL_TESTS_LIB_PUT_UNSYNCED_H
#define AGENTWAL_TESTS_LIB_PUT_UNSYNCED_H

#include "engine/store/blob.h"

struct wal_store;

/* wal__blob_put under a guard that is left at once: until a record names it, a compaction may drop
 * content of records. */
enum wal_status put_unsynced(struct wal_store *store, struct wal__span content,
                             const struct wal__digest *base, enum wal__blob_owner owner,
                             struct wal__digest *digest, struct wal__blob_put_result *result,
                             struct wal_error *error);

#endif
