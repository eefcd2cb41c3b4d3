/*
 * api_compact.c - the public function on compaction (agentwal/admin.h):
 * arguments are checked here, everything else is below.
 */
#include "agentwal/admin.h"

#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/base/error.h"
#include "engine/compact/compact.h"

enum {
    DEAD_PERCENT = 20,
    BLOCK_SIZE = 32 * 1024,
    LEVEL = 9 /* of LZ4 HC */
};

/* What the callback returned. */
struct progress {
    const struct wal_store_compact_options *options;
    int32_t stopped;
};

static bool report(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *progress = ctx;

    progress->stopped =
        progress->options->progress(progress->options->ctx, done, total);
    return progress->stopped == 0;
}

static enum wal_status check(const struct wal_store_compact_options *options,
                             struct wal_error *error)
{
    const uint32_t known = WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_DRY_RUN;

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
    struct progress progress = {options, 0};
    struct wal__compact_options compact = {
        .erase = (options->flags & WAL_STORE_COMPACT_ERASE) != 0,
        .dry_run = (options->flags & WAL_STORE_COMPACT_DRY_RUN) != 0,
        .dead_percent =
            options->dead_percent == 0 ? DEAD_PERCENT : options->dead_percent,
        .max_bytes = options->max_bytes,
        .rewrite = {.block_size = BLOCK_SIZE, .level = LEVEL},
        .progress = options->progress == NULL ? NULL : report,
        .ctx = &progress,
    };
    struct wal__compact_result done;
    enum wal_status status = wal__compact(core, &compact, &done, error);

    if (progress.stopped != 0 && error != NULL) {
        error->sys_errno = progress.stopped;
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
    result->refusal = done.refusal;
    return status;
}

enum wal_status wal_store_compact(
    struct wal_store *store, const struct wal_store_compact_options *options,
    struct wal_store_compact_result *result, struct wal_error *error)
{
    struct wal_store_compact_options own;
    struct wal_store_compact_result done = {.struct_size = sizeof(done)};
    enum wal_status status =
        wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_store_compact_options), &own,
                                  options, error);
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
