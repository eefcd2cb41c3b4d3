/*
 * manifest.h - making and reading a store's MANIFEST (SPEC.md 2.1, 3.7).
 */
#ifndef AGENTWAL_ENGINE_STORE_MANIFEST_H
#define AGENTWAL_ENGINE_STORE_MANIFEST_H

#include "engine/os/env.h"
#include "format/segment/segment_fmt.h"

/* Whether env->root holds a store; WAL_ENOTSTORE says why not. */
enum wal_status wal__manifest_probe(const struct wal__env *env, bool *exists,
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the valid slot with the highest generation. WAL_EVERSION names both
 * numbers. *read_only is set when a writer must know more than this library
 * does. */
enum wal_status wal__manifest_read(const struct wal__env *env,
                                   struct wal__manifest *manifest,
                                   bool *read_only,
                                   struct wal_error *error) WAL_MUST_USE;

/* Makes the directories of a store in env->root, which may exist and be
 * empty. Repeatable until the manifest stands. */
enum wal_status
wal__manifest_make_directories(const struct wal__env *env,
                               struct wal_error *error) WAL_MUST_USE;

/* Writes the first manifest: from then on it is a store. Durable. */
enum wal_status wal__manifest_create(const struct wal__env *env,
                                     uint32_t group_align,
                                     struct wal__manifest *manifest,
                                     struct wal_error *error) WAL_MUST_USE;

/* Gives the store this library's format version, in one step: durable, or as
 * before. *manifest is what was read, and becomes what was written. */
enum wal_status wal__manifest_upgrade(const struct wal__env *env,
                                      struct wal__manifest *manifest,
                                      struct wal_error *error) WAL_MUST_USE;

/* Makes the names of the store durable: who created it may have died before
 * they were. Needed as long as nothing was written to it. */
enum wal_status
wal__manifest_sync_directories(const struct wal__env *env,
                               struct wal_error *error) WAL_MUST_USE;

#endif
