/*
 * matcher.c - parses queries, finds their terms in texts, and makes snippets (matcher.h).
 *
 * Invariant: a term has at least one word; what FTS5 gets of it are words in quotes, so that no
 * character of a query is an operator.
 */
#include "search/text/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "search/text/tokenizer.h"

/* --- expressions ---------------------------------------------------------- */

void wal__expression_deinit(struct wal__expression *expression)
{
    for (uint32_t i = 0; i < expression->count; i++) {
        free(expression->terms[i].tokens);
    }
    memset(expression, 0, sizeof(*expression));
}

/* --- parsing ------------------------------------------------------------ */

struct collecting {
    struct wal__term *term;
    bool has_failed; /* no memory */
    bool is_cut;     /* it has more words */
};

static bool collect_token(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                          bool is_colocated)
{
    struct collecting *collect = ctx;
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
    size_t size = wal__character((const uint8_t *)token->text, token->size, 0, &code_point);

    return size == token->size && wal__is_unspaced(code_point);
}

/* Adds a term, if the text has a word. */
static enum wal_status add_term(struct wal__expression *expression,
                                struct wal__tokenizer *tokenizer, struct wal_slice text,
                                bool is_prefix, bool is_excluded, struct wal_error *error)
{
    struct wal__term term = {.is_prefix = is_prefix, .is_excluded = is_excluded};
    struct collecting collect = {.term = &term};

    (void)wal__tokenizer_run(tokenizer, text.data, (size_t)text.size, true, collect_token,
                             &collect);
    if (collect.has_failed) {
        return wal__no_memory(error);
    }
    if (term.count == 0) {
        return WAL_OK;
    }
    if (collect.is_cut) {
        free(term.tokens);
        return wal__fail(error, WAL_EINVAL, "a phrase has at most %d words", WAL__TERM_TOKENS_MAX);
    }
    if (expression->count == WAL__TERMS_MAX) {
        free(term.tokens);
        return wal__fail(error, WAL_EINVAL, "a query has at most %d words and phrases",
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
                                 struct wal__tokenizer *tokenizer, const char *text, size_t size,
                                 bool excluded, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t at = 0;

    while (at < size && status == WAL_OK) {
        bool is_excluded = text[at] == '-' && at + 1 < size && !is_space(text[at + 1]);
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
            status = add_term(expression, tokenizer, (struct wal_slice){text + begin, end - begin},
                              is_prefix, excluded, error);
        }
    }
    return status;
}

enum wal_status wal__expression_parse(struct wal__expression *expression,
                                      struct wal__tokenizer *tokenizer, struct wal_slice text,
                                      bool may_be_empty, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (text.size > WAL__QUERY_TEXT_MAX) {
        return wal__fail(error, WAL_EINVAL, "a query has at most %d bytes", WAL__QUERY_TEXT_MAX);
    }
    status = add_terms(expression, tokenizer, text.data, (size_t)text.size, false, error);
    expression->wanted = expression->count;
    if (status == WAL_OK) {
        status = add_terms(expression, tokenizer, text.data, (size_t)text.size, true, error);
    }
    if (status == WAL_OK && expression->wanted == 0 && !may_be_empty) {
        status = wal__fail(error, WAL_EINVAL, "the query has no word to search for");
    }
    return status;
}

enum wal_status wal__expression_parse_literal(struct wal__expression *expression,
                                              struct wal__tokenizer *tokenizer,
                                              struct wal_slice text, struct wal_error *error)
{
    enum wal_status status = add_term(expression, tokenizer, text, false, false, error);

    expression->wanted = expression->count;
    return status;
}

/* --- formatting --------------------------------------------------------- */

/* Writes the words of a term, all of which a row must have: where they are is known when its record
 * is read. */
static void put_term(sqlite3_str *out, const struct wal__term *term)
{
    /* Words have no quote: it is no letter of any tokenizer. */
    for (uint32_t i = 0; i < term->count; i++) {
        bool is_last = i + 1 == term->count;

        sqlite3_str_appendf(out, "%s\"%.*s\"%s", i == 0 ? "" : " AND ", (int)term->tokens[i].size,
                            term->tokens[i].text, is_last && term->is_prefix ? " *" : "");
    }
}

/* Writes the words that a row must have; false when there are none. */
static bool put_wanted(sqlite3_str *out, const struct wal__expression *expression,
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

/* Writes the words that a row must not have. Those of a phrase it may have elsewhere. */
static void put_excluded(sqlite3_str *out, const struct wal__expression *expression)
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
                                       struct wal__tokenizer *tokenizer, struct wal_slice tool,
                                       char **out, struct wal_error *error)
{
    struct wal__term name = {.count = 0};
    struct collecting collect = {.term = &name};
    sqlite3_str *text = sqlite3_str_new(NULL);

    *out = NULL;
    if (tool.size > 0) {
        (void)wal__tokenizer_run(tokenizer, tool.data, (size_t)tool.size, true, collect_token,
                                 &collect);
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

/* --- matches -------------------------------------------------------------- */

/* A word of a text, normalised. */
struct wal__text_token {
    uint32_t begin;
    uint32_t end;
    uint32_t position; /* of the word among the words */
    uint32_t size;
    char text[WAL__TOKEN_MAX];
};

void wal__matcher_deinit(struct wal__matcher *matcher)
{
    free(matcher->tokens);
    matcher->tokens = NULL;
    matcher->token_capacity = 0;
}

static void add_match(struct wal__matcher *matcher, uint32_t begin, uint32_t end, uint32_t term)
{
    matcher->terms |= 1U << term;
    if (matcher->count < WAL__MATCHES_MAX) {
        matcher->matches[matcher->count++] =
            (struct wal__match){.begin = begin, .end = end, .term = term};
    }
}

/* --- words -------------------------------------------------------------- */

static bool add_word(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                     bool is_colocated)
{
    struct wal__matcher *matcher = ctx;
    struct wal__text_token *added;

    if (matcher->token_count == matcher->token_capacity) {
        size_t capacity = matcher->token_capacity * 2 + 256;
        void *grown = realloc(matcher->tokens, capacity * sizeof(*matcher->tokens));

        if (grown == NULL) {
            matcher->has_failed = true;
            return false;
        }
        matcher->tokens = grown;
        matcher->token_capacity = capacity;
    }
    added = &matcher->tokens[matcher->token_count];
    added->begin = (uint32_t)begin;
    added->end = (uint32_t)end;
    added->size = (uint32_t)size;
    added->position = matcher->token_count == 0 ? 0 : added[-1].position + 1;
    if (is_colocated && matcher->token_count > 0) {
        added->position = added[-1].position;
    }
    memcpy(added->text, token, size);
    matcher->token_count++;
    return true;
}

static bool is_word(const struct wal__text_token *token, const struct wal__query_token *word,
                    bool is_prefix)
{
    return (is_prefix ? token->size >= word->size : token->size == word->size) &&
           memcmp(token->text, word->text, word->size) == 0;
}

/* The rank of the word at the position after that of `at` that a term wants; 0: it is another
 * one. */
static size_t next_word(const struct wal__matcher *matcher, size_t at,
                        const struct wal__query_token *word, bool is_prefix)
{
    uint32_t position = matcher->tokens[at].position + 1;

    for (size_t i = at + 1; i < matcher->token_count && matcher->tokens[i].position <= position;
         i++) {
        if (matcher->tokens[i].position == position &&
            is_word(&matcher->tokens[i], word, is_prefix)) {
            return i;
        }
    }
    return 0;
}

/* Adds a match of the term that begins with a word of the text. */
static void match_term(struct wal__matcher *matcher, size_t at, uint32_t number)
{
    const struct wal__term *term = &matcher->expression->terms[number];
    size_t last = at;

    if (!is_word(&matcher->tokens[at], &term->tokens[0], term->is_prefix && term->count == 1)) {
        return;
    }
    for (uint32_t i = 1; i < term->count; i++) {
        last = next_word(matcher, last, &term->tokens[i], term->is_prefix && i + 1 == term->count);
        if (last == 0) {
            return;
        }
    }
    if (number >= matcher->expression->wanted) {
        matcher->has_excluded = true;
        return;
    }
    add_match(matcher, matcher->tokens[at].begin, matcher->tokens[last].end, number);
}

static void match_words(struct wal__matcher *matcher, struct wal_slice text)
{
    matcher->token_count = 0;
    (void)wal__tokenizer_run(matcher->tokenizer, text.data, (size_t)text.size, false, add_word,
                             matcher);
    for (size_t i = 0; i < matcher->token_count; i++) {
        for (uint32_t t = 0; t < matcher->expression->count; t++) {
            match_term(matcher, i, t);
        }
    }
}

/* --- inside words ------------------------------------------------------- */

/* The small letter of a letter of the Latin, Greek and Cyrillic scripts. */
static uint32_t fold(uint32_t c)
{
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
        (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f)) {
        return c + 32;
    }
    if (c >= 0x400 && c <= 0x40f) {
        return c + 80;
    }
    if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481) ||
        (c >= 0x48a && c <= 0x4bf) || (c >= 0x1e00 && c <= 0x1eff)) {
        return c | 1;
    }
    return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e) ? c + (c & 1) : c;
}

