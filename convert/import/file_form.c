/*
 * file_form.c - which of two forms of a session a file has (file_import.h): the one before or after
 * its client rewrote the file, or went on in another one.
 *
 * A client that goes on in another file has put there what the former one has: the same lines, or
 * of a session that was one object its messages, as lines.
 */
#include <stdio.h>
#include <string.h>

#include "agentwal.h"
#include "convert/clients/client.h"
#include "convert/import/file_import.h"
#include "convert/model/model_member.h"
#include "convert/source/source_lines.h"
#include "format/json/json_scan.h"

/* The number of a line's form; 0: none. */
static int64_t form_of(struct wal_slice line, const struct wal__json_member *rewritten)
{
    struct wal__json_member version = rewritten[0];
    int64_t form = 0;

    return wal__json_members(line.data, (size_t)line.size, &version, 1, NULL) == WAL__JSON_OK &&
                   wal__json_integer(version.value.span, &form) == WAL__JSON_OK
               ? form
               : 0;
}

/* Whether the client changes the line in place: of files that differ in it the longer is newer. */
static bool is_preamble(const struct wal__dialect *dialect, const struct wal__piece *piece)
{
    struct wal__line_info line;

    return wal__line_read(dialect, piece->data, piece->size, &line, NULL) == WAL__JSON_OK &&
           line.is_preamble;
}

/* Compares forms of a file at its place. */
static enum wal_status compare_lines(struct wal__import_file *file, struct wal_session *session,
                                     enum wal__import_form *form, struct wal_error *error)
{
    const struct wal__json_member *rewritten = file->probe.dialect->rewritten;
    const struct wal__heap *heap = file->import->heap;
    struct wal__source_lines lines;
    struct wal__line_reader reader;
    struct wal__piece piece = {.line = 0};
    struct wal_entry entry;
    int64_t file_form = 0;
    int64_t session_form = 0;
    bool begins_with_preamble = false;
    bool is_same = true;
    int got = 1;
    enum wal_status status = wal__source_lines_open(&lines, heap, session, 0, NULL, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__line_reader_init(&reader, heap, file->fd, file->size, false, 0);
    reader.is_whole = file->probe.is_whole;
    while (is_same && got > 0 &&
           (status = wal__source_lines_next(&lines, &entry, error)) == WAL_OK &&
           entry.stream != WAL__PARTIAL_STREAM) {
        char *memory = NULL;

        got = wal__line_reader_next(&reader, &piece);
        status = got < 0
                     ? wal__import_errno(error)
                     : wal__entry_payload_load(heap, file->import->store, &entry, &memory, error);
        is_same =
            status == WAL_OK &&
            (got == 0 ||
             wal__line_is_same(
                 (struct wal__json_span){entry.payload.data, (size_t)entry.payload.size},
                 (struct wal__json_span){(const uint8_t *)piece.data, piece.size}, rewritten));
        if (is_same && piece.line == 1) {
            file_form = form_of((struct wal_slice){piece.data, piece.size}, rewritten);
            session_form = form_of(entry.payload, rewritten);
            if (wal__is_json_name(file->name)) {
                file_form = (int64_t)piece.size;
                session_form = (int64_t)entry.payload.size;
            }
            begins_with_preamble = is_preamble(file->probe.dialect, &piece);
        }
        wal__heap_free(heap, memory);
    }
    file_form += !begins_with_preamble || file_form != session_form ? 0 : got > 0 ? 1 : -1;
    if (is_same && got > 0 && file_form > session_form) {
        *form = WAL__FORM_OLDER;
    } else if (is_same && file_form < session_form &&
               (got == 0 || wal__line_reader_next(&reader, &piece) == 0)) {
        *form = WAL__FORM_COVERED;
    }
    wal__line_reader_deinit(&reader);
    wal__source_lines_close(&lines);
    return status == WAL_END ? WAL_OK : status;
}

/* --- another file --------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Whether a file of lines, NAME.jsonl, has the name of one of an object, NAME.json. */
static bool is_of_lines(const char *path, const char *other)
{
    size_t size = strlen(other);

    return wal__is_json_name(other) && strncmp(path, other, size) == 0 &&
           strcmp(path + size, "l") == 0;
}

enum wal__import_place wal__import_place_of(const struct wal__import_file *file,
                                            struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    const char *dialect = file->probe.dialect->name;
    const struct wal__client *client;
    const char *below[2];
    struct wal__source source;
    struct wal_slice ids[2];

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        !wal__source_parse(info.source, &source) || strcmp(source.dialect, dialect) != 0) {
        return WAL__PLACE_OTHER;
    }
    if (strcmp(base_name(source.path), base_name(file->path)) == 0) {
        return WAL__PLACE_SAME;
    }
    if (is_of_lines(base_name(file->path), base_name(source.path))) {
        return WAL__PLACE_OF_LINES;
    }
    client = wal__client_of_source(dialect, file->path, &below[0]);
    if (client == NULL || client != wal__client_of_source(dialect, source.path, &below[1])) {
        return WAL__PLACE_OTHER;
    }
    for (size_t i = 0; i < 2; i++) {
        ids[i] = wal__client_read_path(client, below[i]).id;
    }
    return ids[0].size > 0 && wal__slice_equal(ids[0], ids[1]) ? WAL__PLACE_OF_ID
                                                               : WAL__PLACE_OTHER;
}

