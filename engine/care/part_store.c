/*
 * part_store.c - a store that is read where its parts are (agentwal/replica.h): a table of io.h
 * whose files are ranges of parts, which the caller reads, and indexes of segments.
 *
 * A file of a segment has the ranges of the parts in order, and zeros elsewhere. A whole segment
 * replaces the one of its id. Index files are in memory. A map of a segment has its
 * INDEX only: WAL_OPEN_PREAD reads nothing else from one.
 *
 * Invariant: the pieces of a segment ascend, overlap nowhere, and begin at offset 0. An index is
 * used only if it names the end at which the parts leave its segment, or of the newest one an
 * earlier end, as the file of an index of a tail does (SPEC.md 3.6).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/part.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/keys_file.h"

#define ROOT "parts"

enum { NAME_SIZE = 48 };

static const char *const folders[] = {"log", "pack"};

/* Bytes [offset, offset + size) of a segment, which begin at `at` of a part. */
struct piece {
    uint64_t offset;
    uint64_t size;
    uint64_t part;
    uint64_t at;
};

struct part_file {
    char name[NAME_SIZE]; /* below the root */
    uint64_t size;
    struct wal__span bytes; /* of MANIFEST, KEYS and indexes; data is NULL of segments */
    uint64_t index_end;     /* of the segment, as the index says */
    /* Of segments. */
    uint32_t stream;
    uint64_t id;
    struct wal__segment_header header;
    struct wal__part_place end; /* where the parts leave it; segment 0: they do not */
    struct wal__buf pieces;     /* struct piece */
};

struct part_store {
    struct wal__io io; /* ctx is this struct */
    const struct wal__heap *heap;
    const struct wal_parts *parts;
    uint8_t uuid[16]; /* of the first part */
    struct wal__part_place position[WAL__PART_STREAMS];
    struct part_file **files;
    uint32_t count;
    uint32_t capacity;
    uint8_t manifest[WAL__MANIFEST_SIZE];
    uint64_t keys_generation;
    uint8_t keys[WAL__KEYS_COPY_SIZE];
    wal_part_read_fn *read;
    void *ctx;
};

/* --- files ---------------------------------------------------------------- */

static struct part_file *find_file(const struct part_store *store, const char *path)
{
    const size_t root = strlen(ROOT "/");

    if (strncmp(path, ROOT "/", root) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < store->count; i++) {
        if (strcmp(store->files[i]->name, path + root) == 0) {
            return store->files[i];
        }
    }
    return NULL;
}

static struct part_file *find_segment(const struct part_store *store, uint32_t stream, uint64_t id)
{
    for (uint32_t i = 0; i < store->count; i++) {
        struct part_file *file = store->files[i];

        if (file->bytes.data == NULL && file->stream == stream && file->id == id) {
            return file;
        }
    }
    return NULL;
}

static void free_file(struct part_store *store, struct part_file *file)
{
    wal__buf_deinit(&file->pieces);
    wal__heap_free(store->heap, file);
}

/* Adds an empty file; NULL: no memory. */
static struct part_file *add_file(struct part_store *store)
{
    struct part_file *file = wal__heap_zalloc(store->heap, sizeof(*file));

    if (file == NULL || !WAL__HEAP_GROW(store->heap, store->files, store->count, store->capacity)) {
        wal__heap_free(store->heap, file);
        return NULL;
    }
    wal__buf_init(&file->pieces, store->heap);
    store->files[store->count++] = file;
    return file;
}

static void remove_segment(struct part_store *store, uint32_t stream, uint64_t id)
{
    const struct part_file *removed = find_segment(store, stream, id);

    for (uint32_t i = 0; i < store->count && removed != NULL; i++) {
        if (store->files[i] == removed) {
            free_file(store, store->files[i]);
            store->files[i] = store->files[--store->count];
            return;
        }
    }
}

/* --- reading -------------------------------------------------------------- */

/* Fills `out` with bytes of a segment, within its file. */
static enum wal_status read_segment(struct part_store *store, const struct part_file *file,
                                    uint64_t offset, uint64_t size, uint8_t *out)
{
    const struct piece *pieces = (const struct piece *)(const void *)file->pieces.data;
    const size_t count = file->pieces.size / sizeof(*pieces);

    memset(out, 0, (size_t)size);
    for (size_t i = 0; i < count; i++) {
        const struct piece *piece = &pieces[i];
        const uint64_t from = offset > piece->offset ? offset : piece->offset;
        const uint64_t end = offset + size < piece->offset + piece->size
                                 ? offset + size
                                 : piece->offset + piece->size;

        if (from < end && store->read(store->ctx, piece->part, piece->at + (from - piece->offset),
                                      end - from, out + (from - offset)) != WAL_OK) {
            return WAL_EIO;
        }
    }
    return WAL_OK;
}

