/*
 * random.c - a pool of random bytes (random.h; SPEC.md 5.1). Any thread.
 */
#include "engine/base/random.h"

#include <string.h>
#include <sys/random.h>

#include "engine/base/descriptor.h"
#include "format/bytes/assert.h"

void wal__random_system(void *ctx, void *data, size_t size)
{
    (void)ctx;
    uint8_t *out = data;

    while (size > 0) {
        ssize_t result;

        WAL__RETRY_EINTR(result, getrandom(out, size, 0));
        WAL__ASSERT(result > 0);
        out += result;
        size -= (size_t)result;
    }
}

void wal__random_init(struct wal__random *random)
{
    pthread_mutex_init(&random->mutex, NULL);
    random->unused_size = 0;
}

void wal__random_deinit(struct wal__random *random)
{
    pthread_mutex_destroy(&random->mutex);
}

void wal__random_bytes(struct wal__random *random, const struct wal__io *io,
                       void *out, size_t size)
{
    WAL__ASSERT(size <= WAL__RANDOM_POOL_SIZE);
    if (random == NULL) {
        io->random(io->ctx, out, size);
        return;
    }
    pthread_mutex_lock(&random->mutex);
    if (random->unused_size < size) {
        io->random(io->ctx, random->bytes, sizeof(random->bytes));
        random->unused_size = sizeof(random->bytes);
    }
    WAL__ASSERT(random->unused_size >= size);
    random->unused_size -= size;
    memcpy(out, random->bytes + random->unused_size, size);
    pthread_mutex_unlock(&random->mutex);
}
