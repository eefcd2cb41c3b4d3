/*
 * rotate.c - the next segment: making it before it is needed, sealing the tail, and beginning the
 * one after it (SPEC.md 3.5). With append lock and state lock; acquires the preallocation lock, and
 * the sync lock within it.
 *
 * A group that does not fit the tail makes room by a rotation:
 *
 *  1. The preallocated segment is taken, under a name that is made durable
 *     again; where there is none, one is made now, without zeroing, since a
 *     writer waits. On a full disk a smaller one is tried, down to what is
 *     needed.
 *  2. The tail is synced; INDEX, SEAL and trailer are written, which promise
 *     that everything before them is durable, and synced. A tail that recovery
 *     found torn or damaged takes none of them; its index is a file in index/.
 *  3. OPEN is written to the new segment as a separate group and synced, so
 *     that one small read distinguishes a preallocated segment from a used one.
 *     It names the end of its predecessor, and the damage before it.
 *  4. The new segment is published.
 *
 * From a sixteenth of the tail on (of the first one, a quarter) the background thread makes the
 * next segment, no faster than the tail fills. Its size doubles while segments fill fast, and
 * halves while they fill slowly.
 *
 * Invariants: disk space and memory are reserved before the first byte is written; a write that
 * fails after that poisons the log. A segment is published only when its OPEN is durable. A file
 * with a segment's name has its full size and its header. A process that chooses, makes or begins a
 * segment holds the preallocation lock.
 */
#include "engine/log/rotate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    LEFTOVERS_MAX = 64,             /* ids that are looked for */
    SEGMENT_SIZE_LEAST = 64 * 1024, /* on a disk that is nearly full */
    SEGMENT_SIZE_INITIAL = 1024 * 1024,
    SEGMENT_SIZE_REGULAR = 32 * 1024 * 1024,
    FAST_MS = 10 * 1000,          /* a segment fills in less: the next one doubles */
    SLOW_MS = 60 * 1000,          /* in more: it is half as large */
    SHARE_LEAST = 64,             /* of the log: no segment is smaller than this part */
    SHARE_UNUSED = 32,            /* no more than this part is left unused */
    UNUSED_MAX = 2 * 1024 * 1024, /* or this */
    HOLE_ALIGN = 4096,            /* what holes are rounded to */
    RESERVE_SIZE = 16 * 1024,     /* of each segment: wal__log_reserve */
    MARK_SIZE_MAX = 4096 + 256,   /* a commit mark, aligned */
    SEAL_SIZE_MAX = WAL__FRAME_SIZE + WAL__FRAME_SIZE + WAL__SEAL_SIZE + WAL__TRAILER_SIZE
};

/* --- the preallocation lock --------------------------------------------- */

/* Acquires prealloc_mutex, then the preallocation lock byte. Any thread. WAL_ELOCKED. */
static enum wal_status lock_prealloc(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&log->prealloc_mutex);
    status = wal__control_lock(log->control, WAL__LOCK_PREALLOC + log->log_id, log->log_id, error);
    if (status != WAL_OK) {
        pthread_mutex_unlock(&log->prealloc_mutex);
    }
    return status;
}

enum wal_status wal__prealloc_lock_for_rotation(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;

    atomic_store(&log->shared->rotation_waiting, 1);
    status = lock_prealloc(log, error);
    atomic_store(&log->shared->rotation_waiting, 0);
    return status;
}

void wal__prealloc_unlock(struct wal__log *log)
{
    wal__control_unlock(log->control, WAL__LOCK_PREALLOC + log->log_id, log->log_id);
    pthread_mutex_unlock(&log->prealloc_mutex);
}

/* --- sizes -------------------------------------------------------------- */

/* Returns whether the bytes of OPEN are zero. */
static bool is_uninitialised(struct wal__segment *segment)
{
    static const uint8_t zeros[WAL__SEGMENT_HEADER_SIZE];
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    size_t got = 0;
    int ignored;

    return wal__io_read_full(segment->env->io, segment->file, bytes, sizeof(bytes),
                             WAL__SEGMENT_HEADER_SIZE, &got, &ignored) == WAL_OK &&
           got == sizeof(bytes) && memcmp(bytes, zeros, sizeof(bytes)) == 0;
}

