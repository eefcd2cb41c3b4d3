/*
 * snippet.c - makes snippets (snippet.h).
 */
#include "search/text/snippet.h"

#include <stdlib.h>
#include <string.h>

#include "search/text/script.h"

static const char ellipsis[] = "\xe2\x80\xa6";
static const char replacement[] = "\xef\xbf\xbd";

enum {
    ELLIPSIS_SIZE = sizeof(ellipsis) - 1
};

void wal__snippet_deinit(struct wal__snippet *snippet)
{
    free(snippet->text);
    free(snippet->matches);
    memset(snippet, 0, sizeof(*snippet));
}

/* The number of terms that match within a window after a match. */
static uint32_t terms_near(const struct wal__matcher *matcher, uint32_t from,
                           uint32_t window)
{
    uint32_t begin = matcher->matches[from].begin;
    uint32_t terms = 0;

    for (uint32_t i = from;
         i < matcher->count && matcher->matches[i].begin - begin <= window;
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

/* A character that a line does not show. */
static bool is_blank(uint32_t c)
{
    return c <= ' ' || (c >= 0x7f && c <= 0xa0) || c == 0x2028 || c == 0x2029 ||
           c == 0x3000 || (c >= 0x2000 && c <= 0x200a);
}

/* Text that is written to a line; *places maps offsets of the text to those of
 * the line. */
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
static void put_text(struct line *line, const uint8_t *text, size_t size,
                     size_t at, size_t end)
{
    while (at < end) {
        uint32_t c = 0;
        size_t count = wal__character(text, size, at, &c);

        if (count > 0 && is_blank(c)) {
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
static void put_match(struct line *line, const struct wal__matcher *matcher,
                      struct wal_slice text, uint32_t rank, size_t *at,
                      struct wal__snippet *snippet)
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

enum wal_status wal__snippet_make(const struct wal__matcher *matcher,
                                  struct wal_slice text, uint32_t characters,
                                  struct wal__snippet *snippet)
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
    snippet->text = line.out =
        malloc((end - begin) * 3 + 2 * (size_t)matcher->count + 16);
    snippet->matches =
        malloc(((size_t)matcher->count + 1) * 2 * sizeof(uint32_t));
    if (snippet->text == NULL || snippet->matches == NULL) {
        wal__snippet_deinit(snippet);
        return WAL_ENOMEM;
    }
    if (begin > 0) {
        put(&line, ellipsis, ELLIPSIS_SIZE);
    }
    at = begin;
    for (uint32_t i = 0; i < matcher->count; i++) {
        if (matcher->matches[i].begin >= begin &&
            matcher->matches[i].end <= end) {
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
