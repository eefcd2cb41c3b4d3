/*
 * session_modified.c - detects changes to an imported session.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/session_modified.h"

#include <stdio.h>
#include <string.h>

#include "convert/source/source_lines.h"
#include "format/json/json_scan.h"

/* Returns true if the session has no head other than `main`. */
static bool has_one_head(struct wal_session *session)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    unsigned count = 0;

    if (wal_head_cursor_open(session, &heads, NULL) != WAL_OK) {
        return false;
    }
    while (wal_head_cursor_next(heads, &head, NULL) == WAL_OK) {
        count++;
    }
    wal_head_cursor_close(heads);
    return count <= 1;
}

/* Advances *at past a member, if the metadata has it there and once. */
static bool skip_member(struct wal_slice metadata, const char *key, size_t *at)
{
    const uint8_t *bytes = metadata.data;
    char quoted[32];
    struct wal__json_token found;
    size_t size = (size_t)snprintf(quoted, sizeof(quoted), "\"%s\":", key);

    if (metadata.size < *at + size || memcmp(bytes + *at, quoted, size) != 0 ||
        wal__json_find(bytes, (size_t)metadata.size, key, &found) !=
            WAL__JSON_OK ||
        found.span.data != bytes + *at + size) {
        return false;
    }
    *at += size + found.span.size;
    return true;
}

/* Returns true if the metadata is empty or consists of "created" and
 * "imported": what an import writes, or one of an older library wrote. */
static bool is_metadata_of_import(struct wal_slice metadata)
{
    const char *bytes = metadata.data;
    size_t at = 1;

    if (metadata.size == 0) {
        return true;
    }
    if (skip_member(metadata, "created", &at) && at < metadata.size &&
        bytes[at] == ',') {
        at++;
    }
    (void)skip_member(metadata, "imported", &at);
    return at + 1 == metadata.size;
}

/* A title of a session with entries may be from their lines. */
static bool is_info_of_import(const struct wal_session_info *info)
{
    return is_metadata_of_import(info->metadata) &&
           (info->entries > 0 || info->title.size == 0);
}

enum wal_status wal__session_is_modified(struct wal_session *session,
                                         bool *is_modified,
                                         struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        *is_modified = info.documents > 0 || !is_info_of_import(&info) ||
                       !has_one_head(session);
    }
    return status;
}

static enum wal_status count_stream(struct wal_session *session,
                                    uint32_t stream, uint64_t *others,
                                    struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .stream = stream,
    };
    bool has_lines = stream == 0 || stream == WAL__PARTIAL_STREAM;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status =
        wal_entry_cursor_open(session, &options, &cursor, error);

    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK &&
            (!has_lines || (entry.flags & WAL_ENTRY_LINE) == 0 ||
             wal__source_line_is_from_view(&entry))) {
            ++*others;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__session_count_others(struct wal_session *session,
                                          uint64_t *others,
                                          struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    *others = (info.flags & WAL_SESSION_DAMAGED) != 0 ? 1 : 0;
    for (uint32_t i = 0; status == WAL_OK && i <= UINT8_MAX; i++) {
        status = count_stream(session, i, others, error);
    }
    return status;
}
