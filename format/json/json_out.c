/*
 * json_out.c - an incremental JSON writer (json_out.h).
 *
 * Invariant: has_value is set exactly if the next key or value of the present container needs a
 * comma.
 */
#include "format/json/json_out.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

bool wal__json_memory_put(void *ctx, const void *data, size_t size)
{
    struct wal__json_memory *memory = ctx;

    WAL__ASSERT(memory->size <= memory->capacity);
    if (size > memory->capacity - memory->size) {
        return false;
    }
    memcpy(memory->data + memory->size, data, size);
    memory->size += size;
    return true;
}

void wal__json_out_bytes(struct wal__json_out *out, const void *data, size_t size)
{
    if (!out->has_failed && size > 0 && !out->put(out->ctx, data, size)) {
        out->has_failed = true;
    }
}

static void put_cstring(struct wal__json_out *out, const char *text)
{
    wal__json_out_bytes(out, text, strlen(text));
}

static void put_separator(struct wal__json_out *out)
{
    if (out->has_value) {
        wal__json_out_bytes(out, ",", 1);
    }
    out->has_value = true;
}

void wal__json_out_open(struct wal__json_out *out, char bracket)
{
    WAL__ASSERT(bracket == '{' || bracket == '[');
    put_separator(out);
    wal__json_out_bytes(out, &bracket, 1);
    out->has_value = false;
}

void wal__json_out_close(struct wal__json_out *out, char bracket)
{
    WAL__ASSERT(bracket == '}' || bracket == ']');
    wal__json_out_bytes(out, &bracket, 1);
    out->has_value = true;
}

void wal__json_out_key(struct wal__json_out *out, const char *key)
{
    put_separator(out);
    wal__json_out_bytes(out, "\"", 1);
    put_cstring(out, key);
    wal__json_out_bytes(out, "\":", 2);
    out->has_value = false;
}

static void json_out_key_span(struct wal__json_out *out, struct wal__json_span key)
{
    put_separator(out);
    WAL__ASSERT(key.size >= 2);
    wal__json_out_bytes(out, key.data, key.size);
    wal__json_out_bytes(out, ":", 1);
    out->has_value = false;
}

void wal__json_out_value(struct wal__json_out *out, struct wal__json_span json)
{
    put_separator(out);
    wal__json_out_bytes(out, json.data, json.size);
}

/* Returns the end of the string whose opening quote is before `at`. */
static size_t skip_string(struct wal__json_span json, size_t at)
{
    WAL__ASSERT(at > 0 && json.data[at - 1] == '"');
    while (at < json.size && json.data[at] != '"') {
        at += json.data[at] == '\\' ? 2 : 1;
    }
    return at + 1;
}

void wal__json_out_compact(struct wal__json_out *out, struct wal__json_span json)
{
    size_t from = 0; /* first byte that was not written */
    size_t at = 0;

    put_separator(out);
    while (at < json.size) {
        uint8_t byte = json.data[at++];
        if (byte == '"') {
            at = skip_string(json, at);
        } else if (byte <= ' ') {
            wal__json_out_bytes(out, json.data + from, at - 1 - from);
            from = at;
        }
    }
    if (from < json.size) {
        wal__json_out_bytes(out, json.data + from, json.size - from);
    }
}

void wal__json_out_literal(struct wal__json_out *out, const char *json)
{
    put_separator(out);
    put_cstring(out, json);
}

static void put_digits(struct wal__json_out *out, bool is_negative, uint64_t rest)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (is_negative) {
        digits[--at] = '-';
    }
    put_separator(out);
    wal__json_out_bytes(out, digits + at, sizeof(digits) - at);
}

