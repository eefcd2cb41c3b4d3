/*
 * export_dir.c - write the documents, other files and streams of a session
 * directory.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/export_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/source/session_dir_files.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "tools/convert/output_file.h"

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

char *convert_dir_file_path(const char *path,
                            const struct wal__dialect *dialect, uint32_t stream)
{
    const char *end = wal__session_dir_root_end(path);
    const char *name = wal__session_dir_stream_path(dialect, stream);
    size_t size = end != NULL ? (size_t)(end - path) : 0;
    char *file_path;

    if (end == NULL) {
        return NULL;
    }
    /* The root "." is the output directory itself, or its numbered folder. */
    if (size >= 1 && path[size - 1] == '.' &&
        (size == 1 || path[size - 2] == '/')) {
        size--;
    } else {
        size++;
    }
    file_path = cli_alloc(size + (name != NULL ? strlen(name) : 0) + 1);
    sprintf(file_path, "%.*s%s", (int)size, path, name != NULL ? name : "");
    return file_path;
}

static char *root_of(const char *path)
{
    return convert_dir_file_path(path, &wal__dialect_opencode, 0);
}

static char *join_path(const char *root, const char *path)
{
    char *text = cli_alloc(strlen(root) + strlen(path) + 2);

    sprintf(text, "%s%s", root, path);
    return text;
}

static int fail(const struct dir_export *dir_export, const char *path)
{
    return cli_error(dir_export->source->cli, CLI_FAILED, path, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is not a directory"
                         : strerror(errno));
}

static void read_existing(const char *root, const char *path,
                          struct existing_file *existing)
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

static bool has_content(const struct existing_file *existing,
                        struct wal_slice bytes)
{
    struct wal_slice found = {existing->bytes, existing->size};

    return existing->is_file && cli_slice_equal(found, bytes);
}

/* Returns true if the existing content is an earlier version of the file. */
static bool is_older_version(struct dir_export *dir_export,
                             struct wal_slice key,
                             const struct existing_file *existing)
{
    bool is_found = false;

    for (size_t i = 0; !is_found && i < dir_export->files.count; i++) {
        const struct wal__session_dir_version *version =
            &dir_export->files.versions[i];
        struct wal_slice bytes;
        char *memory = NULL;
        if (cli_slice_equal(version->path, key) &&
            wal__session_dir_files_get(&dir_export->files, version, &bytes,
                                       &memory, NULL) == WAL_OK) {
            is_found = has_content(existing, bytes);
        }
        wal__heap_free(&wal__heap_libc, memory);
    }
    return is_found;
}

static bool is_older(struct dir_export *dir_export, struct wal_slice key,
                     const struct existing_file *existing)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY,
                                             .prefix = key};
    struct wal_doc_cursor *docs = NULL;
    bool is_found = false;
    struct wal_doc doc;
    enum wal_status status;

    status =
        wal_doc_cursor_open(dir_export->source->store,
                            dir_export->source->session, &options, &docs, NULL);
    while (status == WAL_OK && !is_found) {
        doc = (struct wal_doc)WAL_INIT(wal_doc);
        status = wal_doc_cursor_next(docs, &doc, NULL);
        is_found = status == WAL_OK && (doc.flags & WAL_DOC_DELETE) == 0 &&
                   cli_slice_equal(doc.key, key) &&
                   has_content(existing, doc.value);
    }
    wal_doc_cursor_close(docs);
    return is_found || is_older_version(dir_export, key, existing);
}

static int replace_file(struct dir_export *dir_export, const char *path,
                        struct wal_slice bytes)
{
    struct convert_output_file file = {.stream = NULL};
    const char *name = NULL;
    int directory =
        convert_open_parent(dir_export->source->root, path, false, &name);

    if (directory < 0 ||
        convert_output_file_begin(&file, directory, name) != 0) {
        return fail(dir_export, path);
    }
    fwrite(bytes.data, 1, (size_t)bytes.size, file.stream);
    dir_export->outcome->added++;
    return convert_output_file_commit(&file) == 0 ? CLI_OK
                                                  : fail(dir_export, path);
}

