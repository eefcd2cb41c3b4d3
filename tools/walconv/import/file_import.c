/*
 * file_import.c - import one file as one session.
 *
 * A file continues the session whose lines are its beginning, whatever the
 * ordinal in that session's source; otherwise it becomes a new session.
 *
 * Invariant: importing a file again appends nothing. Importing a file that has
 * grown appends the new lines, and gives the same session as one import of the
 * whole file.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/ids.h"
#include "tools/walconv/import/file_import.h"
#include "tools/walconv/import/session_modified.h"

#define ID_TRIES          9                    /* ids derived from one name */
#define REPLACED_SIZE_MAX ((uint64_t)64 << 20) /* of an opaque file */
#define CHECKED_SIZE_MAX  ((uint64_t)16 << 20) /* of an opaque file */

static int fail(const struct walconv_file *file, enum wal_status status,
                const struct wal_error *error)
{
    progress_clear(file->import->progress);
    return cli_report(file->import->cli, file->name, status, error);
}

static int fail_errno(const struct walconv_file *file)
{
    int error_number = errno;

    progress_clear(file->import->progress);
    return cli_error(file->import->cli, CLI_FAILED, file->name, "%s",
                     error_number == ESTALE ? "became shorter while it was read"
                                            : strerror(error_number));
}

/* The id that the file suggests: its session's id; for a file of a side chain,
 * that and the file's name. NULL: none. The caller frees it. */
static char *preferred_id(const struct walconv_file *file)
{
    const struct walconv_file_probe *probe = &file->probe;
    const char *slash = strrchr(file->path, '/');
    const char *base = slash != NULL ? slash + 1 : file->path;
    const char *dot = strrchr(base, '.');
    int base_size = dot != NULL ? (int)(dot - base) : (int)strlen(base);
    char *id;

    if (probe->session == NULL) {
        return NULL;
    }
    if (probe->has_mainline || !probe->has_sidechain) {
        return cli_copy_text(probe->session, strlen(probe->session));
    }
    id = cli_alloc(strlen(probe->session) + strlen(base) + 2);
    sprintf(id, "%s~%.*s", probe->session, base_size, base);
    return id;
}

/* Creates the session with this id, or returns WAL_EEXISTS. Opens the session
 * if another import has created it from the same source. */
static enum wal_status try_create(struct walconv_file *file,
                                  struct wal_session_options *options,
                                  const char *id, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = file->import->store;
    enum wal_status status;

    options->id = cli_slice(id);
    status = file->copy.origin != NULL
                 ? wal_session_fork(file->copy.origin,
                                    cli_slice(file->copy.fork_point), options,
                                    &file->session, error)
                 : wal_session_create(store, options, &file->session, error);
    if (status != WAL_EEXISTS) {
        file->copy.is_created = status == WAL_OK && file->copy.origin != NULL;
        return status;
    }
    status = wal_session_open(store, options->id, &file->session, error);
    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    if (status == WAL_OK && cli_slice_equal(info.source, options->source)) {
        return WAL_OK;
    }
    wal_session_close(file->session);
    file->session = NULL;
    return status == WAL_OK ? WAL_EEXISTS : status;
}

static enum wal_status try_ids(struct walconv_file *file,
                               struct wal_session_options *options,
                               const char *base, struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char *id = cli_alloc(strlen(base) + 32);

    for (unsigned n = 1; n <= ID_TRIES && status == WAL_EEXISTS; n++) {
        sprintf(id, n == 1 ? "%s" : "%s~%u", base, n);
        status = try_create(file, options, id, error);
    }
    free(id);
    return status;
}

static enum wal_status create_session(struct walconv_file *file,
                                      struct wal_error *error)
{
    const struct walconv_file_probe *probe = &file->probe;
    struct wal_session_options options = {.struct_size = sizeof(options)};
    enum wal_status status = WAL_EEXISTS;
    char *id = preferred_id(file);
    char *metadata = NULL;
    char hashed[32];

    file->source = file->free_source;
    file->free_source = NULL;
    options.source = cli_slice(file->source);
    options.cwd = cli_slice(probe->cwd);
    if (probe->created != NULL) {
        metadata =
            walconv_json_object("created", cli_slice(probe->created), "");
        options.metadata = cli_slice(metadata);
    }
    if (id != NULL) {
        status = try_ids(file, &options, id, error);
    }
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        snprintf(hashed, sizeof(hashed), "file-%016" PRIx64,
                 cli_hash(options.source));
        status = try_ids(file, &options, hashed, error);
    }
    free(metadata);
    free(id);
    return status;
}

