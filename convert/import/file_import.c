/*
 * file_import.c - imports one file as one session (file_import.h).
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import/file_import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/import/import_time.h"
#include "convert/import/session_modified.h"
#include "convert/import/source_file.h"
#include "engine/base/error.h"

#define REPLACED_SIZE_MAX ((uint64_t)64 << 20) /* of an opaque file */
#define CHECKED_SIZE_MAX  ((uint64_t)16 << 20) /* of an opaque file */
#define ATTEMPTS_MAX      10 /* to find a session that others write to */

/* A wal__import_create_fn. Opens the session if another import has created it
 * from the same source. */
static enum wal_status try_create(void *ctx,
                                  struct wal_session_options *options,
                                  struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__import_file *file = ctx;
    struct wal_store *store = file->import->store;
    enum wal_status status;

    status = wal_session_create(store, options, &file->session, error);
    if (status != WAL_EEXISTS) {
        return status;
    }
    status = wal_session_open(store, options->id, &file->session, error);
    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    if (status == WAL_OK && wal__slice_equal(info.source, options->source)) {
        return WAL_OK;
    }
    wal_session_close(file->session);
    file->session = NULL;
    return status == WAL_OK ? WAL_EEXISTS : status;
}

static enum wal_status create_session(struct wal__import_file *file,
                                      struct wal_error *error)
{
    const struct wal__file_probe *probe = &file->probe;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_options options = {.struct_size = sizeof(options)};
    const char *id = wal__import_file_id(file);
    enum wal_status status = WAL_EEXISTS;
    char hashed[32];

    memcpy(file->source, file->free_source, sizeof(file->source));
    options.source = wal__slice_from_text(file->source);
    options.cwd = wal__slice_from_text(probe->cwd);
    options.parent_id = wal__slice_from_text(probe->parent);
    wal__import_describe(file->import, probe->created, &options);
    if (file->import->arena.has_failed) {
        return wal__no_memory(error);
    }
    if (id != NULL) {
        status = wal__import_try_ids(try_create, file, &options, id, error);
    }
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        snprintf(hashed, sizeof(hashed), "file-%016" PRIx64,
                 wal__source_hash(file->source));
        status = wal__import_try_ids(try_create, file, &options, hashed, error);
    }
    file->has_other_id =
        status == WAL_OK && id != NULL &&
        wal_session_get_info(file->session, &info, NULL) == WAL_OK &&
        !wal__slice_equal(info.id, wal__slice_from_text(id));
    return status;
}

/* Returns the status of a read that returned `got`. */
static enum wal_status check_read(int got, struct wal_error *error)
{
    return got < 0 ? wal__import_errno(error) : WAL_OK;
}

/* Reports the issues of known lines again. */
static enum wal_status repeat_issues(struct wal__import_file *file,
                                     struct wal__line_reader *reader,
                                     struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = WAL_OK;
    struct wal__piece piece;
    int got = 1;

    for (uint32_t i = 0;
         status == WAL_OK && got > 0 && i < lines->match.issue_count; i++) {
        const struct wal__source_issue *issue = &lines->match.issues[i];

        wal__line_reader_seek(reader, issue->offset, issue->line - 1);
        got = wal__line_reader_next(reader, &piece);
        if (got > 0) {
            status = wal__import_lines_repeat_issues(lines, &piece,
                                                     issue->sequence, error);
        }
    }
    return status == WAL_OK ? check_read(got, error) : status;
}

/* Imports the lines after the session's entries. */
static enum wal_status import_new_lines(struct wal__import_file *file,
                                        struct wal__line_reader *reader,
                                        bool is_opaque, struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = WAL_OK;
    struct wal__piece piece;
    int got = 1;

    wal__line_reader_seek(reader, lines->match.bytes,
                          is_opaque ? 0 : lines->match.lines);
    while (status == WAL_OK &&
           (got = wal__line_reader_next(reader, &piece)) > 0) {
        status = is_opaque ? wal__import_lines_add_opaque(lines, &piece, error)
                           : wal__import_lines_add(lines, &piece, error);
        if (status == WAL_OK) {
            status = wal__import_progress(file->import, file->name,
                                          reader->offset, file->size, error);
        }
    }
    file->count = reader->line;
    if (file->count < lines->known_lines) {
        file->count = lines->known_lines;
    }
    return status == WAL_OK ? check_read(got, error) : status;
}

