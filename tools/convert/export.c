/*
 * export.c - write imported files back, and sessions in other dialects.
 *
 * A source is written to its path below the output directory. Sources that share a path are written
 * below numbered folders, in the order in which they were imported.
 *
 * Invariant: a file with content that differs from the session's is reported and not changed. A
 * file that continues after the session's content is not changed either; nor is one of a session
 * directory whose content is not a version of it in the session.
 */
#include "tools/convert/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/model/dialect.h"
#include "convert/model/model_member.h"
#include "convert/source/session_dir_files.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/system.h"
#include "tools/cli/verbs.h"
#include "tools/secrets/secrets.h"

/* --- the file of a session ---------------------------------------------- */

struct sink {
    FILE *stream;                    /* to write to; NULL: compare */
    struct wal__file_compare window; /* the file to compare with */
    uint64_t size;                   /* of that file */
    uint64_t position;               /* bytes written or compared */
    uint64_t old_size;               /* what is after it is new, and written */
    bool is_open;                    /* the last line has no newline */
    bool differs;                    /* the file differs */
};

/* Writes the bytes, or compares those below the size of the file. */
static bool sink_write(void *ctx, const void *data, size_t size)
{
    struct sink *sink = ctx;
    uint64_t common = size;

    if (sink->stream != NULL) {
        size_t old =
            sink->position < sink->old_size ? (size_t)(sink->old_size - sink->position) : 0;

        if (old < size) {
            fwrite((const char *)data + old, 1, size - old, sink->stream);
        }
    } else if (sink->position < sink->size) {
        if (common > sink->size - sink->position) {
            common = sink->size - sink->position;
        }
        sink->differs =
            !wal__file_compare_bytes(&sink->window, sink->position, data, (size_t)common);
    }
    sink->position += size;
    return !sink->differs;
}

/* Passes one line to the sink. An unreadable line is omitted as a whole. */
static enum wal_status write_line(const struct convert_source *source,
                                  struct wal__source_lines *lines, struct sink *sink,
                                  const struct wal_entry *entry, struct wal_error *error)
{
    enum wal_status status = wal__source_lines_check(lines, source->store, entry, error);
    char prefix[WAL__LINE_PREFIX_SIZE];
    size_t size = wal__source_line_prefix(entry, sink->is_open, prefix);

    if (status == WAL_OK && (size == 0 || sink_write(sink, prefix, size))) {
        status =
            wal__source_lines_read_payload(lines, source->store, entry, sink_write, sink, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    sink->is_open = !wal__source_line_has_newline(entry) && !wal__source_line_is_opaque(entry);
    if (wal__source_line_has_newline(entry) && !sink->differs) {
        (void)sink_write(sink, "\n", 1);
    }
    return WAL_OK;
}

/* Passes every line of the session to the sink. */
static int write_lines(const struct convert_source *source, struct sink *sink,
                       struct convert_outcome *outcome)
{
    struct convert_outcome counts = {.added = 0};
    struct wal__source_lines lines;
    struct wal_entry entry;
    enum wal_status status = wal__source_lines_open(&lines, NULL, source->session, source->stream,
                                                    source->file, source->cli->error);
    int code = CLI_OK;

    if (status != WAL_OK) {
        return cli_report(source->cli, source->name, status);
    }
    while (!sink->differs &&
           (status = wal__source_lines_next(&lines, &entry, source->cli->error)) != WAL_END) {
        if (status == WAL_OK && (entry.flags & WAL_ENTRY_REDACTED) != 0) {
            counts.redacted++;
        } else if (status == WAL_OK) {
            status = write_line(source, &lines, sink, &entry, source->cli->error);
            counts.added += status == WAL_OK && sink->position > sink->old_size ? 1 : 0;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            counts.damaged++;
            code = CLI_NEGATIVE;
            continue;
        }
        if (status != WAL_OK) {
            code = cli_report(source->cli, source->name, status);
            break;
        }
    }
    /* The record of the remaining copied lines is lost. */
    if (status == WAL_END && lines.is_copy && !lines.copy.is_complete) {
        counts.damaged++;
        code = CLI_NEGATIVE;
    }
    counts.native_count = lines.native_count;
    wal__source_lines_close(&lines);
    *outcome = counts;
    return code;
}

int convert_source_compare(const struct convert_source *source, enum convert_file_state *state,
                           uint64_t *size, struct convert_outcome *outcome)
{
    struct sink sink = {.stream = NULL};
    const char *name = NULL;
    struct stat stat;
    int directory = convert_open_parent(source->root, source->path, true, &name);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int code = CLI_OK;
    int fd;

    *size = 0;
    fd = directory < 0 ? -1 : openat(directory, name, flags);
    *state = errno == ENOENT && fd < 0 ? CONVERT_FILE_MISSING : CONVERT_FILE_DIFFERENT;
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0) {
        return CLI_OK;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        sink.size = (uint64_t)stat.st_size;
        sink.old_size = sink.size;
        sink.window.fd = fd;
        code = write_lines(source, &sink, outcome);
        wal__file_compare_deinit(&sink.window);
        if (!sink.differs) {
            *state = sink.position > sink.size ? CONVERT_FILE_PREFIX : CONVERT_FILE_COMPLETE;
        }
        *size = sink.size;
    }
    close(fd);
    return code;
}

int convert_source_count(const struct convert_source *source, struct convert_outcome *outcome)
{
    struct sink sink = {.stream = NULL};

    return write_lines(source, &sink, outcome);
}

static int fail(const struct cli *cli, const char *name, int error_number)
{
    return cli_error(cli, CLI_FAILED, name, "%s",
                     error_number == ELOOP || error_number == ENOTDIR
                         ? "a part of the path is not a directory"
                         : strerror(error_number));
}

/* Creates the file of a path below the output directory. *directory and *name are for the end.
 * Returns 0 or an errno value. */
static int begin_file(struct cli_atomic_file *file, const char *root, const char *path,
                      int *directory, const char **name)
{
    int error_number;

    *directory = convert_open_parent(root, path, false, name);
    if (*directory < 0) {
        return errno;
    }
    error_number = cli_atomic_file_create(file, *directory);
    if (error_number != 0) {
        close(*directory);
    }
    return error_number;
}

/* Sets the time of the last change; a file without it is complete too. */
static void set_time(FILE *stream, int64_t ms)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)},
    };

    if (ms > 0 && fflush(stream) == 0) {
        (void)futimens(fileno(stream), times);
    }
}

