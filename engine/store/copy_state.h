/*
 * copy_state.h - what a copy of a store keeps of its backup: a copy whose backup was cut short
 * after its commit point is completed (SPEC.md 3.11), by one thread, which is alone in it; and the
 * file index/backup: what an interrupted backup has to know of the copy, and which records a reader
 * of the copy takes for durable. The file is derived: without it a copy is accepted when all of it
 * is found in the store.
 *
 * Invariant: the file is durable before the copy changes. `doubt` is not: it serves a later process
 * of the same boot, since what a loss of power leaves is known to be durable.
 */
#ifndef AGENTWAL_ENGINE_STORE_COPY_STATE_H
#define AGENTWAL_ENGINE_STORE_COPY_STATE_H

#include "engine/base/io.h"
#include "engine/log/control.h"
#include "engine/store/manifest.h"

struct wal__backup_stream_state {
    uint64_t before;   /* last sequence number before the last backup */
    uint64_t after;    /* at most that after it */
    uint64_t guard_id; /* of its guard; 0: there was none */
    /* A segment whose name may not be durable: the last step of a backup that did not end. 0:
     * none. */
    uint64_t doubt;
};

struct wal__backup_state {
    bool is_valid;
    struct wal__backup_stream_state streams[WAL__LOG_COUNT];
};

/* Reads the file of the copy at env->root, of the store `uuid`. */
void wal__backup_state_read(const struct wal__env *env, const uint8_t uuid[16],
                            struct wal__backup_state *state);
/* Writes it under a temporary name, syncs and renames it. */
enum wal_status wal__backup_state_write(const struct wal__env *env, const uint8_t uuid[16],
                                        const struct wal__backup_state *state,
                                        struct wal_error *error) WAL_MUST_USE;
/* Writes the doubt of one stream in place, without a sync. */
enum wal_status wal__backup_state_doubt(const struct wal__env *env, uint32_t log_id, uint64_t id,
                                        struct wal_error *error) WAL_MUST_USE;
/* Makes the directory of the blob stream, durably. */
enum wal_status wal__copy_make_pack(const struct wal__env *env,
                                    struct wal_error *error) WAL_MUST_USE;
/* Gives the shadow segments of both streams their names and removes the guards, durably, while
 * MANIFEST has `shadow`. Once, by the process that set it. */
enum wal_status wal__shadow_move(const struct wal__env *env, const uint8_t uuid[16],
                                 struct wal_error *error) WAL_MUST_USE;
/* The same, however far another process came, and takes `shadow` from
 * *manifest, which has it. Can be repeated. */
enum wal_status wal__shadow_finish(const struct wal__env *env, struct wal__manifest *manifest,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
