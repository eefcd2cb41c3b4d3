/*
 * replica.c - a directory to which parts are applied: a store that can be read, and is always a
 * verified prefix of the one that it follows (agentwal/replica.h, SPEC.md 11.2). What is applied
 * are groups after its end, a whole segment, or one that compaction wrote later of segments that
 * the replica has: what was erased in the store that it follows is erased too.
 *
 * Invariants: MANIFEST has the bit `replica`, so that every process opens the store to read, and
 * takes what follows an invalid frame at a tail for torn. Content is synced before the log that
 * refers to it is written, and a segment before the next one of its stream is begun: so a loss of
 * power leaves a prefix, whatever was not synced yet. Bytes below the end of the replica are never
 * changed. What replaces a segment ends where that ended, with its sequence number and chain, and
 * begins where the segment before it in the replica ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/part.h"
#include "engine/log/control.h"
#include "engine/log/log.h"
#include "engine/log/segment.h"
#include "engine/session/session.h"
#include "engine/store/copy_state.h"
#include "engine/store/keys_file.h"

struct wal_replica {
    struct wal__env env;
    struct wal__sha256_alg sha256_alg;
    struct wal__file *lock;
    bool takes_store; /* an ordinary store may become the replica */
    bool is_store;    /* it has a MANIFEST */
    bool is_ordinary; /* without the bit: no part has been applied since */
    struct wal__manifest manifest;
    struct wal__log logs[WAL__PART_STREAMS]; /* env, directory and ids only */
    bool needs_find;                         /* `places` are not known, or not durable */
    /* The newest segment was installed by a call that may have failed: it is installed again when
     * it is applied again. */
    bool has_doubt[WAL__PART_STREAMS];
    /* Where the copied bytes end. All of them are durable, but for what was written to these
     * segments; 0: none. */
    struct wal__part_place places[WAL__PART_STREAMS];
    uint64_t unsynced[WAL__PART_STREAMS];
    struct wal__buf bytes; /* of a segment, to compare */
    struct wal__scan_result facts;
};

/* --- files ---------------------------------------------------------------- */

/* Decodes the header at the beginning of a segment's bytes, which must be of this store, class and
 * place. */
static enum wal_status
replica_read_header(const struct wal_replica *replica, const struct wal__part_range *range,
                    const struct wal__part_place *after, struct wal__span bytes,
                    struct wal__segment_header *header, struct wal_error *error)
{
    if (range->offset != 0 || bytes.size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes.data, header) != WAL__FMT_OK ||
        header->id != range->segment || header->id != after->segment ||
        header->salt != after->salt || header->class != replica->logs[range->stream].class ||
        bytes.size > header->capacity ||
        memcmp(header->uuid, replica->manifest.uuid, sizeof(header->uuid)) != 0) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: the header of segment "
                         "%016" PRIx64,
                         range->segment);
    }
    return WAL_OK;
}

static enum wal_status open_segment(const struct wal_replica *replica, uint32_t stream, uint64_t id,
                                    struct wal__segment **segment, struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[stream];

    return wal__segment_open(&replica->env, log->directory, id, replica->manifest.uuid, log->class,
                             segment, error);
}

/* Writes bytes of a segment, and syncs it unless it is_later. */
static enum wal_status replica_write(const struct wal__segment *segment, struct wal__span bytes,
                                     uint64_t offset, bool is_later, struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    struct iovec iov = {(void *)(uintptr_t)bytes.data, bytes.size};
    enum wal_status status = WAL_OK;
    int err = 0;

    if (bytes.size > 0) {
        status = wal__io_write_full(io, segment->file, &iov, 1, offset, &err);
    }
    if (status == WAL_OK && !is_later) {
        status = io->sync(io->ctx, segment->file, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, segment->path, offset,
                                           "cannot write the replica");
}

/* --- opening ------------------------------------------------------------ */

static enum wal_status read_manifest(struct wal_replica *replica, struct wal_error *error)
{
    const struct wal__env *env = &replica->env;
    bool ignored = false;
    enum wal_status status = wal__manifest_probe(env, &replica->is_store, error);

    if (status != WAL_OK || !replica->is_store) {
        return status;
    }
    status = wal__manifest_read(env, &replica->manifest, &ignored, error);
    replica->is_ordinary =
        status == WAL_OK && (replica->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) == 0;
    if (replica->is_ordinary && !replica->takes_store) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, env->root, 0,
                              "a store that is no replica is there: choose "
                              "another directory");
    }
    return status;
}

/* The lock of compaction: it keeps backups of the replica out too, and readers need not wait for
 * it. */
static enum wal_status lock(struct wal_replica *replica, struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(&replica->env, path, "LOCK");
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE, &replica->lock, &err);
    if (status == WAL_OK) {
        status = io->lock(io->ctx, replica->lock, WAL__LOCK_COMPACT, WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0,
                            "another process applies parts to the replica");
    }
    /* What has the store open would go on to write to it. */
    if (status == WAL_OK && replica->is_ordinary) {
        status =
            io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0,
                            "another process has the store open: end it "
                            "before the store follows another one");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_open(error, status, err, path, "cannot lock the replica");
}

/* A directory without a manifest has no segments, but those of another kind of copy that was
 * interrupted. */
