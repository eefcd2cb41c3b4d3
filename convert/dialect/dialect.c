/*
 * dialect.c - the list of dialects.
 *
 * Invariant: `lines` is the last one and recognises nothing; it is the default.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include <string.h>

static const struct wal__dialect *const dialects[] = {
    &wal__dialect_rollouts, &wal__dialect_pi,     &wal__dialect_codex,   &wal__dialect_entries,
    &wal__dialect_qwen,     &wal__dialect_claude, &wal__dialect_sdk,     &wal__dialect_spec11,
    &wal__dialect_opencode, &wal__dialect_cursor, &wal__dialect_copilot, &wal__dialect_gemini,
    &wal__dialect_kimi,     &wal__dialect_droid,  &wal__dialect_lines,   NULL,
};

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
        if (dialects[i]->recognise(data, size, is_first)) {
            return dialects[i];
        }
    }
    return NULL;
}
