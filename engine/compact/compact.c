/*
 * compact.c - chooses the segments to rewrite (compact.h).
 *
 * Invariant: runs are rewritten by ascending id, so that a TOMBSTONE goes after
 * everything it ends. When a segment turns out to be damaged, what is live is
 * found anew: the TOMBSTONE of a session stays as long as that segment has
 * records of it.
 */
#include "engine/compact/compact.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/process/control_lock.h"
#include "format/bytes/assert.h"

enum {
    RUN_MAX = 32 * 1024 * 1024, /* bytes of records in one new segment */
    PERCENT = 100
};

/* A segment that may be rewritten. */
struct candidate {
    struct wal__compact_input input;
    uint64_t live_bytes; /* of its records */
    uint64_t dead_bytes;
    bool has_index;
    bool is_refused;
    bool is_suitable; /* it may be rewritten */
    bool is_chosen;   /* it is to be */
    bool is_done;
};

struct compaction {
    struct wal__core *core;
    const struct wal__compact_options *options;
    struct wal__compact_result *result;
    struct candidate *candidates;
    uint32_t count;
    struct wal__live_set set;
    uint32_t generation; /* of the last new segment */
    uint64_t total;      /* bytes of the chosen segments */
    uint64_t done;
};

/* --- candidates --------------------------------------------------------- */

/* Records the first segment that cannot be rewritten. */
static void refuse(struct compaction *compaction, struct candidate *candidate,
                   const struct wal_error *error)
{
    if (candidate->is_refused) {
        return;
    }
    candidate->is_refused = true;
    if (compaction->result->refused == 0) {
        compaction->result->refusal = *error;
    }
    compaction->result->refused++;
}

/* Whether compaction rewrites such a segment at all. `next` is after it. */
static bool is_suitable(struct compaction *compaction,
                        struct candidate *candidate,
                        const struct wal__segment *next)
{
    const struct wal__segment *segment = candidate->input.segment;
    struct wal_error error = {.struct_size = sizeof(error)};

    if (segment->header.version < WAL__FORMAT_VERSION) {
        return false;
    }
    if (!segment->has_open || !next->has_open || next->open.damage_count > 0) {
        wal__fail_at(&error, WAL_EDAMAGED, 0, segment->path, 0,
                     "the segment is damaged");
        refuse(compaction, candidate, &error);
        return false;
    }
    return true;
}

static enum wal_status open_candidates(struct compaction *compaction,
                                       struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    enum wal_status status = wal__core_write_lock(core, error);
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    count = wal__log_segment_count(&core->log);
    count -= count > 0;
    compaction->candidates = wal__heap_zalloc(
        core->env.heap, (count + 1) * sizeof(*compaction->candidates));
    if (compaction->candidates == NULL) {
        wal__core_unlock(core);
        return wal__no_memory(error);
    }
    compaction->count = count;
    compaction->generation = wal__log_generation(&core->log);
    for (uint32_t i = 0; i < count; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        candidate->input.segment = wal__log_segment_at(&core->log, i);
        status = wal__compact_input_open(core, candidate->input.segment,
                                         &candidate->input);
        candidate->has_index = status == WAL_OK;
        if (candidate->has_index) {
            candidate->is_suitable = is_suitable(
                compaction, candidate, wal__log_segment_at(&core->log, i + 1));
        } else {
            struct wal_error refusal = {.struct_size = sizeof(refusal)};

            wal__fail_at(&refusal, status, 0, candidate->input.segment->path, 0,
                         "the segment has no index that can be read");
            refuse(compaction, candidate, &refusal);
        }
    }
    wal__core_unlock(core);
    compaction->result->segments = count;
    return WAL_OK;
}

static void close_candidates(struct compaction *compaction)
{
    for (uint32_t i = 0; i < compaction->count; i++) {
        if (compaction->candidates[i].has_index) {
            wal__compact_input_close(compaction->core,
                                     &compaction->candidates[i].input);
        }
    }
    wal__heap_free(compaction->core->env.heap, compaction->candidates);
}

/* --- what is live ------------------------------------------------------- */

