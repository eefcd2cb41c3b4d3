/*
 * transfer_records.c - finds, reads and compares the records of both stores, and reports what a
 * transfer refuses.
 *
 * The entries of a session in the other store, in log order, are a beginning of those here, or
 * more, or others. Redactions are left out of the order: a redaction that another session holds is
 * repeated in the session itself when that one is not taken along.
 *
 * Documents are compared key by key. A key has a beginning in common, or the newest version of one
 * side is an older one of the other; else it was changed on both sides.
 *
 * Content is files of checkpoints, and payloads that are blobs (SPEC.md 5.12,
 * 5.13). Memory: a few MiB, and the longest list of files. Payloads of more
 * than 4 MiB are mapped files.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/care/record_copy.h"
#include "engine/care/transfer.h"
#include "engine/files/checkpoint.h"
#include "format/bytes/crc32.h"
#include "format/index/file_list.h"

/* --- sessions ------------------------------------------------------------- */

struct wal__transfer_session *wal__transfer_find(const struct wal__transfer *transfer,
                                                 uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&transfer->session_map, wal__transfer_hash(number), &cursor, &rank)) {
        if (transfer->sessions[rank]->number == number) {
            return transfer->sessions[rank];
        }
    }
    return NULL;
}

enum wal_status wal__transfer_open(struct wal__transfer *transfer, const char *id,
                                   struct wal_session **session)
{
    return wal_session_open(transfer->to_store, (struct wal_slice){id, strlen(id)}, session,
                            &transfer->error);
}

/* --- the records of a session --------------------------------------------- */

/* Makes what redacted an entry, and was undone, records that hide nothing. */
static void undo_redactions(struct wal__transfer_records *records, uint64_t target)
{
    struct wal__transfer_record *items = (void *)records->items.data;
    size_t count = records->items.size / sizeof(*items);

    for (size_t i = 0; i < count; i++) {
        if (items[i].type == WAL__FRAME_REDACT && items[i].parent == target) {
            items[i].type = WAL__FRAME_RESTORE;
        }
    }
}

/* Lists the entries that are hidden. */
static enum wal_status list_hidden(struct wal__transfer_records *records)
{
    const struct wal__transfer_record *items = (const void *)records->items.data;
    size_t count = records->items.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        if (items[i].type == WAL__FRAME_REDACT) {
            status = wal__buf_append(&records->hidden, &items[i].parent, sizeof(items[i].parent));
        }
    }
    wal__buf_sort(&records->hidden, sizeof(uint64_t), wal__compare_u64);
    return status;
}

static enum wal_status collect(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    struct wal__transfer_records *records = ctx;
    const struct wal__transfer_record record = {
        .sequence = posting->sequence,
        .position = position,
        .parent = posting->parent,
        .id_hash = posting->id_hash,
        .type = posting->type,
        .kind = posting->kind,
        .stream = posting->stream,
    };
    enum wal_status status = WAL_OK;

    if (posting->type == WAL__FRAME_ENTRY && (posting->flags & WAL__FRAME_PROVISIONAL) != 0) {
        return WAL_OK; /* a copy is without deltas: they may go at any time */
    }
    if (posting->type == WAL__FRAME_RESTORE) {
        undo_redactions(records, posting->parent);
    }
    return status == WAL_OK ? wal__buf_append(&records->items, &record, sizeof(record)) : status;
}

enum wal_status wal__transfer_read_numbers(struct wal__transfer *transfer, struct wal__core *core,
                                           uint32_t number, struct wal__summary *summary)
{
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, number, summary);
    wal__core_unlock(core);
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(&transfer->error, status, "the catalogue cannot be read: %s",
                           wal_status_text(status));
}

enum wal_status wal__transfer_collect(struct wal__core *core, uint32_t number,
                                      struct wal__transfer_records *records,
                                      struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    records->items.size = 0;
    records->hidden.size = 0;
    records->end = core->log.last_sequence;
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK) {
        status = wal__core_visit_postings(core, &summary, collect, records);
    } else if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        status = WAL_OK;
    }
    wal__core_unlock(core);
    status = status == WAL_OK ? list_hidden(records) : status;
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot read the index: %s", wal_status_text(status));
}

