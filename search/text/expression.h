/*
 * expression.h - a query as an expression of FTS5, and as words to be found
 * again in the text of a record.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_TEXT_EXPRESSION_H
#define AGENTWAL_SEARCH_TEXT_EXPRESSION_H

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

/* Parses the text of a query. WAL_EINVAL when it has no word that is wanted,
 * unless `may_be_empty`. */
enum wal_status wal__expression_parse(struct wal__expression *expression,
                                      struct wal__tokenizer *tokenizer,
                                      struct wal_slice text, bool may_be_empty,
                                      struct wal_error *error) WAL_MUST_USE;

/* Takes the text literally, as one phrase; it may have no word. */
enum wal_status wal__expression_parse_literal(
    struct wal__expression *expression, struct wal__tokenizer *tokenizer,
    struct wal_slice text, struct wal_error *error) WAL_MUST_USE;

/* Sets *out to the expression of FTS5 for the rows that have the words of the
 * wanted terms and of the name of this tool (empty: any), and none of the
 * excluded words; to be freed by sqlite3_free. It holds for more rows than the
 * query: of a phrase they have the words. */
enum wal_status wal__expression_format(const struct wal__expression *expression,
                                       struct wal__tokenizer *tokenizer,
                                       struct wal_slice tool, char **out,
                                       struct wal_error *error) WAL_MUST_USE;

/* The same of one term; NULL: no memory. */
char *wal__expression_format_term(const struct wal__term *term);

/* Whether a row of the expression may have no term of the query. */
bool wal__expression_has_phrase(const struct wal__expression *expression);

#endif
