/*
 * view_base.c - finds the line of another file that a fork's own file goes on from (view.h,
 * SPEC.md 10.2).
 *
 * The other file is the one from which the session was imported that the fork was made of. It is
 * there with all lines up to the fork point, and no view: a client may show nothing of a file that
 * it did not write itself, until that is opened. A file that exists already stays as it is.
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert/source/source_lines.h"
#include "engine/base/error.h"
#include "format/json/json_text.h"

#define HEADER_MAX ((size_t)1 << 20) /* bytes of the first line of a file, at most */

/* Opens a file below the root. Returns -1 if it is not there. */
static int open_below(const struct wal_view *view, const char *path)
{
    struct wal__file_stamp stamp;
    const char *name = NULL;
    int directory = -1;
    int fd = -1;

    if (wal__view_fs_open_parent(&view->env, view->root, path, false, &directory, &name, NULL) ==
        WAL_OK) {
        if (wal__view_fs_open(directory, name, &fd, &stamp, NULL) != WAL_OK) {
            fd = -1;
        }
        close(directory);
    }
    return fd;
}

/* --- the branch ---------------------------------------------------------- */

/* Compares entries with the lines of a file. */
struct comparison {
    struct wal__file_compare file;
    uint64_t size; /* bytes that are equal */
    bool is_equal;
};

static bool compare_piece(void *ctx, const void *data, size_t size)
{
    struct comparison *comparison = ctx;

    comparison->is_equal = wal__file_compare_bytes(&comparison->file, comparison->size, data, size);
    comparison->size += size;
    return comparison->is_equal;
}

/* Compares an entry with the next line: WAL_END if it differs. Entries before the file's first line
 * are of the file that it goes on from itself. */
static enum wal_status compare_entry(const struct wal_view *view, struct comparison *comparison,
                                     const struct wal_entry *entry)
{
    uint64_t before = comparison->size;
    enum wal_status status = WAL_OK;

    comparison->is_equal = (entry->flags & WAL_ENTRY_LINE) != 0;
    if (comparison->is_equal) {
        status = wal__entry_payload_visit(view->env.heap, view->store, entry, compare_piece,
                                          comparison, NULL);
    }
    if (status == WAL_OK && comparison->is_equal) {
        (void)compare_piece(comparison, "\n", 1);
    }
    if (status == WAL_ENOMEM || comparison->file.has_failed) {
        return WAL_ENOMEM;
    }
    if (status == WAL_OK && comparison->is_equal) {
        return WAL_OK;
    }
    comparison->size = before;
    return before == 0 ? WAL_OK : WAL_END;
}

/* Reads the branch of the head up to the fork point. *end: the ordinal after that; 0: the branch
 * leaves it before, or differs from the file. Fails without memory alone. */
static enum wal_status read_branch(const struct wal_view *view, struct wal_slice head,
                                   uint64_t inherited, struct comparison *comparison, uint64_t *end)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .up_to = head,
        .skip = comparison == NULL ? inherited - 1 : 0};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal__line_info line;
    int64_t ordinal = -1;
    enum wal_status status = wal_entry_cursor_open(view->session, &options, &cursor, NULL);

    for (uint64_t i = options.skip; status == WAL_OK && i < inherited; i++) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_OK && comparison != NULL) {
            status = compare_entry(view, comparison, &entry);
        }
    }
    if (status == WAL_OK && (comparison == NULL || comparison->size > 0) &&
        (entry.flags & (WAL_ENTRY_REDACTED | WAL_ENTRY_OUT_OF_LINE)) == 0 &&
        wal__line_read(view->dialect, entry.payload.data, (size_t)entry.payload.size, &line,
                       NULL) == WAL__JSON_OK &&
        wal__json_integer(line.ordinal, &ordinal) != WAL__JSON_OK) {
        ordinal = -1;
    }
    wal_entry_cursor_close(cursor);
    *end = ordinal >= 0 && ordinal < INT64_MAX ? (uint64_t)ordinal + 1 : 0;
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* --- the files ----------------------------------------------------------- */

/* Reads the first line of the session's file, which is there, if that goes on from the lines before
 * base->end; else there are none. */