/* Moves to the next message of an object's list. False: there is none. */
static bool next_message(struct wal__json_scan *scan, struct wal__json_member *id)
{
    struct wal__json_token message;

    if (!wal__model_array_next(scan, &message)) {
        return false;
    }
    id->value = (struct wal__json_token){.kind = WAL__JSON_NONE};
    return wal__json_members(message.span.data, message.span.size, id, 1, NULL) == WAL__JSON_OK;
}

/* Sets *has_all to whether the ids of the messages in an object are those of lines of the file, in
 * the same order. */
static enum wal_status find_messages(struct wal__import_file *file, struct wal_slice object,
                                     bool *has_all, struct wal_error *error)
{
    struct wal__json_member messages = {.key = "messages"};
    struct wal__json_member id = {.key = "id"};
    struct wal__line_reader reader;
    struct wal__json_scan scan;
    struct wal__piece piece;
    struct wal__line_info line;
    bool is_left;
    int got = 1;

    *has_all = false;
    if (wal__json_members(object.data, (size_t)object.size, &messages, 1, NULL) != WAL__JSON_OK ||
        messages.value.kind != WAL__JSON_ARRAY) {
        return WAL_OK;
    }
    wal__model_array_begin(&scan, messages.value.span);
    is_left = next_message(&scan, &id);
    wal__line_reader_init(&reader, file->import->heap, file->fd, file->size, false, 0);
    while (is_left && (got = wal__line_reader_next(&reader, &piece)) > 0) {
        if (id.value.kind == WAL__JSON_STRING &&
            wal__line_read(file->probe.dialect, piece.data, piece.size, &line, NULL) ==
                WAL__JSON_OK &&
            wal__json_characters_equal(line.id, id.value.span)) {
            is_left = next_message(&scan, &id);
        }
    }
    wal__line_reader_deinit(&reader);
    *has_all = !is_left;
    return got < 0 ? wal__import_errno(error) : WAL_OK;
}

/* Compares a session that was one object with the file of its lines. */
static enum wal_status compare_object(struct wal__import_file *file, struct wal_session *session,
                                      enum wal__import_form *form, struct wal_error *error)
{
    const struct wal__heap *heap = file->import->heap;
    struct wal__source_lines lines;
    struct wal_entry entry;
    char *memory = NULL;
    bool has_all = false;
    enum wal_status status = wal__source_lines_open(&lines, heap, session, 0, NULL, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__source_lines_next(&lines, &entry, error);
    if (status == WAL_OK) {
        status = wal__entry_payload_load(heap, file->import->store, &entry, &memory, error);
    }
    if (status == WAL_OK) {
        status = find_messages(file, entry.payload, &has_all, error);
    }
    *form = status == WAL_OK && has_all ? WAL__FORM_OLDER : WAL__FORM_OTHER;
    wal__heap_free(heap, memory);
    wal__source_lines_close(&lines);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__import_compare_forms(struct wal__import_file *file,
                                          struct wal_session *session, enum wal__import_form *form,
                                          struct wal_error *error)
{
    struct wal__source_match match = {.issues = NULL};
    enum wal_status status = WAL_OK;

    *form = WAL__FORM_OTHER;
    switch (wal__import_place_of(file, session)) {
    case WAL__PLACE_SAME:
        return file->probe.dialect->rewritten != NULL ? compare_lines(file, session, form, error)
                                                      : WAL_OK;
    case WAL__PLACE_OF_LINES:
        return compare_object(file, session, form, error);
    case WAL__PLACE_OF_ID:
        status = wal__source_compare(file->import->heap, file->import->store, session, 0, NULL,
                                     file->fd, &match, error);
        if (status == WAL_OK && match.is_prefix) {
            *form = WAL__FORM_OLDER;
        }
        wal__source_match_deinit(&match);
        break;
    case WAL__PLACE_OTHER:
        break;
    }
    return status;
}
