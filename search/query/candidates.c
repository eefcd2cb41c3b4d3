/*
 * candidates.c - the rows that match a query, the sessions that its filters name, and those that
 * see what deleted sessions had (query.h).
 *
 * A text inside words is split into words as that of a record is. Only the first of them may be the
 * end of a longer word, and only the last one the beginning: the words of the index that fit are
 * collected, and the rows that have one of each. Whether such a row has the text is known when its
 * record is read.
 *
 * Invariant: candidates are of indexes that were up to date when the query began; whether their
 * records may be shown is not known yet.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/directory.h"
#include "search/query/query.h"
#include "search/text/tokenizer.h"

/* --- columns -------------------------------------------------------------- */

uint32_t wal__column_role(enum wal__column column)
{
    static const uint32_t roles[WAL__COLUMN_COUNT] = {
        [WAL__COLUMN_USER] = WAL_SEARCH_USER,     [WAL__COLUMN_ASSISTANT] = WAL_SEARCH_ASSISTANT,
        [WAL__COLUMN_TOOL] = WAL_SEARCH_TOOL,     [WAL__COLUMN_PATH] = WAL_SEARCH_TOOL,
        [WAL__COLUMN_TITLE] = WAL_SEARCH_TITLE,   [WAL__COLUMN_SUMMARY] = WAL_SEARCH_SUMMARY,
        [WAL__COLUMN_RESULT] = WAL_SEARCH_RESULT,
    };

    return roles[column];
}

float wal__column_weight(enum wal__column column)
{
    static const float weights[WAL__COLUMN_COUNT] = {
        [WAL__COLUMN_USER] = 2.0F,   [WAL__COLUMN_ASSISTANT] = 1.0F, [WAL__COLUMN_TOOL] = 1.0F,
        [WAL__COLUMN_PATH] = 1.0F,   [WAL__COLUMN_TITLE] = 4.0F,     [WAL__COLUMN_SUMMARY] = 2.0F,
        [WAL__COLUMN_RESULT] = 0.5F,
    };

    return weights[column];
}

static enum wal_status fail_read(struct wal__fts_slot *slot, int code, struct wal_error *error)
{
    return wal__search_fail(error, slot->database.db, code, "cannot read a search index");
}

/* --- sessions ------------------------------------------------------------- */

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
    return count > 0 && bsearch(&number, items, count, sizeof(number), compare_numbers) != NULL;
}

bool wal__query_is_listed(const struct wal__query *query, uint32_t number)
{
    return query->listed == NULL || has_number(query->listed, query->listed_count, number);
}

/* Calls `each` for the ancestors of a session. */
typedef bool ancestor_fn(void *ctx, const struct wal_session_info *ancestor);

