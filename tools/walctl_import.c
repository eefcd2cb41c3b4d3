/*
 * walctl_import - the command checkpoint-import: directories of files
 * (walctl_layout.h) as checkpoints of a session.
 *
 * Invariant: a checkpoint is made when all that its manifest names is in the
 * store under the names that it gives; else nothing is made of it. What a
 * manifest says never opens a file elsewhere.
 *
 * Threads: one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_ids.h"
#include "tools/cli_json.h"
#include "tools/progress.h"
#include "tools/walctl.h"
#include "tools/walctl_layout.h"

/* Of a manifest; more than one of a million files has. */
#define MANIFEST_MAX ((off_t)256 << 20)

/* A checkpoint's directory. */
struct found {
    char *name;
    int64_t created_ms;
};

struct import {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    char *root; /* null: the session's directory */
    struct found *items;
    size_t count;
    size_t capacity;
    uint8_t *piece;
    struct progress progress;
};

/* A checkpoint on its way. */
struct item {
    const char *path; /* for messages */
    int directory;
    int contents;       /* directory of contents, or -1 */
    const char *layout; /* its name */
    struct walctl_manifest manifest;
    struct wal_file *files;
    struct cli_ids put; /* hashes whose contents are in the store */
    uint64_t before;    /* files that the checkpoint had */
    struct wal_checkpoint_info info;
};

/* --- manifests ----------------------------------------------------------- */

/* A regular file below the directory; -1 and errno, ELOOP for what is none. */
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

/* What open_file failed with. */
static int tell_file(const struct import *import, const char *path,
                     const char *name, int number)
{
    if (number == ELOOP) {
        return cli_error(import->cli, CLI_NO, path,
                         "%s: not a regular file; left out", name);
    }
    return cli_error(import->cli, number == ENOENT ? CLI_NO : CLI_FAILED, path,
                     "%s: %s; left out", name, strerror(number));
}

/* Bytes that were read, fewer at the end alone; -1 and errno. */
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
                         int directory, struct walctl_manifest *manifest)
{
    struct stat stat;
    int fd = open_file(directory, WALCTL_MANIFEST, &stat);
    const char *fault;
    uint8_t *data;
    ssize_t got;

    if (fd < 0) {
        return tell_file(import, path, WALCTL_MANIFEST, errno);
    }
    if (stat.st_size > MANIFEST_MAX) {
        close(fd);
        return cli_error(import->cli, CLI_NO, path,
                         WALCTL_MANIFEST " is too large; left out");
    }
    data = cli_alloc((size_t)stat.st_size);
    got = read_full(fd, data, (size_t)stat.st_size);
    close(fd);
    if (got < 0) {
        free(data);
        return cli_error(import->cli, CLI_FAILED, path, "%s", strerror(errno));
    }
    fault = walctl_manifest_read(manifest, data, (size_t)got);
    free(data);
    return fault == NULL
               ? CLI_GO_ON
               : cli_error(import->cli, CLI_NO, path,
                           WALCTL_MANIFEST " is damaged: %s; left out", fault);
}

/* --- contents ------------------------------------------------------------ */

