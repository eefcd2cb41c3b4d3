/*
 * prealloc.c - preallocated segments (SPEC.md 3.5).
 *
 * Invariant: a file with a segment's name has its full size and its header. A
 * process that chooses, makes or begins a segment holds the preallocation lock.
 */
#include "engine/log/prealloc.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"

enum {
    LEFTOVERS_MAX = 64,             /* ids that are looked for */
    SEGMENT_SIZE_LEAST = 64 * 1024, /* on a disk that is nearly full */
    SEGMENT_SIZE_INITIAL = 1024 * 1024,
    SEGMENT_SIZE_REGULAR = 32 * 1024 * 1024,
    FAST_MS = 10 * 1000, /* a segment fills in less: the next one doubles */
    SLOW_MS = 60 * 1000, /* in more: it is half as large */
    SHARE_LEAST = 64,    /* of the log: no segment is smaller than this part */
    SHARE_UNUSED = 32,   /* no more than this part is left unused */
    UNUSED_MAX = 2 * 1024 * 1024, /* or this */
    PAGE_SIZE = 4096              /* what holes are rounded to */
};

/* --- the next segment --------------------------------------------------- */

/* Whether the bytes of OPEN are zero. */
static bool is_uninitialised(struct wal__segment *segment)
{
    static const uint8_t zeros[WAL__SEGMENT_HEADER_SIZE];
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    size_t got = 0;
    int ignored;

    return wal__io_read_full(segment->env->io, segment->file, bytes,
                             sizeof(bytes), WAL__SEGMENT_HEADER_SIZE, &got,
                             &ignored) == WAL_OK &&
           got == sizeof(bytes) && memcmp(bytes, zeros, sizeof(bytes)) == 0;
}

/* Returns the capacity of the segment of that id; 0 unless its file exists and
 * can be begun. */
static uint64_t usable_capacity(const struct wal__log *log, uint64_t id)
{
    struct wal__segment *segment = NULL;
    uint64_t capacity = 0;

    if (wal__segment_open(log->env, log->directory, id, log->uuid, log->class,
                          &segment, NULL) != WAL_OK) {
        return 0;
    }
    if (!segment->has_open && segment->header.version == WAL__FORMAT_VERSION &&
        segment->header.group_align == log->group_align &&
        is_uninitialised(segment)) {
        capacity = segment->header.capacity;
    }
    wal__segment_close(segment);
    return capacity;
}

static uint64_t next_id(const struct wal__log *log)
{
    uint64_t tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;

    return (log->highest_id > tail ? log->highest_id : tail) + 1;
}

static uint64_t sum_of_capacities(const struct wal__log *log)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < wal__log_segment_count(log); i++) {
        sum += wal__log_segment_at(log, i)->header.capacity;
    }
    return sum;
}

/* The milliseconds in which the tail segment fills; of one that another process
 * began, its age: it was made about when its predecessor was as full as it is
 * now. */
static double fill_time(const struct wal__log *log)
{
    const struct wal__io *io = log->env->io;
    const struct wal__segment *tail = log->tail_segment;
    int64_t now = io->now_ms(io->ctx);
    uint64_t end = atomic_load(&tail->end);

    if (tail->begun_ms == 0 || end == 0) {
        return (double)(now - tail->header.created_ms);
    }
    return (double)(now - tail->begun_ms) * (double)tail->header.capacity /
           (double)end;
}

/* Twice the capacity of the tail while it is written fast, half of it while it
 * is written slowly. */
static uint64_t capacity_by_rate(const struct wal__log *log)
{
    double time = fill_time(log);
    uint64_t sum = sum_of_capacities(log);
    uint64_t least = SEGMENT_SIZE_INITIAL;
    uint64_t capacity = log->tail_segment->header.capacity;

    while (least < SEGMENT_SIZE_REGULAR && least * 2 <= sum / SHARE_LEAST) {
        least *= 2;
    }
    if (time < FAST_MS) {
        capacity *= 2;
    } else if (time > SLOW_MS) {
        capacity /= 2;
    }
    return capacity > least ? capacity : least;
}

