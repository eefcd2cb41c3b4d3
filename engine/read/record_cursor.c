/*
 * record_cursor.c - the records of a segment, by its index (record_cursor.h).
 * Locations are collected when the cursor is opened; records are read without a
 * lock, and their session is looked up when it changes.
 */
#include "engine/read/record_cursor.h"

#include <inttypes.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

/* --- locations ---------------------------------------------------------- */

static bool is_wanted(uint8_t type, uint8_t kind)
{
    return type == WAL__FRAME_SESSION || type == WAL__FRAME_DOC ||
           type == WAL__FRAME_DOC_DELETE ||
           (type == WAL__FRAME_ENTRY && kind != WAL__KIND_MESSAGE_DELTA_BATCH);
}

struct collector {
    struct wal_record_cursor *cursor;
    uint64_t after; /* sequence */
};

static enum wal_status add(const struct collector *collector, uint32_t session,
                           const struct wal__posting *posting)
{
    const struct wal__record_cursor_item item = {.sequence = posting->sequence,
                                                 .session = session,
                                                 .offset = posting->offset,
                                                 .type = posting->type};

    if (session == WAL__STORE_NUMBER || posting->sequence <= collector->after ||
        !is_wanted(posting->type, posting->kind)) {
        return WAL_OK;
    }
    return wal__buf_append(&collector->cursor->items, &item, sizeof(item));
}

static enum wal_status add_encoded(const struct collector *collector,
                                   uint32_t session, const uint8_t *postings,
                                   uint32_t count)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__posting posting;

        wal__posting_decode(postings + (size_t)i * WAL__POSTING_SIZE, &posting);
        status = add(collector, session, &posting);
    }
    return status;
}

static enum wal_status add_index(const struct collector *collector,
                                 const struct wal__index *index)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < index->header.session_count && status == WAL_OK;
         i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        status = add_encoded(collector, summary.number,
                             index->postings + (size_t)summary.first_posting *
                                                   WAL__POSTING_SIZE,
                             summary.posting_count);
    }
    return status;
}

/* Adds a session of the tail segment. */
static enum wal_status add_tail_session(void *ctx, uint32_t number)
{
    const struct collector *collector = ctx;
    const struct wal__core *core = collector->cursor->core;
    struct wal__tail_postings tail =
        wal__tail_index_postings(&core->tail_index, number);
    struct wal__buf postings;
    enum wal_status status =
        add_encoded(collector, number, tail.base, tail.base_count);

    wal__buf_init(&postings, core->env.heap);
    if (status == WAL_OK) {
        status = wal__tail_index_collect(&core->tail_index, &tail, &postings);
    }
    for (size_t at = 0; at < postings.size && status == WAL_OK;
         at += sizeof(struct wal__posting)) {
        struct wal__posting posting;

        memcpy(&posting, postings.data + at, sizeof(posting));
        status = add(collector, number, &posting);
    }
    wal__buf_deinit(&postings);
    return status;
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
    struct wal__segment *segment =
        wal__log_use_segment(&cursor->core->log, cursor->segment);
    bool has = segment != NULL && segment->header.salt == cursor->identity;

    if (segment != NULL) {
        wal__log_end_use(segment);
    }
    return has;
}

/* Whether the tail index has the records of the segment. A process that begins
 * the next segment seals the tail first: one that joins or reloads meanwhile
 * loads the index of the sealed tail as that of any other segment. */
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
    const struct collector collector = {cursor, after};
    const struct wal__index *index;
    enum wal_status status;

    cursor->items.size = 0;
    if (!has_segment(cursor)) {
        return fail_replaced(cursor, error);
    }
    if (is_in_tail_index(core, cursor->segment)) {
        status = wal__tail_index_visit_sessions(
            &core->tail_index, add_tail_session, (void *)&collector);
    } else {
        status = wal__index_set_get(&core->indexes, cursor->segment, &index);
        status = status == WAL_OK          ? add_index(&collector, index)
                 : status == WAL_ENOTFOUND ? WAL_ECORRUPT
                                           : status;
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status,
                           "cannot read the index of segment %016" PRIx64
                           ": %s",
                           cursor->segment, wal_status_text(status));
}

enum wal_status wal__record_cursor_open(
    struct wal__core *core, const struct wal_record_cursor_options *options,
    struct wal_record_cursor **cursor, struct wal_error *error)
{
    struct wal_record_cursor *opened =
        wal__heap_zalloc(core->env.heap, sizeof(*opened));
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
        wal__record_cursor_close(opened);
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

    for (uint32_t i = 0; i < annotations->redaction_count && status == WAL_OK;
         i++) {
        uint64_t target = annotations->redactions[i].target;

        status = wal__buf_append(&cursor->redacted, &target, sizeof(target));
    }
    return status;
}

