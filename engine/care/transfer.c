/*
 * transfer.c - takes sessions of one store into another (agentwal/transfer.h): the plan, then the
 * records in the order of the log, then what only the end shows; and reports.
 *
 * The plan goes over the sessions from the newest number to the oldest, so that a fork is known
 * before its source, and reads only. It finds the sessions that were asked for, the sources of
 * forks that are new, and of each the records that the other store lacks. A source that was not
 * asked for is copied as far as its forks see it: entries up to the highest fork point, documents
 * up to the newest fork. Then the records that are missing are repeated in the order of the log, so
 * that a fork sees what it saw.
 *
 * A session that `to` may have is new, continued, left as it is, refused, or becomes a branch: a
 * session that both stores went on with becomes a fork of the session in `to`, the trunk, at the
 * last entry of the conversation that both have (WAL_TRANSFER_KEEP_BOTH). A fork sees what is
 * before that entry in all streams; what other streams have after it is copied.
 *
 * The branch of the session ID is "ID@NAME", or "ID@NAME-2" and so on where that id is taken by
 * another session, also one of `from`, or by a branch that was itself continued in `to` while
 * `from` went on.
 *
 * Invariant: records of a session are repeated in their order, so that what a stopped transfer
 * leaves is a beginning, which the next one continues. A session that is refused in the plan is not
 * changed. A session of `to` is continued as a branch only if it is a fork of the trunk at that
 * entry, and its entries are a beginning of those here.
 */
#include "engine/care/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/session/session.h"
#include "engine/store/input_text.h"
#include "engine/store/keys_file.h"

/* --- an earlier branch ---------------------------------------------------- */

/* What a branch of the trunk is. */
struct place {
    uint32_t trunk;
    uint64_t fork_sequence; /* 0: a session by itself */
};

/* Finds the entry where a branch leaves the trunk, and its id. */
static enum wal_status find_place(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session,
                                  const struct wal__transfer_entries *found, struct place *place)
{
    struct wal__fork_record fork = {0};
    struct wal__summary trunk;
    enum wal_status status =
        wal__transfer_read_numbers(transfer, transfer->to, session->trunk->number, &trunk);

    if (status != WAL_OK) {
        return status;
    }
    place->trunk = session->trunk->number;
    place->fork_sequence = found->last != 0 ? found->last : trunk.fork_sequence;
    session->branch_point[0] = '\0';
    if (place->fork_sequence == 0) {
        return WAL_OK;
    }
    if (found->last != 0) {
        struct wal__entry_record record;
        struct wal__frame frame;

        status = wal__transfer_read_entry(transfer->to, found->last_position, &transfer->to_scratch,
                                          &frame, &record, &transfer->error);
        if (status == WAL_OK) {
            wal__transfer_copy_id(session->branch_point, record.id);
        }
        return status;
    }
    status = wal__transfer_read_fork(transfer->from, session->fork_position, &transfer->scratch,
                                     &fork, &transfer->error);
    if (status == WAL_OK) {
        wal__transfer_copy_id(session->branch_point, fork.entry_id);
    }
    return status;
}

/* Compares the session of `to` with the records after the common ones. Sets its state; WAL_EEXISTS:
 * it is not the branch, or went on otherwise. */