/* --- redactions ----------------------------------------------------------- */

bool wal__transfer_is_hidden(const struct wal__transfer *transfer, uint64_t sequence)
{
    const struct wal__transfer_redaction key = {.target = sequence};
    const struct wal__buf *items = &transfer->redactions;

    return items->size > 0 &&
           bsearch(&key, items->data, items->size / sizeof(struct wal__transfer_redaction),
                   sizeof(struct wal__transfer_redaction), wal__compare_u64) != NULL;
}

enum wal_status wal__transfer_read_redact(struct wal__transfer *transfer, uint64_t position,
                                          struct wal__redact_record *record)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__log_read(&transfer->from->log, position, &transfer->to_scratch,
                                           &frame, &payload, &transfer->error);

    if (status == WAL_OK && (frame.type != WAL__FRAME_REDACT ||
                             wal__redact_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail(&transfer->error, WAL_ECORRUPT, "a redaction is not well-formed");
    }
    return status;
}

bool wal__transfer_is_local(uint64_t key_hash)
{
    static const char rewind[] = "\0rewind";
    static const char moved[] = "\0moved";

    return key_hash == wal__id_hash(rewind, sizeof(rewind) - 1) ||
           key_hash == wal__id_hash(moved, sizeof(moved) - 1);
}

/* --- one record ----------------------------------------------------------- */

enum wal_status wal__transfer_read_doc(struct wal__core *core, uint64_t position,
                                       struct wal__record_buf *scratch, struct wal__frame *frame,
                                       struct wal__doc_record *record, struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status = wal__log_read(&core->log, position, scratch, frame, &payload, error);

    if (status == WAL_OK &&
        ((frame->type != WAL__FRAME_DOC && frame->type != WAL__FRAME_DOC_DELETE) ||
         wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
                              "a document is not well-formed");
    }
    return status;
}

enum wal_status wal__transfer_read_entry(struct wal__core *core, uint64_t position,
                                         struct wal__record_buf *scratch, struct wal__frame *frame,
                                         struct wal__entry_record *record, struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status = wal__log_read(&core->log, position, scratch, frame, &payload, error);

    if (status == WAL_OK && (frame->type != WAL__FRAME_ENTRY ||
                             wal__entry_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
                              "an entry is not well-formed");
    }
    return status;
}

enum wal_status wal__transfer_read_id(struct wal__core *core, uint32_t number, uint32_t stream,
                                      uint64_t sequence, struct wal__record_buf *scratch,
                                      struct wal__transfer_id *id, struct wal_error *error)
{
    struct wal__entry_location found;
    struct wal__span text;
    enum wal_status status;

    if (id->sequence == sequence) {
        return WAL_OK;
    }
    status = wal__core_write_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_sequence(core, number, stream, sequence, &found, error);
    wal__core_unlock(core);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, WAL_EDAMAGED,
                         "an entry that others follow is lost; `agentwal "
                         "salvage` makes a store without it");
    }
    if (status == WAL_OK) {
        status = wal__core_read_id(core, found.position, sequence, scratch, &text);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "the id of an entry cannot be read: %s",
                         wal_status_text(status));
    }
    memcpy(id->bytes, text.data, text.size);
    id->bytes[text.size] = '\0';
    id->size = text.size;
    id->sequence = sequence;
    return WAL_OK;
}

/* Returns whether a list of ascending sequences has one. */
static bool transfer_has(const struct wal__buf *sequences, uint64_t sequence)
{
    const uint64_t *items = (const void *)sequences->data;
    size_t count = sequences->size / sizeof(*items);
    size_t rank = wal__lower_bound(items, count, sizeof(*items), 0, sequence);

    return rank < count && items[rank] == sequence;
}

/* --- failures ------------------------------------------------------------- */

void wal__transfer_fail(struct wal__transfer *transfer, enum wal_status status)
{
    if (transfer->failed == WAL_OK) {
        transfer->failed = status;
        transfer->why = transfer->error;
    }
}

