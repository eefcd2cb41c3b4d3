/*
 * candidates.c - the rows that match a query (query.h).
 *
 * Invariant: candidates are of indexes that were up to date when the query
 * began; whether their records may be shown is not known yet.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/query/query.h"

enum {
    SAMPLED_MAX = 4,    /* indexes whose words are counted */
    COUNTED_MAX = 50000 /* rows of a word */
};

/* Rows of an index that are being added. */
struct adding {
    struct wal__query *query;
    struct wal__fts_slot *slot;
    uint32_t rank;   /* of the slot */
    uint8_t columns; /* a row must have one of them */
    struct wal_error *error;
};

static enum wal_status fail_read(struct wal__fts_slot *slot, int code,
                                 struct wal_error *error)
{
    return wal__search_fail(error, slot->database.db, code,
                            "cannot read a search index");
}

/* --- how rare words are ------------------------------------------------- */

static enum wal_status count_rows(struct wal__fts_slot *slot,
                                  const char *expression, double *rows,
                                  struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code =
        sqlite3_prepare_v2(slot->database.db,
                           "SELECT count(*) FROM "
                           "(SELECT 1 FROM text WHERE text MATCH ?1 LIMIT ?2)",
                           -1, &statement, NULL);

    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, expression, -1, SQLITE_STATIC);
        sqlite3_bind_int(statement, 2, COUNTED_MAX);
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        *rows += (double)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? WAL_OK : fail_read(slot, code, error);
}

/* The largest indexes of text. */
static size_t choose_samples(struct wal_search *search,
                             struct wal__fts_slot *samples[SAMPLED_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < search->count; i++) {
        struct wal__fts_slot *slot = &search->slots[i];
        size_t at;

        if (slot->head.kind != WAL__SEARCH_TEXT || slot->head.rows == 0) {
            continue;
        }
        at = count < SAMPLED_MAX ? count++ : SAMPLED_MAX;
        while (at > 0 && samples[at - 1]->head.rows < slot->head.rows) {
            if (at < SAMPLED_MAX) {
                samples[at] = samples[at - 1];
            }
            at--;
        }
        if (at < SAMPLED_MAX) {
            samples[at] = slot;
        }
    }
    return count;
}

/* Counts the rows of each term in a sample of the indexes. One that is damaged
 * does not count. */
static enum wal_status weigh_terms(struct wal__query *query,
                                   struct wal_error *error)
{
    struct wal__fts_slot *samples[SAMPLED_MAX] = {NULL};
    size_t count = choose_samples(query->search, samples);
    const struct wal__expression *expression = &query->expression;

    for (uint32_t t = 0; t < WAL__TERMS_MAX; t++) {
        query->idf[t] = 1.0F;
    }
    if (expression->wanted < 2) {
        return WAL_OK; /* it is the same for all rows */
    }
    for (uint32_t t = 0; t < expression->wanted; t++) {
        double total = 0;
        double with = 0;
        char *text = wal__expression_format_term(&expression->terms[t]);

        if (text == NULL) {
            return wal__no_memory(error);
        }
        for (size_t i = 0; i < count; i++) {
            if (wal__fts_slot_open(query->search, samples[i], NULL) == WAL_OK &&
                count_rows(samples[i], text, &with, NULL) == WAL_OK) {
                total += samples[i]->head.rows;
            }
        }
        sqlite3_free(text);
        with = with < total ? with : total;
        query->idf[t] = (float)log(1.0 + (total - with + 0.5) / (with + 0.5));
    }
    return WAL_OK;
}

/* --- rows --------------------------------------------------------------- */

/* The most that a column of a row counts. */
static float best_weight(uint8_t columns)
{
    float best = 0;

    for (int i = 0; i < WAL__COLUMN_COUNT; i++) {
        float weight = wal__column_weight((enum wal__column)i);

        if ((columns & (1U << i)) != 0 && weight > best) {
            best = weight;
        }
    }
    return best;
}

