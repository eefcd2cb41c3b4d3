/*
 * handle_kit.h - handles of every kind, for tests of their lives: how each is
 * opened and closed, and what its calls return once the store is closed.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_HANDLE_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_HANDLE_KIT_H

#include "engine/base/heap.h"
#include "tests/lib/kit/store_kit.h"

enum kit_handle_kind {
    KIT_HANDLE_SESSION,
    KIT_HANDLE_SESSION_CURSOR,
    KIT_HANDLE_ENTRY_CURSOR,
    KIT_HANDLE_DOC_CURSOR,
    KIT_HANDLE_HEAD_CURSOR,
    KIT_HANDLE_CLAIM_CURSOR,
    KIT_HANDLE_FILE_CURSOR,
    KIT_HANDLE_CHECKPOINT_CURSOR,
    KIT_HANDLE_FILE_CHANGE_CURSOR,
    KIT_HANDLE_TICKET,
    KIT_HANDLE_BLOB_WRITER,
    KIT_HANDLE_VIEW,
    KIT_HANDLE_BLOB, /* the last: with WAL_OPEN_NOOP there is none */
    KIT_HANDLE_COUNT
};

/* A handle; null once closed. */
struct kit_handle {
    enum kit_handle_kind kind;
    void *at;
};

/* The flags of opening: a store on disk, in memory, and without persistence. */
extern const uint32_t kit_handle_stores[3];

/* Opens a new store with these flags, "store" if it is on disk, and creates the
 * session "s" with something for each kind of cursor to return. */
struct wal_store *kit_handle_store(uint32_t flags, const struct wal__heap *heap,
                                   struct wal_session **session);

/* Opens a handle of the kind on the session. random: chooses between ways of
 * opening one. */
struct kit_handle kit_handle_open(struct wal_store *store,
                                  struct wal_session *session,
                                  enum kit_handle_kind kind, uint64_t random);

/* Any thread. */
void kit_handle_close(struct kit_handle *handle);

/* Every call on the handle returns `status` and a sentence, or with WAL_ECLOSED
 * what it does after wal_close. False: prints the call that does not. */
bool kit_handle_returns(const struct kit_handle *handle,
                        enum wal_status status);

#endif
