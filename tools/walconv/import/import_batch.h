/*
 * import_batch.h - collect entries and append them in batches.
 *
 * Invariant: entries are appended in the order in which they were added. A
 * batch stays below the engine's limit for one group.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_IMPORT_BATCH_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_IMPORT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

#define WALCONV_BATCH_ENTRIES 512
#define WALCONV_BATCH_SIZE    ((size_t)4 << 20)

/* A text in the batch's memory. */
struct walconv_text_span {
    size_t offset;
    size_t size;
};

enum {
    BATCH_ID,
    BATCH_PARENT,
    BATCH_TYPE,
    BATCH_TIME,
    BATCH_PAYLOAD,
    BATCH_META,
    BATCH_TEXTS
};

struct walconv_pending {
    uint32_t flags;
    uint32_t stream;
    struct walconv_text_span texts[BATCH_TEXTS];
};

#define WALCONV_BATCH_SLOTS 2048 /* a power of two; at most a quarter is used */

/* Zeroed, and session set: an empty batch. */
struct walconv_batch {
    struct wal_session *session;
    struct walconv_pending items[WALCONV_BATCH_ENTRIES];
    /* Scratch for the append. */
    struct wal_entry entries[WALCONV_BATCH_ENTRIES];
    /* Hash table by id: item + 1; 0: free. */
    uint16_t slots[WALCONV_BATCH_SLOTS];
    size_t count;
    char *memory;
    size_t used;
    size_t capacity;
    char *title;       /* set together with the entries; or NULL */
    uint64_t appended; /* entries, in all batches */
    uint64_t duplicates;
};

/* Sets the session's title together with the next append. */
void walconv_batch_set_title(struct walconv_batch *batch, const char *title);

/* Adds an entry and copies its texts. Appends the batch first if the entry does
 * not fit. An entry larger than a batch is appended at once. */
enum wal_status walconv_batch_add(struct walconv_batch *batch,
                                  const struct wal_entry *entry,
                                  struct wal_error *error);

/* Appends the collected entries. */
enum wal_status walconv_batch_flush(struct walconv_batch *batch,
                                    struct wal_error *error);

/* Returns true if an entry with this id is collected and not yet appended. */
bool walconv_batch_contains(const struct walconv_batch *batch,
                            struct wal_slice id);

void walconv_batch_deinit(struct walconv_batch *batch);

#endif
