/*
 * replica.c - opens a replica, and finds where it ends (replica.h).
 */
#include "engine/part/replica.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "engine/store/shadow.h"

/* --- opening ------------------------------------------------------------ */

static enum wal_status read_manifest(struct wal__replica *replica,
                                     struct wal_error *error)
{
    const struct wal__env *env = &replica->env;
    bool ignored = false;
    enum wal_status status =
        wal__manifest_probe(env, &replica->is_store, error);

    if (status != WAL_OK || !replica->is_store) {
        return status;
    }
    status = wal__manifest_read(env, &replica->manifest, &ignored, error);
    replica->is_ordinary =
        status == WAL_OK &&
        (replica->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) == 0;
    if (replica->is_ordinary && !replica->takes_store) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, env->root, 0,
                              "a store that is no replica is there: choose "
                              "another directory");
    }
    return status;
}

static enum wal_status make_directories(const struct wal__replica *replica,
                                        struct wal_error *error)
{
    enum wal_status status =
        wal__manifest_make_directories(&replica->env, error);

    return status == WAL_ENOTSTORE
               ? wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                              "other files are there, or its parent directory "
                              "does not exist: choose a directory that is "
                              "empty, or can be created")
               : status;
}

/* The lock of compaction: it keeps backups of the replica out too, and readers
 * need not wait for it. */
static enum wal_status lock(struct wal__replica *replica,
                            struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/LOCK", replica->env.root);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE,
                      &replica->lock, &err);
    if (status == WAL_OK) {
        status = io->lock(io->ctx, replica->lock, WAL__LOCK_COMPACT,
                          WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0,
                            "another process applies parts to the replica");
    }
    /* What has the store open would go on to write to it. */
    if (status == WAL_OK && replica->is_ordinary) {
        status = io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT,
                          WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0,
                            "another process has the store open: end it "
                            "before the store follows another one");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_open(error, status, err, path,
                                             "cannot lock the replica");
}

/* A directory without a manifest has no segments, but those of another kind of
 * copy that was interrupted. */
static enum wal_status check_empty(const struct wal__replica *replica,
                                   struct wal_error *error)
{
    for (size_t i = 0; i < WAL__PART_STREAMS; i++) {
        struct wal__buf ids = {.heap = replica->env.heap};
        enum wal_status status =
            wal__log_list_ids(&replica->logs[i], &ids, error);
        bool is_empty = ids.size == 0;

        wal__buf_deinit(&ids);
        if (status == WAL_OK && !is_empty) {
            status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                                  "segments of a store without a manifest are "
                                  "there: choose another directory");
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

enum wal_status wal__replica_init(struct wal__replica *replica,
                                  const char *path,
                                  const struct wal__heap *heap,
                                  const struct wal__io *io,
                                  struct wal_error *error)
{
    static const char *const directories[] = {"log", "pack"};
    static const uint32_t classes[] = {WAL__CLASS_LOG, WAL__CLASS_PACK};
    size_t size = strlen(path);
    enum wal_status status;

    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size == 0 || size >= WAL__PATH_MAX - 64) {
        return wal__invalid(error, "the path is empty or too long");
    }
    replica->env =
        (struct wal__env){.heap = heap, .io = io, .large_heap = heap};
    memcpy(replica->env.root, path, size);
    wal__sha256_alg_init(&replica->sha256_alg);
    wal__buf_init(&replica->bytes, heap);
    replica->needs_find = true;
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        replica->logs[i].env = &replica->env;
        replica->logs[i].directory = directories[i];
        replica->logs[i].class = classes[i];
        replica->logs[i].log_id = i;
    }
    status = read_manifest(replica, error);
    if (status == WAL_OK && !replica->is_store) {
        status = make_directories(replica, error);
    }
    if (status == WAL_OK) {
        status = lock(replica, error);
    }
    /* Another process may have made it meanwhile. */
    if (status == WAL_OK) {
        status = read_manifest(replica, error);
    }
    if (status == WAL_OK && !replica->is_store) {
        status = check_empty(replica, error);
    }
    if (status == WAL_OK && replica->is_store &&
        replica->manifest.has_shadows) {
        status = wal__shadow_finish(&replica->env, &replica->manifest, error);
    }
    return status == WAL_OK ? wal__replica_locate(replica, error) : status;
}

void wal__replica_deinit(struct wal__replica *replica)
{
    const struct wal__io *io = replica->env.io;

    if (replica->lock != NULL) {
        io->close(io->ctx, replica->lock);
        replica->lock = NULL;
    }
    if (io != NULL) {
        wal__buf_deinit(&replica->bytes);
        wal__sha256_alg_deinit(&replica->sha256_alg);
    }
}

/* --- the end ------------------------------------------------------------ */

/* Where the commit marks at the end of a segment begin; 0: it has none. */
static bool see_group(void *ctx, const struct wal__scan_range *range)
{
    uint64_t *marks = ctx;

    if (range->commit == NULL || range->size > 0) {
        *marks = 0;
    } else if (*marks == 0) {
        *marks = range->offset;
    }
    return true;
}

