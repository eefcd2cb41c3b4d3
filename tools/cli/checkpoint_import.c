/*
 * checkpoint_import.c - read directories of files as checkpoints of a session.
 *
 * Layout: checkpoint_manifest.h.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/checkpoint_import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "tools/cli/checkpoint_manifest.h"
#include "tools/cli/ids.h"

/* Bytes; a manifest of a million files is smaller. */
#define MANIFEST_MAX ((off_t)256 << 20)

/* A directory that has a readable manifest. */
struct candidate {
    char *name;
    int64_t created_ms;
};

struct import {
    const struct cli_checkpoint_import *in;
    struct candidate *items;
    size_t count;
    size_t capacity;
    uint8_t *buffer;
};

/* One checkpoint during its import. */
struct item {
    const char *path; /* shown in messages */
    int directory;
    int contents;       /* descriptor of the directory of contents, or -1 */
    const char *layout; /* name of the layout */
    struct cli_manifest manifest;
    struct wal_file *files;
    struct cli_ids stored; /* hashes whose contents are in the store */
    /* Files that the checkpoint had before the import. */
    uint64_t previous_files;
    bool is_new; /* no checkpoint had this id */
    struct wal_checkpoint_info info;
};

/* Reports through on_skipped that a checkpoint is not imported, and why.
 * Returns `code`. */
__attribute__((format(printf, 4, 5))) static int
skip_checkpoint(const struct import *import, int code, const char *path,
                const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size >= 0) {
        import->in->on_skipped(import->in->ctx, code, path, text);
        free(text);
    }
    return code;
}

/* --- manifests ----------------------------------------------------------- */

/* Opens a regular file in the directory. Returns -1 with errno set, ELOOP when
 * it is not a regular file. */
static int open_file(int directory, const char *name, struct stat *stat)
{
    int fd =
        openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, stat) != 0 || !S_ISREG(stat->st_mode)) {
        close(fd);
        errno = ELOOP;
        return -1;
    }
    return fd;
}

/* Reports a failure of open_file. */
static int report_file_error(const struct import *import, const char *path,
                             const char *name, int error_number)
{
    if (error_number == ELOOP) {
        return skip_checkpoint(import, CLI_NEGATIVE, path,
                               "%s: not a regular file; skipped", name);
    }
    return skip_checkpoint(
        import, error_number == ENOENT ? CLI_NEGATIVE : CLI_FAILED, path,
        "%s: %s; skipped", name, strerror(error_number));
}

/* Reads `size` bytes, or up to the end of the file. Returns the count, or -1
 * with errno set. */
