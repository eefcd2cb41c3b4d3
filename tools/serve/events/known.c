/*
 * known.c - which sessions there are (known.h).
 *
 * The sessions are listed only when the store has fewer than are known.
 */
#include "tools/serve/events/known.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct serve_named *one = a;
    const struct serve_named *other = b;

    return (one->number > other->number) - (one->number < other->number);
}

static void add(struct serve_known *known, uint32_t number, struct wal_slice id)
{
    known->items = cli_reserve(known->items, known->count, &known->capacity,
                               sizeof(known->items[0]));
    known->items[known->count++] = (struct serve_named){
        .number = number, .id = cli_copy_text(id.data, (size_t)id.size)};
}

enum wal_status serve_known_read(struct serve_known *known,
                                 struct wal_store *store,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t pass = 0; pass < 2 && status == WAL_OK; pass++) {
        struct wal_session_cursor_options options =
            WAL_INIT(wal_session_cursor_options);
        struct wal_session_info info = WAL_INIT(wal_session_info);
        struct wal_session_cursor *list = NULL;

        options.flags = pass == 0 ? 0U : WAL_SESSION_CURSOR_TRASH;
        status = wal_session_cursor_open(store, &options, &list, error);
        while (status == WAL_OK && (status = wal_session_cursor_next(
                                        list, &info, error)) == WAL_OK) {
            add(known, info.number, info.id);
        }
        wal_session_cursor_close(list);
        status = status == WAL_END ? WAL_OK : status;
    }
    if (known->count > 1) {
        qsort(known->items, known->count, sizeof(known->items[0]), compare);
    }
    return status;
}

static bool has(const struct serve_known *known, uint32_t number)
{
    const struct serve_named wanted = {.number = number};

    return known->count > 0 &&
           bsearch(&wanted, known->items, known->count, sizeof(known->items[0]),
                   compare) != NULL;
}

/* Adds new sessions; numbers of sessions rise. */
static void add_named(struct serve_known *known,
                      const struct serve_order *order)
{
    size_t old = known->count;

    for (size_t i = 0; i < order->named_count; i++) {
        const struct serve_named *named = &order->named[i];
        struct serve_known before = {.items = known->items, .count = old};
        bool is_added = has(&before, named->number);

        for (size_t k = old; k < known->count && !is_added; k++) {
            is_added = known->items[k].number == named->number;
        }
        if (!is_added) {
            add(known, named->number, cli_slice(named->id));
        }
    }
    if (known->count > old) {
        qsort(known->items, known->count, sizeof(known->items[0]), compare);
    }
}

/* Returns the highest number below `limit` and above `after` that no item has,
 * or 0. */
static uint64_t find_free(const struct serve_order *order, uint64_t after,
                          uint64_t limit)
{
    for (uint64_t sequence = limit - 1; sequence > after; sequence--) {
        size_t at = serve_order_find(order, sequence);

        if (at == 0 || order->items[at - 1].sequence != sequence) {
            return sequence;
        }
    }
    return 0;
}

void serve_known_update(struct serve_known *known, struct wal_store *store,
                        struct serve_order *order, uint64_t after)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct serve_known now = {.items = NULL};
    uint64_t limit = order->upto + 1;
    size_t kept = 0;

    add_named(known, order);
    if (wal_store_get_info(store, &info, NULL) != WAL_OK ||
        info.sessions >= known->count ||
        serve_known_read(&now, store, NULL) != WAL_OK) {
        serve_known_deinit(&now);
        return;
    }
    for (size_t i = 0; i < known->count; i++) {
        struct serve_named *item = &known->items[i];

        if (!has(&now, item->number) && limit > 0) {
            limit = find_free(order, after, limit);
        }
        if (has(&now, item->number) || limit == 0) {
            known->items[kept++] = *item;
        } else {
            serve_order_add_deleted(order, limit, item);
            free(item->id);
        }
    }
    known->count = kept;
    serve_order_sort(order);
    serve_known_deinit(&now);
}

void serve_known_deinit(struct serve_known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        free(known->items[i].id);
    }
    free(known->items);
    *known = (struct serve_known){.items = NULL};
}
