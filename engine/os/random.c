/*
 * random.c - random bytes kept in store (chance.h).
 */
#include "engine/os/random.h"

#include <string.h>

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
    if (random == NULL) {
        io->random(io->ctx, out, size);
        return;
    }
    pthread_mutex_lock(&random->mutex);
    if (random->unused_size < size) {
        io->random(io->ctx, random->bytes, sizeof(random->bytes));
        random->unused_size = sizeof(random->bytes);
    }
    random->unused_size -= size;
    memcpy(out, random->bytes + random->unused_size, size);
    pthread_mutex_unlock(&random->mutex);
}