/* Returns the capacity of the segment of that id; 0 unless its file exists and can be begun. */
static uint64_t usable_capacity(const struct wal__log *log, uint64_t id)
{
    struct wal__segment *segment = NULL;
    uint64_t capacity = 0;

    if (wal__segment_open(log->env, log->directory, id, log->uuid, log->class, &segment, NULL) !=
        WAL_OK) {
        return 0;
    }
    if (!segment->has_open && segment->header.version == WAL__FORMAT_VERSION &&
        segment->header.group_align == log->group_align &&
        wal__encrypt_is_current(log->env->keyring, &segment->header) && is_uninitialised(segment)) {
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

/* The milliseconds in which the tail segment fills; of one that another process began, its age: it
 * was made about when its predecessor was as full as it is now. */
static double fill_time(const struct wal__log *log)
{
    const struct wal__io *io = log->env->io;
    const struct wal__segment *tail = log->tail_segment;
    int64_t now = io->now_ms(io->ctx);
    uint64_t end = atomic_load(&tail->end);

    if (tail->begun_ms == 0 || end == 0) {
        return (double)(now - tail->header.created_ms);
    }
    return (double)(now - tail->begun_ms) * (double)tail->header.capacity / (double)end;
}

/* Twice the capacity of the tail while it is written fast, half of it while it is written
 * slowly. */
static uint64_t capacity_by_rate(const struct wal__log *log)
{
    double time = fill_time(log);
    uint64_t sum = sum_of_capacities(log);
    uint64_t least = SEGMENT_SIZE_INITIAL;
    uint64_t capacity = log->tail_segment->header.capacity;

    while (least < SEGMENT_SIZE_REGULAR && least * 2 <= sum / SHARE_LEAST) {
        least *= 2;
    }
    if (time < (double)FAST_MS) {
        capacity *= 2;
    } else if (time > (double)SLOW_MS) {
        capacity /= 2;
    }
    return capacity > least ? capacity : least;
}

/* Returns the capacity of the next segment, 1 to 32 MiB: twice that of the tail when that fills
 * within 10 s, half of it when it takes more than 60 s, at least a 64th of the log; larger only for
 * a group that needs it. Of the pack also four times `needed`, up to 32 MiB: large groups follow
 * each other. */
static uint64_t next_capacity(const struct wal__log *log, uint64_t needed)
{
    uint64_t capacity = SEGMENT_SIZE_INITIAL;
    uint64_t others = log->log_id == WAL__LOG_ID_PACK ? 3 * needed : 0;

    if (log->tail_segment != NULL && log->tail_segment->header.capacity >= SEGMENT_SIZE_INITIAL) {
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

/* Returns the least capacity of a segment for `needed` bytes. */
static uint64_t least_capacity(uint64_t needed)
{
    uint64_t least = needed > SEGMENT_SIZE_LEAST ? needed : SEGMENT_SIZE_LEAST;

    return wal__align_up(least, WAL__SEGMENT_HEADER_SIZE);
}

/* Returns the next smaller capacity to try when the disk has no space. */
static uint64_t smaller_capacity(uint64_t capacity, uint64_t needed)
{
    uint64_t least = least_capacity(needed);
    uint64_t half = wal__align_up(capacity / 2, WAL__SEGMENT_HEADER_SIZE);

    return half > least ? half : least;
}

/* Returns the capacity of a segment that healing makes: 1 MiB, or as large as it needs. It does not
 * double: each healing would take the space again. */
static uint64_t healing_capacity(uint64_t needed)
{
    uint64_t capacity = SEGMENT_SIZE_INITIAL;

    while (capacity < needed) {
        capacity *= 2;
    }
    return capacity < WAL__SEGMENT_MAX ? capacity : WAL__SEGMENT_MAX;
}

/* --- making one --------------------------------------------------------- */

static void fill_header(const struct wal__log *log, uint64_t id, struct wal__segment_header *header)
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
    wal__encrypt_header(log->env->keyring, header);
}

static enum wal_status make_segment(struct wal__log *log, uint64_t id, uint64_t capacity,
                                    uint64_t zeroed, const struct wal__pacer *pacer,
                                    struct wal_error *error)
{
    struct wal__segment_header header;

    WAL__ASSERT(zeroed <= capacity && capacity <= WAL__SEGMENT_MAX);
    WAL__ASSERT(id > 0);
    fill_header(log, id, &header);
    header.capacity = capacity;
    return wal__segment_preallocate(log->env, log->directory, log->control, &header, zeroed, pacer,
                                    error);
}

/*
 * Renames a preallocated segment that was found to its own name, and makes that durable. The
 * process that named it may have died after a failed sync of the directory, and a later sync that
 * succeeds does not cover a name that was lost then. A process that dies in between leaves a file
 * that the next attempt makes again.
 */
static enum wal_status renew_name(const struct wal__log *log, uint64_t id, struct wal_error *error)
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
        return wal__fail_at(error, status, err, path, 0, "cannot rename a preallocated segment");
    }
    return wal__log_sync_directory(log, error);
}

/* Makes a segment of the regular capacity, or halves that until the disk has the space, down to
 * what is needed. */
static enum wal_status make_as_large_as_fits(struct wal__log *log, uint64_t id, uint64_t capacity,
                                             uint64_t needed, struct wal_error *error)
{
    uint64_t least = least_capacity(needed);
    enum wal_status status = make_segment(log, id, capacity, 0, NULL, error);

    while (status == WAL_ENOSPACE && capacity > least) {
        capacity = smaller_capacity(capacity, needed);
        status = make_segment(log, id, capacity, 0, NULL, error);
    }
    return status;
}

/* Reads which data key is the newest one, under the append lock. A process that makes one rotates
 * both logs afterwards; a compaction rotates both before it removes those that nothing uses. The
 * first segment of a key is begun once the name of KEYS is durable: the process that made the key
 * may have died before that. */
static enum wal_status refresh_keys(const struct wal__log *log, struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    enum wal_status status = wal__keyring_reload(log->env->keyring, error);
    int err = 0;

    WAL__ASSERT(log->append_lock_held);
    if (status != WAL_OK || log->tail_segment == NULL ||
        wal__encrypt_is_current(log->env->keyring, &log->tail_segment->header)) {
        return status;
    }
    status = io->sync_directory(io->ctx, log->env->root, &err);
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, log->env->root, 0,
                                           "cannot make the keys of the store durable");
}

