/*
 * filter.c - the sessions that a query's filters name, and those that see what
 * deleted sessions had (query.h).
 */
#include <stdlib.h>
#include <string.h>

#include "search/query/query.h"

/* A growing array of numbers. */
struct numbers {
    uint32_t *items;
    size_t count;
    size_t capacity;
};

static bool add_number(struct numbers *numbers, uint32_t number)
{
    if (numbers->count == numbers->capacity) {
        size_t capacity = numbers->capacity * 2 + 64;
        void *grown = realloc(numbers->items, capacity * sizeof(uint32_t));

        if (grown == NULL) {
            return false;
        }
        numbers->items = grown;
        numbers->capacity = capacity;
    }
    numbers->items[numbers->count++] = number;
    return true;
}

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;

    return *a < *b ? -1 : *a > *b;
}

static bool has_number(const uint32_t *items, size_t count, uint32_t number)
{
    return count > 0 && bsearch(&number, items, count, sizeof(number),
                                compare_numbers) != NULL;
}

bool wal__query_has_owner(const struct wal__query *query, uint32_t number)
{
    return query->listed == NULL ||
           has_number(query->owners, query->owner_count, number);
}

bool wal__query_is_listed(const struct wal__query *query, uint32_t number)
{
    return query->listed == NULL ||
           has_number(query->listed, query->listed_count, number);
}

/* Calls `each` for the ancestors of a session. */
typedef bool ancestor_fn(void *ctx, const struct wal_session_info *ancestor);

static enum wal_status visit_ancestors(struct wal_store *store,
                                       struct wal_slice id, ancestor_fn *each,
                                       void *ctx, struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    options.flags = WAL_SESSION_CURSOR_LINEAGE;
    options.lineage_of = id;
    status = wal_session_cursor_open(store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK && !each(ctx, &info)) {
            status = wal__no_memory(error);
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END || status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* --- filters ------------------------------------------------------------ */

static bool add_ancestor(void *ctx, const struct wal_session_info *ancestor)
{
    return add_number(ctx, ancestor->number);
}

/* Adds a session and what it sees of others. */
static enum wal_status add_listed(struct wal__query *query,
                                  const struct wal_session_info *info,
                                  struct numbers *listed,
                                  struct numbers *owners,
                                  struct wal_error *error)
{
    if (!add_number(listed, info->number) ||
        !add_number(owners, info->number)) {
        return wal__no_memory(error);
    }
    return (info->flags & WAL_SESSION_FORK) == 0
               ? WAL_OK
               : visit_ancestors(query->search->store, info->id, add_ancestor,
                                 owners, error);
}

static enum wal_status list_one(struct wal__query *query,
                                struct numbers *listed, struct numbers *owners,
                                struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(
        query->search->store, query->options.session, &session, error);

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    if (status == WAL_OK) {
        status = add_listed(query, &info, listed, owners, error);
    }
    wal_session_close(session);
    return status;
}

static enum wal_status list_all(struct wal__query *query,
                                struct numbers *listed, struct numbers *owners,
                                struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    options.cwd = query->options.cwd;
    options.project = query->options.project;
    status =
        wal_session_cursor_open(query->search->store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            status = add_listed(query, &info, listed, owners, error);
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__query_filter(struct wal__query *query,
                                  struct wal_error *error)
{
    const struct wal_search_query *options = &query->options;
    struct numbers listed = {.items = NULL};
    struct numbers owners = {.items = NULL};
    enum wal_status status = WAL_OK;

    if (options->session.size == 0 && options->cwd.size == 0 &&
        options->project.size == 0) {
        return WAL_OK;
    }
    if (!add_number(&listed, 0)) { /* so that it is no NULL */
        return wal__no_memory(error);
    }
    status = options->session.size > 0
                 ? list_one(query, &listed, &owners, error)
                 : list_all(query, &listed, &owners, error);
    qsort(listed.items, listed.count, sizeof(uint32_t), compare_numbers);
    if (owners.count > 0) {
        qsort(owners.items, owners.count, sizeof(uint32_t), compare_numbers);
    }
    query->listed = listed.items;
    query->listed_count = listed.count;
    query->owners = owners.items;
    query->owner_count = owners.count;
    return status;
}

/* --- heirs -------------------------------------------------------------- */

struct heirs {
    struct wal__query *query;
    size_t capacity;
    const struct wal_session_info *fork;
};

static bool add_heir(void *ctx, const struct wal_session_info *ancestor)
{
    struct heirs *heirs = ctx;
    struct wal__query *query = heirs->query;
    struct wal__heir *heir;

    if ((ancestor->flags & (WAL_SESSION_DELETED | WAL_SESSION_TRASHED)) == 0) {
        return true;
    }
    if (query->heir_count == heirs->capacity) {
        size_t capacity = heirs->capacity * 2 + 16;
        void *grown = realloc(query->heirs, capacity * sizeof(*query->heirs));

        if (grown == NULL) {
            return false;
        }
        query->heirs = grown;
        heirs->capacity = capacity;
    }
    heir = &query->heirs[query->heir_count++];
    heir->ancestor = ancestor->number;
    heir->session = heirs->fork->number;
    memcpy(heir->id, heirs->fork->id.data, (size_t)heirs->fork->id.size);
    heir->id[heirs->fork->id.size] = '\0';
    return true;
}

static int compare_heirs(const void *left, const void *right)
{
    const struct wal__heir *a = left;
    const struct wal__heir *b = right;

    if (a->ancestor != b->ancestor) {
        return a->ancestor < b->ancestor ? -1 : 1;
    }
    return a->session < b->session ? -1 : a->session > b->session;
}

enum wal_status wal__query_find_heirs(struct wal__query *query,
                                      struct wal_error *error)
{
    struct wal_store *store = query->search->store;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct heirs heirs = {.query = query, .fork = &info};
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    if (query->has_heirs) {
        return WAL_OK;
    }
    status = wal_session_cursor_open(store, NULL, &cursor, error);
    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK && (info.flags & WAL_SESSION_FORK) != 0) {
            status = visit_ancestors(store, info.id, add_heir, &heirs, error);
        }
    }
    wal_session_cursor_close(cursor);
    if (status == WAL_END) {
        status = WAL_OK;
    }
    if (query->heir_count > 0) {
        qsort(query->heirs, query->heir_count, sizeof(*query->heirs),
              compare_heirs);
    }
    query->has_heirs = status == WAL_OK;
    return status;
}