static enum wal_status check_empty(const struct wal_replica *replica, struct wal_error *error)
{
    for (size_t i = 0; i < WAL__PART_STREAMS; i++) {
        struct wal__buf ids = {.heap = replica->env.heap};
        enum wal_status status = wal__log_list_ids(&replica->logs[i], &ids, error);
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
static enum wal_status replica_find_end(struct wal_replica *replica, struct wal__segment *segment,
                                        bool is_bare, struct wal__part_place *place,
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
        *place = (struct wal__part_place){segment->id, segment->header.salt, rewrite->original_end,
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
        return wal__fail_at(error, WAL_EIO, reader.sys_errno, segment->path, facts->error_offset,
                            "cannot read the segment");
    }
    if (facts->groups > (is_bare ? 1U : 0U)) {
        *place = (struct wal__part_place){segment->id, segment->header.salt, facts->end,
                                          facts->last_sequence, facts->chain};
    }
    return WAL_OK;
}

/* Finds where a stream ends: in the newest segment that has a group. With
 * `is_bare` what an ordinary store writes when it is opened and closed is left
 * out: commit marks at the end, and a segment that has only those. */
static enum wal_status replica_find_place(struct wal_replica *replica, uint32_t stream,
                                          bool is_bare, struct wal__part_place *place,
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
        status = open_segment(replica, stream, id, &segment, error);
        if (status == WAL_OK) {
            status = segment->has_open ? replica_find_end(replica, segment, is_bare, place, error)
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

/* Makes the newest segment and its name durable: those before it were, before it was begun. */
static enum wal_status make_durable(struct wal_replica *replica, uint32_t stream,
                                    struct wal_error *error)
{
    const struct wal__part_place *place = &replica->places[stream];
    const struct wal__log *log = &replica->logs[stream];
    struct wal__buf *bytes = &replica->bytes;
    struct wal__segment *segment = NULL;
    enum wal_status status;

    if (place->segment == 0) {
        return WAL_OK;
    }
    status = open_segment(replica, stream, place->segment, &segment, error);
    if (status != WAL_OK) {
        return status;
    }
    replica->has_doubt[stream] = segment->sealed || wal__segment_is_rewritten(&segment->header);
    if (replica->has_doubt[stream]) {
        status = replica_write(segment, (struct wal__span){NULL, 0}, 0, false, error);
        status = status == WAL_OK ? wal__log_sync_directory(log, error) : status;
    } else {
        /* Made again from its groups: a call that failed, or that another process did not end, may
         * not have synced them, and a sync that failed is not made up for by a later one. Not in
         * place: they may be durable, and a loss of power may destroy bytes that are being
         * written. */
        bytes->size = 0;
        status =
            wal__part_read_file(segment, WAL__SEGMENT_HEADER_SIZE, place->offset, bytes, error);
        if (status == WAL_OK) {
            status = wal__segment_install(&replica->env, log->directory, NULL, &segment->header,
                                          bytes->data, bytes->size, error);
        }
    }
    wal__segment_close(segment);
    return status;
}

/* Finds the places where they may have changed, and makes what is there durable. */
static enum wal_status locate(struct wal_replica *replica, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (!replica->needs_find || !replica->is_store) {
        return WAL_OK;
    }
    status = wal__manifest_sync_directories(&replica->env, error);
    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        status = replica_find_place(replica, i, false, &replica->places[i], error);
        if (status == WAL_OK) {
            status = make_durable(replica, i, error);
        }
    }
    replica->needs_find = status != WAL_OK;
    if (status == WAL_OK) {
        memset(replica->unsynced, 0, sizeof(replica->unsynced));
    }
    return status;
}

/* --- the handle ----------------------------------------------------------- */

static enum wal_status init(struct wal_replica *replica, const char *path, struct wal_error *error)
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
    memcpy(replica->env.root, path, size);
    replica->needs_find = true;
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        replica->logs[i].env = &replica->env;
        replica->logs[i].directory = directories[i];
        replica->logs[i].class = classes[i];
        replica->logs[i].log_id = i;
    }
    status = read_manifest(replica, error);
    if (status == WAL_OK && !replica->is_store) {
        status = wal__manifest_make_directories(&replica->env, error);
        if (status == WAL_ENOTSTORE) {
            status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                                  "other files are there, or its parent directory does not "
                                  "exist: choose a directory that is empty, or can be created");
        }
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
    if (status == WAL_OK && replica->is_store && replica->manifest.has_shadows) {
        status = wal__shadow_finish(&replica->env, &replica->manifest, error);
    }
    return status == WAL_OK ? locate(replica, error) : status;
}

void wal_replica_close(struct wal_replica *replica)
{
    if (replica == NULL) {
        return;
    }
    if (replica->lock != NULL) {
        replica->env.io->close(replica->env.io->ctx, replica->lock);
    }
    wal__buf_deinit(&replica->bytes);
    wal__sha256_alg_deinit(&replica->sha256_alg);
    wal__heap_free(replica->env.heap, replica);
}

enum wal_status wal__replica_open(const char *path, bool takes_store, const struct wal__heap *heap,
                                  const struct wal__io *io, struct wal_replica **replica,
                                  struct wal_error *error)
{
    struct wal_replica *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->takes_store = takes_store;
    opened->env = (struct wal__env){.heap = heap, .io = io, .large_heap = heap, .is_locked = true};
    wal__sha256_alg_init(&opened->sha256_alg);
    wal__buf_init(&opened->bytes, heap);
    status = init(opened, path, error);
    if (status != WAL_OK) {
        wal_replica_close(opened);
        return status;
    }
    *replica = opened;
    return WAL_OK;
}

static enum wal_status open_replica(const char *path, bool takes_store,
                                    struct wal_replica **replica, struct wal_error *error)
{
    if (path == NULL || replica == NULL) {
        return wal__invalid(error, "the path, or the place for the replica, is "
                                   "null");
    }
    return wal__replica_open(path, takes_store, &wal__heap_libc, &wal__io_posix, replica, error);
}

enum wal_status wal_replica_open(const char *path, struct wal_replica **replica,
                                 struct wal_error *error)
{
    return open_replica(path, false, replica, error);
}

enum wal_status wal_replica_open_store(const char *path, struct wal_replica **replica,
                                       struct wal_error *error)
{
    return open_replica(path, true, replica, error);
}

enum wal_status wal_replica_get_position(struct wal_replica *replica,
                                         struct wal_part_place *position, struct wal_error *error)
{
    enum wal_status status;