/* Returns the id of a segment of at least `needed` bytes that can be begun: the preallocated one,
 * or one made now without zeroing, since a writer waits. is_small: always the latter, as small as
 * it can be; then wal__prealloc_remove_leftovers removes the preallocated one. With append and
 * preallocation lock. */
static enum wal_status obtain_segment(struct wal__log *log, uint64_t needed, bool is_small,
                                      uint64_t *id, struct wal_error *error)
{
    uint64_t tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
    uint64_t capacity = is_small ? least_capacity(needed) : next_capacity(log, needed);
    enum wal_status status = refresh_keys(log, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!is_small && log->highest_id > tail && usable_capacity(log, log->highest_id) >= needed) {
        *id = log->highest_id;
        status = renew_name(log, *id, error);
    } else {
        *id = next_id(log);
        status = make_as_large_as_fits(log, *id, capacity, needed, error);
    }
    WAL__ASSERT(*id > tail);
    return status;
}

enum wal_status wal__prealloc_next_header(const struct wal__log *log,
                                          struct wal__segment_header *header,
                                          struct wal_error *error)
{
    uint64_t live = wal__log_newest_id(log);
    uint64_t id = next_id(log);
    enum wal_status status = refresh_keys(log, error);

    fill_header(log, id > live ? id : live + 1, header);
    return status;
}

/* --- ahead of its need -------------------------------------------------- */

/* Returns the end of a segment from which the next one is preallocated. A store with more than one
 * segment grows: an early start allows a slow pace. */
static uint64_t prealloc_threshold(uint64_t capacity)
{
    return capacity > SEGMENT_SIZE_INITIAL ? capacity / 16 : capacity / 4;
}

