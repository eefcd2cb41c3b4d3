/*
 * record_cursor.c - the log by its segments and records (agentwal/record.h): the list of the
 * segments, and the records of one segment, session by session. Locations are collected when the
 * cursor is opened; records are read without a lock, and their session is looked up when it
 * changes. One thread at a time per cursor.
 *
 * Invariant: an entry that was redacted before the call is not returned.
 */
#include <inttypes.h>

#include "agentwal/record.h"
#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/log/encrypt.h"
#include "engine/session/doc_cursor.h"
#include "engine/session/session.h"
#include "engine/store/core.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"

/* Location of a record to return. */
struct record_cursor_item {
    uint64_t sequence;
    uint32_t session;
    uint32_t offset; /* in the segment */
    uint8_t type;    /* of its frame */
};

struct wal_record_cursor {
    struct wal__core *core;
    uint32_t flags; /* enum wal_record_cursor_flag */
    uint64_t segment;
    uint64_t identity;
    uint64_t payload_limit;
    struct wal__buf items; /* struct record_cursor_item */
    size_t next;           /* rank of the next one */
    /* The session of the record returned last. */
    uint32_t session;       /* 0: none */
    uint32_t session_flags; /* enum wal_record_flag */
    bool is_left_out;
    uint64_t redaction_generation; /* as of which the next two were read */
    struct wal__buf redacted;      /* sequences of entries, ascending */
    struct wal__buf session_id;
    /* The record returned last. */
    struct wal__record_buf scratch;
    struct wal__buf payload; /* out of line */
    struct wal_entry entry;
    struct wal_doc doc;
    struct wal_session_info info;
};

struct wal_segment_cursor {
    struct wal__core *core;
    struct wal__buf items; /* struct wal_segment_info */
    size_t next;           /* bytes of items */
};

static enum wal_status fail_damaged(uint64_t position, uint64_t sequence, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
                        "the record with sequence number %" PRIu64 " is damaged", sequence);
}

/* Sets the payload of an entry that is stored as a blob. */
static enum wal_status load_payload(struct wal_record_cursor *cursor,
                                    const struct wal__entry_record *record, struct wal_error *error)
{
    struct wal_entry *entry = &cursor->entry;
    enum wal_status status;

    entry->payload = (struct wal_slice){NULL, 0};
    if (record->payload_size > cursor->payload_limit) {
        entry->flags |= WAL_ENTRY_OUT_OF_LINE;
        memcpy(entry->payload_digest, record->digest, WAL_DIGEST_SIZE);
        return WAL_OK;
    }
    status = wal__payload_load(cursor->core, record, &cursor->payload, error);
    if (status == WAL_OK) {
        entry->payload = (struct wal_slice){cursor->payload.data, cursor->payload.size};
    }
    return status;
}