/* Reads a character, folded; a byte of ill-formed text is one that equals no other. Returns its
 * bytes. */
static size_t read_folded(const uint8_t *text, size_t size, size_t at, uint32_t *character)
{
    size_t count = wal__character(text, size, at, character);

    if (count == 0) {
        *character = 0x80000000U | text[at];
        return 1;
    }
    *character = fold(*character);
    return count;
}

/* The end of `wanted` in the text at `at`; 0: it is not there. */
static size_t match_at(const uint8_t *text, size_t size, size_t at, struct wal_slice wanted)
{
    const uint8_t *pattern = wanted.data;
    size_t pattern_size = (size_t)wanted.size;
    size_t i = 0;

    while (i < pattern_size) {
        uint32_t a;
        uint32_t b;

        if (at >= size) {
            return 0;
        }
        at += read_folded(text, size, at, &a);
        i += read_folded(pattern, pattern_size, i, &b);
        if (a != b) {
            return 0;
        }
    }
    return at;
}

static void match_substring(struct wal__matcher *matcher, struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t size = (size_t)text.size;
    size_t at = 0;

    while (at < size && matcher->count < WAL__MATCHES_MAX) {
        size_t end = match_at(data, size, at, matcher->substring);
        uint32_t ignored;

        if (end > 0) {
            add_match(matcher, (uint32_t)at, (uint32_t)end, 0);
            at = end;
        } else {
            at += read_folded(data, size, at, &ignored);
        }
    }
}

