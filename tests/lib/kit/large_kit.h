/*
 * large_kit.h - what the tests of payloads out of line share: payloads made from a number, appended
 * and compared. Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_LARGE_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_LARGE_KIT_H

#include "tests/lib/kit/blob_kit.h"

enum {
    LARGE_MIN = 256 * 1024 + 1 /* the smallest payload that is a blob */
};

/* An object of `size` bytes, terminated, until the test ends: {"text":"..."}. */
char *large_json(uint64_t seed, size_t size);

/* Appends an entry of type message, written; flags: enum wal_entry_flag. */
void large_append(struct wal_session *session, const char *id, const char *payload, uint32_t flags);
/* The entry has this payload: by its id, and where a reader of everything meets it. */
void large_check(struct wal_session *session, const char *id, const char *payload, uint32_t flags);
/* Read out of line it is where it should be, and its blob is this. */
void large_check_location(struct wal_store *store, struct wal_session *session, const char *id,
                          const char *payload, bool out_of_line);

/* Flips a bit of the first chunk in the blob stream of the store "store". */
void large_flip_chunk(void);

#endif