    if (replica == NULL || position == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = locate(replica, error);
    if (status == WAL_OK) {
        wal__part_places(replica->places, position);
    }
    return status;
}

/* --- promotion ------------------------------------------------------------ */

/* Clears what an interrupted call left after the end of a segment, where it would be taken for
 * damage, and syncs all of it. */
static enum wal_status clear_after(struct wal_replica *replica, struct wal__segment *segment,
                                   uint64_t end, struct wal_error *error)
{
    struct wal__buf *bytes = &replica->bytes;
    size_t size = (size_t)(segment->header.capacity - end);
    uint8_t *at = NULL;

    bytes->size = 0;
    if (wal__buf_reserve(bytes, size == 0 ? 1 : size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    memset(at, 0, size);
    return replica_write(segment, (struct wal__span){at, size}, end, false, error);
}

/* Clears what follows the place in a stream: in its segment, and those after it, which are
 * removed. */
static enum wal_status settle(struct wal_replica *replica, uint32_t stream, struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    const struct wal__part_place *place = &replica->places[stream];
    struct wal__log *log = &replica->logs[stream];
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);
    size_t count = ids.size / sizeof(uint64_t);
    int err = 0;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__segment *segment = NULL;
        char path[WAL__PATH_MAX];
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        wal__segment_path(&replica->env, log->directory, id, path);
        if (id > place->segment) {
            status = io->unlink(io->ctx, path, &err);
            if (status != WAL_OK) {
                status =
                    wal__fail_at(error, status, err, path, 0, "cannot remove an empty segment");
            }
        } else if (id == place->segment) {
            status = open_segment(replica, stream, id, &segment, error);
            if (status == WAL_OK && !segment->sealed) {
                status = clear_after(replica, segment, place->offset, error);
            }
            wal__segment_close(segment);
        }
    }
    wal__buf_deinit(&ids);
    return status == WAL_OK && count > 0 ? wal__log_sync_directory(log, error) : status;
}

/* Removes what follows the places, durably. */
static enum wal_status replica_settle(struct wal_replica *replica, struct wal_error *error)
{
    enum wal_status status = settle(replica, 0, error);

    return status == WAL_OK ? settle(replica, 1, error) : status;
}

enum wal_status wal_replica_promote(struct wal_replica *replica, struct wal_error *error)
{
    struct wal__manifest next;
    enum wal_status status;
    int err = 0;

    if (replica == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    if (!replica->is_store) {
        status = wal__fail_at(error, WAL_ENOTSTORE, 0, replica->env.root, 0,
                              "no part was applied to the replica");
        goto done;
    }
    replica->needs_find = true;
    status = locate(replica, error);
    if (status == WAL_OK) {
        status = replica_settle(replica, error);
    }
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__control_write_former(replica->env.io, replica->lock, &err);
    if (status != WAL_OK) {
        status = wal__fail_at(error, status, err, replica->env.root, 0, "cannot write LOCK");
        goto done;
    }
    next = replica->manifest;
    next.features.ro_compat &= ~(uint32_t)WAL__RO_COMPAT_REPLICA;
    status = wal__manifest_replace(&replica->env, &replica->manifest, &next, error);
done:
    wal_replica_close(replica);
    return status;
}

/* --- one that the replica lacks ------------------------------------------ */

/* Verifies all groups, which follow `before`. */
static enum wal_status verify_segment(struct wal_replica *replica,
                                      const struct wal__part_head *head,
                                      const struct wal__part_place *before, struct wal__span bytes,
                                      const struct wal__segment_header *header,
                                      struct wal_error *error)
{
    const struct wal__part_place *after = &head->after[head->ranges[0].stream];
    struct wal__part_place reached;
    enum wal_status status =
        wal__part_scan(header, before, 0, bytes, false, &reached, &replica->facts, error);

