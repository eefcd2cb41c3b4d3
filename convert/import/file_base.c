/*
 * file_base.c - finds the line of another file that a file goes on from (file_import.h).
 *
 * The session that has the line is that of the id which the file states, or one that it names: the
 * store has no list of files. One that was exported to the client has the lines that the client
 * added, by the ordinals that they state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert/import/file_import.h"
#include "convert/import/import_tree.h"
#include "convert/source/source_lines.h"
#include "engine/base/error.h"
#include "format/json/json_text.h"

bool wal__import_is_partial(struct wal_session *session, char missing[WAL__STRING_MAX + 1])
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    return wal_session_get_info(session, &info, NULL) == WAL_OK && info.metadata.size > 0 &&
           wal__string_member(info.metadata.data, (size_t)info.metadata.size, NULL, "partial",
                              missing);
}

struct wal_session *wal__import_open_of_dialect(const struct wal__import_file *file, const char *id)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = NULL;
    struct wal__source source;

    if (wal_session_open(file->import->store, wal__slice_from_text(id), &session, NULL) != WAL_OK) {
        return NULL;
    }
    if (wal_session_get_info(session, &info, NULL) == WAL_OK &&
        wal__source_parse(info.source, &source) &&
        strcmp(source.dialect, file->probe.dialect->name) == 0) {
        return session;
    }
    wal_session_close(session);
    return NULL;
}

/* Returns true if the session shares entries of the file's own session, which the file would make
 * anew, or is that session. */
static bool is_descendant(const struct wal__import_file *file, struct wal_session *session)
{
    struct wal_session_info own = {.struct_size = sizeof(own)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags = WAL_SESSION_CURSOR_LINEAGE};
    struct wal_session_cursor *list = NULL;
    bool is_found = false;

    if (file->session == NULL || wal_session_get_info(file->session, &own, NULL) != WAL_OK ||
        wal_session_get_info(session, &info, NULL) != WAL_OK) {
        return false;
    }
    options.lineage_of = info.id;
    is_found = own.number == info.number;
    if (!is_found &&
        wal_session_cursor_open(file->import->store, &options, &list, NULL) == WAL_OK) {
        while (!is_found && wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
            is_found = own.number == info.number;
        }
    }
    wal_session_cursor_close(list);
    return is_found;
}

/* Writes the id of the last line of the file with the id probe.base in a session; false: it has no
 * such line. */
static bool find_last_line(const struct wal__import_file *file, struct wal_session *session,
                           char id[WAL__LINE_ID_SIZE])
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char own[WAL__FILE_ID_SIZE];
    struct wal__source source;
    struct wal__source_lines lines;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    bool is_own = wal_session_get_info(session, &info, NULL) == WAL_OK &&
                  wal__source_parse(info.source, &source) &&
                  wal__source_file_id(source.path, own) && strcmp(own, file->probe.base) == 0;

    if (wal__source_lines_open(&lines, file->import->heap, session, 0,
                               is_own ? NULL : file->probe.base, NULL) != WAL_OK) {
        return false;
    }
    while (wal__source_lines_next(&lines, &entry, NULL) == WAL_OK) {
        /* last_id is the result */
    }
    memcpy(id, lines.last_id, WAL__LINE_ID_SIZE);
    wal__source_lines_close(&lines);
    return id[0] != '\0';
}

/* Writes the id of the entry on the branch up to `last` (or NULL: the head) that has the ordinal
 * before probe.base_end; false: the branch ends before it. A line without an ordinal has the next
 * one; up to the head, where entries may be several lines of a file, that entry states its own. */