bool wal__prealloc_is_needed(const struct wal__log *log, struct wal__prealloc_job *job)
{
    if (log->tail_segment == NULL || log->tail_segment->sealed ||
        log->highest_id > log->tail_segment->id ||
        atomic_load(&log->tail_segment->end) <=
            prealloc_threshold(log->tail_segment->header.capacity)) {
        return false;
    }
    job->id = next_id(log);
    job->capacity = next_capacity(log, 0);
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

/* Returns whether zeroing is faster than the tail segment fills, by a quarter: the rest of the tail
 * is then time enough for the final sync. */
static bool is_ahead(const struct zeroing *zeroing, uint64_t zeroed)
{
    uint64_t written = atomic_load(&zeroing->log->shared->written);

    return wal__position_segment(written) == wal__position_segment(zeroing->from) &&
           zeroed * zeroing->room * 4 >= (written - zeroing->from) * zeroing->capacity * 5;
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

static enum wal_status zero_segment(struct wal__log *log, const struct wal__prealloc_job *job,
                                    uint32_t pause_us, struct wal_error *error)
{
    struct zeroing zeroing = {.log = log, .capacity = job->capacity};
    const struct wal__pacer pacer = {next_pace, &zeroing, pause_us};
    struct wal__segment *tail;

    zeroing.from = atomic_load(&log->shared->written);
    tail = wal__log_use_segment(log, wal__position_segment(zeroing.from));
    if (tail != NULL) {
        zeroing.room = tail->header.capacity - wal__position_offset(zeroing.from);
        wal__log_end_use(tail);
    }
    return make_segment(log, job->id, job->capacity, job->capacity, pause_us == 0 ? NULL : &pacer,
                        error);
}

enum wal_status wal__prealloc_create(struct wal__log *log, const struct wal__prealloc_job *job,
                                     uint32_t pause_us, struct wal_error *error)
{
    enum wal_status status = lock_prealloc(log, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__log_newest_id(log) < job->id && usable_capacity(log, job->id) == 0) {
        status = zero_segment(log, job, pause_us, error);
    }
    wal__prealloc_unlock(log);
    return status;
}

/* --- giving space back -------------------------------------------------- */

static bool is_excessive(const struct wal__log *log, uint64_t unused)
{
    return unused > UNUSED_MAX && unused > sum_of_capacities(log) / SHARE_UNUSED;
}

bool wal__prealloc_has_excess(const struct wal__log *log)
{
    const struct wal__segment *tail = log->tail_segment;

    return tail != NULL && is_excessive(log, tail->header.capacity - atomic_load(&tail->end));
}

void wal__prealloc_remove_excess(struct wal__log *log)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    int ignored = 0;

    if (lock_prealloc(log, NULL) != WAL_OK) {
        return;
    }
    if (log->tail_segment != NULL && wal__log_find_highest_id(log, NULL) == WAL_OK &&
        is_excessive(log, usable_capacity(log, log->highest_id))) {
        wal__segment_path(log->env, log->directory, log->highest_id, path);
        (void)!io->unlink(io->ctx, path, &ignored);
    }
    wal__prealloc_unlock(log);
}

void wal__prealloc_punch(const struct wal__log *log, struct wal__segment *segment, uint64_t from,
                         uint64_t to)
{
    const struct wal__io *io = log->env->io;
    int ignored = 0;

    from = wal__align_up(from, HOLE_ALIGN);
    to = to / HOLE_ALIGN * HOLE_ALIGN;
    if (from < to && segment->file != NULL) {
        (void)!io->punch(io->ctx, segment->file, from, to - from, &ignored);
    }
}

/* Returns whether the file of that id is a segment that was never published:
 * one that was preallocated, or that a process began or healed to after
 * `previous`. */
static bool is_leftover(const struct wal__log *log, uint64_t id, uint64_t previous)
{
    struct wal__segment *segment = NULL;
    bool leftover;

    if (wal__segment_open(log->env, log->directory, id, log->uuid, log->class, &segment, NULL) !=
        WAL_OK) {
        return false;
    }
    leftover =
        segment->has_open ? segment->open.previous_id <= previous : is_uninitialised(segment);
    wal__segment_close(segment);
    return leftover;
}

void wal__prealloc_remove_leftovers(const struct wal__log *log, uint64_t previous, uint64_t id)
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

/* --- rotation ----------------------------------------------------------- */

void wal__log_index_header(const struct wal__log *log, const struct wal__segment *segment,
                           struct wal__index_header *header)
{
    memset(header, 0, sizeof(*header));
    header->id = segment->id;
    header->end = atomic_load(&segment->end);
    header->first_sequence = segment->open.last_sequence + 1;
    header->last_sequence = log->last_sequence;
    header->chain = log->chain;
    if (log->commit_offset < header->end) {
        header->commit_offset = (uint32_t)log->commit_offset;
    }
    header->epoch = log->last_epoch;
    memcpy(header->uuid, log->uuid, sizeof(header->uuid));
}

/* Returns the bytes that encryption may add to frames, and to the padding of them. */
static uint64_t cipher_size(const struct wal__log *log, uint64_t frames)
{
    return log->env->keyring == NULL
               ? 0
               : frames * wal__align_up(WAL__FRAME_CIPHER_SIZE, WAL__FRAME_ALIGN);
}

/* Encodes INDEX and SEAL, which follow the last group, and the trailer. *index is 48 bytes for the
 * frame header, then the payload; padding and SEAL are appended to it. */
static enum wal_status encode_seal(struct wal__log *log, struct wal__buf *index,
                                   uint8_t trailer_bytes[WAL__TRAILER_SIZE])
{
    const struct wal__segment_header *header = &log->tail_segment->header;
    uint64_t end = atomic_load(&log->tail_segment->end);
    uint64_t payload = index->size - WAL__FRAME_SIZE;
    enum wal_status status = WAL_OK;
    struct wal__frame frame = {0};
    struct wal__trailer trailer = {0};
    struct wal__seal_record seal = {0};
    uint8_t *at;

    WAL__ASSERT(index->size >= WAL__FRAME_SIZE && end % 8 == 0);
    WAL__ASSERT(end + wal__align_up(index->size, 8) + SEAL_SIZE_MAX + cipher_size(log, 1) <=
                header->capacity);
    frame.type = WAL__FRAME_INDEX;
    frame.stored_size = (uint32_t)payload;
    frame.raw_size = frame.stored_size;
    frame.data_crc = wal__crc32(0, index->data + WAL__FRAME_SIZE, (size_t)payload);
    if (wal__buf_reserve(index, SEAL_SIZE_MAX + cipher_size(log, 1), &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, SEAL_SIZE_MAX + cipher_size(log, 1));
    if (wal__encrypt_covers(header, frame.type)) {
        status = wal__encrypt_frame(log->env->keyring, &log->cipher, header, end, &frame,
                                    index->data + WAL__FRAME_SIZE, index->data);
    } else {
        wal__frame_encode(&frame, header->salt, end, index->data);
    }
    if (status != WAL_OK) {
        return status;
    }
    trailer.index_offset = end;
    trailer.seal_offset = end + wal__frame_total_size(frame.stored_size);
    at = index->data + wal__frame_total_size(frame.stored_size);
    seal.end = end;
    seal.last_sequence = log->last_sequence;
    seal.chain = log->chain;
    seal.index_offset = end;
    wal__seal_record_encode(&seal, at + WAL__FRAME_SIZE);
    memset(&frame, 0, sizeof(frame));
    frame.type = WAL__FRAME_SEAL;
    frame.stored_size = WAL__SEAL_SIZE;
    frame.raw_size = WAL__SEAL_SIZE;
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, WAL__SEAL_SIZE);
    wal__frame_encode(&frame, header->salt, trailer.seal_offset, at);
    index->size = (size_t)(at - index->data) + WAL__FRAME_SIZE + WAL__SEAL_SIZE;
    WAL__ASSERT(end + index->size <= header->capacity - WAL__TRAILER_SIZE);
    trailer.id = log->tail_segment->id;
    trailer.end = end;
    trailer.last_sequence = log->last_sequence;
    trailer.chain = log->chain;
    wal__trailer_encode(&trailer, header->salt, header->capacity - WAL__TRAILER_SIZE,
                        trailer_bytes);
    /* Valid once `sealed` is set. */
    log->tail_segment->trailer = trailer;
    return WAL_OK;
}

static enum wal_status write_seal(struct wal__log *log, struct wal__buf *index,
                                  struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    uint8_t trailer[WAL__TRAILER_SIZE];
    struct iovec iov;
    enum wal_status status;
    int err = 0;

    if (encode_seal(log, index, trailer) != WAL_OK) {
        return wal__no_memory(error);
    }
    /* The sync before this may have taken long: check LOCK again. */
    status = wal__control_check_ratelimited(log->control, error);
    if (status != WAL_OK) {
        return status;
    }
    iov.iov_base = index->data;
    iov.iov_len = index->size;
    status = wal__io_write_full(io, log->tail_segment->file, &iov, 1,
                                atomic_load(&log->tail_segment->end), &err);
    iov.iov_base = trailer;
    iov.iov_len = sizeof(trailer);
    if (status == WAL_OK) {
        status = wal__io_write_full(io, log->tail_segment->file, &iov, 1,
                                    log->tail_segment->header.capacity - WAL__TRAILER_SIZE, &err);
    }
    return status == WAL_OK ? WAL_OK : wal__log_write_failed(log, WAL__POISON_WRITE, err, error);
}

/* Ends the tail segment: encodes its index, appends index and SEAL when *seal, and syncs. Clears
 * *seal when they do not fit. */
static enum wal_status finish_tail(struct wal__log *log, bool *seal, struct wal__buf *index,
                                   struct wal_error *error)
{
    struct wal__index_header header;
    enum wal_status status;

    wal__log_index_header(log, log->tail_segment, &header);
    status = log->client.encode_index(log->client.ctx, &header, index);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, log->tail_segment->path, 0,
                            "cannot encode the index of the segment");
    }
    /* Texts may exceed the bound that was reserved: the index is then written to an index file. */
    *seal =
        *seal && header.end + wal__align_up(index->size, 8) + SEAL_SIZE_MAX + cipher_size(log, 1) <=
                     log->tail_segment->header.capacity;
    if (*seal) {
        /* SEAL and trailer promise that everything before them is durable. */
        status = wal__log_sync(log, atomic_load(&log->end), error);
    }
    if (*seal && status == WAL_OK) {
        status = write_seal(log, index, error);
    }
    return status == WAL_OK ? wal__log_sync(log, UINT64_MAX, error) : status;
}

