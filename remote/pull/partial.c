/*
 * partial.c - reading a store in the remote (partial.h).
 *
 * An object is read in runs of blocks. A run that follows the one before it has four times as many
 * bytes as were used of that: so what is read as a whole takes few requests, and of what is
 * scattered little else is read. All that was read remains in the cache.
 *
 * Invariant: a block that is not 0 is its place in the cache, plus one.
 */
#include "remote/pull/partial.h"

#include <string.h>

#include "agentwal/replica.h"
#include "engine/base/error.h"
#include "remote/pull/pull.h"

enum {
    BLOCK = 4096,
    /* The head of a part, the header of a segment, and what may be in its first record. */
    BEGIN = 5 * BLOCK,
    RUN_MIN = 128 * 1024,
    RUN_MAX = 4 * 1024 * 1024
};

/* A segment of the base, or a part. */
struct object {
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t size;    /* of the part in it */
    uint64_t *blocks; /* places in the cache */
    uint64_t next;    /* the block after the last run */
    uint64_t used;    /* bytes that were used of that */
};

struct wal__partial {
    struct wal_remote *remote;
    uint8_t uuid[16]; /* of the store */
    struct wal__spill spill;
    struct wal__buf cache;
    struct wal__buf objects; /* struct object */
    struct wal__buf indexes; /* all of them, one after the other */
    struct wal__position position;
    uint64_t bytes;
    struct wal_error error; /* of the read that failed */
};

static struct object *object_at(const struct wal__partial *partial, uint64_t at)
{
    return (struct object *)(void *)partial->objects.data + at;
}

static size_t count_of(const struct wal__partial *partial)
{
    return partial->objects.size / sizeof(struct object);
}

static uint64_t block_count(uint64_t size)
{
    return (size + BLOCK - 1) / BLOCK;
}

/* --- blocks --------------------------------------------------------------- */

/* Notes that the cache has `size` bytes of the object from the block `first` on, at `place`: whole
 * blocks, or up to its end. */
static void note(struct object *object, uint64_t first, uint64_t place, uint64_t size)
{
    const uint64_t end =
        first * BLOCK + size < object->size ? first + size / BLOCK : block_count(object->size);

    for (uint64_t i = first; i < end; i++) {
        object->blocks[i] = place + (i - first) * BLOCK + 1;
    }
}