/* Looks a session up. State lock for writing. */
static enum wal_status load_session(struct wal_record_cursor *cursor,
                                    uint32_t number, struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__branch_slot *slot = NULL;
    struct wal__summary summary;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, number, &summary);

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
        cursor->session_flags =
            (summary.flags & WAL__SUMMARY_DELETED) != 0   ? WAL_RECORD_DELETED
            : (summary.flags & WAL__SUMMARY_TRASHED) != 0 ? WAL_RECORD_TRASHED
                                                          : 0U;
        cursor->is_left_out = cursor->session_flags != 0 &&
                              (cursor->flags & WAL_RECORD_CURSOR_DELETED) == 0;
        status = wal__buf_append(&cursor->session_id, summary.id.data,
                                 summary.id.size);
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
               : wal__fail(error, status, "cannot look a session up: %s",
                           wal_status_text(status));
}

static bool is_loaded(const struct wal_record_cursor *cursor, uint32_t number)
{
    return cursor->session == number &&
           cursor->redaction_generation ==
               atomic_load_explicit(&cursor->core->redaction_generation,
                                    memory_order_acquire);
}

static bool is_redacted(const struct wal_record_cursor *cursor,
                        uint64_t sequence)
{
    const uint64_t *targets = (const void *)cursor->redacted.data;
    size_t low = 0;
    size_t high = cursor->redacted.size / sizeof(*targets);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (targets[middle] < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < cursor->redacted.size / sizeof(*targets) &&
           targets[low] == sequence;
}

/* --- reading ------------------------------------------------------------ */

/* WAL_ENOTFOUND without a record: it is left out. */
static enum wal_status read_item(struct wal_record_cursor *cursor,
                                 const struct wal__record_cursor_item *item,
                                 struct wal_record *record,
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
    if (status != WAL_OK || cursor->is_left_out ||
        is_redacted(cursor, item->sequence)) {
        return status == WAL_OK ? WAL_ENOTFOUND : status;
    }
    return wal__record_cursor_read(cursor,
                                   wal__position(cursor->segment, item->offset),
                                   item, record, error);
}

enum wal_status wal__record_cursor_next(struct wal_record_cursor *cursor,
                                        struct wal_record *record,
                                        struct wal_error *error)
{
    const struct wal__record_cursor_item *items =
        (const void *)cursor->items.data;
    size_t count = cursor->items.size / sizeof(*items);
    enum wal_status status = WAL_ENOTFOUND;

    while (status == WAL_ENOTFOUND && cursor->next < count) {
        uint64_t looked = 0;

        do {
            status = read_item(cursor, &items[cursor->next], record, error);
            if (status != WAL_OK && !has_segment(cursor)) {
                return fail_replaced(cursor, error);
            }
        } while (status == WAL_ECORRUPT &&
                 wal__core_look_again(cursor->core, &looked));
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

/* Finds the record of a session; *position leads to it. State lock for
 * writing. */
static enum wal_status find(struct wal_record_cursor *cursor, uint32_t session,
                            uint64_t sequence,
                            struct wal__record_cursor_item *item,
                            uint64_t *position, struct wal_error *error)
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
        (status == WAL_OK && (posting.sequence != sequence ||
                              !is_wanted(posting.type, posting.kind)))) {
        return WAL_ENOTFOUND;
    }
    if (status == WAL_OK && is_redacted(cursor, sequence)) {
        return wal__fail(error, WAL_EREDACTED,
                         "the entry with sequence number %" PRIu64
                         " was redacted",
                         sequence);
    }
    *item = (struct wal__record_cursor_item){
        .sequence = sequence, .session = session, .type = posting.type};
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot find a record: %s",
                           wal_status_text(status));
}

static enum wal_status fail_no_record(uint64_t sequence,
                                      struct wal_error *error)
{
    return wal__fail(error, WAL_ENOTFOUND,
                     "there is no record with sequence number %" PRIu64
                     " of that session",
                     sequence);
}

enum wal_status wal__record_cursor_get(struct wal_record_cursor *cursor,
                                       uint32_t session, uint64_t sequence,
                                       struct wal_record *record,
                                       struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__record_cursor_item item;
    uint64_t position = 0;
    uint64_t looked = 0;
    enum wal_status status;

    if (session == 0 || session == WAL__STORE_NUMBER) {
        return wal__invalid(error, "%" PRIu32 " is not the number of a session",
                            session);
    }
    do {
        status = wal__core_write_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = find(cursor, session, sequence, &item, &position, error);
        wal__core_unlock(core);
        if (status == WAL_OK) {
            status =
                wal__record_cursor_read(cursor, position, &item, record, error);
        }
    } while (wal__core_invalidate_derived(core, status, &looked));
    return status == WAL_ENOTFOUND ? fail_no_record(sequence, error) : status;
}

void wal__record_cursor_close(struct wal_record_cursor *cursor)
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
