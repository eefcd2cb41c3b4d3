/*
 * json.c - write JSON and plain text, and session entries to and from lines of JSON (json.h).
 *
 * Invariant: only cli_json_raw writes bytes that were not checked here; its callers have scanned
 * them. Reading an entry allocates only for strings with escapes.
 */
#include "tools/cli/json.h"

#include <stdlib.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "convert/source/source_lines.h"
#include "engine/base/queued.h"
#include "engine/base/system.h"
#include "format/bytes/bytes.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

#define YEARS_BEGIN_MS INT64_C(-62167219200000) /* of the year 0 */
#define YEARS_END_MS   INT64_C(253402300800000) /* after the year 9999 */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool put_to_file(void *ctx, const void *data, size_t size)
{
    return wal__system_put(ctx, data, size);
}

void cli_json_init(struct wal__json_out *json, FILE *file)
{
    *json = (struct wal__json_out){.put = put_to_file, .ctx = file};
}

void cli_json_begin(struct wal__json_out *json)
{
    cli_json_init(json, stdout);
    wal__json_out_open(json, '{');
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
        if (step > 0 && !utf8_is_control(data + at) && data[at] != '"' && data[at] != '\\') {
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

/* The bytes of a character that begins so, if it may be a control character beyond ASCII; else 0.
 * Most characters need no more than this. */
static size_t size_of_control(uint8_t byte)
{
    return byte == 0xE2 ? 3 : byte == 0xC2 || byte == 0xD8 ? 2 : 0;
}

static void put_character(struct wal__json_out *json, const uint8_t *data, size_t size)
{
    if (utf8_size(data, size) == size && utf8_is_control(data)) {
        put_escaped(json, utf8_decode(data));
    } else {
        wal__json_out_bytes(json, data, size);
    }
}

/* Completes a character that the last piece ended in. Returns the number of bytes taken. */
static size_t finish_held(struct cli_json_pieces *pieces, const uint8_t *data, size_t size)
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

void cli_json_raw_continue(struct cli_json_pieces *pieces, struct wal_slice text)
{
    const uint8_t *data = text.data;
    size_t pending = 0; /* start of the bytes not written yet */
    size_t at = 0;

    if (pieces->held_count > 0) {
        pending = at = finish_held(pieces, data, text.size);
    }
    /* Raw newlines in JSON are white space between tokens; other control characters are in strings,
     * where an escape is the same value. */
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

void cli_time_text(int64_t unix_ms, char text[CLI_TIME_SIZE])
{
    bool is_known = unix_ms >= YEARS_BEGIN_MS && unix_ms < YEARS_END_MS;
    uint8_t quoted[WAL__MODEL_TIME_SIZE];

    (void)wal__model_time_write(is_known ? unix_ms : 0, quoted);
    memcpy(text, quoted + 1, CLI_TIME_SIZE - 1);
    text[CLI_TIME_SIZE - 1] = '\0';
}

void cli_json_time(struct wal__json_out *json, int64_t unix_ms)
{
    char text[CLI_TIME_SIZE];

    cli_time_text(unix_ms, text);
    wal__json_out_string_begin(json);
    wal__json_out_bytes(json, text, strlen(text));
    wal__json_out_string_end(json);
}

void cli_json_member_text(struct wal__json_out *json, const char *key, struct wal_slice text)
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

void cli_json_counts(struct wal__json_out *json, const struct cli_count *counts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wal__json_out_member_count(json, counts[i].key, counts[i].value);
    }
}

void cli_json_loss(struct wal__json_out *json, const char *what, uint64_t count)
{
    if (count > 0) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "what", cli_slice(what));
        wal__json_out_member_count(json, "count", count);
        wal__json_out_close(json, '}');
    }
}

void cli_json_member_time(struct wal__json_out *json, const char *key, int64_t unix_ms)
{
    wal__json_out_key(json, key);
    cli_json_time(json, unix_ms);
}

size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns, bool lines)
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
        step = step == 0
                   ? 0
                   : cell_print_char(file, data + at, text.size - at, room - printed, &printed);
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

bool cli_is_plain_word(struct wal_slice text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._/~+@:,=-";
    const char *at = text.data;

    /* zsh replaces a word that begins with '=' by the path of a command. */
    if (text.size == 0 || at[0] == '-' || at[0] == '~' || at[0] == '=') {
        return false;
    }
    for (uint64_t i = 0; i < text.size; i++) {
        if (at[i] == '\0' || strchr(plain, at[i]) == NULL) {
            return false;
        }
    }
    return true;
}

