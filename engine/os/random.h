/*
 * random.h - random bytes for made-up ids, kept in store so that an id costs
 * no system call (SPEC.md 5.1). Any thread; init and deinit one.
 *
 * Invariant: each byte is given once. A child of fork() has the same ones in
 * store and must not take any: its handles are refused before they do.
 */
#ifndef AGENTWAL_ENGINE_OS_RANDOM_H
#define AGENTWAL_ENGINE_OS_RANDOM_H

#include <pthread.h>

#include "engine/os/io.h"

enum {
    WAL__RANDOM_POOL_SIZE = 1024
};

struct wal__random {
    pthread_mutex_t mutex;
    size_t unused_size; /* bytes at the end of `bytes` not given yet */
    uint8_t bytes[WAL__RANDOM_POOL_SIZE];
};

void wal__random_init(struct wal__random *random);
void wal__random_deinit(struct wal__random *random);

/* At most WAL__RANDOM_POOL_SIZE bytes; without a store of them (null) they come
 * from io each time. */
void wal__random_bytes(struct wal__random *random, const struct wal__io *io,
                       void *out, size_t size);

#endif
