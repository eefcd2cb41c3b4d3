/*
 * api_compact.c - the public function on compaction (agentwal/admin.h):
 * arguments are checked here, everything else is below.
 */
#include "agentwal/admin.h"

#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/base/error.h"
#include "engine/compact/compact.h"
#include "engine/session/session_trash.h"

enum {
    DEAD_PERCENT = 20,
    BLOCK_SIZE = 16 * 1024,
    LEVEL = 6, /* of LZ4 HC */
    RATE = 64 * 1024 * 1024
};

/* Of the callbacks. */
struct caller {
    const struct wal_store_compact_options *options;
    int32_t stopped; /* what a callback returned last */
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->stopped =
        caller->options->progress(caller->options->ctx, done, total);
    return caller->stopped == 0;
}

static void on_refused(void *ctx, const struct wal_error *refusal)
{
    const struct caller *caller = ctx;

    caller->options->refused(caller->options->ctx, refusal);
}

static bool on_session(void *ctx, const struct wal__summary *summary,
                       const struct wal__session_space *space)
{
    struct caller *caller = ctx;
    bool is_session = wal__space_slot(summary->number) != 0;
    const struct wal_session_space session = {
        .struct_size = sizeof(session),
        .flags = space->is_deleted ? WAL_SESSION_SPACE_DELETED : 0,
        .session_number = wal__space_slot(summary->number),
        .session_id = {summary->id.data, is_session ? summary->id.size : 0},
        .own_bytes = space->own,
        .shared_bytes = space->seen + space->inherited,
        .reclaimable_bytes = space->reclaimable,
    };

    caller->stopped = caller->options->session(caller->options->ctx, &session);
    return caller->stopped == 0;
}

static void on_reader(void *ctx, uint32_t process, uint64_t bytes)
{
    const struct caller *caller = ctx;

    caller->options->reader(caller->options->ctx, (int32_t)process, bytes);
}

static enum wal_status check(const struct wal_store_compact_options *options,
                             struct wal_error *error)
{
    const uint32_t known = WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_DRY_RUN |
                           WAL_STORE_COMPACT_EMPTY_TRASH |
                           WAL_STORE_COMPACT_KEEP_DELTAS;
    const uint32_t both =
        WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_KEEP_DELTAS;

    if ((options->flags & both) == both) {
        return wal__invalid(error, "WAL_STORE_COMPACT_ERASE and "
                                   "WAL_STORE_COMPACT_KEEP_DELTAS exclude each "
                                   "other: deltas have what a redacted message "
                                   "had");
    }
    return (options->flags & ~known) == 0 && options->dead_percent <= 100 &&
                   options->reserved == 0
               ? WAL_OK
               : wal__invalid(error, "the options for compacting are not "
                                     "valid");
}

static enum wal_status run(struct wal__core *core,
                           const struct wal_store_compact_options *options,
                           struct wal_store_compact_result *result,
                           struct wal_error *error)
{
    struct caller caller = {options, 0};
    bool dry_run = (options->flags & WAL_STORE_COMPACT_DRY_RUN) != 0;
    struct wal__compact_options compact = {
        .erase = (options->flags & WAL_STORE_COMPACT_ERASE) != 0,
        .keep_deltas = (options->flags & WAL_STORE_COMPACT_KEEP_DELTAS) != 0,
        .dry_run = dry_run,
        .dead_percent =
            options->dead_percent == 0 ? DEAD_PERCENT : options->dead_percent,
        .max_bytes = options->max_bytes,
        .rate = options->rate == 0 ? RATE : options->rate,
        .rewrite = {.block_size = BLOCK_SIZE, .level = LEVEL},
        .progress = options->progress == NULL ? NULL : on_progress,
        .refused = options->refused == NULL ? NULL : on_refused,
        .session = dry_run && options->session != NULL ? on_session : NULL,
        .reader = options->reader == NULL ? NULL : on_reader,
        .ctx = &caller,
    };
    struct wal__compact_result done = {0};
    uint64_t deleted = 0;
    bool empties = (options->flags & WAL_STORE_COMPACT_EMPTY_TRASH) != 0;
    enum wal_status status =
        empties && !dry_run ? wal__trash_empty(core, &deleted, error) : WAL_OK;

    if (status == WAL_OK) {
        status = wal__compact(core, &compact, &done, error);
    }
    if (caller.stopped != 0 && error != NULL) {
        error->sys_errno = caller.stopped;
    }
    result->segments = done.segments;
    result->rewritten = done.chosen;
    result->refused = done.refused;
    result->bytes_before = done.bytes_before;
    result->bytes_after = done.bytes_after;
    result->dead_bytes = done.dead_bytes;
    result->kept_records = done.kept;
    result->dropped_records = done.dropped;
    result->erased_records = done.erased;
    result->dropped_contents = done.dropped_contents;
    result->refusal = done.refusal;
    return status;
}

enum wal_status wal_store_compact(
    struct wal_store *store, const struct wal_store_compact_options *options,
    struct wal_store_compact_result *result, struct wal_error *error)
{
    struct wal_store_compact_options own;
    struct wal_store_compact_result done = {.struct_size = sizeof(done)};
    enum wal_status status = wal__struct_load(
        WAL__STRUCT(wal_store_compact_options), &own, options, error);

    if (status == WAL_OK && (own.flags & WAL_STORE_COMPACT_DRY_RUN) != 0) {
        status = wal__check_core(store == NULL ? NULL : &store->core, error);
    } else if (status == WAL_OK) {
        status =
            wal__check_writable(store == NULL ? NULL : &store->core, error);
    }
    if (status == WAL_OK) {
        status = check(&own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(
            WAL__STRUCT(wal_store_compact_result), result, error);
    }
    if (status != WAL_OK || store->core.noop) {
        return status;
    }
    status = run(&store->core, &own, &done, error);
    wal__struct_store(WAL__STRUCT(wal_store_compact_result), result, &done);
    return status;
}
