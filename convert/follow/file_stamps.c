/*
 * file_stamps.c - states of files (file_stamps.h).
 *
 * Names are compared by their 64-bit hash.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/follow/file_stamps.h"

#include "convert/source/source_name.h"

void wal__scan_stamps_init(struct wal__scan_stamps *stamps,
                           const struct wal__heap *heap)
{
    *stamps = (struct wal__scan_stamps){.count = 0};
    wal__hashmap_init(&stamps->map, heap);
}

void wal__scan_stamps_deinit(struct wal__scan_stamps *stamps)
{
    wal__heap_free(stamps->map.heap, stamps->items);
    wal__hashmap_deinit(&stamps->map);
    stamps->items = NULL;
    stamps->count = 0;
}

struct wal__scan_stamp *wal__scan_stamps_get(struct wal__scan_stamps *stamps,
                                             const char *name)
{
    uint64_t hash = wal__source_hash(name);
    struct wal__scan_stamp *items;
    uint32_t cursor = 0;
    uint32_t index;

    if (wal__hashmap_find(&stamps->map, hash, &cursor, &index)) {
        return &stamps->items[index];
    }
    items = wal__heap_grow_array(stamps->map.heap, stamps->items, stamps->count,
                                 &stamps->capacity, sizeof(items[0]));
    if (items == NULL) {
        return NULL;
    }
    stamps->items = items;
    if (wal__hashmap_add(&stamps->map, hash, stamps->count) != WAL_OK) {
        return NULL;
    }
    items[stamps->count] = (struct wal__scan_stamp){.inode = 0};
    return &items[stamps->count++];
}

bool wal__scan_stamp_update(struct wal__scan_stamp *stamp,
                            const struct stat *stat)
{
    const struct wal__scan_stamp now = {
        .inode = (uint64_t)stat->st_ino,
        .size = (uint64_t)stat->st_size,
        .modified_ns =
            (int64_t)stat->st_mtim.tv_sec * 1000000000 + stat->st_mtim.tv_nsec,
        .next_ms = stamp->next_ms,
    };
    bool differs = now.inode != stamp->inode || now.size != stamp->size ||
                   now.modified_ns != stamp->modified_ns;

    *stamp = now;
    return differs;
}