static enum wal_status try_branch(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session, const struct place *place,
                                  size_t first)
{
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    struct wal__transfer_entries found;
    struct wal__summary summary;
    enum wal_status status =
        wal__transfer_read_numbers(transfer, transfer->to, session->handle->number, &summary);

    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, session->handle, &mark);
    }
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number, &transfer->to_records,
                                       &transfer->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (summary.fork_sequence != place->fork_sequence ||
        (place->fork_sequence != 0 && summary.fork_source != place->trunk)) {
        return WAL_EEXISTS;
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    status = wal__transfer_compare_entries(transfer, session, first, &found);
    if (status == WAL_OK && (found.has_other || (place->fork_sequence == 0 && found.common == 0 &&
                                                 mark == WAL__TRANSFER_UNMARKED))) {
        status = WAL_EEXISTS;
    }
    if (status == WAL_OK) {
        status = wal__transfer_compare_branch_versions(
            transfer, session, place->fork_sequence == 0 ? 0 : summary.fork_record,
            mark != WAL__TRANSFER_UNMARKED);
    }
    if (status != WAL_OK) {
        return status;
    }
    session->state = mark != WAL__TRANSFER_UNMARKED ? WAL__TRANSFER_INCOMPLETE
                     : found.has_more               ? WAL__TRANSFER_AHEAD
                                                    : WAL__TRANSFER_PRESENT;
    session->is_continued = found.missing > 0;
    session->is_temporary = !session->is_wanted && mark == WAL__TRANSFER_MARKED_SOURCE;
    return WAL_OK;
}

/* --- the branch ----------------------------------------------------------- */

/* Marks what the trunk has of the session as present, and the rest as not. */
static void mark_common(struct wal__transfer *transfer, size_t first)
{
    struct wal__transfer_record *items = (void *)transfer->from_records.items.data;

    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items); i++) {
        items[i].is_present = items[i].type == WAL__FRAME_ENTRY && i < first;
    }
}

/* Plans a branch whose id is free. */
static enum wal_status plan_new(struct wal__transfer *transfer,
                                struct wal__transfer_session *session, const struct place *place)
{
    transfer->to_records.items.size = 0;
    transfer->to_records.hidden.size = 0;
    session->state = WAL__TRANSFER_NEW;
    return wal__transfer_compare_branch_versions(transfer, session,
                                                 place->fork_sequence == 0 ? 0 : UINT64_MAX, false);
}

/* Returns whether a session of `from` has the id; it may be taken along. */
static enum wal_status is_taken(struct wal__transfer *transfer, const char *id, bool *taken)
{
    const struct wal_slice slice = {id, strlen(id)};
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(transfer->from_store, slice, &session, &transfer->error);

    *taken = status == WAL_OK || status == WAL_ETRASHED;
    wal_session_close(session);
    return *taken || status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status find_branch(struct wal__transfer *transfer,
                                   struct wal__transfer_session *session, const struct place *place,
                                   size_t first)
{
    const struct wal__span id = {(const uint8_t *)session->id, strlen(session->id)};
    const size_t restores = transfer->restores.size;

    for (uint32_t i = 1; i <= WAL__TRANSFER_BRANCHES; i++) {
        enum wal_status status;

        wal_session_close(session->handle);
        session->handle = NULL;
        transfer->restores.size = restores;
        mark_common(transfer, first);
        wal__transfer_branch_id(transfer, id, i, session->copy_id);
        status = wal__transfer_open(transfer, session->copy_id, &session->handle);
        if (status == WAL_ENOTFOUND) {
            bool taken = false;

            status = is_taken(transfer, session->copy_id, &taken);
            if (status != WAL_OK || !taken) {
                return status == WAL_OK ? plan_new(transfer, session, place) : status;
            }
            status = WAL_EEXISTS;
        } else if (status == WAL_OK) {
            status = try_branch(transfer, session, place, first);
        }
        if (status != WAL_EEXISTS && status != WAL_ETRASHED) {
            return status;
        }
    }
    return wal__fail(&transfer->error, WAL_EEXISTS,
                     "the session has %d branches of this name there", (int)WAL__TRANSFER_BRANCHES);
}

/* Makes a branch of the session, whose handle and to_records are the trunk: finds the one that an
 * earlier transfer made, or plans a new one. `found`: the entries of the trunk. */
static void transfer_branch(struct wal__transfer *transfer, struct wal__transfer_session *session,
                            const struct wal__transfer_entries *found)
{
    const struct wal__transfer_records kept = transfer->trunk_records;
    struct place place = {.trunk = 0};
    enum wal_status status;

    session->trunk = session->handle;
    session->handle = NULL;
    session->is_continued = false;
    session->is_temporary = false;
    /* Those of the trunk are kept while those of branches are compared. */
    transfer->trunk_records = transfer->to_records;
    transfer->to_records = kept;
    status = find_place(transfer, session, found, &place);
    if (status == WAL_OK) {
        status = find_branch(transfer, session, &place, found->next);
    }
    (void)wal__transfer_try(transfer, session, status);
}

/* --- what becomes of a session -------------------------------------------- */

/* Marks all records but those of a new session as present. */
static void mark_documents(struct wal__transfer *transfer)
{
    struct wal__transfer_record *items = (void *)transfer->from_records.items.data;

    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items); i++) {
        items[i].is_present |=
            items[i].type == WAL__FRAME_DOC || items[i].type == WAL__FRAME_DOC_DELETE;
    }
}

