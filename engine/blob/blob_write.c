/*
 * blob_write.c - records of the blob stream on their way into it (SPEC.md
 * 5.12): groups written under the stream's lease by whoever puts.
 *
 * Invariant: a digest that is there when its turn comes is not written again;
 * a group is in the stream whole, or nothing of it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blobs_parts.h"

enum {
    GROUP_SIZE = 4 * 1024 * 1024
};

/* The directory is there from the first blob on. */
static enum wal_status make_directory(struct wal__blobs *blobs,
                                      struct wal_error *error)
{
    const struct wal__io *io = blobs->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    if (blobs->log.tail != NULL) {
        return WAL_OK;
    }
    wal__segment_path(blobs->env, blobs->log.directory, 0, path);
    *strrchr(path, '/') = '\0';
    status = io->make_directory(io->ctx, path, &err);
    if (status == WAL_OK || status == WAL_EEXISTS) {
        /* Who made it may have died before its name was durable. */
        status = io->sync_directory(io->ctx, blobs->env->root, &err);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, err, path, 0,
                         "cannot make the directory of blobs");
    }
    return WAL_OK;
}

static uint64_t span_of(const struct wal__blob_prepared *prepared)
{
    return wal__frame_span(prepared->header.stored_size);
}

/* The position to be durable of content that is there and can be read, or 0. */
static uint64_t find_end(const struct wal__blobs *blobs,
                         const struct wal__blob_prepared *prepared)
{
    uint64_t position = wal__blobs_locate(blobs, &prepared->digest);

    return position == 0 || position == prepared->damaged
               ? 0
               : wal__blobs_behind(position);
}

/* Drops from the list what others wrote meanwhile, and sums up a group of what
 * is left from `first` on; answers where it ends. */
static uint32_t take_group(struct wal__blobs *blobs,
                           struct wal__blob_prepared *prepared, uint32_t first,
                           uint32_t count, struct wal__demand *demand)
{
    memset(demand, 0, sizeof(*demand));
    while (first < count) {
        struct wal__blob_prepared *next = &prepared[first];

        if (next->end == 0) {
            next->end = find_end(blobs, next);
        }
        if (next->end == 0) {
            if (demand->frames > 0 &&
                demand->size + span_of(next) > GROUP_SIZE) {
                break;
            }
            demand->size += span_of(next);
            demand->frames++;
        }
        first++;
    }
    return first;
}

static enum wal_status add_record(struct wal__blobs *blobs,
                                  struct wal__group *group,
                                  struct wal__blob_prepared *prepared)
{
    struct wal__log *log = &blobs->log;
    uint64_t offset = wal__group_offset(group, log);
    enum wal_status status =
        wal__group_add(group, log, &prepared->header, prepared->frame.data);

    if (status == WAL_OK) {
        status = wal__pack_tail_add(&blobs->tail, &prepared->digest,
                                    (uint32_t)offset);
    }
    return status;
}

/* Writes what has no end yet of [first, end). The same content may stand there
 * twice: the second one finds the first. */
static enum wal_status write_group(struct wal__blobs *blobs,
                                   struct wal__blob_prepared *prepared,
                                   uint32_t first, uint32_t end,
                                   struct wal__blob_cost *cost,
                                   struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    struct wal__blob_cost added = {0};
    enum wal_status status = WAL_OK;
    struct wal__group group;

    wal__group_init(&group, log);
    for (uint32_t i = first; i < end && status == WAL_OK; i++) {
        if (prepared[i].end != 0 || find_end(blobs, &prepared[i]) != 0) {
            continue;
        }
        status = add_record(blobs, &group, &prepared[i]);
        added.new_blobs++;
        added.new_bytes += span_of(&prepared[i]);
    }
    if (status != WAL_OK) {
        /* What was applied is not in the stream: build it again. */
        log->stale = true;
        wal__fail(error, status, 0, NULL, 0, "no memory");
    } else {
        status = wal__log_write(log, &group, error);
    }
    if (status == WAL_OK) {
        for (uint32_t i = first; i < end; i++) {
            if (prepared[i].end == 0) {
                prepared[i].end = atomic_load(&log->end);
            }
        }
        cost->new_blobs += added.new_blobs;
        cost->new_bytes += added.new_bytes;
    }
    wal__group_deinit(&group);
    return status;
}

/* The turn is taken. */
static enum wal_status write_all(struct wal__blobs *blobs,
                                 struct wal__blob_prepared *prepared,
                                 uint32_t count, struct wal__blob_cost *cost,
                                 struct wal_error *error)
{
    enum wal_status status = wal__pack_slots_complete(blobs, error);
    uint32_t first = 0;

    while (status == WAL_OK && first < count) {
        struct wal__demand demand;
        uint32_t end = take_group(blobs, prepared, first, count, &demand);

        if (demand.frames > 0) {
            status = make_directory(blobs, error);
            if (status == WAL_OK) {
                status = wal__turn_reserve(&blobs->log, &demand, error);
            }
            if (status == WAL_OK) {
                status = write_group(blobs, prepared, first, end, cost, error);
            }
        }
        first = end;
    }
    return status;
}

enum wal_status wal__blobs_write(struct wal__blobs *blobs,
                                 struct wal__blob_prepared *prepared,
                                 uint32_t count, struct wal__blob_cost *cost,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool there = true;

    for (uint32_t i = 0; i < count; i++) {
        there = there && prepared[i].end != 0;
    }
    if (!there) {
        pthread_mutex_lock(&blobs->writer);
        status = wal__turn_begin(&blobs->log, &blobs->turn, true, error);
        if (status == WAL_OK) {
            status = write_all(blobs, prepared, count, cost, error);
            wal__turn_end(&blobs->log, &blobs->turn);
        }
        pthread_mutex_unlock(&blobs->writer);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (prepared[i].end > cost->end) {
            cost->end = prepared[i].end;
        }
    }
    return status;
}

/* A turn heals, also when there is nothing to write. */
static enum wal_status heal(struct wal__blobs *blobs, struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&blobs->writer);
    status = wal__turn_begin(&blobs->log, &blobs->turn, true, error);
    if (status == WAL_OK) {
        wal__turn_end(&blobs->log, &blobs->turn);
    }
    pthread_mutex_unlock(&blobs->writer);
    return status;
}

enum wal_status wal__blobs_sync(struct wal__blobs *blobs, uint64_t end,
                                struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (end == 0) {
        return WAL_OK;
    }
    /* Content that is there already may be what a failed sync left behind. */
    if (atomic_load(&blobs->log.shared->poison) != 0) {
        status = heal(blobs, error);
    }
    return status == WAL_OK ? wal__log_sync(&blobs->log, end, error) : status;
}

uint64_t wal__blobs_durable(const struct wal__blobs *blobs)
{
    return atomic_load(&blobs->log.shared->durable);
}
