/*
 * fuzz_import.c - imports any bytes as a session of any dialect, reads what cat prints of it, and
 * converts it to every other dialect.
 *
 * An input is the name of a dialect, a newline and a file's bytes; without the name of a dialect it
 * is recognised by its content. One that begins as a database of SQLite is a database of sessions.
 *
 * Checks that a repeated import adds nothing, that all lines of a view end with a newline and that,
 * when every line of the source is JSON, every line of a view is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/convert.h"
#include "agentwal/import.h"
#include "format/json/json_scan.h"
#include "format/payload/message_text.h"
#include "tests/fuzz/fuzz.h"

static const char database_magic[] = "SQLite format 3";
static char folder[] = "/dev/shm/agentwal-fuzz.XXXXXX";

/* --- reading ------------------------------------------------------------- */

static void decode(const struct wal__message_part *part, const struct wal__json_token *string)
{
    uint8_t *text = malloc(string->span.size + 1);

    check(text != NULL);
    if (string->kind == WAL__JSON_STRING) {
        check(wal__message_decode(part, string, text) <= string->span.size);
    }
    free(text);
}

static void decode_part(void *ctx, const struct wal__message_part *part)
{
    (void)ctx;
    decode(part, &part->text);
    decode(part, &part->value);
}

static void read_entries(struct wal_session *session)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor;
    struct wal__message message;

    check(wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK);
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        struct wal__json_span payload = {entry.payload.data, (size_t)entry.payload.size};
        if (wal__json_validate(payload.data, payload.size, NULL) == WAL__JSON_OK &&
            wal__message_find(payload, &message)) {
            wal__message_visit(&message, decode_part, NULL);
        }
    }
    wal_entry_cursor_close(cursor);
}

/* --- converting ---------------------------------------------------------- */

struct output {
    uint8_t *data;
    size_t size;
};

static int32_t put(void *ctx, const void *data, uint64_t size)
{
    struct output *output = ctx;

    output->data = realloc(output->data, output->size + (size_t)size + 1);
    check(output->data != NULL);
    if (size > 0) {
        memcpy(output->data + output->size, data, (size_t)size);
    }
    output->size += (size_t)size;
    return 0;
}

static void check_lines(const struct output *output)
{
    const uint8_t *at = output->data;
    const uint8_t *end = output->data + output->size;

    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        check(newline != NULL);
        check(wal__json_validate(at, (size_t)(newline - at), NULL) == WAL__JSON_OK);
        at = newline + 1;
    }
}

static void convert(struct wal_store *store, struct wal_session *session, bool is_sound)
{
    const char *name;

    for (uint32_t i = 0; (name = wal_view_dialect(i)) != NULL; i++) {
        struct output output = {NULL, 0};
        const struct wal_view_options options = {.struct_size = sizeof(options),
                                                 .dialect = {name, strlen(name)},
                                                 .put = put,
                                                 .ctx = &output};
        struct wal_view *view;

        check(wal_view_open(store, session, &options, &view, NULL) == WAL_OK);
        (void)!wal_view_flush(view, NULL, NULL);
        wal_view_close(view);
        if (is_sound && output.size > 0) {
            check_lines(&output);
        }
        free(output.data);
    }
}

/* --- importing ----------------------------------------------------------- */

static void remove_folder(void)
{
    (void)!rmdir(folder);
}

/* Returns the path of a file in the folder of this process. */
static struct wal_slice make_path(const char *name, char path[64])
{
    static bool has_folder;

    if (!has_folder) {
        check(mkdtemp(folder) != NULL);
        check(atexit(remove_folder) == 0);
        has_folder = true;
    }
    return (struct wal_slice){path, (size_t)snprintf(path, 64, "%s/%s", folder, name)};
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    check(fd >= 0);
    check(size == 0 || write(fd, data, size) == (ssize_t)size);
    check(close(fd) == 0);
}

/* Takes the dialect's name off the beginning of an input; empty if that has none. */
static struct wal_slice take_dialect(const uint8_t **data, size_t *size)
{
    const uint8_t *newline = *size > 0 ? memchr(*data, '\n', *size < 16 ? *size : 16) : NULL;
    size_t count = newline != NULL ? (size_t)(newline - *data) : 0;
    const char *name;

    for (uint32_t i = 0; count > 0 && (name = wal_import_dialect(i)) != NULL; i++) {
        if (strlen(name) == count && memcmp(name, *data, count) == 0) {
            *data += count + 1;
            *size -= count + 1;
            return (struct wal_slice){name, count};
        }
    }
    return (struct wal_slice){NULL, 0};
}

static bool has_json_only(const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t count = newline != NULL ? (size_t)(newline - data) : size;
        if (wal__json_validate(data, count, NULL) != WAL__JSON_OK) {
            return false;
        }
        count += newline != NULL ? 1 : 0;
        data += count;
        size -= count;
    }
    return true;
}

static void read_sessions(struct wal_store *store, bool is_sound)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list;
    struct wal_session *session;

    check(wal_session_cursor_open(store, NULL, &list, NULL) == WAL_OK);
    while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        check(wal_session_open(store, info.id, &session, NULL) == WAL_OK);
        read_entries(session);
        convert(store, session, is_sound);
        wal_session_close(session);
    }
    wal_session_cursor_close(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_database =
        size >= sizeof(database_magic) && memcmp(data, database_magic, sizeof(database_magic)) == 0;
    const struct wal_open_options open_options = {.struct_size = sizeof(open_options),
                                                  .flags = WAL_OPEN_MEMORY};
    struct wal_import_options options = {.struct_size = sizeof(options)};
    struct wal_import_result result = {.struct_size = sizeof(result)};
    char name[64];
    const struct wal_slice path = make_path(is_database ? "opencode.db" : "file", name);
    struct wal_store *store;

    options.dialect = is_database ? options.dialect : take_dialect(&data, &size);
    write_file(name, data, size);
    check(wal_open(NULL, &open_options, &store, NULL) == WAL_OK);
    if (wal_import_file(store, path, &options, &result, NULL) == WAL_OK) {
        check(wal_import_file(store, path, &options, &result, NULL) == WAL_OK);
        /* An index of a damaged database may lack a row of its table, which is read twice then. */
        check(result.appended == 0 || is_database);
    }
    read_sessions(store, !is_database && has_json_only(data, size));
    check(wal_close(store, NULL) == WAL_OK);
    check(unlink(name) == 0);
    return 0;
}