/* The file of a handle: each has one. */
static struct part_file *of(struct wal__file *handle)
{
    return (struct part_file *)(void *)handle;
}

static enum wal_status io_open(void *ctx, const char *path, int flags, struct wal__file **handle,
                               int *sys_errno)
{
    struct part_file *file = find_file(ctx, path);

    if (file == NULL || (flags & WAL__IO_WRITE) != 0) {
        *sys_errno = file == NULL ? ENOENT : EROFS;
        return file == NULL ? WAL_ENOTFOUND : WAL_EREADONLY;
    }
    *handle = (struct wal__file *)(void *)file;
    return WAL_OK;
}

static void io_close(void *ctx, struct wal__file *handle)
{
    (void)ctx;
    (void)handle;
}

static enum wal_status io_pread(void *ctx, struct wal__file *handle, void *data, size_t size,
                                uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    const struct part_file *file = of(handle);
    const uint64_t left = offset < file->size ? file->size - offset : 0;
    enum wal_status status = WAL_OK;

    size = size < left ? size : (size_t)left;
    if (file->bytes.data != NULL && size > 0) {
        memcpy(data, file->bytes.data + offset, size);
    } else if (size > 0) {
        status = read_segment(ctx, file, offset, size, data);
        *sys_errno = status == WAL_OK ? 0 : EIO;
    }
    *bytes_read = size;
    return status;
}

static enum wal_status io_stat(void *ctx, struct wal__file *handle, struct wal__io_stat *out,
                               int *sys_errno)
{
    const uint64_t size = of(handle)->size;

    (void)ctx;
    (void)sys_errno;
    *out = (struct wal__io_stat){.size = size, .allocated = size};
    return WAL_OK;
}

static enum wal_status io_path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                    int *sys_errno)
{
    struct part_file *file = find_file(ctx, path);

    if (file != NULL) {
        return io_stat(ctx, (struct wal__file *)(void *)file, out, sys_errno);
    }
    if (strcmp(path, ROOT) == 0 || strcmp(path, ROOT "/log") == 0 ||
        strcmp(path, ROOT "/pack") == 0 || strcmp(path, ROOT "/index") == 0) {
        *out = (struct wal__io_stat){.is_directory = true};
        return WAL_OK;
    }
    *sys_errno = ENOENT;
    return WAL_ENOTFOUND;
}

static enum wal_status io_list(void *ctx, const char *path,
                               enum wal_status (*each)(void *arg, const char *name), void *arg,
                               int *sys_errno)
{
    const struct part_store *store = ctx;
    const char *folder = path + strlen(ROOT "/");
    const size_t size = strlen(path) > strlen(ROOT) ? strlen(folder) : 0;
    enum wal_status status = WAL_OK;

    (void)sys_errno;
    for (uint32_t i = 0; i < store->count && status == WAL_OK && size > 0; i++) {
        const char *name = store->files[i]->name;

        if (strncmp(name, folder, size) == 0 && name[size] == '/') {
            status = each(arg, name + size + 1);
        }
    }
    return status;
}

/* Where INDEX begins; the file's size: it has none. */
static uint64_t index_offset(struct part_store *store, const struct part_file *file)
{
    uint8_t bytes[WAL__TRAILER_SIZE];
    const uint64_t offset = file->size - WAL__TRAILER_SIZE;
    struct wal__trailer trailer;

    return read_segment(store, file, offset, sizeof(bytes), bytes) == WAL_OK &&
                   wal__trailer_decode(bytes, file->header.salt, offset, &trailer) == WAL__FMT_OK
               ? trailer.index_offset
               : file->size;
}

static enum wal_status io_map(void *ctx, struct wal__file *handle, uint64_t size, bool writable,
                              void **at, int *sys_errno)
{
    const struct part_file *file = of(handle);
    struct part_store *store = ctx;
    uint64_t offset;
    uint8_t *bytes;

    *sys_errno = EACCES;
    if (writable || size > file->size) {
        return WAL_EIO;
    }
    if (file->bytes.data != NULL) {
        *at = (void *)(uintptr_t)file->bytes.data;
        return WAL_OK;
    }
    bytes = wal__heap_zalloc(store->heap, (size_t)size);
    if (bytes == NULL) {
        *sys_errno = ENOMEM;
        return WAL_ENOMEM;
    }
    offset = index_offset(store, file);
    if (offset < size &&
        read_segment(store, file, offset, size - offset, bytes + offset) != WAL_OK) {
        wal__heap_free(store->heap, bytes);
        *sys_errno = EIO;
        return WAL_EIO;
    }
    *at = bytes;
    return WAL_OK;
}