/* Both went on with the session. */
static void part(struct wal__transfer *transfer, struct wal__transfer_session *session,
                 const struct wal__transfer_entries *found, const char *why)
{
    if (wal__transfer_keeps_both(transfer)) {
        transfer_branch(transfer, session, found);
    } else {
        wal__transfer_refuse(transfer, session, WAL_EEXISTS, "%s", why);
    }
}

static void compare_present(struct wal__transfer *transfer, struct wal__transfer_session *session,
                            enum wal__transfer_mark mark)
{
    struct wal__transfer_entries found;
    bool is_marked = mark != WAL__TRANSFER_UNMARKED;
    bool same = false;
    enum wal_status status = wal__transfer_compare_forks(transfer, session, &same);

    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    if (!same) {
        wal__transfer_refuse(transfer, session, WAL_EEXISTS,
                             "the session has another fork point there");
        return;
    }
    status = wal__transfer_compare_entries(transfer, session, 0, &found);
    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    if (found.has_other) {
        part(transfer, session, &found, "the session has other entries there");
        return;
    }
    if (found.has_more) {
        session->state = WAL__TRANSFER_AHEAD;
        mark_documents(transfer);
        return;
    }
    session->state = is_marked ? WAL__TRANSFER_INCOMPLETE : WAL__TRANSFER_PRESENT;
    session->is_continued = found.missing > 0;
    status = wal__transfer_compare_versions(
        transfer, is_marked ? WAL__TRANSFER_REPEAT : WAL__TRANSFER_REFUSE, &transfer->error);
    if (status == WAL_EEXISTS && wal__transfer_keeps_both(transfer)) {
        transfer_branch(transfer, session, &found);
    } else {
        (void)wal__transfer_try(transfer, session, status);
    }
}

/* Compares the session with that of its id in `to`: sets its state and is_present of from_records,
 * or refuses it. */
static void transfer_compare(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    enum wal_status status = wal__transfer_open(transfer, session->copy_id, &session->handle);

    if (status == WAL_ENOTFOUND) {
        session->state = WAL__TRANSFER_NEW;
        return;
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, session->handle, &mark);
    }
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number, &transfer->to_records,
                                       &transfer->error);
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    session->is_temporary = !session->is_wanted && mark == WAL__TRANSFER_MARKED_SOURCE;
    if (wal__transfer_try(transfer, session, status)) {
        compare_present(transfer, session, mark);
    }
}

/* --- sessions ------------------------------------------------------------- */

/* Returns the session; added if it is missing. NULL: the transfer failed. */
static struct wal__transfer_session *add_session(struct wal__transfer *transfer, uint32_t number)
{
    struct wal__transfer_session *session = wal__transfer_find(transfer, number);

