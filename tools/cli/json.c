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

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Bytes of the UTF-8 sequence at data, or 0 when it is ill-formed. */
static size_t sequence_size(const uint8_t *data, size_t size)
{
    uint8_t lead = data[0];
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t count;

    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    count = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0xE0) {
        low = 0xA0;
    } else if (lead == 0xED) {
        high = 0x9F;
    } else if (lead == 0xF0) {
        low = 0x90;
    } else if (lead == 0xF4) {
        high = 0x8F;
    }
    if (size < count || data[1] < low || data[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((data[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return count;
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

static void put_escaped(FILE *file, uint8_t byte)
{
    static const char names[] = "btn_fr";

    if (byte == '"' || byte == '\\') {
        putc_unlocked('\\', file);
        putc_unlocked(byte, file);
    } else if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        putc_unlocked('\\', file);
        putc_unlocked(names[byte - '\b'], file);
    } else {
        fprintf(file, "\\u%04x", byte);
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
        step = sequence_size(data + at, text.size - at);
        if (step > 0 && data[at] >= 0x20 && data[at] != '"' &&
            data[at] != '\\') {
            at += step;
            continue;
        }
        fwrite(data + pending, 1, at - pending, json->file);
        if (step == 0) {
            fputs(replacement, json->file);
        } else {
            put_escaped(json->file, data[at]);
        }
        at++;
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
        step = sequence_size(data + at, text.size - at);
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
    /* Raw newlines in JSON are white space between tokens. */
    for (size_t at = 0; at < text.size; at++) {
        if (data[at] == '\n' || data[at] == '\r') {
            fwrite(data + pending, 1, at - pending, json->file);
            pending = at + 1;
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

/* `data` is a complete UTF-8 sequence. */
static bool is_control(const uint8_t *data)
{
    return data[0] < 0x20 || data[0] == 0x7F ||
           (data[0] == 0xC2 && data[1] < 0xA0);
}

size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns,
                      bool lines)
{
    const uint8_t *data = text.data;
    size_t printed = 0;
    size_t step;

    for (size_t at = 0; at<text.size; at += step> 0 ? step : 1) {
        if (columns > 0 && printed == columns) {
            break;
        }
        step = sequence_size(data + at, text.size - at);
        if (step == 0) {
            fputs(replacement, file);
        } else if (lines && (data[at] == '\n' || data[at] == '\t')) {
            putc_unlocked(data[at], file);
        } else if (is_control(data + at)) {
            putc_unlocked(' ', file);
        } else {
            fwrite(data + at, 1, step, file);
        }
        printed++;
    }
    return printed;
}

size_t cli_print_name(FILE *file, struct wal_slice name)
{
    const uint8_t *data = name.data;
    size_t printed = 0;
    size_t step;

    for (size_t at = 0; at < name.size; at += step) {
        step = sequence_size(data + at, name.size - at);
        if (step > 0 && !is_control(data + at)) {
            fwrite(data + at, 1, step, file);
            printed++;
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