static void io_unmap(void *ctx, void *at, uint64_t size)
{
    const struct part_store *store = ctx;

    (void)size;
    for (uint32_t i = 0; i < store->count; i++) {
        if (store->files[i]->bytes.data == at) {
            return;
        }
    }
    wal__heap_free(store->heap, at);
}

static enum wal_status io_populate(void *ctx, const void *at, uint64_t size, int *sys_errno)
{
    (void)ctx;
    (void)at;
    (void)size;
    *sys_errno = EINVAL;
    return WAL_EINVAL;
}

static enum wal_status io_storage(void *ctx, const char *path, enum wal__storage *storage,
                                  char *name, int *sys_errno)
{
    (void)ctx;
    (void)path;
    (void)sys_errno;
    *storage = WAL__STORAGE_LOCAL;
    memcpy(name, ROOT, sizeof(ROOT));
    return WAL_OK;
}

/* A store that is open for reading calls no other function on files. */
static void init_io(struct part_store *store)
{
    struct wal__io *io = &store->io;

    *io = wal__io_posix;
    io->ctx = store;
    io->open = io_open;
    io->close = io_close;
    io->pread = io_pread;
    io->stat = io_stat;
    io->path_stat = io_path_stat;
    io->list = io_list;
    io->map = io_map;
    io->unmap = io_unmap;
    io->populate = io_populate;
    io->storage = io_storage;
    io->threads = false;
    io->worktree = NULL;
    io->list_mappers = NULL;
}

/* --- parts ---------------------------------------------------------------- */

static enum wal_status fail(struct wal_error *error, uint64_t part, const char *why)
{
    return wal__fail(error, WAL_ECORRUPT, "part %llu is damaged: %s", (unsigned long long)part,
                     why);
}

/* Reads the header of a segment that begins in the piece, and adds a file for it. */
static enum wal_status begin_segment(struct part_store *store, const struct wal__part_head *head,
                                     const struct wal__part_range *range, const struct piece *piece,
                                     struct part_file **file, struct wal_error *error)
{
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;

    if (range->size < sizeof(bytes) ||
        store->read(store->ctx, piece->part, piece->at, sizeof(bytes), bytes) != WAL_OK) {
        return wal__fail(error, WAL_EIO, "part %llu cannot be read",
                         (unsigned long long)piece->part);
    }
    if (wal__segment_header_decode(bytes, &header) != WAL__FMT_OK || header.id != range->segment ||
        memcmp(header.uuid, head->manifest.uuid, sizeof(header.uuid)) != 0) {
        return fail(error, piece->part, "the header of a segment");
    }
    /* The chain leaves out the others that it replaces. */
    remove_segment(store, range->stream, header.id);
    *file = add_file(store);
    if (*file == NULL) {
        return wal__no_memory(error);
    }
    (*file)->stream = range->stream;
    (*file)->id = header.id;
    (*file)->header = header;
    (*file)->size = header.capacity;
    (void)snprintf((*file)->name, NAME_SIZE, "%s/%016llx.seg", folders[range->stream],
                   (unsigned long long)header.id);
    return WAL_OK;
}

static uint64_t end_of(const struct part_file *file)
{
    const struct piece *pieces = (const struct piece *)(const void *)file->pieces.data;
    const size_t count = file->pieces.size / sizeof(*pieces);

    return count == 0 ? 0 : pieces[count - 1].offset + pieces[count - 1].size;
}

/* Adds a range of a part, whose bytes begin at `at` of it. */
static enum wal_status add_range(struct part_store *store, uint64_t part,
                                 const struct wal__part_head *head,
                                 const struct wal__part_range *range, uint64_t at,
                                 struct wal_error *error)
{
    struct piece piece = {range->offset, range->size, part, at};
    struct part_file *file = find_segment(store, range->stream, range->segment);
    const bool is_whole = (head->flags & WAL__PART_SEGMENT) != 0;
    enum wal_status status = WAL_OK;
    uint64_t end;

