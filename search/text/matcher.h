/*
 * matcher.h - finds what a query looks for in a text of a record: the words of
 * an expression, or a text inside words.
 *
 * Threads: one at a time per matcher.
 */
#ifndef AGENTWAL_SEARCH_TEXT_MATCHER_H
#define AGENTWAL_SEARCH_TEXT_MATCHER_H

#include "search/text/expression.h"

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
enum wal_status wal__matcher_run(struct wal__matcher *matcher,
                                 struct wal_slice text) WAL_MUST_USE;

/* Whether two texts are equal without regard to the case of their letters. */
bool wal__matcher_equals(struct wal_slice a, struct wal_slice b);

#endif
