/*
 * spare.c - segments before they are begun: which comes next, how it is made,
 * and the spares made ahead (SPEC.md 3.5).
 *
 * Invariant: a file that has a segment's name is complete. Who chooses, makes
 * or begins one holds the lock of spares.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/spare.h"

enum {
    SEGMENT_FIRST = 1024 * 1024,
    SEGMENT_GROWN = 32 * 1024 * 1024
};

/* --- the next segment --------------------------------------------------- */

/* Whether nothing stands where OPEN would. */
static bool is_unbegun(struct wal__segment *spare)
{
    static const uint8_t zeros[WAL__SEGMENT_HEADER_SIZE];
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    size_t got = 0;
    int ignored;

    return wal__io_read_full(spare->env->io, spare->file, bytes, sizeof(bytes),
                             WAL__SEGMENT_HEADER_SIZE, &got,
                             &ignored) == WAL_OK &&
           got == sizeof(bytes) && memcmp(bytes, zeros, sizeof(bytes)) == 0;
}

/* Whether a file of that id can be begun; else it must be made. */
static bool spare_usable(struct wal__log *log, uint64_t id, uint64_t capacity)
{
    struct wal__segment *spare = NULL;
    bool usable;

    if (wal__segment_open(log->env, log->directory, id, log->uuid, log->class,
                          &spare, NULL) != WAL_OK) {
        return false;
    }
    usable = !spare->linked && spare->header.version == WAL__FORMAT_VERSION &&
             spare->header.capacity >= capacity &&
             spare->header.group_align == log->group_align;
    usable = usable && is_unbegun(spare);
    wal__segment_close(spare);
    return usable;
}

static uint64_t next_id(const struct wal__log *log)
{
    uint64_t tail = log->tail == NULL ? 0 : log->tail->id;

    return (log->highest_id > tail ? log->highest_id : tail) + 1;
}

uint64_t wal__log_next_capacity(const struct wal__log *log, uint64_t needed)
{
    uint64_t capacity = SEGMENT_FIRST;
    uint64_t others = log->stream == WAL__STREAM_PACK ? 3 * needed : 0;

    if (log->tail != NULL && log->tail->header.capacity >= SEGMENT_FIRST) {
        capacity = log->tail->header.capacity * 2;
    }
    while (capacity < needed + others && capacity < SEGMENT_GROWN) {
        capacity *= 2;
    }
    while (capacity < needed) {
        capacity *= 2;
    }
    if (capacity > SEGMENT_GROWN && needed <= SEGMENT_GROWN) {
        capacity = SEGMENT_GROWN;
    }
    return capacity < WAL__SEGMENT_MAX ? capacity : WAL__SEGMENT_MAX;
}

static void fill_header(const struct wal__log *log, uint64_t id,
                        struct wal__segment_header *header)
{
    const struct wal__io *io = log->env->io;

    memset(header, 0, sizeof(*header));
    header->version = WAL__FORMAT_VERSION;
    memcpy(header->uuid, log->uuid, sizeof(header->uuid));
    header->id = id;
    header->class = log->class;
    header->group_align = log->group_align;
    header->created_ms = io->now_ms(io->ctx);
    io->random(io->ctx, &header->salt, sizeof(header->salt));
}

static enum wal_status make_segment(struct wal__log *log, uint64_t id,
                                    uint64_t capacity, uint64_t zeroed,
                                    const struct wal__pacer *pacer,
                                    struct wal_error *error)
{
    struct wal__segment_header header;

    fill_header(log, id, &header);
    header.capacity = capacity;
    return wal__segment_make(log->env, log->directory, &header, zeroed, pacer,
                             error);
}

enum wal_status wal__log_settle_names(const struct wal__log *log,
                                      struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, 0, path);
    *strrchr(path, '/') = '\0';
    status = io->sync_directory(io->ctx, path, &err);
    if (status != WAL_OK) {
        return wal__fail(error, status, err, path, 0,
                         "cannot make the name of a segment durable");
    }
    return WAL_OK;
}

enum wal_status wal__log_lock_spares(struct wal__log *log,
                                     struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&log->spare_mutex);
    status = wal__control_lock(log->control, WAL__LOCK_SPARE + log->stream,
                               log->stream, error);
    if (status != WAL_OK) {
        pthread_mutex_unlock(&log->spare_mutex);
    }
    return status;
}

void wal__log_unlock_spares(struct wal__log *log)
{
    wal__control_unlock(log->control, WAL__LOCK_SPARE + log->stream,
                        log->stream);
    pthread_mutex_unlock(&log->spare_mutex);
}

