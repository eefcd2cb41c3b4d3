/*
 * import_batch.h - entries gathered to be appended together.
 *
 * Invariant: what was put in is appended in that order; a batch stays below
 * what the engine takes as one.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_IMPORT_BATCH_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_IMPORT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"

#define WALCONV_BATCH_ENTRIES 512
#define WALCONV_BATCH_SIZE    ((size_t)4 << 20)

/* Places of the texts in the batch's memory. */
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

#define WALCONV_BATCH_SLOTS 2048 /* a power of two, and never half full */

/* Zeroed, and session set: an empty batch. */
struct walconv_batch {
    struct wal_session *session;
    struct walconv_pending items[WALCONV_BATCH_ENTRIES];
    struct wal_entry entries[WALCONV_BATCH_ENTRIES]; /* as they are sent */
    uint16_t slots[WALCONV_BATCH_SLOTS]; /* by id: item + 1; 0: free */
    size_t count;
    char *memory;
    size_t used;
    size_t capacity;
    char *title;       /* that the session gets with them, or null */
    uint64_t appended; /* entries, in all batches */
    uint64_t duplicates;
};

/* Gives the session a title, together with the entries that go in next. */
void walconv_batch_set_title(struct walconv_batch *batch, const char *title);

/* Puts an entry in, its texts copied, or appends one that is larger than a
 * batch; the batch is appended first when it would grow too large. */
enum wal_status walconv_batch_add(struct walconv_batch *batch,
                                  const struct wal_entry *entry,
                                  struct wal_error *error);

/* Appends what is in it. */
enum wal_status walconv_batch_flush(struct walconv_batch *batch,
                                    struct wal_error *error);

/* Whether an entry with this id waits in it. */
bool walconv_batch_contains(const struct walconv_batch *batch,
                            struct wal_slice id);

void walconv_batch_deinit(struct walconv_batch *batch);

#endif