/* Reports the issues of known lines again. */
static int repeat_issues(struct walconv_file *file,
                         struct walconv_reader *reader)
{
    struct walconv_lines *lines = &file->lines;
    struct walconv_piece piece;
    int got = 1;

    for (size_t i = 0; got > 0 && i < lines->match.issue_count; i++) {
        const struct cli_line_issue *issue = &lines->match.issues[i];

        walconv_reader_seek(reader, issue->offset, issue->line - 1);
        got = walconv_reader_next(reader, &piece);
        if (got > 0) {
            walconv_lines_repeat_issues(lines, &piece, issue->sequence);
        }
    }
    return got < 0 ? got : 0;
}

/* Imports the lines after the session's entries. */
static int import_new_lines(struct walconv_file *file,
                            struct walconv_reader *reader, bool is_opaque,
                            enum wal_status *status, struct wal_error *error)
{
    struct walconv_lines *lines = &file->lines;
    struct walconv_piece piece;
    int got = 1;

    walconv_reader_seek(reader, lines->match.bytes,
                        is_opaque ? 0 : lines->match.lines);
    while (*status == WAL_OK &&
           (got = walconv_reader_next(reader, &piece)) > 0) {
        *status = is_opaque ? walconv_lines_add_opaque(lines, &piece, error)
                            : walconv_lines_add(lines, &piece, error);
        progress_update(file->import->progress, file->name, reader->offset,
                        file->size, "bytes");
    }
    file->count = reader->line;
    if (file->count < lines->known_lines) {
        file->count = lines->known_lines;
    }
    return got;
}

static enum wal_status flush_batch(struct walconv_file *file,
                                   struct wal_error *error)
{
    struct walconv_batch *batch = &file->lines.batch;
    enum wal_status status = walconv_batch_flush(batch, error);

    if (status == WAL_OK && batch->appended > 0) {
        status = wal_sync(file->import->store, error);
    }
    return status;
}

/* Reports JSON errors of an opaque file, unless it is too large for memory. The
 * file is read, not mapped: a map raises SIGBUS when another process truncates
 * the file. */
static int check_opaque(struct walconv_file *file)
{
    size_t size = (size_t)file->size;
    char *data;
    size_t got = 0;
    ssize_t last_read = 1;

    if (file->size == 0 || file->size > CHECKED_SIZE_MAX) {
        return 0;
    }
    data = cli_alloc(size);
    while (got < size && last_read > 0) {
        last_read = pread(file->fd, data + got, size - got, (off_t)got);
        got += last_read > 0 ? (size_t)last_read : 0;
    }
    if (last_read >= 0) {
        walconv_lines_check_opaque(&file->lines, data, got);
    }
    free(data);
    return last_read < 0 ? -1 : 0;
}

/* Imports an opaque file in pieces. */
static int import_opaque(struct walconv_file *file)
{
    struct walconv_lines *lines = &file->lines;
    struct wal_error error = CLI_ERROR_INIT;
    struct walconv_reader reader;
    enum wal_status status = WAL_OK;
    int got;

    walconv_reader_init(&reader, file->fd, file->size, true, 0);
    got = import_new_lines(file, &reader, true, &status, &error);
    walconv_reader_deinit(&reader);
    if (got < 0) {
        return fail_errno(file);
    }
    if (status == WAL_OK) {
        status = flush_batch(file, &error);
    }
    if (status != WAL_OK) {
        return fail(file, status, &error);
    }
    if (walconv_count_lines(file->fd, file->size, &file->count) < 0 ||
        check_opaque(file) < 0) {
        return fail_errno(file);
    }
    if (lines->batch.appended == 0) {
        lines->known_lines = file->count;
    }
    return CLI_OK;
}

