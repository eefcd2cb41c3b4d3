/*
 * search_kit.h - what the tests of search share: messages, and the hits of a query on one line.
 * Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_SEARCH_SEARCH_KIT_H
#define AGENTWAL_TESTS_LIB_SEARCH_SEARCH_KIT_H

#include "agentwal/admin.h"
#include "agentwal/search.h"
#include "tests/lib/kit/store_kit.h"

/* It is closed when the test ends, or before. */
struct wal_search *kit_search(struct wal_store *store);
void kit_search_close(struct wal_search *search);
#define wal_search_close kit_search_close

/* Appends a message of a role with a text, that has no character to escape. */
void kit_say(struct wal_session *session, const char *id, const char *role, const char *text);

/* The hits of a query, as "SESSION:ENTRY SESSION:ENTRY", in their order; "-" for the entry of a
 * title, "none" without hits; until the next call. */
const char *kit_hits(struct wal_search *search, const char *text);
const char *kit_query(struct wal_search *search, const struct wal_search_query *query);

/* A query of the text, to be changed. */
struct wal_search_query kit_search_query(const char *text);

/* Opens the store "store", looks for the text in a new search, and closes both; as kit_hits. */
const char *kit_hits_anew(const char *text);

/* Whether a file of the directory, or of one below it, has the bytes. */
bool kit_tree_has(const char *directory, const char *bytes);

#endif
