/*
 * input_text.c - generation of ids and timestamps, validation of text that callers pass in. Any
 * thread.
 */
#include "engine/store/input_text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

void wal__text_uuid(const struct wal__env *env, char out[WAL__UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t now = (uint64_t)env->io->now_ms(env->io->ctx);
    uint8_t bytes[16];
    int at = 0;

    wal__random_bytes(env->random, env->io, bytes + 6, sizeof(bytes) - 6);
    for (int i = 0; i < 6; i++) {
        bytes[i] = (uint8_t)(now >> (40 - 8 * i));
    }
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x70);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = digits[bytes[i] >> 4];
        out[at++] = digits[bytes[i] & 15];
    }
    WAL__ASSERT(at == WAL__UUID_TEXT);
}

static void write_two_digits(char *out, uint32_t value)
{
    static const char digits[] = "00010203040506070809101112131415161718192021"
                                 "22232425262728293031323334353637383940414243"
                                 "44454647484950515253545556575859606162636465"
                                 "66676869707172737475767778798081828384858687"
                                 "888990919293949596979899";

    WAL__ASSERT(value < 100);
    memcpy(out, digits + (size_t)value * 2, 2);
}

/* Writes the date that is `days` after 1970-01-01. Years start in March and are counted in eras of
 * 400, so that a leap day is the last of its year. */
static void write_date(char *out, uint32_t days)
{
    uint32_t since = days + 719468; /* 0000-03-01 */
    uint32_t day = since % 146097;
    uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint32_t month;

    day -= 365 * year + year / 4 - year / 100;
    month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    WAL__ASSERT(month < 12 && day < 31);
    year += since / 146097 * 400 + (month >= 10);
    write_two_digits(out, year / 100 % 100);
    write_two_digits(out + 2, year % 100);
    write_two_digits(out + 5, month < 10 ? month + 3 : month - 9);
    write_two_digits(out + 8, day + 1);
}

/* gmtime() reads the time zone file; this does no I/O. */
static void write_time(uint64_t ms, char out[WAL__TIME_TEXT])
{
    const uint32_t day_ms = 86400000;
    uint32_t time = (uint32_t)(ms % day_ms);

    memcpy(out, "0000-00-00T00:00:00.000Z", WAL__TIME_TEXT);
    write_date(out, (uint32_t)(ms / day_ms));
    write_two_digits(out + 11, time / 3600000);
    write_two_digits(out + 14, time / 60000 % 60);
    write_two_digits(out + 17, time / 1000 % 60);
    write_two_digits(out + 20, time / 10 % 100);
    out[22] = (char)('0' + time % 10);
}

void wal__text_now(const struct wal__env *env, char out[WAL__TIME_TEXT])
{
    int64_t now = env->io->now_ms(env->io->ctx);
    uint64_t ms = now < 0 ? 0 : (uint64_t)now;

    if (env->times != NULL && wal__time_cache_get(env->times, ms, out)) {
        return;
    }
    write_time(ms, out);
    if (env->times != NULL) {
        wal__time_cache_put(env->times, ms, out);
    }
}

/* Fast path: most texts are short and ASCII. */
static bool is_ascii(struct wal__span text)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t bits = 0;
    size_t at = 0;

    for (; at + sizeof(bits) <= text.size; at += sizeof(bits)) {
        uint64_t word;

        memcpy(&word, text.data + at, sizeof(word));
        bits |= word;
    }
    for (; at < text.size; at++) {
        bits |= text.data[at];
    }
    return (bits & high) == 0;
}

/* Whether the bytes are UTF-8. */
static bool text_is_utf8(struct wal__span text)
{
    struct wal__json_span span = {text.data, text.size};
    size_t size;

    return is_ascii(text) || wal__json_escaped_size(span, &size) == WAL__JSON_OK;
}

bool wal__text_span(struct wal_slice slice, uint64_t max, struct wal__span *span)
{
    if (slice.size > max || (slice.size > 0 && slice.data == NULL)) {
        return false;
    }
    span->data = slice.data;
    span->size = (size_t)slice.size;
    return true;
}