/* Adds an object, of which the first bytes are given: its head says the size. */
static enum wal_status add_object(struct wal__partial *partial, const char *name,
                                  struct wal_slice begin, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    const uint64_t place = partial->cache.size;
    struct object object = {.size = 0};
    enum wal_status status = wal_part_get_info(begin, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (info.size > WAL__OBJECT_MAX || memcmp(info.uuid, partial->uuid, sizeof(info.uuid)) != 0) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object is larger than any is, or of another store");
    }
    memcpy(object.name, name, strlen(name) + 1);
    object.size = info.size;
    object.blocks = wal__heap_zalloc(partial->remote->heap,
                                     (size_t)block_count(info.size) * sizeof(*object.blocks));
    if (object.blocks == NULL ||
        wal__buf_append(&partial->objects, &object, sizeof(object)) != WAL_OK) {
        wal__heap_free(partial->remote->heap, object.blocks);
        return wal__no_memory(error);
    }
    if (begin.size > info.size) {
        begin.size = info.size;
    }
    if (wal__buf_append(&partial->cache, begin.data, (size_t)begin.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    note(object_at(partial, count_of(partial) - 1), 0, place, begin.size);
    partial->bytes += begin.size;
    partial->position = wal__position_of(info.after);
    return WAL_OK;
}

/* Reads blocks of the object from `first` on, at least up to the byte `end`, and no block that is
 * there. */
static enum wal_status read_run(struct wal__partial *partial, struct object *object, uint64_t first,
                                uint64_t end, struct wal_error *error)
{
    struct wal__driver *driver = partial->remote->driver;
    const uint64_t from = first * BLOCK;
    const uint64_t place = partial->cache.size;
    uint64_t last = first + 1;
    uint64_t run = first == object->next ? object->used * 4 : 0;
    enum wal_status status;

    run = run < RUN_MIN ? RUN_MIN : run > RUN_MAX ? RUN_MAX : run;
    end = end > from + run ? end : from + run;
    while (last < block_count(end < object->size ? end : object->size) &&
           object->blocks[last] == 0) {
        last++;
    }
    end = last * BLOCK < object->size ? last * BLOCK : object->size;
    status = driver->calls->get(driver, object->name, from, end - from, &partial->cache, error);
    if (status == WAL_OK && partial->cache.size - place != end - from) {
        partial->cache.size = (size_t)place;
        return wal__fail_at(error, WAL_ECORRUPT, 0, object->name, end, "the object is cut");
    }
    if (status == WAL_OK) {
        note(object, first, place, end - from);
        object->next = last;
        object->used = 0;
        partial->bytes += end - from;
    }
    return status;
}

/* wal_part_read_fn */
static enum wal_status read_part(void *ctx, uint64_t part, uint64_t offset, uint64_t size,
                                 void *data)
{
    struct wal__partial *partial = ctx;
    uint8_t *out = data;
    struct object *object;

    if (partial->error.status != WAL_OK || part >= count_of(partial)) {
        return WAL_EIO;
    }
    object = object_at(partial, part);
    if (offset > object->size || size > object->size - offset) {
        return WAL_EIO;
    }
    while (size > 0) {
        const uint64_t block = offset / BLOCK;
        const uint64_t within = offset % BLOCK;
        const uint64_t piece = size < BLOCK - within ? size : BLOCK - within;

        if (object->blocks[block] == 0 &&
            read_run(partial, object, block, offset + size, &partial->error) != WAL_OK) {
            return WAL_EIO;
        }
        memcpy(out, partial->cache.data + object->blocks[block] - 1 + within, (size_t)piece);
        object->used += piece;
        out += piece;
        offset += piece;
        size -= piece;
    }
    return WAL_OK;
}

/* --- the base ------------------------------------------------------------- */

/* Reads the indexes and the beginnings of the segments, all at the same time. */
static enum wal_status read_base(struct wal__partial *partial, const struct wal__base_list *base,
                                 struct wal__buf *items, struct wal_error *error)
{
    const uint8_t *uuid = partial->uuid;
    const size_t count = wal__base_list_count(base);
    struct wal__fetch_item *item;
    struct wal__fetch *fetch = NULL;
    struct wal__store_object object;
    size_t indexes;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__fetch_item index = {.size = WAL__FETCH_BYTES / 16};

        if (wal__base_index(uuid, base, i, &object)) {
            wal__store_object_format(&object, index.name);
            status = wal__buf_append(items, &index, sizeof(index));
        }
    }
    indexes = items->size / sizeof(*item);
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__base_items(uuid, base, 0, items, error);
    if (status != WAL_OK) {
        return status;
    }
    item = (struct wal__fetch_item *)(void *)items->data;
    for (size_t i = indexes; i < indexes + count; i++) {
        item[i].size = BEGIN;
        item[i].max = BEGIN;
    }
    status = wal__fetch_open(partial->remote, item, indexes + count, &fetch, error);
    for (size_t i = 0; i < indexes + count && status == WAL_OK; i++) {
        struct wal_slice bytes = {NULL, 0};

        status = wal__fetch_next(fetch, &bytes, error);
        if (status == WAL_OK && i >= indexes) {
            status = add_object(partial, item[i].name, bytes, error);
        } else if (status == WAL_OK) {
            partial->bytes += bytes.size;
            status = wal__buf_append(&partial->indexes, bytes.data, (size_t)bytes.size) == WAL_OK
                         ? WAL_OK
                         : wal__no_memory(error);
        } else if (status == WAL_ENOTFOUND && i < indexes) {
            status = WAL_OK; /* nothing had ended there */
        }
    }
    wal__fetch_close(fetch);
    return status;
}

/* --- the parts after it --------------------------------------------------- */

static enum wal_status get_position(void *ctx, struct wal__position *position,
                                    struct wal_error *error)
{
    const struct wal__partial *partial = ctx;

    (void)error;
    *position = partial->position;
    return WAL_OK;
}

static enum wal_status add_part(void *ctx, struct wal_slice part, struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    enum wal_status status = wal_part_check(part, &info, error);

    return status == WAL_OK ? add_object(ctx, "", part, error) : status;
}

static enum wal_status sync_nothing(void *ctx, struct wal_error *error)
{
    (void)ctx;
    (void)error;
    return WAL_OK;
}

static enum wal_status read_parts(struct wal__partial *partial, const struct wal__base_list *base,
                                  struct wal_error *error)
{
    struct wal__pull pull = {
        .remote = partial->remote,
        .target = {.position = get_position,
                   .apply = add_part,
                   .sync = sync_nothing,
                   .info = wal_part_get_info,
                   .ctx = partial},
        .next = wal__store_object_of(WAL__OBJECT_PART, partial->uuid, base->epoch, base->part + 1),
        .result = WAL_INIT(wal_remote_pull_result),
    };
    enum wal_status status;

    memcpy(pull.uuid, partial->uuid, sizeof(pull.uuid));
    status = wal__pull_run(&pull, error);
    wal__pull_deinit(&pull);
    return status;
}

/* --- opening -------------------------------------------------------------- */

static enum wal_status open_store(struct wal__partial *partial, const struct wal_key *key,
                                  struct wal_store **store, struct wal_error *error)
{
    const size_t count = count_of(partial);
    const struct wal_slice index = {partial->indexes.data, partial->indexes.size};
    struct wal_slice *heads =
        wal__heap_zalloc(partial->remote->heap, count * sizeof(struct wal_slice));
    const struct wal_parts parts = {.struct_size = sizeof(parts),
                                    .heads = heads,
                                    .head_count = count,
                                    .indexes = &index,
                                    .index_count = 1,
                                    .read = read_part,
                                    .ctx = partial,
                                    .key = key};
    uint8_t *bytes = wal__heap_alloc(partial->remote->heap, count * WAL_PART_HEAD_SIZE);
    enum wal_status status = heads == NULL || bytes == NULL ? wal__no_memory(error) : WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        const uint64_t size = object_at(partial, i)->size;

        /* The cache may move. */
        heads[i].data = bytes + i * WAL_PART_HEAD_SIZE;
        heads[i].size = size < WAL_PART_HEAD_SIZE ? size : WAL_PART_HEAD_SIZE;
        if (read_part(partial, i, 0, heads[i].size, bytes + i * WAL_PART_HEAD_SIZE) != WAL_OK) {
            status = WAL_EIO;
        }
    }
    if (status == WAL_OK) {
        status = wal_open_parts(&parts, store, error);
    }
    wal__heap_free(partial->remote->heap, heads);
    wal__heap_free(partial->remote->heap, bytes);
    return wal__partial_status(partial, status, error);
}