/* Removes the newest segment from the chain, and leaves it open. */
static void unlink_newest(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    WAL__ASSERT(table->count > 0 && table->segments[table->count - 1] == log->tail_segment);
    table->count--;
    log->tail_segment = table->count > 0 ? table->segments[table->count - 1] : NULL;
}

/* The end of the tail, as the OPEN after it has it. A rewritten tail, which only a replica that
 * became a store has, ends like the segment that it replaced. */
static uint64_t end_tail(struct wal__log *log)
{
    const struct wal__segment *tail = log->tail_segment;
    const struct wal__rewrite *rewrite = &tail->header.rewrite;

    if (!wal__segment_is_rewritten(&tail->header)) {
        return atomic_load(&tail->end);
    }
    log->last_sequence = rewrite->last_sequence;
    log->chain = rewrite->original_chain;
    return rewrite->original_end;
}

/* Appends the segment to the chain, writes OPEN and its COMMIT, syncs, and publishes: recovery
 * relies on nothing else being in a segment before its OPEN is durable. */
static enum wal_status initialise_segment(struct wal__log *log, struct wal__segment *segment,
                                          struct wal_error *error)
{
    const struct wal__scan_result *facts = &log->facts;
    uint32_t count =
        log->must_rotate && facts->verdict == WAL__VERDICT_DAMAGED ? facts->damage_count : 0;
    struct wal__open_record open = {0};
    struct wal__frame frame = {0};
    struct wal__group group;
    enum wal_status status;
    uint8_t *bytes;
    int err = 0;