static int import_lines(struct walconv_file *file)
{
    struct walconv_lines *lines = &file->lines;
    struct wal_error error = CLI_ERROR_INIT;
    struct walconv_reader reader;
    enum wal_status status = WAL_OK;
    int got;

    walconv_reader_init(&reader, file->fd, file->size, false, 0);
    got = repeat_issues(file, &reader);
    if (got == 0) {
        got = import_new_lines(file, &reader, false, &status, &error);
    }
    walconv_reader_deinit(&reader);
    if (got < 0) {
        return fail_errno(file);
    }
    if (status == WAL_OK) {
        status = walconv_lines_finish(lines, &error);
    }
    if (status == WAL_OK) {
        status = flush_batch(file, &error);
    }
    return status == WAL_OK ? CLI_OK : fail(file, status, &error);
}

static int import_content(struct walconv_file *file)
{
    const struct cli_match *match = &file->lines.match;
    bool is_opaque =
        match->entries > 0 ? match->is_opaque : file->probe.is_opaque;

    return is_opaque ? import_opaque(file) : import_lines(file);
}

static int probe(struct walconv_file *file, const struct wal__dialect *forced)
{
    if (walconv_file_probe(file->fd, file->size, forced, &file->probe) < 0) {
        return fail_errno(file);
    }
    file->lines.dialect = file->probe.dialect;
    file->lines.probe = &file->probe;
    file->lines.file_size = file->size;
    return CLI_OK;
}

static int import_stream(struct walconv_file *file,
                         const struct wal__dialect *dialect)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (probe(file, dialect) != CLI_OK) {
        return CLI_FAILED;
    }
    status = walconv_lines_begin(&file->lines, file->session, &error);
    return status == WAL_OK ? import_content(file) : fail(file, status, &error);
}

/* *has_other_content: the session has anything that is not from the file. */
static enum wal_status has_other_content(const struct walconv_file *file,
                                         bool *has_other_content,
                                         struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    bool is_modified = false;
    enum wal_status status =
        walconv_is_modified(file->session, &is_modified, error);

    if (status == WAL_OK) {
        status = wal_session_get_info(file->session, &info, error);
    }
    *has_other_content = is_modified || file->lines.match.native_count > 0 ||
                         (info.flags & WAL_SESSION_FORK) != 0;
    return status;
}

/* Returns 1 if a probe of the first `known` bytes gives another result than a
 * probe of the file, 0 if not, -1 with errno set. */
static int probe_differs(const struct walconv_file *file, uint64_t known)
{
    struct walconv_file_probe previous = {.end = 0};
    int differs = 0;

    if (file->probe.end <= known) {
        return 0;
    }
    if (walconv_file_probe(file->fd, known, file->import->forced, &previous) <
        0) {
        differs = -1;
    } else if (!walconv_file_probe_equal(&previous, &file->probe)) {
        differs = 1;
    }
    walconv_file_probe_deinit(&previous);
    return differs;
}

/* Returns 1 if the last entry's line continues in a way that an entry cannot, 0
 * if not, -1 with errno set. */
static int last_line_differs(const struct walconv_file *file)
{
    const struct cli_match *match = &file->lines.match;
    struct walconv_reader reader;
    struct walconv_piece piece;
    int got;

    if (match->entries == 0 || match->has_newline) {
        return 0;
    }
    if (match->is_opaque) {
        return file->size <= REPLACED_SIZE_MAX &&
               match->bytes % WALCONV_PIECE_SIZE != 0;
    }
    walconv_reader_init(&reader, file->fd, file->size, false, match->bytes);
    got = walconv_reader_next(&reader, &piece);
    if (got > 0) {
        got = walconv_is_rest(&piece) ? 0 : 1;
    }
    walconv_reader_deinit(&reader);
    return got;
}

/* Deletes the session. Its source becomes free for the new session. */
static enum wal_status delete_session(struct walconv_file *file,
                                      struct wal_error *error)
{
    struct cli_source source;
    enum wal_status status = wal_session_delete(file->session, error);

    if (status != WAL_OK) {
        return status;
    }
    wal_session_close(file->session);
    file->session = NULL;
    cli_match_deinit(&file->lines.match);
    file->lines.match = (struct cli_match){.entries = 0};
    if (cli_source_parse(cli_slice(file->source), &source)) {
        if (strcmp(source.dialect, file->probe.dialect->name) == 0) {
            free(file->free_source);
            file->free_source = file->source;
            file->source = NULL;
        }
        cli_source_deinit(&source);
    }
    free(file->source);
    file->source = NULL;
    return WAL_OK;
}