static void refuse(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    session->state = WAL__TRANSFER_REFUSED;
    if (session->why == NULL) {
        session->why = wal__heap_zalloc(transfer->heap, sizeof(*session->why));
        if (session->why == NULL) {
            wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
            return;
        }
        *session->why = transfer->error;
    }
}

void wal__transfer_refuse(struct wal__transfer *transfer, struct wal__transfer_session *session,
                          enum wal_status status, const char *reason, ...)
{
    char text[sizeof(transfer->error.text)];
    va_list arguments;

    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    (void)!wal__fail(&transfer->error, status, "%s", text);
    refuse(transfer, session);
}

bool wal__transfer_try(struct wal__transfer *transfer, struct wal__transfer_session *session,
                       enum wal_status status)
{
    if (status == WAL_OK) {
        return session->state != WAL__TRANSFER_REFUSED;
    }
    if (transfer->failed != WAL_OK) {
        return false;
    }
    if (status == WAL_ECORRUPT && wal__core_look_again(transfer->from, &transfer->looked)) {
        transfer->was_replaced = true;
        wal__transfer_fail(transfer, status);
    } else if (wal__copy_is_fatal(status)) {
        wal__transfer_fail(transfer, status);
    } else {
        refuse(transfer, session);
    }
    return false;
}

bool wal__transfer_goes_on(const struct wal__transfer *transfer,
                           const struct wal__transfer_session *session)
{
    return transfer->failed == WAL_OK && session->state != WAL__TRANSFER_REFUSED;
}

void wal__transfer_check_answer(struct wal__transfer *transfer, int32_t answer,
                                const char *function)
{
    if (answer != 0 && transfer->failed == WAL_OK) {
        transfer->failed = wal__fail_at(&transfer->why, WAL_ECALLBACK, answer, NULL, 0,
                                        "the %s function returned %" PRId32, function, answer);
    }
}

/* --- documents of the store ----------------------------------------------- */

/* Reports that the other store has another document under the key of the one at this position. */
static void transfer_report_document(struct wal__transfer *transfer, uint64_t position)
{
    const struct wal_transfer_options *options = transfer->options;
    struct wal_transfer_report report = {.struct_size = sizeof(report),
                                         .kind = WAL_TRANSFER_DOCUMENT};
    struct wal__doc_record record;
    struct wal__frame frame;

    transfer->result.differing_documents++;
    if (options->report == NULL ||
        wal__transfer_read_doc(transfer->from, position, &transfer->scratch, &frame, &record,
                               NULL) != WAL_OK) {
        return;
    }
    report.key = (struct wal_slice){record.key.data, record.key.size};
    wal__transfer_check_answer(transfer, options->report(options->ctx, &report), "report");
}

/* --- ids of branches ------------------------------------------------------ */

enum {
    NAME_SIZE = 64 + 1, /* of the name, with its NUL */
    SUFFIX_SIZE = NAME_SIZE + 8
};

bool wal__transfer_keeps_both(const struct wal__transfer *transfer)
{
    return (transfer->options->flags & WAL_TRANSFER_KEEP_BOTH) != 0;
}

/* --- ids ------------------------------------------------------------------ */

static void format_name(const struct wal__transfer *transfer, char name[NAME_SIZE])
{
    const struct wal_slice given = transfer->options->branch_name;
    const uint8_t *uuid = transfer->from->manifest.uuid;

    if (given.size > 0) {
        (void)snprintf(name, NAME_SIZE, "%.*s", WAL_ARG(given));
    } else {
        (void)snprintf(name, NAME_SIZE, "%02x%02x%02x%02x", uuid[0], uuid[1], uuid[2], uuid[3]);
    }
}

/* The size of a text that is cut to at most `limit` bytes between two characters. */
static size_t cut(const char *text, size_t size, size_t limit)
{
    if (size <= limit) {
        return size;
    }
    while (limit > 0 && ((uint8_t)text[limit] & 0xC0) == 0x80) {
        limit--;
    }
    return limit;
}