static enum wal_status visit_ancestors(struct wal_store *store, struct wal_slice id,
                                       ancestor_fn *each, void *ctx, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
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
static enum wal_status add_listed(struct wal__query *query, const struct wal_session_info *info,
                                  struct numbers *listed, struct numbers *owners,
                                  struct wal_error *error)
{
    if (!add_number(listed, info->number) || !add_number(owners, info->number)) {
        return wal__no_memory(error);
    }
    return (info->flags & WAL_SESSION_FORK) == 0
               ? WAL_OK
               : visit_ancestors(query->search->store, info->id, add_ancestor, owners, error);
}

static enum wal_status list_one(struct wal__query *query, struct numbers *listed,
                                struct numbers *owners, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(query->search->store, query->options.session, &session, error);

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    if (status == WAL_OK) {
        status = add_listed(query, &info, listed, owners, error);
    }
    wal_session_close(session);
    return status;
}

static enum wal_status list_all(struct wal__query *query, struct numbers *listed,
                                struct numbers *owners, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    struct wal__directory directory;
    enum wal_status status;

    wal__directory_init(&directory, query->options.cwd);
    options.project = query->options.project;
    status = wal_session_cursor_open(query->search->store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK &&
            (query->options.cwd.size == 0 || wal__directory_is(&directory, info.cwd))) {
            status = add_listed(query, &info, listed, owners, error);
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__query_filter(struct wal__query *query, struct wal_error *error)
{
    const struct wal_search_query *options = &query->options;
    struct numbers listed = {.items = NULL};
    struct numbers owners = {.items = NULL};
    enum wal_status status = WAL_OK;

    if (options->session.size == 0 && options->cwd.size == 0 && options->project.size == 0) {
        return WAL_OK;
    }
    if (!add_number(&listed, 0)) { /* so that it is no NULL */
        return wal__no_memory(error);
    }
    status = options->session.size > 0 ? list_one(query, &listed, &owners, error)
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

enum wal_status wal__query_find_heirs(struct wal__query *query, struct wal_error *error)
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
        qsort(query->heirs, query->heir_count, sizeof(*query->heirs), compare_heirs);
    }
    query->has_heirs = status == WAL_OK;
    return status;
}

/* --- text inside words ---------------------------------------------------- */

typedef enum wal_status row_fn(void *ctx, int64_t row);

enum {
    CHARACTERS_MIN = 3, /* in a row, of one of the words */
    WORDS_STEP = 256    /* words of the index in one expression */
};

static bool is_enough(const struct wal__query_token *token)
{
    size_t at = 0;
    size_t count = 0;
    uint32_t c;
    size_t size;

    while ((size = wal__character((const uint8_t *)token->text, token->size, at, &c)) > 0) {
        if (wal__is_unspaced(c)) {
            return true;
        }
        at += size;
        count++;
    }
    return count >= CHARACTERS_MIN;
}

enum wal_status wal__substring_check(struct wal__query *query, struct wal_error *error)
{
    const struct wal__term *term = &query->expression.terms[0];

    for (uint32_t i = 0; query->expression.count > 0 && i < term->count; i++) {
        if (is_enough(&term->tokens[i])) {
            return WAL_OK;
        }
    }
    return wal__fail(error, WAL_EINVAL,
                     "a text inside words has at least %d letters or digits "
                     "in a row",
                     CHARACTERS_MIN);
}

/* Rows of an index. */
struct rows {
    int64_t *items;
    size_t count;
    size_t capacity;
};

static bool add(struct rows *rows, int64_t row)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity * 2 + 256;
        void *grown = realloc(rows->items, capacity * sizeof(*rows->items));

        if (grown == NULL) {
            return false;
        }
        rows->items = grown;
        rows->capacity = capacity;
    }
    rows->items[rows->count++] = row;
    return true;
}

/* Adds the rows of an expression. */
static enum wal_status match(struct wal__fts_slot *slot, const char *expression, struct rows *rows,
                             struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(slot->database.db, "SELECT rowid FROM text WHERE text MATCH ?1",
                                  -1, &statement, NULL);

    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, expression, -1, SQLITE_STATIC);
        do {
            code = sqlite3_step(statement);
        } while (code == SQLITE_ROW && add(rows, sqlite3_column_int64(statement, 0)));
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW) {
        return wal__no_memory(error);
    }
    return code == SQLITE_DONE ? WAL_OK : fail_read(slot, code, error);
}