static enum wal_status flush_batch(struct wal__import_file *file,
                                   struct wal_error *error)
{
    struct wal__import_batch *batch = &file->lines.batch;
    enum wal_status status = wal__import_batch_flush(batch, error);

    if (status == WAL_OK && batch->appended > 0) {
        status = wal_sync(file->import->store, error);
    }
    return status;
}

/* Reports JSON errors of an opaque file, unless it is too large for memory. The
 * file is read, not mapped: a map raises SIGBUS when another process truncates
 * the file. */
static enum wal_status check_opaque(struct wal__import_file *file,
                                    struct wal_error *error)
{
    const struct wal__heap *heap = file->import->heap;
    size_t size = (size_t)file->size;
    enum wal_status status;
    char *data;
    size_t got = 0;
    ssize_t last_read = 1;

    if (file->size == 0 || file->size > CHECKED_SIZE_MAX) {
        return WAL_OK;
    }
    data = wal__heap_alloc(heap, size);
    if (data == NULL) {
        return wal__no_memory(error);
    }
    while (got < size && last_read > 0) {
        last_read = pread(file->fd, data + got, size - got, (off_t)got);
        got += last_read > 0 ? (size_t)last_read : 0;
    }
    status = last_read < 0 ? wal__import_errno(error)
                           : wal__import_lines_check_opaque(&file->lines, data,
                                                            got, error);
    wal__heap_free(heap, data);
    return status;
}

/* Imports an opaque file in pieces. */
static enum wal_status import_opaque(struct wal__import_file *file,
                                     struct wal__line_reader *reader,
                                     struct wal_error *error)
{
    struct wal__import_lines *lines = &file->lines;
    enum wal_status status = import_new_lines(file, reader, true, error);

    if (status == WAL_OK) {
        status = flush_batch(file, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__file_count_lines(file->import->heap, file->fd, file->size,
                              &file->count) < 0) {
        return wal__import_errno(error);
    }
    if (lines->batch.appended == 0) {
        lines->known_lines = file->count;
    }
    return check_opaque(file, error);
}

static enum wal_status import_lines(struct wal__import_file *file,
                                    struct wal__line_reader *reader,
                                    struct wal_error *error)
{
    enum wal_status status = repeat_issues(file, reader, error);

    if (status == WAL_OK) {
        status = import_new_lines(file, reader, false, error);
    }
    if (status == WAL_OK) {
        status = wal__import_lines_finish(&file->lines, error);
    }
    return status == WAL_OK ? flush_batch(file, error) : status;
}

/* The session has all lines of the file, and more. */
static enum wal_status count_covered(struct wal__import_file *file,
                                     struct wal_error *error)
{
    if (wal__file_count_lines(file->import->heap, file->fd, file->size,
                              &file->count) < 0) {
        return wal__import_errno(error);
    }
    file->lines.known_lines = file->count;
    return WAL_OK;
}

static enum wal_status import_content(struct wal__import_file *file,
                                      struct wal_error *error)
{
    const struct wal__source_match *match = &file->lines.match;
    bool is_opaque =
        match->entries > 0 ? match->is_opaque : file->probe.is_opaque;
    struct wal__line_reader reader;
    enum wal_status status =
        wal__import_lines_begin(&file->lines, file->session, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__line_reader_init(&reader, file->import->heap, file->fd, file->size,
                          is_opaque, 0);
    status = is_opaque ? import_opaque(file, &reader, error)
                       : import_lines(file, &reader, error);
    wal__line_reader_deinit(&reader);
    return status;
}

static enum wal_status probe(struct wal__import_file *file,
                             const struct wal__dialect *forced,
                             struct wal_error *error)
{
    struct stat stat;

