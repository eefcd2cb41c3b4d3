/*
 * copy_detect.c - decides whether the session of a copied file is kept or
 * created again.
 *
 * Threads: one thread at a time per struct.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "convert/import/copy_walk.h"
#include "convert/import/session_modified.h"
#include "convert/model/model_table.h"
#include "engine/base/error.h"

#define SHORT_LINES_MAX 64 /* lines of a session that is not a copy yet */

/* --- state ---------------------------------------------------------------- */

/* *answer: the session consists of copied lines and at most a partial line. */
static enum wal_status is_copy_only(const struct wal__heap *heap,
                                    struct wal_session *session, bool *answer,
                                    struct wal_error *error)
{
    struct wal__source_lines lines;
    struct wal_entry entry;
    enum wal_status status =
        wal__source_lines_open(&lines, heap, session, 0, error);

    if (status != WAL_OK) {
        return status;
    }
    *answer = true;
    while (*answer &&
           (status = wal__source_lines_next(&lines, &entry, error)) == WAL_OK) {
        *answer =
            !lines.copy.has_ended || !wal__source_line_has_newline(&entry);
    }
    *answer = *answer && status == WAL_END && lines.native_count == 0;
    wal__source_lines_close(&lines);
    return status == WAL_ECORRUPT || status == WAL_EIO || status == WAL_END
               ? WAL_OK
               : status;
}

/* As is_copy_only, for a session that is not a copy. */
static bool is_short(const struct wal__source_match *match)
{
    return match->native_count == 0 && match->lines <= SHORT_LINES_MAX;
}

/*
 * *is_incomplete: the import of the shared lines did not finish; *is_empty: it
 * did not begin.
 * *is_replaceable: the session has little more than a copy's lines, and nobody
 * modified it.
 */
static enum wal_status
inspect_session(const struct wal__heap *heap, struct wal_session *session,
                const struct wal__source_match *match, bool *is_incomplete,
                bool *is_empty, bool *is_replaceable, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__copy copy;
    bool is_copy = false;
    bool is_complete = false;
    bool is_modified = false;
    uint64_t begin = 0;
    enum wal_status status =
        wal__session_is_modified(session, &is_modified, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_session_get_info(session, &info, error);
    if (status != WAL_OK || is_modified) {
        return status;
    }
    if ((info.flags & WAL_SESSION_FORK) == 0) {
        *is_replaceable = is_short(match);
        return WAL_OK;
    }
    status = wal__copy_inspect(session, &is_copy, &is_complete, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!is_copy || !is_complete) {
        *is_incomplete =
            !is_complete && (is_copy || info.entries == info.inherited);
        *is_empty = !is_copy;
        return WAL_OK;
    }
    status = wal__copy_open(&copy, session, heap, 0, &is_copy, error);
    if (status != WAL_OK) {
        return status;
    }
    begin = copy.first_sequence;
    wal__copy_close(&copy);
    return info.metadata_version < begin
               ? is_copy_only(heap, session, is_replaceable, error)
               : WAL_OK;
}

/* Keeps a session with entries that no import wrote: the file continues it. A
 * fork without lines cannot be continued: WAL_ECONFLICT, since the entries came
 * after it was found, and it is not found again. */
static enum wal_status keep_used(struct wal_session *session, bool is_empty,
                                 bool *must_delete, struct wal_error *error)
{
    uint64_t lines = 0;
    uint64_t others = 0;
    enum wal_status status =
        wal__session_count_own(session, &lines, &others, error);

    if (status != WAL_OK || others == 0) {
        return status;
    }
    *must_delete = false;
    return is_empty ? wal__fail(error, WAL_ECONFLICT,
                                "others have appended to a fork without lines")
                    : WAL_OK;
}

enum wal_status wal__copy_import_detect(struct wal__copy_import *copy,
                                        struct wal_session *session,
                                        const struct wal__source_match *match,
                                        bool *must_delete,
                                        struct wal_error *error)
{
    bool is_incomplete = false;
    bool is_empty = false;
    bool is_replaceable = false;
    enum wal_status status;

    *must_delete = false;
    if (copy->probe->is_opaque) {
        return WAL_OK;
    }
    if (session == NULL) {
        return wal__copy_import_find(copy, NULL, error);
    }
    if (match->bytes >= copy->size) {
        return WAL_OK;
    }
    status = inspect_session(copy->arena->heap, session, match, &is_incomplete,
                             &is_empty, &is_replaceable, error);
    if (status != WAL_OK || (!is_incomplete && !is_replaceable)) {
        return status;
    }
    if (is_incomplete && wal_session_claim(session, error) == WAL_ECLAIMED) {
        return WAL_ECLAIMED; /* another import is writing it */
    }
    status = wal__copy_import_find(copy, session, error);
    *must_delete =
        status == WAL_OK && (is_incomplete || copy->lines > match->lines);
    if (*must_delete) {
        status = keep_used(session, is_empty, must_delete, error);
    }
    if (!*must_delete) {
        wal__copy_import_deinit(copy);
    }
    return status;
}