uint64_t wal__prealloc_next_capacity(const struct wal__log *log,
                                     uint64_t needed)
{
    uint64_t capacity = SEGMENT_SIZE_INITIAL;
    uint64_t others = log->log_id == WAL__LOG_ID_PACK ? 3 * needed : 0;

    if (log->tail_segment != NULL &&
        log->tail_segment->header.capacity >= SEGMENT_SIZE_INITIAL) {
        capacity = capacity_by_rate(log);
    }
    while (capacity < needed + others && capacity < SEGMENT_SIZE_REGULAR) {
        capacity *= 2;
    }
    while (capacity < needed) {
        capacity *= 2;
    }
    if (capacity > SEGMENT_SIZE_REGULAR && needed <= SEGMENT_SIZE_REGULAR) {
        capacity = SEGMENT_SIZE_REGULAR;
    }
    capacity = capacity < WAL__SEGMENT_MAX ? capacity : WAL__SEGMENT_MAX;
    WAL__ASSERT(capacity >= needed || needed > WAL__SEGMENT_MAX);
    return capacity;
}

uint64_t wal__prealloc_least_capacity(uint64_t needed)
{
    uint64_t least = needed > SEGMENT_SIZE_LEAST ? needed : SEGMENT_SIZE_LEAST;

    return wal__align_up(least, WAL__SEGMENT_HEADER_SIZE);
}

uint64_t wal__prealloc_smaller_capacity(uint64_t capacity, uint64_t needed)
{
    uint64_t least = wal__prealloc_least_capacity(needed);
    uint64_t half = wal__align_up(capacity / 2, WAL__SEGMENT_HEADER_SIZE);

    return half > least ? half : least;
}

uint64_t wal__prealloc_healing_capacity(uint64_t needed)
{
    uint64_t capacity = SEGMENT_SIZE_INITIAL;

    while (capacity < needed) {
        capacity *= 2;
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

    WAL__ASSERT(zeroed <= capacity && capacity <= WAL__SEGMENT_MAX);
    WAL__ASSERT(id > 0);
    fill_header(log, id, &header);
    header.capacity = capacity;
    return wal__segment_preallocate(log->env, log->directory, log->control,
                                    &header, zeroed, pacer, error);
}

enum wal_status wal__log_sync_directory(const struct wal__log *log,
                                        struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, 0, path);
    *strrchr(path, '/') = '\0';
    status =
        wal__control_sync_directory(log->control, log->env->io, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot sync the directory of the segments");
    }
    return WAL_OK;
}

enum wal_status wal__prealloc_lock(struct wal__log *log,
                                   struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&log->prealloc_mutex);
    status = wal__control_lock(log->control, WAL__LOCK_PREALLOC + log->log_id,
                               log->log_id, error);
    if (status != WAL_OK) {
        pthread_mutex_unlock(&log->prealloc_mutex);
    }
    return status;
}

enum wal_status wal__prealloc_lock_for_rotation(struct wal__log *log,
                                                struct wal_error *error)
{
    enum wal_status status;

    atomic_store(&log->shared->rotation_waiting, 1);
    status = wal__prealloc_lock(log, error);
    atomic_store(&log->shared->rotation_waiting, 0);
    return status;
}

void wal__prealloc_unlock(struct wal__log *log)
{
    wal__control_unlock(log->control, WAL__LOCK_PREALLOC + log->log_id,
                        log->log_id);
    pthread_mutex_unlock(&log->prealloc_mutex);
}

/*
 * Renames a preallocated segment that was found to its own name, and makes that
 * durable. The process that named it may have died after a failed sync of the
 * directory, and a later sync that succeeds does not cover a name that was lost
 * then. A process that dies in between leaves a file that the next attempt
 * makes again.
 */