    if (fstat(file->fd, &stat) != 0) {
        return wal__import_errno(error);
    }
    file->size = (uint64_t)stat.st_size;
    if ((file->import->waits_for_newline &&
         wal__source_file_end(file->fd, &file->size) < 0) ||
        wal__file_probe(&file->import->arena, file->fd, file->size, forced,
                        &file->probe) < 0) {
        return wal__import_errno(error);
    }
    file->lines.arena = &file->import->arena;
    file->lines.name = file->name;
    file->lines.dialect = file->probe.dialect;
    file->lines.probe = &file->probe;
    file->lines.file_size = file->size;
    return wal__import_check_memory(file->import, error);
}

/* *has_other_content: the session has anything that is not from the file. */
static enum wal_status has_other_content(const struct wal__import_file *file,
                                         bool *has_other_content,
                                         struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    bool is_modified = false;
    enum wal_status status =
        wal__session_is_modified(file->session, &is_modified, error);

    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    *has_other_content = is_modified || file->lines.match.native_count > 0 ||
                         (info.flags & WAL_SESSION_FORK) != 0;
    return status;
}

/* Returns 1 if a probe of the first `known` bytes gives another result than a
 * probe of the file, 0 if not, -1 with errno set. */
static int probe_differs(const struct wal__import_file *file, uint64_t known)
{
    struct wal__file_probe previous = {.end = 0};
    int differs = 0;

    if (file->probe.end <= known) {
        return 0;
    }
    if (wal__file_probe(&file->import->arena, file->fd, known,
                        file->import->forced, &previous) < 0) {
        differs = -1;
    } else if (!wal__file_probe_equal(&previous, &file->probe)) {
        differs = 1;
    }
    return differs;
}

/* Returns 1 if the last entry's line continues in a way that an entry cannot, 0
 * if not, -1 with errno set. */
static int last_line_differs(const struct wal__import_file *file)
{
    const struct wal__source_match *match = &file->lines.match;
    struct wal__line_reader reader;
    struct wal__piece piece;
    int got;

    if (match->entries == 0 || match->has_newline) {
        return 0;
    }
    if (match->is_opaque) {
        return file->size <= REPLACED_SIZE_MAX &&
               match->bytes % WAL__PIECE_SIZE != 0;
    }
    wal__line_reader_init(&reader, file->import->heap, file->fd, file->size,
                          false, match->bytes);
    got = wal__line_reader_next(&reader, &piece);
    if (got > 0) {
        got = wal__line_is_rest(&piece) ? 0 : 1;
    }
    wal__line_reader_deinit(&reader);
    return got;
}

/*
 * Deletes the session, of which only an import wrote. Its source becomes free
 * for the new session. file->seen: its last_sequence before what made the
 * caller delete it was read. WAL_ECONFLICT: others wrote to it, and it stays.
 */
static enum wal_status delete_session(struct wal__import_file *file,
                                      struct wal_error *error)
{
    const struct wal_session_remove_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_SESSION_REMOVE_EXPECT,
        .expected_sequence = file->seen};
    struct wal__source source;
    enum wal_status status = wal_session_remove(file->session, &options, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__import_file_forget(file);
    if (wal__source_parse(wal__slice_from_text(file->source), &source) &&
        strcmp(source.dialect, file->probe.dialect->name) == 0) {
        memcpy(file->free_source, file->source, sizeof(file->source));
    }
    file->source[0] = '\0';
    return WAL_OK;
}

/*
 * The file may have been incomplete when it was imported: what was read then
 * can differ from the beginning of what is read now. Its session is created
 * again, unless it was used otherwise.
 */
static enum wal_status delete_outdated_session(struct wal__import_file *file,
                                               struct wal_error *error)
{
    uint64_t known = file->lines.match.bytes + file->lines.match.partial_size;
    bool is_shared = false;
    uint64_t others = 0;
    enum wal_status status;
    int differs;

    if (known >= file->size) {
        return WAL_OK;
    }
    status = has_other_content(file, &is_shared, error);
    if (status != WAL_OK || is_shared) {
        return status;
    }
    differs = probe_differs(file, known);
    if (differs == 0) {
        differs = last_line_differs(file);
    }
    if (differs < 0) {
        return wal__import_errno(error);
    }
    status = wal__import_check_memory(file->import, error);
    if (status != WAL_OK) {
        return status;
    }
    if (differs) {
        status = wal__session_count_others(file->session, &others, error);
    }
    return differs && status == WAL_OK && others == 0
               ? delete_session(file, error)
               : status;
}

/* Finds the file's session, or creates it. WAL_ECONFLICT: others wrote to a
 * session that would have been created again. */
static enum wal_status try_find_or_create(struct wal__import_file *file,
                                          struct wal_error *error)
{
    enum wal_status status = wal__import_file_find(file, error);

