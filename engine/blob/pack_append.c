/*
 * pack_append.c - appends groups of records to the blob stream, and syncs it
 * (blob.h; SPEC.md 5.12). Any thread: write_mutex serialises the threads, the
 * append lock of the stream the processes.
 *
 * Invariants: a digest that is in the stream when the append lock is acquired
 * is not written again; a group is written whole or not at all.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blob_store.h"
#include "engine/blob/pack_indexes.h"
#include "engine/log/group.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"

enum {
    GROUP_SIZE = 4 * 1024 * 1024
};

/* Creates the pack directory for the first blob of the store. */
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
        /* A process that created it may have died before the name was
         * durable. */
        status = io->sync_directory(io->ctx, blobs->env->root, &err);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot create the pack directory");
    }
    return WAL_OK;
}

static uint64_t frame_span(const struct wal__blob_prepared *prepared)
{
    return wal__frame_total_size(prepared->header.stored_size);
}

/* Whether content that another thread stored meanwhile is kept as long as the
 * owner of this one needs it. */
static bool is_kept(struct wal__blob_store *blobs,
                    const struct wal__blob_prepared *prepared,
                    uint64_t position)
{
    struct wal__record_buf scratch;
    struct wal__frame frame;
    struct wal__span ignored;
    bool is_kept;

    if (wal__blob_frame_owner(&prepared->header) == WAL__BLOB_OF_RECORDS) {
        return true;
    }
    wal__record_buf_init(&scratch, blobs->env->heap);
    is_kept = wal__log_peek(&blobs->log, position, 0, &scratch, &frame,
                            &ignored, NULL) == WAL_OK &&
              wal__blob_frame_owner(&frame) == WAL__BLOB_OF_CALLER;
    wal__record_buf_deinit(&scratch);
    return is_kept;
}

/* The position that must be durable for content that is stored and can be
 * relied on, or 0. */
static uint64_t find_existing_end(struct wal__blob_store *blobs,
                                  const struct wal__blob_prepared *prepared)
{
    uint64_t position = wal__blob_find_locked(blobs, &prepared->digest);

    return position <= blobs->condemned_end ||
                   position == prepared->unusable_position ||
                   !is_kept(blobs, prepared, position)
               ? 0
               : wal__blob_sync_end(position);
}

/* Plans a group from `first` on: sets the end of contents that other processes
 * have written, and sums the others in *reservation. Returns the end of the
 * group. */
static uint32_t plan_group(struct wal__blob_store *blobs,
                           struct wal__blob_prepared *prepared, uint32_t first,
                           uint32_t count,
                           struct wal__log_reservation *reservation)
{
    WAL__ASSERT(first < count);
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
    enum wal_status status;

    WAL__ASSERT(prepared->end == 0 &&
                prepared->frame.size == frame_span(prepared));
    WAL__ASSERT(offset <= UINT32_MAX);
    status =
        wal__group_add(group, log, &prepared->header, prepared->frame.data);
    return status == WAL_OK
               ? wal__pack_memtable_add(&blobs->tail, &prepared->digest,
                                        (uint32_t)offset)
               : status;
}

/* Sets the end of the contents of a group that was written. */
static void set_ends(struct wal__blob_prepared *prepared, uint32_t first,
                     uint32_t end, uint64_t written_end)
{
    WAL__ASSERT(written_end != 0);
    for (uint32_t i = first; i < end; i++) {
        if (prepared[i].end == 0) {
            prepared[i].end = written_end;
        }
    }
}

/* Writes the contents of [first, end) that have no end yet. The range may
 * contain a content twice: the look-up finds the first one's record. */
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

    WAL__ASSERT(first < end && blobs->apply_target == &blobs->tail);
    wal__group_init(&group, log);
    group.is_synced = true; /* before a record names the contents */
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
        /* The memtable contains records that are not in the stream. */
        log->needs_reload = true;
        wal__fail(error, status, "no memory");
        goto done;
    }
    status = wal__group_write(&group, log, error);
    if (status != WAL_OK) {
        goto done;
    }
    set_ends(prepared, first, end, atomic_load(&log->end));
    result->new_blobs += added.new_blobs;
    result->new_bytes += added.new_bytes;
done:
    wal__group_deinit(&group);
    return status;
}

/* Plans, reserves and writes one group from *first on, and advances *first. */
static enum wal_status append_group(struct wal__blob_store *blobs,
                                    struct wal__blob_prepared *prepared,
                                    uint32_t *first, uint32_t count,
                                    struct wal__blob_put_result *result,
                                    struct wal_error *error)
{
    struct wal__log_reservation reservation;
    uint32_t begin = *first;
    enum wal_status status;

    *first = plan_group(blobs, prepared, begin, count, &reservation);
    WAL__ASSERT(*first > begin && *first <= count);
    if (reservation.frames == 0) {
        return WAL_OK;
    }
    status = make_directory(blobs, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__leader_reserve(&blobs->log, &reservation, error);
    if (status != WAL_OK) {
        return status;
    }
    return write_group(blobs, prepared, begin, *first, result, error);
}

/* Between wal__leader_begin and wal__leader_end. */
static enum wal_status append_all(struct wal__blob_store *blobs,
                                  struct wal__blob_prepared *prepared,
                                  uint32_t count,
                                  struct wal__blob_put_result *result,
                                  struct wal_error *error)
{
    enum wal_status status = wal__pack_indexes_load(blobs, error);
    uint32_t first = 0;

    while (status == WAL_OK && first < count) {
        status = append_group(blobs, prepared, &first, count, result, error);
    }
    return status;
}

/* One attempt. WAL_EPOISONED: the next one heals the stream first. */
static enum wal_status try_append(struct wal__blob_store *blobs,
                                  struct wal__blob_prepared *prepared,
                                  uint32_t count,
                                  struct wal__blob_put_result *result,
                                  struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(wal__content_guard_is_held(blobs->log.control));
    blobs->condemned_end = wal__blob_condemned_end(blobs);
    status = wal__leader_begin(&blobs->log, &blobs->leader_client, true, error);
    if (status == WAL_OK) {
        status = append_all(blobs, prepared, count, result, error);
        wal__leader_end(&blobs->log, &blobs->leader_client);
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
    bool all_stored = true;

    for (uint32_t i = 0; i < count; i++) {
        all_stored = all_stored && prepared[i].end != 0;
    }
    if (!all_stored) {
        pthread_mutex_lock(&blobs->write_mutex);
        status = try_append(blobs, prepared, count, result, error);
        for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS;
             i++) {
            status = try_append(blobs, prepared, count, result, error);
        }
        pthread_mutex_unlock(&blobs->write_mutex);
    }
    for (uint32_t i = 0; i < count; i++) {
        WAL__ASSERT(status != WAL_OK || prepared[i].end != 0);
        if (prepared[i].end > result->end) {
            result->end = prepared[i].end;
        }
    }
    return status;
}

enum wal_status wal__blob_store_sync(struct wal__blob_store *blobs,
                                     uint64_t end, struct wal_error *error)
{
    enum wal_status status;

    if (end == 0 || blobs->env->io->forgets) {
        return WAL_OK;
    }
    status = wal__log_sync(&blobs->log, end, NULL);
    if (status != WAL_OK) {
        pthread_mutex_lock(&blobs->write_mutex);
        status =
            wal__leader_sync(&blobs->log, &blobs->leader_client, end, error);
        pthread_mutex_unlock(&blobs->write_mutex);
    }
    return status;
}

uint64_t wal__blob_store_durable_end(const struct wal__blob_store *blobs)
{
    return atomic_load(&blobs->log.shared->durable);
}
