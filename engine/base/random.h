/*
 * random.h - random bytes of the system's generator, and a pool of them, so
 * that a generated id costs no system call (SPEC.md 5.1). Any thread; init and
 * deinit one.
 *
 * Invariant: the pool hands out each byte once. A child of fork() inherits a
 * copy of the pool and must not use it: its handles are refused before they
 * do.
 */
#ifndef AGENTWAL_ENGINE_BASE_RANDOM_H
#define AGENTWAL_ENGINE_BASE_RANDOM_H

#include <pthread.h>

#include "engine/base/io.h"

enum {
    WAL__RANDOM_POOL_SIZE = 1024
};

struct wal__random {
    pthread_mutex_t mutex;
    size_t unused_size; /* bytes at the front of `bytes`, not handed out yet */
    uint8_t bytes[WAL__RANDOM_POOL_SIZE];
};

void wal__random_init(struct wal__random *random);
void wal__random_deinit(struct wal__random *random);

/* Copies at most WAL__RANDOM_POOL_SIZE bytes from the pool, or directly from io
 * when random is NULL. */
void wal__random_bytes(struct wal__random *random, const struct wal__io *io,
                       void *out, size_t size);

/* Bytes of getrandom(2), as `random` of struct wal__io; ctx is not used. */
void wal__random_system(void *ctx, void *data, size_t size);

#endif
