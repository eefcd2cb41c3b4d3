/*
 * reading_kit.h - what the tests of readers share: a session to read, entries that are hidden, and
 * an iterator that is taken step by step. Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_READING_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_READING_KIT_H

#include "tests/lib/kit/store_kit.h"

struct reading {
    struct wal_store *store;
    struct wal_session *session;
};

/* A new store with the session "s". */
struct reading reading_begin(void);
void reading_deinit(struct reading *reading);
/* Closes both, and opens them with these flags. */
void reading_reopen(struct reading *reading, uint32_t flags);

/* Appends one entry, written; parent null: under the head. */
void reading_append(struct wal_session *session, const char *id, const char *parent,
                    const char *type, const char *payload);
/* Appends deltas as lines, which are not provisional, with these ids, separated by a blank, each
 * under the head. */
void reading_deltas(struct wal_session *session, const char *ids);
/* Redacts an entry by one with the id "x" and that of the target, in a separate stream. Target and
 * reason are put into JSON as they are. */
void reading_redact(struct wal_session *session, const char *target, const char *reason);

/* The ids that are read with these options; as kit_list_ids. */
const char *reading_ids(struct wal_session *session, uint32_t mode, uint32_t flags);

struct wal_entry_cursor *reading_open(struct wal_session *session, uint32_t mode, uint32_t flags);
/* The next entry is this, under that, so deep; a root's parent is "". */
void reading_assert_next(struct wal_entry_cursor *cursor, const char *id, const char *parent,
                         uint64_t depth);
/* There is no more; closes the iterator. */
void reading_assert_end(struct wal_entry_cursor *cursor);

#endif