static void digest_of(const char *hash, uint8_t digest[WAL_DIGEST_SIZE])
{
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        const char digits[] = {hash[2 * i], hash[2 * i + 1], '\0'};

        digest[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Puts what the file holds; *number is errno where reading fails. */
static enum wal_status put_stream(struct import *import, int fd,
                                  uint8_t digest[WAL_DIGEST_SIZE],
                                  uint64_t *size, int *number,
                                  struct wal_error *error)
{
    struct wal_blob_writer *writer = NULL;
    enum wal_status status = wal_blob_create(import->store, &writer, error);
    ssize_t got = 1;

    while (status == WAL_OK && got > 0) {
        struct wal_slice piece = {import->piece, 0};

        got = read_full(fd, import->piece, WALCTL_PIECE);
        if (got < 0) {
            *number = errno;
            status = WAL_EIO;
        } else if (got > 0) {
            piece.size = (uint64_t)got;
            status = wal_blob_write(writer, piece, error);
        }
    }
    if (status == WAL_OK) {
        status = wal_blob_finish(writer, digest, size, error);
    }
    wal_blob_discard(writer);
    return status;
}

/* One content from its file, verified against the name of that. */
static int put_content(struct import *import, const struct item *item,
                       const struct walctl_told *told, int fd)
{
    struct wal_error error = CLI_ERROR_INIT;
    uint8_t expected[WAL_DIGEST_SIZE];
    uint8_t digest[WAL_DIGEST_SIZE];
    char hash[WALCTL_HASH_SIZE + 1];
    uint64_t size = 0;
    int number = 0;
    enum wal_status status =
        put_stream(import, fd, digest, &size, &number, &error);

    if (number != 0) {
        return cli_error(import->cli, CLI_FAILED, item->path, "%s: %s",
                         told->hash, strerror(number));
    }
    if (status != WAL_OK) {
        return cli_fail(import->cli, told->hash, status, &error);
    }
    digest_of(told->hash, expected);
    if (memcmp(digest, expected, sizeof(digest)) != 0) {
        walctl_hash_text(digest, hash);
        return cli_error(import->cli, CLI_NO, item->path,
                         "the content %s of \"%s\" is damaged: its SHA-256 is "
                         "%s; left out",
                         told->hash, (const char *)told->path.data, hash);
    }
    return CLI_GO_ON;
}

/* Content that has no file may be in the store: stores that keep one file for
 * several checkpoints have it with the first. */
static int check_store(struct import *import, const struct item *item,
                       const struct walctl_told *told, uint64_t *size)
{
    struct wal_error error = CLI_ERROR_INIT;
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status;

    digest_of(told->hash, digest);
    status = wal_blob_open(import->store, digest, &blob, &error);
    if (status == WAL_OK) {
        *size = wal_blob_size(blob);
        wal_blob_close(blob);
        return CLI_GO_ON;
    }
    if (status != WAL_ENOTFOUND) {
        return cli_fail(import->cli, item->path, status, &error);
    }
    return cli_error(import->cli, CLI_NO, item->path,
                     "the content %s of \"%s\" is missing; left out",
                     told->hash, (const char *)told->path.data);
}

/* The content of a file, in the store, with the size that is told. */
static int take_content(struct import *import, struct item *item,
                        const struct walctl_told *told)
{
    struct stat stat = {.st_size = 0};
    uint64_t size = 0;
    int code = CLI_GO_ON;
    int fd = -1;

    errno = ENOENT;
    if (item->contents >= 0) {
        fd = open_file(item->contents, told->hash, &stat);
    }
    if (fd < 0 && errno != ENOENT) {
        return tell_file(import, item->path, told->hash, errno);
    }
    if (fd < 0) {
        code = check_store(import, item, told, &size);
    } else {
        size = (uint64_t)stat.st_size;
        if (cli_ids_find(&item->put, cli_slice(told->hash)) == NULL) {
            code = put_content(import, item, told, fd);
        }
        close(fd);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    cli_ids_put(&item->put, cli_slice(told->hash));
    return !told->has_size || told->size == size
               ? CLI_GO_ON
               : cli_error(import->cli, CLI_NO, item->path,
                           "\"%s\" has %" PRIu64 " bytes, not %" PRIu64
                           "; left out",
                           (const char *)told->path.data, size, told->size);
}

static int take_contents(struct import *import, struct item *item)
{
    const struct walctl_manifest *manifest = &item->manifest;
    int code = CLI_GO_ON;

    item->files = cli_alloc(manifest->count * sizeof(item->files[0]));
    for (size_t i = 0; i < manifest->count && code == CLI_GO_ON; i++) {
        const struct walctl_told *told = &manifest->files[i];
        struct wal_file *file = &item->files[i];

        *file = (struct wal_file){.struct_size = sizeof(*file),
                                  .path = told->path,
                                  .mode = told->mode};
        if (!told->is_absent) {
            file->kind = WAL_FILE_REGULAR;
            digest_of(told->hash, file->digest);
            code = take_content(import, item, told);
        }
        progress_show(&import->progress, item->path, i + 1, manifest->count,
                      "files");
    }
    progress_clear(&import->progress);
    return code;
}

/* --- a checkpoint -------------------------------------------------------- */

static void report(const struct import *import, const struct item *item)
{
    uint64_t added = item->info.files - item->before;
    struct cli_json json;

    if (!import->cli->json) {
        cli_print_name(stdout, cli_slice(item->path));
        fputs(": checkpoint ", stdout);
        cli_print_name(stdout, item->info.id);
        printf(", %" PRIu64 " %s, %" PRIu64 " added\n", item->info.files,
               cli_noun(item->info.files, "file", "files"), added);
        return;
    }
    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "checkpointId");
    cli_json_text(&json, item->info.id);
    cli_json_key(&json, "layout");
    cli_json_text(&json, cli_slice(item->layout));
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(item->path));
    cli_json_key(&json, "files");
    cli_json_number(&json, item->info.files);
    cli_json_key(&json, "bytes");
    cli_json_number(&json, item->info.bytes);
    cli_json_key(&json, "added");
    cli_json_number(&json, added);
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

/* How many files the session's checkpoint of the id has. */
static uint64_t count_before(const struct import *import, struct wal_slice id)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint *checkpoint = NULL;
    uint64_t files = 0;

    if (wal_checkpoint_open(import->session, id, &checkpoint, NULL) == WAL_OK) {
        if (wal_checkpoint_status(checkpoint, &info, NULL) == WAL_OK) {
            files = info.files;
        }
        wal_checkpoint_close(checkpoint);
    }
    return files;
}

static int make(struct import *import, struct item *item, const char *name)
{
    const char *id = item->manifest.id;
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = cli_slice(id != NULL && id[0] != '\0' ? id : name),
        .root = cli_slice(import->root),
        .created_ms = item->manifest.created_ms,
    };
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_checkpoint *checkpoint = NULL;
    enum wal_status status;
    int code = CLI_DONE;

    item->before = count_before(import, options.id);
    status = wal_checkpoint_import(import->session, item->files,
                                   item->manifest.count, &options, &checkpoint,
                                   &error);
    item->info.struct_size = sizeof(item->info);
    if (status == WAL_OK) {
        status = wal_checkpoint_status(checkpoint, &item->info, &error);
    }
    if (status == WAL_OK && (item->info.flags & WAL_CHECKPOINT_OFF) != 0) {
        code = cli_error(import->cli, CLI_NO, item->path,
                         "checkpoints are off in this session; left out");
    } else if (status == WAL_OK) {
        report(import, item);
    } else if (error.file[0] != '\0' && cli_code(status) != CLI_FAILED) {
        code = cli_error(import->cli, CLI_NO, item->path,
                         "\"%s\": %s; left out", error.file, error.text);
    } else {
        /* What is wrong is the manifest, not the command line. */
        code = cli_fail(import->cli, item->path, status, &error);
        code = code == CLI_USAGE ? CLI_NO : code;
    }
    wal_checkpoint_close(checkpoint);
    return code;
}