static int fail_changed(const struct convert_source *source, struct convert_outcome *outcome)
{
    outcome->is_rejected = true;
    return cli_error(source->cli, CLI_NEGATIVE, source->name,
                     "was changed meanwhile; run it again");
}

/* Creates the file. With damage, what is readable is written. */
static int create_file(const struct convert_source *source, int64_t modified_ms,
                       struct convert_outcome *outcome)
{
    struct cli_atomic_file file;
    struct sink sink = {.old_size = 0};
    const char *name = NULL;
    int directory;
    int error_number = begin_file(&file, source->root, source->path, &directory, &name);
    bool is_kept;
    int code;

    if (error_number != 0) {
        return fail(source->cli, source->name, error_number);
    }
    file.is_new = true;
    sink.stream = file.stream;
    code = write_lines(source, &sink, outcome);
    is_kept = code <= CLI_NEGATIVE;
    set_time(file.stream, modified_ms);
    error_number = cli_atomic_file_commit(&file, name, true, is_kept ? 0 : ECANCELED);
    close(directory);
    if (error_number == EEXIST) {
        return fail_changed(source, outcome);
    }
    return !is_kept || error_number == 0 ? code : fail(source->cli, source->name, error_number);
}

/* Writes the lines to the file, which ends after old_size bytes. Returns an errno value, or 0. */
static int append_lines(const struct convert_source *source, FILE *stream, uint64_t old_size,
                        int64_t modified_ms, int *code, struct convert_outcome *outcome)
{
    struct sink sink = {.stream = stream, .old_size = old_size};
    int error_number;
    off_t end;

    errno = 0;
    *code = write_lines(source, &sink, outcome);
    if (fflush(stream) == 0 && !ferror(stream) && wal__system_sync_whole(fileno(stream)) == 0) {
        set_time(stream, modified_ms);
        return 0;
    }
    error_number = errno != 0 ? errno : EIO;
    end = lseek(fileno(stream), 0, SEEK_END);
    if (end >= 0 && (uint64_t)end <= sink.position) {
        (void)!ftruncate(fileno(stream), (off_t)old_size); /* no other program has appended */
    }
    return error_number;
}

/* Appends what the file lacks, in place: its client may have it open, and what that appends
 * meanwhile is not lost. */
static int extend_file(const struct convert_source *source, uint64_t old_size, int64_t modified_ms,
                       struct convert_outcome *outcome)
{
    const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const char *name = NULL;
    struct stat found;
    int directory = convert_open_parent(source->root, source->path, true, &name);
    int fd = directory < 0 ? -1 : openat(directory, name, flags);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "a");
    int error_number = stream == NULL || fstat(fd, &found) != 0 ? errno : 0;
    int code = CLI_OK;

    if (error_number == 0 && (!S_ISREG(found.st_mode) || (uint64_t)found.st_size != old_size)) {
        code = fail_changed(source, outcome);
    } else if (error_number == 0) {
        error_number = append_lines(source, stream, old_size, modified_ms, &code, outcome);
    }
    if (stream != NULL) {
        (void)fclose(stream);
    }
    if (directory >= 0) {
        close(directory);
    }
    return error_number == 0 ? code : fail(source->cli, source->name, error_number);
}