    if (count > WAL__DAMAGE_MAX) {
        count = WAL__DAMAGE_MAX;
    }
    WAL__ASSERT(log->append_lock_held);
    if (log->tail_segment != NULL) {
        WAL__ASSERT(log->tail_segment->id < segment->id);
        open.previous_id = log->tail_segment->id;
        open.previous_end = end_tail(log);
    }
    open.last_sequence = log->last_sequence;
    open.chain = log->chain;
    open.damage_count = count;
    open.epoch = log->epoch;
    frame.type = WAL__FRAME_OPEN;
    frame.stored_size = (uint32_t)wal__open_record_size(count);
    frame.raw_size = frame.stored_size;
    bytes = wal__heap_zalloc(log->env->heap, wal__frame_total_size(frame.stored_size));
    if (bytes == NULL) {
        return wal__no_memory(error);
    }
    wal__open_record_encode(&open, facts->damage, bytes + WAL__FRAME_SIZE);
    frame.data_crc = wal__crc32(0, bytes + WAL__FRAME_SIZE, frame.stored_size);
    status = wal__log_append_segment(log, segment);
    if (status != WAL_OK) {
        wal__heap_free(log->env->heap, bytes);
        return wal__fail(error, status, "no memory");
    }
    segment->has_open = true;
    segment->open = open;
    wal__group_init(&group, log);
    group.defer_publish = true;
    status = wal__group_add(&group, log, &frame, bytes) == WAL_OK
                 ? wal__group_write(&group, log, error)
                 : wal__no_memory(error);
    if (status == WAL_OK) {
        /* A process that dies here may have observed a failed sync. */
        atomic_store(&log->shared->open_syncing_pid, log->control->process_id);
        status = log->env->io->sync(log->env->io->ctx, segment->file, &err);
        atomic_fetch_add(&log->syncs, 1);
        if (status != WAL_OK) {
            status = wal__log_write_failed(log, WAL__POISON_SYNC, err, error);
        } else {
            wal__log_publish(log);
            wal__log_set_durable(log, atomic_load(&log->end));
        }
        atomic_store(&log->shared->open_syncing_pid, 0);
    }
    if (status != WAL_OK && status != WAL_EPOISONED) {
        unlink_newest(log); /* nothing was written to the segment */
    }
    wal__group_deinit(&group);
    wal__heap_free(log->env->heap, bytes);
    return status;
}

