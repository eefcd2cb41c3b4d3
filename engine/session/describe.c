/*
 * describe.c - what a session is, from its summary (SPEC.md 5.4).
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/session/text.h"

/* Copies a text behind the others; room was reserved. */
static struct wal_slice keep(struct wal__buf *texts, struct wal__span text)
{
    struct wal_slice slice = {texts->data + texts->size, text.size};

    if (text.size > 0) {
        memcpy(texts->data + texts->size, text.data, text.size);
        texts->size += text.size;
    }
    return slice;
}

enum wal_status wal__session_describe(const struct wal__summary *summary,
                                      struct wal__buf *texts,
                                      struct wal_session_info *info)
{
    uint32_t size = info->struct_size;
    uint8_t *room;

    texts->size = 0;
    if (wal__buf_reserve(texts, wal__summary_text_size(summary) + 1, &room) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(info, 0, sizeof(*info));
    info->struct_size = size;
    info->number = summary->number;
    if ((summary->flags & WAL__SUMMARY_FORK) != 0) {
        info->flags |= WAL_SESSION_FORK;
    }
    if ((summary->flags & WAL__SUMMARY_DAMAGED) != 0) {
        info->flags |= WAL_SESSION_DAMAGED;
    }
    info->id = keep(texts, summary->id);
    info->cwd = keep(texts, summary->cwd);
    info->project = keep(texts, summary->project);
    info->title = keep(texts, summary->title);
    info->parent_id = keep(texts, summary->parent_id);
    info->head = keep(texts, summary->head_id);
    info->source = keep(texts, summary->source);
    info->created_ms = summary->created_ms;
    info->updated_ms = summary->updated_ms;
    info->entries = summary->entries + summary->inherited;
    info->inherited = summary->inherited;
    info->bytes = summary->bytes;
    info->last_sequence = summary->last_sequence;
    return WAL_OK;
}

/* Schema version and metadata come from the SESSION record itself. */
static enum wal_status add_record(struct wal_session *session,
                                  const struct wal__summary *summary,
                                  struct wal_session_info *info,
                                  struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__session_record record;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;
    size_t before = session->info.size;
    uint8_t *room;

    if (summary->session_position == 0) {
        return WAL_OK; /* the record was lost */
    }
    wal__buf_init(&scratch, core->env.heap);
    status = wal__log_read(&core->log, summary->session_position, &scratch,
                           &frame, &payload, error);
    if (status == WAL_OK &&
        (frame.type != WAL__FRAME_SESSION ||
         wal__session_record_decode(payload, &record) != WAL__FMT_OK)) {
        status = wal__fail(error, WAL_ECORRUPT, 0, NULL, 0,
                           "the record of session %" PRIu32 " is damaged",
                           summary->number);
    }
    if (status == WAL_OK &&
        wal__buf_reserve(&session->info, record.metadata.size + 1, &room) !=
            WAL_OK) {
        status = wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    if (status == WAL_OK) {
        /* The texts may have moved: describe again, behind them the rest. */
        status = wal__session_describe(summary, &session->info, info);
        session->info.size = before;
        info->schema_version = record.schema_version;
        info->metadata = keep(&session->info, record.metadata);
    }
    wal__buf_deinit(&scratch);
    return status;
}

enum wal_status wal__session_status(struct wal_session *session,
                                    struct wal_session_info *info,
                                    struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal_session_info filled = *info;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&session->info_mutex);
    status = wal__catalogue_get(&core->catalogue, session->number, &summary);
    if (status == WAL_OK) {
        status = wal__session_describe(&summary, &session->info, &filled);
    }
    if (status == WAL_OK) {
        status = add_record(session, &summary, &filled, error);
    } else {
        wal__fail(error, status, 0, NULL, 0, "the catalogue: %s",
                  wal_status_text(status));
    }
    if (status == WAL_OK) {
        *info = filled;
    }
    pthread_mutex_unlock(&session->info_mutex);
    wal__core_unlock(core);
    return status;
}

struct wal_session *wal__session_alloc(struct wal__core *core)
{
    struct wal_session *handle =
        wal__heap_zalloc(core->env.heap, sizeof(*handle));

    if (handle != NULL) {
        handle->core = core;
        pthread_mutex_init(&handle->info_mutex, NULL);
        wal__buf_init(&handle->info, core->env.heap);
    }
    return handle;
}

enum wal_status wal__session_handle(struct wal__core *core, uint32_t number,
                                    struct wal_session **session,
                                    struct wal_error *error)
{
    struct wal_session *handle = wal__session_alloc(core);
    struct wal__summary summary;
    enum wal_status status;

    if (handle == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        status = wal__catalogue_get(&core->catalogue, number, &summary);
        if (status == WAL_OK) {
            handle->text_size = wal__summary_text_size(&summary);
        }
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__session_free(handle);
        return status;
    }
    handle->number = number;
    *session = handle;
    return WAL_OK;
}

void wal__session_free(struct wal_session *session)
{
    if (session == NULL) {
        return;
    }
    pthread_mutex_destroy(&session->info_mutex);
    wal__buf_deinit(&session->info);
    wal__heap_free(session->core->env.heap, session);
}