int convert_source_write(const struct convert_source *source, struct convert_outcome *outcome)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    int64_t modified_ms = source->modified_ms;
    enum convert_file_state state;
    uint64_t size;
    int code;

    outcome->is_rejected = true;
    if (!convert_path_is_beneath(source->path)) {
        return cli_error(source->cli, CLI_NEGATIVE, source->name,
                         "leads out of the output directory; not written");
    }
    code = convert_source_compare(source, &state, &size, outcome);
    if (code > CLI_NEGATIVE) {
        return code;
    }
    if (state == CONVERT_FILE_DIFFERENT) {
        outcome->is_rejected = true;
        return cli_error(source->cli, CLI_NEGATIVE, source->name,
                         "exists with other content; not changed");
    }
    outcome->is_rejected = false;
    if (state == CONVERT_FILE_COMPLETE || code != CLI_OK) {
        return code;
    }
    if (modified_ms == 0 && wal_session_get_info(source->session, &info, NULL) == WAL_OK) {
        modified_ms = info.updated_ms; /* clients sort by it */
    }
    return state == CONVERT_FILE_MISSING ? create_file(source, modified_ms, outcome)
                                         : extend_file(source, size, modified_ms, outcome);
}

int convert_source_print(const struct convert_source *source, struct convert_outcome *outcome)
{
    struct sink sink = {.stream = stdout};

    return write_lines(source, &sink, outcome);
}

/* --- the files of a session directory ----------------------------------- */

struct dir_export {
    const struct convert_source *source;
    const struct wal__dialect *dialect;
    struct wal__session_dir_files files;
    struct convert_outcome *outcome;
    char *root; /* below the output directory, ends with a slash; or empty */
};

/* The existing file of a path. */
struct existing_file {
    char *bytes;
    size_t size;
    bool is_file;
    bool is_missing;
};

/* Returns the path of a stream's file, or the root if the dialect has no such stream. NULL: the
 * path is not that of a session directory. The caller frees the result. */
static char *dir_file_path(const char *path, const struct wal__dialect *dialect, uint32_t stream)
{
    const char *end = wal__session_dir_root_end(path);
    const char *name = wal__session_dir_stream_path(dialect, stream);
    size_t size = end != NULL ? (size_t)(end - path) : 0;

    if (end == NULL) {
        return NULL;
    }
    /* The root "." is the output directory itself, or its numbered folder. */
    if (size >= 1 && path[size - 1] == '.' && (size == 1 || path[size - 2] == '/')) {
        size--;
    } else {
        size++;
    }
    return cli_format("%.*s%s", (int)size, path, name != NULL ? name : "");
}

static void read_existing(const char *root, const char *path, struct existing_file *existing)
{
    const char *name = NULL;
    int directory = convert_open_parent(root, path, true, &name);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = directory < 0 ? -1 : openat(directory, name, flags);
    struct stat stat;

    *existing = (struct existing_file){.is_missing = fd < 0 && errno == ENOENT};
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        size_t done = 0;
        ssize_t got = 1;
        existing->size = (size_t)stat.st_size;
        existing->bytes = cli_alloc(existing->size + 1);
        while (done < existing->size && got > 0) {
            got = read(fd, existing->bytes + done, existing->size - done);
            done += got > 0 ? (size_t)got : 0;
        }
        existing->is_file = done == existing->size;
    }
    close(fd);
}

static bool has_content(const struct existing_file *existing, struct wal_slice bytes)
{
    struct wal_slice found = {existing->bytes, existing->size};

    return existing->is_file && cli_slice_equal(found, bytes);
}

/* Returns true if the existing content is an earlier version of the file. */
static bool is_older_version(struct dir_export *dir_export, struct wal_slice key,
                             const struct existing_file *existing)
{
    bool is_found = false;

    for (size_t i = 0; !is_found && i < dir_export->files.count; i++) {
        const struct wal__session_dir_version *version = &dir_export->files.versions[i];
        struct wal_slice bytes;
        char *memory = NULL;
        if (cli_slice_equal(version->path, key) &&
            wal__session_dir_files_get(&dir_export->files, version, &bytes, &memory, NULL) ==
                WAL_OK) {
            is_found = has_content(existing, bytes);
        }
        wal__heap_free(&wal__heap_libc, memory);
    }
    return is_found;
}

static bool is_older(struct dir_export *dir_export, struct wal_slice key,
                     const struct existing_file *existing)
{
    struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_DOC_CURSOR_HISTORY, .prefix = key};
    struct wal_doc_cursor *docs = NULL;
    bool is_found = false;
    struct wal_doc doc;
    enum wal_status status;

    status = wal_doc_cursor_open(dir_export->source->store, dir_export->source->session, &options,
                                 &docs, NULL);
    while (status == WAL_OK && !is_found) {
        doc = (struct wal_doc)WAL_INIT(wal_doc);
        status = wal_doc_cursor_next(docs, &doc, NULL);
        is_found = status == WAL_OK && (doc.flags & WAL_DOC_DELETE) == 0 &&
                   cli_slice_equal(doc.key, key) && has_content(existing, doc.value);
    }
    wal_doc_cursor_close(docs);
    return is_found || is_older_version(dir_export, key, existing);
}