static enum wal_status renew_name(const struct wal__log *log, uint64_t id,
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
        return wal__fail_at(error, status, err, path, 0,
                            "cannot rename a preallocated segment");
    }
    return wal__log_sync_directory(log, error);
}

/* Makes a segment of the regular capacity, or halves that until the disk has
 * the space, down to what is needed. */
static enum wal_status make_as_large_as_fits(struct wal__log *log, uint64_t id,
                                             uint64_t capacity, uint64_t needed,
                                             struct wal_error *error)
{
    uint64_t least = wal__prealloc_least_capacity(needed);
    enum wal_status status = make_segment(log, id, capacity, 0, NULL, error);

    while (status == WAL_ENOSPACE && capacity > least) {
        capacity = wal__prealloc_smaller_capacity(capacity, needed);
        status = make_segment(log, id, capacity, 0, NULL, error);
    }
    return status;
}

enum wal_status wal__prealloc_obtain(struct wal__log *log, uint64_t needed,
                                     bool is_small, uint64_t *id,
                                     struct wal_error *error)
{
    uint64_t tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
    uint64_t capacity = is_small ? wal__prealloc_least_capacity(needed)
                                 : wal__prealloc_next_capacity(log, needed);
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held);
    if (!is_small && log->highest_id > tail &&
        usable_capacity(log, log->highest_id) >= needed) {
        *id = log->highest_id;
        status = renew_name(log, *id, error);
    } else {
        *id = next_id(log);
        status = make_as_large_as_fits(log, *id, capacity, needed, error);
    }
    WAL__ASSERT(*id > tail);
    return status;
}

void wal__prealloc_next_header(const struct wal__log *log,
                               struct wal__segment_header *header)
{
    uint64_t live = wal__log_newest_id(log);
    uint64_t id = next_id(log);

    fill_header(log, id > live ? id : live + 1, header);
}

static bool is_excessive(const struct wal__log *log, uint64_t unused)
{
    return unused > UNUSED_MAX &&
           unused > sum_of_capacities(log) / SHARE_UNUSED;
}

bool wal__prealloc_has_excess(const struct wal__log *log)
{
    const struct wal__segment *tail = log->tail_segment;

    return tail != NULL &&
           is_excessive(log, tail->header.capacity - atomic_load(&tail->end));
}

void wal__prealloc_remove_excess(struct wal__log *log)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    int ignored = 0;

    if (wal__prealloc_lock(log, NULL) != WAL_OK) {
        return;
    }
    if (log->tail_segment != NULL &&
        wal__log_find_highest_id(log, NULL) == WAL_OK &&
        is_excessive(log, usable_capacity(log, log->highest_id))) {
        wal__segment_path(log->env, log->directory, log->highest_id, path);
        (void)!io->unlink(io->ctx, path, &ignored);
    }
    wal__prealloc_unlock(log);
}

void wal__prealloc_punch(const struct wal__log *log,
                         struct wal__segment *segment, uint64_t from,
                         uint64_t to)
{
    const struct wal__io *io = log->env->io;
    int ignored = 0;

    from = wal__align_up(from, PAGE_SIZE);
    to = to / PAGE_SIZE * PAGE_SIZE;
    if (from < to && segment->file != NULL) {
        (void)!io->punch(io->ctx, segment->file, from, to - from, &ignored);
    }
}

/* Whether the file of that id is a segment that was never published: one that
 * was preallocated, or that a process began or healed to after `previous`. */
static bool is_leftover(const struct wal__log *log, uint64_t id,
                        uint64_t previous)
{
    struct wal__segment *segment = NULL;
    bool leftover;

    if (wal__segment_open(log->env, log->directory, id, log->uuid, log->class,
                          &segment, NULL) != WAL_OK) {
        return false;
    }
    leftover = segment->has_open ? segment->open.previous_id <= previous
                                 : is_uninitialised(segment);
    wal__segment_close(segment);
    return leftover;
}

