/*
 * store.h - opening a store on another system than the real one: for tests.
 */
#ifndef AGENTWAL_ENGINE_SESSION_STORE_H
#define AGENTWAL_ENGINE_SESSION_STORE_H

#include "agentwal/admin.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"

/* As wal_open, with the heap and the system given; both must outlive it. */
enum wal_status wal__store_open(const char *path, const struct wal_open_options *options,
                                const struct wal__heap *heap, const struct wal__io *io,
                                struct wal_store **store, struct wal_error *error) WAL_MUST_USE;
/* What the committer thread does after a while without traffic: marks the tail. For systems without
 * threads. */
enum wal_status wal__store_commit_mark(struct wal_store *store,
                                       struct wal_error *error) WAL_MUST_USE;
/* wal_store_migrate on this heap and this io. */
enum wal_status wal__store_migrate(const char *path, const struct wal_open_options *options,
                                   const struct wal__heap *heap, const struct wal__io *io,
                                   struct wal_migrate_result *result,
                                   struct wal_error *error) WAL_MUST_USE;

/* As wal_store_encrypt, on this heap and this io. In keys.c. */
enum wal_status wal__store_encrypt(const char *path, const struct wal_open_options *options,
                                   const struct wal__heap *heap, const struct wal__io *io,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
