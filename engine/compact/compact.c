/*
 * compact.c - rewrites the segments that choose.c has chosen (compact.h).
 *
 * Invariant: runs are rewritten by ascending id, so that a TOMBSTONE goes after
 * everything it ends. When a segment turns out to be damaged, what is live is
 * found anew: the TOMBSTONE of a session stays as long as that segment has
 * records of it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/compact/compact_job.h"
#include "engine/compact/pack/pack_compact.h"
#include "engine/log/locks.h"
#include "engine/log/search_files.h"
#include "engine/session/session_title.h"

enum {
    PUBLISH_ATTEMPTS = 3,
    READER_POLL_NS = 50000000
};

static const uint64_t reader_wait_ns = UINT64_C(3000000000);

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
            (count > 0 &&
             bytes + candidate->live_bytes > WAL__COMPACT_RUN_MAX)) {
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
    struct wal__segment_run_options options = compaction->options->rewrite;
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
    options.drops_damaged = compaction->options->erase;
    options.throttle = &compaction->throttle;
    status = wal__rewrite_segments(core, &compaction->set, inputs, count,
                                   &options, &rewritten, error);
    wal__heap_free(core->env.heap, inputs);
    if (!rewritten.run.is_replaced) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        compaction->candidates[from + i].is_done = true;
    }
    result->chosen += count;
    result->bytes_before += rewritten.run.bytes_read;
    result->bytes_after += rewritten.run.bytes_written;
    result->kept += rewritten.kept;
    result->dropped += rewritten.dropped;
    result->erased += rewritten.erased;
    compaction->done += rewritten.run.bytes_read;
    return status;
}

/* Whether a run failed for what is in one of its segments, which it did not
 * replace: then this one is left out. */