static void open_contents(struct item *item)
{
    static const char *const layouts[] = {"sdk", "spec11"};
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    for (size_t i = 0; i < 2 && item->contents < 0; i++) {
        item->layout = layouts[i];
        item->contents = openat(
            item->directory, walctl_layout_find(layouts[i])->contents, flags);
    }
}

static int import_one(struct import *import, int above, const char *directory,
                      const char *name)
{
    struct item item = {.contents = -1};
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = cli_alloc(size);
    int code;

    snprintf(path, size, "%s/%s", directory, name);
    item.path = path;
    item.directory =
        openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (item.directory < 0) {
        code = cli_error(import->cli, CLI_FAILED, path, "%s", strerror(errno));
        free(path);
        return code;
    }
    open_contents(&item);
    code = read_manifest(import, path, item.directory, &item.manifest);
    if (code == CLI_GO_ON) {
        code = take_contents(import, &item);
    }
    if (code == CLI_GO_ON) {
        code = make(import, &item, name);
    }
    if (item.contents >= 0) {
        close(item.contents);
    }
    close(item.directory);
    cli_ids_deinit(&item.put);
    walctl_manifest_deinit(&item.manifest);
    free(item.files);
    free(path);
    return code;
}

/* --- all ----------------------------------------------------------------- */

