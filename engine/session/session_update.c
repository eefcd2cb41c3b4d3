/*
 * session_update.c - updating a session by a callback (SPEC.md 5.9): reads the
 * session, calls the function without a lock, writes if no other change was
 * appended since, else retries; and migrating a session's schema, one such
 * update per version (SPEC.md 7.2). Any thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"

enum {
    RETRIES_MAX = 1000
};

/* WAL_ECONFLICT when another change was appended since the read, even an equal
 * one: a batch that is sent again may be skipped as a duplicate, but here two
 * callers that each add one may write the same value. */
static enum wal_status check_stale_read(const struct wal__op *op,
                                        const struct wal_session_change *change,
                                        struct wal_error *error)
{
    const struct wal__batch *batch = op->request;
    char actual[24];

    WAL__ASSERT(batch->change_prepared);
    if (batch->expected_version == change->expected_version) {
        return WAL_OK;
    }
    (void)snprintf(actual, sizeof(actual), "%" PRIu64, batch->expected_version);
    return wal__conflict(error, WAL_EXPECTATION_METADATA, actual,
                         "the metadata has version %s, not %" PRIu64, actual,
                         change->expected_version);
}

static enum wal_status commit_change(struct wal_session *session,
                                     const struct wal_session_change *change,
                                     bool is_migration, struct wal_error *error)
{
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .change = change};
    struct wal__op *op = NULL;
    enum wal_status status = wal__batch_create(
        session, &batch, NULL,
        is_migration ? WAL__BATCH_MIGRATION : WAL__BATCH_PLAIN, &op, error);

    if (status != WAL_OK) {
        return status;
    }
    status = check_stale_read(op, change, error);
    if (status == WAL_OK) {
        status = wal__session_commit(session->core, op, error);
    }
    wal__op_release(op);
    return status;
}

/* Reads, calls the function and writes, once. */
static enum wal_status try_update(struct wal_session *reader, wal_update_fn *fn,
                                  void *ctx, uint32_t schema_version,
                                  struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_change change = {.struct_size = sizeof(change)};
    enum wal_status status = wal__session_get_info(reader, &info, error);
    int32_t returned;

    if (status != WAL_OK) {
        return status;
    }
    if (schema_version != 0 && info.schema_version >= schema_version) {
        return WAL_OK; /* another caller did this step meanwhile */
    }
    returned = fn(ctx, &info, &change);
    if (returned != 0) {
        return wal__fail_at(error, WAL_ECALLBACK, returned, NULL, 0,
                            "the update function of the session returned "
                            "%" PRId32,
                            returned);
    }
    change.fields |= WAL_CHANGE_EXPECT;
    change.expected_version = info.metadata_version;
    if (schema_version != 0) {
        change.fields |= WAL_CHANGE_SCHEMA;
        change.schema_version = schema_version;
    }
    return commit_change(reader, &change, schema_version != 0, error);
}

static enum wal_status update(struct wal_session *session, wal_update_fn *fn,
                              void *ctx, uint32_t schema_version,
                              struct wal_error *error)
{
    struct wal_session *reader = NULL;
    /* A separate handle: the caller owns the info texts of its handle. */
    enum wal_status status =
        wal__session_open(session->core, session->number, &reader, error);
    struct wal_error own = WAL_INIT(wal_error);
    uint64_t looked = 0;
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_update(reader, fn, ctx, schema_version, &own);
        attempt++;
    } while ((status == WAL_ECONFLICT && attempt < RETRIES_MAX &&
              own.expectation != WAL_EXPECTATION_SEQUENCE) ||
             wal__core_invalidate_derived(session->core, status, &looked));
    WAL__ASSERT(attempt <= RETRIES_MAX + 1);
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    wal__session_free(reader);
    return status;
}

enum wal_status wal__session_update(struct wal_session *session,
                                    wal_update_fn *fn, void *ctx,
                                    struct wal_error *error)
{
    return update(session, fn, ctx, 0, error);
}

/* --- schemas ------------------------------------------------------------ */

/* Buffer for the title in the metadata of a session of schema 0. */
struct title_buffer {
    uint8_t title[WAL__TEXT_MAX];
};

/* Version 0 to 1: copies the title from the metadata to its field. */
static int32_t migrate_title(void *ctx, const struct wal_session_info *now,
                             struct wal_session_change *change)
{
    struct title_buffer *title_buffer = ctx;
    struct wal__span metadata = {now->metadata.data,
                                 (size_t)now->metadata.size};
    struct wal__span title;

    if (now->title.size > 0 ||
        !wal__text_member(metadata, "title", title_buffer->title,
                          sizeof(title_buffer->title), &title)) {
        return 0;
    }
    WAL__ASSERT(title.size <= sizeof(title_buffer->title));
    change->fields = WAL_CHANGE_TITLE;
    change->title = wal__text_slice(title);
    return 0;
}

static enum wal_status reject_migration(uint32_t from, uint32_t to,
                                        struct wal_error *error)
{
    char actual[16];
    int size = snprintf(actual, sizeof(actual), "%" PRIu32, from);

    wal__fail(error, WAL_ESCHEMA,
              "cannot migrate schema version %s to %" PRIu32, actual, to);
    wal__error_set_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

static enum wal_status read_schema_version(struct wal_session *session,
                                           uint32_t *version,
                                           struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_check_writable(core, session->number, true, &summary,
                                         error);
    if (status == WAL_OK) {
        *version = summary.schema_version;
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__session_migrate(struct wal_session *session, uint32_t to,
                                     wal_update_fn *fn, void *ctx,
                                     struct wal_migrate_result *result,
                                     struct wal_error *error)
{
    uint32_t from = 0;
    uint32_t version;
    enum wal_status status = read_schema_version(session, &from, error);

    version = from;
    if (status == WAL_OK && from > to) {
        status = reject_migration(from, to, error);
    }
    while (status == WAL_OK && version < to) {
        struct title_buffer title_buffer;

        if (fn != NULL) {
            status = update(session, fn, ctx, version + 1, error);
        } else if (version == 0) {
            status = update(session, migrate_title, &title_buffer, 1, error);
        } else {
            status = reject_migration(version, to, error);
        }
        version += status == WAL_OK;
    }
    if (status == WAL_OK && result != NULL) {
        WAL__ASSERT(version == to);
        result->from = from;
        result->to = to;
        result->reserved = 0;
        result->sessions = from != to;
    }
    return status;
}