static int replace_file(struct dir_export *dir_export, const char *path, struct wal_slice bytes)
{
    const struct convert_source *source = dir_export->source;
    struct cli_atomic_file file;
    const char *name = NULL;
    int directory;
    int error_number = begin_file(&file, source->root, path, &directory, &name);

    if (error_number == 0) {
        fwrite(bytes.data, 1, (size_t)bytes.size, file.stream);
        dir_export->outcome->added++;
        error_number = cli_atomic_file_commit(&file, name, true, 0);
        close(directory);
    }
    return error_number == 0 ? CLI_OK : fail(source->cli, path, error_number);
}

/* Writes the file next to the session's that the session keeps, if it does. */
static int write_sidecar(const struct convert_source *source)
{
    struct convert_outcome outcome = {.added = 0}; /* not of lines */
    struct dir_export one = {.source = source, .outcome = &outcome};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct existing_file existing = {.bytes = NULL};
    char path[WAL__CLIENT_BELOW_SIZE];
    const struct wal__client *client;
    struct wal__source parsed;
    struct wal__json_span sidecar;
    int code = CLI_OK;

    if (wal_session_get_info(source->session, &info, NULL) != WAL_OK ||
        !wal__source_parse(info.source, &parsed)) {
        return CLI_OK;
    }
    sidecar = wal__metadata_sidecar(
        (struct wal__json_span){info.metadata.data, (size_t)info.metadata.size});
    client = wal__client_of_source(parsed.dialect, parsed.path, NULL);
    if (sidecar.size == 0 || client == NULL || !wal__client_sidecar(client, source->path, path)) {
        return CLI_OK;
    }
    read_existing(source->root, path, &existing);
    if (existing.is_missing) {
        code = replace_file(&one, path, (struct wal_slice){sidecar.data, sidecar.size});
    } else if (!has_content(&existing, (struct wal_slice){sidecar.data, sidecar.size})) {
        code = cli_error(source->cli, CLI_NEGATIVE, path, "exists with other content; not changed");
    }
    free(existing.bytes);
    return code;
}

static int export_file(struct dir_export *dir_export, struct wal_slice key, struct wal_slice bytes)
{
    char relative[WAL__SOURCE_SIZE_MAX + 1];
    char *path =
        wal__source_unescape(key, relative) ? cli_format("%s%s", dir_export->root, relative) : NULL;
    struct existing_file existing = {.bytes = NULL};
    int code = CLI_OK;

    if (path == NULL || !convert_path_is_beneath(path)) {
        code = cli_error(dir_export->source->cli, CLI_NEGATIVE,
                         path != NULL ? path : dir_export->source->path,
                         "leads out of the output directory; not written");
        free(path);
        return code;
    }
    read_existing(dir_export->source->root, path, &existing);
    if (existing.is_missing) {
        code = replace_file(dir_export, path, bytes);
    } else if (!has_content(&existing, bytes)) {
        code = existing.is_file && is_older(dir_export, key, &existing)
                   ? replace_file(dir_export, path, bytes)
                   : cli_error(dir_export->source->cli, CLI_NEGATIVE, path,
                               "exists with other content; not changed");
    }
    free(existing.bytes);
    free(path);
    return code;
}

static int export_docs(struct dir_export *dir_export)
{
    struct wal_doc doc;
    enum wal_status status;
    int code = CLI_OK;

    for (;;) {
        doc = (struct wal_doc)WAL_INIT(wal_doc);
        status = wal_doc_cursor_next(dir_export->files.docs, &doc, dir_export->source->cli->error);
        if (status == WAL_END) {
            return code;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            dir_export->outcome->damaged++;
            code = cli_worse_code(code, CLI_NEGATIVE);
        } else if (status != WAL_OK) {
            return cli_report(dir_export->source->cli, dir_export->source->name, status);
        } else {
            code = cli_worse_code(code, export_file(dir_export, doc.key, doc.value));
        }
    }
}

/* Writes the stream's file unless the stream has no lines. */
static int export_stream(struct dir_export *dir_export, uint32_t stream, bool *is_written)
{
    struct convert_source source = *dir_export->source;
    struct convert_outcome outcome = {.added = 0};
    struct wal__source_lines lines;
    struct wal_entry entry = WAL_INIT(wal_entry);
    char *file_path = dir_file_path(source.path, dir_export->dialect, stream);
    int code = CLI_OK;

    *is_written =
        wal__source_lines_open(&lines, NULL, source.session, stream, NULL, NULL) == WAL_OK;
    if (*is_written) {
        *is_written = wal__source_lines_next(&lines, &entry, NULL) != WAL_END;
        wal__source_lines_close(&lines);
    }
    if (*is_written) {
        source.path = file_path;
        source.name = file_path;
        source.stream = stream;
        code = convert_source_write(&source, &outcome);
        dir_export->outcome->added += outcome.added;
        dir_export->outcome->native_count = outcome.native_count;
        dir_export->outcome->damaged += outcome.damaged;
    }
    free(file_path);
    return code;
}

