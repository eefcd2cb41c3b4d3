/*
 * expression.c - parses queries (expression.h).
 *
 * Invariant: a term has at least one word; what FTS5 gets of it are words in
 * quotes, so that no character of a query is an operator.
 */
#include "search/text/expression.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "search/text/script.h"

void wal__expression_deinit(struct wal__expression *expression)
{
    for (uint32_t i = 0; i < expression->count; i++) {
        free(expression->terms[i].tokens);
    }
    memset(expression, 0, sizeof(*expression));
}

/* --- parsing ------------------------------------------------------------ */

struct collect {
    struct wal__term *term;
    bool has_failed; /* no memory */
    bool is_cut;     /* it has more words */
};

static bool collect_token(void *ctx, const char *token, size_t size,
                          size_t begin, size_t end, bool is_colocated)
{
    struct collect *collect = ctx;
    struct wal__term *term = collect->term;

    (void)begin;
    (void)end;
    (void)is_colocated;
    collect->is_cut = term->count == WAL__TERM_TOKENS_MAX;
    if (collect->is_cut) {
        return false;
    }
    if (term->tokens == NULL) {
        term->tokens = calloc(WAL__TERM_TOKENS_MAX, sizeof(*term->tokens));
        collect->has_failed = term->tokens == NULL;
        if (collect->has_failed) {
            return false;
        }
    }
    memcpy(term->tokens[term->count].text, token, size);
    term->tokens[term->count].size = (uint32_t)size;
    term->count++;
    return true;
}

/* Whether a word is one character of a script without spaces. */
static bool is_single(const struct wal__query_token *token)
{
    uint32_t code_point;
    size_t size = wal__character((const uint8_t *)token->text, token->size, 0,
                                 &code_point);

    return size == token->size && wal__is_unspaced(code_point);
}

