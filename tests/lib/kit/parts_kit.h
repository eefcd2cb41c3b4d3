/*
 * parts_kit.h - what the tests of batches, documents, heads and metadata share: calls that must
 * succeed or must be refused, and everything that a store reports of a session, as one text to
 * compare before and after.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_PARTS_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_PARTS_KIT_H

#include "tests/lib/kit/store_kit.h"

/* Texts are returned until the next call of the same function. */

struct wal_doc kit_doc(const char *key, const char *value);
/* Puts a document; session null: the store's. Its version. */
uint64_t kit_put(struct wal_store *store, struct wal_session *session, const char *key,
                 const char *value);
uint64_t kit_delete(struct wal_store *store, struct wal_session *session, const char *key);
/* The documents as "key=value", separated by a blank; those that are deleted, with
 * WAL_DOC_CURSOR_HISTORY, as "key-". */
const char *kit_docs(struct wal_store *store, struct wal_session *session, uint32_t flags,
                     const char *prefix);
/* The value of a document, or "" where there is none. */
const char *kit_value(struct wal_store *store, struct wal_session *session, const char *key,
                      uint64_t version);

/* entry null: it is removed; expected null: whatever it is. */
struct wal_head kit_head(const char *name, const char *entry, const char *expected);
void kit_move_head(struct wal_session *session, const char *name, const char *entry);
/* The heads as "name=entry" with "(note)", separated by a blank. */
const char *kit_heads(struct wal_session *session);

/* A change of the title. */
struct wal_session_change kit_title(const char *title);

/* Everything readable of the session and the store's documents, and the
 * newest sequence number of the store. To be freed by the caller. */
char *kit_snapshot(struct wal_store *store, struct wal_session *session);
/* Nothing of it has changed; frees the picture. */
void assert_unchanged(struct wal_store *store, struct wal_session *session, char *before);
/* Everything is as before. */
void kit_reopen_unchanged(struct kit_bench *bench);

#endif