    if (status == WAL_OK && file->session != NULL && !file->is_covered) {
        status = delete_outdated_session(file, error);
    }
    return status == WAL_OK && file->session == NULL
               ? create_session(file, error)
               : status;
}

/* After a conflict the session has what others appended: whether the file
 * continues it, or becomes another one, is decided anew. */
static enum wal_status find_or_create_session(struct wal__import_file *file,
                                              struct wal_error *error)
{
    enum wal_status status = WAL_ECONFLICT;

    for (unsigned i = 0; i < ATTEMPTS_MAX && status == WAL_ECONFLICT; i++) {
        wal__import_file_forget(file);
        status = try_find_or_create(file, error);
    }
    return status;
}

/* ------------------------------------------------------------ reports --- */

static enum wal_status report(const struct wal__import_file *file,
                              enum wal_import_kind kind,
                              struct wal_error *error)
{
    const struct wal__import_lines *lines = &file->lines;
    struct wal_import_report report = {
        .kind = kind,
        .path = wal__slice_from_text(file->name),
        .dialect = wal__slice_from_text(file->probe.dialect->name),
        .lines = file->count,
        /* a partial line does not count */
        .appended = lines->batch.appended - (lines->has_partial_line ? 1 : 0),
        .duplicates = lines->known_lines + lines->batch.duplicates,
        .issues = lines->issues,
        .issue_count = lines->issue_count,
        .flags = file->has_other_id ? WAL_IMPORT_OTHER_ID : 0,
        .bytes = file->size,
    };

    file->import->result.bytes += file->size;
    return wal__import_report(file->import, &report, file->session, error);
}

static void deinit(struct wal__import_file *file)
{
    wal__import_lines_deinit(&file->lines);
    wal__heap_free(file->import->heap, file);
}

static struct wal__import_file *create(struct wal__import *import, int fd,
                                       const char *name)
{
    struct wal__import_file *file =
        wal__heap_zalloc(import->heap, sizeof(*file));

    if (file != NULL) {
        file->import = import;
        file->fd = fd;
        file->name = name;
    }
    return file;
}

enum wal_status wal__import_file(struct wal__import *import, int fd,
                                 const char *name, const char *path,
                                 struct wal_error *error)
{
    struct wal__import_file *file = create(import, fd, name);
    enum wal_status status;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->path = path;
    file->lines.sets_title = true;
    file->lines.fd = fd;
    status = wal__source_file_lock(import, fd, name, error);
    if (status == WAL_OK) {
        status = probe(file, import->forced, error);
    }
    if (status == WAL_OK) {
        status = find_or_create_session(file, error);
    }
    if (status == WAL_OK) {
        status = file->is_covered ? count_covered(file, error)
                                  : import_content(file, error);
    }
    if (status == WAL_OK) {
        status = report(file, WAL_IMPORT_FILE, error);
    }
    wal_session_close(file->session);
    deinit(file);
    return status;
}

enum wal_status wal__import_stream(struct wal__import *import, int fd,
                                   const char *name,
                                   struct wal_session *session,
                                   const struct wal__dialect *dialect,
                                   uint32_t stream, struct wal_error *error)
{
    struct wal__import_file *file = create(import, fd, name);
    enum wal_status status;

    if (file == NULL) {
        return wal__no_memory(error);
    }
    file->session = session;
    file->lines.stream = stream;
    status = wal__source_compare(import->heap, import->store, session, stream,
                                 fd, &file->lines.match, error);
    if (status == WAL_OK) {
        status = probe(file, dialect, error);
    }
    if (status == WAL_OK) {
        status = import_content(file, error);
    }
    if (status == WAL_OK) {
        status = report(file, WAL_IMPORT_STREAM, error);
    }
    deinit(file);
    return status;
}
