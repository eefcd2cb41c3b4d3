/*
 * json_out.h - an incremental JSON writer.
 *
 * The output is compact, like that of JSON.stringify: no space after ':' and ','. Values that were
 * read are copied unchanged; the writer inserts commas.
 *
 * Invariant: a failure is permanent: nothing is written after one.
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

/* Where an output is written to: memory of a fixed size. More fails. */
struct wal__json_memory {
    uint8_t *data;
    size_t size; /* bytes that are written */
    size_t capacity;
};

/* The `put` of an output whose `ctx` is a struct wal__json_memory. */
bool wal__json_memory_put(void *ctx, const void *data, size_t size);

/* Writes bytes unchanged, outside of all values: a newline, a whole line. */
void wal__json_out_bytes(struct wal__json_out *out, const void *data, size_t size);

/* Write '{' or '[', and its closing bracket. */
void wal__json_out_open(struct wal__json_out *out, char bracket);
void wal__json_out_close(struct wal__json_out *out, char bracket);

/* `key` must not need escapes. */
void wal__json_out_key(struct wal__json_out *out, const char *key);

/* Write a value: JSON text unchanged; JSON text without the white space between its tokens, so that
 * it fits in one line; UTF-8 as a string; a number; a literal such as null, or "user" with its
 * quotes. */
void wal__json_out_value(struct wal__json_out *out, struct wal__json_span json);
void wal__json_out_compact(struct wal__json_out *out, struct wal__json_span json);
void wal__json_out_text(struct wal__json_out *out, struct wal__json_span text);
void wal__json_out_number(struct wal__json_out *out, int64_t number);
void wal__json_out_count(struct wal__json_out *out, uint64_t count);
void wal__json_out_literal(struct wal__json_out *out, const char *json);

/* Write a string in parts: begin; any number of texts, which are escaped, and JSON strings, whose
 * contents are appended; end. */
void wal__json_out_string_begin(struct wal__json_out *out);
void wal__json_out_string_text(struct wal__json_out *out, struct wal__json_span text);
void wal__json_out_string_json(struct wal__json_out *out, struct wal__json_span string);
void wal__json_out_string_end(struct wal__json_out *out);

/* Write a member: a key and its value. _optional omits an empty one. */
void wal__json_out_member(struct wal__json_out *out, const char *key, struct wal__json_span json);
void wal__json_out_optional(struct wal__json_out *out, const char *key, struct wal__json_span json);
void wal__json_out_member_str(struct wal__json_out *out, const char *key,
                              const char *text); /* must not need escapes */
void wal__json_out_member_text(struct wal__json_out *out, const char *key,
                               struct wal__json_span text); /* UTF-8 */
void wal__json_out_member_bool(struct wal__json_out *out, const char *key, bool value);
void wal__json_out_member_int(struct wal__json_out *out, const char *key, int64_t number);
void wal__json_out_member_count(struct wal__json_out *out, const char *key, uint64_t count);

/* Writes a key and opens its value, an object or array. */
void wal__json_out_member_open(struct wal__json_out *out, const char *key, char bracket);

/* End a line, which is a top-level value and a newline: write the newline; a whole line; the brace
 * that closes the object, and the newline. */
void wal__json_out_newline(struct wal__json_out *out);
void wal__json_out_line(struct wal__json_out *out, struct wal__json_span json);
void wal__json_out_close_line(struct wal__json_out *out);

/* Replaces the value of a member. */
struct wal__json_override {
    const char *key;
    struct wal__json_span json; /* empty: omit the member */
};

/* Writes an object with its members in order, replacing the values of those that have an override;
 * writes any other value unchanged. `object` must be valid JSON. */
void wal__json_out_overridden(struct wal__json_out *out, struct wal__json_span object,
                              const struct wal__json_override *overrides, size_t count);

/* Writes the members of an object without its braces. */
void wal__json_out_members(struct wal__json_out *out, struct wal__json_span object);

#endif