void cli_put_word(FILE *file, struct wal_slice text)
{
    const char *at = text.data;

    if (cli_is_plain_word(text)) {
        fwrite(at, 1, (size_t)text.size, file);
        return;
    }
    putc('\'', file);
    for (uint64_t i = 0; i < text.size; i++) {
        /* Backslashes are outside of the quotes: fish takes one inside as an escape of what
         * follows, sh does not. */
        if (at[i] == '\'' || at[i] == '\\') {
            fprintf(file, "'\\%c'", at[i]);
        } else {
            putc(at[i], file);
        }
    }
    putc('\'', file);
}

char *cli_command(const struct cli *cli, const char *verb, const char *const words[], size_t count)
{
    bool has_option = false;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    fputs("agentwal ", file);
    if (cli != NULL && !cli->store_is_default) {
        fputs("--store ", file);
        cli_put_word(file, cli_slice(cli_keep_absolute(cli->store_path)));
        putc(' ', file);
    }
    fputs(verb, file);
    for (size_t i = 0; i < count; i++) {
        has_option = has_option || words[i][0] == '-';
    }
    fputs(has_option ? " --" : "", file);
    for (size_t i = 0; i < count; i++) {
        putc(' ', file);
        cli_put_word(file, cli_slice(words[i]));
    }
    (void)fclose(file);
    return text;
}

void cli_print_command(const struct cli *cli, const char *label, const char *verb,
                       const char *const words[], size_t count)
{
    char *command = cli_command(cli, verb, words, count);

    fputs(label, stdout);
    cli_print_name(stdout, cli_slice(command));
    putchar('\n');
    free(command);
}

void cli_print_cell(struct wal_slice name, size_t columns)
{
    size_t printed = cli_print_name(stdout, name);

    printf("%*s", printed < columns ? (int)(columns - printed) : 0, "");
}

/* --- entries ------------------------------------------------------------ */

enum { KEY_ID, KEY_PARENT, KEY_TYPE, KEY_TIME, KEY_RUN, KEY_PAYLOAD, KEY_META, KEY_COUNT };

static const char *const keys[KEY_COUNT] = {
    [KEY_ID] = "id",     [KEY_PARENT] = "parentId", [KEY_TYPE] = "type", [KEY_TIME] = "timestamp",
    [KEY_RUN] = "runId", [KEY_PAYLOAD] = "payload", [KEY_META] = "meta",
};

struct wal_slice cli_unescape(const struct wal__json_token *token, struct cli_texts *texts)
{
    struct wal_slice text = {NULL, 0};
    uint8_t *buffer;
    size_t size;

    if (token->kind != WAL__JSON_STRING) {
        return text;
    }
    if (!token->has_escapes) {
        text.data = token->span.data + 1;
        text.size = token->span.size - 2;
        return text;
    }
    buffer = cli_alloc(token->span.size);
    if (wal__json_unescape(token->span, buffer, token->span.size, &size, NULL) != WAL__JSON_OK) {
        free(buffer);
        return text;
    }
    *CLI_ADD(texts) = (char *)buffer;
    text.data = buffer;
    text.size = size;
    return text;
}

bool cli_entry_is_repeated(struct wal_session *session, const struct wal_entry *entry)
{
    struct wal__json_token mark;

    return (entry->meta.size > 0 &&
            wal__json_find(entry->meta.data, (size_t)entry->meta.size, "replay", &mark) ==
                WAL__JSON_OK &&
            mark.kind == WAL__JSON_TRUE) ||
           wal__queued_is_repeated(session, entry);
}

struct wal_slice cli_part_text(const struct wal__message_part *part,
                               const struct wal__json_token *string, struct cli_texts *texts)
{
    struct wal_slice text = {NULL, 0};
    uint8_t *buffer;

    if (wal__message_is_plain(part, string) || string->kind != WAL__JSON_STRING) {
        return cli_unescape(string, texts);
    }
    buffer = cli_alloc(string->span.size + 1);
    *CLI_ADD(texts) = (char *)buffer;
    text.data = buffer;
    text.size = wal__message_decode(part, string, buffer);
    return text;
}

