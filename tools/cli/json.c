/*
 * json.c - write JSON and plain text.
 *
 * Invariant: only cli_json_raw writes bytes that were not checked here; its
 * callers have scanned them.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/json.h"

#include <string.h>
#include <time.h>

#include "format/bytes/fmt.h"
#include "format/json/json_scan.h"
#include "tools/terminal/cell.h"
#include "tools/terminal/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool put_to_file(void *ctx, const void *data, size_t size)
{
    return fwrite_unlocked(data, 1, size, ctx) == size;
}

void cli_json_init(struct wal__json_out *json, FILE *file)
{
    *json = (struct wal__json_out){.put = put_to_file, .ctx = file};
}

/* All of these characters have at most four hexadecimal digits. */
static void put_escaped(struct wal__json_out *json, uint32_t code)
{
    static const char names[] = "btn_fr";
    char text[8] = {'\\', (char)code};
    size_t size = 2;

    if (code >= '\b' && code <= '\r' && code != '\v') {
        text[1] = names[code - '\b'];
    } else if (code != '"' && code != '\\') {
        size = (size_t)snprintf(text, sizeof(text), "\\u%04x", code);
    }
    wal__json_out_bytes(json, text, size);
}

void cli_json_text(struct wal__json_out *json, struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t pending = 0; /* start of the bytes not written yet */
    size_t at = 0;
    size_t step;

    wal__json_out_string_begin(json);
    while (at < text.size) {
        step = utf8_size(data + at, text.size - at);
        if (step > 0 && !utf8_is_control(data + at) && data[at] != '"' &&
            data[at] != '\\') {
            at += step;
            continue;
        }
        wal__json_out_bytes(json, data + pending, at - pending);
        if (step == 0) {
            wal__json_out_bytes(json, replacement, sizeof(replacement) - 1);
            step = 1;
        } else {
            put_escaped(json, utf8_decode(data + at));
        }
        at += step;
        pending = at;
    }
    if (at > pending) {
        wal__json_out_bytes(json, data + pending, at - pending);
    }
    wal__json_out_string_end(json);
}

void cli_json_key_text(struct wal__json_out *json, struct wal_slice key)
{
    cli_json_text(json, key);
    wal__json_out_bytes(json, ":", 1);
    json->has_value = false;
}

void cli_json_text_or_null(struct wal__json_out *json, struct wal_slice text)
{
    if (text.size > 0) {
        cli_json_text(json, text);
    } else {
        wal__json_out_literal(json, "null");
    }
}

bool cli_is_utf8(struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t step = 1;

    for (size_t at = 0; at < text.size && step > 0; at += step) {
        step = utf8_size(data + at, text.size - at);
    }
    return step > 0;
}

void cli_json_path(struct wal__json_out *json, struct wal_slice path)
{
    const uint8_t *data = path.data;

    cli_json_member_text(json, "path", path);
    if (cli_is_utf8(path)) {
        return;
    }
    wal__json_out_key(json, "pathHex");
    wal__json_out_string_begin(json);
    for (size_t i = 0; i < path.size; i++) {
        char digits[3];

        wal__hex_write(&data[i], 1, digits);
        wal__json_out_bytes(json, digits, 2);
    }
    wal__json_out_string_end(json);
}

/* The bytes of a character that begins so, if it may be a control character
 * beyond ASCII; else 0. Most characters need no more than this. */
static size_t size_of_control(uint8_t byte)
{
    return byte == 0xE2 ? 3 : byte == 0xC2 || byte == 0xD8 ? 2 : 0;
}

static void put_character(struct wal__json_out *json, const uint8_t *data,
                          size_t size)
{
    if (utf8_size(data, size) == size && utf8_is_control(data)) {
        put_escaped(json, utf8_decode(data));
    } else {
        wal__json_out_bytes(json, data, size);
    }
}

/* Completes a character that the last piece ended in. Returns the number of
 * bytes taken. */
static size_t finish_held(struct cli_json_pieces *pieces, const uint8_t *data,
                          size_t size)
{
    size_t whole = size_of_control(pieces->held[0]);
    size_t taken = 0;

    while (pieces->held_count < whole && taken < size) {
        pieces->held[pieces->held_count++] = data[taken++];
    }
    if (pieces->held_count == whole) {
        put_character(pieces->out, pieces->held, whole);
        pieces->held_count = 0;
    }
    return taken;
}