/* Notes a directory that has a manifest, and when it says it was made. */
static int note(struct import *import, int above, const char *directory,
                const char *name)
{
    struct walctl_manifest manifest = {.id = NULL};
    int fd =
        openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path;
    int code;

    if (fd < 0) {
        return errno == ENOTDIR || errno == ELOOP
                   ? CLI_GO_ON
                   : cli_error(import->cli, CLI_FAILED, name, "%s",
                               strerror(errno));
    }
    path = cli_alloc(size);
    snprintf(path, size, "%s/%s", directory, name);
    code = read_manifest(import, path, fd, &manifest);
    if (code == CLI_GO_ON) {
        import->items = cli_room(import->items, import->count,
                                 &import->capacity, sizeof(import->items[0]));
        import->items[import->count++] =
            (struct found){cli_copy(name, strlen(name)), manifest.created_ms};
    }
    walctl_manifest_deinit(&manifest);
    free(path);
    close(fd);
    return code;
}

static int note_all(struct import *import, int above, const char *directory)
{
    int copy = fcntl(above, F_DUPFD_CLOEXEC, 0);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    int code = CLI_DONE;

    if (stream == NULL) {
        return cli_error(import->cli, CLI_FAILED, directory, "%s",
                         strerror(errno));
    }
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.') {
            code =
                cli_worse(code, note(import, above, directory, entry->d_name));
        }
    }
    closedir(stream);
    return code;
}

/* Oldest first: so the session lists them. */
static int by_age(const void *a, const void *b)
{
    const struct found *one = a;
    const struct found *two = b;

    if (one->created_ms != two->created_ms) {
        return one->created_ms < two->created_ms ? -1 : 1;
    }
    return strcmp(one->name, two->name);
}

static int import_all(struct import *import, int above, const char *directory)
{
    int code = note_all(import, above, directory);

    if (import->count == 0) {
        return cli_error(import->cli, cli_worse(code, CLI_NO), directory,
                         "there is no checkpoint");
    }
    qsort(import->items, import->count, sizeof(import->items[0]), by_age);
    for (size_t i = 0; i < import->count; i++) {
        code = cli_worse(
            code, import_one(import, above, directory, import->items[i].name));
    }
    return code;
}

/* A directory that is a checkpoint itself, or holds `checkpoints`, or holds
 * checkpoints. */
static int run(struct import *import, const char *given)
{
    char *path = cli_directory(given);
    char *slash = strrchr(path, '/');
    char *below = cli_alloc(strlen(path) + 16);
    struct stat stat;
    int code;
    int fd;

    sprintf(below, "%s/" WALCTL_MANIFEST, path);
    if (lstat(below, &stat) == 0 && slash != NULL && slash[1] != '\0') {
        *slash = '\0';
        fd = open(slash > path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        code = fd < 0 ? cli_error(import->cli, CLI_FAILED, path, "%s",
                                  strerror(errno))
                      : import_one(import, fd, path, slash + 1);
    } else {
        sprintf(below, "%s/" WALCTL_CHECKPOINTS, path);
        if (lstat(below, &stat) != 0 || !S_ISDIR(stat.st_mode)) {
            strcpy(below, path);
        }
        fd = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = fd < 0 ? cli_error(import->cli, CLI_FAILED, given, "%s",
                                  strerror(errno))
                      : import_all(import, fd, below);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(below);
    free(path);
    return code;
}

static void import_deinit(struct import *import)
{
    for (size_t i = 0; i < import->count; i++) {
        free(import->items[i].name);
    }
    free(import->items);
    free(import->piece);
    free(import->root);
}

int walctl_checkpoint_import(struct cli *cli, int argc, char **argv)
{
    const char *root = NULL;
    const struct cli_option options[] = {
        {.name = "root", .value = &root},
        {.name = NULL},
    };
    struct import import = {.cli = cli};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 4, 4);
    }
    if (code == CLI_GO_ON) {
        code = walctl_root(cli, root, &import.root);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    progress_init(&import.progress, !cli->no_progress);
    import.piece = cli_alloc(WALCTL_PIECE);
    code = cli_open(cli, cli->items[1], 0, &import.store);
    if (code == CLI_GO_ON) {
        code = cli_session(cli, import.store, cli->items[2], &import.session);
        if (code == CLI_GO_ON) {
            code = run(&import, cli->items[3]);
        }
        code = walctl_end_session(cli, import.store, import.session, code);
    }
    import_deinit(&import);
    return code;
}
