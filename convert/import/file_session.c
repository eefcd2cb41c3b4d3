/*
 * file_session.c - finds the session that a file continues.
 *
 * Threads: one thread at a time per struct.
 */
#include <stdio.h>
#include <string.h>

#include "convert/import/file_import.h"
#include "engine/base/error.h"

#define FILE_ID_MAX 200 /* bytes of an id that is a file's name */

/* Compares the file with a session's lines, of which others may append more
 * meanwhile. */
static enum wal_status match_source(struct wal__import_file *file,
                                    struct wal_session *session,
                                    struct wal__source_match *match,
                                    struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    file->seen = info.last_sequence;
    return status == WAL_OK
               ? wal__source_compare(file->import->heap, file->import->store,
                                     session, 0, file->fd, match, error)
               : status;
}

/* Finds the session that the file continues among those of a dialect. If there
 * is none, file->session stays NULL and file->source is the first unused
 * source. */
static enum wal_status find_in_dialect(struct wal__import_file *file,
                                       const char *dialect,
                                       struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct wal__source_match match;
    enum wal_status status;

    for (uint64_t ordinal = 0;; ordinal++) {
        if (!wal__source_text(file->source, dialect, ordinal, file->path)) {
            return wal__fail(error, WAL_ETOOBIG, "%s",
                             wal_status_text(WAL_ETOOBIG));
        }
        status = wal__session_open_source(file->import->store, file->source,
                                          &session, error);
        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_OK : status;
        }
        match = (struct wal__source_match){.issues = NULL};
        status = match_source(file, session, &match, error);
        if (status == WAL_OK && match.is_prefix) {
            file->session = session;
            file->lines.match = match;
            return WAL_OK;
        }
        wal__source_match_deinit(&match);
        wal_session_close(session);
        if (status != WAL_OK) {
            return status;
        }
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

const char *wal__import_file_id(const struct wal__import_file *file)
{
    const struct wal__file_probe *probe = &file->probe;
    bool is_side_chain =
        probe->session != NULL && !probe->has_mainline && probe->has_sidechain;
    const char *base = base_name(file->path);
    const char *dot = strrchr(base, '.');
    size_t base_size = dot != NULL ? (size_t)(dot - base) : strlen(base);
    size_t size;
    char *id;

    if (!is_side_chain &&
        (probe->session != NULL || !file->import->matches_ids ||
         base_size == 0 || base_size > FILE_ID_MAX)) {
        return probe->session;
    }
    size = (is_side_chain ? strlen(probe->session) : 0) + base_size + 2;
    id = wal__arena_alloc(&file->import->arena.arena, size);
    if (id != NULL) {
        snprintf(id, size, "%s%s%.*s", is_side_chain ? probe->session : "",
                 is_side_chain ? "~" : "", (int)base_size, base);
    }
    return id;
}

/* Returns true if the session was imported from a file of the same dialect and
 * name. */
static bool has_file_name(const struct wal__import_file *file,
                          struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__source source;

    return wal_session_get_info(session, &info, NULL) == WAL_OK &&
           wal__source_parse(info.source, &source) &&
           strcmp(source.dialect, file->probe.dialect->name) == 0 &&
           strcmp(base_name(source.path), base_name(file->path)) == 0;
}

/* Opens the session of this id if the file continues it, or if it begins with
 * the file's lines: *is_covered. */
static enum wal_status match_id(struct wal__import_file *file, const char *id,
                                bool *is_covered, struct wal_error *error)
{
    struct wal__source_match match = {.issues = NULL};
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(
        file->import->store, wal__slice_from_text(id), &session, error);

    *is_covered = false;
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND || status == WAL_EINVAL ? WAL_OK
                                                               : status;
    }
    if (has_file_name(file, session)) {
        status = match_source(file, session, &match, error);
        *is_covered = status == WAL_OK && match.is_covered;
        if (status == WAL_OK && (match.is_prefix || match.is_covered)) {
            file->session = session;
            file->lines.match = match;
            return WAL_OK;
        }
    }
    wal__source_match_deinit(&match);
    wal_session_close(session);
    return status;
}

void wal__import_file_forget(struct wal__import_file *file)
{
    wal__source_match_deinit(&file->lines.match);
    file->lines.match = (struct wal__source_match){.entries = 0};
    wal_session_close(file->session);
    file->session = NULL;
}

/* Finds the session that the file continues among those of its id, wherever
 * the file was when they were imported; or else one that begins with it. */
static enum wal_status find_by_id(struct wal__import_file *file,
                                  struct wal_error *error)
{
    const char *base = wal__import_file_id(file);
    enum wal_status status = WAL_OK;
    char covering[WAL__SOURCE_SIZE_MAX] = "";
    char id[WAL__SOURCE_SIZE_MAX];

    for (unsigned n = 1; base != NULL && n <= WAL__IMPORT_ID_TRIES &&
                         status == WAL_OK && file->session == NULL;
         n++) {
        bool is_covered;

        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", base, n);
        status = match_id(file, id, &is_covered, error);
        if (status == WAL_OK && is_covered) {
            wal__import_file_forget(file);
            memcpy(covering, id, sizeof(covering));
        }
    }
    if (status == WAL_OK && file->session == NULL && covering[0] != '\0') {
        status = match_id(file, covering, &file->is_covered, error);
    }
    return status;
}

/* Sets file->source to that of the session. */
static enum wal_status read_source(struct wal__import_file *file,
                                   struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(file->session, &info, error);

    if (status == WAL_OK) {
        snprintf(file->source, sizeof(file->source), "%.*s",
                 (int)info.source.size, (const char *)info.source.data);
    }
    return status;
}

enum wal_status wal__import_file_find(struct wal__import_file *file,
                                      struct wal_error *error)
{
    const struct wal__dialect *own = file->probe.dialect;
    const struct wal__dialect *dialect;
    enum wal_status status = find_in_dialect(file, own->name, error);

    if (status != WAL_OK) {
        return status;
    }
    memcpy(file->free_source, file->source, sizeof(file->source));
    for (size_t i = 0;
         status == WAL_OK && file->session == NULL &&
         file->import->forced == NULL && (dialect = wal__dialect_at(i)) != NULL;
         i++) {
        if (dialect != own) {
            status = find_in_dialect(file, dialect->name, error);
        }
    }
    if (status == WAL_OK && file->session == NULL &&
        file->import->matches_ids) {
        status = find_by_id(file, error);
        if (status == WAL_OK && file->session != NULL) {
            status = read_source(file, error);
        }
    }
    return status;
}
