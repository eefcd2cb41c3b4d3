/*
 * checkpoint_import.c - imports directories of files as checkpoints (checkpoint_import.h).
 */
#include "convert/import/checkpoint_import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "convert/import/import.h"
#include "convert/model/model_table.h"
#include "convert/source/checkpoint_manifest.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/bytes/bytes.h"

/* --- contents as blobs --------------------------------------------------- */

/* Decodes the hash of a listed file. */
static void parse_hash(const char *hash, uint8_t digest[WAL_DIGEST_SIZE])
{
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        const char digits[] = {hash[2 * i], hash[2 * i + 1], '\0'};

        digest[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Stores the file's bytes as a blob. */
static enum wal_status store_stream(struct wal_blob_writer *writer, uint8_t *buffer,
                                    const char *hash, int fd, uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint64_t size = 0;
    ssize_t got = 1;

    while (status == WAL_OK && got > 0) {
        struct wal_slice piece = {buffer, 0};

        got = wal__file_read_full(fd, buffer, WAL__CHECKPOINT_BUFFER_SIZE);
        if (got < 0) {
            status = wal__fail_at(error, WAL_EIO, errno, NULL, 0, "%s: %s", hash, strerror(errno));
        } else if (got > 0) {
            piece.size = (uint64_t)got;
            status = wal_blob_write(writer, piece, error);
        }
    }
    return status == WAL_OK ? wal_blob_finish(writer, digest, &size, error) : status;
}

/* Stores the content of an open file. WAL_ECORRUPT: its digest is not the hash
 * that the manifest lists. `buffer` has WAL__CHECKPOINT_BUFFER_SIZE bytes. Free
 * *writer with wal_blob_discard once the checkpoint names the content. */
static enum wal_status store_content(struct wal_store *store,
                                     const struct wal__checkpoint_manifest_file *listed, int fd,
                                     uint8_t *buffer, struct wal_blob_writer **writer,
                                     struct wal_error *error)
{
    uint8_t expected[WAL_DIGEST_SIZE];
    uint8_t digest[WAL_DIGEST_SIZE];
    char hash[WAL__CHECKPOINT_HASH_SIZE + 1];
    enum wal_status status = wal_blob_create_named(store, writer, error);

    if (status == WAL_OK) {
        status = store_stream(*writer, buffer, listed->hash, fd, digest, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    parse_hash(listed->hash, expected);
    if (memcmp(digest, expected, sizeof(digest)) == 0) {
        return WAL_OK;
    }
    wal__hex_write(digest, WAL_DIGEST_SIZE, hash);
    return wal__fail(error, WAL_ECORRUPT,
                     "the content %s of \"%s\" is damaged: its SHA-256 is %s; "
                     "skipped",
                     listed->hash, (const char *)listed->path.data, hash);
}

/* Gets the size of a content that has no file. It may be in the store already: stores that share
 * one file between checkpoints keep it with the first of them. WAL_ENOTFOUND: it is not. */
static enum wal_status find_content(struct wal_store *store,
                                    const struct wal__checkpoint_manifest_file *listed,
                                    uint64_t *size, struct wal_error *error)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status;

    parse_hash(listed->hash, digest);
    status = wal_blob_open(store, digest, &blob, error);
    if (status == WAL_OK) {
        *size = wal_blob_size(blob);
        wal_blob_close(blob);
        return WAL_OK;
    }
    return status != WAL_ENOTFOUND
               ? status
               : wal__fail(error, WAL_ENOTFOUND, "the content %s of \"%s\" is missing; skipped",
                           listed->hash, (const char *)listed->path.data);
}

/* --- the importer -------------------------------------------------------- */

/* Bytes; a manifest of a million files is smaller. */
#define MANIFEST_MAX ((off_t)256 << 20)

/* A directory that has a readable manifest. */
struct candidate {
    char *name;
    int64_t created_ms;
};

struct importer {
    const struct wal__checkpoint_import *in;
    const struct wal__heap *heap;
    struct candidate *items;
    size_t count;
    size_t capacity;
    struct wal__heap_arena list;  /* of the candidates */
    struct wal__heap_arena arena; /* for one checkpoint */
    uint8_t *buffer;
};

/* One checkpoint during its import. */
struct item {
    const char *path; /* shown in messages */
    int directory;
    int contents;       /* descriptor of the directory of contents, or -1 */
    const char *layout; /* name of the layout */
    struct wal__checkpoint_manifest manifest;
    struct wal_file *files;
    /* digests whose contents are in the store, by hash */
    struct wal__model_table stored;
    /* They keep the contents until the checkpoint names them; one per file of the manifest, or
     * null. */
    struct wal_blob_writer **writers;
    uint64_t bytes; /* of the contents so far */
    /* Files that the checkpoint had before the import. */
    uint64_t previous_files;
    bool is_new; /* no checkpoint had this id */
};

bool wal__checkpoint_is_refused(enum wal_status status)
{
    static const enum wal_status refused[] = {
        WAL_EINVAL,   WAL_ENOTFOUND,   WAL_EEXISTS,  WAL_ECONFLICT, WAL_ETOOBIG,
        WAL_ECORRUPT, WAL_EDEPENDENCY, WAL_EDAMAGED, WAL_EOUTSIDE,  WAL_ENOTFILE,
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (status == refused[i]) {
            return true;
        }
    }
    return false;
}

static enum wal_status fail_errno(struct wal_error *error)
{
    int number = errno;

    return number == ENOMEM ? wal__no_memory(error)
                            : wal__fail_at(error, WAL_EIO, number, NULL, 0, "%s", strerror(number));
}

/* Passes on that a path is not imported, unless that was because of missing memory. */
static enum wal_status skip(const struct importer *importer, const char *path,
                            enum wal_status status, struct wal_error *error)
{
    if (importer->arena.has_failed || importer->list.has_failed) {
        return wal__no_memory(error);
    }
    return status == WAL_OK || status == WAL_ENOMEM || status == WAL_ECALLBACK
               ? status
               : importer->in->skipped(importer->in->ctx, path, status, error);
}

/* --- manifests ----------------------------------------------------------- */

/* The error of a file that wal__file_open_regular could not open. */
static enum wal_status fail_open(struct wal_error *error, const char *name)
{
    int number = errno;

    if (number == ELOOP) {
        return wal__fail(error, WAL_ENOTFILE, "%s: not a regular file; skipped", name);
    }
    return wal__fail_at(error, number == ENOENT ? WAL_ENOTFOUND : WAL_EIO, number, NULL, 0,
                        "%s: %s; skipped", name, strerror(number));
}

static enum wal_status parse_manifest(struct wal__checkpoint_manifest *manifest, int fd,
                                      uint8_t *data, size_t size, struct wal_error *error)
{
    ssize_t got = wal__file_read_full(fd, data, size);
    const char *problem;

    if (got < 0) {
        return fail_errno(error);
    }
    problem = wal__checkpoint_manifest_read(manifest, data, (size_t)got);
    return problem == NULL
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, WAL__CHECKPOINT_MANIFEST " is damaged: %s; skipped",
                           problem);
}

static enum wal_status read_manifest(struct importer *importer, int directory,
                                     struct wal__checkpoint_manifest *manifest,
                                     struct wal_error *error)
{
    enum wal_status status;
    struct stat stat;
    int fd = wal__file_open_regular(directory, WAL__CHECKPOINT_MANIFEST, &stat);
    uint8_t *data;

    manifest->arena = &importer->arena;
    if (fd < 0) {
        return fail_open(error, WAL__CHECKPOINT_MANIFEST);
    }
    if (stat.st_size > MANIFEST_MAX) {
        close(fd);
        return wal__fail(error, WAL_ETOOBIG, WAL__CHECKPOINT_MANIFEST " is too large; skipped");
    }
    data = wal__heap_alloc(importer->heap, (size_t)stat.st_size + 1);
    status = data == NULL ? wal__no_memory(error)
                          : parse_manifest(manifest, fd, data, (size_t)stat.st_size, error);
    wal__heap_free(importer->heap, data);
    close(fd);
    return status;
}

/* --- contents ------------------------------------------------------------ */

/* Ensures that the listed content is in the store and has the listed size. */
static enum wal_status import_content(struct importer *importer, struct item *item,
                                      const struct wal__checkpoint_manifest_file *listed,
                                      struct wal_error *error)
{
    uint64_t key = wal__model_text_hash(listed->hash);
    struct wal__json_span stored = {.size = 1};
    struct stat stat = {.st_size = 0};
    enum wal_status status = WAL_OK;
    uint64_t size = 0;
    int fd = -1;

    errno = ENOENT;
    if (item->contents >= 0) {
        fd = wal__file_open_regular(item->contents, listed->hash, &stat);
    }
    if (fd < 0 && errno != ENOENT) {
        return fail_open(error, listed->hash);
    }
    if (fd < 0) {
        status = find_content(importer->in->store, listed, &size, error);
    } else {
        size = (uint64_t)stat.st_size;
        if (!wal__model_table_get(&item->stored, key, &stored)) {
            status = store_content(importer->in->store, listed, fd, importer->buffer,
                                   &item->writers[listed - item->manifest.files], error);
        }
        close(fd);
    }
    if (status != WAL_OK) {
        return status;
    }
    (void)wal__model_table_put(&item->stored, key, stored);
    item->bytes += size;
    return !listed->has_size || listed->size == size
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT,
                           "\"%s\" has %" PRIu64 " bytes, not %" PRIu64 "; skipped",
                           (const char *)listed->path.data, size, listed->size);
}

static enum wal_status import_contents(struct importer *importer, struct item *item,
                                       struct wal_error *error)
{
    const struct wal__checkpoint_manifest *manifest = &item->manifest;
    enum wal_status status = WAL_OK;

    item->files =
        wal__arena_alloc(&importer->arena.arena, (manifest->count + 1) * sizeof(item->files[0]));
    item->writers =
        wal__arena_calloc(&importer->arena.arena, (manifest->count + 1) * sizeof(item->writers[0]));
    if (item->files == NULL || item->writers == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < manifest->count && status == WAL_OK; i++) {
        const struct wal__checkpoint_manifest_file *listed = &manifest->files[i];
        struct wal_file *file = &item->files[i];

        *file = (struct wal_file){
            .struct_size = sizeof(*file), .path = listed->path, .mode = listed->mode};
        if (!listed->is_absent) {
            file->kind = WAL_FILE_REGULAR;
            parse_hash(listed->hash, file->digest);
            status = import_content(importer, item, listed, error);
        }
        if (status == WAL_OK) {
            status = importer->in->progress(importer->in->ctx, item->path, i + 1, manifest->count,
                                            item->bytes, error);
        }
    }
    return status;
}

/* --- one checkpoint ------------------------------------------------------ */

/* Reads whether the session has a checkpoint of this id, and how many files. */
static void load_existing_info(const struct importer *importer, struct item *item,
                               struct wal_slice id)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status = wal_file_cursor_open(importer->in->session, id, &checkpoint, NULL);

    item->is_new = status == WAL_ENOTFOUND;
    if (status == WAL_OK) {
        if (wal_checkpoint_get_info(checkpoint, &info, NULL) == WAL_OK) {
            item->previous_files = info.files;
        }
        wal_file_cursor_close(checkpoint);
    }
}