/* Prepares the list of the words of the index that fit the first word. */
static enum wal_status prepare_words(struct wal__fts_slot *slot, const struct wal__term *term,
                                     sqlite3_stmt **statement, struct wal_error *error)
{
    const struct wal__query_token *first = &term->tokens[0];
    const char *sql = term->count == 1 ? "SELECT term FROM temp.vocabulary "
                                         "WHERE instr(term, ?1)"
                                       : "SELECT term FROM temp.vocabulary "
                                         "WHERE substr(term, -length(?1)) = ?1";
    int code = sqlite3_exec(slot->database.db,
                            "CREATE VIRTUAL TABLE IF NOT EXISTS "
                            "temp.vocabulary USING "
                            "fts5vocab('main', 'text', 'row')",
                            NULL, NULL, NULL);

    if (code == SQLITE_OK) {
        code = sqlite3_prepare_v2(slot->database.db, sql, -1, statement, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_bind_text(*statement, 1, first->text, (int)first->size, SQLITE_STATIC);
    }
    return code == SQLITE_OK ? WAL_OK : fail_read(slot, code, error);
}

/* Adds the rows with one of the next words of the list. *more: there are others. */
static enum wal_status match_words(struct wal__fts_slot *slot, const struct wal__term *term,
                                   sqlite3_stmt *words, bool *more, struct rows *rows,
                                   struct wal_error *error)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    enum wal_status status = WAL_OK;
    char *expression;
    int code = SQLITE_DONE;
    int count = 0;

    sqlite3_str_appendall(text, "(");
    while (count < WORDS_STEP && (code = sqlite3_step(words)) == SQLITE_ROW) {
        sqlite3_str_appendf(text, "%s\"%s\"", count == 0 ? "" : " OR ",
                            (const char *)sqlite3_column_text(words, 0));
        count++;
    }
    *more = code == SQLITE_ROW;
    sqlite3_str_appendall(text, ")");
    /* Each of the words after the first one as it is, the last as a beginning.
     */
    for (uint32_t i = 1; i < term->count; i++) {
        sqlite3_str_appendf(text, " AND \"%.*s\"%s", (int)term->tokens[i].size,
                            term->tokens[i].text, i + 1 == term->count ? " *" : "");
    }
    expression = sqlite3_str_finish(text);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        status = fail_read(slot, code, error);
    } else if (expression == NULL) {
        status = wal__no_memory(error);
    } else if (count > 0) {
        status = match(slot, expression, rows, error);
    }
    sqlite3_free(expression);
    return status;
}

static int compare_rows(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;

    return *a > *b ? -1 : *a < *b; /* descending */
}

/* Calls `each` for the rows of an index that have the words which a text inside words may be in.
 * WAL_ECORRUPT. */
static enum wal_status substring_visit(struct wal__query *query, struct wal__fts_slot *slot,
                                       row_fn *each, void *ctx, struct wal_error *error)
{
    const struct wal__term *term = &query->expression.terms[0];
    struct rows rows = {.items = NULL};
    sqlite3_stmt *words = NULL;
    bool more = true;
    enum wal_status status = prepare_words(slot, term, &words, error);

    while (status == WAL_OK && more) {
        status = match_words(slot, term, words, &more, &rows, error);
    }
    sqlite3_finalize(words);
    if (rows.count > 0) {
        qsort(rows.items, rows.count, sizeof(*rows.items), compare_rows);
    }
    for (size_t i = 0; i < rows.count && status == WAL_OK; i++) {
        if (i == 0 || rows.items[i] != rows.items[i - 1]) {
            status = each(ctx, rows.items[i]);
        }
    }
    free(rows.items);
    return status;
}

/* --- rows ----------------------------------------------------------------- */

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

/* --- how rare words are ------------------------------------------------- */

