/*
 * describe_kit.h - everything that the interface answers about a store, as text, so that two stores
 * can be compared. Left out: sequence numbers and versions, which differ between a store and a
 * copy. Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_DESCRIBE_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_DESCRIBE_KIT_H

#include "tests/lib/kit/store_kit.h"

/* Every session in the order of the list, and the documents of the store; to be freed. */
char *kit_describe(struct wal_store *store);
/* One session; to be freed. */
char *kit_describe_session(struct wal_store *store, const char *id);
/* Both stores answer the same. */
void assert_same_stores(struct wal_store *a, struct wal_store *b);
void assert_same_session(struct wal_store *a, struct wal_store *b, const char *id);

#endif
