/*
 * import_batch.h - collects entries and appends them in batches.
 *
 * Invariant: entries are appended in the order in which they were added. A
 * batch stays below the engine's limit for one group.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_BATCH_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"
#include "engine/base/heap.h"

#define WAL__IMPORT_BATCH_ENTRIES 512
#define WAL__LINE_TITLE_SIZE      4096
#define WAL__IMPORT_BATCH_SIZE    ((size_t)4 << 20)

/* A text in the batch's memory. */
struct wal__import_span {
    size_t offset;
    size_t size;
};

enum {
    WAL__IMPORT_ID,
    WAL__IMPORT_PARENT,
    WAL__IMPORT_TYPE,
    WAL__IMPORT_TIME,
    WAL__IMPORT_PAYLOAD,
    WAL__IMPORT_META,
    WAL__IMPORT_TEXTS
};

struct wal__import_pending {
    uint32_t flags;
    uint32_t stream;
    struct wal__import_span texts[WAL__IMPORT_TEXTS];
};

#define WAL__IMPORT_BATCH_SLOTS \
    2048 /* a power of two; at most a quarter is used */

/* Zeroed, with heap and session set: an empty batch. */
struct wal__import_batch {
    const struct wal__heap *heap;
    struct wal_session *session;
    struct wal__import_pending items[WAL__IMPORT_BATCH_ENTRIES];
    /* Scratch for the append. */
    struct wal_entry entries[WAL__IMPORT_BATCH_ENTRIES];
    /* Hash table by id: item + 1; 0: free. */
    uint16_t slots[WAL__IMPORT_BATCH_SLOTS];
    size_t count;
    char *memory;
    size_t used;
    size_t capacity;
    char title[WAL__LINE_TITLE_SIZE + 1]; /* set together with the entries */
    bool has_title;
    uint64_t appended; /* entries, in all batches */
    uint64_t duplicates;
};

/* Sets the session's title together with the next append. */
void wal__import_batch_set_title(struct wal__import_batch *batch,
                                 const char *title);

/* Adds an entry and copies its texts. Appends the batch first if the entry does
 * not fit. An entry larger than a batch is appended at once. */
enum wal_status wal__import_batch_add(struct wal__import_batch *batch,
                                      const struct wal_entry *entry,
                                      struct wal_error *error);

/* Appends the collected entries. */
enum wal_status wal__import_batch_flush(struct wal__import_batch *batch,
                                        struct wal_error *error);

/* Returns true if an entry with this id is collected and not yet appended. */
bool wal__import_batch_contains(const struct wal__import_batch *batch,
                                struct wal_slice id);

void wal__import_batch_deinit(struct wal__import_batch *batch);

#endif
