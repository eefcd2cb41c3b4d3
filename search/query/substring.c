/*
 * substring.c - rows that may have a text inside words (query.h).
 *
 * The text is split into words as that of a record is. Only the first of them
 * may be the end of a longer word, and only the last one the beginning: the
 * words of the index that fit are collected, and the rows that have one of
 * each. Whether such a row has the text is known when its record is read.
 */
#include <stdlib.h>
#include <string.h>

#include "search/query/query.h"
#include "search/text/script.h"

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

    while ((size = wal__character((const uint8_t *)token->text, token->size, at,
                                  &c)) > 0) {
        if (wal__is_unspaced(c)) {
            return true;
        }
        at += size;
        count++;
    }
    return count >= CHARACTERS_MIN;
}

enum wal_status wal__substring_check(struct wal__query *query,
                                     struct wal_error *error)
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

static enum wal_status fail_read(struct wal__fts_slot *slot, int code,
                                 struct wal_error *error)
{
    return wal__search_fail(error, slot->database.db, code,
                            "cannot read a search index");
}

/* Adds the rows of an expression. */
static enum wal_status match(struct wal__fts_slot *slot, const char *expression,
                             struct rows *rows, struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(slot->database.db,
                                  "SELECT rowid FROM text WHERE text MATCH ?1",
                                  -1, &statement, NULL);

    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, expression, -1, SQLITE_STATIC);
        do {
            code = sqlite3_step(statement);
        } while (code == SQLITE_ROW &&
                 add(rows, sqlite3_column_int64(statement, 0)));
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW) {
        return wal__no_memory(error);
    }
    return code == SQLITE_DONE ? WAL_OK : fail_read(slot, code, error);
}

/* Prepares the list of the words of the index that fit the first word. */
static enum wal_status prepare_words(struct wal__fts_slot *slot,
                                     const struct wal__term *term,
                                     sqlite3_stmt **statement,
                                     struct wal_error *error)
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
        code = sqlite3_bind_text(*statement, 1, first->text, (int)first->size,
                                 SQLITE_STATIC);
    }
    return code == SQLITE_OK ? WAL_OK : fail_read(slot, code, error);
}

/* Writes what the words after the first one must be: each as it is, the last
 * one as a beginning. */
static void put_rest(sqlite3_str *out, const struct wal__term *term)
{
    for (uint32_t i = 1; i < term->count; i++) {
        sqlite3_str_appendf(out, " AND \"%.*s\"%s", (int)term->tokens[i].size,
                            term->tokens[i].text,
                            i + 1 == term->count ? " *" : "");
    }
}

/* Adds the rows with one of the next words of the list. *more: there are
 * others. */
static enum wal_status match_words(struct wal__fts_slot *slot,
                                   const struct wal__term *term,
                                   sqlite3_stmt *words, bool *more,
                                   struct rows *rows, struct wal_error *error)
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
    put_rest(text, term);
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

enum wal_status wal__substring_visit(struct wal__query *query,
                                     struct wal__fts_slot *slot,
                                     wal__row_fn *each, void *ctx,
                                     struct wal_error *error)
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