static int export_file(struct dir_export *dir_export, struct wal_slice key,
                       struct wal_slice bytes)
{
    char relative[WAL__SOURCE_SIZE_MAX + 1];
    char *path = wal__source_unescape(key, relative)
                     ? join_path(dir_export->root, relative)
                     : NULL;
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
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_doc doc;
    enum wal_status status;
    int code = CLI_OK;

    for (;;) {
        doc = (struct wal_doc)WAL_INIT(wal_doc);
        status = wal_doc_cursor_next(dir_export->files.docs, &doc, &error);
        if (status == WAL_END) {
            return code;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            dir_export->outcome->damaged++;
            code = cli_worse_code(code, CLI_NEGATIVE);
        } else if (status != WAL_OK) {
            return cli_report(dir_export->source->cli, dir_export->source->name,
                              status, &error);
        } else {
            code = cli_worse_code(code,
                                  export_file(dir_export, doc.key, doc.value));
        }
    }
}

/* Writes the stream's file unless the stream has no lines. */
static int export_stream(struct dir_export *dir_export, uint32_t stream,
                         bool *is_written)
{
    struct convert_source source = *dir_export->source;
    struct convert_outcome outcome = {.added = 0};
    struct wal__source_lines lines;
    struct wal_entry entry = WAL_INIT(wal_entry);
    char *file_path =
        convert_dir_file_path(source.path, dir_export->dialect, stream);
    int code = CLI_OK;

    *is_written = wal__source_lines_open(&lines, NULL, source.session, stream,
                                         NULL) == WAL_OK;
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

/* Returns true if the path is a stream that has lines: an empty file of that
 * path is an older version of the stream. */
static bool is_stream(const struct dir_export *dir_export,
                      struct wal_slice path, const bool *has_lines)
{
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = wal__session_dir_stream_path(dir_export->dialect, i);
        if (has_lines[i] && name != NULL &&
            cli_slice_equal(cli_slice(name), path)) {
            return true;
        }
    }
    return false;
}

static int export_versions(struct dir_export *dir_export, const bool *has_lines)
{
    struct wal_error error = CLI_ERROR_INIT;
    int code = CLI_OK;

    for (size_t i = 0; i < dir_export->files.count; i++) {
        const struct wal__session_dir_version *version =
            &dir_export->files.versions[i];
        struct wal_doc doc = WAL_INIT(wal_doc);
        struct wal_slice bytes;
        enum wal_status status;
        char *memory = NULL;
        if (!version->is_last ||
            is_stream(dir_export, version->path, has_lines) ||
            wal_doc_cursor_get(dir_export->files.docs, version->path, 0, &doc,
                               NULL) == WAL_OK) {
            continue;
        }
        status = wal__session_dir_files_get(&dir_export->files, version, &bytes,
                                            &memory, &error);
        if (status == WAL_OK) {
            code = cli_worse_code(
                code, export_file(dir_export, version->path, bytes));
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

int convert_dir_export(const struct convert_source *source,
                       const struct wal__dialect *dialect,
                       struct convert_outcome *outcome)
{
    struct dir_export dir_export = {
        .source = source, .dialect = dialect, .outcome = outcome};
    struct wal_error error = CLI_ERROR_INIT;
    bool has_lines[2] = {false, false};
    enum wal_status status;
    int code = CLI_OK;

    *outcome = (struct convert_outcome){.added = 0};
    dir_export.files.heap = &wal__heap_libc;
    dir_export.files.store = source->store;
    dir_export.files.session = source->session;
    dir_export.root = root_of(source->path);
    status = wal__session_dir_files_open(&dir_export.files, &error);
    if (status != WAL_OK) {
        code = cli_report(source->cli, source->name, status, &error);
    }
    for (uint32_t i = 0; code <= CLI_NEGATIVE && i < 2; i++) {
        if (wal__session_dir_stream_path(dialect, i) != NULL) {
            code = cli_worse_code(code,
                                  export_stream(&dir_export, i, &has_lines[i]));
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