/* *place is unchanged when it has no group. */
enum wal_status wal__replica_find_end(struct wal__replica *replica,
                                      struct wal__segment *segment,
                                      bool is_bare,
                                      struct wal__part_place *place,
                                      struct wal_error *error)
{
    const struct wal__rewrite *rewrite = &segment->header.rewrite;
    uint64_t marks = 0;
    const struct wal__scan_sink sink = {.ctx = &marks, .range = see_group};
    struct wal__scan_result *facts = &replica->facts;
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    struct wal__scan_start start;

    if (wal__segment_is_rewritten(&segment->header)) {
        *place = (struct wal__part_place){
            segment->id, segment->header.salt, rewrite->original_end,
            rewrite->last_sequence, rewrite->original_chain};
        return WAL_OK;
    }
    wal__replay_init_start(segment, &start);
    start.is_replica = true;
    wal__segment_reader_init(&reader, segment);
    wal__scan(&source, &sink, &start, facts);
    if (is_bare && marks > 0) {
        start.capacity = marks;
        wal__scan(&source, &sink, &start, facts);
    }
    wal__segment_reader_deinit(&reader);
    if (facts->verdict == WAL__VERDICT_READ_ERROR) {
        return wal__fail_at(error, WAL_EIO, reader.sys_errno, segment->path,
                            facts->error_offset, "cannot read the segment");
    }
    if (facts->groups > (is_bare ? 1U : 0U)) {
        *place = (struct wal__part_place){segment->id, segment->header.salt,
                                          facts->end, facts->last_sequence,
                                          facts->chain};
    }
    return WAL_OK;
}

enum wal_status wal__replica_find_place(struct wal__replica *replica,
                                        uint32_t stream, bool is_bare,
                                        struct wal__part_place *place,
                                        struct wal_error *error)
{
    struct wal__log *log = &replica->logs[stream];
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);
    size_t count = ids.size / sizeof(uint64_t);

    memset(place, 0, sizeof(*place));
    while (status == WAL_OK && count > 0 && place->segment == 0) {
        struct wal__segment *segment = NULL;
        uint64_t id;

        count--;
        memcpy(&id, ids.data + count * sizeof(id), sizeof(id));
        status = wal__segment_open(&replica->env, log->directory, id,
                                   replica->manifest.uuid, log->class, &segment,
                                   error);
        if (status == WAL_OK) {
            status = segment->has_open
                         ? wal__replica_find_end(replica, segment, is_bare,
                                                 place, error)
                         : WAL_OK;
            wal__segment_close(segment);
        } else if (status == WAL_END) {
            status = WAL_OK; /* it was being made */
        }
    }
    wal__buf_deinit(&ids);
    return status;
}

/* --- durability --------------------------------------------------------- */

/* Makes a segment again from its groups up to `end`: a call that failed, or
 * that another process did not end, may not have synced them, and a sync that
 * failed is not made up for by a later one. Not in place: they may be durable,
 * and a loss of power may destroy bytes that are being written. Its name is
 * durable too. */
static enum wal_status make_again(struct wal__replica *replica,
                                  const struct wal__log *log,
                                  struct wal__segment *segment, uint64_t end,
                                  struct wal_error *error)
{
    struct wal__buf *bytes = &replica->bytes;
    enum wal_status status;

    bytes->size = 0;
    status = wal__part_read_file(segment, WAL__SEGMENT_HEADER_SIZE, end, bytes,
                                 error);
    return status == WAL_OK
               ? wal__segment_install(&replica->env, log->directory, NULL,
                                      &segment->header, bytes->data,
                                      bytes->size, error)
               : status;
}

/* Makes the newest segment and its name durable: those before it were, before
 * it was begun. */
static enum wal_status make_durable(struct wal__replica *replica,
                                    uint32_t stream, struct wal_error *error)
{
    const struct wal__part_place *place = &replica->places[stream];
    const struct wal__log *log = &replica->logs[stream];
    struct wal__segment *segment = NULL;
    enum wal_status status;

    if (place->segment == 0) {
        return WAL_OK;
    }
    status =
        wal__segment_open(&replica->env, log->directory, place->segment,
                          replica->manifest.uuid, log->class, &segment, error);
    if (status != WAL_OK) {
        return status;
    }
    replica->has_doubt[stream] =
        segment->sealed || wal__segment_is_rewritten(&segment->header);
    if (replica->has_doubt[stream]) {
        status =
            wal__replica_write(segment, (struct wal__span){NULL, 0}, 0, error);
        status =
            status == WAL_OK ? wal__log_sync_directory(log, error) : status;
    } else {
        status = make_again(replica, log, segment, place->offset, error);
    }
    wal__segment_close(segment);
    return status;
}

enum wal_status wal__replica_locate(struct wal__replica *replica,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!replica->needs_find || !replica->is_store) {
        return WAL_OK;
    }
    status = wal__manifest_sync_directories(&replica->env, error);
    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        status = wal__replica_find_place(replica, i, false, &replica->places[i],
                                         error);
        if (status == WAL_OK) {
            status = make_durable(replica, i, error);
        }
    }
    replica->needs_find = status != WAL_OK;
    return status;
}