    if (session != NULL) {
        return session;
    }
    if (WAL__HEAP_GROW(transfer->heap, transfer->sessions, transfer->session_count,
                       transfer->session_capacity)) {
        session = wal__heap_zalloc(transfer->heap, sizeof(*session));
    }
    if (session == NULL || wal__hashmap_add(&transfer->session_map, wal__transfer_hash(number),
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

/* Adds the session with this number if it is neither deleted nor in the trash. */
static void want_number(struct wal__transfer *transfer, uint32_t number)
{
    struct wal__transfer_session *session;
    struct wal__summary summary;
    enum wal_status status = wal__transfer_read_numbers(transfer, transfer->from, number, &summary);

    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK &&
         (summary.flags & (WAL__SUMMARY_DELETED | WAL__SUMMARY_TRASHED)) != 0)) {
        return;
    }
    if (status != WAL_OK) {
        wal__transfer_fail(transfer, status);
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
    enum wal_status status = wal_session_open(transfer->from_store, id, &session, &transfer->error);

    if (status != WAL_OK) {
        wal__error_set_actual(&transfer->error, id.data, id.size < WAL_ID_SIZE ? id.size : 0);
        wal__transfer_fail(transfer, status);
        return;
    }
    want_number(transfer, session->number);
    wal_session_close(session);
}

static uint32_t last_number(struct wal__transfer *transfer)
{
    enum wal_status status = wal__core_read_lock(transfer->from, &transfer->error);
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

    for (uint32_t number = 1; number <= last && transfer->failed == WAL_OK; number++) {
        want_number(transfer, number);
    }
    for (uint64_t i = 0;
         options->sessions != NULL && i < options->session_count && transfer->failed == WAL_OK;
         i++) {
        want_id(transfer, options->sessions[i]);
    }
}

/* --- one session ---------------------------------------------------------- */

/* Fills what its summary says. */
static void read_summary(struct wal__transfer *transfer, struct wal__transfer_session *session)
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
        wal__transfer_refuse(transfer, session, status, "the catalogue cannot be read");
    } else if ((summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        wal__transfer_refuse(transfer, session, WAL_EDAMAGED,
                             "the session lost entries; `agentwal "
                             "accept-damage` permits to go on without them");
    }
}

/* Marks what is not repeated: of a session that is not wanted, what no fork sees. */
static void apply_limits(struct wal__transfer *transfer,
                         const struct wal__transfer_session *session)
{
    struct wal__transfer_record *items = (void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);
    size_t kept = 0;

    if (session->is_wanted) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_entry = items[i].type == WAL__FRAME_ENTRY;
        bool is_document =
            items[i].type == WAL__FRAME_DOC || items[i].type == WAL__FRAME_DOC_DELETE;

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

/* Adds what creates a session: its first SESSION record, or its FORK record; and what is to be
 * repeated. */
static enum wal_status add_events(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session)
{
    const struct wal__transfer_record *items = (const void *)transfer->from_records.items.data;
    size_t count = transfer->from_records.items.size / sizeof(*items);
    const uint8_t creation = session->is_fork ? WAL__FRAME_FORK : WAL__FRAME_SESSION;
    bool is_created = session->state != WAL__TRANSFER_NEW;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        const struct wal__transfer_event event = {items[i].sequence, items[i].position,
                                                  session->rank, items[i].type};
        const struct wal__transfer_redaction redaction = {items[i].parent, items[i].position,
                                                          items[i].id_hash, session->rank, 0};
        bool is_creation = !is_created && items[i].type == creation;

        if (is_creation || is_repeated(&items[i])) {
            is_created |= is_creation;
            session->left++;
            status = wal__buf_append(&transfer->events, &event, sizeof(event));
        } else if (items[i].type == WAL__FRAME_REDACT &&
                   (session->is_wanted || items[i].parent <= session->entry_limit)) {
            status = wal__buf_append(&transfer->redactions, &redaction, sizeof(redaction));
        }
    }
    return status;
}

/* Adds the source of a fork, and what the fork sees of it and of the session that has the fork
 * point. */
static void add_source(struct wal__transfer *transfer, const struct wal__transfer_session *fork)
{
    struct wal__transfer_session *source = add_session(transfer, fork->fork_source);
    struct wal__transfer_session *owner =
        source == NULL || fork->fork_point == 0 ? source : add_session(transfer, fork->fork_owner);

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

/* Sets the FORK record of a fork in from_records. Where forks see nothing of a session but what it
 * sees itself of its sources, or not even that, they need no more of these: the rest up to its fork
 * point may be gone (SPEC.md 3.9). */
static void find_point(const struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    const struct wal__transfer_record *fork = wal__transfer_find_fork(&transfer->from_records);

    session->fork_position = fork == NULL ? 0 : fork->position;
    if (fork != NULL && !session->is_wanted && session->entry_limit == 0) {
        session->is_lowered = true;
        session->fork_point = session->through_point;
        session->fork_position = session->through_position;
        session->fork_owner = session->through_owner;
    }
}

/* Returns whether an earlier transfer left the source of a fork that is there.
 */
static bool has_left_source(struct wal__transfer *transfer, struct wal__transfer_session *fork)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    struct wal_session *source = NULL;
    enum wal_status status = wal_session_get_info(fork->handle, &info, &transfer->error);

    if (status == WAL_OK) {
        status = wal_session_open(transfer->to_store, info.parent_id, &source, &transfer->error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, source, &mark);
        wal_session_close(source);
    }
    return mark == WAL__TRANSFER_MARKED_SOURCE;
}

static void plan_session(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    enum wal_status status;

    read_summary(transfer, session);
    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    status = wal__transfer_collect(transfer->from, session->number, &transfer->from_records,
                                   &transfer->error);
    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    session->seen = transfer->from_records.end;
    apply_limits(transfer, session);
    find_point(transfer, session);
    transfer_compare(transfer, session);
    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    session->is_temporary |= session->state == WAL__TRANSFER_NEW && !session->is_wanted;
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

/* Finds the sessions and the records to repeat. */
static void transfer_plan(struct wal__transfer *transfer)
{
    uint32_t number = last_number(transfer);

    want_sessions(transfer);
    for (; number > 0 && transfer->failed == WAL_OK; number--) {
        struct wal__transfer_session *session = wal__transfer_find(transfer, number);

        if (session != NULL) {
            plan_session(transfer, session);
        }
    }
    wal__buf_sort(&transfer->events, sizeof(struct wal__transfer_event), wal__compare_u64);
    wal__buf_sort(&transfer->redactions, sizeof(struct wal__transfer_redaction),
                  wal__compare_u64_pair);
}

/* --- the transfer --------------------------------------------------------- */

enum {
    ATTEMPTS_MAX = 8,  /* while `from` is being compacted */
    NAME_MAX_SIZE = 64 /* bytes of the name of a branch */
};

/* --- reports -------------------------------------------------------------- */

/* What became of a session. */
static uint32_t kind_of(const struct wal__transfer_session *session)
{
    switch (session->state) {
    case WAL__TRANSFER_NEW:
    case WAL__TRANSFER_INCOMPLETE:
        return session->trunk != NULL ? WAL_TRANSFER_BRANCHED : WAL_TRANSFER_CREATED;
    case WAL__TRANSFER_REFUSED:
        return WAL_TRANSFER_REFUSED;
    default:
        return session->entries + session->documents > 0 ? WAL_TRANSFER_CONTINUED
                                                         : WAL_TRANSFER_UNCHANGED;
    }
}

static void report_session(struct wal__transfer *transfer,
                           const struct wal__transfer_session *session)
{
    const struct wal_transfer_options *options = transfer->options;
    struct wal_transfer_result *result = &transfer->result;
    uint64_t *const counts[] = {
        [WAL_TRANSFER_CREATED] = &result->created,
        [WAL_TRANSFER_CONTINUED] = &result->continued,
        [WAL_TRANSFER_UNCHANGED] = &result->unchanged,
        [WAL_TRANSFER_REFUSED] = &result->refused,
        [WAL_TRANSFER_BRANCHED] = &result->branched,
    };
    struct wal_transfer_report report = {
        .struct_size = sizeof(report),
        .kind = kind_of(session),
        .status = session->why == NULL ? WAL_OK : session->why->status,
        .session_id = {session->id, strlen(session->id)},
        .entries = session->entries,
        .documents = session->documents,
        .error = session->why,
    };

    if (session->trunk != NULL && report.kind != WAL_TRANSFER_REFUSED) {
        report.branch_id = (struct wal_slice){session->copy_id, strlen(session->copy_id)};
    }
    if (!session->is_wanted && report.kind != WAL_TRANSFER_REFUSED) {
        return;
    }
    ++*counts[report.kind];
    if (options->report != NULL) {
        wal__transfer_check_answer(transfer, options->report(options->ctx, &report), "report");
    }
}

/* --- the copy ------------------------------------------------------------- */

static void report_progress(struct wal__transfer *transfer, size_t done, size_t total)
{
    const struct wal_transfer_options *options = transfer->options;

    if (options->progress != NULL) {
        wal__transfer_check_answer(transfer, options->progress(options->ctx, done, total),
                                   "progress");
    }
}

static void repeat(struct wal__transfer *transfer, const struct wal__transfer_event *event)
{
    struct wal__transfer_session *session = transfer->sessions[event->rank];

    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    switch (event->type) {
    case WAL__FRAME_ENTRY:
        wal__transfer_entry(transfer, session, event->position);
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        wal__transfer_document(transfer, session, event->position);
        break;
    default:
        wal__transfer_create(transfer, session);
        break;
    }
    session->left--;
    if (session->left > 0 || !wal__transfer_goes_on(transfer, session)) {
        return;
    }
    if (transfer->redactions.size == 0) {
        wal__transfer_complete(transfer, session);
    } else if (wal__buf_append(&transfer->waiting, &session->rank, sizeof(session->rank)) !=
               WAL_OK) {
        wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
    }
}

static void repeat_all(struct wal__transfer *transfer)
{
    const struct wal__transfer_event *events = (const void *)transfer->events.data;
    size_t count = transfer->events.size / sizeof(*events);

    for (uint32_t i = 0; i < transfer->session_count; i++) {
        struct wal__transfer_session *session = transfer->sessions[i];

        /* One that an earlier transfer left incomplete. */
        if (session->trunk != NULL && session->handle != NULL &&
            wal__transfer_goes_on(transfer, session)) {
            wal__transfer_restore_branch(transfer, session);
        }
    }
    for (size_t i = 0; i < count && transfer->failed == WAL_OK; i++) {
        repeat(transfer, &events[i]);
        report_progress(transfer, i + 1, count);
    }
    wal__transfer_flush(transfer);
}

static void complete(struct wal__transfer *transfer, uint32_t rank)
{
    struct wal__transfer_session *session = transfer->sessions[rank];

    if (wal__transfer_goes_on(transfer, session) && !session->is_complete) {
        wal__transfer_complete(transfer, session);
    }
}

/* Hides what is hidden, completes the sessions that are not complete yet, in the order of their
 * last records, and deletes what only forks needed. */
static void finish(struct wal__transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        wal__transfer_redact(transfer, transfer->sessions[i]);
    }
    for (size_t at = 0; at < transfer->waiting.size; at += sizeof(uint32_t)) {
        uint32_t rank;

        memcpy(&rank, transfer->waiting.data + at, sizeof(rank));
        complete(transfer, rank);
    }
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        complete(transfer, i);
    }
    /* A source comes after its fork, from which the next transfer finds one that is left. So it is
     * deleted first, and the fork stays when that fails. */
    for (uint32_t i = transfer->session_count; i > 0; i--) {
        struct wal__transfer_session *session = transfer->sessions[i - 1];
        const bool is_due = session->is_temporary && wal__transfer_goes_on(transfer, session);

        if (is_due) {
            wal__transfer_remove(transfer, session);
        }
        if (is_due && !wal__transfer_goes_on(transfer, session)) {
            break;
        }
    }
}