static enum wal_status build_live_set(struct compaction *compaction,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    wal__live_set_deinit(&compaction->set);
    wal__live_set_init(&compaction->set, compaction->core->env.heap);
    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        if (candidate->has_index) {
            status = wal__live_set_add(&compaction->set,
                                       &candidate->input.slot.index);
        }
        if (status != WAL_OK) {
            wal__fail_at(error, status, 0, candidate->input.segment->path, 0,
                         "cannot read the index of the segment");
        }
    }
    wal__live_set_complete(&compaction->set);
    return status;
}

/* Whether a record that is to be erased has been: an ENTRY of the form, or a
 * SESSION with nothing but its id. */
static bool is_erased(const struct wal__frame *frame, struct wal__span first)
{
    struct wal__session_record session;

    if (frame->type == WAL__FRAME_ENTRY) {
        return wal__entry_record_is_erased(first);
    }
    return wal__session_record_decode(first, WAL__FORMAT_VERSION, &session) ==
               WAL__FMT_OK &&
           first.size == wal__session_record_size(
                             &(struct wal__session_record){.id = session.id});
}

/* Adds the bytes of a dead record. One that cannot be read is found when it is
 * copied. */
static void weigh_record(struct compaction *compaction,
                         struct candidate *candidate,
                         struct wal__record_buf *scratch,
                         const struct wal__posting *posting,
                         enum wal__fate fate)
{
    uint64_t position =
        wal__position(candidate->input.segment->id, posting->offset);
    uint32_t wanted = fate != WAL__FATE_ERASE             ? 0
                      : posting->type == WAL__FRAME_ENTRY ? 1
                                                          : UINT16_MAX;
    struct wal__span first;
    struct wal__frame frame;

    if (wal__log_peek(&compaction->core->log, position, wanted, scratch, &frame,
                      &first, NULL) == WAL_OK &&
        (fate == WAL__FATE_DROP || !is_erased(&frame, first))) {
        candidate->dead_bytes += wal__frame_total_size(frame.stored_size);
    }
}

/* Bytes of all records of a segment. */
static uint64_t all_bytes(const struct wal__segment *segment)
{
    return wal__segment_is_rewritten(&segment->header)
               ? segment->header.rewrite.raw_size
               : atomic_load(&segment->end) - WAL__SEGMENT_HEADER_SIZE;
}

/* Sums the sizes of a candidate's dead records, and of texts in its index that
 * are dead. */
static enum wal_status weigh(struct compaction *compaction,
                             struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;
    const struct wal__live_set *set = &compaction->set;
    uint64_t all = all_bytes(candidate->input.segment);
    struct wal__record_buf scratch;
    enum wal_status status = WAL_OK;
    uint64_t texts = 0;

    candidate->dead_bytes = 0;
    wal__record_buf_init(&scratch, compaction->core->env.heap);
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;
        struct wal__posting posting;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
            break;
        }
        for (uint32_t k = 0; k < summary.posting_count; k++) {
            enum wal__fate fate;

            wal__posting_decode(index->postings +
                                    (size_t)(summary.first_posting + k) *
                                        WAL__POSTING_SIZE,
                                &posting);
            fate = wal__live_set_fate(set, summary.number, &posting,
                                      k == 0 && summary.segment == 0);
            if (fate != WAL__FATE_KEEP) {
                weigh_record(compaction, candidate, &scratch, &posting, fate);
            }
        }
        texts += wal__summary_text_size(&summary);
        wal__live_set_strip(set, &summary);
        texts -= wal__summary_text_size(&summary);
    }
    wal__record_buf_deinit(&scratch);
    candidate->live_bytes =
        all > candidate->dead_bytes ? all - candidate->dead_bytes : 0;
    candidate->dead_bytes += texts;
    return status;
}

static bool is_worth_it(const struct compaction *compaction,
                        const struct candidate *candidate)
{
    const struct wal__compact_options *options = compaction->options;
    uint64_t all = candidate->live_bytes + candidate->dead_bytes;

    if (!wal__segment_is_rewritten(&candidate->input.segment->header)) {
        return true; /* it is compressed */
    }
    return options->erase
               ? candidate->dead_bytes > 0
               : candidate->dead_bytes * PERCENT > all * options->dead_percent;
}

/* Keeps the SESSION and TOMBSTONE records of deleted sessions that have records
 * in a segment which is not rewritten. */