static enum wal_status read_entry(struct wal_record_cursor *cursor, const struct wal__frame *frame,
                                  struct wal__span payload, uint64_t position,
                                  struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal_entry *entry = &cursor->entry;

    if (wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    if (record.is_erased) {
        return WAL_ENOTFOUND;
    }
    memset(entry, 0, sizeof(*entry));
    entry->struct_size = sizeof(*entry);
    entry->flags = record.form == WAL__ENTRY_LINE ? WAL_ENTRY_LINE : 0U;
    entry->flags |= frame->parent == 0 ? WAL_ENTRY_ROOT : 0U;
    entry->stream = frame->stream;
    entry->id = wal__text_slice(record.id);
    entry->type =
        wal__text_slice(frame->kind == WAL__KIND_NAMED ? record.type : wal__kind_name(frame->kind));
    entry->timestamp = wal__text_slice(record.time);
    entry->run_id = wal__text_slice(record.run);
    entry->payload = wal__text_slice(record.payload);
    entry->payload_size = record.payload_size;
    entry->meta = wal__text_slice(record.meta);
    entry->sequence = frame->sequence;
    return record.digest == NULL ? WAL_OK : load_payload(cursor, &record, error);
}

static enum wal_status read_doc(struct wal_record_cursor *cursor, const struct wal__frame *frame,
                                struct wal__span payload, uint64_t position,
                                struct wal_error *error)
{
    struct wal__doc_record record;
    struct wal_doc *doc = &cursor->doc;

    if (wal__doc_record_decode(payload, &record) != WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    if (wal__doc_key_is_reserved(record.key)) {
        return WAL_ENOTFOUND;
    }
    memset(doc, 0, sizeof(*doc));
    doc->struct_size = sizeof(*doc);
    doc->flags = frame->type == WAL__FRAME_DOC_DELETE ? WAL_DOC_DELETE : 0U;
    doc->key = wal__text_slice(record.key);
    doc->value = wal__text_slice(record.value);
    doc->version = frame->sequence;
    doc->modified_ms = record.modified_ms;
    return WAL_OK;
}

static enum wal_status read_session(struct wal_record_cursor *cursor,
                                    const struct wal__frame *frame, struct wal__span payload,
                                    uint64_t position, struct wal_error *error)
{
    struct wal__session_record record;
    struct wal_session_info *info = &cursor->info;
    if (wal__session_record_decode(payload, cursor->scratch.used->header.version, &record) !=
        WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    memset(info, 0, sizeof(*info));
    info->struct_size = sizeof(*info);
    info->schema_version = record.schema_version;
    info->number = frame->session;
    info->id = wal__text_slice(record.id);
    info->cwd = wal__text_slice(record.cwd);
    info->project = wal__text_slice(record.project);
    info->title = wal__text_slice(record.title);
    info->parent_id = wal__text_slice(record.parent_id);
    info->source = wal__text_slice(record.source);
    info->metadata = wal__text_slice(record.metadata);
    info->created_ms = record.created_ms;
    info->metadata_version = frame->sequence;
    return WAL_OK;
}

/* Reads the record into the member of its kind. */
static enum wal_status read_kind(struct wal_record_cursor *cursor, const struct wal__frame *frame,
                                 struct wal__span payload, uint64_t position,
                                 struct wal_record *record, struct wal_error *error)
{
    enum wal_status status;

    if (frame->type == WAL__FRAME_ENTRY) {
        status = read_entry(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_ENTRY;
        record->entry = &cursor->entry;
    } else if (frame->type == WAL__FRAME_SESSION) {
        status = read_session(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_SESSION;
        record->session = &cursor->info;
    } else {
        status = read_doc(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_DOC;
        record->doc = &cursor->doc;
    }
    return status;
}

/* Reads the record at a position whose session was
 * loaded. WAL_ENOTFOUND, without an error, when it is one that is left out. */
static enum wal_status record_cursor_read(struct wal_record_cursor *cursor, uint64_t position,
                                          const struct record_cursor_item *item,
                                          struct wal_record *record, struct wal_error *error)
{
    struct wal_record read = WAL_INIT(wal_record);
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status;

    wal__buf_deinit(&cursor->payload);
    status = wal__log_read(&cursor->core->log, position, &cursor->scratch, &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != item->sequence || frame.session != item->session ||
        frame.type != item->type) {
        return fail_damaged(position, item->sequence, error);
    }
    read.flags = cursor->session_flags;
    read.session_number = item->session;
    read.sequence = item->sequence;
    read.session_id = (struct wal_slice){cursor->session_id.data, cursor->session_id.size};
    status = read_kind(cursor, &frame, payload, position, &read, error);
    if (status == WAL_OK) {
        *record = read;
    }
    return status;
}

/* --- locations ---------------------------------------------------------- */

static bool is_wanted(const struct wal_record_cursor *cursor, const struct wal__posting *posting)
{
    switch (posting->type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        return true;
    case WAL__FRAME_ENTRY:
        return posting->kind != WAL__KIND_MESSAGE_DELTA_BATCH;
    case WAL__FRAME_RESTORE:
        return (cursor->flags & WAL_RECORD_CURSOR_RESTORED) != 0;
    default:
        return false;
    }
}

struct collector {
    struct wal_record_cursor *cursor;
    uint64_t after;   /* sequence */
    uint32_t session; /* whose postings are visited */
};

static enum wal_status add(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    const struct collector *collector = ctx;
    const struct record_cursor_item item = {.sequence = posting->sequence,
                                            .session = collector->session,
                                            .offset = posting->offset,
                                            .type = posting->type};

    (void)position;
    if (item.session == WAL__STORE_NUMBER || posting->sequence <= collector->after ||
        !is_wanted(collector->cursor, posting)) {
        return WAL_OK;
    }
    return wal__buf_append(&collector->cursor->items, &item, sizeof(item));
}

static enum wal_status add_index(struct collector *collector, const struct wal__index *index)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        collector->session = summary.number;
        status =
            wal__postings_visit(index->postings + (size_t)summary.first_posting * WAL__POSTING_SIZE,
                                summary.posting_count, index->header.id, add, collector);
    }
    return status;
}

/* Adds a session of the tail segment. */
static enum wal_status add_tail_session(void *ctx, uint32_t number)
{
    struct collector *collector = ctx;

    collector->session = number;
    return wal__core_visit_tail(collector->cursor->core, number, add, collector);
}

static enum wal_status fail_replaced(const struct wal_record_cursor *cursor,
                                     struct wal_error *error)
{
    return wal__fail(error, WAL_ENOTFOUND,
                     "the log has no segment %016" PRIx64
                     " with this identity; compaction may have replaced it",
                     cursor->segment);
}

/* Whether the log has the segment. Any time of an open log. */
static bool has_segment(const struct wal_record_cursor *cursor)
{
    struct wal__segment *segment = wal__log_use_segment(&cursor->core->log, cursor->segment);
    bool has = segment != NULL && segment->header.salt == cursor->identity;

    if (segment != NULL) {
        wal__log_end_use(segment);
    }
    return has;
}

/* Whether the tail index has the records of the segment. A process that begins the next segment
 * seals the tail first: one that joins or reloads meanwhile loads the index of the sealed tail as
 * that of any other segment. */
static bool is_in_tail_index(const struct wal__core *core, uint64_t id)
{
    const struct wal__segment *tail = core->log.tail_segment;

    return tail != NULL && tail->id == id && !tail->sealed;
}

/* State lock for writing. */
static enum wal_status collect(struct wal_record_cursor *cursor, uint64_t after,
                               struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct collector collector = {.cursor = cursor, .after = after};
    const struct wal__index *index;
    enum wal_status status;

    cursor->items.size = 0;
    if (!has_segment(cursor)) {
        return fail_replaced(cursor, error);
    }
    if (is_in_tail_index(core, cursor->segment)) {
        status = wal__tail_index_visit_sessions(&core->tail_index, add_tail_session, &collector);
    } else {
        status = wal__index_set_get(&core->indexes, cursor->segment, &index);
        status = status == WAL_OK          ? add_index(&collector, index)
                 : status == WAL_ENOTFOUND ? WAL_ECORRUPT
                                           : status;
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot read the index of segment %016" PRIx64 ": %s",
                           cursor->segment, wal_status_text(status));
}

/* options is of this library's size, with a payload_limit. */
static enum wal_status record_cursor_open(struct wal__core *core,
                                          const struct wal_record_cursor_options *options,
                                          struct wal_record_cursor **cursor,
                                          struct wal_error *error)
{
    struct wal_record_cursor *opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    uint64_t looked = 0;
    enum wal_status status = WAL_OK;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    opened->flags = options->flags;
    opened->segment = options->segment;
    opened->identity = options->identity;
    opened->payload_limit = options->payload_limit;
    wal__buf_init(&opened->items, core->env.heap);
    wal__buf_init(&opened->redacted, core->env.heap);
    wal__buf_init(&opened->session_id, core->env.heap);
    wal__buf_init(&opened->payload, core->env.heap);
    wal__record_buf_init(&opened->scratch, core->env.heap);
    wal__core_retain(core);
    if (options->segment != 0) {
        do {
            status = wal__core_write_lock(core, error);
            if (status == WAL_OK) {
                status = collect(opened, options->after_sequence, error);
                wal__core_unlock(core);
            }
        } while (wal__core_invalidate_derived(core, status, &looked));
    }
    if (status != WAL_OK) {
        wal_record_cursor_close(opened);
        return status;
    }
    *cursor = opened;
    return WAL_OK;
}

/* --- sessions ----------------------------------------------------------- */

static enum wal_status copy_redactions(struct wal_record_cursor *cursor,
                                       const struct wal__branch_slot *slot)
{
    const struct wal__annotations *annotations = &slot->annotations;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < annotations->redaction_count && status == WAL_OK; i++) {
        uint64_t target = annotations->redactions[i].target;

        status = wal__buf_append(&cursor->redacted, &target, sizeof(target));
    }
    return status;
}

/* Looks a session up. State lock for writing. */
static enum wal_status load_session(struct wal_record_cursor *cursor, uint32_t number,
                                    struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__branch_slot *slot = NULL;
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&core->catalogue, number, &summary);

    cursor->session = 0;
    cursor->session_flags = 0;
    cursor->redacted.size = 0;
    cursor->session_id.size = 0;
    cursor->redaction_generation = atomic_load(&core->redaction_generation);
    cursor->is_left_out = status == WAL_ENOTFOUND;
    if (status == WAL_ENOTFOUND) {
        /* The catalogue forgets deleted sessions. */
        cursor->session = number;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        cursor->session_flags = (summary.flags & WAL__SUMMARY_DELETED) != 0   ? WAL_RECORD_DELETED
                                : (summary.flags & WAL__SUMMARY_TRASHED) != 0 ? WAL_RECORD_TRASHED
                                                                              : 0U;
        cursor->is_left_out =
            cursor->session_flags != 0 && (cursor->flags & WAL_RECORD_CURSOR_DELETED) == 0;
        status = wal__buf_append(&cursor->session_id, summary.id.data, summary.id.size);
    }
    if (status == WAL_OK && !cursor->is_left_out) {
        status = wal__core_get_branch(core, number, &slot, error);
        if (status != WAL_OK) {
            return status;
        }
        status = copy_redactions(cursor, slot);
    }
    if (status == WAL_OK) {
        cursor->session = number;
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot look a session up: %s", wal_status_text(status));
}

static bool is_loaded(const struct wal_record_cursor *cursor, uint32_t number)
{
    return cursor->session == number &&
           cursor->redaction_generation ==
               atomic_load_explicit(&cursor->core->redaction_generation, memory_order_acquire);
}

static bool is_redacted(const struct wal_record_cursor *cursor, uint64_t sequence)
{
    const uint64_t *targets = (const void *)cursor->redacted.data;
    size_t count = cursor->redacted.size / sizeof(*targets);
    size_t rank = wal__lower_bound(targets, count, sizeof(*targets), 0, sequence);

    return rank < count && targets[rank] == sequence &&
           (cursor->flags & WAL_RECORD_CURSOR_REDACTED) == 0;
}

/* --- reading ------------------------------------------------------------ */

static enum wal_status find(struct wal_record_cursor *cursor, uint32_t session, uint64_t sequence,
                            struct record_cursor_item *item, uint64_t *position,
                            struct wal_error *error);

/* Reads the entry that a RESTORE record names. WAL_ENOTFOUND when it is hidden again, or gone. */
static enum wal_status read_restored(struct wal_record_cursor *cursor, uint64_t position,
                                     const struct record_cursor_item *item,
                                     struct wal_record *record, struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct record_cursor_item entry;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&core->log, position, &cursor->scratch, &frame, &payload, error);

    if (status == WAL_OK) {
        status = wal__core_write_lock_or_stale(core, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = find(cursor, item->session, frame.parent, &entry, &position, error);
    wal__core_unlock(core);
    if (status == WAL_OK) {
        status = record_cursor_read(cursor, position, &entry, record, error);
    }
    if (status == WAL_OK) {
        record->kind = WAL_RECORD_RESTORED;
        record->sequence = item->sequence;
    }
    return status == WAL_EREDACTED ? WAL_ENOTFOUND : status;
}

/* Reads the record of an item whose session was loaded; as record_cursor_read. */
static enum wal_status read_at(struct wal_record_cursor *cursor, uint64_t position,
                               const struct record_cursor_item *item, struct wal_record *record,
                               struct wal_error *error)
{
    return item->type == WAL__FRAME_RESTORE
               ? read_restored(cursor, position, item, record, error)
               : record_cursor_read(cursor, position, item, record, error);
}

/* WAL_ENOTFOUND without a record: it is left out. */
static enum wal_status read_item(struct wal_record_cursor *cursor,
                                 const struct record_cursor_item *item, struct wal_record *record,
                                 struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    enum wal_status status = WAL_OK;

    if (!is_loaded(cursor, item->session)) {
        status = wal__core_write_lock_or_stale(core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = load_session(cursor, item->session, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK || cursor->is_left_out || is_redacted(cursor, item->sequence)) {
        return status == WAL_OK ? WAL_ENOTFOUND : status;
    }
    return read_at(cursor, wal__position(cursor->segment, item->offset), item, record, error);
}

static enum wal_status record_cursor_next(struct wal_record_cursor *cursor,
                                          struct wal_record *record, struct wal_error *error)
{
    const struct record_cursor_item *items = (const void *)cursor->items.data;
    size_t count = cursor->items.size / sizeof(*items);
    enum wal_status status = WAL_ENOTFOUND;

    while (status == WAL_ENOTFOUND && cursor->next < count) {
        uint64_t looked = 0;

        do {
            status = read_item(cursor, &items[cursor->next], record, error);
            if (status != WAL_OK && !has_segment(cursor)) {
                return fail_replaced(cursor, error);
            }
        } while (status == WAL_ECORRUPT && wal__core_look_again(cursor->core, &looked));
        if (status != WAL_ENOMEM) {
            cursor->next++;
        }
    }
    if (status == WAL_ENOTFOUND) {
        wal__record_buf_release(&cursor->scratch);
        return WAL_END;
    }
    return status;
}

/* Finds the record of a session; *position leads to it. State lock for writing. */
static enum wal_status find(struct wal_record_cursor *cursor, uint32_t session, uint64_t sequence,
                            struct record_cursor_item *item, uint64_t *position,
                            struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__posting_cursor postings;
    struct wal__posting posting;
    struct wal__summary summary;
    enum wal_status status = load_session(cursor, session, error);

    if (status != WAL_OK || cursor->is_left_out) {
        return status == WAL_OK ? WAL_ENOTFOUND : status;
    }
    status = wal__catalogue_get(&core->catalogue, session, &summary);
    if (status == WAL_OK) {
        wal__posting_cursor_begin(&postings, core, &summary, sequence);
        status = wal__posting_cursor_previous(&postings, &posting, position);
    }
    if (status == WAL_END ||
        (status == WAL_OK && (posting.sequence != sequence || !is_wanted(cursor, &posting)))) {
        return WAL_ENOTFOUND;
    }
    if (status == WAL_OK && is_redacted(cursor, sequence)) {
        return wal__fail(error, WAL_EREDACTED,
                         "the entry with sequence number %" PRIu64 " was redacted", sequence);
    }
    *item =
        (struct record_cursor_item){.sequence = sequence, .session = session, .type = posting.type};
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot find a record: %s", wal_status_text(status));
}

static enum wal_status record_cursor_get(struct wal_record_cursor *cursor, uint32_t session,
                                         uint64_t sequence, struct wal_record *record,
                                         struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct record_cursor_item item;
    uint64_t position = 0;
    uint64_t looked = 0;
    enum wal_status status;

    if (session == 0 || session == WAL__STORE_NUMBER) {
        return wal__invalid(error, "%" PRIu32 " is not the number of a session", session);
    }
    do {
        status = wal__core_write_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = find(cursor, session, sequence, &item, &position, error);
        wal__core_unlock(core);
        if (status == WAL_OK) {
            status = read_at(cursor, position, &item, record, error);
        }
    } while (wal__core_invalidate_derived(core, status, &looked));
    return status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ENOTFOUND,
                           "there is no record with sequence number %" PRIu64 " of that session",
                           sequence)
               : status;
}

void wal_record_cursor_close(struct wal_record_cursor *cursor)
{
    struct wal__core *core;

    if (cursor == NULL) {
        return;
    }
    core = cursor->core;
    wal__buf_deinit(&cursor->items);
    wal__buf_deinit(&cursor->redacted);
    wal__buf_deinit(&cursor->session_id);
    wal__buf_deinit(&cursor->payload);
    wal__record_buf_deinit(&cursor->scratch);
    wal__heap_free(core->env.heap, cursor);
    wal__core_release(core);
}

/* The highest sequence number of a record in the segment of a rank or before it. State lock. */
static uint64_t last_sequence(const struct wal__log *log, uint32_t rank)
{
    const struct wal__segment *segment = wal__log_segment_at(log, rank);
    const struct wal__segment *next;

    if (rank + 1 == wal__log_segment_count(log)) {
        return log->last_sequence;
    }
    next = wal__log_segment_at(log, rank + 1);
    if (next->has_open) {
        return next->open.last_sequence;
    }
    /* Of the next one OPEN is damaged. */
    return wal__segment_is_rewritten(&segment->header) ? segment->header.rewrite.last_sequence
                                                       : segment->trailer.last_sequence;
}

/* State lock for reading. */
static enum wal_status collect_segments(struct wal_segment_cursor *cursor)
{
    const struct wal__log *log = &cursor->core->log;
    uint32_t count = wal__log_segment_count(log);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        const struct wal__segment *segment = wal__log_segment_at(log, i);
        struct wal_segment_info info = WAL_INIT(wal_segment_info);

        info.flags = i + 1 == count ? WAL_SEGMENT_TAIL : 0U;
        if (wal__segment_is_rewritten(&segment->header)) {
            info.flags |= WAL_SEGMENT_REWRITTEN;
        }
        info.id = segment->id;
        info.identity = segment->header.salt;
        info.end = atomic_load(&segment->end);
        info.last_sequence = last_sequence(log, i);
        status = wal__buf_append(&cursor->items, &info, sizeof(info));
    }
    return status;
}

static enum wal_status segment_cursor_open(struct wal__core *core,
                                           struct wal_segment_cursor **cursor,
                                           struct wal_error *error)
{
    struct wal_segment_cursor *opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    wal__buf_init(&opened->items, core->env.heap);
    wal__core_retain(core);
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        status = collect_segments(opened) == WAL_OK ? WAL_OK : wal__no_memory(error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal_segment_cursor_close(opened);
        return status;
    }
    *cursor = opened;
    return WAL_OK;
}

/* WAL_END after the last one. */
static enum wal_status segment_cursor_next(struct wal_segment_cursor *cursor,
                                           struct wal_segment_info *segment)
{
    if (cursor->next == cursor->items.size) {
        return WAL_END;
    }
    WAL__ASSERT(cursor->items.size - cursor->next >= sizeof(*segment));
    memcpy(segment, cursor->items.data + cursor->next, sizeof(*segment));
    cursor->next += sizeof(*segment);
    return WAL_OK;
}

void wal_segment_cursor_close(struct wal_segment_cursor *cursor)
{
    struct wal__core *core;

    if (cursor == NULL) {
        return;
    }
    core = cursor->core;
    wal__buf_deinit(&cursor->items);
    wal__heap_free(core->env.heap, cursor);
    wal__core_release(core);
}

enum { PAYLOAD_LIMIT = 16 * 1024 * 1024 };

static const char null_place[] = "the place for the cursor is null";

enum wal_status wal_segment_cursor_open(struct wal_store *store, struct wal_segment_cursor **cursor,
                                        struct wal_error *error)
{
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, null_place);
    }
    return status == WAL_OK ? segment_cursor_open(&store->core, cursor, error) : status;
}

enum wal_status wal_segment_cursor_next(struct wal_segment_cursor *cursor,
                                        struct wal_segment_info *segment, struct wal_error *error)
{
    struct wal_segment_info own = WAL_INIT(wal_segment_info);
    enum wal_status status = wal__check_output(cursor == NULL ? NULL : cursor->core,
                                               WAL__STRUCT(wal_segment_info), segment, error);

    if (status == WAL_OK) {
        status = segment_cursor_next(cursor, &own);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_segment_info), segment, &own);
    }
    return status;
}

