/*
 * transfer_plan.c - what a transfer copies: the sessions that were asked for,
 * the sources of forks that are new, and of each the records that the other
 * store lacks. Reads only.
 *
 * A source that was not asked for is copied as far as its forks see it: entries
 * up to the highest fork point, documents up to the newest fork.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"

/* --- sessions ------------------------------------------------------------- */

/* Returns the session; added if it is missing. NULL: the transfer failed. */
static struct wal__transfer_session *add_session(struct wal__transfer *transfer,
                                                 uint32_t number)
{
    struct wal__transfer_session *session =
        wal__transfer_find(transfer, number);
    void *grown;

    if (session != NULL) {
        return session;
    }
    grown = wal__heap_grow_array(
        transfer->heap, transfer->sessions, transfer->session_count,
        &transfer->session_capacity, sizeof(struct wal__transfer_session *));
    if (grown != NULL) {
        transfer->sessions = grown;
        session = wal__heap_zalloc(transfer->heap, sizeof(*session));
    }
    if (session == NULL ||
        wal__hashmap_add(&transfer->session_map, wal__transfer_hash(number),
                         transfer->session_count) != WAL_OK) {
        wal__heap_free(transfer->heap, session);
        wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
        return NULL;
    }
    session->number = number;
    session->rank = transfer->session_count;
    transfer->sessions[transfer->session_count++] = session;
    return session;
}

/* Adds the session with this number if it is neither deleted nor in the
 * trash. */
static void want_number(struct wal__transfer *transfer, uint32_t number)
{
    struct wal__core *core = transfer->from;
    struct wal__transfer_session *session;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        wal__transfer_fail(transfer, status);
        return;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    wal__core_unlock(core);
    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK && (summary.flags & (WAL__SUMMARY_DELETED |
                                               WAL__SUMMARY_TRASHED)) != 0)) {
        return;
    }
    if (status != WAL_OK) {
        wal__transfer_fail(transfer, wal__fail(&transfer->error, status,
                                               "cannot read the catalogue: %s",
                                               wal_status_text(status)));
        return;
    }
    session = add_session(transfer, number);
    if (session != NULL) {
        session->is_wanted = true;
    }
}

static void want_id(struct wal__transfer *transfer, struct wal_slice id)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(transfer->from_store, id, &session, &transfer->error);

    if (status != WAL_OK) {
        wal__error_set_actual(&transfer->error, id.data,
                              id.size < WAL_ID_SIZE ? id.size : 0);
        wal__transfer_fail(transfer, status);
        return;
    }
    want_number(transfer, session->number);
    wal_session_close(session);
}

static uint32_t last_number(struct wal__transfer *transfer)
{
    enum wal_status status =
        wal__core_read_lock(transfer->from, &transfer->error);
    uint32_t last = 0;

    if (status == WAL_OK) {
        last = transfer->from->catalogue.last_session;
        wal__core_unlock(transfer->from);
    } else {
        wal__transfer_fail(transfer, status);
    }
    return last;
}

static void want_sessions(struct wal__transfer *transfer)
{
    const struct wal_transfer_options *options = transfer->options;
    uint32_t last = options->sessions == NULL ? last_number(transfer) : 0;

    for (uint32_t number = 1; number <= last && transfer->failed == WAL_OK;
         number++) {
        want_number(transfer, number);
    }
    for (uint64_t i = 0;
         options->sessions != NULL && i < options->session_count &&
         transfer->failed == WAL_OK;
         i++) {
        want_id(transfer, options->sessions[i]);
    }
}

/* --- one session ---------------------------------------------------------- */

/* Fills what its summary says. */
static void read_summary(struct wal__transfer *transfer,
                         struct wal__transfer_session *session)
{
    struct wal__core *core = transfer->from;
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        wal__transfer_fail(transfer, status);
        return;
    }
    status = wal__catalogue_get(&core->catalogue, session->number, &summary);
    if (status == WAL_OK) {
        memcpy(session->id, summary.id.data, summary.id.size);
        session->id[summary.id.size] = '\0';
        memcpy(session->copy_id, session->id, summary.id.size + 1);
        session->is_fork = (summary.flags & WAL__SUMMARY_FORK) != 0;
        session->fork_source = summary.fork_source;
        session->fork_owner = summary.fork_owner;
        session->fork_record = summary.fork_record;
        session->fork_point = summary.fork_sequence;
    }
    wal__core_unlock(core);
    if (status != WAL_OK) {
        wal__transfer_refuse(transfer, session, status,
                             "the catalogue cannot be read");
    } else if ((summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        wal__transfer_refuse(transfer, session, WAL_EDAMAGED,
                             "the session lost entries; `agentwal "
                             "accept-damage` permits to go on without them");
    }
}

/* Marks what is not repeated: of a session that is not wanted, what no fork
 * sees. */
static void apply_limits(struct wal__transfer *transfer,
                         const struct wal__transfer_session *session)
{
    struct wal__transfer_record *items =
        (void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);
    size_t kept = 0;

    if (session->is_wanted) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_entry = items[i].type == WAL__FRAME_ENTRY;
        bool is_document = items[i].type == WAL__FRAME_DOC ||
                           items[i].type == WAL__FRAME_DOC_DELETE;

        if ((!is_entry || items[i].sequence <= session->entry_limit) &&
            (!is_document || items[i].sequence < session->document_limit)) {
            items[kept++] = items[i];
        }
    }
    transfer->from_records.items.size = kept * sizeof(*items);
}

