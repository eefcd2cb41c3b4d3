/*
 * dialect.c - finds dialects in their list (convert/model/dialect.h).
 *
 * Invariant: `lines` is the last one and recognises nothing; it is the default.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include <string.h>

#define DIALECT_ADDRESS(name) &wal__dialect_##name,

static const struct wal__dialect *const dialects[] = {WAL__DIALECT_LIST(DIALECT_ADDRESS) NULL};

#define DIALECT_COUNT (sizeof(dialects) / sizeof(dialects[0]) - 1)

const struct wal__dialect *const *wal__dialect_list(void)
{
    return dialects;
}

const struct wal__dialect *wal__dialect_at(size_t index)
{
    return index < DIALECT_COUNT ? dialects[index] : NULL;
}

const struct wal__dialect *wal__dialect_find(const char *name)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        if (strcmp(dialects[i]->name, name) == 0) {
            return dialects[i];
        }
    }
    return NULL;
}

const struct wal__dialect *wal__dialect_recognise(const void *data, size_t size, bool is_first)
{
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        if (wal__line_recognise(dialects[i], data, size, is_first)) {
            return dialects[i];
        }
    }
    return NULL;
}