static enum wal_status load_options(const struct wal_record_cursor_options *in,
                                    struct wal_record_cursor_options *options,
                                    struct wal_error *error)
{
    const uint32_t known =
        WAL_RECORD_CURSOR_DELETED | WAL_RECORD_CURSOR_REDACTED | WAL_RECORD_CURSOR_RESTORED;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_record_cursor_options), options, in, error);

    if (status == WAL_OK && (options->flags & ~known) != 0) {
        status = wal__invalid(error, "the flags of the record options are not valid");
    }
    if (options->payload_limit == 0) {
        options->payload_limit = PAYLOAD_LIMIT;
    }
    return status;
}

enum wal_status wal_record_cursor_open(struct wal_store *store,
                                       const struct wal_record_cursor_options *options,
                                       struct wal_record_cursor **cursor, struct wal_error *error)
{
    struct wal_record_cursor_options own = {0};
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, null_place);
    }
    if (status == WAL_OK) {
        status = load_options(options, &own, error);
    }
    return status == WAL_OK ? record_cursor_open(&store->core, &own, cursor, error) : status;
}

enum wal_status wal_record_cursor_next(struct wal_record_cursor *cursor, struct wal_record *record,
                                       struct wal_error *error)
{
    struct wal_record own = WAL_INIT(wal_record);
    enum wal_status status = wal__check_output(cursor == NULL ? NULL : cursor->core,
                                               WAL__STRUCT(wal_record), record, error);

