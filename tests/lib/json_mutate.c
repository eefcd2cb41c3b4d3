/*
 * json_mutate.c - seeded damage to files of JSON and of lines of JSON.
 *
 * Threads: one thread at a time per chance.
 */
#include "tests/lib/json_mutate.h"

#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "tests/lib/rng.h"

#define VALUES_MAX 512

static const char *const values[] = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.50",
    "1e999",
    "9223372036854775808",
    "\"\"",
    "\" \"",
    "\"x\"",
    "\"\\u0001\"",
    "\"\\n\"",
    "\"../..\"",
    "\"\\ud83d\\ude00\"",
    "\"00000000\"",
    "\"user\"",
    "\"assistant\"",
    "\"2026-01-02T03:04:05Z\"",
    "\"9999-99-99T99:99:99Z\"",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[{}]",
    "{\"type\":\"text\",\"text\":\"t\"}",
    "[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"text\",\"text\":\"\"}]",
    "{\"\":\"\"}",
    "{\"type\":7,\"type\":\"text\"}",
    " { \"a\" : [ 1 , 2 ] } "};

uint64_t json_random_next(struct json_random *chance)
{
    return rng_next(&chance->state);
}

size_t json_random_below(struct json_random *chance, size_t limit)
{
    return (size_t)(json_random_next(chance) % limit);
}

/* Puts `with` in the place of bytes of the text; answers the new size. */
static size_t replace(char **text, size_t size, size_t at, size_t count,
                      const char *with, size_t with_size)
{
    char *old = *text;
    char *made = malloc(size - count + with_size + 1);

    memcpy(made, old, at);
    memcpy(made + at, with, with_size);
    memcpy(made + at + with_size, old + at + count, size - at - count);
    *text = made;
    free(old);
    made[size - count + with_size] = '\0';
    return size - count + with_size;
}

struct value {
    size_t at;
    size_t size;
    bool is_key;
};

/* Values and keys of a text, of which at most VALUES_MAX are found. */
static size_t find_values(const char *text, size_t size, struct value *found)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    size_t open[WAL__JSON_DEPTH_MAX];
    size_t depth = 0;
    size_t count = 0;

    wal__json_scan_init(&scan, text, size);
    while (count < VALUES_MAX &&
           wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        size_t at = (size_t)((const char *)token.span.data - text);
        bool ends = token.kind == WAL__JSON_OBJECT_END ||
                    token.kind == WAL__JSON_ARRAY_END;
        if (ends) {
            struct value *value = &found[open[--depth]];
            value->size = at + 1 - value->at;
            continue;
        }
        if (token.kind == WAL__JSON_OBJECT || token.kind == WAL__JSON_ARRAY) {
            open[depth++] = count;
        }
        found[count++] = (struct value){.at = at,
                                        .size = token.span.size,
                                        .is_key = token.kind == WAL__JSON_KEY};
    }
    return depth == 0 ? count : 0;
}

/* One value of the text becomes another. */
static size_t mutate_value(struct json_random *chance, char **text,
                           size_t begin, size_t size, size_t total)
{
    struct value found[VALUES_MAX];
    size_t count = find_values(*text + begin, size, found);
    const char *with =
        values[json_random_below(chance, sizeof(values) / sizeof(values[0]))];
    struct value one;
    struct value two;
    char *copy;

    if (count == 0) {
        return total;
    }
    one = found[json_random_below(chance, count)];
    two = found[json_random_below(chance, count)];
    if (one.is_key) {
        with = json_random_below(chance, 2) > 0 ? "\"id\"" : "\"x\"";
        return replace(text, total, begin + one.at, one.size, with,
                       strlen(with));
    }
    if (json_random_below(chance, 3) > 0 || two.is_key) {
        return replace(text, total, begin + one.at, one.size, with,
                       strlen(with));
    }
    copy = malloc(two.size + 1);
    memcpy(copy, *text + begin + two.at, two.size);
    total = replace(text, total, begin + one.at, one.size, copy, two.size);
    free(copy);
    return total;
}

static size_t mutate_bytes(struct json_random *chance, char **text,
                           size_t begin, size_t size, size_t total)
{
    size_t at = begin + json_random_below(chance, size + 1);
    size_t left = begin + size - at;
    size_t count = left > 0 ? 1 + json_random_below(chance, left) : 0;
    char bytes[8];
    char *copy;

    switch (json_random_below(chance, 5)) {
    case 0:
        if (left > 0) {
            (*text)[at] ^= (char)(1 << json_random_below(chance, 8));
        }
        return total;
    case 1: /* torn */
        return replace(text, total, at, count, "", 0);
    case 2:
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (char)json_random_next(chance);
        }
        return replace(text, total, at, 0, bytes,
                       1 + json_random_below(chance, sizeof(bytes)));
    case 3:
        return replace(text, total, at, 0, "\0\0\0\0\0\0\0\0", 8);
    default: /* a piece of another place */
        copy = malloc(count + 1);
        memcpy(copy, *text + at, count);
        total = replace(text, total, json_random_below(chance, total + 1), 0,
                        copy, count);
        free(copy);
        return total;
    }
}

/* The line that the byte at `at` is in. */
static void line_at(const char *text, size_t size, size_t at, size_t *begin,
                    size_t *end)
{
    *begin = at;
    *end = at;
    while (*begin > 0 && text[*begin - 1] != '\n') {
        (*begin)--;
    }
    while (*end < size && text[*end] != '\n') {
        (*end)++;
    }
}

/* A line comes again somewhere, or goes, or both. */
static size_t mutate_lines(struct json_random *chance, char **text, size_t size,
                           size_t begin, size_t end)
{
    size_t count = end < size ? end + 1 - begin : end - begin;
    size_t kind = json_random_below(chance, 3);
    size_t to;
    size_t to_end;
    char *copy = malloc(count + 1);

    memcpy(copy, *text + begin, count);
    if (kind != 0) {
        size = replace(text, size, begin, count, "", 0);
    }
    if (kind != 1) {
        line_at(*text, size, json_random_below(chance, size + 1), &to, &to_end);
        size = replace(text, size, to, 0, copy, count);
    }
    free(copy);
    return size;
}

size_t json_mutate(struct json_random *chance, char **text, size_t size,
                   bool is_lines)
{
    size_t begin = 0;
    size_t end = size;

    if (is_lines) {
        line_at(*text, size, json_random_below(chance, size + 1), &begin, &end);
        if (json_random_below(chance, 6) == 0) {
            return mutate_lines(chance, text, size, begin, end);
        }
    }
    return json_random_below(chance, 3) > 0
               ? mutate_value(chance, text, begin, end - begin, size)
               : mutate_bytes(chance, text, begin, end - begin, size);
}