static void run(struct wal__transfer *transfer, bool with_documents)
{
    enum wal_status status;

    transfer_plan(transfer);
    if (transfer->failed == WAL_OK) {
        repeat_all(transfer);
    }
    if (transfer->failed == WAL_OK) {
        finish(transfer);
    }
    if (transfer->failed == WAL_OK && with_documents) {
        wal__transfer_store_documents(transfer);
    }
    if (transfer->failed == WAL_OK) {
        status = wal_sync(transfer->to_store, &transfer->error);
        if (status != WAL_OK) {
            wal__transfer_fail(transfer, status);
        }
    }
    for (uint32_t i = 0; i < transfer->session_count && transfer->failed == WAL_OK; i++) {
        report_session(transfer, transfer->sessions[i]);
    }
}

/* --- the call ------------------------------------------------------------- */

/* *transfer is zero but for its stores and options. */
static void init(struct wal__transfer *transfer)
{
    const struct wal__heap *heap = transfer->heap;

    transfer->why.struct_size = sizeof(transfer->why);
    transfer->error.struct_size = sizeof(transfer->error);
    wal__spill_init(&transfer->spill, heap, transfer->to->env.root);
    /* Files are not encrypted. */
    transfer->large_heap = transfer->to->env.io == &wal__io_posix &&
                                   transfer->to->env.keyring == NULL &&
                                   transfer->from->env.keyring == NULL
                               ? &transfer->spill.heap
                               : heap;
    wal__hashmap_init(&transfer->session_map, heap);
    wal__buf_init(&transfer->events, heap);
    wal__buf_init(&transfer->redactions, heap);
    wal__buf_init(&transfer->waiting, heap);
    wal__buf_init(&transfer->from_records.items, heap);
    wal__buf_init(&transfer->from_records.hidden, heap);
    wal__buf_init(&transfer->to_records.items, heap);
    wal__buf_init(&transfer->to_records.hidden, heap);
    wal__buf_init(&transfer->trunk_records.items, heap);
    wal__buf_init(&transfer->trunk_records.hidden, heap);
    wal__buf_init(&transfer->restores, heap);
    wal__sha256_alg_init(&transfer->sha256);
    wal__record_buf_init(&transfer->scratch, heap);
    wal__record_buf_init(&transfer->to_scratch, heap);
    wal__buf_init(&transfer->batch.copies.bytes, heap);
    wal__buf_init(&transfer->batch.parent_ids, heap);
    wal__buf_init(&transfer->batch.remains, heap);
    wal__buf_init(&transfer->texts, heap);
}

