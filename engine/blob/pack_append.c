/*
 * pack_append.c - records of the blob stream on their way into it (SPEC.md
 * 5.12): groups written under the stream's lease by whoever puts.
 *
 * Invariant: a digest that is there when its turn comes is not written again;
 * a group is in the stream whole, or nothing of it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/log/group.h"

enum {
    GROUP_SIZE = 4 * 1024 * 1024
};

/* The directory is there from the first blob on. */
static enum wal_status make_directory(struct wal__blob_store *blobs,
                                      struct wal_error *error)
{
    const struct wal__io *io = blobs->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    if (blobs->log.tail_segment != NULL) {
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
        return wal__fail_at(error, status, err, path, 0,
                            "cannot make the directory of blobs");
    }
    return WAL_OK;
}

static uint64_t frame_span(const struct wal__blob_prepared *prepared)
{
    return wal__frame_total_size(prepared->header.stored_size);
}

/* The position to be durable of content that is there and can be read, or 0. */
static uint64_t find_existing_end(const struct wal__blob_store *blobs,
                                  const struct wal__blob_prepared *prepared)
{
    uint64_t position = wal__blob_find_locked(blobs, &prepared->digest);

    return position == 0 || position == prepared->damaged_position
               ? 0
               : wal__blob_sync_end(position);
}

/* Drops from the list what others wrote meanwhile, and sums up a group of what
 * is left from `first` on; answers where it ends. */
static uint32_t plan_group(struct wal__blob_store *blobs,
                           struct wal__blob_prepared *prepared, uint32_t first,
                           uint32_t count,
                           struct wal__log_reservation *reservation)
{
    memset(reservation, 0, sizeof(*reservation));
    while (first < count) {
        struct wal__blob_prepared *next = &prepared[first];

        if (next->end == 0) {
            next->end = find_existing_end(blobs, next);
        }
        if (next->end == 0) {
            if (reservation->frames > 0 &&
                reservation->size + frame_span(next) > GROUP_SIZE) {
                break;
            }
            reservation->size += frame_span(next);
            reservation->frames++;
        }
        first++;
    }
    return first;
}

static enum wal_status add_record(struct wal__blob_store *blobs,
                                  struct wal__group *group,
                                  struct wal__blob_prepared *prepared)
{
    struct wal__log *log = &blobs->log;
    uint64_t offset = wal__group_offset(group, log);
    enum wal_status status =
        wal__group_add(group, log, &prepared->header, prepared->frame.data);

    if (status == WAL_OK) {
        status = wal__pack_memtable_add(&blobs->tail, &prepared->digest,
                                        (uint32_t)offset);
    }
    return status;
}

/* Writes what has no end yet of [first, end). The same content may stand there
 * twice: the second one finds the first. */
static enum wal_status write_group(struct wal__blob_store *blobs,
                                   struct wal__blob_prepared *prepared,
                                   uint32_t first, uint32_t end,
                                   struct wal__blob_put_result *result,
                                   struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    struct wal__blob_put_result added = {0};
    enum wal_status status = WAL_OK;
    struct wal__group group;

    wal__group_init(&group, log);
    for (uint32_t i = first; i < end && status == WAL_OK; i++) {
        if (prepared[i].end != 0 ||
            find_existing_end(blobs, &prepared[i]) != 0) {
            continue;
        }
        status = add_record(blobs, &group, &prepared[i]);
        added.new_blobs++;
        added.new_bytes += frame_span(&prepared[i]);
    }
    if (status != WAL_OK) {
        /* What was applied is not in the stream: build it again. */
        log->needs_reload = true;
        wal__fail(error, status, "no memory");
    } else {
        status = wal__group_write(&group, log, error);
    }
    if (status == WAL_OK) {
        for (uint32_t i = first; i < end; i++) {
            if (prepared[i].end == 0) {
                prepared[i].end = atomic_load(&log->end);
            }
        }
        result->new_blobs += added.new_blobs;
        result->new_bytes += added.new_bytes;
    }
    wal__group_deinit(&group);
    return status;
}

/* The turn is taken. */
static enum wal_status append_all(struct wal__blob_store *blobs,
                                  struct wal__blob_prepared *prepared,
                                  uint32_t count,
                                  struct wal__blob_put_result *result,
                                  struct wal_error *error)
{
    enum wal_status status = wal__pack_indexes_load(blobs, error);
    uint32_t first = 0;

    while (status == WAL_OK && first < count) {
        struct wal__log_reservation reservation;
        uint32_t end = plan_group(blobs, prepared, first, count, &reservation);

        if (reservation.frames > 0) {
            status = make_directory(blobs, error);
            if (status == WAL_OK) {
                status = wal__leader_reserve(&blobs->log, &reservation, error);
            }
            if (status == WAL_OK) {
                status =
                    write_group(blobs, prepared, first, end, result, error);
            }
        }
        first = end;
    }
    return status;
}

enum wal_status wal__pack_append(struct wal__blob_store *blobs,
                                 struct wal__blob_prepared *prepared,
                                 uint32_t count,
                                 struct wal__blob_put_result *result,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool there = true;

    for (uint32_t i = 0; i < count; i++) {
        there = there && prepared[i].end != 0;
    }
    if (!there) {
        pthread_mutex_lock(&blobs->write_mutex);
        status =
            wal__leader_begin(&blobs->log, &blobs->leader_client, true, error);
        if (status == WAL_OK) {
            status = append_all(blobs, prepared, count, result, error);
            wal__leader_end(&blobs->log, &blobs->leader_client);
        }
        pthread_mutex_unlock(&blobs->write_mutex);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (prepared[i].end > result->end) {
            result->end = prepared[i].end;
        }
    }
    return status;
}

/* A turn heals, also when there is nothing to write. */
static enum wal_status retry_failed_sync(struct wal__blob_store *blobs,
                                         struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&blobs->write_mutex);
    status = wal__leader_begin(&blobs->log, &blobs->leader_client, true, error);
    if (status == WAL_OK) {
        wal__leader_end(&blobs->log, &blobs->leader_client);
    }
    pthread_mutex_unlock(&blobs->write_mutex);
    return status;
}

enum wal_status wal__blob_store_sync(struct wal__blob_store *blobs,
                                     uint64_t end, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (end == 0) {
        return WAL_OK;
    }
    /* Content that is there already may be what a failed sync left behind. */
    if (atomic_load(&blobs->log.shared->poison) != 0) {
        status = retry_failed_sync(blobs, error);
    }
    return status == WAL_OK ? wal__log_sync(&blobs->log, end, error) : status;
}

uint64_t wal__blob_store_durable_end(const struct wal__blob_store *blobs)
{
    return atomic_load(&blobs->log.shared->durable);
}
