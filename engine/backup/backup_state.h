/*
 * backup_state.h - the file index/backup of a copy: up to where the last
 * complete backup copied the tail segment of each stream. Derived: without it,
 * or where it is damaged, these segments are copied anew.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_BACKUP_STATE_H
#define AGENTWAL_ENGINE_BACKUP_BACKUP_STATE_H

#include "engine/os/env.h"
#include "engine/process/control.h"

/* The tail segment of a stream; id 0: none. */
struct wal__backup_end {
    uint64_t id;
    uint64_t salt; /* of its header */
    uint64_t end;  /* offset up to which it was copied */
};

struct wal__backup_state {
    uint64_t last_sequence; /* of the log; 0: not known */
    struct wal__backup_end ends[WAL__LOG_COUNT];
};

/* Reads the file of the copy at env->root, which is of the store `uuid`; zeros
 * when there is none that is valid. */
void wal__backup_state_read(const struct wal__env *env, const uint8_t uuid[16],
                            struct wal__backup_state *state);
/* Writes it, synced and renamed. */
enum wal_status wal__backup_state_write(const struct wal__env *env,
                                        const uint8_t uuid[16],
                                        const struct wal__backup_state *state,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