static enum wal_status retain(struct compaction *compaction,
                              const struct candidate *candidate)
{
    const struct wal__index *index = &candidate->input.slot.index;

    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        if (summary.posting_count > 0) {
            wal__live_set_retain(&compaction->set, summary.number);
        }
    }
    return WAL_OK;
}

/* Chooses the smaller neighbours before a chosen segment too: their records
 * are merged with its own. One that is rewritten in this way is afterwards in a
 * segment at least twice as large, so that no record is merged often. */
static void choose_neighbours(struct compaction *compaction)
{
    uint64_t bytes = 0; /* live, of the chosen segments that follow */

    for (uint32_t i = compaction->count; i > 0; i--) {
        struct candidate *candidate = &compaction->candidates[i - 1];

        if (bytes > 0 && candidate->is_suitable && !candidate->is_done &&
            candidate->live_bytes <= bytes &&
            candidate->live_bytes + bytes <= RUN_MAX) {
            candidate->is_chosen = true;
        }
        bytes = candidate->is_chosen ? bytes + candidate->live_bytes : 0;
    }
}

/* Leaves out the chosen segments beyond the limit, and keeps what deleted
 * sessions need that have records in segments which stay. */
static enum wal_status settle(struct compaction *compaction)
{
    const struct wal__compact_options *options = compaction->options;
    enum wal_status status = WAL_OK;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        struct candidate *candidate = &compaction->candidates[i];
        uint64_t capacity = candidate->input.segment->header.capacity;

        if (candidate->is_done) {
            continue;
        }
        candidate->is_chosen =
            candidate->is_chosen &&
            (options->max_bytes == 0 || bytes + capacity <= options->max_bytes);
        if (candidate->is_chosen) {
            bytes += capacity;
        } else if (candidate->has_index) {
            status = retain(compaction, candidate);
        } else {
            wal__live_set_retain_all(&compaction->set); /* not known */
        }
    }
    compaction->total = compaction->done + bytes;
    return status == WAL_OK ? wal__live_set_settle(&compaction->set) : status;
}

static enum wal_status choose(struct compaction *compaction,
                              struct wal_error *error)
{
    enum wal_status status = build_live_set(compaction, error);

    if (status == WAL_OK) {
        status = wal__live_set_settle(&compaction->set); /* as if all went */
    }
    compaction->result->dead_bytes = 0;
    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        candidate->is_chosen = false;
        if (candidate->has_index && !candidate->is_done) {
            status = weigh(compaction, candidate);
            candidate->is_suitable =
                candidate->is_suitable && !candidate->is_refused;
            candidate->is_chosen =
                candidate->is_suitable && is_worth_it(compaction, candidate);
            compaction->result->dead_bytes += candidate->dead_bytes;
        }
    }
    choose_neighbours(compaction);
    if (status == WAL_OK) {
        status = settle(compaction);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot choose segments to rewrite");
}

/* --- rewriting ---------------------------------------------------------- */

/* The length of the run of chosen neighbours that begins at a rank. */
static uint32_t run_length(const struct compaction *compaction, uint32_t from)
{
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (from + count < compaction->count) {
        const struct candidate *candidate =
            &compaction->candidates[from + count];

        if (!candidate->is_chosen || candidate->is_done ||
            (count > 0 && bytes + candidate->live_bytes > RUN_MAX)) {
            break;
        }
        bytes += candidate->live_bytes;
        count++;
    }
    return count;
}

static enum wal_status rewrite_run(struct compaction *compaction, uint32_t from,
                                   uint32_t count, struct wal_error *error)
{
    struct wal__compact_result *result = compaction->result;
    struct wal__core *core = compaction->core;
    struct wal__rewrite_options options = compaction->options->rewrite;
    struct wal__rewrite_result rewritten;
    struct wal__compact_input *inputs =
        wal__heap_alloc(core->env.heap, count * sizeof(*inputs));
    enum wal_status status;

    if (inputs == NULL) {
        return wal__no_memory(error);
    }
    options.generation = ++compaction->generation;
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = compaction->candidates[from + i].input;
    }
    status = wal__rewrite_segments(core, &compaction->set, inputs, count,
                                   &options, &rewritten, error);
    wal__heap_free(core->env.heap, inputs);
    if (status != WAL_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        compaction->candidates[from + i].is_done = true;
    }
    result->chosen += count;
    result->bytes_before += rewritten.bytes_read;
    result->bytes_after += rewritten.bytes_written;
    result->kept += rewritten.kept;
    result->dropped += rewritten.dropped;
    result->erased += rewritten.erased;
    compaction->done += rewritten.bytes_read;
    return WAL_OK;
}