static bool is_repeated(const struct wal__transfer_record *record)
{
    switch (record->type) {
    case WAL__FRAME_ENTRY:
        return !record->is_present;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        return !record->is_present && !wal__transfer_is_local(record->id_hash);
    default:
        return false;
    }
}

/* Adds what creates a session: its first SESSION record, or its FORK record;
 * and what is to be repeated. */
static enum wal_status add_events(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session)
{
    const struct wal__transfer_record *items =
        (const void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);
    const uint8_t creation =
        session->is_fork ? WAL__FRAME_FORK : WAL__FRAME_SESSION;
    bool is_created = session->state != WAL__TRANSFER_NEW;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        const struct wal__transfer_event event = {
            items[i].sequence, items[i].position, session->rank, items[i].type};
        const struct wal__transfer_redaction redaction = {
            items[i].parent, items[i].position, items[i].id_hash, session->rank,
            0};
        bool is_creation = !is_created && items[i].type == creation;

        if (is_creation || is_repeated(&items[i])) {
            is_created |= is_creation;
            session->left++;
            status = wal__buf_append(&transfer->events, &event, sizeof(event));
        } else if (items[i].type == WAL__FRAME_REDACT &&
                   (session->is_wanted ||
                    items[i].parent <= session->entry_limit)) {
            status = wal__buf_append(&transfer->redactions, &redaction,
                                     sizeof(redaction));
        }
    }
    return status;
}

/* Adds the source of a fork, and what the fork sees of it and of the session
 * that has the fork point. */
static void add_source(struct wal__transfer *transfer,
                       const struct wal__transfer_session *fork)
{
    struct wal__transfer_session *source =
        add_session(transfer, fork->fork_source);
    struct wal__transfer_session *owner =
        source == NULL || fork->fork_point == 0
            ? source
            : add_session(transfer, fork->fork_owner);

    if (owner == NULL) {
        return;
    }
    if (fork->fork_record > source->document_limit) {
        source->document_limit = fork->fork_record;
    }
    if (fork->fork_point > owner->entry_limit) {
        owner->entry_limit = fork->fork_point;
    }
    if (owner != source && fork->fork_point > source->through_point) {
        source->through_point = fork->fork_point;
        source->through_position = fork->fork_position;
        source->through_owner = fork->fork_owner;
    }
}

/* Sets the FORK record of a fork in from_records. Where forks see nothing of a
 * session but what it sees itself of its sources, or not even that, they need
 * no more of these: the rest up to its fork point may be gone (SPEC.md 3.9). */
static void find_point(const struct wal__transfer *transfer,
                       struct wal__transfer_session *session)
{
    const struct wal__transfer_record *fork =
        wal__transfer_find_fork(&transfer->from_records);

    session->fork_position = fork == NULL ? 0 : fork->position;
    if (fork != NULL && !session->is_wanted && session->entry_limit == 0) {
        session->is_lowered = true;
        session->fork_point = session->through_point;
        session->fork_position = session->through_position;
        session->fork_owner = session->through_owner;
    }
}

/* Whether an earlier transfer left the source of a fork that is there. */
static bool has_left_source(struct wal__transfer *transfer,
                            struct wal__transfer_session *fork)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    struct wal_session *source = NULL;
    enum wal_status status =
        wal_session_get_info(fork->handle, &info, &transfer->error);

    if (status == WAL_OK) {
        status = wal_session_open(transfer->to_store, info.parent_id, &source,
                                  &transfer->error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, source, &mark);
        wal_session_close(source);
    }
    return mark == WAL__TRANSFER_MARKED_SOURCE;
}

static void plan_session(struct wal__transfer *transfer,
                         struct wal__transfer_session *session)
{
    enum wal_status status;

    read_summary(transfer, session);
    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    status = wal__transfer_collect(transfer->from, session->number,
                                   &transfer->from_records, &transfer->error);
    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    session->seen = transfer->from_records.end;
    apply_limits(transfer, session);
    find_point(transfer, session);
    wal__transfer_compare(transfer, session);
    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    session->is_temporary |=
        session->state == WAL__TRANSFER_NEW && !session->is_wanted;
    if (session->is_fork && session->trunk == NULL &&
        (session->state == WAL__TRANSFER_NEW || session->is_temporary ||
         has_left_source(transfer, session))) {
        add_source(transfer, session);
    }
    if (add_events(transfer, session) != WAL_OK) {
        wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
    }
}

/* --- the plan ------------------------------------------------------------- */

static int compare_events(const void *a, const void *b)
{
    const struct wal__transfer_event *x = a;
    const struct wal__transfer_event *y = b;

    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int compare_redactions(const void *a, const void *b)
{
    const struct wal__transfer_redaction *x = a;
    const struct wal__transfer_redaction *y = b;

    if (x->target != y->target) {
        return x->target < y->target ? -1 : 1;
    }
    return x->position < y->position ? -1 : x->position > y->position;
}

static void sort(struct wal__buf *items, size_t size,
                 int (*compare)(const void *, const void *))
{
    if (items->size > 0) {
        qsort(items->data, items->size / size, size, compare);
    }
}

void wal__transfer_plan(struct wal__transfer *transfer)
{
    uint32_t number = last_number(transfer);

    want_sessions(transfer);
    for (; number > 0 && transfer->failed == WAL_OK; number--) {
        struct wal__transfer_session *session =
            wal__transfer_find(transfer, number);

        if (session != NULL) {
            plan_session(transfer, session);
        }
    }
    sort(&transfer->events, sizeof(struct wal__transfer_event), compare_events);
    sort(&transfer->redactions, sizeof(struct wal__transfer_redaction),
         compare_redactions);
}