/* Ends the tail segment and begins one of at least `needed` bytes. */
static enum wal_status start_next_segment(struct wal__log *log, uint64_t needed, bool is_small,
                                          struct wal_error *error)
{
    struct wal__segment *ended = log->tail_segment;
    struct wal__segment *segment = NULL;
    struct wal__buf index;
    enum wal_status status;
    bool seal;
    uint64_t id = 0;

    WAL__ASSERT(log->append_lock_held && log->pending_group == NULL);
    seal = ended != NULL && !log->must_rotate &&
           atomic_load(&log->shared->closed_segment_id) != ended->id;
    wal__buf_init(&index, log->env->heap);
    status = obtain_segment(log, needed, is_small, &id, error);
    if (status != WAL_OK) {
        goto done;
    }
    status =
        wal__segment_open(log->env, log->directory, id, log->uuid, log->class, &segment, error);
    if (status == WAL_OK && ended != NULL && !ended->sealed) {
        status = finish_tail(log, &seal, &index, error);
    }
    if (status != WAL_OK) {
        wal__segment_close(segment);
        goto done;
    }
    if (ended != NULL) {
        /* A process that dies from here on may leave an OPEN that ends the
         * old segment at its present end. */
        atomic_store(&log->shared->closed_segment_id, ended->id);
    }
    segment->begun_ms = log->env->io->now_ms(log->env->io->ctx);
    status = initialise_segment(log, segment, error);
    if (log->tail_segment != segment) {
        wal__segment_close(segment);
        goto done;
    }
    if (status == WAL_OK && ended != NULL) {
        bool has_index_file = !seal && !ended->sealed;

        if (seal) {
            /* SEAL ends index.size bytes after the last group. */
            wal__prealloc_punch(log, ended, atomic_load(&ended->end) + index.size,
                                ended->header.capacity - WAL__TRAILER_SIZE);
        }
        ended->sealed = ended->sealed || seal;
        status = log->client.on_segment_end(log->client.ctx, ended, has_index_file ? &index : NULL);
        wal__segment_release_file(ended);
    }
    if (status == WAL_OK && ended != NULL) {
        wal__prealloc_remove_leftovers(log, ended->id, id);
    }
    log->must_rotate = false;
    log->highest_id = id > log->highest_id ? id : log->highest_id;
    if (status != WAL_OK && status != WAL_EPOISONED) {
        log->needs_reload = true;
    }

done:
    wal__buf_deinit(&index);
    return status;
}

