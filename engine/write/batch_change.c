/*
 * batch_change.c - changes of a session's metadata: a batch writes its whole
 * SESSION record again (SPEC.md 5.9).
 *
 * The record is encoded in the caller's thread from the newest one, which is
 * read here. Resolving it under the append lock fails when a newer record was
 * appended since. Any thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/head_list.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* Builds the record of a session whose SESSION record was lost, from the
 * catalogue. */
static void record_from_summary(const struct wal__summary *summary,
                                struct wal__session_record *record)
{
    record->created_ms = summary->created_ms;
    record->schema_version =
        summary->schema_version != 0 ? summary->schema_version : 1;
    if ((summary->flags & WAL__SUMMARY_FORK) != 0) {
        record->flags = WAL__SESSION_RECORD_FORK;
    }
    if ((summary->flags & WAL__SUMMARY_TRASHED) != 0) {
        record->flags |= WAL__SESSION_RECORD_TRASHED;
    }
    if ((summary->flags & WAL__SUMMARY_MOVED) != 0) {
        record->flags |= WAL__SESSION_RECORD_MOVED;
    }
}

/* Copies the id of a summary, which is valid under the state lock only. */
static enum wal_status copy_id(struct wal__current_record *current,
                               const struct wal__summary *summary)
{
    uint8_t *at;
    enum wal_status status =
        wal__buf_reserve(&current->scratch.bytes, summary->id.size, &at);

    if (status == WAL_OK) {
        memcpy(at, summary->id.data, summary->id.size);
        current->record.id.data = at;
        current->record.id.size = summary->id.size;
    }
    return status;
}

enum wal_status wal__session_read_current(struct wal__core *core,
                                          uint32_t number,
                                          struct wal__current_record *current,
                                          struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_find(core, number, &summary, error);
    current->position = status == WAL_OK ? summary.session_position : 0;
    if (status == WAL_OK && current->position == 0) {
        record_from_summary(&summary, &current->record);
        status = copy_id(current, &summary);
    }
    wal__core_unlock(core);
    if (status != WAL_OK || current->position == 0) {
        return status;
    }
    return wal__core_read_session_record(core, current->position,
                                         &current->scratch, &current->record,
                                         &current->version, error);
}

/* Sets a text of the record, and *differs when that changes it. */
static enum wal_status set_text(struct wal_slice slice, const char *what,
                                struct wal__span *text, bool *differs,
                                struct wal_error *error)
{
    struct wal__span value;
    enum wal_status status =
        wal__text_check(slice, WAL__TEXT_MAX, what, &value, error);

    if (status == WAL_OK) {
        *differs |= !wal__span_equal(value, *text);
        *text = value;
    }
    return status;
}

static enum wal_status set_metadata(const struct wal_session_change *change,
                                    struct wal__span *metadata, bool *differs,
                                    struct wal_error *error)
{
    struct wal__span value = {NULL, 0};
    enum wal_status status = WAL_OK;

    if (change->metadata.size > 0) {
        status = wal__text_check_json(change->metadata, WAL__METADATA_MAX, true,
                                      "metadata", &value, error);
    }
    if (status == WAL_OK) {
        *differs |= !wal__span_equal(value, *metadata);
        *metadata = value;
    }
    return status;
}

static enum wal_status apply_change(const struct wal_session_change *change,
                                    struct wal__session_record *record,
                                    bool *differs, struct wal_error *error)
{
    enum wal_status status;

    if ((change->fields & WAL_CHANGE_METADATA) != 0) {
        status = set_metadata(change, &record->metadata, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_TITLE) != 0) {
        status =
            set_text(change->title, "title", &record->title, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_CWD) != 0) {
        status = set_text(change->cwd, "cwd", &record->cwd, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_PROJECT) != 0) {
        status = set_text(change->project, "project id", &record->project,
                          differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_SCHEMA) != 0) {
        if (change->schema_version == 0) {
            return wal__invalid(
                error, "the schema version of a change must be 1 or higher");
        }
        *differs |= record->schema_version != change->schema_version;
        record->schema_version = change->schema_version;
    }
    return WAL_OK;
}

static enum wal_status check_version(const struct wal_session_change *change,
                                     const struct wal__current_record *current,
                                     struct wal_error *error)
{
    char actual[24];

    if ((change->fields & WAL_CHANGE_EXPECT) == 0 ||
        change->expected_version == current->version) {
        return WAL_OK;
    }
    (void)snprintf(actual, sizeof(actual), "%" PRIu64, current->version);
    return wal__conflict(error, WAL_EXPECTATION_METADATA, actual,
                         "the metadata has version %s, not %" PRIu64, actual,
                         change->expected_version);
}

static enum wal_status add_record(struct wal__op *op,
                                  const struct wal__current_record *current,
                                  struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    const struct wal__session_record *record = &current->record;
    size_t size = wal__session_record_size(record);
    struct wal__op_frame *frame;
    uint8_t *payload;

    WAL__ASSERT(!batch->has_change && batch->change_prepared);
    WAL__ASSERT(record->schema_version != 0);
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.session = batch->session;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    op->reservation.texts += size - record->metadata.size;
    batch->has_change = true;
    batch->change_frame = op->frame_count - 1;
    return WAL_OK;
}

enum wal_status wal__batch_add_change(struct wal__op *op,
                                      const struct wal_session_change *change,
                                      struct wal_error *error)
{
    const uint32_t known = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE |
                           WAL_CHANGE_CWD | WAL_CHANGE_PROJECT |
                           WAL_CHANGE_SCHEMA | WAL_CHANGE_EXPECT |
                           WAL_CHANGE_EXPECT_SEQUENCE;
    struct wal__batch *batch = op->request;
    struct wal__current_record current = {.position = 0};
    enum wal_status status;
    bool differs = false;

    if (change->struct_size != sizeof(*change) ||
        (change->fields & ~known) != 0) {
        return wal__invalid(error,
                            "the struct_size or fields of the change are not "
                            "valid");
    }
    batch->conditional = (change->fields & WAL_CHANGE_EXPECT) != 0;
    batch->expects_sequence =
        (change->fields & WAL_CHANGE_EXPECT_SEQUENCE) != 0;
    batch->expected_sequence = change->expected_sequence;
    if (change->fields == WAL_CHANGE_EXPECT_SEQUENCE) {
        return WAL_OK; /* no metadata that could be stale */
    }
    wal__record_buf_init(&current.scratch, op->heap);
    status =
        wal__session_read_current(batch->core, batch->session, &current, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = apply_change(change, &current.record, &differs, error);
    if (status != WAL_OK) {
        goto done;
    }
    batch->change_prepared = true;
    batch->change_base = current.position;
    batch->expected_version = current.version;
    if (!differs) {
        goto done;
    }
    if (!batch->core->env.io->forgets) {
        status = check_version(change, &current, error);
    }
    if (status != WAL_OK) {
        goto done;
    }
    if (current.record.schema_version == 0) {
        wal__fail(error, WAL_ESCHEMA,
                  "the session has no schema version; migrate it first");
        wal__error_set_actual(error, "0", 1);
        status = WAL_ESCHEMA;
        goto done;
    }
    status = add_record(op, &current, error);
done:
    wal__record_buf_deinit(&current.scratch);
    return status;
}