    return status == WAL_OK && (replica->facts.verdict != WAL__VERDICT_CLEAN ||
                                !wal__part_place_equal(&reached, after))
               ? wal__fail(error, WAL_ECORRUPT, "the part is damaged: segment %016" PRIx64,
                           header->id)
               : status;
}

/* The trailer is written after the file has its name: without it the segment is complete too, but
 * is read slower. */
static enum wal_status write_trailer(struct wal_replica *replica,
                                     const struct wal__part_range *range, struct wal__span bytes,
                                     const struct wal__segment_header *header,
                                     struct wal_error *error)
{
    struct wal__segment *segment = NULL;
    struct wal__trailer trailer;
    enum wal_status status;

    if (range->segment != header->id || range->offset != header->capacity - WAL__TRAILER_SIZE ||
        bytes.size != WAL__TRAILER_SIZE ||
        wal__trailer_decode(bytes.data, header->salt, range->offset, &trailer) != WAL__FMT_OK) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: the trailer of segment "
                         "%016" PRIx64,
                         header->id);
    }
    status = open_segment(replica, range->stream, header->id, &segment, error);
    if (status == WAL_OK) {
        status = replica_write(segment, bytes, range->offset, false, error);
        wal__segment_close(segment);
    }
    return status;
}

/* Removes the segments that a rewritten one replaces, and their indexes. */
static enum wal_status remove_replaced(const struct wal_replica *replica, uint32_t stream,
                                       const struct wal__segment_header *header,
                                       struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[stream];
    uint64_t first = wal__segment_is_rewritten(header) ? header->rewrite.first_id : header->id;
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);

    for (size_t i = 0; i < ids.size / sizeof(uint64_t) && status == WAL_OK; i++) {
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        if (id >= first && id < header->id) {
            status = wal__log_remove_replaced(log, id, error);
        }
    }
    wal__buf_deinit(&ids);
    return status == WAL_OK ? wal__log_sync_directory(log, error) : status;
}

/* Gives the segment its name, and removes what it replaces. */
static enum wal_status install(struct wal_replica *replica, const struct wal__part_head *head,
                               struct wal__span bytes, const struct wal__segment_header *header,
                               struct wal_error *error)
{
    const struct wal__part_range *range = &head->ranges[0];
    struct wal__span trailer = {bytes.data + bytes.size,
                                head->range_count > 1 ? (size_t)head->ranges[1].size : 0};
    enum wal_status status =
        range->stream == WAL__LOG_ID_PACK ? wal__copy_make_pack(&replica->env, error) : WAL_OK;

    replica->needs_find = true;
    if (status == WAL_OK) {
        status = wal__segment_install(&replica->env, replica->logs[range->stream].directory, NULL,
                                      header, bytes.data + WAL__SEGMENT_HEADER_SIZE,
                                      bytes.size - WAL__SEGMENT_HEADER_SIZE, error);
    }
    if (status == WAL_OK && head->range_count > 1) {
        status = write_trailer(replica, &head->ranges[1], trailer, header, error);
    }
    return status == WAL_OK ? remove_replaced(replica, range->stream, header, error) : status;
}

/* --- what the replica has ----------------------------------------------- */

/* Opens the segment of the replica that has what is at the end of the segment: that of the same id,
 * or a rewritten one that was made of it; NULL: none. */