/* Returns true if the path is a stream that has lines: an empty file of that path is an older
 * version of the stream. */
static bool is_stream(const struct dir_export *dir_export, struct wal_slice path,
                      const bool *has_lines)
{
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = wal__session_dir_stream_path(dir_export->dialect, i);
        if (has_lines[i] && name != NULL && cli_slice_equal(cli_slice(name), path)) {
            return true;
        }
    }
    return false;
}

static int export_versions(struct dir_export *dir_export, const bool *has_lines)
{
    int code = CLI_OK;

    for (size_t i = 0; i < dir_export->files.count; i++) {
        const struct wal__session_dir_version *version = &dir_export->files.versions[i];
        struct wal_doc doc = WAL_INIT(wal_doc);
        struct wal_slice bytes;
        enum wal_status status;
        char *memory = NULL;
        if (!version->is_last || is_stream(dir_export, version->path, has_lines) ||
            wal_doc_cursor_get(dir_export->files.docs, version->path, 0, &doc, NULL) == WAL_OK) {
            continue;
        }
        status = wal__session_dir_files_get(&dir_export->files, version, &bytes, &memory,
                                            dir_export->source->cli->error);
        if (status == WAL_OK) {
            code = cli_worse_code(code, export_file(dir_export, version->path, bytes));
        } else if (status == WAL_EREDACTED) {
            code = cli_worse_code(code, CLI_OK);
        } else {
            dir_export->outcome->damaged++;
            code = cli_worse_code(code, CLI_NEGATIVE);
        }
        wal__heap_free(&wal__heap_libc, memory);
    }
    return code;
}

/* Writes all files of the session; source->path is the path of its source, with the group.
 * outcome->added counts lines and documents. Returns an exit code. */
static int convert_dir_export(const struct convert_source *source,
                              const struct wal__dialect *dialect, struct convert_outcome *outcome)
{
    struct dir_export dir_export = {.source = source, .dialect = dialect, .outcome = outcome};
    bool has_lines[2] = {false, false};
    enum wal_status status;
    int code = CLI_OK;

    *outcome = (struct convert_outcome){.added = 0};
    dir_export.files.heap = &wal__heap_libc;
    dir_export.files.store = source->store;
    dir_export.files.session = source->session;
    dir_export.root = dir_file_path(source->path, &wal__dialect_opencode, 0);
    status = wal__session_dir_files_open(&dir_export.files, source->cli->error);
    if (status != WAL_OK) {
        code = cli_report(source->cli, source->name, status);
    }
    for (uint32_t i = 0; code <= CLI_NEGATIVE && i < 2; i++) {
        if (wal__session_dir_stream_path(dialect, i) != NULL) {
            code = cli_worse_code(code, export_stream(&dir_export, i, &has_lines[i]));
        }
    }
    if (code <= CLI_NEGATIVE) {
        code = cli_worse_code(code, export_docs(&dir_export));
    }
    if (code <= CLI_NEGATIVE) {
        code = cli_worse_code(code, export_versions(&dir_export, has_lines));
    }
    wal__session_dir_files_deinit(&dir_export.files);
    free(dir_export.root);
    return code;
}

/* --- the verb ----------------------------------------------------------- */

struct item {
    char *id;
    uint32_t number; /* number of the session */
    char *path;      /* below the output directory; NULL: not imported */
    bool is_shared;  /* another source has this path */
    /* Of a session directory; NULL: a file. */
    const struct wal__dialect *dir_dialect;
    bool has_messages; /* it belongs into a view of all sessions */
};

struct export
{
    struct convert_view view; /* of each session; without a dialect: the source */
    struct item *items;
    size_t count;
    size_t capacity;
    struct progress progress;
    uint64_t done;
};

static int compare_path(const void *a, const void *b)
{
    const struct item *one = a;
    const struct item *two = b;
    int order = 0;

    if (one->path != NULL && two->path != NULL) {
        order = strcmp(one->path, two->path);
    } else if (one->path != two->path) {
        order = one->path == NULL ? 1 : -1;
    }
    if (order == 0) {
        order = one->number < two->number ? -1 : one->number > two->number;
    }
    return order;
}