/* Extends the error of wal_checkpoint_import by the file that it names. */
static enum wal_status refuse(enum wal_status status, struct wal_error *error)
{
    const struct wal_error why = *error;

    if (!wal__checkpoint_is_refused(status)) {
        return status;
    }
    return why.file[0] != '\0' ? wal__fail(error, status, "\"%s\": %s; skipped", why.file, why.text)
                               : wal__fail(error, status, "%s; skipped", why.text);
}

static enum wal_status create_checkpoint(struct importer *importer, struct item *item,
                                         const char *name, struct wal_error *error)
{
    const char *id = item->manifest.id;
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = wal__slice_from_text(id != NULL && id[0] != '\0' ? id : name),
        .root = importer->in->root,
        .created_ms = item->manifest.created_ms,
        /* A manifest names no entry. */
        .flags = WAL_CHECKPOINT_UNLINKED,
    };
    struct wal__checkpoint_imported imported = {
        .info = {.struct_size = sizeof(imported.info)}, .layout = item->layout, .path = item->path};
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status;

    load_existing_info(importer, item, options.id);
    status = wal_checkpoint_import(importer->in->session, item->files, item->manifest.count,
                                   &options, &checkpoint, error);
    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(checkpoint, &imported.info, error);
    }
    if (status != WAL_OK) {
        wal_file_cursor_close(checkpoint);
        return refuse(status, error);
    }
    if ((imported.info.flags & WAL_CHECKPOINT_OFF) != 0) {
        status = wal__fail(error, WAL_ECONFLICT, "checkpoints are off in this session; skipped");
    } else {
        imported.added = imported.info.files - item->previous_files;
        imported.is_new = item->is_new;
        importer->in->imported(importer->in->ctx, &imported);
    }
    wal_file_cursor_close(checkpoint);
    return status;
}