static enum wal_status open_former(struct wal_replica *replica, uint32_t stream,
                                   const struct wal__segment_header *header,
                                   struct wal__segment **former, struct wal_error *error)
{
    struct wal__log *log = &replica->logs[stream];
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);
    uint64_t id = 0;

    for (size_t i = 0; i < ids.size / sizeof(id) && id < header->id; i++) {
        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
    }
    wal__buf_deinit(&ids);
    *former = NULL;
    if (status != WAL_OK || id < header->id) {
        return status;
    }
    status = open_segment(replica, stream, id, former, error);
    if (status == WAL_OK && id != header->id &&
        (!wal__segment_is_rewritten(&(*former)->header) ||
         (*former)->header.rewrite.first_id > header->id)) {
        wal__segment_close(*former);
        *former = NULL;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Returns whether a file of what the segment replaced is there yet: a call that installed it was
 * interrupted. */
static enum wal_status has_leftover(struct wal_replica *replica, uint32_t stream,
                                    const struct wal__segment_header *header, bool *has,
                                    struct wal_error *error)
{
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(&replica->logs[stream], &ids, error);

    *has = false;
    for (size_t i = 0; i < ids.size / sizeof(uint64_t); i++) {
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        *has |= id >= header->rewrite.first_id && id < header->id;
    }
    wal__buf_deinit(&ids);
    return status;
}

/* Returns whether the segment is one that compaction wrote of what the replica has, after what the
 * replica has was written. */
static enum wal_status supersedes(struct wal_replica *replica, uint32_t stream,
                                  const struct wal__segment_header *header, bool *is_later,
                                  struct wal_error *error)
{
    struct wal__segment *former = NULL;
    enum wal_status status;

    *is_later = false;
    /* Where the replica ends, the next part names what it has. */
    if (!wal__segment_is_rewritten(header) || replica->places[stream].segment <= header->id) {
        return WAL_OK;
    }
    status = open_former(replica, stream, header, &former, error);
    if (status != WAL_OK || former == NULL) {
        return status;
    }
    if (former->header.salt == header->salt) {
        status = has_leftover(replica, stream, header, is_later, error);
    } else {
        *is_later = former->header.rewrite.generation < header->rewrite.generation;
    }
    wal__segment_close(former);
    return status;
}

enum wal_status wal_replica_needs(struct wal_replica *replica, struct wal_slice begin,
                                  int32_t *needs, struct wal_error *error)
{
    const struct wal__span bytes = {begin.data, (size_t)begin.size};
    struct wal__part_head head;
    struct wal__segment_header header;
    const struct wal__part_range *range = &head.ranges[0];
    size_t head_size;
    bool found = false;
    enum wal_status status;

    if (replica == NULL || needs == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__part_get_head(bytes, &head, error);
    if (status == WAL_OK) {
        status = locate(replica, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((head.flags & WAL__PART_SEGMENT) == 0 || !replica->is_store || replica->is_ordinary) {
        *needs = 0;
        return WAL_OK;
    }
    head_size = wal__part_head_size(head.range_count);
    if (bytes.size < head_size + WAL__SEGMENT_HEADER_SIZE) {
        return wal__fail(error, WAL_ECORRUPT, "the part is damaged: it is cut off");
    }
    status = replica_read_header(
        replica, range, &head.after[range->stream],
        (struct wal__span){bytes.data + head_size, WAL__SEGMENT_HEADER_SIZE}, &header, error);
    if (status == WAL_OK) {
        status = supersedes(replica, range->stream, &header, &found, error);
    }
    if (status == WAL_OK) {
        *needs = found;
    }
    return status;
}

/* --- replacing ---------------------------------------------------------- */

/* The segment ends as the former one, which has its end, and the replica has what it continues. */
static enum wal_status check_former(struct wal_replica *replica, uint32_t stream,
                                    const struct wal__segment_header *header,
                                    struct wal__span bytes, struct wal__segment *former,
                                    const struct wal__part_place *after, struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[stream];
    const struct wal__io *io = replica->env.io;
    struct wal__part_place end = {0};
    struct wal__open_record open;
    struct wal__io_stat ignored;
    char path[WAL__PATH_MAX];
    enum wal_status status = WAL_OK;
    bool follows = true;
    int err = 0;

    if (former->id == header->id) {
        status = replica_find_end(replica, former, false, &end, error);
        follows = end.offset == after->offset && end.sequence == after->sequence &&
                  end.chain == after->chain;
    }
    if (status == WAL_OK && follows && wal__segment_is_rewritten(&former->header) &&
        former->header.rewrite.first_id < header->rewrite.first_id) {
        follows = wal__part_read_open(header, bytes, &open);
        wal__segment_path(&replica->env, log->directory, follows ? open.previous_id : 0, path);
        follows = follows && io->path_stat(io->ctx, path, &ignored, &err) == WAL_OK;
    }
    return status == WAL_OK && !follows
               ? wal__fail(error, WAL_ECONFLICT,
                           "the replica has another past than the part, in "
                           "segment %016" PRIx64,
                           header->id)
               : status;
}

/* Verifies such a segment, and puts it in the place of those that it was made of; removes what was
 * derived from these. */
static enum wal_status replace(struct wal_replica *replica, const struct wal__part_head *head,
                               struct wal__span bytes, const struct wal__segment_header *header,
                               struct wal_error *error)
{
    const uint32_t stream = head->ranges[0].stream;
    const struct wal__part_place *after = &head->after[stream];
    const struct wal__part_place unknown = {0};
    struct wal__segment *former = NULL;
    enum wal_status status = verify_segment(replica, head, &unknown, bytes, header, error);

    if (status == WAL_OK) {
        status = open_former(replica, stream, header, &former, error);
    }
    if (status == WAL_OK && former != NULL) {
        status = check_former(replica, stream, header, bytes, former, after, error);
        wal__segment_close(former);
    }
    if (status == WAL_OK) {
        status = wal__clear_index(&replica->env, error);
    }
    if (status == WAL_OK) {
        status = install(replica, head, bytes, header, error);
    }
    replica->needs_find = status != WAL_OK;
    return status;
}

/* --- either --------------------------------------------------------------- */

/* The whole segment that a part has. */
static enum wal_status replica_apply_segment(struct wal_replica *replica,
                                             const struct wal__part_head *head,
                                             struct wal__span part, struct wal_error *error)
{
    const struct wal__part_range *range = &head->ranges[0];
    const struct wal__part_place *after = &head->after[range->stream];
    const struct wal__span bytes = {part.data + wal__part_head_size(head->range_count),
                                    (size_t)range->size};
    const struct wal__part_place *at = &replica->places[range->stream];
    const struct wal__part_place unknown = {0};
    struct wal__segment_header header;
    uint64_t first;
    bool is_later = false;
    enum wal_status status = replica_read_header(replica, range, after, bytes, &header, error);

    if (status == WAL_OK && (at->segment > after->segment ||
                             (at->segment == after->segment && at->offset >= after->offset &&
                              !replica->has_doubt[range->stream]))) {
        status = supersedes(replica, range->stream, &header, &is_later, error);
        return status == WAL_OK && is_later ? replace(replica, head, bytes, &header, error)
                                            : status;
    }
    if (status != WAL_OK) {
        return status;
    }
    first = wal__segment_is_rewritten(&header) ? header.rewrite.first_id : header.id;
    /* It may replace the newest segments, and begin with them. */
    status = verify_segment(replica, head,
                            at->segment >= first && at->segment <= header.id ? &unknown : at, bytes,
                            &header, error);
    if (status == WAL_OK) {
        status = install(replica, head, bytes, &header, error);
    }
    if (status == WAL_OK) {
        replica->needs_find = false;
        replica->has_doubt[range->stream] = false;
        replica->places[range->stream] = *after;
    }
    return status;
}

/* --- applying ------------------------------------------------------------- */

/* A range that is applied. */
struct job {
    struct wal_replica *replica;
    const struct wal__part_range *range;
    const struct wal__part_place *before;
    const struct wal__part_place *after;
    struct wal__span bytes;
    struct wal__segment_header header;
    struct wal__segment *segment; /* of the replica; NULL: not there yet */
    /* Bytes of the range below the end of the replica. */
    uint64_t known;
};

/* --- the manifest ------------------------------------------------------- */

/* Makes the directory a store, unless another process has just done so: that one would have the
 * participant lock. */
static enum wal_status make_manifest(struct wal_replica *replica, const struct wal__manifest *next,
                                     struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    bool exists = false;
    int err = 0;
    enum wal_status status =
        io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_EXCLUSIVE, &err);

    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, replica->env.root, 0,
                            "another process makes a store there");
    }
    status = wal__manifest_probe(&replica->env, &exists, error);
    if (status == WAL_OK && exists) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                              "a store that is no replica is there: choose "
                              "another directory");
    }
    /* A manifest implies that the directories exist. */
    if (status == WAL_OK) {
        status = wal__manifest_sync_directories(&replica->env, error);
    }
    if (status == WAL_OK) {
        replica->manifest = *next;
        status = wal__manifest_replace(&replica->env, &replica->manifest, next, error);
    }
    replica->is_store = status == WAL_OK;
    (void)!io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_NONE, &err);
    return status;
}