void wal__json_out_number(struct wal__json_out *out, int64_t number)
{
    put_digits(out, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void wal__json_out_count(struct wal__json_out *out, uint64_t count)
{
    put_digits(out, false, count);
}

void wal__json_out_string_begin(struct wal__json_out *out)
{
    put_separator(out);
    wal__json_out_bytes(out, "\"", 1);
}

void wal__json_out_string_end(struct wal__json_out *out)
{
    wal__json_out_bytes(out, "\"", 1);
}

/* Returns the size of the prefix that needs no escapes. */
static size_t unescaped_prefix(struct wal__json_span text)
{
    size_t size = 0;

    while (size < text.size && text.data[size] >= 0x20 && text.data[size] != '"' &&
           text.data[size] != '\\') {
        size++;
    }
    return size;
}

void wal__json_out_string_text(struct wal__json_out *out, struct wal__json_span text)
{
    while (text.size > 0) {
        size_t size = unescaped_prefix(text);
        uint8_t escaped[8];
        size_t written = 0;

        wal__json_out_bytes(out, text.data, size);
        text.data += size;
        text.size -= size;
        if (text.size == 0) {
            return;
        }
        if (wal__json_escape((struct wal__json_span){text.data, 1}, escaped, sizeof(escaped),
                             &written) != WAL__JSON_OK) {
            out->has_failed = true;
            return;
        }
        WAL__ASSERT(written > 2 && written <= sizeof(escaped));
        wal__json_out_bytes(out, escaped + 1, written - 2);
        text.data++;
        text.size--;
    }
}

void wal__json_out_string_json(struct wal__json_out *out, struct wal__json_span string)
{
    if (string.size > 2) {
        wal__json_out_bytes(out, string.data + 1, string.size - 2);
    }
}

void wal__json_out_text(struct wal__json_out *out, struct wal__json_span text)
{
    wal__json_out_string_begin(out);
    wal__json_out_string_text(out, text);
    wal__json_out_string_end(out);
}

void wal__json_out_member(struct wal__json_out *out, const char *key, struct wal__json_span json)
{
    wal__json_out_key(out, key);
    wal__json_out_compact(out, json);
}

void wal__json_out_optional(struct wal__json_out *out, const char *key, struct wal__json_span json)
{
    if (json.size > 0) {
        wal__json_out_member(out, key, json);
    }
}

void wal__json_out_member_str(struct wal__json_out *out, const char *key, const char *text)
{
    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    put_cstring(out, text);
    wal__json_out_string_end(out);
}

void wal__json_out_member_text(struct wal__json_out *out, const char *key,
                               struct wal__json_span text)
{
    wal__json_out_key(out, key);
    wal__json_out_text(out, text);
}

void wal__json_out_member_bool(struct wal__json_out *out, const char *key, bool value)
{
    wal__json_out_key(out, key);
    wal__json_out_literal(out, value ? "true" : "false");
}

void wal__json_out_member_int(struct wal__json_out *out, const char *key, int64_t number)
{
    wal__json_out_key(out, key);
    wal__json_out_number(out, number);
}

void wal__json_out_member_count(struct wal__json_out *out, const char *key, uint64_t count)
{
    wal__json_out_key(out, key);
    wal__json_out_count(out, count);
}

void wal__json_out_newline(struct wal__json_out *out)
{
    wal__json_out_bytes(out, "\n", 1);
    out->has_value = false;
}

void wal__json_out_line(struct wal__json_out *out, struct wal__json_span json)
{
    wal__json_out_value(out, json);
    wal__json_out_newline(out);
}

void wal__json_out_close_line(struct wal__json_out *out)
{
    wal__json_out_close(out, '}');
    wal__json_out_newline(out);
}

void wal__json_out_member_open(struct wal__json_out *out, const char *key, char bracket)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, bracket);
}

static const struct wal__json_override *find_override(const struct wal__json_override *overrides,
                                                      size_t count, struct wal__json_span key)
{
    for (size_t i = 0; i < count; i++) {
        if (wal__json_string_is(key, overrides[i].key)) {
            return &overrides[i];
        }
    }
    return NULL;
}

void wal__json_out_members(struct wal__json_out *out, struct wal__json_span object)
{
    struct wal__json_scan scan;
    struct wal__json_token key;
    struct wal__json_token value;
    enum wal__json_status status;

    wal__json_scan_init(&scan, object.data, object.size);
    status = wal__json_scan_next(&scan, &key);
    if (status == WAL__JSON_OK && key.kind != WAL__JSON_OBJECT) {
        return;
    }
    while (status == WAL__JSON_OK && (status = wal__json_scan_next(&scan, &key)) == WAL__JSON_OK &&
           key.kind == WAL__JSON_KEY) {
        status = wal__json_scan_skip(&scan, &value);
        if (status == WAL__JSON_OK) {
            json_out_key_span(out, key.span);
            wal__json_out_compact(out, value.span);
        }
    }
    out->has_failed |= status != WAL__JSON_OK;
}

void wal__json_out_overridden(struct wal__json_out *out, struct wal__json_span object,
                              const struct wal__json_override *overrides, size_t count)
{
    struct wal__json_scan scan;
    struct wal__json_token key;
    struct wal__json_token value;
    enum wal__json_status status;

    wal__json_scan_init(&scan, object.data, object.size);
    status = wal__json_scan_next(&scan, &key);
    if (status == WAL__JSON_OK && key.kind != WAL__JSON_OBJECT) {
        wal__json_out_value(out, object);
        return;
    }
    wal__json_out_open(out, '{');
    while (status == WAL__JSON_OK && (status = wal__json_scan_next(&scan, &key)) == WAL__JSON_OK &&
           key.kind == WAL__JSON_KEY) {
        const struct wal__json_override *override = find_override(overrides, count, key.span);
        status = wal__json_scan_skip(&scan, &value);
        if (status != WAL__JSON_OK || (override != NULL && override->json.size == 0)) {
            continue;
        }
        json_out_key_span(out, key.span);
        wal__json_out_compact(out, override != NULL ? override->json : value.span);
    }
    wal__json_out_close(out, '}');
    out->has_failed |= status != WAL__JSON_OK;
}
