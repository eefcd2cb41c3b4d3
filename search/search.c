/*
 * search.c - the public functions of libagentwal-search (agentwal/search.h): arguments are checked
 * here, everything else is below.
 */
#include "agentwal/search.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "search/index/fts_set.h"
#include "search/query/query.h"

enum {
    SESSION_LIMIT = 20,
    HITS_LIMIT = 3,
    SNIPPET_CHARACTERS = 80,
    SNIPPET_MAX = 100000,
    PATH_SIZE = 4096,
    ATTEMPTS = 16 /* of a query, each after an index was made again or the segments changed */
};

struct wal_search_cursor {
    struct wal__query query;
    size_t next;
};

/* --- opening ------------------------------------------------------------ */

/* Opens index/ of a store, to read the files there, and to write them when the handle may. */
static void open_directory(struct wal_search *search, const struct wal_store_info *info,
                           bool in_memory)
{
    static const char name[] = "/index";
    size_t size = (size_t)info->path.size;

    search->directory = -1;
    if (size == 0 || size >= PATH_SIZE - sizeof(name)) {
        return;
    }
    search->index_path = malloc(size + sizeof(name));
    if (search->index_path == NULL) {
        return;
    }
    memcpy(search->index_path, info->path.data, size);
    memcpy(search->index_path + size, name, sizeof(name));
    search->directory = open(search->index_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    search->writes = search->directory >= 0 && !in_memory && info->status != WAL_EREADONLY &&
                     info->status != WAL_EVERSION &&
                     faccessat(search->directory, ".", W_OK, 0) == 0;
}

enum wal_status wal_search_open(struct wal_store *store, const struct wal_search_options *options,
                                struct wal_search **search, struct wal_error *error)
{
    struct wal_search_options own = {0};
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_search *opened;
    enum wal_status status = WAL_OK;

    if (store == NULL || search == NULL) {
        return wal__invalid(error, store == NULL ? "the handle is null"
                                                 : "the place for the search is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_search_options), &own, options, error);
    if (status == WAL_OK && (own.flags & ~(uint32_t)WAL_SEARCH_MEMORY) != 0) {
        status = wal__invalid(error, "the flags of the search options are not valid");
    }
    if (status == WAL_OK) {
        status = wal_store_get_info(store, &info, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = calloc(1, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->store = store;
    opened->columns.store = store;
    open_directory(opened, &info, (own.flags & WAL_SEARCH_MEMORY) != 0);
    status = wal__tokenizer_open(&opened->tokenizer);
    if (status != WAL_OK) {
        wal_search_close(opened);
        return wal__fail(error, status, "cannot use FTS5 of SQLite %s", sqlite3_libversion());
    }
    *search = opened;
    return WAL_OK;
}

void wal_search_close(struct wal_search *search)
{
    if (search != NULL) {
        wal__fts_set_close(search);
        free(search);
    }
}

/* --- updating ----------------------------------------------------------- */

enum wal_status wal_search_update(struct wal_search *search,
                                  const struct wal_search_update_options *options,
                                  struct wal_search_update_result *result, struct wal_error *error)
{
    struct wal_search_update_options own = {0};
    struct wal_search_update_result counts = WAL_INIT(wal_search_update_result);
    struct wal__build_progress progress = {.call = NULL};
    enum wal_status status;

    if (search == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_search_update_options), &own, options, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_search_update_result), result, error);
    }
    if (status == WAL_OK && (own.flags & ~(uint32_t)WAL_SEARCH_UPDATE_DEEP) != 0) {
        status = wal__invalid(error, "the flags of the update options are not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    progress.call = own.progress;
    progress.ctx = own.ctx;
    status = wal__fts_set_update(search, (own.flags & WAL_SEARCH_UPDATE_DEEP) != 0, &progress,
                                 &counts, error);
    if (status == WAL_OK) {
        wal__fts_set_count(search, &counts);
        wal__struct_store(WAL__STRUCT(wal_search_update_result), result, &counts);
    }
    return status;
}

/* --- querying ----------------------------------------------------------- */

static bool is_slice(struct wal_slice slice)
{
    return slice.data != NULL || slice.size == 0;
}

static enum wal_status check_query(const struct wal_search_query *query, struct wal_error *error)
{
    const uint32_t flags = WAL_SEARCH_DEEP | WAL_SEARCH_SUBSTRING | WAL_SEARCH_NO_UPDATE;
    const uint32_t roles = WAL_SEARCH_USER | WAL_SEARCH_ASSISTANT | WAL_SEARCH_TOOL |
                           WAL_SEARCH_TITLE | WAL_SEARCH_SUMMARY | WAL_SEARCH_RESULT;

    if ((query->flags & ~flags) != 0 || (query->roles & ~roles) != 0) {
        return wal__invalid(error, "the flags or roles of the query are not "
                                   "valid");
    }
    if (!is_slice(query->text) || !is_slice(query->project) || !is_slice(query->cwd) ||
        !is_slice(query->session) || !is_slice(query->tool)) {
        return wal__invalid(error, "a text of the query has a size but no "
                                   "data");
    }
    if (query->tool.size > WAL__QUERY_TEXT_MAX || query->text.size > WAL__QUERY_TEXT_MAX) {
        return wal__invalid(error, "a text of the query has more than %d bytes",
                            WAL__QUERY_TEXT_MAX);
    }
    return WAL_OK;
}

static void set_defaults(struct wal_search_query *query)
{
    if (query->roles != 0 && (query->roles & WAL_SEARCH_RESULT) != 0) {
        query->flags |= WAL_SEARCH_DEEP;
    }
    if (query->session_limit == 0) {
        query->session_limit = SESSION_LIMIT;
    }
    if (query->hits_limit == 0) {
        query->hits_limit = HITS_LIMIT;
    }
    if (query->snippet_characters == 0) {
        query->snippet_characters = SNIPPET_CHARACTERS;
    }
    if (query->snippet_characters > SNIPPET_MAX) {
        query->snippet_characters = SNIPPET_MAX;
    }
}

/* Reads the text of the query. */
static enum wal_status parse(struct wal__query *query, struct wal_error *error)
{
    const struct wal_search_query *options = &query->options;
    bool is_substring = (options->flags & WAL_SEARCH_SUBSTRING) != 0;
    enum wal_status status;

    query->matcher.tokenizer = query->search->tokenizer;
    query->matcher.expression = &query->expression;
    if (!is_substring) {
        return wal__expression_parse(&query->expression, query->search->tokenizer, options->text,
                                     options->tool.size > 0, error);
    }
    if (options->text.size == 0) {
        return wal__fail(error, WAL_EINVAL, "the query has no text to search for");
    }
    query->matcher.substring = options->text;
    status = wal__expression_parse_literal(&query->expression, query->search->tokenizer,
                                           options->text, error);
    return status == WAL_OK ? wal__substring_check(query, error) : status;
}

static enum wal_status update(struct wal__query *query, struct wal_error *error)
{
    struct wal__build_progress progress = {.call = query->options.progress,
                                           .ctx = query->options.ctx};
    struct wal_search_update_result ignored;

    if ((query->options.flags & WAL_SEARCH_NO_UPDATE) != 0) {
        return WAL_OK;
    }
    memset(&ignored, 0, sizeof(ignored));
    return wal__fts_set_update(query->search, (query->options.flags & WAL_SEARCH_DEEP) != 0,
                               &progress, &ignored, error);
}

static enum wal_status run(struct wal__query *query, struct wal_error *error)
{
    enum wal_status status = parse(query, error);

    if (status == WAL_OK) {
        status = wal__query_filter(query, error);
    }
    query->must_update = true;
    for (int i = 0; status == WAL_OK && i < ATTEMPTS; i++) {
        wal__query_reset(query);
        status = query->must_update ? update(query, error) : WAL_OK;
        query->must_update = false;
        if (status == WAL_OK) {
            status = wal__query_collect(query, error);
        }
        if (status == WAL_OK && (!query->must_restart || i + 1 == ATTEMPTS)) {
            status = wal__query_resolve(query, error);
        }
        if (!query->must_restart) {
            break;
        }
    }
    if (status == WAL_OK) {
        wal__query_group(query);
    }
    wal__query_release(query);
    wal__fts_set_close_files(query->search);
    return status;
}

static void summarise(const struct wal__query *query, struct wal_search_summary *summary)
{
    *summary = (struct wal_search_summary)WAL_INIT(wal_search_summary);
    summary->hits = (uint32_t)query->hit_count;
    for (size_t i = 0; i < query->hit_count; i++) {
        if (i == 0 || query->hits[i].hit.rank != query->hits[i - 1].hit.rank) {
            summary->sessions++;
        }
    }
    summary->complete = query->is_complete ? 1 : 0;
    summary->matches = query->matches;
}

enum wal_status wal_search_find(struct wal_search *search, const struct wal_search_query *query,
                                struct wal_search_cursor **cursor,
                                struct wal_search_summary *summary, struct wal_error *error)
{
    struct wal_search_query own = {0};
    struct wal_search_summary counts;
    struct wal_search_cursor *made;
    enum wal_status status;

    if (search == NULL || query == NULL || cursor == NULL) {
        return wal__invalid(error, "the search, the query or the place for "
                                   "the cursor is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_search_query), &own, query, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_search_summary), summary, error);
    }
    if (status == WAL_OK) {
        status = check_query(&own, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return wal__no_memory(error);
    }
    set_defaults(&own);
    made->query.search = search;
    made->query.options = own;
    status = run(&made->query, error);
    if (status != WAL_OK) {
        wal_search_cursor_close(made);
        return status;
    }
    summarise(&made->query, &counts);
    wal__struct_store(WAL__STRUCT(wal_search_summary), summary, &counts);
    *cursor = made;
    return WAL_OK;
}

enum wal_status wal_search_cursor_next(struct wal_search_cursor *cursor, struct wal_search_hit *hit,
                                       struct wal_error *error)
{
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__struct_check_output(WAL__STRUCT(wal_search_hit), hit, error);
    if (status != WAL_OK) {
        return status;
    }
    if (cursor->next == cursor->query.hit_count) {
        return WAL_END;
    }
    wal__struct_store(WAL__STRUCT(wal_search_hit), hit, &cursor->query.hits[cursor->next++].hit);
    return WAL_OK;
}

void wal_search_cursor_close(struct wal_search_cursor *cursor)
{
    if (cursor != NULL) {
        wal__query_deinit(&cursor->query);
        free(cursor);
    }
}