void wal__transfer_branch_id(const struct wal__transfer *transfer, struct wal__span id,
                             uint32_t number, char out[WAL_ID_SIZE])
{
    char name[NAME_SIZE];
    char suffix[SUFFIX_SIZE];
    size_t size;

    format_name(transfer, name);
    if (number == 1) {
        (void)snprintf(suffix, sizeof(suffix), "@%s", name);
    } else {
        (void)snprintf(suffix, sizeof(suffix), "@%s-%" PRIu32, name, number);
    }
    size = cut((const char *)id.data, id.size, WAL_ID_SIZE - 1 - strlen(suffix));
    memcpy(out, id.data, size);
    memcpy(out + size, suffix, strlen(suffix) + 1);
}

/* Returns whether `id` is of a session, and `copy` of it or of a branch of it.
 */
static bool transfer_is_copy(const struct wal__transfer *transfer, struct wal__span id,
                             struct wal__span copy)
{
    char branch[WAL_ID_SIZE];

    if (wal__span_equal(id, copy) || !wal__transfer_keeps_both(transfer)) {
        return wal__span_equal(id, copy);
    }
    for (uint32_t i = 1; i <= WAL__TRANSFER_BRANCHES; i++) {
        wal__transfer_branch_id(transfer, id, i, branch);
        if (copy.size == strlen(branch) && memcmp(copy.data, branch, copy.size) == 0) {
            return true;
        }
    }
    return false;
}

/* --- the mark of an incomplete session ------------------------------------ */

struct wal_slice wal__transfer_mark_text(enum wal__transfer_mark mark)
{
    return mark == WAL__TRANSFER_MARKED_SOURCE ? WAL_STR("{\"agentwalTransfer\":\"source\"}")
                                               : WAL_STR("{\"agentwalTransfer\":\"incomplete\"}");
}

enum wal_status wal__transfer_read_mark(struct wal__transfer *transfer, struct wal_session *session,
                                        enum wal__transfer_mark *mark)
{
    static const enum wal__transfer_mark marks[] = {WAL__TRANSFER_MARKED,
                                                    WAL__TRANSFER_MARKED_SOURCE};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, &transfer->error);

    *mark = WAL__TRANSFER_UNMARKED;
    for (size_t i = 0; i < 2 && status == WAL_OK; i++) {
        struct wal_slice text = wal__transfer_mark_text(marks[i]);

        if (info.metadata.size == text.size &&
            memcmp(info.metadata.data, text.data, text.size) == 0) {
            *mark = marks[i];
        }
    }
    return status;
}

/* --- fork points ---------------------------------------------------------- */

const struct wal__transfer_record *
wal__transfer_find_fork(const struct wal__transfer_records *records)
{
    const struct wal__transfer_record *items = (const void *)records->items.data;

    for (size_t i = 0; i < records->items.size / sizeof(*items); i++) {
        if (items[i].type == WAL__FRAME_FORK) {
            return &items[i];
        }
    }
    return NULL;
}

enum wal_status wal__transfer_read_fork(struct wal__core *core, uint64_t position,
                                        struct wal__record_buf *scratch,
                                        struct wal__fork_record *record, struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__log_read(&core->log, position, scratch, &frame, &payload, error);

    return status == WAL_OK && wal__fork_record_decode(payload, record) != WAL__FMT_OK
               ? wal__fail(error, WAL_ECORRUPT, "a fork is not well-formed")
               : status;
}

/* Returns whether the session of `to` sees an entry. */
static enum wal_status sees(struct wal__transfer *transfer, struct wal_session *session,
                            struct wal__span id, bool *is_seen)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = wal_entry_get(session, wal__text_slice(id), &entry, &transfer->error);

    *is_seen = status == WAL_OK || status == WAL_EREDACTED;
    return *is_seen || status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Returns whether both sessions are no forks, or forks at the same entry. One store may have forked
 * the session that owns it, and the other a fork of that one. */
