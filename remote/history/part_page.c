/*
 * part_page.c - lists parts of an epoch (part_page.h).
 */
#include "remote/history/part_page.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

struct listing {
    struct wal__part_page *page;
    enum wal_status status;
};

void wal__part_page_init(struct wal__part_page *page,
                         const struct wal__heap *heap)
{
    wal__buf_init(&page->items, heap);
    wal__buf_init(&page->numbers, heap);
    page->count = 0;
}

void wal__part_page_deinit(struct wal__part_page *page)
{
    wal__buf_deinit(&page->items);
    wal__buf_deinit(&page->numbers);
}

uint64_t wal__part_page_number(const struct wal__part_page *page, size_t at)
{
    WAL__ASSERT(at < page->count);
    return ((const uint64_t *)(const void *)page->numbers.data)[at];
}

const struct wal__fetch_item *
wal__part_page_items(const struct wal__part_page *page)
{
    return (const struct wal__fetch_item *)(const void *)page->items.data;
}

size_t wal__part_page_run(const struct wal__part_page *page, uint64_t first)
{
    size_t count = 0;

    while (count < page->count &&
           wal__part_page_number(page, count) == first + count) {
        count++;
    }
    return count;
}

static bool see(void *ctx, const char *name, uint64_t size)
{
    struct listing *listing = ctx;
    struct wal__part_page *page = listing->page;
    struct wal__store_object object;
    struct wal__fetch_item item = {.size = size};

    if (!wal__store_object_parse(name, &object) ||
        object.kind != WAL__OBJECT_PART) {
        return true;
    }
    memcpy(item.name, name, strlen(name) + 1);
    listing->status = wal__buf_append(&page->items, &item, sizeof(item));
    if (listing->status == WAL_OK) {
        listing->status = wal__buf_append(&page->numbers, &object.number,
                                          sizeof(object.number));
    }
    if (listing->status == WAL_OK) {
        page->count++;
    }
    return listing->status == WAL_OK && page->count < WAL__PART_PAGE_MAX;
}

enum wal_status wal__part_page_read(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    struct wal__part_page *page,
                                    struct wal_error *error)
{
    struct wal__store_object before = *part;
    struct listing listing = {page, WAL_OK};
    char prefix[WAL__STORE_OBJECT_SIZE];
    char after[WAL__STORE_OBJECT_SIZE] = "";
    enum wal_status status;

    WAL__ASSERT(part->kind == WAL__OBJECT_PART && part->epoch > 0);
    page->items.size = 0;
    page->numbers.size = 0;
    page->count = 0;
    wal__store_object_prefix(part, prefix);
    if (part->number > 1) {
        before.number--;
        wal__store_object_format(&before, after);
    }
    status = remote->driver->calls->list(remote->driver, prefix, after, see,
                                         &listing, error);
    return status == WAL_OK && listing.status != WAL_OK ? wal__no_memory(error)
                                                        : status;
}
