/*
 * env.h - the environment of every part of a store: its heap, its operating
 * system interface and its directory. Constant once the store is open. Any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_ENV_H
#define AGENTWAL_ENGINE_BASE_ENV_H

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/base/random.h"

enum {
    WAL__PATH_MAX = 4096
};

struct wal__time_cache;

struct wal__env {
    const struct wal__heap *heap;
    const struct wal__heap
        *large_heap; /* for arrays that grow with a session */
    const struct wal__io *io;
    struct wal__random *random;    /* for generated ids; null: io each time */
    struct wal__time_cache *times; /* null: each time is formatted */
    char root[WAL__PATH_MAX];      /* the store's directory */
    bool read_only;
    bool is_replica;  /* the store is one (SPEC.md 11.2): then read_only too */
    bool has_shadows; /* ID.next is in place of ID.seg (SPEC.md 3.11) */
    bool use_pread;   /* read by pread instead of maps: WAL_OPEN_PREAD */
    uint32_t lock_timeout_ms;
};

#endif
