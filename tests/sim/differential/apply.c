/*
 * apply.c - one operation after the other on the store and on the reference: entries, batches,
 * documents, sessions, updates (differential.h).
 */
#include <stdio.h>
#include <string.h>

#include "engine/session/store.h"
#include "tests/sim/differential/differential.h"

static const struct wal_slice nothing = {NULL, 0};

static void differential_append(struct differential *run)
{
    struct differential_request given;

    if (!differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    if (differential_one_in(run, 5)) {
        differential_expect_tail(run, &given);
    }
    if (differential_one_in(run, 10)) {
        given.batch.entry_count = 1;
        given.entries[0].id = nothing;
    }
    differential_commit(run, &given);
}

/* ------------------------------------------------------------- refusals --- */

/* Native entries that name what is not there, or name nothing. */
static void name_missing(struct differential *run, struct wal_entry *entry)
{
    static const char *const types[] = {WAL_TYPE_COMPACTION_SUMMARY, WAL_TYPE_BRANCH_SUMMARY,
                                        WAL_TYPE_REDACTION};
    uint32_t type = differential_random(run, 3);

    entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
    entry->type = differential_slice(types[type]);
    entry->payload = differential_slice("{\"summary\":\"of nothing\"}");
    if (differential_one_in(run, 2)) {
        entry->payload =
            differential_slice("{\"firstKeptEntryId\":\"none\",\"sourceSessionId\":\"none\","
                               "\"sourceEntryId\":\"none\",\"targetEntryId\":\"none\"}");
    }
}

static void invalidate_content(struct differential *run, struct wal_entry *entry)
{
    switch (differential_random(run, 10)) {
    case 0:
        entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
        entry->payload = differential_slice("{\"open\":[}");
        break;
    case 1:
        entry->meta = differential_slice("\"no object\"");
        break;
    case 2:
        entry->id = differential_random_bytes(run, 256, 'i');
        break;
    case 3:
        entry->type = nothing;
        break;
    case 4:
        entry->timestamp = differential_random_bytes(run, 65, '1');
        break;
    case 5:
        entry->stream = 256;
        entry->parent_id = nothing;
        break;
    case 6:
        entry->flags |= WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
        break;
    case 7:
        entry->run_id = differential_slice("\xc3");
        break;
    case 8:
        entry->flags |= 1u << 8;
        break;
    default:
        entry->flags |= WAL_ENTRY_ROOT;
        entry->parent_id = differential_slice("a root has none");
        break;
    }
}

/* A batch that is refused for one entry of it, or for the tail. */
static void differential_append_refused(struct differential *run)
{
    struct differential_request given;
    struct wal_entry *entry;

    if (!differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    entry = &given.entries[differential_random(run, given.batch.entry_count)];
    switch (differential_random(run, 8)) {
    case 0:
    case 1:
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_slice("nobody");
        break;
    case 2:
        /* An entry that is there, but is seldom the tail. */
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_entry_id(run, given.number);
        break;
    case 3:
        entry->flags &= ~(uint32_t)WAL_ENTRY_ROOT;
        entry->parent_id = differential_slice("nobody");
        break;
    case 4:
        name_missing(run, entry);
        break;
    case 5:
        given.batch.entry_count = 0;
        break;
    default:
        invalidate_content(run, entry);
        break;
    }
    differential_commit(run, &given);
}

/* Appends existing entries: the same, or another one under the same id; after them, sometimes, a
 * new one and a wrong expected tail. */
static void differential_append_repeat(struct differential *run)
{
    struct differential_request given;
    struct reference_entry there;
    uint32_t count = 1 + differential_random(run, 3);

    if (!differential_request_init(run, &given)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = differential_random(run, (uint32_t)reference_last_sequence(run->ref) + 1);

        if (!reference_pick_entry(run->ref, given.number, from, &given.entries[i])) {
            return;
        }
        given.entries[i].struct_size = sizeof(given.entries[i]);
        if (differential_one_in(run, 3)) {
            given.entries[i].timestamp = nothing;
        }
    }
    given.batch.entry_count = count;
    if (differential_one_in(run, 6) &&
        reference_get(run->ref, given.number, given.entries[0].id, 0, &there) != WAL_EREDACTED) {
        /* One that was redacted may be erased: then any content is the same. */
        given.entries[0].payload = differential_json(run);
    } else if (differential_one_in(run, 6)) {
        given.entries[0].parent_id = differential_entry_id(run, given.number);
    } else if (differential_one_in(run, 6)) {
        given.entries[0].flags |= WAL_ENTRY_ROOT;
    }
    if (differential_one_in(run, 4)) {
        differential_entry(run, given.number, &given.entries[count]);
        if (differential_one_in(run, 4)) {
            differential_redaction_entry(run, given.entries[0].id, &given.entries[count]);
        }
        given.batch.entry_count++;
        /* Twice in one batch. */
        given.entries[count + 1] = given.entries[count];
        given.batch.entry_count += differential_one_in(run, 3);
    }
    if (differential_one_in(run, 6)) {
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_slice("nobody");
    }
    differential_commit(run, &given);
}

/* --- batch ---------------------------------------------------------------- */

/*
 * Operations that commit entries, documents, heads and a change together.
 */

static void fill_docs(struct differential *run, struct differential_request *given)
{
    uint32_t count = differential_random(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        bool is_store = differential_one_in(run, 3);

        differential_doc(run, given->number, is_store, &given->docs[i]);
        given->docs[i].flags |= is_store ? WAL_DOC_STORE : 0;
        if (differential_one_in(run, 6)) {
            given->docs[i].flags |= WAL_DOC_DELETE;
            given->docs[i].value = nothing;
        }
    }
    given->batch.document_count = count;
}

static void fill_heads(struct differential *run, struct differential_request *given)
{
    uint32_t count = differential_random(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        struct wal_head *head = &given->heads[i];

        differential_head(run, given->number, head);
        if (given->batch.entry_count > 0 && differential_one_in(run, 3)) {
            head->entry_id = given->entries[0].id;
            head->stream = given->entries[0].stream;
        }
        if (differential_one_in(run, 4)) {
            head->flags |= WAL_HEAD_EXPECT;
            (void)reference_head_get(run->ref, given->number, head->stream, head->name,
                                     &head->expected);
        }
    }
    given->batch.head_count = count;
}

/* One condition that does not hold, or a part that is not valid. */
static void invalidate_batch(struct differential *run, struct differential_request *given)
{
    switch (differential_random(run, 4)) {
    case 0:
        given->docs[0].struct_size = sizeof(given->docs[0]);
        given->docs[0].flags = WAL_DOC_EXPECT;
        given->docs[0].key = differential_slice("never there");
        given->docs[0].value = differential_slice("1");
        given->docs[0].version = 7;
        given->batch.document_count = 1;
        break;
    case 1:
        given->heads[0].struct_size = sizeof(given->heads[0]);
        given->heads[0].flags = WAL_HEAD_EXPECT;
        given->heads[0].expected = differential_slice("elsewhere");
        given->batch.head_count = 1;
        break;
    case 2:
        given->docs[1] = given->docs[0];
        given->docs[1].value = differential_slice("{");
        given->docs[1].key = differential_slice("bad");
        given->docs[1].struct_size = sizeof(given->docs[1]);
        given->batch.document_count = given->batch.document_count > 0 ? 2 : 0;
        break;
    default:
        given->change.struct_size = sizeof(given->change);
        given->change.fields = WAL_CHANGE_EXPECT | WAL_CHANGE_TITLE;
        given->change.expected_version = 1u << 30;
        given->batch.change = &given->change;
        break;
    }
}

void differential_fill_parts(struct differential *run, struct differential_request *given)
{
    fill_docs(run, given);
    fill_heads(run, given);
    if (differential_one_in(run, 3)) {
        given->change.struct_size = sizeof(given->change);
        differential_change(run, given->number, &given->change);
        given->batch.change = &given->change;
    }
}

static void differential_batch(struct differential *run)
{
    struct differential_request given;

    if (!differential_request_init(run, &given)) {
        return;
    }
    if (!differential_one_in(run, 3)) {
        differential_fill_entries(run, &given);
    }
    differential_fill_parts(run, &given);
    if (differential_one_in(run, 5)) {
        invalidate_batch(run, &given);
    } else if (differential_one_in(run, 6)) {
        differential_expect_tail(run, &given);
    }
    differential_commit(run, &given);
    if (given.batch.document_count > 0) {
        struct wal_doc_cursor_options docs = {.struct_size = sizeof(docs)};

        differential_check_docs(run, given.number, &docs);
    }
}

/* --- operations on one head or one document ------------------------------- */

static void differential_move_head(struct differential *run)
{
    uint32_t number = differential_session(run);
    char previous[256] = "";
    char wanted[256] = "";
    struct wal_session *session;
    struct wal_head head;
    enum wal_status status;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    differential_head(run, number, &head);
    if (differential_one_in(run, 3)) {
        head.flags |= WAL_HEAD_EXPECT;
        (void)reference_head_get(run->ref, number, head.stream, head.name, &head.expected);
    }
    switch (differential_random(run, 12)) {
    case 0:
    case 1:
        head.entry_id = nothing;
        break;
    case 2:
        head.entry_id = differential_slice("no entry");
        break;
    case 3:
        head.flags |= WAL_HEAD_EXPECT;
        head.expected = differential_slice("elsewhere");
        break;
    case 4:
        head.stream++;
        break;
    case 5:
        head.note = differential_random_bytes(run, 4097, 'n');
        break;
    case 6:
        head.name = differential_random_bytes(run, 256, 'n');
        break;
    default:
        break;
    }
    status = wal_head_move(session, &head, previous, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(
            run, status, reference_head_move(run->ref, number, &head, wanted, &run->expected))) {
        differential_check_slice(run, "the head before", differential_slice(previous),
                                 differential_slice(wanted));
    }
    differential_check_heads(run, number);
    differential_check_session(run, number);
}

void differential_get_head(struct differential *run)
{
    static const char *const names[] = {"", "main", "left", "right", "nobody"};
    struct wal_slice name = differential_slice(names[differential_random(run, 5)]);
    uint32_t stream = differential_random(run, DIFFERENTIAL_STREAMS);
    uint32_t number = differential_session(run);
    struct wal_session *session;
    struct wal_slice wanted = {NULL, 0};
    enum wal_status status;
    char id[256];

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    status = wal_head_get(session, stream, name, id, &run->error);
    if (differential_compare_status(run, status,
                                    reference_head_get(run->ref, number, stream, name, &wanted))) {
        differential_check_slice(run, "a head", differential_slice(id), wanted);
    }
    differential_check_heads(run, number);
}

/* ----------------------------------------------------------- documents --- */

/* A session, or the store; false: there is no session. */
static bool choose(struct differential *run, uint32_t *number, struct wal_session **session)
{
    *session = NULL;
    *number = REFERENCE_STORE;
    if (!differential_one_in(run, 4)) {
        *number = differential_session(run);
        *session = *number == 0 ? NULL : differential_handle(run, *number);
        return *session != NULL;
    }
    return true;
}

static void invalidate(struct differential *run, struct wal_doc *doc)
{
    switch (differential_random(run, 5)) {
    case 0:
        doc->value = differential_slice("{\"open\":");
        break;
    case 1:
        doc->key = nothing;
        break;
    case 2:
        doc->key = differential_random_bytes(run, 1025, 'k');
        break;
    case 3:
        doc->flags |= 1u << 7;
        break;
    default:
        doc->flags |= WAL_DOC_EXPECT;
        doc->version += 1;
        break;
    }
}

static void differential_put_doc(struct differential *run)
{
    struct wal_session *session;
    struct wal_doc doc;
    uint64_t version = 0;
    uint64_t wanted = 0;
    enum wal_status status;
    uint32_t number;

    if (!choose(run, &number, &session)) {
        return;
    }
    differential_doc(run, number, session == NULL, &doc);
    if (differential_one_in(run, 5)) {
        invalidate(run, &doc);
    }
    status = wal_doc_put(run->store, session, &doc, &version, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(
            run, status, reference_doc_put(run->ref, number, &doc, &wanted, &run->expected))) {
        differential_check_number(run, "the new version", version, wanted);
        differential_check_doc_get(run, number, doc.key, 0);
    }
}

static void differential_delete_doc(struct differential *run)
{
    struct wal_session *session;
    struct wal_doc doc;
    uint64_t version = 0;
    uint64_t wanted = 0;
    enum wal_status status;
    uint32_t number;

    if (!choose(run, &number, &session)) {
        return;
    }
    differential_doc(run, number, session == NULL, &doc);
    doc.value = nothing;
    if (differential_one_in(run, 8)) {
        doc.flags |= WAL_DOC_EXPECT;
        doc.version += 1;
    }
    status = wal_doc_delete(run->store, session, &doc, &version, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(
            run, status, reference_doc_delete(run->ref, number, &doc, &wanted, &run->expected))) {
        differential_check_number(run, "the new version", version, wanted);
    }
    differential_check_doc_get(run, number, doc.key, 0);
}

/* --- operations that make, open, fork and delete sessions ----------------- */

/* The id of a session that the engine made up. */
static struct wal_slice id_of(struct differential *run, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, &run->error);

    if (status != WAL_OK) {
        differential_fail(run, "a new session's status answers %d", status);
    }
    return differential_text(run, "%.*s", (int)info.id.size, (const char *)info.id.data);
}

/* An id that is taken, or was by a session that is deleted. */
static struct wal_slice some_id(struct differential *run)
{
    uint32_t number = differential_session(run);
    struct reference_info info;

    if (number == 0 || reference_session_status(run->ref, number, &info) != WAL_OK) {
        return differential_slice("nobody");
    }
    return info.info.id;
}

/* Spoils the options in one way; or takes an id that is taken. */
static void session_invalidate(struct differential *run, struct wal_session_options *options)
{
    switch (differential_random(run, 6)) {
    case 0:
        options->metadata = differential_slice("{\"open\":");
        break;
    case 1:
        options->metadata = differential_slice("[]");
        break;
    case 2:
        options->id = differential_random_bytes(run, 256, 'i');
        break;
    case 3:
        options->id = differential_slice("\xff\xfe");
        break;
    case 4:
        options->title = differential_random_bytes(run, 4097, 't');
        break;
    default:
        options->id = some_id(run);
        break;
    }
}

static void differential_create(struct differential *run)
{
    struct wal_session_options options;
    struct wal_session *session = NULL;
    enum wal_status status;
    uint32_t number = 0;

    differential_session_options(run, &options);
    if (differential_one_in(run, 8)) {
        options.id = nothing;
    } else if (differential_one_in(run, 3)) {
        session_invalidate(run, &options);
    }
    status = wal_session_create(run->store, &options, &session, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && options.id.size == 0) {
        options.id = id_of(run, session);
    }
    if (differential_compare_status(
            run, status, reference_session_create(run->ref, &options, &number, &run->expected))) {
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

/* Closes the handle that is there, sometimes; opens one by an id. */
void differential_open_session(struct differential *run)
{
    struct wal_slice id = some_id(run);
    struct wal_session *session = NULL;
    enum wal_status status;
    uint32_t number = 0;

    status = wal_session_open(run->store, id, &session, &run->error);
    if (differential_compare_status(run, status, reference_session_open(run->ref, id, &number))) {
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

void differential_latest(struct differential *run)
{
    struct wal_slice cwd = {NULL, 0};
    struct wal_session *session = NULL;
    enum wal_status status;
    uint32_t number = 0;

    if (differential_one_in(run, 2)) {
        cwd = differential_text(run, "/work/%u", differential_random(run, 5));
    }
    differential_learn_times(run);
    status = wal_session_open_latest(run->store, cwd, &session, &run->error);
    if (differential_compare_status(run, status,
                                    reference_session_latest(run->ref, cwd, &number))) {
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

static void differential_open_or_create(struct differential *run)
{
    struct wal_session_options options;
    struct wal_slice made = {NULL, 0};
    struct wal_session *session = NULL;
    enum wal_status status;
    int32_t created = -1;
    int32_t expected = -1;
    uint32_t number = 0;

    differential_session_options(run, &options);
    if (differential_one_in(run, 3)) {
        options.id = some_id(run);
    } else if (differential_one_in(run, 2)) {
        options.id = nothing;
    }
    differential_learn_times(run);
    status = wal_session_open_or_create(run->store, &options, &session, &created, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && created == 1) {
        made = id_of(run, session);
    }
    if (differential_compare_status(run, status,
                                    reference_session_open_or_create(run->ref, &options, made,
                                                                     &number, &expected,
                                                                     &run->expected))) {
        if (created != expected) {
            differential_fail(run, "created is %d, not %d", created, expected);
        }
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

static void differential_fork(struct differential *run)
{
    uint32_t number = differential_session(run);
    struct wal_session_options options;
    struct wal_slice at = {NULL, 0};
    struct wal_session *session;
    struct wal_session *fork = NULL;
    enum wal_status status;
    uint32_t made = 0;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    differential_session_options(run, &options);
    if (differential_one_in(run, 2)) {
        at = differential_entry_id(run, number);
    }
    if (differential_one_in(run, 10)) {
        options.id = nothing;
    } else if (differential_one_in(run, 12)) {
        session_invalidate(run, &options);
    } else if (differential_one_in(run, 12)) {
        at = differential_slice("no entry");
    }
    status = wal_session_fork(session, at, &options, &fork, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && options.id.size == 0) {
        options.id = id_of(run, fork);
    }
    if (differential_compare_status(
            run, status,
            reference_session_fork(run->ref, number, at, &options, &made, &run->expected))) {
        differential_set_handle(run, made, fork);
        differential_check_session(run, made);
    }
}

static void differential_delete(struct differential *run)
{
    uint32_t number = differential_session(run);
    struct wal_session *session;
    enum wal_status status;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    status = wal_session_delete(session, &run->error);
    differential_enter_reference(run);
    (void)differential_compare_status(run, status,
                                      reference_session_delete(run->ref, number, &run->expected));
}

static void differential_trash(struct differential *run)
{
    uint32_t number = differential_session(run);
    struct wal_session *session;
    enum wal_status status;

    session = number == 0 ? NULL : differential_handle(run, number);
    if (session == NULL) {
        return;
    }
    status = wal_session_trash(session, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(run, status,
                                    reference_session_trash(run->ref, number, &run->expected))) {
        differential_check_session(run, number);
        /* Without the handle it cannot be read before it is undeleted. */
        if (differential_one_in(run, 2)) {
            wal_session_close(run->handles[number]);
            run->handles[number] = NULL;
        }
    }
}

/* Of one that is in the trash, or now and then of any. */
static void differential_undelete(struct differential *run)
{
    uint32_t count = reference_session_count(run->ref);
    uint32_t start = differential_random(run, count + 1);
    bool any = differential_one_in(run, 8);
    struct reference_info info;
    enum wal_status status;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (start + i) % count + 1;

        if (!reference_is_trashed(run->ref, number) &&
            (!any || reference_session_status(run->ref, number, &info) != WAL_OK)) {
            continue;
        }
        (void)!reference_session_status(run->ref, number, &info);
        status = wal_session_undelete(run->store, info.info.id, &run->error);
        differential_enter_reference(run);
        if (differential_compare_status(
                run, status, reference_session_undelete(run->ref, info.info.id, &run->expected))) {
            differential_learn_dropped(run, false); /* while it was not read */
            differential_check_session(run, number);
        }
        return;
    }
}

/* --- lifecycle ------------------------------------------------------------ */

/*
 * Operations on the store as a whole: it is synced, closed and opened, killed, and loses power.
 */

/* Draws the schema version and the options of the next opening. */
static void choose_opening(struct differential *run)
{
    run->schema_version = differential_one_in(run, 4) ? 1 + differential_random(run, 2) : 0;
    run->open_flags = differential_one_in(run, 4) ? WAL_OPEN_PREAD : 0;
}

static void open_again(struct differential *run)
{
    choose_opening(run);
    differential_open(run, 0);
    reference_sync(run->ref);
    if (differential_one_in(run, 3)) {
        differential_check_all(run);
    }
}

void differential_sync(struct differential *run)
{
    (void)differential_compare_status(run, wal_sync(run->store, &run->error), WAL_OK);
    reference_sync(run->ref);
}

void differential_commit_mark(struct differential *run)
{
    if (run->is_memory) {
        return;
    }
    (void)differential_compare_status(run, wal__store_commit_mark(run->store, &run->error), WAL_OK);
}

void differential_reopen(struct differential *run)
{
    if (run->is_memory) {
        return;
    }
    differential_close(run);
    reference_sync(run->ref);
    open_again(run);
}

void differential_crash(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);

    if (run->is_memory) {
        return;
    }
    differential_kill(run);
    differential_open(run, 0);
    differential_check_number(run, "the last sequence after a death",
                              reference_last_sequence(run->ref), last);
    reference_sync(run->ref);
    differential_kill(run);
    open_again(run);
    differential_check_number(run, "the last sequence after two deaths",
                              reference_last_sequence(run->ref), last);
}

void differential_lose_power(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);
    struct sim_power_loss loss = {
        .landing = (enum sim_persistence)differential_random(run, (uint32_t)SIM_PERSISTENCES),
        .garbage = differential_one_in(run, 2),
        .unsafe_overwrite = run->group_align != 0 && differential_one_in(run, 2)};

    if (run->is_memory) {
        return;
    }
    if (differential_one_in(run, 8)) {
        differential_close(run);
        reference_sync(run->ref);
    }
    differential_kill(run);
    sim_disk_power_loss(run->disk, &loss, run->rng_state);
    run->has_failed = false;
    choose_opening(run);
    differential_open(run, 0);
    run->counts->lost += last - reference_last_sequence(run->ref);
    differential_check_all(run);
}

/* Reading only: all is there, nothing can be written, nothing is changed. */
void differential_read_only(struct differential *run)
{
    uint64_t last = reference_last_sequence(run->ref);
    struct wal_session *session = NULL;

    if (run->is_memory) {
        return;
    }
    if (differential_one_in(run, 2)) {
        differential_close(run);
        reference_sync(run->ref);
    } else {
        differential_kill(run);
    }
    differential_open(run, WAL_OPEN_READ_ONLY);
    differential_check_number(run, "the last sequence to a reader",
                              reference_last_sequence(run->ref), last);
    (void)differential_compare_status(
        run, wal_session_create(run->store, NULL, &session, &run->error), WAL_EREADONLY);
    differential_check_all(run);
    differential_close(run);
    open_again(run);
}

/* --- update --------------------------------------------------------------- */

/*
 * Operations that change what a session says about itself. The same function is called by both
 * sides; it checks its arguments, and writes to the session that it is called for.
 */

enum {
    CALLS = 2 /* that are looked at */
};

/* The update function of one side. */
struct update_call {
    struct differential *run;
    uint32_t number;
    struct wal_session *session; /* the engine's side; null: the reference */
    struct wal_session_change change;
    uint32_t fail_at; /* this call answers no; 0: none does */
    uint32_t nested;  /* number of calls that update the session */
    uint32_t calls;
    char title[32];
    uint64_t versions[CALLS]; /* of the metadata, as passed to it */
};

/* A title that was never there. */
static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    struct update_call *update_call = ctx;

    (void)now;
    (void)snprintf(update_call->title, sizeof(update_call->title), "call %u", update_call->calls);
    change->fields = WAL_CHANGE_TITLE;
    change->title = differential_slice(update_call->title);
    return 0;
}

static int32_t update_callback(void *ctx, const struct wal_session_info *now,
                               struct wal_session_change *change)
{
    struct update_call *update_call = ctx;

    if (update_call->calls < CALLS) {
        update_call->versions[update_call->calls] = now->metadata_version;
    }
    update_call->calls++;
    if (update_call->calls == update_call->fail_at) {
        return 42;
    }
    if (update_call->calls <= update_call->nested) {
        enum wal_status status =
            update_call->session != NULL
                ? wal_session_update(update_call->session, retitle, update_call, NULL)
                : reference_session_update(update_call->run->ref, update_call->number, retitle,
                                           update_call, NULL);

        if (status != WAL_OK) {
            return 43;
        }
    }
    if (change->struct_size != sizeof(*change) || change->fields != 0) {
        return 44;
    }
    *change = update_call->change;
    return 0;
}

static void compare(struct differential *run, const struct update_call *engine,
                    const struct update_call *reference)
{
    differential_check_number(run, "calls of the function", engine->calls, reference->calls);
    for (uint32_t i = 0; i < CALLS; i++) {
        differential_check_number(run, "the version passed to the function", engine->versions[i],
                                  reference->versions[i]);
    }
    differential_check_number(run, "the function's error", (uint64_t)run->error.sys_errno,
                              (uint64_t)run->expected.sys_errno);
}

static void update_invalidate(struct differential *run, struct update_call *update_call)
{
    switch (differential_random(run, 5)) {
    case 0:
        update_call->fail_at = 1;
        break;
    case 1:
        update_call->change.fields = WAL_CHANGE_METADATA;
        update_call->change.metadata = differential_slice("{\"bad\":}");
        break;
    case 2:
        update_call->change.fields = 1u << 9;
        break;
    case 3:
        update_call->change.fields = WAL_CHANGE_TITLE;
        update_call->change.title = differential_random_bytes(run, 4097, 't');
        break;
    default:
        update_call->change.fields = WAL_CHANGE_EXPECT | WAL_CHANGE_TITLE;
        update_call->change.title = differential_slice("expected");
        update_call->change.expected_version = 3;
        break;
    }
}

static void update(struct differential *run, uint32_t nested)
{
    uint32_t number = differential_session(run);
    struct update_call engine = {.run = run, .number = number, .nested = nested};
    struct update_call reference;
    enum wal_status status;

    engine.session = number == 0 ? NULL : differential_handle(run, number);
    if (engine.session == NULL) {
        return;
    }
    engine.change.struct_size = sizeof(engine.change);
    differential_change(run, number, &engine.change);
    if (nested > 0) {
        engine.change.fields &= ~(uint32_t)WAL_CHANGE_EXPECT;
        engine.change.fields |= WAL_CHANGE_TITLE;
        engine.change.title = differential_slice("at last");
    } else if (differential_one_in(run, 3)) {
        update_invalidate(run, &engine);
    }
    reference = engine;
    reference.session = NULL;
    status = wal_session_update(engine.session, update_callback, &engine, &run->error);
    differential_enter_reference(run);
    (void)differential_compare_status(
        run, status,
        reference_session_update(run->ref, number, update_callback, &reference, &run->expected));
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}

static void differential_update(struct differential *run)
{
    update(run, differential_one_in(run, 8) ? 1 + differential_random(run, 3) : 0);
}

/* Somebody always writes first; of a small store, since it grows by it. */
static void differential_update_contended(struct differential *run)
{
    update(run, reference_last_sequence(run->ref) < 800 ? 2000 : 3);
}

/* To a version above, the same, or below; without a function, up to 1. */
static void differential_migrate(struct differential *run)
{
    struct wal_migrate_result result = {.struct_size = sizeof(result)};
    struct wal_migrate_result wanted = result;
    uint32_t number = differential_session(run);
    struct update_call engine = {.run = run, .number = number};
    struct update_call reference;
    uint32_t to = differential_random(run, 6);
    bool asks = !differential_one_in(run, 3);
    enum wal_status status;

    engine.session = number == 0 ? NULL : differential_handle(run, number);
    if (engine.session == NULL) {
        return;
    }
    engine.change.struct_size = sizeof(engine.change);
    if (differential_one_in(run, 2)) {
        engine.change.fields = WAL_CHANGE_TITLE;
        engine.change.title = differential_text(run, "to %u", to);
    }
    if (differential_one_in(run, 4)) {
        engine.fail_at = 2; /* what was done before stays */
    }
    reference = engine;
    reference.session = NULL;
    status = wal_session_migrate(engine.session, to, asks ? update_callback : NULL, &engine,
                                 &result, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(
            run, status,
            reference_session_migrate(run->ref, number, to, asks ? update_callback : NULL,
                                      &reference, &wanted, &run->expected))) {
        differential_check_number(run, "from", result.from, wanted.from);
        differential_check_number(run, "to", result.to, wanted.to);
        differential_check_number(run, "sessions", result.sessions, wanted.sessions);
    }
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}

/* --- all operations, and how often each is taken -------------------------- */

const struct differential_operation differential_operations[] = {
    {"create a session", differential_create, 30},
    {"open a session", differential_open_session, 10},
    {"open the latest session", differential_latest, 10},
    {"open_or_create", differential_open_or_create, 10},
    {"fork", differential_fork, 20},
    {"delete a session", differential_delete, 10},
    {"put a session in the trash", differential_trash, 12},
    {"take a session out of the trash", differential_undelete, 8},
    {"update metadata", differential_update, 30},
    {"update metadata against others", differential_update_contended, 1},
    {"migrate a session", differential_migrate, 10},
    {"append", differential_append, 300},
    {"append what is refused", differential_append_refused, 80},
    {"append again", differential_append_repeat, 60},
    {"commit a batch", differential_batch, 120},
    {"redact", differential_redact, 25},
    {"undo a redaction", differential_unredact, 20},
    {"compact", differential_compact, 25},
    {"move a head", differential_move_head, 50},
    {"get a head", differential_get_head, 20},
    {"put a document", differential_put_doc, 80},
    {"delete a document", differential_delete_doc, 30},
    {"read entries", differential_iterate, 60},
    {"get an entry", differential_get, 30},
    {"list sessions", differential_list, 20},
    {"get a document", differential_get_doc, 30},
    {"scan documents", differential_scan_docs, 20},
    {"read on", differential_step_iter, 60},
    {"read documents on", differential_step_docs, 20},
    {"compare everything", differential_check, 2},
    {"sync", differential_sync, 5},
    {"mark the tail", differential_commit_mark, 3},
    {"close and open", differential_reopen, 5},
    {"die", differential_crash, 4},
    {"lose power", differential_lose_power, 8},
    {"die while writing", differential_crash_writing, 8},
    {"lose power after appends", differential_lose_unsynced, 4},
    {"compact the store", differential_compact_store, 4},
    {"fail to compact the store", differential_fail_compaction, 4},
    {"lose the indexes", differential_lose_indexes, 2},
    {"open to read only", differential_read_only, 3},
};

const uint32_t differential_operation_count =
    sizeof(differential_operations) / sizeof(differential_operations[0]);