static void open_contents(struct item *item)
{
    static const char *const layouts[] = {"sdk", "spec11"};
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    for (size_t i = 0; i < 2 && item->contents < 0; i++) {
        item->layout = layouts[i];
        item->contents =
            openat(item->directory, wal__checkpoint_layout_find(layouts[i])->contents, flags);
    }
}

static enum wal_status import_item(struct importer *importer, struct item *item, const char *name,
                                   struct wal_error *error)
{
    enum wal_status status = read_manifest(importer, item->directory, &item->manifest, error);

    if (status == WAL_OK) {
        status = import_contents(importer, item, error);
    }
    return status == WAL_OK ? create_checkpoint(importer, item, name, error) : status;
}

static enum wal_status import_one(struct importer *importer, int parent_fd, const char *directory,
                                  const char *name, struct wal_error *error)
{
    struct item item = {.contents = -1};
    enum wal_status status;

    wal__heap_arena_reset(&importer->arena);
    item.manifest.arena = &importer->arena;
    item.stored.arena = &importer->arena.arena;
    item.path = wal__import_path(&importer->arena.arena, directory, name);
    if (item.path == NULL) {
        return wal__no_memory(error);
    }
    item.directory = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (item.directory < 0) {
        return skip(importer, item.path, fail_errno(error), error);
    }
    open_contents(&item);
    status = import_item(importer, &item, name, error);
    if (item.contents >= 0) {
        close(item.contents);
    }
    close(item.directory);
    for (uint32_t i = 0; item.writers != NULL && i < item.manifest.count; i++) {
        wal_blob_discard(item.writers[i]);
    }
    return skip(importer, item.path, status, error);
}