static bool find_ordinal(const struct wal__import_file *file, struct wal_session *session,
                         const char *last, char id[WAL__LINE_ID_SIZE])
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .up_to = wal__slice_from_text(last != NULL ? last : "")};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    int64_t next = 0; /* the ordinal after that of the entry */
    bool is_stated = false;

    id[0] = '\0';
    if (wal_entry_cursor_open(session, &options, &cursor, NULL) != WAL_OK) {
        return false;
    }
    while ((uint64_t)next < file->probe.base_end &&
           wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        struct wal__json_span text = wal__line_text(entry.payload.data, (size_t)entry.payload.size);
        int64_t ordinal = next;
        struct wal__line_info line = {.ordinal = {NULL, 0}};

        if ((entry.flags & (WAL_ENTRY_REDACTED | WAL_ENTRY_OUT_OF_LINE)) == 0 &&
            wal__line_read(file->probe.dialect, text.data, text.size, &line, NULL) ==
                WAL__JSON_OK &&
            line.ordinal.size > 0 && wal__json_integer(line.ordinal, &ordinal) == WAL__JSON_OK &&
            (ordinal < next || ordinal == INT64_MAX)) {
            ordinal = next;
        }
        if ((uint64_t)ordinal >= file->probe.base_end) {
            break;
        }
        next = ordinal + 1;
        is_stated = line.ordinal.size > 0;
        snprintf(id, WAL__LINE_ID_SIZE, "%.*s", (int)entry.id.size, (const char *)entry.id.data);
    }
    wal_entry_cursor_close(cursor);
    return (uint64_t)next == file->probe.base_end && id[0] != '\0' && (last != NULL || is_stated);
}

/* Opens a session of the id, and finds the line in it; NULL: it has none. *is_short: it was
 * imported from the dialect. */
static struct wal_session *open_with_line(struct wal__import_file *file, const char *id,
                                          bool *is_short)
{
    struct wal_session *session = wal__import_open_of_dialect(file, id);
    char last[WAL__LINE_ID_SIZE];
    bool is_imported = session != NULL;

    if (!is_imported &&
        wal_session_open(file->import->store, wal__slice_from_text(id), &session, NULL) != WAL_OK) {
        return NULL;
    }
    if (!is_descendant(file, session) && (!is_imported || find_last_line(file, session, last))) {
        if (find_ordinal(file, session, is_imported ? last : NULL, file->lines.base)) {
            return session;
        }
        *is_short |= is_imported;
    }
    wal_session_close(session);
    return NULL;
}

/* Describes in lines.missing what is not there. */
static enum wal_status describe_missing(struct wal__import_file *file, const char *why,
                                        struct wal_error *error)
{
    size_t size = strlen(file->probe.base) + 200;
    char *text = wal__arena_alloc(&file->import->arena.arena, size);

    if (text == NULL) {
        return wal__no_memory(error);
    }
    snprintf(text, size, "it goes on from line %" PRIu64 " of %s, which %s", file->probe.base_end,
             file->probe.base, why);
    file->lines.missing = text;
    return WAL_OK;
}

enum wal_status wal__import_find_base(struct wal__import_file *file, struct wal_error *error)
{
    const struct wal__file_probe *probe = &file->probe;
    const char *const ids[] = {probe->session, probe->parent, probe->base};
    const char *why = "was not found";
    char missing[WAL__STRING_MAX + 1];
    bool is_short = false;

    file->lines.missing = NULL;
    file->missing = NULL;
    for (size_t i = 0; file->base == NULL && file->id[0] != '\0' && i < 3; i++) {
        file->base = ids[i] != NULL ? open_with_line(file, ids[i], &is_short) : NULL;
    }
    why = is_short ? "has fewer lines" : why;
    if (file->base != NULL && !wal__import_is_partial(file->base, missing)) {
        return WAL_OK;
    }
    if (file->base == NULL) {
        file->lines.base[0] = '\0';
        file->missing = probe->base;
    } else {
        file->missing = wal__arena_copy_text(&file->import->arena.arena, missing);
        why = "lacks what it goes on from itself";
    }
    return describe_missing(file, why, error);
}

void wal__import_forget_base(struct wal__import_file *file)
{
    wal_session_close(file->base);
    wal_session_close(file->thread);
    file->base = NULL;
    file->thread = NULL;
    file->missing = NULL;
    file->lines.base[0] = '\0';
}

bool wal__import_is_waiting(const struct wal__import *import, const char *id)
{
    char other[WAL__FILE_ID_SIZE];

    for (uint32_t i = import->deferred_begin; i < import->deferred_count; i++) {
        if (wal__source_file_id(import->deferred[i].path, other) && strcmp(other, id) == 0) {
            return true;
        }
    }
    return false;
}