bool wal__matcher_equals(struct wal_slice a, struct wal_slice b)
{
    return b.size > 0 && a.size > 0 && match_at(a.data, (size_t)a.size, 0, b) == a.size;
}

enum wal_status wal__matcher_run(struct wal__matcher *matcher, struct wal_slice text)
{
    matcher->count = 0;
    matcher->terms = 0;
    matcher->has_excluded = false;
    matcher->has_failed = false;
    if (matcher->substring.size > 0) {
        match_substring(matcher, text);
    } else {
        match_words(matcher, text);
    }
    return matcher->has_failed ? WAL_ENOMEM : WAL_OK;
}

/* --- snippets ------------------------------------------------------------- */

static const char ellipsis[] = "\xe2\x80\xa6";
static const char replacement[] = "\xef\xbf\xbd";

enum { ELLIPSIS_SIZE = sizeof(ellipsis) - 1 };

void wal__snippet_deinit(struct wal__snippet *snippet)
{
    free(snippet->text);
    free(snippet->matches);
    memset(snippet, 0, sizeof(*snippet));
}

/* The number of terms that match within a window after a match. */
static uint32_t terms_near(const struct wal__matcher *matcher, uint32_t from, uint32_t window)
{
    uint32_t begin = matcher->matches[from].begin;
    uint32_t terms = 0;

    for (uint32_t i = from; i < matcher->count && matcher->matches[i].begin - begin <= window;
         i++) {
        terms |= 1U << matcher->matches[i].term;
    }
    return (uint32_t)__builtin_popcount(terms);
}

/* The first of the matches with the most terms near them. */
static uint32_t best_match(const struct wal__matcher *matcher, uint32_t window)
{
    uint32_t best = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < matcher->count; i++) {
        uint32_t terms = terms_near(matcher, i, window);

        if (terms > most) {
            most = terms;
            best = i;
        }
    }
    return best;
}

static size_t step_back(const uint8_t *text, size_t at)
{
    at--;
    while (at > 0 && (text[at] & 0xc0) == 0x80) {
        at--;
    }
    return at;
}