static ssize_t read_full(int fd, uint8_t *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, data + done, size - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -1 : (ssize_t)done;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int read_manifest(const struct import *import, const char *path,
                         int directory, struct cli_manifest *manifest)
{
    struct stat stat;
    int fd = open_file(directory, CLI_MANIFEST, &stat);
    const char *problem;
    uint8_t *data;
    ssize_t got;

    if (fd < 0) {
        return report_file_error(import, path, CLI_MANIFEST, errno);
    }
    if (stat.st_size > MANIFEST_MAX) {
        close(fd);
        return skip_checkpoint(import, CLI_NEGATIVE, path,
                               CLI_MANIFEST " is too large; skipped");
    }
    data = cli_alloc((size_t)stat.st_size);
    got = read_full(fd, data, (size_t)stat.st_size);
    close(fd);
    if (got < 0) {
        free(data);
        return cli_error(import->in->cli, CLI_FAILED, path, "%s",
                         strerror(errno));
    }
    problem = cli_manifest_read(manifest, data, (size_t)got);
    free(data);
    return problem == NULL
               ? CLI_CONTINUE
               : skip_checkpoint(import, CLI_NEGATIVE, path,
                                 CLI_MANIFEST " is damaged: %s; skipped",
                                 problem);
}

/* --- contents ------------------------------------------------------------ */

static void parse_digest(const char *hash, uint8_t digest[WAL_DIGEST_SIZE])
{
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        const char digits[] = {hash[2 * i], hash[2 * i + 1], '\0'};

        digest[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Stores the file's bytes as a blob. When reading fails, *error_number is the
 * errno value. */
static enum wal_status store_stream(struct import *import, int fd,
                                    uint8_t digest[WAL_DIGEST_SIZE],
                                    uint64_t *size, int *error_number,
                                    struct wal_error *error)
{
    struct wal_blob_writer *writer = NULL;
    enum wal_status status = wal_blob_create(import->in->store, &writer, error);
    ssize_t got = 1;

    while (status == WAL_OK && got > 0) {
        struct wal_slice buffer = {import->buffer, 0};

        got = read_full(fd, import->buffer, CLI_COPY_BUFFER_SIZE);
        if (got < 0) {
            *error_number = errno;
            status = WAL_EIO;
        } else if (got > 0) {
            buffer.size = (uint64_t)got;
            status = wal_blob_write(writer, buffer, error);
        }
    }
    if (status == WAL_OK) {
        status = wal_blob_finish(writer, digest, size, error);
    }
    wal_blob_discard(writer);
    return status;
}

/* Stores one content from its file and compares the digest with the hash that
 * the manifest lists. */
static int store_content(struct import *import, const struct item *item,
                         const struct cli_manifest_file *listed, int fd)
{
    struct wal_error error = CLI_ERROR_INIT;
    uint8_t expected[WAL_DIGEST_SIZE];
    uint8_t digest[WAL_DIGEST_SIZE];
    char hash[CLI_HASH_SIZE + 1];
    uint64_t size = 0;
    int error_number = 0;
    enum wal_status status =
        store_stream(import, fd, digest, &size, &error_number, &error);

    if (error_number != 0) {
        return cli_error(import->in->cli, CLI_FAILED, item->path, "%s: %s",
                         listed->hash, strerror(error_number));
    }
    if (status != WAL_OK) {
        return cli_report(import->in->cli, listed->hash, status, &error);
    }
    parse_digest(listed->hash, expected);
    if (memcmp(digest, expected, sizeof(digest)) != 0) {
        cli_hash_text(digest, hash);
        return skip_checkpoint(
            import, CLI_NEGATIVE, item->path,
            "the content %s of \"%s\" is damaged: its SHA-256 is "
            "%s; skipped",
            listed->hash, (const char *)listed->path.data, hash);
    }
    return CLI_CONTINUE;
}

/* A content without a file may be in the store already: stores that share one
 * file between checkpoints keep it with the first of them. */
static int check_store(struct import *import, const struct item *item,
                       const struct cli_manifest_file *listed, uint64_t *size)
{
    struct wal_error error = CLI_ERROR_INIT;
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status;

    parse_digest(listed->hash, digest);
    status = wal_blob_open(import->in->store, digest, &blob, &error);
    if (status == WAL_OK) {
        *size = wal_blob_size(blob);
        wal_blob_close(blob);
        return CLI_CONTINUE;
    }
    if (status != WAL_ENOTFOUND) {
        return cli_report(import->in->cli, item->path, status, &error);
    }
    return skip_checkpoint(import, CLI_NEGATIVE, item->path,
                           "the content %s of \"%s\" is missing; skipped",
                           listed->hash, (const char *)listed->path.data);
}

/* Ensures that the listed content is in the store and has the listed size. */
static int import_content(struct import *import, struct item *item,
                          const struct cli_manifest_file *listed)
{
    struct stat stat = {.st_size = 0};
    uint64_t size = 0;
    int code = CLI_CONTINUE;
    int fd = -1;

    errno = ENOENT;
    if (item->contents >= 0) {
        fd = open_file(item->contents, listed->hash, &stat);
    }
    if (fd < 0 && errno != ENOENT) {
        return report_file_error(import, item->path, listed->hash, errno);
    }
    if (fd < 0) {
        code = check_store(import, item, listed, &size);
    } else {
        size = (uint64_t)stat.st_size;
        if (cli_ids_find(&item->stored, cli_slice(listed->hash)) == NULL) {
            code = store_content(import, item, listed, fd);
        }
        close(fd);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    cli_ids_get_or_add(&item->stored, cli_slice(listed->hash));
    return !listed->has_size || listed->size == size
               ? CLI_CONTINUE
               : skip_checkpoint(
                     import, CLI_NEGATIVE, item->path,
                     "\"%s\" has %" PRIu64 " bytes, not %" PRIu64 "; skipped",
                     (const char *)listed->path.data, size, listed->size);
}

static int import_contents(struct import *import, struct item *item)
{
    const struct cli_manifest *manifest = &item->manifest;
    int code = CLI_CONTINUE;

    item->files = cli_alloc(manifest->count * sizeof(item->files[0]));
    for (size_t i = 0; i < manifest->count && code == CLI_CONTINUE; i++) {
        const struct cli_manifest_file *listed = &manifest->files[i];
        struct wal_file *file = &item->files[i];

        *file = (struct wal_file){.struct_size = sizeof(*file),
                                  .path = listed->path,
                                  .mode = listed->mode};
        if (!listed->is_absent) {
            file->kind = WAL_FILE_REGULAR;
            parse_digest(listed->hash, file->digest);
            code = import_content(import, item, listed);
        }
        progress_update(import->in->progress, item->path, i + 1,
                        manifest->count, "files");
    }
    progress_clear(import->in->progress);
    return code;
}

/* --- one checkpoint ------------------------------------------------------ */

/* Reads whether the session has a checkpoint of this id, and how many files. */
static void load_existing_info(const struct import *import, struct item *item,
                               struct wal_slice id)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status =
        wal_file_cursor_open(import->in->session, id, &checkpoint, NULL);

    item->is_new = status == WAL_ENOTFOUND;
    if (status == WAL_OK) {
        if (wal_checkpoint_get_info(checkpoint, &info, NULL) == WAL_OK) {
            item->previous_files = info.files;
        }
        wal_file_cursor_close(checkpoint);
    }
}

/* Reports an error of wal_checkpoint_import. Returns its exit code. */
static int report_import_error(const struct import *import,
                               const struct item *item, enum wal_status status,
                               const struct wal_error *error)
{
    if (cli_exit_code(status) == CLI_FAILED) {
        return cli_report(import->in->cli, item->path, status, error);
    }
    if (error->file[0] != '\0') {
        return skip_checkpoint(import, CLI_NEGATIVE, item->path,
                               "\"%s\": %s; skipped", error->file, error->text);
    }
    return skip_checkpoint(import, CLI_NEGATIVE, item->path, "%s; skipped",
                           error->text);
}

static int create_checkpoint(struct import *import, struct item *item,
                             const char *name)
{
    const char *id = item->manifest.id;
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = cli_slice(id != NULL && id[0] != '\0' ? id : name),
        .root = import->in->root,
        .created_ms = item->manifest.created_ms,
        /* A manifest names no entry. */
        .flags = WAL_CHECKPOINT_UNLINKED,
    };
    struct cli_checkpoint_imported imported = {.layout = item->layout,
                                               .path = item->path};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status;
    int code = CLI_OK;

    load_existing_info(import, item, options.id);
    status = wal_checkpoint_import(import->in->session, item->files,
                                   item->manifest.count, &options, &checkpoint,
                                   &error);
    if (status != WAL_OK) {
        code = report_import_error(import, item, status, &error);
        goto done;
    }
    item->info.struct_size = sizeof(item->info);
    status = wal_checkpoint_get_info(checkpoint, &item->info, &error);
    if (status != WAL_OK) {
        code = report_import_error(import, item, status, &error);
        goto done;
    }
    if ((item->info.flags & WAL_CHECKPOINT_OFF) != 0) {
        code = skip_checkpoint(import, CLI_NEGATIVE, item->path,
                               "checkpoints are off in this session; skipped");
        goto done;
    }
    imported.info = item->info;
    imported.added = item->info.files - item->previous_files;
    imported.is_new = item->is_new;
    import->in->imported(import->in->ctx, &imported);
done:
    wal_file_cursor_close(checkpoint);
    return code;
}

static void open_contents(struct item *item)
{
    static const char *const layouts[] = {"sdk", "spec11"};
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    for (size_t i = 0; i < 2 && item->contents < 0; i++) {
        item->layout = layouts[i];
        item->contents = openat(item->directory,
                                cli_layout_find(layouts[i])->contents, flags);
    }
}

static int import_one(struct import *import, int parent_fd,
                      const char *directory, const char *name)
{
    struct item item = {.contents = -1};
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = cli_alloc(size);
    int code;

    snprintf(path, size, "%s/%s", directory, name);
    item.path = path;
    item.directory = openat(parent_fd, name,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (item.directory < 0) {
        code =
            cli_error(import->in->cli, CLI_FAILED, path, "%s", strerror(errno));
        free(path);
        return code;
    }
    open_contents(&item);
    code = read_manifest(import, path, item.directory, &item.manifest);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    code = import_contents(import, &item);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    code = create_checkpoint(import, &item, name);
done:
    if (item.contents >= 0) {
        close(item.contents);
    }
    close(item.directory);
    cli_ids_deinit(&item.stored);
    cli_manifest_deinit(&item.manifest);
    free(item.files);
    free(path);
    return code;
}

/* --- all checkpoints ----------------------------------------------------- */

/* Adds a directory that has a readable manifest, with its creation time. */
static int add_candidate(struct import *import, int parent_fd,
                         const char *directory, const char *name)
{
    struct cli_manifest manifest = {.id = NULL};
    int fd = openat(parent_fd, name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path;
    int code;

    if (fd < 0) {
        return errno == ENOTDIR || errno == ELOOP
                   ? CLI_CONTINUE
                   : cli_error(import->in->cli, CLI_FAILED, name, "%s",
                               strerror(errno));
    }
    path = cli_alloc(size);
    snprintf(path, size, "%s/%s", directory, name);
    code = read_manifest(import, path, fd, &manifest);
    if (code == CLI_CONTINUE) {
        import->items =
            cli_reserve(import->items, import->count, &import->capacity,
                        sizeof(import->items[0]));
        import->items[import->count++] = (struct candidate){
            cli_copy_text(name, strlen(name)), manifest.created_ms};
    }
    cli_manifest_deinit(&manifest);
    free(path);
    close(fd);
    return code;
}

static int find_candidates(struct import *import, int parent_fd,
                           const char *directory)
{
    int copy = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    int code = CLI_OK;

    if (stream == NULL) {
        return cli_error(import->in->cli, CLI_FAILED, directory, "%s",
                         strerror(errno));
    }
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.') {
            code =
                cli_worse_code(code, add_candidate(import, parent_fd, directory,
                                                   entry->d_name));
        }
    }
    closedir(stream);
    return code;
}

/* Oldest first: a session lists its checkpoints in creation order. */
static int compare_created(const void *a, const void *b)
{
    const struct candidate *one = a;
    const struct candidate *two = b;

    if (one->created_ms != two->created_ms) {
        return one->created_ms < two->created_ms ? -1 : 1;
    }
    return strcmp(one->name, two->name);
}

static int import_all(struct import *import, int parent_fd,
                      const char *directory)
{
    int code = find_candidates(import, parent_fd, directory);

    if (import->count > 0) {
        qsort(import->items, import->count, sizeof(import->items[0]),
              compare_created);
    }
    for (size_t i = 0; i < import->count; i++) {
        code = cli_worse_code(code, import_one(import, parent_fd, directory,
                                               import->items[i].name));
    }
    return code;
}

static void deinit(struct import *import)
{
    for (size_t i = 0; i < import->count; i++) {
        free(import->items[i].name);
    }
    free(import->items);
    free(import->buffer);
}

int cli_checkpoint_import_one(const struct cli_checkpoint_import *in,
                              int parent_fd, const char *directory,
                              const char *name)
{
    struct import import = {.in = in};
    int code;

    import.buffer = cli_alloc(CLI_COPY_BUFFER_SIZE);
    code = import_one(&import, parent_fd, directory, name);
    deinit(&import);
    return code;
}

int cli_checkpoint_import_all(const struct cli_checkpoint_import *in,
                              const char *directory, bool *is_empty)
{
    struct import import = {.in = in};
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code;

    if (fd < 0) {
        return cli_error(in->cli, CLI_FAILED, directory, "%s", strerror(errno));
    }
    import.buffer = cli_alloc(CLI_COPY_BUFFER_SIZE);
    code = import_all(&import, fd, directory);
    *is_empty = import.count == 0;
    deinit(&import);
    close(fd);
    return code;
}