static bool refuse_damaged(struct compaction *compaction, uint32_t from,
                           uint32_t count, enum wal_status status,
                           const struct wal_error *error)
{
    if (status != WAL_ECORRUPT && status != WAL_EIO && status != WAL_ETOOBIG) {
        return false;
    }
    for (uint32_t i = from; i < from + count; i++) {
        struct candidate *candidate = &compaction->candidates[i];

        if (candidate->is_done) {
            return false;
        }
        if (count == 1 ||
            strcmp(error->file, candidate->input.segment->path) == 0) {
            wal__compact_refuse(compaction, candidate, error);
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
    /* The caller's error may be NULL, or not have the field `file`. */
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = WAL_OK;
    uint32_t at = 0;

    *again = false;
    wal__throttle_expect(&compaction->throttle, compaction->done,
                         compaction->total);
    while (at < compaction->count && status == WAL_OK && !*again) {
        uint32_t count = run_length(compaction, at);

        if (count == 0) {
            at++;
            continue;
        }
        status = rewrite_run(compaction, at, count, &own);
        if (status != WAL_OK) {
            *again = refuse_damaged(compaction, at, count, status, &own);
            if (!*again) {
                wal__error_copy(error, &own);
                return status;
            }
            status = WAL_OK;
            continue;
        }
        at += count;
        status = wal__throttle_report(&compaction->throttle, compaction->done,
                                      compaction->total, error);
    }
    return status;
}

/* Notes when there is no rewritten segment whose name may be lost. */
static void settle_names(const struct compaction *compaction)
{
    bool all = true;

    for (uint32_t i = 0; i < compaction->count; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        all = all &&
              (candidate->is_done ||
               !wal__segment_is_rewritten(&candidate->input.segment->header));
    }
    if (all) {
        wal__segment_run_names_renewed(&compaction->core->log);
    }
}

/* Has the chain read again: of one that was killed, other processes do not know
 * what it replaced, and no other one replaces anything now. */
static void find_replaced(struct wal__core *core)
{
    pthread_rwlock_wrlock(&core->state);
    core->log.needs_reload = true;
    pthread_rwlock_unlock(&core->state);
}

/* Opens the new segments, writes the catalogue that goes with them, and makes
 * other processes do the former. Erasing removes the old catalogue first. */
static enum wal_status publish_once(struct compaction *compaction,
                                    bool *is_written, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    bool erases = compaction->options->erase;
    enum wal_status status = WAL_OK;

    if (compaction->result->chosen == 0 && !erases) {
        return WAL_OK;
    }
    if (erases) {
        status = wal__core_drop_catalogue(core, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    pthread_rwlock_wrlock(&core->state);
    core->log.needs_reload = true;
    core->writes_catalogue = true;
    pthread_rwlock_unlock(&core->state);
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        core->writes_catalogue = false;
        *is_written = core->catalogue.snapshot != NULL;
        /* This process has them. */
        core->log.rewrites =
            atomic_fetch_add(&core->log.shared->rewrites, 1) + 1;
        wal__core_unlock(core);
    }
    return status;
}

/* The catalogue of a process that began to write one before, which may have
 * what was erased, does not stay: after erasing there is that of this
 * compaction, which no older one replaces, or none. */
static enum wal_status publish(struct compaction *compaction,
                               struct wal_error *error)
{
    bool erases = compaction->options->erase;
    bool is_written = false;
    enum wal_status status = WAL_OK;

    for (int i = 0; i < PUBLISH_ATTEMPTS && status == WAL_OK &&
                    (i == 0 || erases) && !is_written;
         i++) {
        status = publish_once(compaction, &is_written, error);
    }
    return status == WAL_OK && erases && !is_written
               ? wal__core_drop_catalogue(compaction->core, error)
               : status;
}

/* --- a dry run ---------------------------------------------------------- */

/* Lists what each session has. */
static enum wal_status list_sessions(struct compaction *compaction,
                                     struct wal_error *error)
{
    const struct wal__compact_options *options = compaction->options;
    struct wal__space *space = &compaction->space;
    enum wal_status status = WAL_OK;

    wal__space_finish(space, &compaction->set);
    for (uint32_t i = 0; i < space->limit && status == WAL_OK; i++) {
        const struct wal__session_space *slot = &space->slots[i];
        struct wal__summary summary;

        if (slot->index == 0 ||
            (slot->own | slot->seen | slot->reclaimable) == 0) {
            continue;
        }
        if (wal__index_summary(
                &compaction->candidates[slot->index - 1].input.slot.index,
                slot->rank, &summary) != WAL__FMT_OK) {
            status = wal__fail(error, WAL_ECORRUPT,
                               "cannot read the index of a segment");
        } else if (!options->session(options->ctx, &summary, slot)) {
            status = wal__fail(error, WAL_ECALLBACK, "stopped by the caller");
        }
    }
    return status;
}

static enum wal_status begin_sessions(struct compaction *compaction,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < compaction->count && status == WAL_OK; i++) {
        const struct candidate *candidate = &compaction->candidates[i];

        if (candidate->has_index) {
            status = wal__space_add_index(&compaction->space,
                                          &candidate->input.slot.index, i);
        }
    }
    wal__space_begin_records(&compaction->space);
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot list the sessions");
}

static enum wal_status plan(struct compaction *compaction,
                            struct wal_error *error)
{
    bool lists = compaction->options->session != NULL;
    enum wal_status status = wal__compact_open(compaction, error);

    if (status == WAL_OK && lists) {
        status = begin_sessions(compaction, error);
    }
    if (status == WAL_OK) {
        status = wal__compact_choose(compaction, error);
    }
    if (status == WAL_OK && lists) {
        status = list_sessions(compaction, error);
    }
    return status == WAL_OK
               ? wal__pack_compact(compaction->core, compaction->options,
                                   &compaction->throttle, compaction->result,
                                   error)
               : status;
}

/* Whether the tail has no record: ending it would add an empty segment to the
 * chain. Erasing ends it nevertheless, for what is beyond its end. */
static enum wal_status needs_rotation(struct compaction *compaction,
                                      bool *needed, struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    const struct wal__log *log = &core->log;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status == WAL_OK) {
        *needed =
            compaction->options->erase || log->must_rotate ||
            (log->tail_segment != NULL &&
             (!log->tail_segment->has_open ||
              log->tail_segment->open.last_sequence != log->last_sequence));
        wal__core_unlock(core);
    }
    return status;
}

/* Reports a segment that is not in the log and cannot be removed. */
struct unlinked {
    struct compaction *compaction;
    const struct wal__log *log;
};

static void report_unlinked(void *ctx, uint64_t id)
{
    const struct unlinked *unlinked = ctx;
    struct wal_error error = {.struct_size = sizeof(error)};
    char path[WAL__PATH_MAX];

    wal__segment_path(unlinked->log->env, unlinked->log->directory, id, path);
    (void)!wal__fail_at(&error, WAL_EDAMAGED, 0, path, 0,
                        "it is not in the log, and may hold what is to be "
                        "erased");
    wal__compact_count_refusal(unlinked->compaction->options,
                               unlinked->compaction->result, &error);
}

/* Removes the segments of attempts that failed, before their successors, of
 * which they have copies, are rewritten; of both streams. */
static enum wal_status remove_unlinked(struct compaction *compaction,
                                       struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    struct unlinked of_log = {compaction, &core->log};
    struct unlinked of_pack = {compaction, &core->blobs.log};
    enum wal_status status = wal__core_write_lock(core, error);

    if (status == WAL_OK) {
        status = core->log.tail_segment == NULL
                     ? WAL_OK
                     : wal__log_remove_unlinked(&core->log, report_unlinked,
                                                &of_log, error);
        wal__core_unlock(core);
    }
    if (status == WAL_OK) {
        status = wal__blob_store_write_lock(&core->blobs, error);
    }
    if (status == WAL_OK) {
        status = core->blobs.log.tail_segment == NULL
                     ? WAL_OK
                     : wal__log_remove_unlinked(
                           &core->blobs.log, report_unlinked, &of_pack, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

/* Removes what compactions left that were cut short, of both streams. */
static enum wal_status remove_leftovers(struct wal__core *core,
                                        struct wal_error *error)
{
    enum wal_status status = wal__core_write_lock(core, error);

    if (status == WAL_OK) {
        status = wal__log_remove_compacted(&core->log, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK || core->blobs.log.tail_segment == NULL) {
        return status;
    }
    status = wal__blob_store_write_lock(&core->blobs, error);
    if (status == WAL_OK) {
        status = wal__log_remove_compacted(&core->blobs.log, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

/* --- titles ------------------------------------------------------------- */

static enum wal_status forget_titles_of(struct wal__core *core,
                                        const struct wal__index *index,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK;
         i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            continue; /* its segment is refused */
        }
        for (uint32_t k = 0; k < summary.posting_count && status == WAL_OK;
             k++) {
            struct wal__posting posting;

            wal__index_posting(index, summary.first_posting + k, &posting);
            if (posting.type == WAL__FRAME_REDACT) {
                status = wal__session_forget_titles(core, summary.number,
                                                    posting.stream,
                                                    posting.parent, error);
            }
        }
    }
    return status;
}

/* Takes the titles that redacted entries gave, as long as it is known which:
 * a redaction may have been cut short, or older than this rule, and a title
 * may have been given again since. */
static enum wal_status forget_titles(struct wal__core *core,
                                     struct wal_error *error)
{
    struct wal__compact_result result;
    struct compaction compaction;
    enum wal_status status =
        wal__compact_open_indexes(&compaction, core, &result, error);

    for (uint32_t i = 0; i < compaction.count && status == WAL_OK; i++) {
        if (compaction.candidates[i].has_index) {
            status = forget_titles_of(
                core, &compaction.candidates[i].input.slot.index, error);
        }
    }
    wal__compact_close(&compaction);
    return status;
}

/* --- the whole ---------------------------------------------------------- */

static enum wal_status compact(struct compaction *compaction,
                               struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    bool again = true;
    enum wal_status published;
    bool needed = false;
    enum wal_status status =
        compaction->options->erase ? forget_titles(core, error) : WAL_OK;

    if (status == WAL_OK) {
        status = needs_rotation(compaction, &needed, error);
    }
    if (status == WAL_OK && needed) {
        status = wal__committer_rotate(&core->committer, error);
    }
    if (status == WAL_OK) {
        find_replaced(core);
        status = compaction->options->erase ? remove_unlinked(compaction, error)
                                            : WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__compact_open(compaction, error);
    }
    if (status == WAL_OK) {
        status =
            wal__core_require_feature(core, WAL__INCOMPAT_REWRITTEN, error);
    }
    if (status == WAL_OK) {
        settle_names(compaction); /* nothing may have been rewritten yet */
    }
    while (status == WAL_OK && again) {
        status = wal__compact_choose(compaction, error);
        again = false;
        if (status == WAL_OK) {
            status = rewrite_chosen(compaction, &again, error);
        }
    }
    if (status == WAL_OK) {
        settle_names(compaction);
    }
    if (status == WAL_OK && compaction->options->erase) {
        wal__compact_report_all_left(compaction);
    }
    published = publish(compaction, status == WAL_OK ? error : NULL);
    status = status == WAL_OK ? published : status;
    if (status == WAL_OK) {
        status =
            wal__pack_compact(core, compaction->options, &compaction->throttle,
                              compaction->result, error);
    }
    return status == WAL_OK ? remove_leftovers(core, error) : status;
}

/* Removes the indexes of search that may have what was erased; also after a
 * failure, since segments may have been replaced before it. */
static enum wal_status sweep_search_files(const struct compaction *compaction,
                                          enum wal_status status,
                                          struct wal_error *error)
{
    bool must = status == WAL_OK && compaction->options->erase;
    struct wal__core *core = compaction->core;
    enum wal_status swept = wal__search_files_sweep(&core->env, &core->control,
                                                    must ? error : NULL);

    return must ? swept : status;
}

/* Names the store when the sync of a directory of it failed in this boot: of
 * what was removed, the next run finds nothing that it could remove again. */
static void report_lost_names(const struct compaction *compaction)
{
    struct wal__core *core = compaction->core;
    struct wal_error error = {.struct_size = sizeof(error)};

    if (atomic_load(&core->control.page->has_lost_names) == 0) {
        return;
    }
    (void)!wal__fail_at(&error, WAL_EIO, 0, core->env.root, 0,
                        "the sync of a directory failed since the machine "
                        "started, so that what was erased may be back after a "
                        "loss of power: restart it, then erase again");
    wal__compact_count_refusal(compaction->options, compaction->result, &error);
}

static void note_reader(void *ctx, uint32_t process, uint64_t bytes)
{
    bool *has_readers = ctx;

    (void)process;
    (void)bytes;
    *has_readers = true;
}

/* Closes the files that were replaced, and reports who still has any.
 * Other processes look once a second: after erasing they are waited for. */
static void list_readers(const struct compaction *compaction)
{
    const struct wal__compact_options *options = compaction->options;
    struct wal__core *core = compaction->core;
    const struct wal__io *io = core->env.io;
    const uint32_t never_woken = 0;
    uint64_t deadline = io->monotonic_ns(io->ctx) + reader_wait_ns;
    bool has_readers = options->erase;

    wal__core_close_replaced(core);
    if (options->reader == NULL || io->list_mappers == NULL) {
        return;
    }
    while (has_readers) {
        has_readers = false;
        io->list_mappers(io->ctx, core->env.root, note_reader, &has_readers);
        if (!has_readers || io->monotonic_ns(io->ctx) >= deadline) {
            break;
        }
        io->futex_wait(io->ctx, &never_woken, 0, READER_POLL_NS);
        wal__core_close_replaced(core);
    }
    io->list_mappers(io->ctx, core->env.root, options->reader, options->ctx);
}

/* Compacts, as the only thread of the only process that does. */
static enum wal_status compact_locked(struct compaction *compaction,
                                      struct wal_error *error)
{
    struct wal__core *core = compaction->core;
    struct wal__control *control = &core->control;
    enum wal_status status;

    if (pthread_mutex_trylock(&core->compact_mutex) != 0) {
        return wal__compact_lock_refused(control, control->process_id, error);
    }
    status = wal__compact_lock_acquire(control, error);
    if (status == WAL_OK) {
        status = compact(compaction, error);
        status = sweep_search_files(compaction, status, error);
        if (status == WAL_OK && compaction->options->erase) {
            report_lost_names(compaction);
        }
        wal__compact_lock_release(control);
    }
    pthread_mutex_unlock(&core->compact_mutex);
    return status;
}

enum wal_status wal__compact(struct wal__core *core,
                             const struct wal__compact_options *options,
                             struct wal__compact_result *result,
                             struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct compaction compaction = {
        .core = core, .options = options, .result = result};
    enum wal_status status;

    memset(result, 0, sizeof(*result));
    wal__throttle_init(&compaction.throttle, core->env.io, options->rate);
    wal__throttle_set_progress(&compaction.throttle, options->progress,
                               options->ctx);
    wal__live_set_init(&compaction.set, heap);
    wal__space_init(&compaction.space, heap);
    wal__buf_init(&compaction.tail_index, heap);
    wal__buf_init(&compaction.dead_documents, heap);
    /* Its segments stay open, whatever other threads load meanwhile. */
    wal__log_hold(&core->log);
    wal__log_hold(&core->blobs.log);
    status = options->dry_run ? plan(&compaction, error)
                              : compact_locked(&compaction, error);
    wal__compact_close(&compaction);
    wal__log_drop_hold(&core->log);
    wal__log_drop_hold(&core->blobs.log);
    if (status == WAL_OK && !options->dry_run) {
        list_readers(&compaction);
    }
    wal__space_deinit(&compaction.space);
    wal__live_set_deinit(&compaction.set);
    wal__buf_deinit(&compaction.dead_documents);
    return status;
}
