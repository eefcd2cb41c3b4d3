/*
 * session_update.c - changing a session by a function of what it is: read, call
 * outside all locks, write if nobody else did since, or begin again (SPEC.md
 * 5.9); and migrating a session's schema, one such step a version (7.2).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"

enum {
    RETRIES_MAX = 1000
};

/* Two that add one write the same: what is there already, as another made it
 * since, is no answer to the function here, as it is to a batch sent again. */
static enum wal_status check_stale_read(const struct wal__op *op,
                                        const struct wal_session_change *change,
                                        struct wal_error *error)
{
    const struct wal__batch *batch = op->request;
    char actual[24];

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
    enum wal_status status =
        wal__batch_create(session, &batch, NULL, is_migration, &op, error);

    if (status == WAL_OK) {
        status = check_stale_read(op, change, error);
        if (status == WAL_OK) {
            status = wal__session_commit(session->core, op, error);
        }
        wal__op_release(op);
    }
    return status;
}

/* Reads, asks, writes: once. */
static enum wal_status try_update(struct wal_session *reader, wal_update_fn *fn,
                                  void *ctx, uint32_t schema_version,
                                  struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_change change = {.struct_size = sizeof(change)};
    enum wal_status status = wal__session_get_info(reader, &info, error);
    int32_t answer;

    if (status != WAL_OK) {
        return status;
    }
    if (schema_version != 0 && info.schema_version >= schema_version) {
        return WAL_OK; /* another made the step meanwhile */
    }
    answer = fn(ctx, &info, &change);
    if (answer != 0) {
        return wal__fail_at(error, WAL_ECALLBACK, answer, NULL, 0,
                            "the function that changes the session answered "
                            "%" PRId32,
                            answer);
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
    /* A handle of its own: the session's info belongs to its callers. */
    enum wal_status status =
        wal__session_open(session->core, session->number, &reader, error);
    uint32_t attempt = 0;

    if (status != WAL_OK) {
        return status;
    }
    do {
        status = try_update(reader, fn, ctx, schema_version, error);
        attempt++;
    } while (status == WAL_ECONFLICT && attempt < RETRIES_MAX);
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

/* The title that a session of schema 0 has in its metadata. */
struct title_buffer {
    uint8_t title[WAL__TEXT_MAX];
};

/* Step 0 to 1: the title becomes a field of the session's own. */
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
              "no way is known from schema version %s to %" PRIu32, actual, to);
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
        result->from = from;
        result->to = to;
        result->reserved = 0;
        result->sessions = from != to;
    }
    return status;
}
