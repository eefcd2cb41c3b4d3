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

/* Escape control characters in raw JSON too. */
static bool is_for_terminal;

void cli_json_set_terminal(bool is_terminal)
{
    is_for_terminal = is_terminal;
}

void cli_json_init(struct cli_json *json, FILE *file)
{
    json->file = file;
    json->separate = false;
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

    cli_json_key(json, "path");
    cli_json_text(json, path);
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

void cli_json_raw_continue(struct cli_json *json, struct wal_slice text)
{
    const char *data = text.data;
    size_t pending = 0;

    if (text.size == 0) {
        return; /* data may be NULL */
    }
    /* Raw newlines in JSON are white space between tokens; characters that
     * are not ASCII are in strings. */
    for (size_t at = 0; at < text.size; at++) {
        const uint8_t *byte = (const uint8_t *)data + at;
        size_t step = 0;
        if (*byte >= 0x7F && is_for_terminal) {
            step = utf8_size(byte, text.size - at);
            step = step > 0 && utf8_is_control(byte) ? step : 0;
        } else if (*byte == '\n' || *byte == '\r') {
            step = 1;
        }
        if (step > 0) {
            fwrite(data + pending, 1, at - pending, json->file);
            pending = at + step;
        }
        if (step > 0 && *byte >= 0x7F) {
            put_escaped(json->file, utf8_decode(byte));
        }
    }
    fwrite(data + pending, 1, text.size - pending, json->file);
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
