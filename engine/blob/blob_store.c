/*
 * blob_store.c - the blob stream of an open store: opens and recovers it, is
 * the client of its log, and looks digests up (blob_store.h; SPEC.md 5.12).
 * Any thread, but for init and deinit.
 *
 * Invariants: records that the log names durable are never cut off as a torn
 * tail; the indexes contain exactly the records below the applied end.
 */
#include "engine/blob/blob_store.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/blob/pack_indexes.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"

/* --- the log's client --------------------------------------------------- */

static enum wal_status apply(void *ctx, const struct wal__log_record *record)
{
    struct wal__blob_store *blobs = ctx;
    uint32_t offset = (uint32_t)wal__position_offset(record->position);
    struct wal__chunk_record chunk;
    struct wal__blob_record blob;

    switch (record->frame->type) {
    case WAL__FRAME_CHUNK:
        if (wal__chunk_record_decode(record->payload, &chunk) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_memtable_add(blobs->apply_target, &chunk.digest,
                                      offset);
    case WAL__FRAME_BLOB:
        if (wal__blob_record_decode(record->payload, &blob) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        return wal__pack_memtable_add(blobs->apply_target, &blob.digest,
                                      offset);
    default:
        return WAL_OK; /* an ignorable type of a newer library */
    }
}

/* Readers of lost content get an error when they look it up. */
static enum wal_status ignore_lost(void *ctx, uint32_t session)
{
    (void)ctx;
    (void)session;
    return WAL_OK;
}

static enum wal_status ignore_orphan(void *ctx,
                                     const struct wal__log_record *record)
{
    (void)ctx;
    (void)record;
    return WAL_OK;
}

static enum wal_status encode(void *ctx, struct wal__index_header *header,
                              struct wal__buf *out)
{
    struct wal__blob_store *blobs = ctx;

    return wal__pack_memtable_encode(blobs->apply_target, header, out);
}

static uint64_t index_bound(void *ctx, uint32_t postings, uint32_t sessions,
                            uint64_t texts)
{
    struct wal__blob_store *blobs = ctx;

    (void)sessions;
    (void)texts;
    return wal__pack_index_size(blobs->tail.count + postings);
}

/* Encodes the index of a segment that another process ended without one. */
static enum wal_status build_memory_index(struct wal__blob_store *blobs,
                                          const struct wal__segment *segment)
{
    struct wal__index_header header;
    struct wal__pack_segment_index segment_index;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status =
        wal__pack_index_file_open(blobs, segment->id, &segment_index);

    if (status != WAL_ENOTFOUND) {
        wal__pack_segment_index_deinit(blobs->env, &segment_index);
        return status;
    }
    wal__log_index_header(&blobs->log, segment, &header);
    wal__buf_init(&bytes, blobs->env->heap);
    status = encode(blobs, &header, &bytes);
    if (status == WAL_OK) {
        WAL__ASSERT(bytes.size > WAL__FRAME_SIZE);
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = wal__pack_indexes_add_copy(blobs, segment->id, span);
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status on_segment_end(void *ctx,
                                      const struct wal__segment *segment,
                                      const struct wal__buf *index)
{
    struct wal__blob_store *blobs = ctx;
    enum wal_status status = WAL_OK;

    if (index != NULL) {
        struct wal__span bytes = {index->data + WAL__FRAME_SIZE,
                                  index->size - WAL__FRAME_SIZE};

        /* The index is derived data: if the file cannot be written, it is kept
         * in memory. */
        if (wal__index_file_write(&blobs->log, segment->id, bytes, NULL) !=
            WAL_OK) {
            status = wal__pack_indexes_add_copy(blobs, segment->id, bytes);
        }
    } else if (!segment->sealed) {
        status = build_memory_index(blobs, segment);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__pack_memtable_reset(blobs->apply_target);
    WAL__ASSERT(blobs->apply_target->count == 0);
    blobs->indexes_loaded = false;
    return WAL_OK;
}

/* --- loading ------------------------------------------------------------ */

/* Loads the index file of the tail segment: the records that it covers need no
 * scan. */
static enum wal_status load_tail_index(struct wal__blob_store *blobs,
                                       struct wal__tail_state *state)
{
    struct wal__log *log = &blobs->log;
    const struct wal__index_header *header;
    struct wal__pack_segment_index segment_index;
    enum wal_status status;

    if (log->tail_segment == NULL || log->tail_segment->sealed ||
        (!log->control->is_first_opener &&
         atomic_load(&log->shared->indexed_tail_id) != log->tail_segment->id)) {
        return WAL_OK;
    }
    status =
        wal__pack_index_file_open(blobs, log->tail_segment->id, &segment_index);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    header = &segment_index.index.header;
    if (wal__index_matches_tail(log, header, &state->pack_durable)) {
        WAL__ASSERT(blobs->tail.count == 0);
        status = wal__pack_memtable_load(&blobs->tail, &segment_index.index);
        state->end = header->end;
        state->commit_offset = header->commit_offset;
        state->last_sequence = header->last_sequence;
        state->epoch = header->epoch;
        state->chain = header->chain;
        if (header->end > state->known_end) {
            state->known_end = header->end;
        }
    }
    wal__pack_segment_index_deinit(blobs->env, &segment_index);
    return status;
}

/* Reloads everything. known_end is the offset in the tail segment that the log
 * names durable. */
static enum wal_status load(struct wal__blob_store *blobs, uint64_t known_end,
                            bool strict, struct wal_error *error)
{
    struct wal__tail_state state = {.known_end = known_end};
    enum wal_status status;

    blobs->generation++;
    wal__pack_indexes_discard(blobs);
    wal__pack_memtable_reset(&blobs->tail);
    WAL__ASSERT(blobs->apply_target == &blobs->tail && !blobs->indexes_loaded);
    status = load_tail_index(blobs, &state);
    return status == WAL_OK
               ? wal__log_recover(&blobs->log, &state, strict, error)
               : status;
}

static enum wal_status reload(void *ctx, struct wal_error *error)
{
    struct wal__blob_store *blobs = ctx;
    struct wal__log *log = &blobs->log;
    enum wal_status status;
    int loads = 0;

    do {
        loads++;
        log->needs_reload = false;
        /* Alone while it recovers, no process replaces segments. */
        status = log->control->is_first_opener && !log->env->read_only
                     ? WAL_OK
                     : wal__log_refresh_segments(log, error);
        if (status == WAL_OK) {
            status = load(blobs, 0, false, error);
        }
        /* Repeat if another process healed the stream during the load, or
         * replaced segments. */
    } while (status == WAL_OK
                 ? log->needs_reload
                 : wal__log_find_replaced(log) && loads < WAL__LOADS_MAX);
    if (status != WAL_OK) {
        log->needs_reload = true;
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

static void lock_state(void *ctx)
{
    struct wal__blob_store *blobs = ctx;

    pthread_rwlock_wrlock(&blobs->index_lock);
}

static void unlock_state(void *ctx)
{
    struct wal__blob_store *blobs = ctx;

    pthread_rwlock_unlock(&blobs->index_lock);
}

/* --- opening ------------------------------------------------------------ */

static void init_fields(struct wal__blob_store *blobs,
                        const struct wal__env *env)
{
    memset(blobs, 0, sizeof(*blobs));
    blobs->env = env;
    blobs->leader_client =
        (struct wal__leader_client){blobs, lock_state, unlock_state, reload};
    pthread_mutex_init(&blobs->write_mutex, NULL);
    pthread_rwlock_init(&blobs->index_lock, NULL);
    wal__sha256_alg_init(&blobs->sha256_alg);
    wal__pack_memtable_init(&blobs->tail, env->heap);
    blobs->apply_target = &blobs->tail;
    blobs->is_open = true;
}

/* If the stream ends before the end that the log refers to, no position that
 * was used is reused, and nothing is appended to the remaining tail segment. */
static void skip_lost_positions(struct wal__blob_store *blobs,
                                uint64_t referenced_end)
{
    struct wal__log *log = &blobs->log;
    uint64_t newest = log->tail_segment == NULL ? 0 : log->tail_segment->id;

    if (wal__position_segment(referenced_end) > newest) {
        log->newest_segment_lost = true;
        if (wal__position_segment(referenced_end) > log->highest_id) {
            log->highest_id = wal__position_segment(referenced_end);
        }
        WAL__ASSERT(log->highest_id > newest);
    }
}

static enum wal_status check_loss(const struct wal__blob_store *blobs,
                                  bool strict, struct wal_error *error)
{
    const struct wal__log *log = &blobs->log;

    if (!strict ||
        (log->lost_segment_count == 0 && !log->newest_segment_lost)) {
        return WAL_OK;
    }
    return wal__fail_at(
        error, WAL_ECORRUPT, 0, blobs->env->root, 0,
        "pack segments are missing or damaged; open the store without strict "
        "to continue without them");
}

static void force_rotation(struct wal__log *log)
{
    if (log->newest_segment_lost && log->tail_segment != NULL &&
        !log->env->read_only) {
        log->must_rotate = true;
        atomic_store(&log->shared->closed_segment_id, log->tail_segment->id);
    }
}

enum wal_status
wal__blob_store_init(struct wal__blob_store *blobs, const struct wal__env *env,
                     struct wal__control *control, const uint8_t uuid[16],
                     uint32_t group_align, uint64_t referenced_end, bool strict,
                     struct wal_error *error)
{
    const struct wal__log_client client = {blobs,         apply,  ignore_lost,
                                           ignore_orphan, encode, index_bound,
                                           on_segment_end};
    struct wal__log *log = &blobs->log;
    uint64_t known_end = 0;
    enum wal_status status;

    init_fields(blobs, env);
    wal__log_init(log, env, control, WAL__LOG_ID_PACK, uuid, group_align,
                  &client);
    status = wal__log_attach(log, error);
    if (status == WAL_OK) {
        status = wal__log_discard_uninitialised_tail(log, error);
    }
    if (status == WAL_OK && control->is_first_opener) {
        skip_lost_positions(blobs, referenced_end);
        status = check_loss(blobs, strict, error);
    }
    if (status == WAL_OK) {
        if (control->is_first_opener && log->tail_segment != NULL &&
            wal__position_segment(referenced_end) == log->tail_segment->id) {
            known_end = wal__position_offset(referenced_end);
        }
        status = load(blobs, known_end, strict, error);
    }
    if (status == WAL_OK && log->needs_reload) {
        status = reload(blobs, error);
    }
    if (status == WAL_OK && control->is_first_opener) {
        force_rotation(log);
    }
    WAL__ASSERT(status != WAL_OK || !log->needs_reload);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

enum wal_status wal__blob_store_rejoin(struct wal__blob_store *blobs,
                                       struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    log->shared = &log->control->page->logs[log->log_id];
    status = reload(blobs, error);
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}

enum wal_status wal__blob_store_finish(struct wal__blob_store *blobs,
                                       struct wal_error *error)
{
    struct wal__log *log = &blobs->log;
    enum wal_status status;

    if (atomic_load(&log->shared->written) == 0) {
        return WAL_OK; /* the stream is empty */
    }
    pthread_mutex_lock(&blobs->write_mutex);
    status = wal__leader_sync(log, &blobs->leader_client,
                              atomic_load(&log->end), error);
    if (status == WAL_OK) {
        status =
            wal__leader_write_mark(log, &blobs->leader_client, true, error);
    }
    pthread_mutex_unlock(&blobs->write_mutex);
    return status;
}

enum wal_status wal__blob_store_rotate(struct wal__blob_store *blobs,
                                       struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&blobs->write_mutex);
    status = wal__leader_rotate(&blobs->log, &blobs->leader_client, error);
    pthread_mutex_unlock(&blobs->write_mutex);
    return status;
}

void wal__blob_store_invalidate(struct wal__blob_store *blobs)
{
    if (blobs->is_open) {
        pthread_rwlock_wrlock(&blobs->index_lock);
        blobs->log.needs_reload = true;
        pthread_rwlock_unlock(&blobs->index_lock);
    }
}

enum wal_status wal__blob_store_publish(struct wal__blob_store *blobs,
                                        struct wal_error *error)
{
    enum wal_status status;

    atomic_fetch_add(&blobs->log.shared->rewrites, 1);
    status = wal__blob_store_read_lock(blobs, error);
    if (status == WAL_OK) {
        wal__blob_store_unlock(blobs);
    }
    return status;
}

enum wal_status wal__blob_store_write_index(struct wal__blob_store *blobs,
                                            struct wal_error *error)
{
    return wal__index_file_can_write_tail(&blobs->log)
               ? wal__index_file_write_tail(&blobs->log, error)
               : WAL_OK;
}

void wal__blob_store_deinit(struct wal__blob_store *blobs)
{
    if (!blobs->is_open) {
        return;
    }
    wal__pack_indexes_discard(blobs);
    wal__pack_memtable_deinit(&blobs->tail);
    wal__log_close(&blobs->log);
    wal__sha256_alg_deinit(&blobs->sha256_alg);
    pthread_mutex_destroy(&blobs->write_mutex);
    pthread_rwlock_destroy(&blobs->index_lock);
    blobs->is_open = false;
}

/* --- looking up --------------------------------------------------------- */

uint64_t wal__blob_find_locked(const struct wal__blob_store *blobs,
                               const struct wal__digest *digest)
{
    uint32_t offset;

    if (wal__pack_memtable_find(&blobs->tail, digest, &offset)) {
        WAL__ASSERT(blobs->log.tail_segment != NULL);
        return wal__position(blobs->log.tail_segment->id, offset);
    }
    for (uint32_t i = blobs->index_count; i > 0; i--) {
        const struct wal__pack_segment_index *segment_index =
            &blobs->indexes[i - 1];

        WAL__ASSERT(i < 2 || blobs->indexes[i - 2].id < segment_index->id);
        if (wal__pack_index_find(&segment_index->index, digest, &offset)) {
            return wal__position(segment_index->id, offset);
        }
    }
    return 0;
}

uint64_t wal__blob_condemned_end(const struct wal__blob_store *blobs)
{
    uint64_t id = wal__content_condemned(blobs->log.control);

    return id == 0 ? 0 : wal__position(id + 1, 0) - 1;
}

uint64_t wal__blob_sync_end(uint64_t position)
{
    return position + WAL__FRAME_SIZE;
}

static enum wal_status catch_up(struct wal__blob_store *blobs,
                                struct wal_error *error)
{
    return wal__leader_apply_published(&blobs->log, &blobs->leader_client,
                                       error);
}

bool wal__blob_store_look_again(struct wal__blob_store *blobs, uint64_t *looked)
{
    const uint64_t before = *looked;

    pthread_rwlock_wrlock(&blobs->index_lock);
    if (wal__log_find_replaced(&blobs->log)) {
        blobs->log.needs_reload = true;
    }
    *looked = catch_up(blobs, NULL) == WAL_OK ? blobs->generation : UINT64_MAX;
    pthread_rwlock_unlock(&blobs->index_lock);
    return *looked != before;
}

enum wal_status wal__blob_store_read_lock(struct wal__blob_store *blobs,
                                          struct wal_error *error)
{
    pthread_rwlock_rdlock(&blobs->index_lock);
    if (!wal__log_needs_catch_up(&blobs->log)) {
        return WAL_OK;
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return wal__blob_store_write_lock(blobs, error);
}

enum wal_status wal__blob_store_write_lock(struct wal__blob_store *blobs,
                                           struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    status = catch_up(blobs, error);
    if (status != WAL_OK) {
        pthread_rwlock_unlock(&blobs->index_lock);
        return status;
    }
    WAL__ASSERT(!blobs->log.needs_reload);
    return WAL_OK;
}

void wal__blob_store_unlock(struct wal__blob_store *blobs)
{
    pthread_rwlock_unlock(&blobs->index_lock);
}

void wal__blob_store_close_replaced(struct wal__blob_store *blobs)
{
    struct wal__log *log = &blobs->log;
    bool must;

    pthread_rwlock_rdlock(&blobs->index_lock);
    must = atomic_load(&log->has_retired) || wal__log_is_outdated(log);
    pthread_rwlock_unlock(&blobs->index_lock);
    if (!must) {
        return;
    }
    pthread_mutex_lock(&blobs->write_mutex);
    pthread_rwlock_wrlock(&blobs->index_lock);
    if (catch_up(blobs, NULL) == WAL_OK) {
        wal__log_close_retired(log);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    pthread_mutex_unlock(&blobs->write_mutex);
}

/* Catches up and loads the indexes before the look-up. */
static enum wal_status catch_up_and_find(struct wal__blob_store *blobs,
                                         const struct wal__digest *digest,
                                         uint64_t *position,
                                         struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&blobs->index_lock);
    for (int attempt = 1;; attempt++) {
        status = catch_up(blobs, error);
        if (status == WAL_OK) {
            status = wal__pack_indexes_load(blobs, error);
        }
        if (status == WAL_OK || attempt == WAL__LOADS_MAX ||
            !wal__log_find_replaced(&blobs->log)) {
            break;
        }
        blobs->log.needs_reload = true; /* a compaction was faster */
    }
    if (status == WAL_OK) {
        WAL__ASSERT(blobs->indexes_loaded);
        *position = wal__blob_find_locked(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return status;
}

/* Sets *position to 0 if the digest is not found. */
static enum wal_status find(struct wal__blob_store *blobs,
                            const struct wal__digest *digest,
                            uint64_t *position, struct wal_error *error)
{
    bool current;

    *position = 0;
    pthread_rwlock_rdlock(&blobs->index_lock);
    current = blobs->indexes_loaded && !wal__log_needs_catch_up(&blobs->log);
    if (current) {
        *position = wal__blob_find_locked(blobs, digest);
    }
    pthread_rwlock_unlock(&blobs->index_lock);
    return current ? WAL_OK : catch_up_and_find(blobs, digest, position, error);
}

enum wal_status wal__blob_find(struct wal__blob_store *blobs,
                               const struct wal__digest *digest,
                               uint64_t *position, struct wal_error *error)
{
    char text[WAL__DIGEST_HEX_SIZE];
    uint64_t found;
    enum wal_status status = find(blobs, digest, &found, error);

    if (status != WAL_OK) {
        return status;
    }
    if (found == 0) {
        wal__digest_to_hex(digest, text);
        return wal__fail(error, WAL_ENOTFOUND,
                         "the store has no content with SHA-256 %s", text);
    }
    *position = found;
    return WAL_OK;
}