static void deinit(struct wal__transfer *transfer)
{
    wal__copy_batch_empty(&transfer->batch.copies, transfer->large_heap);
    wal__transfer_close_sessions(transfer);
    wal__hashmap_deinit(&transfer->session_map);
    wal__buf_deinit(&transfer->events);
    wal__buf_deinit(&transfer->redactions);
    wal__buf_deinit(&transfer->waiting);
    wal__buf_deinit(&transfer->from_records.items);
    wal__buf_deinit(&transfer->from_records.hidden);
    wal__buf_deinit(&transfer->to_records.items);
    wal__buf_deinit(&transfer->to_records.hidden);
    wal__buf_deinit(&transfer->trunk_records.items);
    wal__buf_deinit(&transfer->trunk_records.hidden);
    wal__buf_deinit(&transfer->restores);
    wal__sha256_alg_deinit(&transfer->sha256);
    wal__record_buf_deinit(&transfer->scratch);
    wal__record_buf_deinit(&transfer->to_scratch);
    wal__buf_deinit(&transfer->batch.copies.bytes);
    wal__buf_deinit(&transfer->batch.parent_ids);
    wal__buf_deinit(&transfer->batch.remains);
    wal__buf_deinit(&transfer->texts);
    wal__spill_deinit(&transfer->spill);
}