void cli_json_raw_continue(struct cli_json_pieces *pieces,
                           struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t pending = 0; /* start of the bytes not written yet */
    size_t at = 0;

    if (pieces->held_count > 0) {
        pending = at = finish_held(pieces, data, text.size);
    }
    /* Raw newlines in JSON are white space between tokens; other control
     * characters are in strings, where an escape is the same value. */
    while (at < text.size) {
        size_t size = size_of_control(data[at]);

        if (size == 0 && data[at] != 0x7F &&
            (pieces->keeps_breaks || (data[at] != '\n' && data[at] != '\r'))) {
            at++;
            continue;
        }
        wal__json_out_bytes(pieces->out, data + pending, at - pending);
        if (size > text.size - at) {
            pieces->held_count = text.size - at;
            memcpy(pieces->held, data + at, pieces->held_count);
            return;
        }
        if (size > 0 || data[at] == 0x7F) {
            put_character(pieces->out, data + at, size > 0 ? size : 1);
        }
        at += size > 0 ? size : 1;
        pending = at;
    }
    if (at > pending) {
        wal__json_out_bytes(pieces->out, data + pending, at - pending);
    }
}

void cli_json_raw(struct wal__json_out *json, struct wal_slice text)
{
    struct cli_json_pieces pieces = {.out = json};

    wal__json_out_value(json, (struct wal__json_span){NULL, 0});
    cli_json_raw_continue(&pieces, text);
}

void cli_time_text(int64_t unix_ms, char *buffer, size_t size)
{
    int64_t seconds = unix_ms / 1000;
    int64_t milliseconds = unix_ms % 1000;
    struct tm tm;
    time_t time;

    if (milliseconds < 0) {
        milliseconds += 1000;
        seconds--;
    }
    time = (time_t)seconds;
    if (gmtime_r(&time, &tm) == NULL) {
        memset(&tm, 0, sizeof(tm));
    }
    snprintf(buffer, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (int)milliseconds);
}

void cli_json_time(struct wal__json_out *json, int64_t unix_ms)
{
    char text[64];

    cli_time_text(unix_ms, text, sizeof(text));
    wal__json_out_string_begin(json);
    wal__json_out_bytes(json, text, strlen(text));
    wal__json_out_string_end(json);
}

void cli_json_member_text(struct wal__json_out *json, const char *key,
                          struct wal_slice text)
{
    wal__json_out_key(json, key);
    cli_json_text(json, text);
}

void cli_json_member_text_or_null(struct wal__json_out *json, const char *key,
                                  struct wal_slice text)
{
    wal__json_out_key(json, key);
    cli_json_text_or_null(json, text);
}

void cli_json_member_time(struct wal__json_out *json, const char *key,
                          int64_t unix_ms)
{
    wal__json_out_key(json, key);
    cli_json_time(json, unix_ms);
}

size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns,
                      bool lines)
{
    const uint8_t *data = text.data;
    size_t room = columns > 0 ? columns : SIZE_MAX;
    size_t printed = 0;
    size_t step;

    for (size_t at = 0; at < text.size; at += step) {
        if (lines && (data[at] == '\n' || data[at] == '\t')) {
            putc_unlocked(data[at], file);
            printed++;
            step = 1;
            continue;
        }
        step = utf8_size(data + at, text.size - at);
        if (step == 0 && printed < room) {
            fputs(replacement, file);
            printed++;
            step = 1;
            continue;
        }
        step = step == 0 ? 0
                         : cell_print_char(file, data + at, text.size - at,
                                           room - printed, &printed);
        if (step == 0) {
            break;
        }
    }
    return printed;
}

size_t cli_print_name(FILE *file, struct wal_slice name)
{
    const uint8_t *data = name.data;
    size_t printed = 0;
    size_t step;

    for (size_t at = 0; at < name.size; at += step) {
        step = utf8_size(data + at, name.size - at);
        if (step > 0 && !utf8_is_control(data + at)) {
            fwrite(data + at, 1, step, file);
            printed += utf8_columns(data + at);
            continue;
        }
        step = step > 0 ? step : 1;
        for (size_t i = 0; i < step; i++) {
            fprintf(file, "\\x%02x", data[at + i]);
            printed += 4;
        }
    }
    return printed;
}
