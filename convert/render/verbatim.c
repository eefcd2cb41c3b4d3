/*
 * verbatim.c - writes a session as the imported lines (verbatim.h, SPEC.md
 * 10.2).
 *
 * Threads: one thread at a time.
 */
#include "convert/render/verbatim.h"

#include <string.h>

#include "agentwal/blob.h"
#include "convert/render/entry_meta.h"
#include "engine/base/error.h"
#include "format/json/json_value.h"

#define PIECE_SIZE ((size_t)1 << 20)

struct verbatim_writer {
    const struct wal__verbatim *verbatim;
    struct wal__model_output output;
    uint8_t *piece;
};

/* --- eligibility --------------------------------------------------------- */

/* Whether the last append moved `main` to its entry, and no call moved it
 * since. */
static bool is_head_appended(struct wal_session *session)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, 0);
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_head_cursor *heads = NULL;
    struct wal_entry_cursor *cursor = NULL;
    bool is_appended = false;
    enum wal_status status = wal_head_cursor_open(session, &heads, NULL);

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (status == WAL_OK) {
        status = wal_head_cursor_next(heads, &head, NULL);
    }
    if (status == WAL_END ||
        (status == WAL_OK && (head.stream != 0 || head.name.size != 4 ||
                              memcmp(head.name.data, "main", 4) != 0))) {
        is_appended = true; /* there is no head */
    } else if (status == WAL_OK &&
               wal_entry_cursor_open(session, &options, &cursor, NULL) ==
                   WAL_OK) {
        is_appended = wal_entry_cursor_get(cursor, head.entry_id, &entry,
                                           NULL) == WAL_OK &&
                      entry.sequence == head.version;
    }
    wal_entry_cursor_close(cursor);
    wal_head_cursor_close(heads);
    return is_appended;
}

bool wal__verbatim_is_possible(const struct wal__verbatim *verbatim)
{
    const struct wal__dialect_write_ops *to = verbatim->dialect->write_ops;
    struct wal__heap_arena arena;
    bool is_possible;

    if (to->can_copy_verbatim == NULL || verbatim->snapshot->is_fork ||
        verbatim->snapshot->dialect != verbatim->dialect) {
        return false;
    }
    wal__heap_arena_init(&arena, verbatim->env->heap);
    is_possible =
        to->can_copy_verbatim(&verbatim->snapshot->session, &arena.arena);
    wal__heap_arena_deinit(&arena);
    return is_possible && is_head_appended(verbatim->session);
}

/* --- writing ------------------------------------------------------------- */

static bool write_blob(struct verbatim_writer *writer, struct wal_blob *blob,
                       bool dry_run, enum wal_status *status,
                       struct wal_error *error)
{
    uint64_t got = 1;

    for (uint64_t at = 0; got > 0 && *status == WAL_OK; at += got) {
        *status =
            wal_blob_read(blob, at, writer->piece, PIECE_SIZE, &got, error);
        if (*status == WAL_OK && got > 0 && !dry_run &&
            !writer->output.put(writer->output.ctx, writer->piece,
                                (size_t)got)) {
            return false;
        }
    }
    return true;
}

/* Writes a payload that is a blob, all of it or nothing: a dry run reads it
 * completely first. */
static enum wal_status write_blob_payload(struct verbatim_writer *writer,
                                          const struct wal_entry *entry,
                                          bool dry_run, struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    bool wants_more;

    if (writer->piece == NULL) {
        writer->piece =
            wal__heap_alloc(writer->verbatim->env->heap, PIECE_SIZE);
        if (writer->piece == NULL) {
            return wal__no_memory(error);
        }
    }
    status = wal_blob_open(writer->verbatim->store, entry->payload_digest,
                           &blob, error);
    wants_more =
        status != WAL_OK || write_blob(writer, blob, dry_run, &status, error);
    wal_blob_close(blob);
    return wants_more ? status : WAL_ECALLBACK;
}

