/*
 * transfer_compare.c - what the other store has of a session: its entries, in
 * log order, are a beginning of those here, or more, or others.
 *
 * Redactions are left out of the order: a redaction that another session holds
 * is repeated in the session itself when that one is not taken along.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"

/* --- the mark of an incomplete session ------------------------------------ */

struct wal_slice wal__transfer_mark_text(enum wal__transfer_mark mark)
{
    return mark == WAL__TRANSFER_MARKED_SOURCE
               ? WAL_STR("{\"agentwalTransfer\":\"source\"}")
               : WAL_STR("{\"agentwalTransfer\":\"incomplete\"}");
}

enum wal_status wal__transfer_read_mark(struct wal__transfer *transfer,
                                        struct wal_session *session,
                                        enum wal__transfer_mark *mark)
{
    static const enum wal__transfer_mark marks[] = {
        WAL__TRANSFER_MARKED, WAL__TRANSFER_MARKED_SOURCE};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal_session_get_info(session, &info, &transfer->error);

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
    const struct wal__transfer_record *items =
        (const void *)records->items.data;

    for (size_t i = 0; i < records->items.size / sizeof(*items); i++) {
        if (items[i].type == WAL__FRAME_FORK) {
            return &items[i];
        }
    }
    return NULL;
}

enum wal_status wal__transfer_read_fork(struct wal__core *core,
                                        uint64_t position,
                                        struct wal__record_buf *scratch,
                                        struct wal__fork_record *record,
                                        struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&core->log, position, scratch, &frame, &payload, error);

    return status == WAL_OK &&
                   wal__fork_record_decode(payload, record) != WAL__FMT_OK
               ? wal__fail(error, WAL_ECORRUPT, "a fork is not well-formed")
               : status;
}

/* Whether the session of `to` sees an entry. */
static enum wal_status sees(struct wal__transfer *transfer,
                            struct wal_session *session, struct wal__span id,
                            bool *is_seen)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status =
        wal_entry_get(session, wal__text_slice(id), &entry, &transfer->error);

    *is_seen = status == WAL_OK || status == WAL_EREDACTED;
    return *is_seen || status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Whether both sessions are no forks, or forks at the same entry. One store may
 * have forked the session that owns it, and the other a fork of that one. */
enum wal_status
wal__transfer_compare_forks(struct wal__transfer *transfer,
                            const struct wal__transfer_session *session,
                            bool *same)
{
    const struct wal__transfer_record *to =
        wal__transfer_find_fork(&transfer->to_records);
    struct wal__fork_record a;
    struct wal__fork_record b;
    enum wal_status status;

    *same = session->is_fork
                ? to != NULL && session->is_lowered && session->fork_point == 0
                : to == NULL;
    if (*same || !session->is_fork || to == NULL) {
        return WAL_OK;
    }
    status = wal__transfer_read_fork(transfer->from, session->fork_position,
                                     &transfer->scratch, &a, &transfer->error);
    if (status == WAL_OK && session->is_lowered) {
        return sees(transfer, session->handle, a.entry_id, same);
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_fork(transfer->to, to->position,
                                         &transfer->to_scratch, &b,
                                         &transfer->error);
    }
    *same = status == WAL_OK && a.stream == b.stream &&
            wal__transfer_is_copy(transfer, a.owner_id, b.owner_id) &&
            wal__span_equal(a.entry_id, b.entry_id);
    return status;
}

/* --- entries -------------------------------------------------------------- */

static bool same_payload(const struct wal__entry_record *a,
                         const struct wal__entry_record *b)
{
    if (a->digest == NULL || b->digest == NULL) {
        return a->digest == b->digest &&
               wal__span_equal(a->payload, b->payload);
    }
    return a->payload_size == b->payload_size &&
           memcmp(a->digest, b->digest, WAL__DIGEST_SIZE) == 0;
}

