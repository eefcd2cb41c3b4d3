/*
 * json_out.h - JSON text, written piece by piece.
 *
 * Compact, as JSON.stringify writes it: no space behind ':' and ','. Values
 * that were read are copied as they stood; commas are put where they belong.
 *
 * Invariant: a failure stays: after one nothing is written any more.
 *
 * Threads: no shared state; one thread at a time per output.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_OUT_H
#define AGENTWAL_FORMAT_JSON_JSON_OUT_H

#include "format/json/json_text.h"

/* The owner sets the first two fields and zeroes the others. */
struct wal__json_out {
    bool (*put)(void *ctx, const void *data, size_t size); /* false: failed */
    void *ctx;
    bool has_failed;
    bool has_value; /* the next value or key needs a comma before it */
};

/* Bytes as they are, outside of all values: a newline, a whole line. */
void wal__json_out_bytes(struct wal__json_out *out, const void *data,
                         size_t size);

/* '{' or '[', and its closing bracket. */
void wal__json_out_open(struct wal__json_out *out, char bracket);
void wal__json_out_close(struct wal__json_out *out, char bracket);

/* `key` must need no escapes. */
void wal__json_out_key(struct wal__json_out *out, const char *key);
void wal__json_out_key_span(struct wal__json_out *out,
                            struct wal__json_span key); /* with its quotes */

/* Values: JSON text as it stands; the same without the white space between its
 * tokens, so that what was several lines is none in the midst of one; UTF-8 to
 * be quoted; a number; a literal such as null or "user" with its quotes. */
void wal__json_out_value(struct wal__json_out *out, struct wal__json_span json);
void wal__json_out_compact(struct wal__json_out *out,
                           struct wal__json_span json);
void wal__json_out_text(struct wal__json_out *out, struct wal__json_span text);
void wal__json_out_number(struct wal__json_out *out, int64_t number);
void wal__json_out_literal(struct wal__json_out *out, const char *json);

/* A string out of parts: begins, goes on with text to be escaped or with JSON
 * strings that are joined to it, ends. */
void wal__json_out_string_begin(struct wal__json_out *out);
void wal__json_out_string_text(struct wal__json_out *out,
                               struct wal__json_span text);
void wal__json_out_string_json(struct wal__json_out *out,
                               struct wal__json_span string);
void wal__json_out_string_end(struct wal__json_out *out);

/* Members: a key and its value. The optional one is left out when empty. */
void wal__json_out_member(struct wal__json_out *out, const char *key,
                          struct wal__json_span json);
void wal__json_out_optional(struct wal__json_out *out, const char *key,
                            struct wal__json_span json);
void wal__json_out_member_str(struct wal__json_out *out, const char *key,
                              const char *text); /* that needs no escapes */
void wal__json_out_member_text(struct wal__json_out *out, const char *key,
                               struct wal__json_span text); /* UTF-8 */
void wal__json_out_member_bool(struct wal__json_out *out, const char *key,
                               bool value);
void wal__json_out_member_int(struct wal__json_out *out, const char *key,
                              int64_t number);

/* A newline: the value before it is a line. */
void wal__json_out_newline(struct wal__json_out *out);

/* A value in the place of a member's. */
struct wal__json_override {
    const char *key;
    struct wal__json_span json; /* empty: the member is left out */
};

/* The members of an object as they stand, in their order, but for those that
 * are swapped; another value as it stands. It must be valid. */
void wal__json_out_overridden(struct wal__json_out *out,
                              struct wal__json_span object,
                              const struct wal__json_override *overrides,
                              size_t count);

/* The members of an object as they stand, without its braces. */
void wal__json_out_members(struct wal__json_out *out,
                           struct wal__json_span object);

#endif