static enum wal_status write_line(struct verbatim_writer *writer,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__model_output *output = &writer->output;
    bool is_out_of_line = (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0;
    enum wal_status status = WAL_OK;

    if (is_out_of_line) {
        status = write_blob_payload(writer, entry, true, error);
    }
    if (status == WAL_OK && is_out_of_line) {
        status = write_blob_payload(writer, entry, false, error);
    }
    if (status == WAL_OK &&
        ((!is_out_of_line && !output->put(output->ctx, entry->payload.data,
                                          (size_t)entry->payload.size)) ||
         !output->put(output->ctx, "\n", 1))) {
        status = WAL_ECALLBACK;
    }
    if (status == WAL_ECALLBACK) {
        wal__error_copy(error, &writer->verbatim->files->error);
        return writer->verbatim->files->status;
    }
    return status;
}

static bool is_exact(const struct wal__verbatim *verbatim,
                     const struct wal_entry *entry)
{
    struct wal__line_meta meta = wal__entry_meta(entry);

    return (entry->flags & WAL_ENTRY_LINE) != 0 &&
           (entry->flags & WAL_ENTRY_REDACTED) == 0 && !meta.is_inexact &&
           !meta.is_opaque &&
           (!meta.is_from_view || meta.view == verbatim->dialect);
}

/* Writes an entry if it can be written verbatim. */
static enum wal_status write_entry(struct verbatim_writer *writer,
                                   const struct wal_entry *entry, bool *exact,
                                   struct wal_error *error)
{
    *exact = is_exact(writer->verbatim, entry);
    return *exact ? write_line(writer, entry, error) : WAL_OK;
}

/* Checks all new entries before any of them is written. */
static enum wal_status check_exact(const struct wal__verbatim *verbatim,
                                   uint64_t limits, bool *exact,
                                   struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(0, verbatim->from);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    *exact = true;
    status = wal_entry_cursor_open(verbatim->session, &options, &cursor, error);
    for (uint64_t at = verbatim->from;
         status == WAL_OK && *exact && at < limits; at++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            *exact = is_exact(verbatim, &entry);
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            *exact = false;
            status = WAL_OK;
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status write_lines(struct verbatim_writer *writer,
                                   uint64_t *from, uint64_t limits, bool *exact,
                                   struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(0, *from);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    status = wal_entry_cursor_open(writer->verbatim->session, &options, &cursor,
                                   error);
    for (uint64_t at = *from; status == WAL_OK && *exact && at < limits; at++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            status = write_entry(writer, &entry, exact, error);
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO ||
            status == WAL_ENOTFOUND) {
            *exact = false; /* a conversion omits what cannot be read */
            status = WAL_OK;
        }
        *from = at + 1;
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__verbatim_write(struct wal__verbatim *verbatim,
                                    const struct wal__entry_limits *limits,
                                    bool *exact, struct wal_error *error)
{
    struct verbatim_writer writer = {
        .verbatim = verbatim,
        .output = wal__view_files_output(verbatim->files)};
    struct wal__heap_arena arena;
    enum wal_status status = WAL_OK;
    const char *path;

    *exact = true;
    wal__heap_arena_init(&arena, verbatim->env->heap);
    path = verbatim->dialect->write_ops->path(&verbatim->snapshot->session, 0,
                                              &arena.arena);
    if (path == NULL || arena.has_failed) {
        status = wal__no_memory(error);
    } else if (!writer.output.file(writer.output.ctx, path,
                                   WAL__OUTPUT_LINES)) {
        wal__error_copy(error, &verbatim->files->error);
        status = verbatim->files->status;
    }
    /* An append in place cannot be undone: check first. */
    if (status == WAL_OK && wal__view_files_is_appending(verbatim->files)) {
        status = check_exact(verbatim, limits->entries[0], exact, error);
    }
    if (status == WAL_OK && *exact) {
        status = write_lines(&writer, &verbatim->from, limits->entries[0],
                             exact, error);
    }
    wal__view_files_set_stable(verbatim->files);
    wal__heap_free(verbatim->env->heap, writer.piece);
    wal__heap_arena_deinit(&arena);
    return status;
}