/* Adds a term, if the text has a word. */
static enum wal_status add_term(struct wal__expression *expression,
                                struct wal__tokenizer *tokenizer,
                                struct wal_slice text, bool is_prefix,
                                bool is_excluded, struct wal_error *error)
{
    struct wal__term term = {.is_prefix = is_prefix,
                             .is_excluded = is_excluded};
    struct collect collect = {.term = &term};

    (void)wal__tokenizer_run(tokenizer, text.data, (size_t)text.size, true,
                             collect_token, &collect);
    if (collect.has_failed) {
        return wal__no_memory(error);
    }
    if (term.count == 0) {
        return WAL_OK;
    }
    if (collect.is_cut) {
        free(term.tokens);
        return wal__fail(error, WAL_EINVAL, "a phrase has at most %d words",
                         WAL__TERM_TOKENS_MAX);
    }
    if (expression->count == WAL__TERMS_MAX) {
        free(term.tokens);
        return wal__fail(error, WAL_EINVAL,
                         "a query has at most %d words and phrases",
                         WAL__TERMS_MAX);
    }
    term.is_prefix |= is_single(&term.tokens[term.count - 1]);
    expression->terms[expression->count++] = term;
    return WAL_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Adds the terms of the text that are excluded, or those that are not. */
static enum wal_status add_terms(struct wal__expression *expression,
                                 struct wal__tokenizer *tokenizer,
                                 const char *text, size_t size, bool excluded,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t at = 0;

    while (at < size && status == WAL_OK) {
        bool is_excluded =
            text[at] == '-' && at + 1 < size && !is_space(text[at + 1]);
        bool is_prefix = false;
        size_t begin;
        size_t end;

        if (is_space(text[at])) {
            at++;
            continue;
        }
        begin = at + (is_excluded ? 1 : 0);
        if (text[begin] == '"') {
            const char *quote = memchr(text + begin + 1, '"', size - begin - 1);

            begin++;
            end = quote == NULL ? size : (size_t)(quote - text);
            at = end < size ? end + 1 : size;
        } else {
            end = begin;
            while (end < size && !is_space(text[end])) {
                end++;
            }
            at = end;
        }
        if (at < size && text[at] == '*') {
            is_prefix = true;
            at++;
        } else if (end > begin && text[end - 1] == '*') {
            is_prefix = true;
        }
        if (is_excluded == excluded) {
            status = add_term(expression, tokenizer,
                              (struct wal_slice){text + begin, end - begin},
                              is_prefix, excluded, error);
        }
    }
    return status;
}

enum wal_status wal__expression_parse(struct wal__expression *expression,
                                      struct wal__tokenizer *tokenizer,
                                      struct wal_slice text, bool may_be_empty,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (text.size > WAL__QUERY_TEXT_MAX) {
        return wal__fail(error, WAL_EINVAL, "a query has at most %d bytes",
                         WAL__QUERY_TEXT_MAX);
    }
    status = add_terms(expression, tokenizer, text.data, (size_t)text.size,
                       false, error);
    expression->wanted = expression->count;
    if (status == WAL_OK) {
        status = add_terms(expression, tokenizer, text.data, (size_t)text.size,
                           true, error);
    }
    if (status == WAL_OK && expression->wanted == 0 && !may_be_empty) {
        status =
            wal__fail(error, WAL_EINVAL, "the query has no word to search for");
    }
    return status;
}

enum wal_status
wal__expression_parse_literal(struct wal__expression *expression,
                              struct wal__tokenizer *tokenizer,
                              struct wal_slice text, struct wal_error *error)
{
    enum wal_status status =
        add_term(expression, tokenizer, text, false, false, error);

    expression->wanted = expression->count;
    return status;
}

/* --- formatting --------------------------------------------------------- */

/* Writes the words of a term, all of which a row must have: where they are is
 * known when its record is read. */
static void put_term(sqlite3_str *out, const struct wal__term *term)
{
    /* Words have no quote: it is no letter of any tokenizer. */
    for (uint32_t i = 0; i < term->count; i++) {
        bool is_last = i + 1 == term->count;

        sqlite3_str_appendf(out, "%s\"%.*s\"%s", i == 0 ? "" : " AND ",
                            (int)term->tokens[i].size, term->tokens[i].text,
                            is_last && term->is_prefix ? " *" : "");
    }
}

/* Writes the words that a row must have; false when there are none. */
static bool put_wanted(sqlite3_str *out,
                       const struct wal__expression *expression,
                       const struct wal__term *tool)
{
    for (uint32_t i = 0; i < expression->wanted; i++) {
        sqlite3_str_appendall(out, i == 0 ? "" : " AND ");
        put_term(out, &expression->terms[i]);
    }
    if (tool->count > 0) {
        sqlite3_str_appendall(out, expression->wanted == 0 ? "" : " AND ");
        put_term(out, tool);
    }
    return expression->wanted > 0 || tool->count > 0;
}

/* Writes the words that a row must not have. Those of a phrase it may have
 * elsewhere. */
static void put_excluded(sqlite3_str *out,
                         const struct wal__expression *expression)
{
    const char *joint = " NOT (";

    for (uint32_t i = expression->wanted; i < expression->count; i++) {
        if (expression->terms[i].count == 1) {
            sqlite3_str_appendall(out, joint);
            put_term(out, &expression->terms[i]);
            joint = " OR ";
        }
    }
    sqlite3_str_appendall(out, joint[1] == 'O' ? ")" : "");
}

enum wal_status wal__expression_format(const struct wal__expression *expression,
                                       struct wal__tokenizer *tokenizer,
                                       struct wal_slice tool, char **out,
                                       struct wal_error *error)
{
    struct wal__term name = {.count = 0};
    struct collect collect = {.term = &name};
    sqlite3_str *text = sqlite3_str_new(NULL);

    *out = NULL;
    if (tool.size > 0) {
        (void)wal__tokenizer_run(tokenizer, tool.data, (size_t)tool.size, true,
                                 collect_token, &collect);
    }
    sqlite3_str_appendall(text, "(");
    if (!put_wanted(text, expression, &name)) {
        sqlite3_str_appendall(text, "\"\""); /* no row has it */
    }
    sqlite3_str_appendall(text, ")");
    put_excluded(text, expression);
    free(name.tokens);
    if (collect.has_failed || sqlite3_str_errcode(text) != SQLITE_OK) {
        sqlite3_free(sqlite3_str_finish(text));
        return wal__no_memory(error);
    }
    *out = sqlite3_str_finish(text);
    return WAL_OK;
}

char *wal__expression_format_term(const struct wal__term *term)
{
    sqlite3_str *text = sqlite3_str_new(NULL);

    put_term(text, term);
    return sqlite3_str_finish(text);
}

bool wal__expression_has_phrase(const struct wal__expression *expression)
{
    for (uint32_t i = 0; i < expression->count; i++) {
        if (expression->terms[i].count > 1) {
            return true;
        }
    }
    return false;
}