static bool same_parent(struct wal__transfer *transfer,
                        const struct wal__transfer_session *session,
                        const struct wal__transfer_record *a,
                        const struct wal__transfer_record *b,
                        enum wal_status *status)
{
    if (a->parent == 0 || b->parent == 0) {
        return a->parent == b->parent;
    }
    *status = wal__transfer_read_id(transfer->from, session->number, a->stream,
                                    a->parent, &transfer->scratch,
                                    &transfer->from_id, &transfer->error);
    if (*status == WAL_OK) {
        *status = wal__transfer_read_id(
            transfer->to, session->handle->number, b->stream, b->parent,
            &transfer->to_scratch, &transfer->to_id, &transfer->error);
    }
    return *status == WAL_OK &&
           transfer->from_id.size == transfer->to_id.size &&
           memcmp(transfer->from_id.bytes, transfer->to_id.bytes,
                  transfer->from_id.size) == 0;
}

/* Whether two entries are the same; the content counts where neither is
 * redacted. */
static bool same_entry(struct wal__transfer *transfer,
                       const struct wal__transfer_session *session,
                       const struct wal__transfer_record *a,
                       const struct wal__transfer_record *b,
                       enum wal_status *status)
{
    struct wal__entry_record from;
    struct wal__entry_record to;
    struct wal__frame frame;
    bool is_hidden;

    if (a->id_hash != b->id_hash || a->kind != b->kind ||
        a->stream != b->stream ||
        !same_parent(transfer, session, a, b, status)) {
        return false;
    }
    *status = wal__transfer_read_entry(transfer->from, a->position,
                                       &transfer->scratch, &frame, &from,
                                       &transfer->error);
    if (*status == WAL_OK) {
        *status = wal__transfer_read_entry(transfer->to, b->position,
                                           &transfer->to_scratch, &frame, &to,
                                           &transfer->error);
    }
    if (*status != WAL_OK) {
        return false;
    }
    is_hidden =
        from.is_erased || to.is_erased ||
        wal__transfer_has(&transfer->from_records.hidden, a->sequence) ||
        wal__transfer_has(&transfer->to_records.hidden, b->sequence);
    return wal__span_equal(from.id, to.id) && from.form == to.form &&
           wal__span_equal(from.type, to.type) &&
           wal__span_equal(from.time, to.time) &&
           wal__span_equal(from.run, to.run) &&
           (is_hidden ||
            (wal__span_equal(from.meta, to.meta) && same_payload(&from, &to)));
}

/* Whether the entry is a redaction that `from` has in another session. */
static bool is_repeated_redaction(const struct wal__transfer *transfer,
                                  const struct wal__transfer_record *entry)
{
    const struct wal__transfer_record *items =
        (const void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);

    for (size_t i = 0; i < count && entry->kind == WAL__KIND_REDACTION; i++) {
        if (items[i].type == WAL__FRAME_REDACT &&
            items[i].id_hash == entry->id_hash) {
            return true;
        }
    }
    return false;
}

/* The next entry of the session in `to` from rank `at` on, or the count. */
static size_t next_entry(const struct wal__transfer *transfer, size_t at)
{
    const struct wal__transfer_record *items =
        (const void *)transfer->to_records.items.data;
    size_t count = transfer->to_records.items.size / sizeof(*items);

    while (at < count && items[at].type != WAL__FRAME_ENTRY) {
        at++;
    }
    return at;
}

/* Compares an entry of `from` with those of `to` from rank *at on. Redactions
 * that are repeated ones are skipped. */
static enum wal_status find_same(struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 const struct wal__transfer_record *entry,
                                 size_t *at, bool *is_same)
{
    const struct wal__transfer_record *to =
        (const void *)transfer->to_records.items.data;
    size_t count = transfer->to_records.items.size / sizeof(*to);
    enum wal_status status = WAL_OK;
    size_t i = *at;

    *is_same = false;
    while (i < count) {
        *is_same = same_entry(transfer, session, entry, &to[i], &status);
        if (*is_same || status != WAL_OK ||
            !is_repeated_redaction(transfer, &to[i])) {
            break;
        }
        i = next_entry(transfer, i + 1);
    }
    *at = i;
    return status;
}

enum wal_status
wal__transfer_compare_entries(struct wal__transfer *transfer,
                              const struct wal__transfer_session *session,
                              size_t first, struct wal__transfer_entries *found)
{
    struct wal__transfer_record *from =
        (void *)transfer->from_records.items.data;
    const struct wal__transfer_record *to =
        (const void *)transfer->to_records.items.data;
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