void wal__prealloc_remove_leftovers(const struct wal__log *log,
                                    uint64_t previous, uint64_t id)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    int ignored = 0;

    WAL__ASSERT(log->append_lock_held && previous < id);
    if (id - previous > LEFTOVERS_MAX) {
        previous = id - LEFTOVERS_MAX;
    }
    for (uint64_t old = previous + 1; old < id; old++) {
        if (is_leftover(log, old, previous)) {
            wal__segment_path(log->env, log->directory, old, path);
            (void)!io->unlink(io->ctx, path, &ignored);
        }
    }
}

/* --- preallocation ------------------------------------------------------ */

/* Returns the end of a segment from which the next one is preallocated. A store
 * with more than one segment grows: an early start allows a slow pace. */
static uint64_t prealloc_threshold(uint64_t capacity)
{
    return capacity > SEGMENT_SIZE_INITIAL ? capacity / 16 : capacity / 4;
}

bool wal__prealloc_is_needed(const struct wal__log *log,
                             struct wal__prealloc_job *job)
{
    if (log->tail_segment == NULL || log->tail_segment->sealed ||
        log->highest_id > log->tail_segment->id ||
        atomic_load(&log->tail_segment->end) <=
            prealloc_threshold(log->tail_segment->header.capacity)) {
        return false;
    }
    job->id = next_id(log);
    job->capacity = wal__prealloc_next_capacity(log, 0);
    WAL__ASSERT(job->id > log->tail_segment->id);
    return true;
}

/* A segment that is zeroed while writers fill the tail segment. */
struct zeroing {
    struct wal__log *log;
    uint64_t capacity;
    uint64_t from; /* the written end when zeroing began */
    uint64_t room; /* bytes after it in the tail segment */
};

/* Whether zeroing is faster than the tail segment fills, by a quarter: the rest
 * of the tail is then time enough for the final sync. */
static bool is_ahead(const struct zeroing *zeroing, uint64_t zeroed)
{
    uint64_t written = atomic_load(&zeroing->log->shared->written);

    return wal__position_segment(written) ==
               wal__position_segment(zeroing->from) &&
           zeroed * zeroing->room * 4 >=
               (written - zeroing->from) * zeroing->capacity * 5;
}

static enum wal__pace next_pace(void *ctx, uint64_t zeroed)
{
    struct zeroing *zeroing = ctx;

    if (atomic_load(&zeroing->log->shared->rotation_waiting) != 0) {
        return WAL__PACE_STOP;
    }
    wal__log_background_sync(zeroing->log);
    return is_ahead(zeroing, zeroed) ? WAL__PACE_PAUSE : WAL__PACE_CONTINUE;
}

static enum wal_status zero_segment(struct wal__log *log,
                                    const struct wal__prealloc_job *job,
                                    uint32_t pause_us, struct wal_error *error)
{
    struct zeroing zeroing = {.log = log, .capacity = job->capacity};
    const struct wal__pacer pacer = {next_pace, &zeroing, pause_us};
    struct wal__segment *tail;

    zeroing.from = atomic_load(&log->shared->written);
    tail = wal__log_use_segment(log, wal__position_segment(zeroing.from));
    if (tail != NULL) {
        zeroing.room =
            tail->header.capacity - wal__position_offset(zeroing.from);
        wal__log_end_use(tail);
    }
    return make_segment(log, job->id, job->capacity, job->capacity,
                        pause_us == 0 ? NULL : &pacer, error);
}

enum wal_status wal__prealloc_create(struct wal__log *log,
                                     const struct wal__prealloc_job *job,
                                     uint32_t pause_us, struct wal_error *error)
{
    enum wal_status status = wal__prealloc_lock(log, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__log_newest_id(log) < job->id &&
        usable_capacity(log, job->id) == 0) {
        status = zero_segment(log, job, pause_us, error);
    }
    wal__prealloc_unlock(log);
    return status;
}