enum wal_status wal__transfer_compare_forks(struct wal__transfer *transfer,
                                            const struct wal__transfer_session *session, bool *same)
{
    const struct wal__transfer_record *to = wal__transfer_find_fork(&transfer->to_records);
    struct wal__fork_record a;
    struct wal__fork_record b;
    enum wal_status status;

    *same = session->is_fork ? to != NULL && session->is_lowered && session->fork_point == 0
                             : to == NULL;
    if (*same || !session->is_fork || to == NULL) {
        return WAL_OK;
    }
    status = wal__transfer_read_fork(transfer->from, session->fork_position, &transfer->scratch, &a,
                                     &transfer->error);
    if (status == WAL_OK && session->is_lowered) {
        return sees(transfer, session->handle, a.entry_id, same);
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_fork(transfer->to, to->position, &transfer->to_scratch, &b,
                                         &transfer->error);
    }
    *same = status == WAL_OK && a.stream == b.stream &&
            transfer_is_copy(transfer, a.owner_id, b.owner_id) &&
            wal__span_equal(a.entry_id, b.entry_id);
    return status;
}

/* --- entries -------------------------------------------------------------- */

static bool same_parent(struct wal__transfer *transfer, const struct wal__transfer_session *session,
                        const struct wal__transfer_record *a, const struct wal__transfer_record *b,
                        enum wal_status *status)
{
    if (a->parent == 0 || b->parent == 0) {
        return a->parent == b->parent;
    }
    *status = wal__transfer_read_id(transfer->from, session->number, a->stream, a->parent,
                                    &transfer->scratch, &transfer->from_id, &transfer->error);
    if (*status == WAL_EDAMAGED && !session->is_wanted) {
        /* A compaction drops of a deleted session what no fork sees, also before a redaction that
         * the copy repeats (SPEC.md 3.9). */
        *status = WAL_OK;
        return false;
    }
    if (*status == WAL_OK) {
        *status = wal__transfer_read_id(transfer->to, session->handle->number, b->stream, b->parent,
                                        &transfer->to_scratch, &transfer->to_id, &transfer->error);
    }
    return *status == WAL_OK && transfer->from_id.size == transfer->to_id.size &&
           memcmp(transfer->from_id.bytes, transfer->to_id.bytes, transfer->from_id.size) == 0;
}

/* Returns whether two entries are the same; the content counts where neither is redacted. */
static bool same_entry(struct wal__transfer *transfer, const struct wal__transfer_session *session,
                       const struct wal__transfer_record *a, const struct wal__transfer_record *b,
                       enum wal_status *status)
{
    struct wal__entry_record from;
    struct wal__entry_record to;
    struct wal__frame frame;
    bool is_hidden;

    if (a->id_hash != b->id_hash || a->kind != b->kind || a->stream != b->stream ||
        !same_parent(transfer, session, a, b, status)) {
        return false;
    }
    *status = wal__transfer_read_entry(transfer->from, a->position, &transfer->scratch, &frame,
                                       &from, &transfer->error);
    if (*status == WAL_OK) {
        *status = wal__transfer_read_entry(transfer->to, b->position, &transfer->to_scratch, &frame,
                                           &to, &transfer->error);
    }
    if (*status != WAL_OK) {
        return false;
    }
    is_hidden = from.is_erased || to.is_erased ||
                transfer_has(&transfer->from_records.hidden, a->sequence) ||
                transfer_has(&transfer->to_records.hidden, b->sequence);
    return wal__span_equal(from.id, to.id) && from.form == to.form &&
           wal__span_equal(from.type, to.type) && wal__span_equal(from.time, to.time) &&
           wal__span_equal(from.run, to.run) &&
           (is_hidden ||
            (wal__span_equal(from.meta, to.meta) && wal__entry_record_same_payload(&from, &to)));
}

/* Returns whether the entry is a redaction that `from` has in another session.
 */
static bool is_repeated_redaction(const struct wal__transfer *transfer,
                                  const struct wal__transfer_record *entry)
{
    const struct wal__transfer_record *items = (const void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);

    for (size_t i = 0; i < count && entry->kind == WAL__KIND_REDACTION; i++) {
        if ((items[i].type == WAL__FRAME_REDACT || items[i].type == WAL__FRAME_RESTORE) &&
            items[i].id_hash == entry->id_hash) {
            return true;
        }
    }
    return false;
}

