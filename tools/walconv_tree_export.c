/*
 * walconv_tree_export - writes documents, other files and streams of a tree.
 *
 * Threads: one.
 */
#include "tools/walconv_tree_export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_source.h"
#include "tools/walconv_place.h"
#include "tools/walconv_tree.h"
#include "tools/walconv_tree_files.h"

struct putting {
    const struct walconv_source *source;
    const struct wal__dialect *dialect;
    struct walconv_tree_files files;
    struct walconv_outcome *outcome;
    char *root; /* below the output directory, with its slash, or empty */
};

/* What is there under the name of a file. */
struct there {
    char *bytes;
    size_t size;
    bool is_file;
    bool is_none;
};

char *walconv_tree_place(const char *path, const struct wal__dialect *dialect,
                         uint32_t stream)
{
    const char *end = walconv_tree_root_end(path);
    const char *name = walconv_tree_stream_path(dialect, stream);
    size_t size = end != NULL ? (size_t)(end - path) : 0;
    char *place;

    if (end == NULL) {
        return NULL;
    }
    /* The root "." is the output directory, or one that is a number. */
    if (size >= 1 && path[size - 1] == '.' &&
        (size == 1 || path[size - 2] == '/')) {
        size--;
    } else {
        size++;
    }
    place = cli_alloc(size + (name != NULL ? strlen(name) : 0) + 1);
    sprintf(place, "%.*s%s", (int)size, path, name != NULL ? name : "");
    return place;
}

static char *root_of(const char *path)
{
    return walconv_tree_place(path, &wal__dialect_opencode, 0);
}

static char *joined(const char *root, const char *path)
{
    char *text = cli_alloc(strlen(root) + strlen(path) + 2);

    sprintf(text, "%s%s", root, path);
    return text;
}

static int fail(const struct putting *putting, const char *path)
{
    return cli_error(putting->source->cli, CLI_FAILED, path, "%s",
                     errno == ELOOP || errno == ENOTDIR
                         ? "a part of the path is no directory"
                         : strerror(errno));
}

static void look(const char *root, const char *path, struct there *there)
{
    const char *name = NULL;
    int directory = walconv_place_directory(root, path, true, &name);
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = directory < 0 ? -1 : openat(directory, name, flags);
    struct stat stat;

    *there = (struct there){.is_none = fd < 0 && errno == ENOENT};
    if (directory >= 0) {
        close(directory);
    }
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        size_t done = 0;
        ssize_t got = 1;
        there->size = (size_t)stat.st_size;
        there->bytes = cli_alloc(there->size + 1);
        while (done < there->size && got > 0) {
            got = read(fd, there->bytes + done, there->size - done);
            done += got > 0 ? (size_t)got : 0;
        }
        there->is_file = done == there->size;
    }
    close(fd);
}

static bool is_there(const struct there *there, struct wal_slice bytes)
{
    struct wal_slice found = {there->bytes, there->size};

    return there->is_file && cli_slice_equal(found, bytes);
}

/* Whether what is there was the file once. */
static bool is_older_version(struct putting *putting, struct wal_slice key,
                             const struct there *there)
{
    bool is_one = false;

    for (size_t i = 0; !is_one && i < putting->files.count; i++) {
        const struct walconv_tree_version *version =
            &putting->files.versions[i];
        struct wal_slice bytes;
        char *memory = NULL;
        if (cli_slice_equal(version->path, key) &&
            walconv_tree_files_get(&putting->files, version, &bytes, &memory,
                                   NULL) == WAL_OK) {
            is_one = is_there(there, bytes);
        }
        free(memory);
    }
    return is_one;
}

static bool is_older(struct putting *putting, struct wal_slice key,
                     const struct there *there)
{
    struct wal_docs_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_DOCS_HISTORY,
                                       .prefix = key};
    struct wal_docs *docs = NULL;
    bool is_one = false;
    struct wal_doc doc;
    enum wal_status status;

    status = wal_docs_open(putting->source->store, putting->source->session,
                           &options, &docs, NULL);
    while (status == WAL_OK && !is_one) {
        doc = (struct wal_doc){.struct_size = sizeof(doc)};
        status = wal_docs_next(docs, &doc, NULL);
        is_one = status == WAL_OK && (doc.flags & WAL_DOC_DELETE) == 0 &&
                 cli_slice_equal(doc.key, key) && is_there(there, doc.value);
    }
    wal_docs_close(docs);
    return is_one || is_older_version(putting, key, there);
}

static int replace(struct putting *putting, const char *path,
                   struct wal_slice bytes)
{
    struct walconv_place_file file = {.stream = NULL};
    const char *name = NULL;
    int directory =
        walconv_place_directory(putting->source->root, path, false, &name);

    if (directory < 0 || walconv_place_begin(&file, directory, name) != 0) {
        return fail(putting, path);
    }
    fwrite(bytes.data, 1, (size_t)bytes.size, file.stream);
    putting->outcome->added++;
    return walconv_place_commit(&file) == 0 ? CLI_DONE : fail(putting, path);
}

