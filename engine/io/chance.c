/*
 * chance.c - random bytes kept in store (chance.h).
 */
#include "engine/io/chance.h"

#include <string.h>

void wal__chance_init(struct wal__chance *chance)
{
    pthread_mutex_init(&chance->mutex, NULL);
    chance->left = 0;
}

void wal__chance_deinit(struct wal__chance *chance)
{
    pthread_mutex_destroy(&chance->mutex);
}

void wal__chance_take(struct wal__chance *chance, const struct wal__io *io,
                      void *out, size_t size)
{
    if (chance == NULL) {
        io->random(io->ctx, out, size);
        return;
    }
    pthread_mutex_lock(&chance->mutex);
    if (chance->left < size) {
        io->random(io->ctx, chance->bytes, sizeof(chance->bytes));
        chance->left = sizeof(chance->bytes);
    }
    chance->left -= size;
    memcpy(out, chance->bytes + chance->left, size);
    pthread_mutex_unlock(&chance->mutex);
}
