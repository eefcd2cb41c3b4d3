/*
 * matcher.c - finds terms in texts (matcher.h).
 */
#include "search/text/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "search/text/script.h"

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

static void add_match(struct wal__matcher *matcher, uint32_t begin,
                      uint32_t end, uint32_t term)
{
    matcher->terms |= 1U << term;
    if (matcher->count < WAL__MATCHES_MAX) {
        matcher->matches[matcher->count++] =
            (struct wal__match){.begin = begin, .end = end, .term = term};
    }
}

/* --- words -------------------------------------------------------------- */

static bool collect(void *ctx, const char *token, size_t size, size_t begin,
                    size_t end, bool is_colocated)
{
    struct wal__matcher *matcher = ctx;
    struct wal__text_token *added;

    if (matcher->token_count == matcher->token_capacity) {
        size_t capacity = matcher->token_capacity * 2 + 256;
        void *grown =
            realloc(matcher->tokens, capacity * sizeof(*matcher->tokens));

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

static bool is_word(const struct wal__text_token *token,
                    const struct wal__query_token *word, bool is_prefix)
{
    return (is_prefix ? token->size >= word->size
                      : token->size == word->size) &&
           memcmp(token->text, word->text, word->size) == 0;
}

/* The rank of the word at the position after that of `at` that a term wants;
 * 0: it is another one. */
static size_t next_word(const struct wal__matcher *matcher, size_t at,
                        const struct wal__query_token *word, bool is_prefix)
{
    uint32_t position = matcher->tokens[at].position + 1;

    for (size_t i = at + 1;
         i < matcher->token_count && matcher->tokens[i].position <= position;
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

    if (!is_word(&matcher->tokens[at], &term->tokens[0],
                 term->is_prefix && term->count == 1)) {
        return;
    }
    for (uint32_t i = 1; i < term->count; i++) {
        last = next_word(matcher, last, &term->tokens[i],
                         term->is_prefix && i + 1 == term->count);
        if (last == 0) {
            return;
        }
    }
    if (number >= matcher->expression->wanted) {
        matcher->has_excluded = true;
        return;
    }
    add_match(matcher, matcher->tokens[at].begin, matcher->tokens[last].end,
              number);
}

static void match_words(struct wal__matcher *matcher, struct wal_slice text)
{
    matcher->token_count = 0;
    (void)wal__tokenizer_run(matcher->tokenizer, text.data, (size_t)text.size,
                             false, collect, matcher);
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
    if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
        (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) ||
        (c >= 0x1e00 && c <= 0x1eff)) {
        return c | 1;
    }
    return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)
               ? c + (c & 1)
               : c;
}

/* Reads a character, folded; a byte of ill-formed text is one that equals no
 * other. Returns its bytes. */
static size_t read_folded(const uint8_t *text, size_t size, size_t at,
                          uint32_t *character)
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
static size_t match_at(const uint8_t *text, size_t size, size_t at,
                       struct wal_slice wanted)
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
    return b.size > 0 && a.size > 0 &&
           match_at(a.data, (size_t)a.size, 0, b) == a.size;
}

enum wal_status wal__matcher_run(struct wal__matcher *matcher,
                                 struct wal_slice text)
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