static enum wal_status count_rows(struct wal__fts_slot *slot, const char *expression, double *rows,
                                  struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(slot->database.db,
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
static size_t choose_samples(struct wal_search *search, struct wal__fts_slot *samples[SAMPLED_MAX])
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

/* Counts the rows of each term in a sample of the indexes. One that is damaged does not count. */
static enum wal_status weigh_terms(struct wal__query *query, struct wal_error *error)
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

/* A row_fn. WAL_END: enough rows are ranked. */
static enum wal_status add_row(void *ctx, int64_t row)
{
    const struct adding *adding = ctx;
    struct wal__query *query = adding->query;
    const struct wal_search_query *options = &query->options;
    struct wal__candidate candidate = {.row = row, .slot = adding->rank};
    uint8_t columns = wal__database_columns(&adding->slot->database, row);

    if (columns == 0) {
        return wal__fail(adding->error, WAL_ECORRUPT, "a search index lacks the columns of a row");
    }
    columns &= adding->columns;
    candidate.entry.session = wal__database_session(&adding->slot->database, row);
    if (columns == 0 || (query->listed != NULL &&
                         !has_number(query->owners, query->owner_count, candidate.entry.session))) {
        return WAL_OK;
    }
    if (query->matcher.substring.size == 0) {
        candidate.score = best_weight(columns);
    }
    if (options->since_ms != 0 || options->until_ms != 0) {
        enum wal_status status =
            wal__database_get(&adding->slot->database, row, &candidate.entry, adding->error);

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
        void *grown = realloc(query->candidates, capacity * sizeof(*query->candidates));

        if (grown == NULL) {
            return wal__no_memory(adding->error);
        }
        query->candidates = grown;
        query->capacity = capacity;
    }
    query->candidates[query->count++] = candidate;
    return WAL_OK;
}

static enum wal_status prepare_match(struct wal__fts_slot *slot, struct wal_error *error)
{
    int code = SQLITE_OK;

    if (slot->database.match == NULL) {
        code = sqlite3_prepare_v3(slot->database.db,
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
static enum wal_status collect_slot(struct adding *adding, const char *expression)
{
    struct wal__query *query = adding->query;
    enum wal_status status = wal__fts_slot_open(query->search, adding->slot, adding->error);

    if (status != WAL_OK) {
        return status;
    }
    return query->matcher.substring.size > 0
               ? substring_visit(query, adding->slot, add_row, adding, adding->error)
               : match_rows(adding, expression);
}

/* The same; makes a damaged index again, once. */
static enum wal_status collect_or_rebuild(struct adding *adding, const char *expression)
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
    if (status != WAL_ENOTFOUND && status != WAL_ECORRUPT && status != WAL_EIO) {
        return status;
    }
    /* The segment cannot be read, or was replaced by what the indexes do not have yet. */
    query->is_complete = false;
    query->must_update |=
        status == WAL_ENOTFOUND && (query->options.flags & WAL_SEARCH_NO_UPDATE) == 0;
    query->must_restart |= query->must_update;
    return WAL_OK;
}

static bool is_searched(const struct wal__query *query, const struct wal__fts_slot *slot)
{
    const struct wal_search_query *options = &query->options;

    return slot->head.rows > 0 &&
           (slot->head.kind == WAL__SEARCH_TEXT || (options->flags & WAL_SEARCH_DEEP) != 0) &&
           (options->since_ms == 0 || slot->head.time_max >= options->since_ms) &&
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
static uint8_t searched_columns(const struct wal_search_query *options, uint32_t kind)
{
    uint32_t roles = options->roles;
    uint32_t columns = 0;

    if (options->tool.size > 0) {
        roles = roles == 0 ? (uint32_t)WAL_SEARCH_TOOL : roles & (uint32_t)WAL_SEARCH_TOOL;
        if (roles == 0) {
            return 0;
        }
    }
    for (int i = 0; i < WAL__COLUMN_COUNT; i++) {
        bool is_deep = i == WAL__COLUMN_RESULT;

        if (is_deep == (kind == WAL__SEARCH_DEEP) &&
            (roles == 0 || (roles & wal__column_role((enum wal__column)i)) != 0)) {
            columns |= 1U << i;
        }
    }
    return (uint8_t)columns;
}

enum wal_status wal__query_collect(struct wal__query *query, struct wal_error *error)
{
    struct wal_search *search = query->search;
    char *expression = NULL;
    enum wal_status status = wal__expression_format(&query->expression, search->tokenizer,
                                                    query->options.tool, &expression, error);

    query->is_complete = true;
    query->candidates_max =
        query->matcher.substring.size > 0 || wal__expression_has_phrase(&query->expression)
            ? WAL__COMPARED_MAX
            : WAL__RANKED_MAX;
    if (status == WAL_OK) {
        status = weigh_terms(query, error);
    }
    for (size_t i = 0; i < search->count && status == WAL_OK; i++) {
        struct wal__fts_slot *slot = &search->slots[i];
        struct adding adding = {.query = query,
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
            qsort(query->candidates, query->count, sizeof(*query->candidates), compare_candidates);
        }
        return WAL_OK;
    }
    return status;
}