static enum wal_status read_header(const struct wal_view *view, int fd, struct wal__arena *arena,
                                   struct wal__model_base *base)
{
    uint8_t *bytes = wal__heap_alloc(view->env.heap, HEADER_MAX);
    ssize_t size = bytes != NULL ? pread(fd, bytes, HEADER_MAX, 0) : -1;
    const uint8_t *newline = size > 0 ? memchr(bytes, '\n', (size_t)size) : NULL;
    struct wal__json_span header = {bytes, newline != NULL ? (size_t)(newline - bytes) : 0};
    struct wal__line_info line;
    int64_t end = 0;

    if (header.size > 0 &&
        wal__line_read(view->dialect, header.data, header.size, &line, NULL) == WAL__JSON_OK &&
        line.base.size > 0 && wal__json_integer(line.base_end, &end) == WAL__JSON_OK && end > 0 &&
        (uint64_t)end == base->end) {
        base->header = wal__arena_copy(arena, header);
    } else {
        base->end = 0;
    }
    wal__heap_free(view->env.heap, bytes);
    return bytes != NULL ? WAL_OK : WAL_ENOMEM;
}

/* Finds the path of the file that a session was imported from, below the root, if no view of the
 * store is there; else *found is NULL. */
static enum wal_status find_file(const struct wal_view *view, struct wal_slice id,
                                 struct wal__arena *arena, const char **found)
{
    struct wal__session_snapshot snapshot = {.dialect = NULL};
    const struct wal__json_span *file = &snapshot.session.file;
    struct wal_view_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = NULL;
    char path[PATH_MAX];
    enum wal_status status = wal_session_open(view->store, id, &session, NULL);

    if (status == WAL_OK) {
        status = wal__session_snapshot_read(&snapshot, view->env.heap, view->store, session, NULL);
    }
    if (status == WAL_OK && snapshot.dialect == view->dialect && file->size > 0 &&
        snprintf(path, sizeof(path), "%s/%s", view->root, (const char *)file->data) <
            (int)sizeof(path) &&
        wal_view_find(view->store, wal__slice_from_text(path), &info, NULL) == WAL_ENOTFOUND) {
        *found = wal__arena_copy_text(arena, (const char *)file->data);
    }
    wal__session_snapshot_deinit(&snapshot);
    wal_session_close(session);
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* Finds the lines of the file that the session `id` was imported from. */
static enum wal_status find_lines(const struct wal_view *view, struct wal_slice head,
                                  const struct wal_session_info *info, struct wal__arena *arena,
                                  struct wal__model_base *base)
{
    struct comparison comparison = {.file = {.heap = view->env.heap, .fd = -1}};
    const char *path = NULL;
    enum wal_status status = find_file(view, info->parent_id, arena, &path);

    if (path == NULL || !wal__source_file_id(path, base->file) ||
        (comparison.file.fd = open_below(view, path)) < 0) {
        return status;
    }
    status = read_branch(view, head, info->inherited, &comparison, &base->end);
    base->end_offset = comparison.size;
    wal__file_compare_deinit(&comparison.file);
    close(comparison.file.fd);
    return status;
}

enum wal_status wal__view_find_base(const struct wal_view *view,
                                    struct wal__session_snapshot *snapshot, const char *head,
                                    struct wal_error *error)
{
    const struct wal__dialect_write_ops *to = view->dialect->write_ops;
    const struct wal_slice up_to = wal__slice_from_text(head);
    struct wal__arena *arena = &snapshot->memory.arena;
    struct wal__model_base *base = &snapshot->session.base;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status;
    const char *path;
    int fd;

    if (!to->writes_bases || view->root == NULL || !snapshot->is_fork || up_to.size == 0 ||
        snapshot->dialect != view->dialect ||
        wal_session_get_info(view->session, &info, NULL) != WAL_OK || info.inherited == 0 ||
        (path = to->path(&snapshot->session, 0, arena)) == NULL) {
        return WAL_OK;
    }
    fd = open_below(view, path);
    if (fd < 0) {
        status = find_lines(view, up_to, &info, arena, base);
    } else {
        status = read_branch(view, up_to, info.inherited, NULL, &base->end);
        if (status == WAL_OK && base->end > 0) {
            status = read_header(view, fd, arena, base);
        }
        close(fd);
    }
    return status == WAL_ENOMEM || snapshot->memory.has_failed ? wal__no_memory(error) : WAL_OK;
}