enum wal_status wal__transfer_run(struct wal_store *from, struct wal_store *to,
                                  const struct wal_transfer_options *options, bool with_documents,
                                  struct wal_transfer_result *result, struct wal_error *error)
{
    const struct wal__heap *heap = to->core.env.heap;
    struct wal__content_guard guard = {NULL, 0};
    enum wal_status status = WAL_OK;
    struct wal__transfer *transfer;
    bool again = true;

    if (!from->core.env.read_only) {
        status = wal__committer_flush(&from->core.committer, error);
    }
    if (status == WAL_OK) {
        status = wal__content_guard_enter(&guard, &to->core.control, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    transfer = wal__heap_alloc(heap, sizeof(*transfer));
    if (transfer == NULL) {
        wal__content_guard_leave(&guard);
        return wal__no_memory(error);
    }
    for (int i = 0; i < ATTEMPTS_MAX && again; i++) {
        memset(transfer, 0, sizeof(*transfer));
        transfer->from = &from->core;
        transfer->to = &to->core;
        transfer->from_store = from;
        transfer->to_store = to;
        transfer->options = options;
        transfer->heap = heap;
        transfer->result = *result;
        init(transfer);
        (void)wal__core_look_again(transfer->from, &transfer->looked);
        run(transfer, with_documents);
        *result = transfer->result;
        status = transfer->failed;
        again = transfer->was_replaced;
        if (status != WAL_OK) {
            wal__error_copy(error, &transfer->why);
        }
        deinit(transfer);
    }
    wal__content_guard_leave(&guard);
    wal__heap_free(heap, transfer);
    return status;
}

/* Returns whether both are the same directory; copies of a store have the same uuid. */
static bool is_same_place(const struct wal__env *a, const struct wal__env *b)
{
    struct wal__io_stat x;
    struct wal__io_stat y;
    int err = 0;

    return a->io == b->io && a->io->path_stat(a->io->ctx, a->root, &x, &err) == WAL_OK &&
           b->io->path_stat(b->io->ctx, b->root, &y, &err) == WAL_OK && x.device == y.device &&
           x.inode == y.inode;
}

static const uint32_t transfer_flags = WAL_TRANSFER_KEEP_BOTH | WAL_TRANSFER_PLAIN;

enum wal_status wal__transfer_load(struct wal_transfer_options *own, struct wal_key *key,
                                   const struct wal_transfer_options *options,
                                   const struct wal_transfer_result *result,
                                   struct wal_error *error)
{
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_transfer_options), own, options, error);
    struct wal__span name;

