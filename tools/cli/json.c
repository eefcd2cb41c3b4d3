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

#include "format/json/json_scan.h"
#include "tools/terminal/cell.h"
#include "tools/terminal/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

void cli_json_init(struct cli_json *json, FILE *file)
{
    *json = (struct cli_json){.file = file};
}

static void begin_value(struct cli_json *json)
{
    if (json->separate) {
        putc_unlocked(',', json->file);
    }
    json->separate = true;
}

void cli_json_open(struct cli_json *json, char bracket)
{
    begin_value(json);
    putc_unlocked(bracket, json->file);
    json->separate = false;
}

void cli_json_close(struct cli_json *json, char bracket)
{
    putc_unlocked(bracket, json->file);
    json->separate = true;
}

void cli_json_key(struct cli_json *json, const char *key)
{
    begin_value(json);
    fprintf(json->file, "\"%s\":", key);
    json->separate = false;
}

/* All of these characters have at most four hexadecimal digits. */
static void put_escaped(FILE *file, uint32_t code)
{
    static const char names[] = "btn_fr";

    if (code == '"' || code == '\\') {
        putc_unlocked('\\', file);
        putc_unlocked((int)code, file);
    } else if (code >= '\b' && code <= '\r' && code != '\v') {
        putc_unlocked('\\', file);
        putc_unlocked(names[code - '\b'], file);
    } else {
        fprintf(file, "\\u%04x", code);
    }
}

void cli_json_text(struct cli_json *json, struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t pending = 0; /* start of the bytes not written yet */
    size_t at = 0;
    size_t step;

    begin_value(json);
    putc_unlocked('"', json->file);
    while (at < text.size) {
        step = utf8_size(data + at, text.size - at);
        if (step > 0 && !utf8_is_control(data + at) && data[at] != '"' &&
            data[at] != '\\') {
            at += step;
            continue;
        }
        fwrite(data + pending, 1, at - pending, json->file);
        if (step == 0) {
            fputs(replacement, json->file);
            step = 1;
        } else {
            put_escaped(json->file, utf8_decode(data + at));
        }
        at += step;
        pending = at;
    }
    if (at > pending) {
        fwrite(data + pending, 1, at - pending, json->file);
    }
    putc_unlocked('"', json->file);
}

void cli_json_key_text(struct cli_json *json, struct wal_slice key)
{
    cli_json_text(json, key);
    putc_unlocked(':', json->file);
    json->separate = false;
}

void cli_json_text_or_null(struct cli_json *json, struct wal_slice text)
{
    if (text.size > 0) {
        cli_json_text(json, text);
        return;
    }
    begin_value(json);
    fputs("null", json->file);
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

void cli_json_path(struct cli_json *json, struct wal_slice path)
{
    const uint8_t *data = path.data;

    cli_json_member_text(json, "path", path);
    if (cli_is_utf8(path)) {
        return;
    }
    cli_json_key(json, "pathHex");
    begin_value(json);
    putc_unlocked('"', json->file);
    for (size_t i = 0; i < path.size; i++) {
        fprintf(json->file, "%02x", data[i]);
    }
    putc_unlocked('"', json->file);
}

void cli_json_raw(struct cli_json *json, struct wal_slice text)
{
    begin_value(json);
    cli_json_raw_continue(json, text);
}

/* The bytes of a character that begins so, if it may be a control character
 * beyond ASCII; else 0. Most characters need no more than this. */
static size_t size_of_control(uint8_t byte)
{
    return byte == 0xE2 ? 3 : byte == 0xC2 || byte == 0xD8 ? 2 : 0;
}

static void put_character(FILE *file, const uint8_t *data, size_t size)
{
    if (utf8_size(data, size) == size && utf8_is_control(data)) {
        put_escaped(file, utf8_decode(data));
    } else {
        fwrite(data, 1, size, file);
    }
}

/* Completes a character that the last piece ended in. Returns the number of
 * bytes taken. */
static size_t finish_held(struct cli_json *json, const uint8_t *data,
                          size_t size)
{
    size_t whole = size_of_control(json->held[0]);
    size_t taken = 0;

    while (json->held_count < whole && taken < size) {
        json->held[json->held_count++] = data[taken++];
    }
    if (json->held_count == whole) {
        put_character(json->file, json->held, whole);
        json->held_count = 0;
    }
    return taken;
}

void cli_json_raw_continue(struct cli_json *json, struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t pending = 0; /* start of the bytes not written yet */
    size_t at = 0;

    if (json->held_count > 0) {
        pending = at = finish_held(json, data, text.size);
    }
    /* Raw newlines in JSON are white space between tokens; other control
     * characters are in strings, where an escape is the same value. */
    while (at < text.size) {
        size_t size = size_of_control(data[at]);

        if (size == 0 && data[at] != 0x7F &&
            (json->keeps_breaks || (data[at] != '\n' && data[at] != '\r'))) {
            at++;
            continue;
        }
        fwrite(data + pending, 1, at - pending, json->file);
        if (size > text.size - at) {
            json->held_count = text.size - at;
            memcpy(json->held, data + at, json->held_count);
            return;
        }
        if (size > 0 || data[at] == 0x7F) {
            put_character(json->file, data + at, size > 0 ? size : 1);
        }
        at += size > 0 ? size : 1;
        pending = at;
    }
    if (at > pending) {
        fwrite(data + pending, 1, at - pending, json->file);
    }
}

void cli_json_number(struct cli_json *json, uint64_t number)
{
    begin_value(json);
    fprintf(json->file, "%llu", (unsigned long long)number);
}

void cli_json_bool(struct cli_json *json, bool value)
{
    begin_value(json);
    fputs(value ? "true" : "false", json->file);
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

void cli_json_time(struct cli_json *json, int64_t unix_ms)
{
    char text[64];

    cli_time_text(unix_ms, text, sizeof(text));
    begin_value(json);
    fprintf(json->file, "\"%s\"", text);
}

void cli_json_member_open(struct cli_json *json, const char *key, char bracket)
{
    cli_json_key(json, key);
    cli_json_open(json, bracket);
}

void cli_json_member_text(struct cli_json *json, const char *key,
                          struct wal_slice text)
{
    cli_json_key(json, key);
    cli_json_text(json, text);
}

void cli_json_member_text_or_null(struct cli_json *json, const char *key,
                                  struct wal_slice text)
{
    cli_json_key(json, key);
    cli_json_text_or_null(json, text);
}

void cli_json_member_number(struct cli_json *json, const char *key,
                            uint64_t number)
{
    cli_json_key(json, key);
    cli_json_number(json, number);
}

void cli_json_member_bool(struct cli_json *json, const char *key, bool value)
{
    cli_json_key(json, key);
    cli_json_bool(json, value);
}

void cli_json_member_time(struct cli_json *json, const char *key,
                          int64_t unix_ms)
{
    cli_json_key(json, key);
    cli_json_time(json, unix_ms);
}

void cli_json_end_line(struct cli_json *json)
{
    putc_unlocked('\n', json->file);
    json->separate = false;
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
