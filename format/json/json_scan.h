/*
 * json_scan.h - a pull scanner over one JSON text that yields spans of it.
 *
 * Implements RFC 8259, strictly: one value, white space around it, nothing
 * else; no byte order mark, no raw NUL anywhere. Nothing is decoded, so that
 * numbers and strings can be copied as they were written.
 *
 * Invariant: every byte that is passed has been checked. Time is linear in the
 * size of the text, memory is the caller's struct, and nesting is bounded by
 * WAL__JSON_DEPTH_MAX; there is no recursion. Outputs are untouched on failure.
 *
 * A text that is a proper prefix of a valid one gets TRUNCATED, unless it is
 * valid itself, as 12 is in 123.
 *
 * Threads: no shared state; one thread at a time per scan.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_SCAN_H
#define AGENTWAL_FORMAT_JSON_JSON_SCAN_H

#include "format/json/json_text.h"

#define WAL__JSON_DEPTH_MAX   512
#define WAL__JSON_MEMBERS_MAX 64

enum wal__json_kind {
    WAL__JSON_NONE, /* no token: what a zeroed one is, and an absent member */
    WAL__JSON_OBJECT,
    WAL__JSON_OBJECT_END,
    WAL__JSON_ARRAY,
    WAL__JSON_ARRAY_END,
    WAL__JSON_KEY, /* its colon has been passed */
    WAL__JSON_STRING,
    WAL__JSON_NUMBER,
    WAL__JSON_TRUE,
    WAL__JSON_FALSE,
    WAL__JSON_NULL,
    WAL__JSON_END, /* of the text */
};

/*
 * `span` lies in the scanned text and is exact: a string's and a key's has its
 * quotes, a bracket's is that bracket; that of a whole value (from skip, find
 * and members) is a JSON text itself. `depth` counts the containers around the
 * token: the same for a bracket and its closing one, 0 for the topmost value.
 */
struct wal__json_token {
    struct wal__json_span span;
    enum wal__json_kind kind;
    uint16_t depth;
    bool has_escapes; /* of a string or key: it holds a backslash */
};

/* Fields are the scanner's own. The text is borrowed until the last call. */
struct wal__json_scan {
    const uint8_t *begin;
    const uint8_t *at;
    const uint8_t *end;
    enum wal__json_status status;
    uint16_t depth;
    uint8_t expect;
    uint64_t objects[WAL__JSON_DEPTH_MAX / 64]; /* bit: level is an object */
};

/* A wanted key. The first two fields are the caller's, the others results. */
struct wal__json_member {
    const char *parent; /* NULL: `key` is a key of the topmost object */
    const char *key;    /* UTF-8, compared with the unescaped key */
    struct wal__json_token value; /* whole value; kind NONE when absent */
    bool is_duplicate; /* it, or its parent, stood there more than once */
};

/* `data` may be NULL when `size` is 0. */
void wal__json_scan_init(struct wal__json_scan *scan, const void *data,
                         size_t size);

/*
 * Gives the next token; END, again and again, when the text is complete. A
 * failure is final: each later call returns it again.
 */
enum wal__json_status
wal__json_scan_next(struct wal__json_scan *scan,
                    struct wal__json_token *token) WAL__JSON_CHECKED;

/*
 * Gives the next value whole: like next, but an OBJECT or ARRAY is passed up
 * to its end and its span covers all of it. Where no value comes next, the
 * token that does (KEY, a closing bracket, END) is given as by next.
 */
enum wal__json_status
wal__json_scan_skip(struct wal__json_scan *scan,
                    struct wal__json_token *value) WAL__JSON_CHECKED;

/* Offset of the next byte to be scanned; after a failure, of the error. */
size_t wal__json_scan_offset(const struct wal__json_scan *scan);

/*
 * The functions below scan the whole text and fail if it is not valid.
 * `error_offset` (may be NULL) gets the offset of the first error when the
 * text is not valid, and is untouched otherwise.
 */

/* Whether the text is one JSON value. */
enum wal__json_status
wal__json_validate(const void *data, size_t size,
                   size_t *error_offset) WAL__JSON_CHECKED;

/*
 * Finds the values of `count` keys of the topmost object, or of an object that
 * is a member of it, in one pass. Where a key stands more than once, the last
 * one counts, and so does the last of equal parents: that is what JSON.parse,
 * Go and Python make of the text, and so what its writer meant. NOT_OBJECT when
 * the text is valid but no object, NO_SPACE above WAL__JSON_MEMBERS_MAX keys.
 */
enum wal__json_status wal__json_members(const void *data, size_t size,
                                        struct wal__json_member *wanted,
                                        size_t count,
                                        size_t *error_offset) WAL__JSON_CHECKED;

/* Finds one key of the topmost object, as members does; NOT_FOUND if absent. */
enum wal__json_status
wal__json_find(const void *data, size_t size, const char *key,
               struct wal__json_token *value) WAL__JSON_CHECKED;

#endif