/*
 * The file may have been incomplete when it was imported: what was read then
 * can differ from the beginning of what is read now. Its session is created
 * again, unless it was used otherwise.
 */
static enum wal_status delete_outdated_session(struct walconv_file *file,
                                               struct wal_error *error)
{
    uint64_t known = file->lines.match.bytes + file->lines.match.partial_size;
    bool is_shared = false;
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
        error->status = WAL_EIO;
        error->sys_errno = errno;
        snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
        return WAL_EIO;
    }
    return differs ? delete_session(file, error) : WAL_OK;
}

/* Writes the lines of a copy to its new session. If they differ from the file,
 * replaces the session by one that is not a copy. */
static enum wal_status write_copy(struct walconv_file *file,
                                  struct wal_error *error)
{
    bool must_delete = false;
    enum wal_status status = walconv_copy_write(
        &file->copy, file->session, &file->lines.match, &must_delete, error);

    if (status != WAL_OK || !must_delete) {
        return status;
    }
    walconv_copy_deinit(&file->copy);
    status = delete_session(file, error);
    return status == WAL_OK ? create_session(file, error) : status;
}

/* Finds the file's session, or creates it. */
static enum wal_status find_or_create_session(struct walconv_file *file,
                                              struct wal_error *error)
{
    bool must_delete = false;
    enum wal_status status = walconv_file_find(file, error);

    if (status != WAL_OK) {
        return status;
    }
    if (file->session != NULL) {
        status = delete_outdated_session(file, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    file->copy = walconv_copy_init(file->import->store, file->fd, file->size,
                                   &file->probe);
    status = walconv_copy_detect(&file->copy, file->session, &file->lines.match,
                                 &must_delete, error);
    if (status == WAL_OK && must_delete) {
        status = delete_session(file, error);
    }
    if (status == WAL_OK && file->session == NULL) {
        status = create_session(file, error);
    }
    if (status == WAL_OK && file->copy.origin != NULL &&
        !file->copy.is_created) {
        error->status = WAL_EBUSY;
        snprintf(error->text, sizeof(error->text),
                 "another import is writing this file's session; "
                 "import the file again");
        return WAL_EBUSY;
    }
    if (status != WAL_OK || !file->copy.is_created) {
        walconv_copy_deinit(&file->copy);
        return status;
    }
    return write_copy(file, error);
}

static int import_file(struct walconv_file *file)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (probe(file, file->import->forced) != CLI_OK) {
        return CLI_FAILED;
    }
    file->lines.sets_title = true;
    file->lines.store = file->import->store;
    status = find_or_create_session(file, &error);
    if (status == WAL_OK) {
        status = walconv_lines_begin(&file->lines, file->session, &error);
    }
    return status == WAL_OK ? import_content(file) : fail(file, status, &error);
}

int walconv_import_file(const struct walconv_import *import, int fd,
                        const char *name, const char *path)
{
    struct walconv_file file = {
        .import = import, .fd = fd, .name = name, .path = path};
    struct stat stat;
    int code;

    if (fstat(fd, &stat) != 0) {
        return fail_errno(&file);
    }
    file.size = (uint64_t)stat.st_size;
    code = import_file(&file);
    if (code == CLI_OK) {
        walconv_file_print(&file);
    }
    wal_session_close(file.session);
    walconv_copy_deinit(&file.copy);
    walconv_lines_deinit(&file.lines);
    walconv_file_probe_deinit(&file.probe);
    free(file.source);
    free(file.free_source);
    return code;
}

int walconv_import_stream(const struct walconv_import *import, int fd,
                          const char *name, struct wal_session *session,
                          const struct wal__dialect *dialect, uint32_t stream)
{
    struct walconv_file file = {.import = import,
                                .fd = fd,
                                .name = name,
                                .path = name,
                                .session = session};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    struct stat stat;
    int code;

    if (fstat(fd, &stat) != 0) {
        return fail_errno(&file);
    }
    file.size = (uint64_t)stat.st_size;
    file.lines.stream = stream;
    status = cli_source_match(import->store, session, stream, fd,
                              &file.lines.match, &error);
    code = status == WAL_OK ? import_stream(&file, dialect)
                            : fail(&file, status, &error);
    if (code == CLI_OK) {
        walconv_file_print(&file);
    }
    walconv_lines_deinit(&file.lines);
    walconv_file_probe_deinit(&file.probe);
    return code;
}
