/*
 * part_page.h - a listing of parts of an epoch, a page at a time.
 *
 * Threads: one at a time per page.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_PART_PAGE_H
#define AGENTWAL_REMOTE_HISTORY_PART_PAGE_H

#include "remote/history/fetch.h"

enum {
    WAL__PART_PAGE_MAX = 1000 /* objects, as object stores list them */
};

/* The owner initialises the buffers, and frees them. */
struct wal__part_page {
    struct wal__buf items;   /* struct wal__fetch_item */
    struct wal__buf numbers; /* uint64_t, rising */
    size_t count;
};

void wal__part_page_init(struct wal__part_page *page,
                         const struct wal__heap *heap);
void wal__part_page_deinit(struct wal__part_page *page);

/* Lists the objects in the place of parts of part->epoch that have a number
 * from part->number on. Names of another form are left out. */
enum wal_status wal__part_page_read(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    struct wal__part_page *page,
                                    struct wal_error *error) WAL_MUST_USE;

uint64_t wal__part_page_number(const struct wal__part_page *page, size_t at);
const struct wal__fetch_item *
wal__part_page_items(const struct wal__part_page *page);

/* How many objects at the beginning have the numbers from `first` on, without a
 * gap. */
size_t wal__part_page_run(const struct wal__part_page *page, uint64_t first);

#endif