enum wal_status wal__text_check(struct wal_slice slice, uint64_t max, const char *what,
                                struct wal__span *span, struct wal_error *error)
{
    if (slice.size == 0) {
        *span = (struct wal__span){slice.data, 0};
        return WAL_OK;
    }
    if (slice.data == NULL) {
        return wal__invalid(error, "the %s has a size but its data is NULL", what);
    }
    if (!wal__text_span(slice, max, span)) {
        return wal__fail(error, WAL_ETOOBIG, "the %s has %" PRIu64 " bytes; the limit is %" PRIu64,
                         what, slice.size, max);
    }
    if (!text_is_utf8(*span)) {
        return wal__invalid(error, "the %s is not UTF-8", what);
    }
    return WAL_OK;
}

bool wal__text_member(struct wal__span object, const char *name, uint8_t *out, size_t capacity,
                      struct wal__span *text)
{
    struct wal__json_token token;
    size_t size = 0;

    if (wal__json_find(object.data, object.size, name, &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_STRING ||
        wal__json_unescape(token.span, out, capacity, &size, NULL) != WAL__JSON_OK) {
        return false;
    }
    WAL__ASSERT(size <= capacity);
    text->data = out;
    text->size = size;
    return true;
}

enum wal_status wal__text_quote(struct wal__buf *out, struct wal__span text)
{
    struct wal__json_span span = {text.data, text.size};
    enum wal_status status;
    size_t size = 0;
    uint8_t *at;

    if (wal__json_escaped_size(span, &size) != WAL__JSON_OK) {
        return WAL_EINVAL;
    }
    status = wal__buf_reserve(out, size, &at);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__json_escape(span, at, size, &size) != WAL__JSON_OK) {
        return WAL_EINVAL;
    }
    out->size += size;
    WAL__ASSERT(out->size <= out->capacity);
    return WAL_OK;
}

/* The first byte of a valid JSON text that is not white space. */
static uint8_t first_byte(struct wal__span span)
{
    size_t at = 0;

    while (span.data[at] <= ' ') {
        at++;
        WAL__ASSERT(at < span.size);
    }
    return span.data[at];
}

enum wal_status wal__text_check_json(struct wal_slice slice, uint64_t max, bool object,
                                     const char *what, struct wal__span *span,
                                     struct wal_error *error)
{
    enum wal__json_status json;
    size_t offset = 0;

    if (slice.size > 0 && slice.data == NULL) {
        return wal__invalid(error, "the %s has a size but its data is NULL", what);
    }
    if (!wal__text_span(slice, max, span)) {
        return wal__fail(error, WAL_ETOOBIG, "the %s has %" PRIu64 " bytes; the limit is %" PRIu64,
                         what, slice.size, max);
    }
    json = wal__json_validate(span->data, span->size, &offset);
    if (json == WAL__JSON_OK && object && first_byte(*span) != '{') {
        json = WAL__JSON_NOT_OBJECT;
    }
    if (json != WAL__JSON_OK) {
        return wal__fail_at(error, WAL_EBADJSON, 0, NULL, offset,
                            "the %s is not valid JSON: %s at byte %zu", what,
                            wal__json_status_text(json), offset);
    }
    return WAL_OK;
}

bool wal__time_cache_get(struct wal__time_cache *cache, uint64_t ms, char out[WAL__TIME_TEXT])
{
    uint64_t words[WAL__TIME_CACHE_WORDS];
    uint64_t version = atomic_load_explicit(&cache->version, memory_order_acquire);

    static_assert(sizeof(words) == WAL__TIME_TEXT, "the words are the text");
    if (version % 2 != 0 || version == 0 ||
        atomic_load_explicit(&cache->ms, memory_order_acquire) != ms) {
        return false;
    }
    for (int i = 0; i < WAL__TIME_CACHE_WORDS; i++) {
        words[i] = atomic_load_explicit(&cache->words[i], memory_order_acquire);
    }
    memcpy(out, words, sizeof(words));
    return atomic_load_explicit(&cache->version, memory_order_relaxed) == version;
}

void wal__time_cache_put(struct wal__time_cache *cache, uint64_t ms,
                         const char text[WAL__TIME_TEXT])
{
    uint64_t words[WAL__TIME_CACHE_WORDS];
    uint64_t version = atomic_load_explicit(&cache->version, memory_order_relaxed);

    if (version % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&cache->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return;
    }
    memcpy(words, text, sizeof(words));
    atomic_store_explicit(&cache->ms, ms, memory_order_release);
    for (int i = 0; i < WAL__TIME_CACHE_WORDS; i++) {
        atomic_store_explicit(&cache->words[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&cache->version, version + 2, memory_order_release);
}
