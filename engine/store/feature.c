/*
 * feature.c - adds a feature to a store that is in use (SPEC.md 7).
 *
 * The append lock of the log orders the processes that add one: each keeps what
 * another has added. Any thread.
 */
#include "engine/store/core.h"
#include "format/bytes/assert.h"

struct feature {
    struct wal__core *core;
    uint32_t incompat;
};

/* A leader: the core's manifest is under the state lock. */
static enum wal_status add(void *ctx, struct wal_error *error)
{
    const struct feature *feature = ctx;
    struct wal__core *core = feature->core;

    WAL__ASSERT(core->log.append_lock_held);
    return wal__manifest_require(&core->env, &core->manifest, feature->incompat,
                                 error);
}

enum wal_status wal__core_require_feature(struct wal__core *core,
                                          uint32_t incompat,
                                          struct wal_error *error)
{
    struct feature feature = {core, incompat};
    enum wal_status status;
    bool is_set;

    if ((atomic_load(&core->required_features) & incompat) == incompat) {
        return WAL_OK;
    }
    status = wal__core_read_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    is_set = (core->manifest.features.incompat & incompat) == incompat;
    wal__core_unlock(core);
    if (!is_set) {
        status = wal__committer_call(&core->committer, add, &feature, error);
    }
    if (status == WAL_OK) {
        atomic_fetch_or(&core->required_features, incompat);
    }
    return status;
}