static int put_file(struct putting *putting, struct wal_slice key,
                    struct wal_slice bytes)
{
    char *below = cli_source_unescape(key);
    char *path = below != NULL ? joined(putting->root, below) : NULL;
    struct there there = {.bytes = NULL};
    int code = CLI_DONE;

    if (path == NULL || !walconv_path_is_safe(path)) {
        code = cli_error(putting->source->cli, CLI_NO,
                         path != NULL ? path : putting->source->path,
                         "leads out of the output directory; not written");
        free(below);
        free(path);
        return code;
    }
    look(putting->source->root, path, &there);
    if (there.is_none) {
        code = replace(putting, path, bytes);
    } else if (!is_there(&there, bytes)) {
        code = there.is_file && is_older(putting, key, &there)
                   ? replace(putting, path, bytes)
                   : cli_error(putting->source->cli, CLI_NO, path,
                               "is there with other content; not touched");
    }
    free(there.bytes);
    free(below);
    free(path);
    return code;
}

static int put_docs(struct putting *putting)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_doc doc;
    enum wal_status status;
    int code = CLI_DONE;

    for (;;) {
        doc = (struct wal_doc){.struct_size = sizeof(doc)};
        status = wal_docs_next(putting->files.docs, &doc, &error);
        if (status == WAL_END) {
            return code;
        }
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            putting->outcome->damaged++;
            code = cli_worse(code, CLI_NO);
        } else if (status != WAL_OK) {
            return cli_fail(putting->source->cli, putting->source->name, status,
                            &error);
        } else {
            code = cli_worse(code, put_file(putting, doc.key, doc.value));
        }
    }
}

/* Puts the stream's file, unless it has no lines. */
static int put_stream(struct putting *putting, uint32_t stream, bool *is_put)
{
    struct walconv_source source = *putting->source;
    struct walconv_outcome outcome = {.added = 0};
    struct cli_lines lines;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    char *place = walconv_tree_place(source.path, putting->dialect, stream);
    int code = CLI_DONE;

    *is_put = cli_lines_open(&lines, source.session, stream, NULL) == WAL_OK;
    if (*is_put) {
        *is_put = cli_lines_next(&lines, &entry, NULL) != WAL_END;
        cli_lines_close(&lines);
    }
    if (*is_put) {
        source.path = place;
        source.name = place;
        source.stream = stream;
        code = walconv_source_put(&source, &outcome);
        putting->outcome->added += outcome.added;
        putting->outcome->natives = outcome.natives;
        putting->outcome->damaged += outcome.damaged;
    }
    free(place);
    return code;
}

/* Whether the file is a stream that has lines: then it was empty once. */
static bool is_stream(const struct putting *putting, struct wal_slice path,
                      const bool *has_lines)
{
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = walconv_tree_stream_path(putting->dialect, i);
        if (has_lines[i] && name != NULL &&
            cli_slice_equal(cli_slice(name), path)) {
            return true;
        }
    }
    return false;
}

static int put_versions(struct putting *putting, const bool *has_lines)
{
    struct wal_error error = CLI_ERROR_INIT;
    int code = CLI_DONE;

    for (size_t i = 0; i < putting->files.count; i++) {
        const struct walconv_tree_version *version =
            &putting->files.versions[i];
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_slice bytes;
        enum wal_status status;
        char *memory = NULL;
        if (!version->is_last || is_stream(putting, version->path, has_lines) ||
            wal_docs_get(putting->files.docs, version->path, 0, &doc, NULL) ==
                WAL_OK) {
            continue;
        }
        status = walconv_tree_files_get(&putting->files, version, &bytes,
                                        &memory, &error);
        if (status == WAL_OK) {
            code = cli_worse(code, put_file(putting, version->path, bytes));
        } else if (status == WAL_EREDACTED) {
            code = cli_worse(code, CLI_DONE);
        } else {
            putting->outcome->damaged++;
            code = cli_worse(code, CLI_NO);
        }
        free(memory);
    }
    return code;
}

int walconv_tree_put(const struct walconv_source *source,
                     const struct wal__dialect *dialect,
                     struct walconv_outcome *outcome)
{
    struct putting putting = {
        .source = source, .dialect = dialect, .outcome = outcome};
    struct wal_error error = CLI_ERROR_INIT;
    bool has_lines[2] = {false, false};
    enum wal_status status;
    int code = CLI_DONE;

    *outcome = (struct walconv_outcome){.added = 0};
    putting.root = root_of(source->path);
    status = walconv_tree_files_open(&putting.files, source->store,
                                     source->session, &error);
    if (status != WAL_OK) {
        code = cli_fail(source->cli, source->name, status, &error);
    }
    for (uint32_t i = 0; code <= CLI_NO && i < 2; i++) {
        if (walconv_tree_stream_path(dialect, i) != NULL) {
            code = cli_worse(code, put_stream(&putting, i, &has_lines[i]));
        }
    }
    if (code <= CLI_NO) {
        code = cli_worse(code, put_docs(&putting));
    }
    if (code <= CLI_NO) {
        code = cli_worse(code, put_versions(&putting, has_lines));
    }
    walconv_tree_files_deinit(&putting.files);
    free(putting.root);
    return code;
}
