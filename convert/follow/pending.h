/*
 * pending.h - paths that are to be scanned, each once.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_FOLLOW_PENDING_H
#define AGENTWAL_CONVERT_FOLLOW_PENDING_H

#include "agentwal.h"
#include "convert/clients/client_place.h"
#include "engine/base/heap.h"

struct wal__pending {
    uint32_t argument;       /* index */
    char *path;              /* below it */
    struct wal__place place; /* of the folder that contains the path */
    int64_t due_ms;
};

struct wal__pending_list {
    const struct wal__heap *heap;
    struct wal__pending *items; /* their paths are owned */
    uint32_t count;
    uint32_t capacity;
};

void wal__pending_init(struct wal__pending_list *list,
                       const struct wal__heap *heap);
void wal__pending_deinit(struct wal__pending_list *list);

/* Adds a copy, unless the path is in the list already; then the earlier time
 * counts. WAL_ENOMEM. */
enum wal_status wal__pending_add(struct wal__pending_list *list,
                                 const struct wal__pending *pending,
                                 struct wal_error *error) WAL_MUST_USE;

/* Removes one that is due and returns true; the caller frees it. */
bool wal__pending_take(struct wal__pending_list *list, int64_t now_ms,
                       struct wal__pending *pending);
void wal__pending_free(struct wal__pending_list *list,
                       struct wal__pending *pending);

/* Returns the time of the first that is due, or INT64_MAX. */
int64_t wal__pending_due(const struct wal__pending_list *list);

#endif
