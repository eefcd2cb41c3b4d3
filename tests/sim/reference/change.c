/*
 * change.c - changing what a session says about itself by a function
 * of what that is, and bringing it to a schema version (reference.h).
 */
#include <string.h>

#include "tests/sim/reference/internal.h"

enum {
    ROUNDS = 1000
};

/* Calls the function once and writes its change, unless another one changed the
 * session meanwhile. `to` is the version of a step of a migration, or 0. */
static enum wal_status call_update_once(struct reference *ref, uint32_t number,
                                        wal_update_fn *fn, void *ctx,
                                        uint32_t to, struct wal_error *error)
{
    struct wal_session_change change = {.struct_size = sizeof(change)};
    struct reference_info now;
    enum wal_status status = reference_session_status(ref, number, &now);
    int32_t answer = 0;
    uint64_t before;

    if (status == WAL_OK && fn != NULL) {
        answer = fn(ctx, &now.info, &change);
    }
    if (answer != 0) {
        if (error != NULL) {
            error->status = WAL_ECALLBACK;
            error->sys_errno = answer;
        }
        return WAL_ECALLBACK;
    }
    change.fields |= WAL_CHANGE_EXPECT;
    change.expected_version = now.info.metadata_version;
    if (to != 0) {
        change.fields |= WAL_CHANGE_SCHEMA;
        change.schema_version = to;
    }
    if (status == WAL_OK) {
        status = ref_check_change(ref, number, &change, error);
    }
    if (status == WAL_OK && to == 0) {
        status = ref_check_writable(ref, number, error);
    }
    before = ref->count;
    if (status == WAL_OK) {
        ref_change(ref, number, &change);
    }
    return ref_end_operation(ref, before, true, status);
}

static enum wal_status call_update(struct reference *ref, uint32_t number,
                                   wal_update_fn *fn, void *ctx, uint32_t to,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_ECONFLICT;

    for (uint32_t i = 0; i < ROUNDS && status == WAL_ECONFLICT; i++) {
        status = call_update_once(ref, number, fn, ctx, to, error);
    }
    return status;
}

enum wal_status reference_session_update(struct reference *ref, uint32_t number,
                                         wal_update_fn *fn, void *ctx,
                                         struct wal_error *error)
{
    return call_update(ref, number, fn, ctx, 0, error);
}

static uint32_t schema_of(const struct reference *ref, uint32_t number)
{
    return ref_session_current(ref, number)
        ->session_state->stored_options.schema_version;
}

/* One version at a time; without a function the steps up to 1 are known. */
enum wal_status reference_session_migrate(struct reference *ref,
                                          uint32_t number, uint32_t to,
                                          wal_update_fn *fn, void *ctx,
                                          struct wal_migrate_result *result,
                                          struct wal_error *error)
{
    uint32_t from;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (reference_is_trashed(ref, number)) {
        return WAL_ETRASHED;
    }
    from = schema_of(ref, number);
    if (from > to) {
        return ref_fail_number(error, WAL_ESCHEMA, from);
    }
    while (schema_of(ref, number) < to) {
        uint32_t version = schema_of(ref, number);
        enum wal_status status;

        if (fn == NULL && version >= 1) {
            return ref_fail_number(error, WAL_ESCHEMA, version);
        }
        status = call_update(ref, number, fn, ctx, version + 1, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (result != NULL) {
        result->from = from;
        result->to = to;
        result->sessions = from < to;
    }
    return WAL_OK;
}