/* The next entry of the session in `to` from rank `at` on, or the count. */
static size_t next_entry(const struct wal__transfer *transfer, size_t at)
{
    const struct wal__transfer_record *items = (const void *)transfer->to_records.items.data;
    size_t count = transfer->to_records.items.size / sizeof(*items);

    while (at < count && items[at].type != WAL__FRAME_ENTRY) {
        at++;
    }
    return at;
}

/* Compares an entry of `from` with those of `to` from rank *at on. Redactions that are repeated
 * ones are skipped. */
static enum wal_status find_same(struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 const struct wal__transfer_record *entry, size_t *at,
                                 bool *is_same)
{
    const struct wal__transfer_record *to = (const void *)transfer->to_records.items.data;
    size_t count = transfer->to_records.items.size / sizeof(*to);
    enum wal_status status = WAL_OK;
    size_t i = *at;

    *is_same = false;
    while (i < count) {
        *is_same = same_entry(transfer, session, entry, &to[i], &status);
        if (*is_same || status != WAL_OK || !is_repeated_redaction(transfer, &to[i])) {
            break;
        }
        i = next_entry(transfer, i + 1);
    }
    *at = i;
    return status;
}

enum wal_status wal__transfer_compare_entries(struct wal__transfer *transfer,
                                              const struct wal__transfer_session *session,
                                              size_t first, struct wal__transfer_entries *found)
{
    struct wal__transfer_record *from = (void *)transfer->from_records.items.data;
    const struct wal__transfer_record *to = (const void *)transfer->to_records.items.data;
    size_t from_count = transfer->from_records.items.size / sizeof(*from);
    size_t to_count = transfer->to_records.items.size / sizeof(*to);
    size_t at = next_entry(transfer, 0);

    *found = (struct wal__transfer_entries){.common = 0};
    for (size_t i = first; i < from_count; i++) {
        enum wal_status status = WAL_OK;
        bool is_same = false;

        if (from[i].type != WAL__FRAME_ENTRY) {
            continue;
        }
        if (found->missing == 0) {
            status = find_same(transfer, session, &from[i], &at, &is_same);
        }
        if (status != WAL_OK) {
            return status;
        }
        from[i].is_present = is_same;
        found->common += is_same;
        found->missing += !is_same;
        if (is_same && from[i].stream == 0) {
            found->last = to[at].sequence;
            found->last_position = to[at].position;
            found->next = i + 1;
        }
        at = is_same ? next_entry(transfer, at + 1) : at;
    }
    while (at < to_count && is_repeated_redaction(transfer, &to[at])) {
        at = next_entry(transfer, at + 1);
    }
    found->has_more = at < to_count;
    found->has_other = found->has_more && found->missing > 0;
    return WAL_OK;
}

/* --- versions of documents ------------------------------------------------ */

/* Compaction leaves a deletion where a version was that nobody sees. */
static void mark_erased(struct wal__buf *versions)
{
    struct wal__transfer_version *items = (void *)versions->data;

    for (size_t i = 0; i + 1 < versions->size / sizeof(*items); i++) {
        items[i].is_erased = items[i].is_deletion && items[i + 1].is_deletion &&
                             items[i].key_hash == items[i + 1].key_hash;
    }
}

enum wal_status wal__transfer_list_versions(struct wal__transfer *transfer, struct wal__core *core,
                                            const struct wal__transfer_records *records,
                                            struct wal__buf *out, struct wal_error *error)
{
    const struct wal__transfer_record *items = (const void *)records->items.data;
    size_t count = records->items.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__transfer_version version = {.key_hash = items[i].id_hash, .record = i};
        struct wal__doc_record doc;
        struct wal__frame frame;

        if ((items[i].type != WAL__FRAME_DOC && items[i].type != WAL__FRAME_DOC_DELETE) ||
            wal__transfer_is_local(items[i].id_hash)) {
            continue;
        }
        status = wal__transfer_read_doc(core, items[i].position, &transfer->to_scratch, &frame,
                                        &doc, error);
        if (status == WAL_OK) {
            version.is_deletion = frame.type == WAL__FRAME_DOC_DELETE;
            status = wal__sha256(&transfer->sha256, doc.value, &version.digest);
        }
        if (status == WAL_OK) {
            status = wal__buf_append(out, &version, sizeof(version));
        }
    }
    wal__buf_sort(out, sizeof(struct wal__transfer_version), wal__compare_u64_pair);
    mark_erased(out);
    return status;
}