/* Returns a description of the first faulty member, or NULL. */
static const char *member_problem(const struct wal__json_member *members)
{
    static const size_t strings[] = {KEY_ID, KEY_TYPE, KEY_TIME, KEY_RUN};
    static const char *const problems[] = {"\"id\" is not a string", "\"type\" is not a string",
                                           "\"timestamp\" is not a string",
                                           "\"runId\" is not a string"};

    for (size_t i = 0; i < 4; i++) {
        enum wal__json_kind kind = members[strings[i]].value.kind;
        if (kind != WAL__JSON_STRING && kind != WAL__JSON_NONE) {
            return problems[i];
        }
    }
    if (members[KEY_TYPE].value.kind == WAL__JSON_NONE) {
        return "\"type\" is missing";
    }
    if (members[KEY_PAYLOAD].value.kind == WAL__JSON_NONE) {
        return "\"payload\" is missing";
    }
    if (members[KEY_ID].value.kind == WAL__JSON_STRING && members[KEY_ID].value.span.size == 2) {
        return "\"id\" is empty";
    }
    if (members[KEY_PARENT].value.kind == WAL__JSON_STRING
            ? members[KEY_PARENT].value.span.size == 2
            : members[KEY_PARENT].value.kind != WAL__JSON_NULL &&
                  members[KEY_PARENT].value.kind != WAL__JSON_NONE) {
        return "\"parentId\" is neither an id nor null";
    }
    if (members[KEY_META].value.kind != WAL__JSON_OBJECT &&
        members[KEY_META].value.kind != WAL__JSON_NONE) {
        return "\"meta\" is not an object";
    }
    return NULL;
}

static struct wal_slice value_slice(const struct wal__json_member *member)
{
    struct wal_slice slice = {NULL, 0};

    if (member->value.kind != WAL__JSON_NONE) {
        slice.data = member->value.span.data;
        slice.size = member->value.span.size;
    }
    return slice;
}

/* Returns KEY_COUNT for an unknown key. */
static size_t find_key(struct wal__json_span name)
{
    size_t key = 0;

    while (key < KEY_COUNT && !wal__json_string_is(name, keys[key])) {
        key++;
    }
    return key;
}

/* Returns true if every member of the object is a known key and occurs once; otherwise `why` names
 * the member. The object must be valid JSON. */
static bool check_members(const void *line, size_t size, char *why, size_t why_size)
{
    bool seen[KEY_COUNT] = {false};
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_scan_init(&scan, line, size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        size_t key;
        if (token.kind != WAL__JSON_KEY || token.depth != 1) {
            continue;
        }
        key = find_key(token.span);
        if (key == KEY_COUNT || seen[key]) {
            snprintf(why, why_size, "the member %.*s %s",
                     token.span.size < 80 ? (int)token.span.size : 80,
                     (const char *)token.span.data,
                     key == KEY_COUNT ? "is not a member of an entry" : "occurs twice");
            return false;
        }
        seen[key] = true;
    }
    return true;
}

bool cli_entry_read(const void *line, size_t size, struct cli_texts *texts, struct wal_entry *entry,
                    char *why, size_t why_size)
{
    struct wal__json_member members[KEY_COUNT];
    enum wal__json_status status;
    const char *problem;
    size_t offset = 0;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = keys[i]};
    }
    status = wal__json_members(line, size, members, KEY_COUNT, &offset);
    if (status == WAL__JSON_NOT_OBJECT) {
        snprintf(why, why_size, "not a JSON object");
        return false;
    }
    if (status != WAL__JSON_OK) {
        snprintf(why, why_size, "not JSON: %s at byte %zu", wal__json_status_text(status), offset);
        return false;
    }
    if (!check_members(line, size, why, why_size)) {
        return false;
    }
    problem = member_problem(members);
    if (problem != NULL) {
        snprintf(why, why_size, "%s", problem);
        return false;
    }
    *entry = (struct wal_entry){
        .struct_size = sizeof(*entry),
        .id = cli_unescape(&members[KEY_ID].value, texts),
        .parent_id = cli_unescape(&members[KEY_PARENT].value, texts),
        .type = cli_unescape(&members[KEY_TYPE].value, texts),
        .timestamp = cli_unescape(&members[KEY_TIME].value, texts),
        .run_id = cli_unescape(&members[KEY_RUN].value, texts),
        .payload = value_slice(&members[KEY_PAYLOAD]),
        .meta = value_slice(&members[KEY_META]),
    };
    if (members[KEY_PARENT].value.kind == WAL__JSON_NULL) {
        entry->flags = WAL_ENTRY_ROOT;
    }
    return true;
}

