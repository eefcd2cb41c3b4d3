/*
 * pending.c - paths that are to be scanned (pending.h).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/follow/pending.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"

/* A path that is further back may be in the list twice; then its second scan
 * finds nothing new. */
#define COMPARED_MAX 64

void wal__pending_init(struct wal__pending_list *list,
                       const struct wal__heap *heap)
{
    *list = (struct wal__pending_list){.heap = heap};
}

void wal__pending_free(struct wal__pending_list *list,
                       struct wal__pending *pending)
{
    wal__heap_free(list->heap, pending->path);
    pending->path = NULL;
}

void wal__pending_deinit(struct wal__pending_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        wal__pending_free(list, &list->items[i]);
    }
    wal__heap_free(list->heap, list->items);
    list->items = NULL;
    list->count = 0;
}

enum wal_status wal__pending_add(struct wal__pending_list *list,
                                 const struct wal__pending *pending,
                                 struct wal_error *error)
{
    struct wal__pending added = *pending;
    struct wal__pending *items;
    uint32_t first =
        list->count > COMPARED_MAX ? list->count - COMPARED_MAX : 0;

    for (uint32_t i = first; i < list->count; i++) {
        struct wal__pending *item = &list->items[i];

        if (item->argument == pending->argument &&
            strcmp(item->path, pending->path) == 0) {
            item->due_ms =
                pending->due_ms < item->due_ms ? pending->due_ms : item->due_ms;
            return WAL_OK;
        }
    }
    added.path =
        wal__heap_copy_text(list->heap, pending->path, strlen(pending->path));
    items = wal__heap_grow_array(list->heap, list->items, list->count,
                                 &list->capacity, sizeof(items[0]));
    if (items != NULL) {
        list->items = items;
    }
    if (items == NULL || added.path == NULL) {
        wal__heap_free(list->heap, added.path);
        return wal__no_memory(error);
    }
    items[list->count++] = added;
    return WAL_OK;
}

bool wal__pending_take(struct wal__pending_list *list, int64_t now_ms,
                       struct wal__pending *pending)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].due_ms <= now_ms) {
            *pending = list->items[i];
            list->items[i] = list->items[--list->count];
            return true;
        }
    }
    return false;
}

int64_t wal__pending_due(const struct wal__pending_list *list)
{
    int64_t due_ms = INT64_MAX;

    for (uint32_t i = 0; i < list->count; i++) {
        due_ms =
            list->items[i].due_ms < due_ms ? list->items[i].due_ms : due_ms;
    }
    return due_ms;
}
