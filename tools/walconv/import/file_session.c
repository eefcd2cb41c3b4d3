/*
 * file_session.c - find the session that a file continues.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdlib.h>
#include <time.h>

#include "agentwal/admin.h"
#include "tools/walconv/import/file_import.h"

/* the creator of a younger session may still be writing */
#define RECENT_MS   2000
#define RETRY_NS    10000000
#define RETRIES_MAX 200 /* bounds the wait if the clock is set back */

enum wal_status walconv_open_source(struct wal_store *store, const char *source,
                                    struct wal_session **session,
                                    struct wal_error *error)
{
    struct wal_session_cursor_options options = {.struct_size =
                                                     sizeof(options)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    options.source = cli_slice(source);
    status = wal_session_cursor_open(store, &options, &list, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal_session_cursor_next(list, &info, error);
    if (status == WAL_OK) {
        status = wal_session_open(store, info.id, session, error);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_ENOTFOUND : status;
}

/* Returns true if the session is a fork without own entries: another import is
 * about to write a copy into it, or stopped before. */
static bool is_empty_fork(struct wal_session *session, bool *is_fork,
                          bool *is_recent)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct timespec now;
    bool is_copy = false;
    bool is_complete = false;

    *is_fork = wal_session_get_info(session, &info, NULL) == WAL_OK &&
               (info.flags & WAL_SESSION_FORK) != 0;
    if (!*is_fork || info.entries != info.inherited ||
        wal__copy_inspect(session, &is_copy, &is_complete, NULL) != WAL_OK) {
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    *is_recent =
        (int64_t)now.tv_sec * 1000 - (int64_t)info.updated_ms < RECENT_MS;
    return !is_copy;
}

/* Compares the file with a session's lines. While another import writes a copy
 * they change, so a difference counts only after that import. */
static enum wal_status match_source(const struct walconv_file *file,
                                    struct wal_session *session,
                                    struct cli_match *match,
                                    struct wal_error *error)
{
    const struct timespec delay = {.tv_nsec = RETRY_NS};
    struct wal_store *store = file->import->store;
    bool is_recent = true;
    bool is_fork = false;
    enum wal_status status;

    for (unsigned retries = 0;; retries++) {
        status = cli_source_match(store, session, 0, file->fd, match, error);
        if (status != WAL_OK || match->is_prefix) {
            return status;
        }
        if (!is_empty_fork(session, &is_fork, &is_recent)) {
            break;
        }
        cli_match_deinit(match);
        *match = (struct cli_match){.is_prefix = true};
        if (!is_recent || retries == RETRIES_MAX) {
            return WAL_OK;
        }
        nanosleep(&delay, NULL);
    }
    status = is_fork ? wal_session_claim(session, error) : WAL_END;
    if (status == WAL_OK) {
        cli_match_deinit(match);
        status = cli_source_match(store, session, 0, file->fd, match, error);
        (void)!wal_session_unclaim(session, NULL);
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Finds the session that the file continues among those of a dialect. If there
 * is none, file->session stays NULL and *free_source is the first unused
 * source. */
static enum wal_status find_in_dialect(struct walconv_file *file,
                                       const char *dialect, char **free_source,
                                       struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct cli_match match;
    enum wal_status status;

    for (uint64_t ordinal = 0;; ordinal++) {
        char *source = cli_source_text(dialect, ordinal, file->path);
        if (source == NULL) {
            return WAL_ETOOBIG;
        }
        status =
            walconv_open_source(file->import->store, source, &session, error);
        if (status != WAL_OK) {
            *free_source = source;
            return status == WAL_ENOTFOUND ? WAL_OK : status;
        }
        status = match_source(file, session, &match, error);
        if (status == WAL_OK && match.is_prefix) {
            file->session = session;
            file->source = source;
            file->lines.match = match;
            return WAL_OK;
        }
        if (status == WAL_OK) {
            cli_match_deinit(&match);
        }
        wal_session_close(session);
        free(source);
        if (status != WAL_OK) {
            return status;
        }
    }
}

enum wal_status walconv_file_find(struct walconv_file *file,
                                  struct wal_error *error)
{
    const struct wal__dialect *own = file->probe.dialect;
    const struct wal__dialect *dialect;
    enum wal_status status;

    status = find_in_dialect(file, own->name, &file->free_source, error);
    for (size_t i = 0;
         status == WAL_OK && file->session == NULL &&
         file->import->forced == NULL && (dialect = wal__dialect_at(i)) != NULL;
         i++) {
        char *unused = NULL;
        if (dialect != own) {
            status = find_in_dialect(file, dialect->name, &unused, error);
        }
        free(unused);
    }
    return status;
}