    if (status == WAL_OK) {
        status = wal__text_check(own->branch_name, NAME_MAX_SIZE, "branch's name", &name, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_transfer_result), result, error);
    }
    if (status == WAL_OK && own->key != NULL) {
        status = wal__struct_load(WAL__STRUCT(wal_key), key, own->key, error);
        own->key = key;
    }
    if (status == WAL_OK && own->key != NULL) {
        status = wal__key_check(key, error);
    }
    return status == WAL_OK && ((own->flags & ~transfer_flags) != 0 ||
                                (own->sessions == NULL && own->session_count > 0))
               ? wal__invalid(error, "the options of the transfer are not "
                                     "valid")
               : status;
}

enum wal_status wal_store_merge(struct wal_store *from, struct wal_store *to,
                                const struct wal_transfer_options *options,
                                struct wal_transfer_result *result, struct wal_error *error)
{
    struct wal_transfer_result done = WAL_INIT(wal_transfer_result);
    struct wal_transfer_options own;
    struct wal_key key;
    enum wal_status status = wal__check_core(from == NULL ? NULL : &from->core, error);

    if (status == WAL_OK) {
        status = wal__check_writable(to == NULL ? NULL : &to->core, error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_load(&own, &key, options, result, error);
    }
    if (status == WAL_OK && (from == to || is_same_place(&from->core.env, &to->core.env))) {
        status = wal__invalid(error, "a store cannot be merged with itself");
    }
    if (status != WAL_OK || from->core.env.io->forgets || to->core.env.io->forgets) {
        return status;
    }
    status = wal__transfer_run(from, to, &own, own.sessions == NULL, &done, error);
    wal__struct_store(WAL__STRUCT(wal_transfer_result), result, &done);
    return status;
}