/* --- all checkpoints ----------------------------------------------------- */

static enum wal_status append_candidate(struct importer *importer, const char *name,
                                        int64_t created_ms, struct wal_error *error)
{
    struct wal__arena *arena = &importer->list.arena;
    char *copy = wal__arena_copy_text(arena, name);
    struct candidate *items = wal__arena_grow(arena, importer->items, importer->count,
                                              &importer->capacity, sizeof(items[0]));

    if (importer->list.has_failed) {
        return wal__no_memory(error);
    }
    importer->items = items;
    items[importer->count++] = (struct candidate){copy, created_ms};
    return WAL_OK;
}

/* Adds a directory that has a readable manifest, with its creation time. */
static enum wal_status add_candidate(struct importer *importer, int parent_fd,
                                     const char *directory, const char *name,
                                     struct wal_error *error)
{
    struct wal__checkpoint_manifest manifest = {.arena = &importer->arena};
    enum wal_status status;
    const char *path;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) {
        return errno == ENOTDIR || errno == ELOOP ? WAL_OK
                                                  : skip(importer, name, fail_errno(error), error);
    }
    wal__heap_arena_reset(&importer->arena);
    path = wal__import_path(&importer->arena.arena, directory, name);
    status = read_manifest(importer, fd, &manifest, error);
    close(fd);
    return status == WAL_OK ? append_candidate(importer, name, manifest.created_ms, error)
                            : skip(importer, path, status, error);
}

static enum wal_status find_candidates(struct importer *importer, int parent_fd,
                                       const char *directory, struct wal_error *error)
{
    int copy = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    enum wal_status status = WAL_OK;
    const struct dirent *entry;

    if (stream == NULL) {
        status = fail_errno(error);
        if (copy >= 0) {
            close(copy);
        }
        return skip(importer, directory, status, error);
    }
    while (status == WAL_OK && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.') {
            status = add_candidate(importer, parent_fd, directory, entry->d_name, error);
        }
    }
    closedir(stream);
    return status;
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

enum wal_status wal__checkpoint_import(const struct wal__checkpoint_import *in,
                                       const char *directory, const char *name, bool *is_empty,
                                       struct wal_error *error)
{
    struct importer importer = {.in = in, .heap = in->heap != NULL ? in->heap : &wal__heap_libc};
    int fd = name != NULL ? wal__system_open_place(AT_FDCWD, directory, true)
                          : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum wal_status status;

    if (fd < 0) {
        return in->skipped(in->ctx, directory, fail_errno(error), error);
    }
    wal__heap_arena_init(&importer.list, importer.heap);
    wal__heap_arena_init(&importer.arena, importer.heap);
    importer.buffer = wal__heap_alloc(importer.heap, WAL__CHECKPOINT_BUFFER_SIZE);
    if (importer.buffer == NULL) {
        status = wal__no_memory(error);
    } else if (name != NULL) {
        status = append_candidate(&importer, name, 0, error);
    } else {
        status = find_candidates(&importer, fd, directory, error);
    }
    if (importer.count > 0) {
        qsort(importer.items, importer.count, sizeof(importer.items[0]), compare_created);
    }
    for (size_t i = 0; status == WAL_OK && i < importer.count; i++) {
        status = import_one(&importer, fd, directory, importer.items[i].name, error);
    }
    *is_empty = importer.count == 0;
    wal__heap_arena_deinit(&importer.list);
    wal__heap_arena_deinit(&importer.arena);
    wal__heap_free(importer.heap, importer.buffer);
    close(fd);
    return status;
}