static enum wal_status rotate(struct wal__log *log, uint64_t needed, bool is_small,
                              struct wal_error *error)
{
    enum wal_status status = wal__prealloc_lock_for_rotation(log, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_find_highest_id(log, error);
    if (status == WAL_OK) {
        status = start_next_segment(log, needed, is_small, error);
    }
    if (status != WAL_OK) {
        /* A SEAL may follow the end: the next leader must look for it as if this writer had
         * died. */
        atomic_store(&log->shared->last_appender_epoch, 0);
    }
    wal__prealloc_unlock(log);
    return status;
}

/* --- room --------------------------------------------------------------- */

/* Returns the bytes for a group of `size` bytes, its COMMIT, a commit mark and an index of at most
 * index_size. */
static uint64_t space_needed(const struct wal__log *log, uint64_t size, uint64_t index_size)
{
    return size + WAL__COMMIT_SPAN_MAX + log->group_align + MARK_SIZE_MAX + SEAL_SIZE_MAX +
           wal__align_up(index_size, 8) + cipher_size(log, 1);
}

/* Returns whether the tail takes groups, and has room for this one, with `rest` bytes left. */
static bool fits_tail(const struct wal__log *log, uint64_t needed, uint64_t rest)
{
    const struct wal__segment *tail = log->tail_segment;

    return tail != NULL && !log->must_rotate && !tail->sealed &&
           atomic_load(&log->shared->closed_segment_id) != tail->id &&
           atomic_load(&tail->end) + needed + rest <= tail->header.capacity;
}

enum wal_status wal__log_reserve(struct wal__log *log,
                                 const struct wal__log_reservation *reservation,
                                 struct wal_error *error)
{
    void *ctx = log->client.ctx;
    uint64_t bound = log->client.index_bound(ctx, reservation->frames, reservation->sessions,
                                             reservation->texts);
    uint64_t fresh = bound - log->client.index_bound(ctx, 0, 0, 0);
    uint64_t size = reservation->size + cipher_size(log, reservation->frames);
    uint64_t in_tail = space_needed(log, size, bound);
    enum wal_status status;
    uint64_t needed;

    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    WAL__ASSERT(bound >= fresh);
    if (fits_tail(log, in_tail, RESERVE_SIZE)) {
        return WAL_OK;
    }
    needed = WAL__SEGMENT_HEADER_SIZE + WAL__COMMIT_SPAN_MAX + log->group_align +
             wal__frame_total_size((uint32_t)wal__open_record_size(WAL__DAMAGE_MAX)) +
             space_needed(log, size, fresh) + WAL__INDEX_HEADER_SIZE;
    if (needed > WAL__SEGMENT_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch needs %" PRIu64 " bytes; a segment has at most %d", needed,
                         (int)WAL__SEGMENT_MAX);
    }
    needed += needed + RESERVE_SIZE <= WAL__SEGMENT_MAX ? RESERVE_SIZE : 0;
    status = rotate(log, needed, false, error);
    if (status == WAL_ENOSPACE && reservation->uses_reserve && fits_tail(log, in_tail, 0)) {
        return WAL_OK;
    }
    return status;
}

enum wal_status wal__log_rotate(struct wal__log *log, struct wal_error *error)
{
    const uint64_t needed = WAL__SEGMENT_MIN;
    struct wal__segment *tail = log->tail_segment;

    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    if (tail == NULL || (log->last_sequence == tail->open.last_sequence &&
                         wal__encrypt_is_current(log->env->keyring, &tail->header) &&
                         !wal__segment_has_rest(tail, atomic_load(&tail->end)))) {
        return WAL_OK;
    }
    return rotate(log, needed, true, error);
}

enum wal_status wal__log_install(struct wal__log *log, struct wal__segment_header *header,
                                 const struct wal__buf *body, struct wal_error *error)
{
    uint64_t bound = log->client.index_bound(log->client.ctx, 0, 0, 0);
    uint64_t needed =
        WAL__SEGMENT_HEADER_SIZE + RESERVE_SIZE + space_needed(log, body->size, bound);
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held && header->id > log->highest_id);
    WAL__ASSERT(header->id > wal__log_newest_id(log));
    if (needed > WAL__SEGMENT_MAX) {
        /* Without room for more: the next append rotates, and the index is a file in index/. */
        needed = WAL__SEGMENT_HEADER_SIZE + body->size + WAL__TRAILER_SIZE;
    }
    if (needed > WAL__SEGMENT_MAX) {
        return wal__fail(error, WAL_EPOISONED,
                         "the unsynced end of the log needs %" PRIu64
                         " bytes; a segment has at most %d: close the store in "
                         "every process and open it again",
                         needed, (int)WAL__SEGMENT_MAX);
    }
    header->capacity = healing_capacity(needed);
    for (;;) {
        status = wal__segment_install(log->env, log->directory, log->control, header, body->data,
                                      body->size, error);
        if (status != WAL_ENOSPACE || header->capacity <= least_capacity(needed)) {
            break;
        }
        header->capacity = smaller_capacity(header->capacity, needed);
    }
    log->highest_id = header->id;
    return status;
}