    if (range->offset == 0 && (file == NULL || is_whole)) {
        status = begin_segment(store, head, range, &piece, &file, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (file == NULL || range->offset + range->size > file->size ||
        file->header.salt != head->after[range->stream].salt) {
        return fail(error, part, "it does not follow the one before it");
    }
    /* A trailer is at the end of the file. */
    end = end_of(file);
    if (range->offset > end && !is_whole) {
        return fail(error, part, "it does not follow the one before it");
    }
    if (piece.offset < end) {
        const uint64_t known = end - piece.offset < piece.size ? end - piece.offset : piece.size;

        piece.offset += known;
        piece.size -= known;
        piece.at += known;
    }
    return piece.size == 0 || wal__buf_append(&file->pieces, &piece, sizeof(piece)) == WAL_OK
               ? WAL_OK
               : wal__no_memory(error);
}

/* Whether the part begins where the ones before it end, or before that. */
static bool follows(const struct part_store *store, const struct wal__part_head *head)
{
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        const struct wal__part_place *before = &head->before[i];
        const struct wal__part_place *place = &store->position[i];

        if (before->segment > place->segment ||
            (before->segment == place->segment && before->offset >= place->offset &&
             !wal__part_place_equal(before, place))) {
            return false;
        }
    }
    return true;
}

/* A part that begins another segment says where the one before it ended. */
static void note_end(struct part_store *store, const struct wal__part_head *head, uint32_t stream)
{
    const struct wal__part_place *before = &head->before[stream];
    struct part_file *file = find_segment(store, stream, before->segment);

    if (file != NULL && before->segment != head->after[stream].segment) {
        file->end = *before;
    }
}

/* KEYS of the store is the newest one of its parts. */
static enum wal_status add_keys(struct part_store *store, uint64_t part,
                                const struct wal__part_head *head, struct wal_error *error)
{
    struct part_file *file = find_file(store, ROOT "/KEYS");
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file keys;

    if (head->keys_size == 0) {
        return WAL_OK;
    }
    if (store->read(store->ctx, part, wal__part_keys_offset(head), head->keys_size, bytes) !=
        WAL_OK) {
        return wal__fail(error, WAL_EIO, "a part cannot be read");
    }
    if (wal__part_check_keys(head, (struct wal__span){bytes, head->keys_size}, &keys, NULL) !=
        WAL_OK) {
        return fail(error, part, "its keys are damaged");
    }
    if (keys.generation < store->keys_generation) {
        return WAL_OK;
    }
    file = file != NULL ? file : add_file(store);
    if (file == NULL) {
        return wal__no_memory(error);
    }
    store->keys_generation = keys.generation;
    memcpy(store->keys, bytes, head->keys_size);
    memcpy(file->name, "KEYS", sizeof("KEYS"));
    file->bytes = (struct wal__span){store->keys, head->keys_size};
    file->size = head->keys_size;
    return WAL_OK;
}

static enum wal_status add_part(struct part_store *store, uint64_t part, struct wal_error *error)
{
    const struct wal_slice *begin = &store->parts->heads[part];
    struct wal__part_head head;
    uint64_t at;
    enum wal_status status =
        wal__part_get_head((struct wal__span){begin->data, (size_t)begin->size}, &head, error);

    if (status != WAL_OK) {
        return status;
    }
    if (part == 0) {
        memcpy(store->uuid, head.manifest.uuid, sizeof(store->uuid));
    }
    if (memcmp(store->uuid, head.manifest.uuid, sizeof(store->uuid)) != 0) {
        return fail(error, part, "it is of another store");
    }
    if (!follows(store, &head)) {
        return fail(error, part, "it does not follow the one before it");
    }
    at = wal__part_head_size(head.range_count);
    for (uint32_t i = 0; i < head.range_count && status == WAL_OK; i++) {
        status = add_range(store, part, &head, &head.ranges[i], at, error);
        at += head.ranges[i].size;
    }
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        const struct wal__part_place *after = &head.after[i];

        note_end(store, &head, i);
        if (after->segment > store->position[i].segment ||
            (after->segment == store->position[i].segment &&
             after->offset > store->position[i].offset)) {
            store->position[i] = *after;
        }
    }
    if (status == WAL_OK) {
        status = add_keys(store, part, &head, error);
    }
    head.manifest.generation = 1;
    head.manifest.features.ro_compat |= WAL__RO_COMPAT_REPLICA;
    wal__manifest_encode(&head.manifest, store->manifest);
    wal__manifest_encode(&head.manifest, store->manifest + WAL__MANIFEST_SLOT_SIZE);
    return status;
}