static bool is_equal(const struct wal__transfer_version *a, const struct wal__transfer_version *b)
{
    return a->is_deletion == b->is_deletion && wal__digest_equal(&a->digest, &b->digest);
}

/* What was erased is the version that is at its place. */
bool wal__transfer_same_version(const struct wal__transfer_version *a,
                                const struct wal__transfer_version *b)
{
    return a->is_erased || b->is_erased || is_equal(a, b);
}

size_t wal__transfer_count_present(const struct wal__transfer_version *from, size_t from_count,
                                   const struct wal__transfer_version *to, size_t to_count)
{
    size_t common = 0;

    while (common < from_count && common < to_count &&
           wal__transfer_same_version(&from[common], &to[common])) {
        common++;
    }
    if (common == from_count || common == to_count) {
        return common == from_count ? from_count : common;
    }
    /* At another place what was erased is none that is known. */
    for (size_t i = from_count; i > 0; i--) {
        if (!from[i - 1].is_erased && is_equal(&from[i - 1], &to[to_count - 1])) {
            return i;
        }
    }
    for (size_t i = 0; i < to_count; i++) {
        if (!to[i].is_erased && is_equal(&from[from_count - 1], &to[i])) {
            return from_count;
        }
    }
    return SIZE_MAX;
}

size_t wal__transfer_key_end(const struct wal__transfer_version *items, size_t count, size_t at)
{
    size_t end = at;

    while (end < count && items[end].key_hash == items[at].key_hash) {
        end++;
    }
    return end;
}

static enum wal_status match(struct wal__transfer *transfer, const struct wal__buf *from_versions,
                             const struct wal__buf *to_versions,
                             enum wal__transfer_difference difference, struct wal_error *error)
{
    struct wal__transfer_record *records = (void *)transfer->from_records.items.data;
    const struct wal__transfer_version *from = (const void *)from_versions->data;
    const struct wal__transfer_version *to = (const void *)to_versions->data;
    size_t from_count = from_versions->size / sizeof(*from);
    size_t to_count = to_versions->size / sizeof(*to);
    size_t other = 0;

    for (size_t at = 0; at < from_count;) {
        size_t end = wal__transfer_key_end(from, from_count, at);
        size_t other_end = other;
        size_t present;

        while (other < to_count && to[other].key_hash < from[at].key_hash) {
            other++;
        }
        other_end = other < to_count && to[other].key_hash == from[at].key_hash
                        ? wal__transfer_key_end(to, to_count, other)
                        : other;
        present = wal__transfer_count_present(&from[at], end - at,
                                              to_count == 0 ? NULL : &to[other], other_end - other);
        if (present == SIZE_MAX && difference == WAL__TRANSFER_REFUSE) {
            return wal__fail(error, WAL_EEXISTS, "a document was changed on both sides");
        }
        if (present == SIZE_MAX && difference == WAL__TRANSFER_REPORT) {
            transfer_report_document(transfer, records[from[end - 1].record].position);
            present = end - at;
        }
        present = present == SIZE_MAX ? 0 : present;
        for (size_t i = 0; i < present; i++) {
            records[from[at + i].record].is_present = true;
        }
        at = end;
        other = other_end;
    }
    return WAL_OK;
}

enum wal_status wal__transfer_compare_versions(struct wal__transfer *transfer,
                                               enum wal__transfer_difference difference,
                                               struct wal_error *error)
{
    struct wal__buf from;
    struct wal__buf to;
    enum wal_status status;

