/*
 * blobs.c - the blob stream of an open store: opening and recovering it, what
 * the log calls of its client, looking digests up (SPEC.md 5.12).
 *
 * Invariant: what the log names durable is never cut off as torn; and the
 * indexes hold exactly the records below the applied end.
 */
#include "engine/blob/blobs.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/blobs_parts.h"

/* --- the log's client --------------------------------------------------- */

static enum wal_status apply(void *ctx, const struct wal__applied *record)
{
    struct wal__blobs *blobs = ctx;
    uint32_t offset = (uint32_t)wal__position_offset(record->position);
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;

    switch (record->frame->type) {
    case WAL__FRAME_CHUNK:
        if (wal__chunk_decode(record->payload, &chunk) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_tail_add(blobs->applied, &chunk.digest, offset);
    case WAL__FRAME_BLOB:
        if (wal__blob_decode(record->payload, &blob) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_tail_add(blobs->applied, &blob.digest, offset);
    default:
        return WAL_OK; /* ignorable, of a newer library */
    }
}

/* What is lost is met by who looks for it. */
static enum wal_status lost(void *ctx, uint32_t session)
{
    (void)ctx;
    (void)session;
    return WAL_OK;
}

static enum wal_status orphan(void *ctx, const struct wal__applied *record)
{
    (void)ctx;
    (void)record;
    return WAL_OK;
}

static enum wal_status encode(void *ctx, struct wal__index_header *header,
                              struct wal__buf *out)
{
    struct wal__blobs *blobs = ctx;

    return wal__pack_tail_encode(blobs->applied, header, out);
}

static uint64_t index_bound(void *ctx, uint32_t postings, uint32_t sessions,
                            uint64_t texts)
{
    struct wal__blobs *blobs = ctx;

    (void)sessions;
    (void)texts;
    return wal__pack_index_size(blobs->tail.count + postings);
}

/* Encodes the index of a segment that another process ended without one. */
static enum wal_status keep_own(struct wal__blobs *blobs,
                                const struct wal__segment *segment)
{
    struct wal__index_header header = {0};
    struct wal__pack_slot slot;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status = wal__pack_file_open(blobs, segment->id, &slot);

    if (status != WAL_ENOTFOUND) {
        wal__pack_slot_deinit(blobs->env, &slot);
        return status;
    }
    header.id = segment->id;
    header.end = atomic_load(&segment->end);
    header.first_sequence = segment->open.last_sequence + 1;
    header.last_sequence = blobs->log.last_sequence;
    memcpy(header.uuid, blobs->log.uuid, sizeof(header.uuid));
    wal__buf_init(&bytes, blobs->env->heap);
    status = encode(blobs, &header, &bytes);
    if (status == WAL_OK) {
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = wal__pack_slots_keep(blobs, segment->id, span);
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status ended(void *ctx, const struct wal__segment *segment,
                             const struct wal__buf *index)
{
    struct wal__blobs *blobs = ctx;
    enum wal_status status = WAL_OK;

    if (index != NULL) {
        struct wal__span bytes = {index->data + WAL__FRAME_SIZE,
                                  index->size - WAL__FRAME_SIZE};

        /* Derived: where it cannot be written it is kept in memory. */
        if (wal__index_file_write(&blobs->log, segment->id, bytes, NULL) !=
            WAL_OK) {
            status = wal__pack_slots_keep(blobs, segment->id, bytes);
        }
    } else if (!segment->sealed) {
        status = keep_own(blobs, segment);
    }
    if (status == WAL_OK) {
        wal__pack_tail_reset(blobs->applied);
        blobs->complete = false;
    }
    return status;
}

/* --- loading ------------------------------------------------------------ */

/* The index beside the tail: what it covers needs no scan. */
static enum wal_status load_tail(struct wal__blobs *blobs,
                                 struct wal__tail_state *state)
{
    struct wal__log *log = &blobs->log;
    const struct wal__index_header *header;
    struct wal__pack_slot slot;
    enum wal_status status;

    if (log->tail == NULL || log->tail->sealed ||
        (!log->control->alone &&
         atomic_load(&log->shared->indexed) != log->tail->id)) {
        return WAL_OK;
    }
    status = wal__pack_file_open(blobs, log->tail->id, &slot);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    header = &slot.index.header;
    if (wal__index_agrees(log, header, &state->pack_durable)) {
        status = wal__pack_tail_take(&blobs->tail, &slot.index);
        state->end = header->end;
        state->commit_offset = header->commit_offset;
        state->last_sequence = header->last_sequence;
        state->epoch = header->epoch;
        state->chain = header->chain;
        if (header->end > state->known_end) {
            state->known_end = header->end;
        }
    }
    wal__pack_slot_deinit(blobs->env, &slot);
    return status;
}

/* All from the beginning; known_end: offset in the tail that the log names. */
static enum wal_status load(struct wal__blobs *blobs, uint64_t known_end,
                            bool strict, struct wal_error *error)
{
    struct wal__tail_state state = {.known_end = known_end};
    enum wal_status status;

    wal__pack_slots_drop(blobs);
    wal__pack_tail_reset(&blobs->tail);
    status = load_tail(blobs, &state);
    if (status == WAL_OK) {
        status = wal__log_recover(&blobs->log, &state, strict, error);
    }
    return status;
}

static enum wal_status reload(void *ctx, struct wal_error *error)
{
    struct wal__blobs *blobs = ctx;
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    do {
        log->stale = false;
        status = load(blobs, 0, false, error);
    } while (status == WAL_OK && log->stale); /* healing cut it meanwhile */
    if (status != WAL_OK) {
        log->stale = true;
    }
    if (status == WAL_ENOMEM) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    }
    return status;
}

static void lock_state(void *ctx)
{
    struct wal__blobs *blobs = ctx;

    pthread_rwlock_wrlock(&blobs->state);
}

static void unlock_state(void *ctx)
{
    struct wal__blobs *blobs = ctx;

    pthread_rwlock_unlock(&blobs->state);
}

/* --- opening ------------------------------------------------------------ */

static void init_fields(struct wal__blobs *blobs, const struct wal__env *env)
{
    memset(blobs, 0, sizeof(*blobs));
    blobs->env = env;
    blobs->turn =
        (struct wal__turn_client){blobs, lock_state, unlock_state, reload};
    pthread_mutex_init(&blobs->writer, NULL);
    pthread_rwlock_init(&blobs->state, NULL);
    wal__digester_init(&blobs->digester);
    wal__pack_tail_init(&blobs->tail, env->heap);
    blobs->applied = &blobs->tail;
    blobs->opened = true;
}

/* Where the stream ends before what the log relies on: nothing is written at
 * a position that was used, nor behind the tail that is left. */
static void go_round_loss(struct wal__blobs *blobs, uint64_t named)
{
    struct wal__log *log = &blobs->log;
    uint64_t newest = log->tail == NULL ? 0 : log->tail->id;

    if (wal__position_segment(named) > newest) {
        log->lost_end = true;
        if (wal__position_segment(named) > log->highest_id) {
            log->highest_id = wal__position_segment(named);
        }
    }
}

static enum wal_status check_loss(const struct wal__blobs *blobs, bool strict,
                                  struct wal_error *error)
{
    const struct wal__log *log = &blobs->log;

    if (!strict || (log->skipped == 0 && !log->lost_end)) {
        return WAL_OK;
    }
    return wal__fail(error, WAL_ECORRUPT, 0, blobs->env->root, 0,
                     "segments of blobs are missing or damaged; open without "
                     "strict to go on without them");
}

static void leave_tail(struct wal__log *log)
{
    if (log->lost_end && log->tail != NULL && !log->env->read_only) {
        log->must_rotate = true;
        atomic_store(&log->shared->rotate, log->tail->id);
    }
}

enum wal_status wal__blobs_init(struct wal__blobs *blobs,
                                const struct wal__env *env,
                                struct wal__control *control,
                                const uint8_t uuid[16], uint32_t group_align,
                                uint64_t named, bool strict,
                                struct wal_error *error)
{
    const struct wal__log_client client = {blobs,  apply,       lost, orphan,
                                           encode, index_bound, ended};
    struct wal__log *log = &blobs->log;
    uint64_t known_end = 0;
    enum wal_status status;

    init_fields(blobs, env);
    wal__log_init(log, env, control, WAL__STREAM_PACK, uuid, group_align,
                  &client);
    status = wal__log_attach(log, error);
    if (status == WAL_OK) {
        status = wal__log_drop_unbegun(log, error);
    }
    if (status == WAL_OK && control->alone) {
        go_round_loss(blobs, named);
        status = check_loss(blobs, strict, error);
    }
    if (status == WAL_OK) {
        if (control->alone && log->tail != NULL &&
            wal__position_segment(named) == log->tail->id) {
            known_end = wal__position_offset(named);
        }
        status = load(blobs, known_end, strict, error);
    }
    if (status == WAL_OK && log->stale) {
        status = reload(blobs, error);
    }
    if (status == WAL_OK && control->alone) {
        leave_tail(log);
    }
    if (status == WAL_ENOMEM) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    }
    return status;
}

enum wal_status wal__blobs_meet(struct wal__blobs *blobs,
                                struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->state);
    log->shared = &log->control->page->streams[log->stream];
    status = reload(blobs, error);
    pthread_rwlock_unlock(&blobs->state);
    return status;
}

enum wal_status wal__blobs_finish(struct wal__blobs *blobs,
                                  struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    if (atomic_load(&log->shared->written) == 0) {
        return WAL_OK; /* there are none */
    }
    pthread_mutex_lock(&blobs->writer);
    status = wal__log_sync(log, atomic_load(&log->end), error);
    if (status == WAL_OK) {
        status = wal__turn_mark(log, &blobs->turn, error);
    }
    pthread_mutex_unlock(&blobs->writer);
    return status;
}

enum wal_status wal__blobs_write_index(struct wal__blobs *blobs,
                                       struct wal_error *error)
{
    return wal__index_file_is_due(&blobs->log)
               ? wal__index_file_write_tail(&blobs->log, error)
               : WAL_OK;
}

void wal__blobs_deinit(struct wal__blobs *blobs)
{
    if (!blobs->opened) {
        return;
    }
    wal__pack_slots_drop(blobs);
    wal__pack_tail_deinit(&blobs->tail);
    wal__log_close(&blobs->log);
    wal__digester_deinit(&blobs->digester);
    pthread_mutex_destroy(&blobs->writer);
    pthread_rwlock_destroy(&blobs->state);
    blobs->opened = false;
}

/* --- looking up --------------------------------------------------------- */

uint64_t wal__blobs_locate(const struct wal__blobs *blobs,
                           const struct wal__digest *digest)
{
    uint32_t offset;

    if (wal__pack_tail_find(&blobs->tail, digest, &offset)) {
        return wal__position(blobs->log.tail->id, offset);
    }
    for (uint32_t i = blobs->slot_count; i > 0; i--) {
        const struct wal__pack_slot *slot = &blobs->slots[i - 1];

        if (wal__pack_index_find(&slot->index, digest, &offset)) {
            return wal__position(slot->id, offset);
        }
    }
    return 0;
}

uint64_t wal__blobs_behind(uint64_t position)
{
    return position + WAL__FRAME_SIZE;
}

/* Whether what is applied is all that is written. */
static bool is_current(const struct wal__log *log)
{
    return !log->stale &&
           atomic_load(&log->end) >= atomic_load(&log->shared->written);
}

static enum wal_status catch_up(struct wal__blobs *blobs,
                                struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status = WAL_OK;

    if (!log->stale) {
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_OK && log->stale) {
        status = reload(blobs, error);
    }
    return status;
}

enum wal_status wal__blobs_read_lock(struct wal__blobs *blobs,
                                     struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_rdlock(&blobs->state);
    if (is_current(&blobs->log)) {
        return WAL_OK;
    }
    pthread_rwlock_unlock(&blobs->state);
    pthread_rwlock_wrlock(&blobs->state);
    status = catch_up(blobs, error);
    if (status != WAL_OK) {
        pthread_rwlock_unlock(&blobs->state);
    }
    return status;
}

void wal__blobs_unlock(struct wal__blobs *blobs)
{
    pthread_rwlock_unlock(&blobs->state);
}

/* Brings everything up to date where it is not, and looks. */
static enum wal_status look_again(struct wal__blobs *blobs,
                                  const struct wal__digest *digest,
                                  uint64_t *at, struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->state);
    status = catch_up(blobs, error);
    if (status == WAL_OK) {
        status = wal__pack_slots_complete(blobs, error);
    }
    if (status == WAL_OK) {
        *at = wal__blobs_locate(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->state);
    return status;
}

/* *at is 0 when there is none. */
static enum wal_status look(struct wal__blobs *blobs,
                            const struct wal__digest *digest, uint64_t *at,
                            struct wal_error *error)
{
    bool current;

    *at = 0;

    pthread_rwlock_rdlock(&blobs->state);
    current = blobs->complete && is_current(&blobs->log);
    if (current) {
        *at = wal__blobs_locate(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->state);
    return current ? WAL_OK : look_again(blobs, digest, at, error);
}

enum wal_status wal__blobs_where(struct wal__blobs *blobs,
                                 const struct wal__digest *digest,
                                 uint64_t *end, struct wal_error *error)
{
    uint64_t at;
    enum wal_status status = look(blobs, digest, &at, error);

    if (status == WAL_OK) {
        *end = at == 0 ? 0 : wal__blobs_behind(at);
    }
    return status;
}

enum wal_status wal__blobs_lookup(struct wal__blobs *blobs,
                                  const struct wal__digest *digest,
                                  uint64_t *position, struct wal_error *error)
{
    char text[WAL__DIGEST_TEXT];
    uint64_t at;
    enum wal_status status = look(blobs, digest, &at, error);

    if (status != WAL_OK) {
        return status;
    }
    if (at == 0) {
        wal__digest_text(digest, text);
        return wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                         "the store has no content with the SHA-256 %s", text);
    }
    *position = at;
    return WAL_OK;
}