/* --- indexes -------------------------------------------------------------- */

/* Whether the index is of use: of the segment as it ended, or of a beginning of the newest one. */
static bool is_usable(const struct wal__part_index *found, const struct part_file *segment)
{
    return segment != NULL && !wal__segment_is_rewritten(&segment->header) &&
           memcmp(found->header.uuid, segment->header.uuid, sizeof(found->header.uuid)) == 0 &&
           (segment->end.segment != 0
                ? wal__part_index_ends_at(found, segment->header.uuid, &segment->end)
                : found->header.end <= end_of(segment));
}

/* Adds those that can be used, the last one of each segment; what is damaged, and all after it, is
 * left out. */
static enum wal_status add_indexes(struct part_store *store, struct wal_slice given)
{
    struct wal__span bytes = {given.data, (size_t)given.size};
    struct wal__part_index found;

    while (wal__part_index_take(&bytes, &found)) {
        char path[NAME_SIZE + sizeof(ROOT)];
        struct part_file *file;

        (void)snprintf(path, sizeof(path), ROOT "/index/%s%016llx.idx",
                       found.stream == WAL__LOG_ID_PACK ? "pack-" : "",
                       (unsigned long long)found.header.id);
        file = find_file(store, path);
        if (!is_usable(&found, find_segment(store, found.stream, found.header.id)) ||
            (file != NULL && file->index_end >= found.header.end)) {
            continue;
        }
        if (file == NULL) {
            file = add_file(store);
        }
        if (file == NULL) {
            return WAL_ENOMEM;
        }
        memcpy(file->name, path + sizeof(ROOT), NAME_SIZE);
        file->size = found.bytes.size;
        file->bytes = found.bytes;
        file->index_end = found.header.end;
    }
    return WAL_OK;
}

/* --- opening -------------------------------------------------------------- */

static void destroy(struct wal__io *io)
{
    struct part_store *store = io->ctx;

    for (uint32_t i = 0; i < store->count; i++) {
        free_file(store, store->files[i]);
    }
    wal__heap_free(store->heap, store->files);
    wal__heap_free(store->heap, store);
}

static enum wal_status add_all(struct part_store *store, struct wal_error *error)
{
    const struct wal_parts *parts = store->parts;
    struct part_file *manifest = add_file(store);
    enum wal_status status = manifest == NULL ? wal__no_memory(error) : WAL_OK;

    if (status == WAL_OK) {
        memcpy(manifest->name, "MANIFEST", sizeof("MANIFEST"));
        manifest->bytes = (struct wal__span){store->manifest, sizeof(store->manifest)};
        manifest->size = sizeof(store->manifest);
    }
    for (uint64_t i = 0; i < parts->head_count && status == WAL_OK; i++) {
        status = add_part(store, i, error);
    }
    for (uint64_t i = 0; i < parts->index_count && status == WAL_OK; i++) {
        status = add_indexes(store, parts->indexes[i]) == WAL_OK ? WAL_OK : wal__no_memory(error);
    }
    return status;
}

enum wal_status wal__parts_open(const struct wal_parts *parts, const struct wal__heap *heap,
                                struct wal_store **store, struct wal_error *error)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY | WAL_OPEN_PREAD,
                                             .key = parts->key};
    struct part_store *made = wal__heap_zalloc(heap, sizeof(*made));
    enum wal_status status;

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->heap = heap;
    made->parts = parts;
    made->read = parts->read;
    made->ctx = parts->ctx;
    init_io(made);
    status = add_all(made, error);
    if (status == WAL_OK) {
        status = wal__store_open(ROOT, &options, heap, &made->io, store, error);
    }
    if (status != WAL_OK) {
        destroy(&made->io);
        return status;
    }
    (*store)->own_io = &made->io;
    (*store)->destroy_io = destroy;
    return WAL_OK;
}

enum wal_status wal_open_parts(const struct wal_parts *parts, struct wal_store **store,
                               struct wal_error *error)
{
    struct wal_parts own;
    enum wal_status status;

    if (parts == NULL || store == NULL) {
        return wal__invalid(error, "the parts or the place for the store are null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_parts), &own, parts, error);
    if (status == WAL_OK && (own.read == NULL || (own.head_count > 0 && own.heads == NULL) ||
                             (own.index_count > 0 && own.indexes == NULL))) {
        status = wal__invalid(error, "the parts have no function that reads them, or are null");
    }
    return status == WAL_OK ? wal__parts_open(&own, &wal__heap_libc, store, error) : status;
}
