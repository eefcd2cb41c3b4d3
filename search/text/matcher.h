/*
 * matcher.h - a query as an expression of FTS5, and as words to be found again in the text of a
 * record: the words of the expression, or a text inside words; and the line of text that shows a
 * hit (struct wal_search_hit).
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_TEXT_MATCHER_H
#define AGENTWAL_SEARCH_TEXT_MATCHER_H

#include "agentwal/search.h"
#include "search/text/tokenizer.h"

enum {
    WAL__QUERY_TEXT_MAX = 4096,
    WAL__TERMS_MAX = 32,      /* of a query */
    WAL__TERM_TOKENS_MAX = 64 /* words of a phrase */
};

struct wal__query_token {
    char text[WAL__TOKEN_MAX];
    uint32_t size;
};

/* A word or a phrase. */
struct wal__term {
    struct wal__query_token *tokens;
    uint32_t count;
    bool is_prefix;   /* the last word is the beginning of one */
    bool is_excluded; /* no record with it is wanted */
};

/* Zeroed: empty. */
struct wal__expression {
    struct wal__term terms[WAL__TERMS_MAX];
    uint32_t count;
    uint32_t wanted; /* of them: not excluded; they are the first ones */
};

void wal__expression_deinit(struct wal__expression *expression);

/* Parses the text of a query. WAL_EINVAL when it has no word that is wanted, unless
 * `may_be_empty`. */
enum wal_status wal__expression_parse(struct wal__expression *expression,
                                      struct wal__tokenizer *tokenizer, struct wal_slice text,
                                      bool may_be_empty, struct wal_error *error) WAL_MUST_USE;

/* Takes the text literally, as one phrase; it may have no word. */
enum wal_status wal__expression_parse_literal(struct wal__expression *expression,
                                              struct wal__tokenizer *tokenizer,
                                              struct wal_slice text,
                                              struct wal_error *error) WAL_MUST_USE;

/* Sets *out to the expression of FTS5 for the rows that have the words of the wanted terms and of
 * the name of this tool (empty: any), and none of the excluded words; to be freed by sqlite3_free.
 * It holds for more rows than the query: of a phrase they have the words. */
enum wal_status wal__expression_format(const struct wal__expression *expression,
                                       struct wal__tokenizer *tokenizer, struct wal_slice tool,
                                       char **out, struct wal_error *error) WAL_MUST_USE;

/* The same of one term; NULL: no memory. */
char *wal__expression_format_term(const struct wal__term *term);

/* Whether a row of the expression may have no term of the query. */
bool wal__expression_has_phrase(const struct wal__expression *expression);

enum {
    WAL__MATCHES_MAX = 256 /* that are found in a text */
};

/* Bytes of the text, and the term that they match. */
struct wal__match {
    uint32_t begin;
    uint32_t end;
    uint32_t term;
};

struct wal__matcher {
    struct wal__tokenizer *tokenizer;
    const struct wal__expression *expression;
    struct wal_slice substring; /* looked for instead, if not empty */
    /* Of the last text: by ascending begin. */
    struct wal__match matches[WAL__MATCHES_MAX];
    uint32_t count;
    uint32_t terms; /* set of bits: the wanted ones that it has */
    bool has_excluded;
    /* Words of the last text. */
    struct wal__text_token *tokens;
    size_t token_count;
    size_t token_capacity;
    bool has_failed; /* no memory */
};

void wal__matcher_deinit(struct wal__matcher *matcher);

/* Finds the terms in a text. WAL_ENOMEM. */
enum wal_status wal__matcher_run(struct wal__matcher *matcher, struct wal_slice text) WAL_MUST_USE;

/* Whether two texts are equal without regard to the case of their letters. */
bool wal__matcher_equals(struct wal_slice a, struct wal_slice b);

/* A line, to be freed, and the bytes of the matches in it. */
struct wal__snippet {
    char *text;
    uint32_t size;
    uint32_t *matches; /* pairs */
    uint32_t match_count;
};

/* Makes the line around the best match of the text that the matcher was run on: that with the most
 * terms near it. `characters` are shown on each side. An ellipsis marks what is cut. WAL_ENOMEM. */
enum wal_status wal__snippet_make(const struct wal__matcher *matcher, struct wal_slice text,
                                  uint32_t characters, struct wal__snippet *snippet) WAL_MUST_USE;
void wal__snippet_deinit(struct wal__snippet *snippet);

#endif