    wal__buf_init(&from, transfer->heap);
    wal__buf_init(&to, transfer->heap);
    status = wal__transfer_list_versions(transfer, transfer->from, &transfer->from_records, &from,
                                         error);
    if (status == WAL_OK) {
        status =
            wal__transfer_list_versions(transfer, transfer->to, &transfer->to_records, &to, error);
    }
    if (status == WAL_OK) {
        status = match(transfer, &from, &to, difference, error);
    }
    wal__buf_deinit(&from);
    wal__buf_deinit(&to);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* --- content -------------------------------------------------------------- */

/* Copies content unless `to` has it; adds to *put, to be synced. */
static enum wal_status transfer_blob(struct wal__transfer *transfer,
                                     const struct wal__digest *digest,
                                     struct wal__blob_put_result *put)
{
    uint64_t end = 0;
    enum wal_status status =
        wal__blob_find_end(&transfer->to->blobs, digest, &end, &transfer->error);

    if (status != WAL_OK || end != 0) {
        put->end = end > put->end ? end : put->end;
        return status;
    }
    status =
        wal__blob_copy(&transfer->from->blobs, &transfer->to->blobs, digest, put, &transfer->error);
    return status == WAL_ENOTFOUND ? wal__fail(&transfer->error, WAL_ECORRUPT,
                                               "content that a checkpoint names is missing")
                                   : status;
}

/* Copies the list of files and every content in it. */
static enum wal_status copy_list(struct wal__transfer *transfer, const struct wal__digest *digest,
                                 struct wal__blob_put_result *put)
{
    struct wal__file_record file;
    struct wal__file_list list;
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, transfer->heap);
    status = wal__blob_load(&transfer->from->blobs, digest, &bytes, &transfer->error);
    if (status == WAL_OK &&
        wal__file_list_decode((struct wal__span){bytes.data, bytes.size}, &list) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    while (status == WAL_OK && list.remaining > 0) {
        if (wal__file_list_next(&list, &file) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
        } else if (file.kind != WAL__FILE_ABSENT) {
            status = transfer_blob(transfer, &file.digest, put);
        }
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ECORRUPT || status == WAL_ENOTFOUND) {
        return wal__fail(&transfer->error, WAL_ECORRUPT,
                         "the files of a checkpoint cannot be read");
    }
    return status == WAL_OK ? transfer_blob(transfer, digest, put) : status;
}

enum wal_status wal__transfer_checkpoint(struct wal__transfer *transfer, struct wal__span id,
                                         struct wal__span value)
{
    struct wal__blob_put_result put = {0};
    struct wal__checkpoint checkpoint;
    enum wal_status status;

    wal__checkpoint_init(&checkpoint, transfer->heap);
    status = wal__checkpoint_decode(&checkpoint, id, value, 0, &transfer->error);
    if (status == WAL_OK) {
        status = copy_list(transfer, &checkpoint.list, &put);
    }
    if (status == WAL_OK && put.end != 0) {
        status = wal__blob_store_sync(&transfer->to->blobs, put.end, &transfer->error);
    }
    wal__checkpoint_deinit(&checkpoint);
    return status;
}

enum wal_status wal__transfer_payload(struct wal__transfer *transfer,
                                      const struct wal__entry_record *record, uint8_t **payload)
{
    struct wal__blob_reader *reader = NULL;
    struct wal__digest digest;
    uint64_t got = 0;
    enum wal_status status;
    uint8_t *bytes;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    status = wal__blob_reader_create(&transfer->from->blobs, &digest, &reader, &transfer->error);
    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK && wal__blob_reader_size(reader) != record->payload_size)) {
        wal__blob_reader_destroy(reader);
        return wal__fail(&transfer->error, WAL_ECORRUPT,
                         "the payload of the entry \"%.*s\" is missing", (int)record->id.size,
                         (const char *)record->id.data);
    }
    if (status != WAL_OK) {
        return status;
    }
    bytes = wal__heap_alloc(transfer->large_heap, record->payload_size);
    if (bytes == NULL) {
        wal__blob_reader_destroy(reader);
        return wal__no_memory(&transfer->error);
    }
    status = wal__blob_reader_read(reader, 0, bytes, record->payload_size, &got, &transfer->error);
    wal__blob_reader_destroy(reader);
    if (status != WAL_OK) {
        wal__heap_free(transfer->large_heap, bytes);
        return status;
    }
    *payload = bytes;
    return WAL_OK;
}
