/*
 * json_scan.h - a pull scanner over one JSON text that returns spans of it.
 *
 * Implements RFC 8259, strictly: one value with white space around it; no byte order mark, no raw
 * NUL. It decodes nothing, so callers can copy numbers and strings exactly as they were written.
 *
 * Invariant: every byte that was scanned is valid. Time is linear in the size of the text, memory
 * is the caller's struct, and nesting is bounded by WAL__JSON_DEPTH_MAX; there is no recursion.
 * Outputs are untouched on failure.
 *
 * A proper prefix of a valid text fails with TRUNCATED, unless it is valid itself, like the 12 of
 * 123.
 *
 * Threads: no shared state; one thread at a time per scan.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_SCAN_H
#define AGENTWAL_FORMAT_JSON_JSON_SCAN_H

#include "format/json/json_text.h"

#define WAL__JSON_DEPTH_MAX   512
#define WAL__JSON_MEMBERS_MAX 64

enum wal__json_kind {
    WAL__JSON_NONE, /* a zeroed token; an absent member */
    WAL__JSON_OBJECT,
    WAL__JSON_OBJECT_END,
    WAL__JSON_ARRAY,
    WAL__JSON_ARRAY_END,
    WAL__JSON_KEY, /* with its colon, which is not in the span */
    WAL__JSON_STRING,
    WAL__JSON_NUMBER,
    WAL__JSON_TRUE,
    WAL__JSON_FALSE,
    WAL__JSON_NULL,
    WAL__JSON_END, /* of the text */
};

/*
 * `span` is the token's exact range in the scanned text: strings and keys include their quotes, a
 * bracket's is that bracket. The span of a whole value (from skip, find and members) is a JSON text
 * itself. `depth` is the number of containers around the token: equal for a bracket and its closing
 * bracket, 0 for the top-level value.
 */
struct wal__json_token {
    struct wal__json_span span;
    enum wal__json_kind kind;
    uint16_t depth;
    bool has_escapes; /* of a string or key: it contains a backslash */
};

/* Fields are private. The text is borrowed until the last call. */
struct wal__json_scan {
    const uint8_t *begin;
    const uint8_t *at;
    const uint8_t *end;
    enum wal__json_status status;
    uint16_t depth;
    uint8_t expect;
    uint64_t objects[WAL__JSON_DEPTH_MAX / 64]; /* bit: level is an object */
};

/* A wanted key. The caller sets the first two fields; the others are results.
 */
struct wal__json_member {
    const char *parent;           /* NULL: `key` is a key of the top-level object */
    const char *key;              /* UTF-8, compared with the unescaped key */
    struct wal__json_token value; /* whole value; kind NONE if absent */
    bool is_duplicate;            /* the key, or its parent, occurs more than once */
};

/* Begins a scan. `data` may be NULL if `size` is 0. */
void wal__json_scan_init(struct wal__json_scan *scan, const void *data, size_t size);

/*
 * Returns the next token. At the end of a valid text, each call returns END. After a failure, each
 * call returns the same failure.
 */
enum wal__json_status wal__json_scan_next(struct wal__json_scan *scan,
                                          struct wal__json_token *token) WAL__JSON_CHECKED;

/*
 * Returns the next value whole: like next, but scans an OBJECT or ARRAY up to its end, and its span
 * covers all of it. Other tokens (KEY, a closing bracket, END) are returned as by next.
 */
enum wal__json_status wal__json_scan_skip(struct wal__json_scan *scan,
                                          struct wal__json_token *value) WAL__JSON_CHECKED;

/* Returns the offset of the next byte to scan; after a failure, of the error.
 */
size_t wal__json_scan_offset(const struct wal__json_scan *scan);

/*
 * The functions below scan the whole text and fail if it is not valid. They then set *error_offset,
 * unless it is NULL, to the offset of the first error.
 */

/* Whether the text is one JSON value. */
enum wal__json_status wal__json_validate(const void *data, size_t size,
                                         size_t *error_offset) WAL__JSON_CHECKED;

/*
 * Finds the values of `count` keys of the top-level object, or of an object that is a member of it,
 * in one pass. Of duplicate keys, and of duplicate parents, the last one counts, as in JSON.parse,
 * Go and Python. NOT_OBJECT if the text is valid but not an object, NO_SPACE above
 * WAL__JSON_MEMBERS_MAX keys.
 */
enum wal__json_status wal__json_members(const void *data, size_t size,
                                        struct wal__json_member *wanted, size_t count,
                                        size_t *error_offset) WAL__JSON_CHECKED;

/* Finds one key of the top-level object like members; NOT_FOUND if absent. */
enum wal__json_status wal__json_find(const void *data, size_t size, const char *key,
                                     struct wal__json_token *value) WAL__JSON_CHECKED;

#endif