/* Whether a run failed for what is in one of its segments: then this one is
 * left out. */
static bool refuse_damaged(struct compaction *compaction, uint32_t from,
                           uint32_t count, enum wal_status status,
                           const struct wal_error *error)
{
    if (status != WAL_ECORRUPT && status != WAL_EIO && status != WAL_ETOOBIG) {
        return false;
    }
    for (uint32_t i = from; i < from + count; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        if (count == 1 ||
            strcmp(error->file, candidate->input.segment->path) == 0) {
            refuse(compaction, candidate, error);
            return true;
        }
    }
    return false;
}

/* Rewrites the chosen segments. *again: one was left out, and what is live must
 * be found anew. */
static enum wal_status rewrite_chosen(struct compaction *compaction,
                                      bool *again, struct wal_error *error)
{
    const struct wal__compact_options *options = compaction->options;
    enum wal_status status = WAL_OK;
    uint32_t at = 0;

    *again = false;
    while (at < compaction->count && status == WAL_OK && !*again) {
        uint32_t count = run_length(compaction, at);

        if (count == 0) {
            at++;
            continue;
        }
        status = rewrite_run(compaction, at, count, error);
        if (status != WAL_OK) {
            *again = refuse_damaged(compaction, at, count, status, error);
            status = *again ? WAL_OK : status;
            continue;
        }
        at += count;
        if (options->progress != NULL &&
            !options->progress(options->ctx, compaction->done,
                               compaction->total)) {
            status = wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
        }
    }
    return status;
}

/* Opens the new segments, writes the catalogue that goes with them, and makes
 * other processes do the former. */
static enum wal_status publish(struct compaction *compaction,
                               struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    enum wal_status status;

    if (compaction->result->chosen == 0) {
        return WAL_OK;
    }
    pthread_rwlock_wrlock(&core->state);
    core->log.needs_reload = true;
    core->writes_catalogue = true;
    pthread_rwlock_unlock(&core->state);
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        core->writes_catalogue = false;
        /* This process has them. */
        core->log.rewrites =
            atomic_fetch_add(&core->log.shared->rewrites, 1) + 1;
        wal__core_unlock(core);
    }
    return status;
}

static enum wal_status compact(struct compaction *compaction,
                               struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    bool again = true;
    enum wal_status published;
    enum wal_status status = open_candidates(compaction, error);

    if (status == WAL_OK && !compaction->options->dry_run) {
        status = wal__manifest_require(&core->env, &core->manifest,
                                       WAL__INCOMPAT_REWRITTEN, error);
    }
    while (status == WAL_OK && again) {
        status = choose(compaction, error);
        again = false;
        if (status == WAL_OK && !compaction->options->dry_run) {
            status = rewrite_chosen(compaction, &again, error);
        }
    }
    published = publish(compaction, status == WAL_OK ? error : NULL);
    return status == WAL_OK ? published : status;
}

enum wal_status wal__compact(struct wal__core *core,
                             const struct wal__compact_options *options,
                             struct wal__compact_result *result,
                             struct wal_error *error)
{
    struct compaction compaction = {
        .core = core, .options = options, .result = result};
    enum wal_status status;
    int err = 0;

    memset(result, 0, sizeof(*result));
    status = wal__control_set_lock(&core->control, WAL__LOCK_COMPACT,
                                   WAL__IO_LOCK_EXCLUSIVE, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, core->env.root, 0,
                            "another process compacts the store");
    }
    if (!options->dry_run) {
        status = wal__committer_rotate(&core->committer, error);
    }
    wal__live_set_init(&compaction.set, core->env.heap);
    if (status == WAL_OK) {
        status = compact(&compaction, error);
        close_candidates(&compaction);
    }
    wal__live_set_deinit(&compaction.set);
    (void)!wal__control_set_lock(&core->control, WAL__LOCK_COMPACT,
                                 WAL__IO_LOCK_NONE, &err);
    return status;
}