    if (status == WAL_OK) {
        status = record_cursor_next(cursor, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_record), record, &own);
    }
    return status;
}

enum wal_status wal_record_cursor_get(struct wal_record_cursor *cursor, uint32_t session_number,
                                      uint64_t sequence, struct wal_record *record,
                                      struct wal_error *error)
{
    struct wal_record own = WAL_INIT(wal_record);
    enum wal_status status = wal__check_output(cursor == NULL ? NULL : cursor->core,
                                               WAL__STRUCT(wal_record), record, error);

    if (status == WAL_OK) {
        status = record_cursor_get(cursor, session_number, sequence, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_record), record, &own);
    }
    return status;
}

/* --- derived files ------------------------------------------------------ */

uint64_t wal_derived_overhead(const struct wal_store *store)
{
    return store != NULL && store->core.env.keyring != NULL ? (uint64_t)WAL__FILE_CIPHER_SIZE : 0;
}

static enum wal_status check_derived(struct wal_store *store, const char *name,
                                     struct wal_slice bytes, const void *out,
                                     struct wal_error *error)
{
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    return status == WAL_OK && (wal_derived_overhead(store) == 0 || name == NULL || out == NULL ||
                                (bytes.data == NULL && bytes.size > 0))
               ? wal__invalid(error, "a name or bytes are null, or the store is not encrypted")
               : status;
}

enum wal_status wal_derived_encrypt(struct wal_store *store, const char *name,
                                    struct wal_slice bytes, void *out, struct wal_error *error)
{
    enum wal_status status = check_derived(store, name, bytes, out, error);

    if (status == WAL_OK &&
        wal__encrypt_file(store->core.env.keyring, name,
                          (struct wal__span){bytes.data, (size_t)bytes.size}, out) != WAL_OK) {
        status = wal__no_memory(error);
    }
    return status;
}

enum wal_status wal_derived_decrypt(struct wal_store *store, const char *name,
                                    struct wal_slice bytes, void *out, struct wal_error *error)
{
    const struct wal__span stored = {bytes.data, (size_t)bytes.size};
    enum wal_status status = check_derived(store, name, bytes, out, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__decrypted_size(stored) + WAL__FILE_CIPHER_SIZE == bytes.size
                 ? wal__decrypt_file(store->core.env.keyring, name, stored, out)
                 : WAL_ECORRUPT;
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail(error, WAL_ECORRUPT,
                                        "%s was not encrypted by the keys of this store, or "
                                        "changed since",
                                        name);
}