static void list_items(struct export *export)
{
    struct cli_sessions list;
    struct wal__source source;

    for (cli_sessions_open(&list, export->view.store, NULL, export->view.cli->error);
         cli_sessions_next(&list);) {
        struct item *item;
        item = CLI_ADD(export);
        *item = (struct item){
            .number = list.info.number,
            .has_messages = convert_view_has_messages(
                export->view.dialect != NULL ? export->view.dialect : "", &list.info)};
        item->id = cli_copy_slice(list.info.id);
        if (wal__source_parse(list.info.source, &source)) {
            item->path = cli_copy_text(source.path, strlen(source.path));
            item->dir_dialect = wal__session_dir_root_end(source.path) != NULL
                                    ? wal__dialect_find(source.dialect)
                                    : NULL;
        }
    }
    cli_check(export->view.cli, export->view.store_path, list.status);
}

/* Renames sources that share a path; a unique path is kept. */
static void make_paths_unique(struct export *export)
{
    static struct cli_ids used_paths;
    struct item *items = export->items;

    if (items == NULL) {
        return;
    }
    qsort(items, export->count, sizeof(items[0]), compare_path);
    for (size_t i = 0; i < export->count && items[i].path != NULL; i++) {
        bool equals_previous = i > 0 && strcmp(items[i].path, items[i - 1].path) == 0;
        bool equals_next = i + 1 < export->count && items[i + 1].path != NULL &&
                           strcmp(items[i].path, items[i + 1].path) == 0;
        items[i].is_shared = equals_previous || equals_next;
        if (!items[i].is_shared) {
            cli_ids_get_or_add(&used_paths, cli_slice(items[i].path));
        }
    }
    for (size_t i = 0; i < export->count; i++) {
        char *unique_path = NULL;
        unsigned n = 0;
        if (!items[i].is_shared) {
            continue;
        }
        do {
            free(unique_path);
            unique_path = cli_format("%u/%s", n++, items[i].path);
        } while (cli_ids_find(&used_paths, cli_slice(unique_path)) != NULL);
        cli_ids_get_or_add(&used_paths, cli_slice(unique_path));
        free(items[i].path);
        items[i].path = unique_path;
    }
}

static const struct item *find_item(const struct export *export, struct wal_slice id)
{
    for (size_t i = 0; i < export->count; i++) {
        if (cli_slice_equal(cli_slice(export->items[i].id), id)) {
            return &export->items[i];
        }
    }
    return NULL;
}

static void write_json(const struct export *export, const struct item *item, const char *path,
                       const struct convert_outcome *outcome)
{
    struct wal__json_out json;

    cli_json_init(&json, export->view.root != NULL ? stdout : stderr);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", cli_slice(item->id));
    cli_json_member_text(&json, "dialect", cli_slice("source"));
    cli_json_member_text_or_null(&json, "path", cli_slice(path));
    wal__json_out_member_count(&json, "added", outcome->added);
    wal__json_out_member_open(&json, "losses", '[');
    cli_json_loss(&json, "session that was not imported", item->path == NULL);
    cli_json_loss(&json, "entries that are no lines of the file", outcome->native_count);
    cli_json_loss(&json, "redacted entries", outcome->redacted);
    cli_json_loss(&json, "entries that cannot be read", outcome->damaged);
    wal__json_out_close(&json, ']');
    wal__json_out_member_bool(&json, "sharedPath", item->is_shared);
    wal__json_out_close_line(&json);
}

static void print_result(const struct export *export, const struct item *item, const char *path,
                         const struct convert_outcome *outcome)
{
    const struct cli *cli = export->view.cli;

    if (cli->json) {
        write_json(export, item, path, outcome);
        return;
    }
    if (item->path == NULL) {
        cli_error(cli, CLI_OK, item->id, "was not imported, so it has no source; skipped");
        return;
    }
    if (export->view.summary != NULL) {
        export->view.summary->files++;
        export->view.summary->lines += outcome->added;
    } else if (export->view.root != NULL) {
        cli_print_name(stdout, cli_slice(path));
        printf(": session ");
        cli_print_name(stdout, cli_slice(item->id));
        printf(", %s added\n", cli_counted(outcome->added, "line", "lines"));
    }
    if (outcome->redacted > 0) {
        cli_error(cli, CLI_OK, item->id, "left out: %" PRIu64 " redacted %s", outcome->redacted,
                  cli_plural(outcome->redacted, "entry", "entries"));
    }
    if (item->is_shared) {
        cli_error(cli, CLI_OK, path, "several sources have this path");
    }
    if (outcome->native_count > 0) {
        cli_error(
            cli, CLI_OK, item->id, "%s of the file; skipped",
            cli_counted(outcome->native_count, "entry is not a line", "entries are not lines"));
    }
}

static char *join_path(const char *root, const char *path)
{
    size_t size = strlen(root);
    bool has_slash = size > 0 && root[size - 1] == '/';

    return cli_format("%s%s%s", root, has_slash ? "" : "/", path);
}

/* The path of a session's file below the output directory; the caller frees it. */
static char *relative_path(const struct item *item, uint32_t stream)
{
    return item->dir_dialect != NULL ? dir_file_path(item->path, item->dir_dialect, stream)
                                     : cli_copy_text(item->path, strlen(item->path));
}