/*
 * Gives a spare that was found its name anew, and makes that durable. Who named
 * it may have died after a sync of the directory that failed, and one that
 * succeeds later says nothing of a name that was lost then. Whoever dies in
 * between leaves what the next attempt makes again.
 */
static enum wal_status rename_spare(const struct wal__log *log, uint64_t id,
                                    struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX + 8];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, id, path);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    status = io->rename(io->ctx, path, temporary, &err);
    if (status == WAL_OK) {
        status = io->rename(io->ctx, temporary, path, &err);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, err, path, 0,
                         "cannot give a spare its name");
    }
    return wal__log_settle_names(log, error);
}

enum wal_status wal__log_obtain_spare(struct wal__log *log, uint64_t needed,
                                      uint64_t *id, struct wal_error *error)
{
    uint64_t tail = log->tail == NULL ? 0 : log->tail->id;
    enum wal_status status;

    if (log->highest_id > tail && spare_usable(log, log->highest_id, needed)) {
        *id = log->highest_id;
        status = rename_spare(log, *id, error);
    } else {
        uint64_t capacity = wal__log_next_capacity(log, needed);

        *id = next_id(log);
        status = make_segment(log, *id, capacity, 0, NULL, error);
    }
    return status;
}

void wal__log_next_header(const struct wal__log *log,
                          struct wal__segment_header *header)
{
    uint64_t live = wal__log_newest(log);
    uint64_t id = next_id(log);

    fill_header(log, id > live ? id : live + 1, header);
}

/* --- spares ------------------------------------------------------------- */

/* How much of a segment is to be full when the next one is begun: those after
 * the first are of stores that grow, and the sooner, the calmer it is made. */
static uint64_t begun(uint64_t capacity)
{
    return capacity > SEGMENT_FIRST ? capacity / 16 : capacity / 4;
}

bool wal__log_wants_spare(const struct wal__log *log,
                          struct wal__spare_job *job)
{
    if (log->tail == NULL || log->tail->sealed ||
        log->highest_id > log->tail->id ||
        atomic_load(&log->tail->end) <= begun(log->tail->header.capacity)) {
        return false;
    }
    job->id = next_id(log);
    job->capacity = wal__log_next_capacity(log, 0);
    return true;
}

/* A spare that is being zeroed while others fill the tail. */
struct filling {
    struct wal__log *log;
    uint64_t capacity;
    uint64_t from; /* the published end when it was begun */
    uint64_t room; /* behind it in the tail */
};

/* Whether the zeros get along faster than the tail fills, by a quarter: what is
 * left of it when they are there is time enough for their sync. */
static bool is_ahead(const struct filling *filling, uint64_t zeroed)
{
    uint64_t written = atomic_load(&filling->log->shared->written);

    return wal__position_segment(written) ==
               wal__position_segment(filling->from) &&
           zeroed * filling->room * 4 >=
               (written - filling->from) * filling->capacity * 5;
}

static enum wal__pace next_pace(void *ctx, uint64_t zeroed)
{
    struct filling *filling = ctx;

    if (atomic_load(&filling->log->shared->hurry) != 0) {
        return WAL__PACE_STOP;
    }
    wal__log_write_behind(filling->log);
    return is_ahead(filling, zeroed) ? WAL__PACE_REST : WAL__PACE_GO;
}

static enum wal_status fill_spare(struct wal__log *log,
                                  const struct wal__spare_job *job,
                                  uint32_t pause_us, struct wal_error *error)
{
    struct filling filling = {.log = log, .capacity = job->capacity};
    const struct wal__pacer pacer = {next_pace, &filling, pause_us};
    const struct wal__segment *tail;

    filling.from = atomic_load(&log->shared->written);
    tail = wal__log_segment(log, wal__position_segment(filling.from));
    if (tail != NULL) {
        filling.room =
            tail->header.capacity - wal__position_offset(filling.from);
    }
    return make_segment(log, job->id, job->capacity, job->capacity,
                        pause_us == 0 ? NULL : &pacer, error);
}

enum wal_status wal__log_make_spare(struct wal__log *log,
                                    const struct wal__spare_job *job,
                                    uint32_t pause_us, struct wal_error *error)
{
    enum wal_status status = wal__log_lock_spares(log, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__log_newest(log) < job->id && !spare_usable(log, job->id, 0)) {
        status = fill_spare(log, job, pause_us, error);
    }
    wal__log_unlock_spares(log);
    return status;
}
