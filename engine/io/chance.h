/*
 * chance.h - random bytes for made-up ids, kept in store so that an id costs
 * no system call (SPEC.md 5.1). Any thread; init and deinit one.
 *
 * Invariant: each byte is given once. A child of fork() has the same ones in
 * store and must not take any: its handles are refused before they do.
 */
#ifndef WAL_IO_CHANCE_H
#define WAL_IO_CHANCE_H

#include <pthread.h>

#include "engine/io/io.h"

enum {
    WAL__CHANCE_SIZE = 1024
};

struct wal__chance {
    pthread_mutex_t mutex;
    size_t left; /* bytes at the end of `bytes` not given yet */
    uint8_t bytes[WAL__CHANCE_SIZE];
};

void wal__chance_init(struct wal__chance *chance);
void wal__chance_deinit(struct wal__chance *chance);

/* At most WAL__CHANCE_SIZE bytes; without a store of them (null) they come
 * from io each time. */
void wal__chance_take(struct wal__chance *chance, const struct wal__io *io,
                      void *out, size_t size);

#endif