static size_t step_on(const uint8_t *text, size_t size, size_t at)
{
    uint32_t ignored;
    size_t count = wal__character(text, size, at, &ignored);

    return at + (count == 0 ? 1 : count);
}

/* Text that is written to a line; *places maps offsets of the text to those of the line. */
struct line {
    char *out;
    uint32_t size;
    bool has_gap;
};

static void put(struct line *line, const void *data, size_t size)
{
    memcpy(line->out + line->size, data, size);
    line->size += (uint32_t)size;
}

/* Writes the bytes from `at` up to `end`, white space as single spaces. */
static void put_text(struct line *line, const uint8_t *text, size_t size, size_t at, size_t end)
{
    while (at < end) {
        uint32_t c = 0;
        size_t count = wal__character(text, size, at, &c);

        /* A line does not show blanks. */
        if (count > 0 && (c <= ' ' || (c >= 0x7f && c <= 0xa0) || c == 0x2028 || c == 0x2029 ||
                          c == 0x3000 || (c >= 0x2000 && c <= 0x200a))) {
            line->has_gap = true;
        } else {
            if (line->has_gap && line->size > 0) {
                put(line, " ", 1);
            }
            line->has_gap = false;
            put(line, count == 0 ? replacement : (const char *)text + at,
                count == 0 ? sizeof(replacement) - 1 : count);
        }
        at += count == 0 ? 1 : count;
    }
}

/* Writes the match of a rank, and notes where it is. */
static void put_match(struct line *line, const struct wal__matcher *matcher, struct wal_slice text,
                      uint32_t rank, size_t *at, struct wal__snippet *snippet)
{
    const struct wal__match *match = &matcher->matches[rank];
    size_t begin = match->begin > *at ? match->begin : *at;
    uint32_t *pair;

    if (match->end <= *at) {
        return; /* it is inside the one before */
    }
    put_text(line, text.data, (size_t)text.size, *at, begin);
    if (line->has_gap && line->size > 0) {
        put(line, " ", 1);
    }
    line->has_gap = false;
    pair = &snippet->matches[2 * (size_t)snippet->match_count];
    /* Matches that touch are one. */
    if (snippet->match_count > 0 && pair[-1] == line->size && begin == *at) {
        pair -= 2;
    } else {
        pair[0] = line->size;
        snippet->match_count++;
    }
    put_text(line, text.data, (size_t)text.size, begin, match->end);
    *at = match->end;
    pair[1] = line->size;
}

enum wal_status wal__snippet_make(const struct wal__matcher *matcher, struct wal_slice text,
                                  uint32_t characters, struct wal__snippet *snippet)
{
    const uint8_t *data = text.data;
    size_t size = (size_t)text.size;
    uint32_t best = best_match(matcher, 2 * characters);
    size_t begin = matcher->count == 0 ? 0 : matcher->matches[best].begin;
    size_t end = matcher->count == 0 ? 0 : matcher->matches[best].end;
    struct line line = {.has_gap = false};
    size_t at;

    for (uint32_t i = 0; i < characters && begin > 0; i++) {
        begin = step_back(data, begin);
    }
    for (uint32_t i = 0; i < characters && end < size; i++) {
        end = step_on(data, size, end);
    }
    memset(snippet, 0, sizeof(*snippet));
    snippet->text = line.out = malloc((end - begin) * 3 + 2 * (size_t)matcher->count + 16);
    snippet->matches = malloc(((size_t)matcher->count + 1) * 2 * sizeof(uint32_t));
    if (snippet->text == NULL || snippet->matches == NULL) {
        wal__snippet_deinit(snippet);
        return WAL_ENOMEM;
    }
    if (begin > 0) {
        put(&line, ellipsis, ELLIPSIS_SIZE);
    }
    at = begin;
    for (uint32_t i = 0; i < matcher->count; i++) {
        if (matcher->matches[i].begin >= begin && matcher->matches[i].end <= end) {
            put_match(&line, matcher, text, i, &at, snippet);
        }
    }
    put_text(&line, data, size, at, end);
    if (end < size) {
        put(&line, ellipsis, ELLIPSIS_SIZE);
    }
    snippet->size = line.size;
    return WAL_OK;
}