static int write_source(const struct convert_source *source, const struct item *item,
                        struct convert_outcome *outcome)
{
    int code;

    if (source->root == NULL) {
        return item->dir_dialect == NULL || item->dir_dialect->read_ops->stream != NULL
                   ? convert_source_print(source, outcome)
                   : cli_error(source->cli, CLI_NEGATIVE, item->id,
                               "is a directory of files and cannot be written to standard output");
    }
    if (item->dir_dialect != NULL) {
        return convert_dir_export(source, item->dir_dialect, outcome);
    }
    code = convert_source_write(source, outcome);
    return code < CLI_USAGE && !outcome->is_rejected ? cli_worse_code(code, write_sidecar(source))
                                                     : code;
}

/* The export of a session that has lines of several files. */
struct several {
    struct export *export;
    const struct item *item;
    struct convert_source source;
    int code;
};

/* A wal__source_file_fn. */
static bool export_other_file(void *ctx, const char *file, const char *path)
{
    struct several *several = ctx;
    const struct item *item = several->item;
    struct convert_source source = several->source;
    struct convert_outcome outcome = {.added = 0};
    /* The folder of a source whose path others have too. */
    int folder = item->is_shared ? (int)strcspn(item->path, "/") + 1 : 0;
    char *relative = cli_format("%.*s%s", folder, item->path, path);
    char *name = join_path(source.root, relative);
    int code;

    source.path = relative;
    source.name = name;
    source.file = file;
    code = convert_source_write(&source, &outcome);
    if (code < CLI_USAGE && !outcome.is_rejected) {
        print_result(several->export, item, name, &outcome);
    }
    several->code = cli_worse_code(several->code, code);
    free(name);
    free(relative);
    return several->code < CLI_USAGE;
}

static int export_source(struct export *export, const struct item *item)
{
    struct several several = {.export = export,
                              .item = item,
                              .source = {.cli = export->view.cli,
                                         .store = export->view.store,
                                         .root = export->view.root,
                                         .path = item->path}};
    struct convert_source *source = &several.source;
    struct convert_outcome outcome = {.added = 0};
    enum wal_status status;
    char *path = NULL;
    int code = CLI_OK;

    if (item->path != NULL) {
        status = wal_session_open(export->view.store, cli_slice(item->id), &source->session,
                                  export->view.cli->error);
        if (status != WAL_OK) {
            return cli_report(export->view.cli, item->id, status);
        }
        char *relative = relative_path(item, 0);
        path = join_path(export->view.root != NULL ? export->view.root : "", relative);
        source->name = export->view.root != NULL ? path : item->path;
        code = write_source(source, item, &outcome);
        free(relative);
    }
    progress_clear(&export->progress);
    if (code < CLI_USAGE && !outcome.is_rejected) {
        print_result(export, item, path, &outcome);
    }
    free(path);
    if (code < CLI_USAGE && item->path != NULL && item->dir_dialect == NULL &&
        export->view.root != NULL) {
        status = wal__source_files_visit(source->session, export_other_file, &several,
                                         export->view.cli->error);
        code = cli_worse_code(code, several.code);
        if (status != WAL_OK) {
            code = cli_worse_code(code, cli_report(export->view.cli, item->id, status));
        }
    }
    wal_session_close(source->session);
    return code;
}

static int export_item(struct export *export, const struct item *item)
{
    int code;

    if (export->view.dialect != NULL) {
        progress_clear(&export->progress);
        code = convert_view_export(&export->view, item->id);
    } else {
        code = export_source(export, item);
    }
    progress_update(&export->progress, "export", ++export->done, export->count, "sessions");
    return code;
}

static int export_named(struct export *export, const struct cli_values *names)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    const struct item *item;
    int code = CLI_OK;

    for (size_t i = 0; i < names->count; i++) {
        int open_code =
            cli_find_session(export->view.cli, export->view.store, names->items[i], &session);
        if (open_code != CLI_OK) {
            code = cli_worse_code(code, open_code);
            continue;
        }
        item = wal_session_get_info(session, &info, NULL) == WAL_OK ? find_item(export, info.id)
                                                                    : NULL;
        wal_session_close(session);
        if (item != NULL) {
            code = cli_worse_code(code, export_item(export, item));
        }
    }
    return code;
}

static int export_all(struct export *export)
{
    int code = CLI_OK;

    for (size_t i = 0; i < export->count && !cli_output_failed(); i++) {
        if (export->view.dialect == NULL || export->items[i].has_messages) {
            code = cli_worse_code(code, export_item(export, &export->items[i]));
        }
    }
    return code;
}

/* Finds the dialect to write; NULL for the source. */
static const char *find_dialect(const struct cli *cli, const char *name)
{
    const struct wal__dialect *found;

    if (name == NULL) {
        cli_fail(cli, CLI_USAGE, "--dialect", "is required");
    }
    if (strcmp(name, "source") == 0) {
        return NULL;
    }
    found = wal__dialect_find(name);
    if (found == NULL || found->write_ops == NULL) {
        cli_fail(cli, CLI_USAGE, "--dialect", "'%s' cannot be written (see: agentwal dialects)",
                 name);
    }
    return found->name;
}