static bool is_in_time(const struct wal_search_query *options, int64_t time_ms)
{
    return (options->since_ms == 0 || time_ms >= options->since_ms) &&
           (options->until_ms == 0 || time_ms < options->until_ms);
}

/* A wal__row_fn. WAL_END: enough rows are ranked. */
static enum wal_status add_row(void *ctx, int64_t row)
{
    const struct adding *adding = ctx;
    struct wal__query *query = adding->query;
    const struct wal_search_query *options = &query->options;
    struct wal__candidate candidate = {.row = row, .slot = adding->rank};
    uint8_t columns = wal__database_columns(&adding->slot->database, row);

    if (columns == 0) {
        return wal__fail(adding->error, WAL_ECORRUPT,
                         "a search index lacks the columns of a row");
    }
    columns &= adding->columns;
    candidate.entry.session =
        wal__database_session(&adding->slot->database, row);
    if (columns == 0 || !wal__query_has_owner(query, candidate.entry.session)) {
        return WAL_OK;
    }
    if (query->matcher.substring.size == 0) {
        candidate.score = best_weight(columns);
    }
    if (options->since_ms != 0 || options->until_ms != 0) {
        enum wal_status status = wal__database_get(
            &adding->slot->database, row, &candidate.entry, adding->error);

        if (status != WAL_OK || !is_in_time(options, candidate.entry.time_ms)) {
            return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
        }
        candidate.is_loaded = true;
    }
    query->matches++;
    if (query->count == query->candidates_max) {
        query->is_complete = false;
        return WAL_END;
    }
    if (query->count == query->capacity) {
        size_t capacity = query->capacity * 2 + 256;
        void *grown =
            realloc(query->candidates, capacity * sizeof(*query->candidates));

        if (grown == NULL) {
            return wal__no_memory(adding->error);
        }
        query->candidates = grown;
        query->capacity = capacity;
    }
    query->candidates[query->count++] = candidate;
    return WAL_OK;
}

static enum wal_status prepare_match(struct wal__fts_slot *slot,
                                     struct wal_error *error)
{
    int code = SQLITE_OK;

    if (slot->database.match == NULL) {
        code = sqlite3_prepare_v3(
            slot->database.db,
            "SELECT rowid FROM text WHERE text MATCH ?1 ORDER BY rowid DESC",
            -1, SQLITE_PREPARE_PERSISTENT, &slot->database.match, NULL);
    }
    return code == SQLITE_OK ? WAL_OK : fail_read(slot, code, error);
}

static enum wal_status match_rows(struct adding *adding, const char *expression)
{
    struct wal__fts_slot *slot = adding->slot;
    enum wal_status status = prepare_match(slot, adding->error);
    sqlite3_stmt *match = slot->database.match;
    int code = SQLITE_ROW;

    if (status != WAL_OK) {
        return status;
    }
    sqlite3_bind_text(match, 1, expression, -1, SQLITE_STATIC);
    while (status == WAL_OK && code == SQLITE_ROW) {
        code = sqlite3_step(match);
        if (code == SQLITE_ROW) {
            status = add_row(adding, sqlite3_column_int64(match, 0));
        }
    }
    if (status == WAL_OK && code != SQLITE_DONE) {
        status = fail_read(slot, code, adding->error);
    }
    (void)sqlite3_reset(match);
    (void)sqlite3_clear_bindings(match);
    return status;
}

/* --- indexes ------------------------------------------------------------ */

/* The rows of the index of one segment. */
static enum wal_status collect_slot(struct adding *adding,
                                    const char *expression)
{
    struct wal__query *query = adding->query;
    enum wal_status status =
        wal__fts_slot_open(query->search, adding->slot, adding->error);

    if (status != WAL_OK) {
        return status;
    }
    return query->matcher.substring.size > 0
               ? wal__substring_visit(query, adding->slot, add_row, adding,
                                      adding->error)
               : match_rows(adding, expression);
}