enum wal_status wal__partial_open(struct wal_remote *remote, const uint8_t uuid[16],
                                  const struct wal_key *key, const char *directory,
                                  struct wal__partial **partial, struct wal_store **store,
                                  struct wal_error *error)
{
    struct wal__partial *opened = wal__heap_zalloc(remote->heap, sizeof(*opened));
    struct wal__base_list base;
    struct wal__buf items;
    uint64_t number = 0;
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->remote = remote;
    memcpy(opened->uuid, uuid, sizeof(opened->uuid));
    opened->error = (struct wal_error)WAL_INIT(wal_error);
    wal__spill_init(&opened->spill, remote->heap, directory);
    wal__buf_init(&opened->cache, &opened->spill.heap);
    wal__buf_init(&opened->objects, remote->heap);
    wal__buf_init(&opened->indexes, remote->heap);
    *partial = opened;
    wal__base_list_init(&base, remote->heap);
    wal__buf_init(&items, remote->heap);
    status = wal__base_read_last(remote, uuid, &number, &base, error);
    if (status == WAL_OK && number == 0) {
        status = wal__fail(error, WAL_ENOTFOUND, "the remote has no base of the store");
    }
    if (status == WAL_OK) {
        status = read_base(opened, &base, &items, error);
    }
    if (status == WAL_OK) {
        status = read_parts(opened, &base, error);
    }
    wal__base_list_deinit(&base);
    wal__buf_deinit(&items);
    return status == WAL_OK ? open_store(opened, key, store, error) : status;
}

enum wal_status wal__partial_status(const struct wal__partial *partial, enum wal_status status,
                                    struct wal_error *error)
{
    if (status == WAL_OK || partial->error.status == WAL_OK) {
        return status;
    }
    wal__error_copy(error, &partial->error);
    return (enum wal_status)partial->error.status;
}

uint64_t wal__partial_bytes(const struct wal__partial *partial)
{
    return partial == NULL ? 0 : partial->bytes;
}

void wal__partial_close(struct wal__partial *partial)
{
    if (partial == NULL) {
        return;
    }
    for (size_t i = 0; i < count_of(partial); i++) {
        wal__heap_free(partial->remote->heap, object_at(partial, i)->blocks);
    }
    wal__buf_deinit(&partial->objects);
    wal__buf_deinit(&partial->indexes);
    wal__buf_deinit(&partial->cache);
    wal__spill_deinit(&partial->spill);
    wal__heap_free(partial->remote->heap, partial);
}
