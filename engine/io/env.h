/*
 * env.h - what every part of a store is given: where memory and the operating
 * system come from, and where the store lies. Constant once opened.
 */
#ifndef WAL_IO_ENV_H
#define WAL_IO_ENV_H

#include "engine/base/heap.h"
#include "engine/io/chance.h"
#include "engine/io/io.h"

enum {
    WAL__PATH_MAX = 4096
};

struct wal__env {
    const struct wal__heap *heap;
    const struct wal__heap *large; /* for what grows with a session */
    const struct wal__io *io;
    struct wal__chance *chance; /* for made-up ids; null: from io each time */
    char root[WAL__PATH_MAX];   /* the store's directory */
    bool read_only;
    bool no_maps; /* read by pread, WAL_OPEN_PREAD */
    uint32_t lock_timeout_ms;
};

#endif