void convert_check_root(const struct cli *cli, const char *root)
{
    struct stat status;
    int error_number = root == NULL || stat(root, &status) == 0 ? 0 : errno;

    if (root != NULL && error_number == 0 && !S_ISDIR(status.st_mode)) {
        cli_fail(cli, CLI_FAILED, root, "is not a directory");
    }
    if (error_number != 0 && error_number != ENOENT) { /* an export creates it */
        cli_fail(cli, CLI_FAILED, root, "%s", strerror(error_number));
    }
}

/* Makes the store one in memory with what is to be exported, without secrets. */
static void leave_secrets_out(struct cli *cli, struct secrets_filter *filter, const char *rules,
                              struct cli_values *names)
{
    secrets_filter_open(filter, cli, rules);
    for (size_t i = 0; i < names->count; i++) {
        names->items[i] = cli_session_id(cli, cli->store, names->items[i]);
    }
    secrets_filter_copy(filter, cli, names->count > 0 ? names->items : NULL, names->count);
}

/* Lists the sessions of the store. */
static void open_export(struct cli *cli, struct export *export)
{
    export->view.store_path = cli->opened;
    export->view.store = cli->store;
    list_items(export);
    make_paths_unique(export);
}

int verb_export(struct cli *cli, int argc, char **argv)
{
    struct cli_values sessions = {.items = NULL};
    const char *dialect = NULL;
    bool to_stdout = false;
    bool is_verbose = false;
    bool no_secrets = false;
    const char *rules = NULL;
    struct convert_summary summary = {.files = 0};
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = "session", .values = &sessions},
        {.name = "no-secrets", .flag = &no_secrets},
        {.name = "rules", .value = &rules},
        {.name = "verbose", .letter = 'v', .flag = &is_verbose},
        {.name = "stdout", .flag = &to_stdout},
        {.name = NULL},
    };
    static struct secrets_filter filter;
    static struct export export;
    int code;

    export.view.cli = cli;
    cli_parse(cli, argc, argv, options);
    cli_check_operands(cli, to_stdout ? 2 : 3, to_stdout ? 2 : 3);
    export.view.dialect = find_dialect(cli, dialect);
    if (to_stdout && cli->json) {
        cli_fail(cli, CLI_USAGE, "--json", "not allowed with --stdout");
    }
    if (to_stdout && sessions.count != 1) {
        cli_fail(cli, CLI_USAGE, "--stdout", "requires exactly one --session");
    }
    export.view.root = to_stdout ? NULL : cli->items[2];
    convert_check_root(cli, export.view.root);
    cli_use_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
    if (no_secrets || rules != NULL) {
        leave_secrets_out(cli, &filter, rules, &sessions);
    }
    open_export(cli, &export);
    cli_note_interrupts();
    progress_init(&export.progress, !cli->no_progress && !to_stdout);
    if (sessions.count == 0 && export.count > 1 && !is_verbose && !cli->json) {
        export.view.summary = &summary;
    }
    code = sessions.count > 0 ? export_named(&export, &sessions) : export_all(&export);
    progress_clear(&export.progress);
    if (export.view.summary != NULL) {
        convert_summary_end(&summary);
    }
    secrets_filter_report(&filter, cli);
    secrets_filter_deinit(&filter);
    return code;
}

/* Prints the path of the session's file or view. Returns an exit code. */
static int print_path(const struct export *export, struct wal_session *session, const char *name,
                      uint32_t stream)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    const struct item *item = NULL;
    char *path;

    if (export->view.dialect != NULL) {
        return convert_view_print_path(&export->view, session, name, stream);
    }
    if (wal_session_get_info(session, &info, NULL) == WAL_OK) {
        item = find_item(export, info.id);
    }
    if (item == NULL || item->path == NULL) {
        return cli_error(export->view.cli, CLI_NEGATIVE, name, "was not imported");
    }
    path = join_path(export->view.root, cli_keep(relative_path(item, stream)));
    convert_print_path(export->view.cli, cli_keep(path));
    return CLI_OK;
}

int verb_path(struct cli *cli, int argc, char **argv)
{
    const char *dialect = NULL;
    uint64_t stream = 0;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = "stream", .number = &stream, .max = 255},
        {.name = NULL},
    };
    static struct export export;

    export.view.cli = cli;
    cli_parse_operands(cli, argc, argv, options, 4, 4);
    export.view.dialect = find_dialect(cli, dialect);
    export.view.root = cli->items[2];
    cli_use_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
    open_export(cli, &export);
    cli_use_session(cli, cli->items[3]);
    return print_path(&export, cli->session, cli->items[3], (uint32_t)stream);
}
