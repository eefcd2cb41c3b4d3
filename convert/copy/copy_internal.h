/*
 * copy_internal.h - cursors over the entries of a copy, shared by copy.c and
 * copy_own.c (copy.h).
 *
 * Threads: one at a time per copy.
 */
#ifndef AGENTWAL_CONVERT_COPY_COPY_INTERNAL_H
#define AGENTWAL_CONVERT_COPY_COPY_INTERNAL_H

#include "agentwal.h"

/* Opens a cursor over all entries of the stream, in the order of the log. */
enum wal_status wal__copy_open_cursor(struct wal_session *session,
                                      uint32_t stream, uint32_t flags,
                                      uint64_t skip,
                                      struct wal_entry_cursor **cursor,
                                      struct wal_error *error);

enum wal_status wal__copy_next_entry(struct wal_entry_cursor *cursor,
                                     struct wal_entry *entry,
                                     struct wal_error *error);

#endif