/* The same; makes a damaged index again, once. */
static enum wal_status collect_or_rebuild(struct adding *adding,
                                          const char *expression)
{
    struct wal__query *query = adding->query;
    size_t count = query->count;
    uint64_t matches = query->matches;
    enum wal_status status = collect_slot(adding, expression);

    if (status != WAL_ECORRUPT && status != WAL_EIO) {
        return status;
    }
    query->count = count;
    query->matches = matches;
    status = wal__fts_slot_rebuild(query->search, adding->slot, adding->error);
    if (status == WAL_OK) {
        return collect_slot(adding, expression);
    }
    if (status != WAL_ENOTFOUND && status != WAL_ECORRUPT &&
        status != WAL_EIO) {
        return status;
    }
    /* The segment was replaced meanwhile, or cannot be read. */
    query->is_complete = false;
    return WAL_OK;
}

static bool is_searched(const struct wal__query *query,
                        const struct wal__fts_slot *slot)
{
    const struct wal_search_query *options = &query->options;

    return slot->head.rows > 0 &&
           (slot->head.kind == WAL__SEARCH_TEXT ||
            (options->flags & WAL_SEARCH_DEEP) != 0) &&
           (options->since_ms == 0 ||
            slot->head.time_max >= options->since_ms) &&
           (options->until_ms == 0 || slot->head.time_min < options->until_ms);
}

static int compare_candidates(const void *left, const void *right)
{
    const struct wal__candidate *a = left;
    const struct wal__candidate *b = right;

    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->slot != b->slot) {
        return a->slot < b->slot ? -1 : 1; /* of the newer segment */
    }
    return a->row > b->row ? -1 : a->row < b->row;
}

/* The columns of an index that have the roles of the query. */
static uint8_t searched_columns(const struct wal_search_query *options,
                                uint32_t kind)
{
    uint32_t roles = options->roles;
    uint32_t columns = 0;

    if (options->tool.size > 0) {
        roles = roles == 0 ? (uint32_t)WAL_SEARCH_TOOL
                           : roles & (uint32_t)WAL_SEARCH_TOOL;
        if (roles == 0) {
            return 0;
        }
    }
    for (int i = 0; i < WAL__COLUMN_COUNT; i++) {
        bool is_deep = i == WAL__COLUMN_RESULT;

        if (is_deep == (kind == WAL__SEARCH_DEEP) &&
            (roles == 0 ||
             (roles & wal__column_role((enum wal__column)i)) != 0)) {
            columns |= 1U << i;
        }
    }
    return (uint8_t)columns;
}

enum wal_status wal__query_collect(struct wal__query *query,
                                   struct wal_error *error)
{
    struct wal_search *search = query->search;
    char *expression = NULL;
    enum wal_status status =
        wal__expression_format(&query->expression, search->tokenizer,
                               query->options.tool, &expression, error);

    query->is_complete = true;
    query->candidates_max =
        query->matcher.substring.size > 0 ||
                wal__expression_has_phrase(&query->expression)
            ? WAL__COMPARED_MAX
            : WAL__RANKED_MAX;
    if (status == WAL_OK) {
        status = weigh_terms(query, error);
    }
    for (size_t i = 0; i < search->count && status == WAL_OK; i++) {
        struct wal__fts_slot *slot = &search->slots[i];
        struct adding adding = {
            .query = query,
            .slot = slot,
            .rank = (uint32_t)i,
            .columns = searched_columns(&query->options, slot->head.kind),
            .error = error};

        if (adding.columns != 0 && is_searched(query, slot)) {
            status = collect_or_rebuild(&adding, expression);
        }
    }
    sqlite3_free(expression);
    if (status == WAL_OK || status == WAL_END) {
        if (query->count > 0) {
            qsort(query->candidates, query->count, sizeof(*query->candidates),
                  compare_candidates);
        }
        return WAL_OK;
    }
    return status;
}
