/*
 * session_info.c - the info of a session, from its summary and SESSION record
 * (SPEC.md 5.4), and session handles. Any thread; functions that take a summary
 * need the state lock for reading.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/lookup.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"
#include "format/bytes/assert.h"

/* Appends a copy of a text; the space is reserved. */
static struct wal_slice copy_text(struct wal__buf *texts, struct wal__span text)
{
    struct wal_slice slice = {texts->data + texts->size, text.size};

    WAL__ASSERT(text.size <= texts->capacity - texts->size);
    if (text.size > 0) {
        memcpy(texts->data + texts->size, text.data, text.size);
        texts->size += text.size;
    }
    return slice;
}

/* The first user message; its text may be kept by another session of the
 * lineage. */
static enum wal_status find_first_text(const struct wal__core *core,
                                       const struct wal__summary *summary,
                                       struct wal__span *text)
{
    struct wal__summary owner;
    enum wal_status status;

    *text = (struct wal__span){NULL, 0};
    if (summary->first_sequence == 0) {
        return WAL_OK;
    }
    if (summary->first_owner == summary->number) {
        *text = summary->first_text;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, summary->first_owner, &owner);
    if (status == WAL_OK && owner.first_sequence == summary->first_sequence) {
        *text = owner.first_text;
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static uint32_t public_flags(uint32_t flags)
{
    return ((flags & WAL__SUMMARY_FORK) != 0 ? WAL_SESSION_FORK : 0) |
           ((flags & WAL__SUMMARY_DAMAGED) != 0 ? WAL_SESSION_DAMAGED : 0) |
           ((flags & WAL__SUMMARY_MOVED) != 0 ? WAL_SESSION_MOVED : 0) |
           ((flags & WAL__SUMMARY_DELETED) != 0   ? WAL_SESSION_DELETED
            : (flags & WAL__SUMMARY_TRASHED) != 0 ? WAL_SESSION_TRASHED
                                                  : 0);
}

/* The copy of a summary's text, given the copy of all its texts. */
static struct wal_slice relocate(const struct wal__summary *summary,
                                 struct wal__span text, const uint8_t *to)
{
    size_t offset = text.size > 0 ? (size_t)(text.data - summary->id.data) : 0;

    WAL__ASSERT(text.size == 0 || text.data >= summary->id.data);
    return (struct wal_slice){to + offset, text.size};
}

/* Copies the texts of a summary, which are contiguous in the catalogue. */
static void copy_texts(const struct wal__summary *summary, size_t size,
                       struct wal__buf *texts, struct wal_session_info *info)
{
    const uint8_t *to = texts->data + texts->size;

    WAL__ASSERT(size <= texts->capacity - texts->size);
    memcpy(texts->data + texts->size, summary->id.data, size);
    texts->size += size;
    info->id = relocate(summary, summary->id, to);
    info->cwd = relocate(summary, summary->cwd, to);
    info->project = relocate(summary, summary->project, to);
    info->title = relocate(summary, summary->title, to);
    info->parent_id = relocate(summary, summary->parent_id, to);
    info->head = relocate(summary, summary->head_id, to);
    info->source = relocate(summary, summary->source, to);
}

/* metadata: that of the SESSION record, or empty. */
static enum wal_status fill_info(const struct wal__core *core,
                                 const struct wal__summary *summary,
                                 struct wal__span metadata,
                                 struct wal__buf *texts,
                                 struct wal_session_info *info)
{
    struct wal__span first_text;
    enum wal_status status = find_first_text(core, summary, &first_text);
    size_t size = wal__summary_text_size(summary);
    uint8_t *room;

    if (status != WAL_OK) {
        return status;
    }
    texts->size = 0;
    if (wal__buf_reserve(texts, size + metadata.size + first_text.size,
                         &room) != WAL_OK) {
        return WAL_ENOMEM;
    }
    info->schema_version = summary->schema_version;
    info->number = summary->number;
    info->flags = public_flags(summary->flags);
    copy_texts(summary, size, texts, info);
    info->metadata = copy_text(texts, metadata);
    info->first_text = first_text.data == summary->first_text.data
                           ? relocate(summary, first_text, info->id.data)
                           : copy_text(texts, first_text);
    WAL__ASSERT(info->id.data == texts->data && texts->size <= texts->capacity);
    info->created_ms = summary->created_ms;
    info->updated_ms = summary->updated_ms;
    info->entries = summary->entries + summary->inherited;
    info->inherited = summary->inherited;
    info->bytes = summary->bytes;
    info->last_sequence = summary->last_sequence;
    info->metadata_version = 0;
    info->documents = summary->documents;
    return WAL_OK;
}

enum wal_status wal__session_fill_info(const struct wal__core *core,
                                       const struct wal__summary *summary,
                                       struct wal__buf *texts,
                                       struct wal_session_info *info)
{
    return fill_info(core, summary, (struct wal__span){NULL, 0}, texts, info);
}

enum wal_status
wal__core_read_session_record(struct wal__core *core, uint64_t position,
                              struct wal__record_buf *scratch,
                              struct wal__session_record *record,
                              uint64_t *sequence, struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status;
    uint32_t version;

    status =
        wal__log_read(&core->log, position, scratch, &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    version = scratch->used->header.version;
    if (frame.type != WAL__FRAME_SESSION ||
        wal__session_record_decode(payload, version, record) != WAL__FMT_OK) {
        return wal__fail_at(
            error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
            "the record of session %" PRIu32 " is damaged", frame.session);
    }
    *sequence = frame.sequence;
    return WAL_OK;
}

/* Under the state lock and info_mutex. */
static enum wal_status read_info(struct wal_session *session,
                                 struct wal__record_buf *scratch,
                                 struct wal_session_info *info,
                                 struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__session_record record = {0};
    struct wal__summary summary;
    uint64_t sequence = 0;
    enum wal_status status =
        wal__session_find(core, session->number, &summary, error);

    if (status != WAL_OK) {
        return status;
    }
    if (summary.session_position != 0) {
        status = wal__core_read_session_record(
            core, summary.session_position, scratch, &record, &sequence, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status =
        fill_info(core, &summary, record.metadata, &session->info_texts, info);
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s",
                         wal_status_text(status));
    }
    info->metadata_version = sequence;
    return WAL_OK;
}

enum wal_status wal__session_get_info(struct wal_session *session,
                                      struct wal_session_info *info,
                                      struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal_session_info filled = *info;
    struct wal__record_buf scratch;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__record_buf_init(&scratch, core->env.heap);
    pthread_mutex_lock(&session->info_mutex);
    status = read_info(session, &scratch, &filled, error);
    if (status == WAL_OK) {
        *info = filled;
    }
    pthread_mutex_unlock(&session->info_mutex);
    wal__core_unlock(core);
    wal__record_buf_deinit(&scratch);
    return status;
}

struct wal_session *wal__session_alloc(struct wal__core *core)
{
    struct wal_session *handle =
        wal__heap_zalloc(core->env.heap, sizeof(*handle));

    if (handle != NULL) {
        handle->core = core;
        wal__core_retain(core);
        pthread_mutex_init(&handle->info_mutex, NULL);
        wal__buf_init(&handle->info_texts, core->env.heap);
        wal__lookup_init(&handle->lookup);
    }
    return handle;
}

enum wal_status wal__session_open(struct wal__core *core, uint32_t number,
                                  struct wal_session **session,
                                  struct wal_error *error)
{
    struct wal_session *handle = wal__session_alloc(core);
    struct wal__summary summary;
    enum wal_status status;

    if (handle == NULL) {
        return wal__no_memory(error);
    }
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        status = wal__catalogue_get(&core->catalogue, number, &summary);
        if (status == WAL_OK) {
            handle->text_size = wal__summary_text_size(&summary);
            handle->depth = summary.depth;
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
    struct wal__core *core;

    if (session == NULL) {
        return;
    }
    core = session->core;
    if (session->claim.is_held &&
        wal__control_is_same_process(&core->control)) {
        wal__core_release_claim(core, &session->claim);
    }
    pthread_mutex_destroy(&session->info_mutex);
    wal__buf_deinit(&session->info_texts);
    wal__lookup_deinit(&session->lookup);
    wal__heap_free(core->env.heap, session);
    wal__core_release(core);
}