/* Positions in a catalogue are those of the log before: segments may be replaced by others of the
 * same generation. */
static enum wal_status remove_catalogue(const struct wal_replica *replica, struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(&replica->env, path, "index/catalogue");
    status = io->unlink(io->ctx, path, &err);
    *strrchr(path, '/') = '\0';
    if (status == WAL_OK) {
        status = io->sync_directory(io->ctx, path, &err);
    }
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot remove the catalogue");
}

/* KEYS of the part becomes that of the replica, unless this is newer: what is encrypted by a key
 * comes with it, or after it. */
static enum wal_status update_keys(const struct wal_replica *replica,
                                   const struct wal__part_head *head, struct wal__span part,
                                   struct wal_error *error)
{
    const struct wal__span bytes = {part.data + wal__part_keys_offset(head), head->keys_size};
    struct wal__keys_file present;
    struct wal__keys_file keys;
    enum wal_status status;

    if (head->keys_size == 0) {
        return WAL_OK;
    }
    status = wal__part_check_keys(head, bytes, &keys, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__keys_read(&replica->env, &present, NULL) == WAL_OK &&
                   present.generation > keys.generation
               ? WAL_OK
               : wal__keys_write_copy(&replica->env, bytes, error);
}

/* Makes the directory a store, or adds features that the part may need. */
static enum wal_status update_manifest(struct wal_replica *replica,
                                       const struct wal__part_head *head, struct wal_error *error)
{
    const struct wal__features *features = &head->manifest.features;
    struct wal__manifest next = replica->manifest;
    enum wal_status status;
    int err = 0;

    if (replica->is_ordinary) {
        status = remove_catalogue(replica, error);
        if (status == WAL_OK) {
            status = replica_settle(replica, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    if (!replica->is_store) {
        next = head->manifest;
    }
    next.version = head->manifest.version;
    next.features.compat |= features->compat;
    next.features.ro_compat |= features->ro_compat | WAL__RO_COMPAT_REPLICA;
    next.features.incompat |= features->incompat;
    if (!replica->is_store) {
        return make_manifest(replica, &next, error);
    }
    status = next.version == replica->manifest.version &&
                     memcmp(&next.features, &replica->manifest.features, sizeof(next.features)) == 0
                 ? WAL_OK
                 : wal__manifest_replace(&replica->env, &replica->manifest, &next, error);
    if (replica->is_ordinary && status == WAL_OK) {
        replica->is_ordinary = false;
        (void)!replica->env.io->lock(replica->env.io->ctx, replica->lock, WAL__LOCK_PARTICIPANT,
                                     WAL__IO_LOCK_NONE, &err);
    }
    return status;
}

/* --- a store ------------------------------------------------------------ */

/* Returns whether the part goes on from the place. What ends a segment is where its next group
 * would be. */
static bool goes_on(const struct wal_replica *replica, const struct wal__part_head *head,
                    uint32_t stream, const struct wal__part_place *at)
{
    const struct wal__part_place *after = &head->after[stream];

    return wal__part_place_equal(at, &head->before[stream]) &&
           (!replica->has_doubt[stream] || at->segment != after->segment ||
            at->offset == after->offset || (head->flags & WAL__PART_SEGMENT) != 0);
}

/*
 * The first part that an ordinary store lacks must follow exactly what it has, or would have if it
 * had not been opened and closed since: nothing of a store that went on by itself is taken for a
 * past of the part. WAL_END: the store is as far, and nothing was compared.
 */
static enum wal_status check_first(struct wal_replica *replica, const struct wal__part_head *head,
                                   struct wal_error *error)
{
    struct wal__part_place bare[WAL__PART_STREAMS] = {{0}};
    bool is_applied = true;

    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        const struct wal__part_place *at = &replica->places[i];
        const struct wal__part_place *after = &head->after[i];

        is_applied &= at->segment > after->segment ||
                      (at->segment == after->segment && at->offset >= after->offset);
    }
    if (is_applied) {
        return WAL_END;
    }
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        enum wal_status status;

        bare[i] = replica->places[i];
        if (goes_on(replica, head, i, &bare[i])) {
            continue;
        }
        status = replica_find_place(replica, i, true, &bare[i], error);
        if (status == WAL_OK && !goes_on(replica, head, i, &bare[i])) {
            status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                                  "a store is there that went on by itself, "
                                  "or does not end where a part begins: "
                                  "choose another directory");
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    memcpy(replica->places, bare, sizeof(bare));
    return WAL_OK;
}

/* --- checks ------------------------------------------------------------- */

/* Checks that the range follows what was applied, or overlaps its end, and opens the segment where
 * the replica has it. */
static enum wal_status check_order(struct job *job, struct wal_error *error)
{
    struct wal_replica *replica = job->replica;
    const struct wal__part_range *range = job->range;
    const struct wal__part_place *at = &replica->places[range->stream];
    bool is_inside = at->segment == range->segment && at->salt == job->after->salt &&
                     range->offset <= at->offset;
    enum wal_status status = WAL_OK;

    if (range->offset != 0 ? !is_inside : !is_inside && !wal__part_place_equal(job->before, at)) {
        return wal__fail(error, WAL_ECONFLICT,
                         "the part does not follow what was applied: it begins "
                         "at offset %" PRIu64 " of segment %016" PRIx64,
                         range->offset, range->segment);
    }
    if (range->offset != 0 &&
        (range->offset != job->before->offset || range->segment != job->before->segment)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: its range "
                         "is not at its position");
    }
    job->known = is_inside ? at->offset - range->offset : 0;
    if (range->offset != 0 || job->known > 0) {
        status = open_segment(replica, range->stream, range->segment, &job->segment, error);
    }
    if (status == WAL_OK && range->offset == 0) {
        status = replica_read_header(replica, range, job->after, job->bytes, &job->header, error);
    } else if (status == WAL_OK) {
        job->header = job->segment->header;
    }
    return status;
}

/* The bytes that the replica has must be those of the range. */
static enum wal_status compare_known(const struct job *job, struct wal_error *error)
{
    struct wal__buf *bytes = &job->replica->bytes;
    enum wal_status status;

    if (job->known == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(job->segment != NULL && job->known <= job->bytes.size);
    bytes->size = 0;
    status = wal__part_read_file(job->segment, job->range->offset, job->range->offset + job->known,
                                 bytes, error);
    if (status != WAL_OK) {
        return status;
    }
    return memcmp(bytes->data, job->bytes.data, bytes->size) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECONFLICT,
                           "the replica has another past than the part, in "
                           "segment %016" PRIx64,
                           job->range->segment);
}

static enum wal_status verify(struct job *job, struct wal_error *error)
{
    struct wal__part_place reached;
    enum wal_status status;

    if (job->range->offset + job->bytes.size > job->header.capacity) {
        return wal__fail(error, WAL_ECORRUPT, "the part is damaged: it is larger than its segment");
    }
    status = wal__part_scan(&job->header, job->before, job->range->offset, job->bytes, true,
                            &reached, &job->replica->facts, error);
    if (status == WAL_OK && !wal__part_place_equal(&reached, job->after)) {
        status = wal__fail(error, WAL_ECORRUPT,
                           "the part is damaged: it leads to another position "
                           "than it says");
    }
    return status;
}

/* --- writing ------------------------------------------------------------ */

/* Makes the segment that the range begins, unless the replica has a part of the range. One that an
 * interrupted call left has no group, and its name may not be durable. */
static enum wal_status make_segment(struct job *job, struct wal_error *error)
{
    struct wal_replica *replica = job->replica;
    const struct wal__log *log = &replica->logs[job->range->stream];
    enum wal_status status = WAL_OK;

    if (job->known > 0) {
        return WAL_OK;
    }
    if (job->range->stream == WAL__LOG_ID_PACK) {
        status = wal__copy_make_pack(&replica->env, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_preallocate(&replica->env, log->directory, NULL, &job->header,
                                          WAL__SEGMENT_HEADER_SIZE, NULL, error);
    }
    return status == WAL_OK ? open_segment(replica, job->range->stream, job->range->segment,
                                           &job->segment, error)
                            : status;
}

/* Syncs what was written to a stream. */
static enum wal_status sync_stream(struct wal_replica *replica, uint32_t stream,
                                   struct wal_error *error)
{
    struct wal__segment *segment = NULL;
    enum wal_status status;

    if (replica->unsynced[stream] == 0) {
        return WAL_OK;
    }
    status = open_segment(replica, stream, replica->unsynced[stream], &segment, error);
    if (status == WAL_OK) {
        status = replica_write(segment, (struct wal__span){NULL, 0}, 0, false, error);
        wal__segment_close(segment);
    }
    replica->unsynced[stream] = 0;
    /* A sync that failed is not made up for by a later one. */
    replica->needs_find |= status != WAL_OK;
    return status;
}

/* Syncs what must be durable before the range is written. */
static enum wal_status sync_before(struct job *job, struct wal_error *error)
{
    struct wal_replica *replica = job->replica;
    const struct wal__part_range *range = job->range;
    enum wal_status status =
        range->stream == WAL__LOG_ID_LOG ? sync_stream(replica, WAL__LOG_ID_PACK, error) : WAL_OK;

    return status == WAL_OK && replica->unsynced[range->stream] != range->segment
               ? sync_stream(replica, range->stream, error)
               : status;
}

static enum wal_status apply(struct job *job, struct wal_error *error)
{
    const struct wal__part_range *range = job->range;
    struct wal_replica *replica = job->replica;
    uint64_t skipped;
    enum wal_status status = check_order(job, error);

    if (status == WAL_OK) {
        status = verify(job, error);
    }
    if (status == WAL_OK) {
        status = compare_known(job, error);
    }
    if (status == WAL_OK) {
        status = sync_before(job, error);
    }
    if (status == WAL_OK && range->offset == 0) {
        status = make_segment(job, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    skipped = job->known;
    if (range->offset + skipped < WAL__SEGMENT_HEADER_SIZE) {
        skipped = WAL__SEGMENT_HEADER_SIZE; /* the file has its header */
    }
    replica->needs_find = true;
    status = replica_write(job->segment,
                           (struct wal__span){job->bytes.data + skipped, job->bytes.size - skipped},
                           range->offset + skipped, true, error);
    if (status == WAL_OK) {
        replica->needs_find = false;
        replica->unsynced[range->stream] = range->segment;
        replica->has_doubt[range->stream] = false;
        replica->places[range->stream] = *job->after;
    }
    return status;
}

static enum wal_status apply_ranges(struct wal_replica *replica, const struct wal__part_head *head,
                                    struct wal__span part, struct wal_error *error)
{
    const uint8_t *at = part.data + wal__part_head_size(head->range_count);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < head->range_count && status == WAL_OK; i++) {
        const struct wal__part_range *range = &head->ranges[i];
        const struct wal__part_place *place = &replica->places[range->stream];
        struct job job = {.replica = replica,
                          .range = range,
                          .before = &head->before[range->stream],
                          .after = &head->after[range->stream],
                          .bytes = {at, (size_t)range->size}};

        if (i > 0 && range->stream >= head->ranges[i - 1].stream) {
            return wal__fail(error, WAL_ECORRUPT,
                             "the part is damaged: its ranges are not in "
                             "order");
        }
        if (place->segment < job.after->segment ||
            (place->segment == job.after->segment &&
             (place->salt != job.after->salt || place->offset < job.after->offset))) {
            status = apply(&job, error);
            wal__segment_close(job.segment);
        }
        at += range->size;
    }
    return status;
}

enum wal_status wal_replica_sync(struct wal_replica *replica, struct wal_error *error)
{
    enum wal_status status;

    if (replica == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = locate(replica, error);
    if (status == WAL_OK) {
        status = sync_stream(replica, WAL__LOG_ID_PACK, error);
    }
    return status == WAL_OK ? sync_stream(replica, WAL__LOG_ID_LOG, error) : status;
}

enum wal_status wal_replica_write(struct wal_replica *replica, struct wal_slice part,
                                  struct wal_error *error)
{
    const struct wal__span bytes = {part.data, (size_t)part.size};
    struct wal__part_head head;
    enum wal_status status;

    if (replica == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__part_check(&replica->sha256_alg, bytes, &head, error);
    if (status == WAL_OK) {
        status = locate(replica, error);
    }
    if (status == WAL_OK && replica->is_store &&
        memcmp(replica->manifest.uuid, head.manifest.uuid, sizeof(head.manifest.uuid)) != 0) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                              "the replica is of another store");
    }
    if (status == WAL_OK && replica->is_ordinary) {
        status = check_first(replica, &head, error);
    }
    if (status == WAL_OK) {
        status = update_keys(replica, &head, bytes, error);
    }
    if (status == WAL_OK) {
        status = update_manifest(replica, &head, error);
    }
    if (status != WAL_OK) {
        return status == WAL_END ? WAL_OK : status;
    }
    if ((head.flags & WAL__PART_SEGMENT) == 0) {
        return apply_ranges(replica, &head, bytes, error);
    }
    status = wal_replica_sync(replica, error);
    return status == WAL_OK ? replica_apply_segment(replica, &head, bytes, error) : status;
}

enum wal_status wal_replica_apply(struct wal_replica *replica, struct wal_slice part,
                                  struct wal_error *error)
{
    enum wal_status status = wal_replica_write(replica, part, error);

    return status == WAL_OK ? wal_replica_sync(replica, error) : status;
}