char *cli_entry_detach(struct wal_entry *entry)
{
    char *payload = NULL;

    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        payload = cli_copy_slice(entry->payload);
        entry->payload.data = payload;
    }
    return payload;
}

bool cli_entry_json(const struct wal_entry *entry, struct wal__json_span *value)
{
    struct wal__json_span text = wal__line_text(entry->payload.data, entry->payload.size);
    struct wal__json_scan scan;
    struct wal__json_token token, end;

    wal__json_scan_init(&scan, text.data, text.size);
    if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK ||
        wal__json_scan_next(&scan, &end) != WAL__JSON_OK || end.kind != WAL__JSON_END) {
        return false;
    }
    *value = token.span;
    return true;
}

static void write_meta(struct wal__json_out *json, struct wal_slice meta, bool is_damaged)
{
    const char *data = meta.data;
    size_t size = meta.size;

    if (size == 0 && !is_damaged) {
        return;
    }
    wal__json_out_key(json, "meta");
    if (!is_damaged) {
        cli_json_raw(json, meta);
        return;
    }
    wal__json_out_open(json, '{');
    /* Copies the members between the braces; white space may surround them. */
    while (size > 0 && data[size - 1] != '}') {
        size--;
    }
    while (size > 0 && *data != '{') {
        data++;
        size--;
    }
    for (size_t i = 1; i + 1 < size; i++) {
        struct wal_slice members = {data + 1, size - 2};
        if (strchr(" \t\r\n", data[i]) == NULL) {
            cli_json_raw(json, members);
            break;
        }
    }
    wal__json_out_member_bool(json, "damaged", true);
    wal__json_out_close(json, '}');
}

static bool write_piece(void *ctx, const void *data, size_t size)
{
    const struct wal_slice piece = {data, size};

    cli_json_raw_continue(ctx, piece);
    return !cli_output_failed();
}

static enum wal_status write_payload(struct wal__json_out *json, struct wal_store *store,
                                     const struct wal_entry *entry, bool *is_damaged,
                                     struct wal_error *error)
{
    struct cli_json_pieces pieces = {.out = json};
    struct wal__json_span value = {NULL, 0};
    struct wal_slice text;

    wal__json_out_key(json, "payload");
    *is_damaged = false;
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
        wal__json_out_value(json, value);
        return wal__entry_payload_visit(NULL, store, entry, write_piece, &pieces, error);
    }
    if (cli_entry_json(entry, &value)) {
        text.data = value.data;
        text.size = value.size;
        cli_json_raw(json, text);
        return WAL_OK;
    }
    cli_json_text(json, entry->payload);
    *is_damaged = !wal__line_is_blank(entry->payload.data, (size_t)entry->payload.size);
    return WAL_OK;
}

static enum wal_status write_entry(struct wal__json_out *json, struct wal_store *store,
                                   const struct wal_entry *entry, struct wal_error *error)
{
    enum wal_status status;
    bool is_damaged;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "id", entry->id);
    cli_json_member_text_or_null(json, "parentId", entry->parent_id);
    cli_json_member_text(json, "type", entry->type);
    cli_json_member_text(json, "timestamp", entry->timestamp);
    if (entry->run_id.size > 0) {
        cli_json_member_text(json, "runId", entry->run_id);
    }
    status = write_payload(json, store, entry, &is_damaged, error);
    write_meta(json, entry->meta, is_damaged);
    wal__json_out_close(json, '}');
    return status;
}

/* Writes an entry as a value, and the end of its line. */
static enum wal_status write_loaded(struct wal__json_out *json, struct wal_store *store,
                                    const struct wal_entry *entry, bool ends_line,
                                    struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    enum wal_status status;
    char *memory = NULL;

    status = (entry->flags & WAL_ENTRY_LINE) != 0
                 ? wal__entry_payload_load(NULL, store, &loaded, &memory, error)
                 : wal__entry_payload_verify(NULL, store, entry, error);
    if (status == WAL_OK) {
        status = write_entry(json, store, &loaded, error);
        if (ends_line) {
            wal__json_out_newline(json);
        }
    }
    free(memory);
    return status;
}

enum wal_status cli_entry_write(struct wal__json_out *json, struct wal_store *store,
                                const struct wal_entry *entry, struct wal_error *error)
{
    return write_loaded(json, store, entry, true, error);
}

enum wal_status cli_entry_write_value(struct wal__json_out *json, struct wal_store *store,
                                      const struct wal_entry *entry, struct wal_error *error)
{
    return write_loaded(json, store, entry, false, error);
}
