/*
 * differential_append.c - operations that append: entries alone, again, refused,
 * in batches with other parts, and those that the library makes up
 * (differential.h).
 */
#include <string.h>

#include "tests/sim/differential.h"

static const struct wal_slice nothing = {NULL, 0};

/* A batch and the room behind it. */
struct given {
    uint32_t number;
    struct wal_session *session;
    struct wal_entry entries[DIFFERENTIAL_BATCH];
    struct wal_doc docs[DIFFERENTIAL_BATCH];
    struct wal_head heads[2];
    struct wal_session_change change;
    struct wal_batch batch;
    struct wal_append_options options;
};

/* False: there is no session. */
static bool choose(struct differential *run, struct given *given)
{
    memset(given, 0, sizeof(*given));
    given->number = differential_session(run);
    if (given->number == 0) {
        return false;
    }
    given->session = differential_handle(run, given->number);
    given->batch.struct_size = sizeof(given->batch);
    given->batch.entries = given->entries;
    given->batch.documents = given->docs;
    given->batch.heads = given->heads;
    given->options.struct_size = sizeof(given->options);
    given->options.durability =
        differential_chance(run, 3) ? WAL_WRITTEN : WAL_DURABLE;
    return given->session != NULL;
}

static void fill_entries(struct differential *run, struct given *given)
{
    uint32_t count = 1;

    if (differential_chance(run, 3)) {
        count = 1 + differential_roll(run, DIFFERENTIAL_BATCH);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wal_entry *entry = &given->entries[i];

        differential_entry(run, given->number, entry);
        /* Under an entry of the same batch. */
        if (i > 0 && differential_chance(run, 3)) {
            entry->stream = given->entries[0].stream;
            entry->parent_id = given->entries[i - 1].id;
            if (given->entries[i - 1].stream != entry->stream) {
                entry->parent_id = given->entries[0].id;
            }
            entry->flags &= ~(uint32_t)WAL_ENTRY_ROOT;
        }
    }
    given->batch.entry_count = count;
}

/* The tail as it is, as what is expected. */
static void expect_tail(struct differential *run, struct given *given)
{
    const struct wal_slice main = {NULL, 0};

    given->options.flags |= WAL_APPEND_EXPECT;
    given->options.expected_tail = nothing;
    (void)reference_head_get(run->ref, given->number, given->entries[0].stream,
                             main, &given->options.expected_tail);
}

/* One of the ways to hand a batch in. */
static enum wal_status submit(struct differential *run, struct given *given,
                              struct wal_append_result *result)
{
    bool plain = given->batch.document_count == 0 &&
                 given->batch.head_count == 0 && given->batch.change == NULL;
    bool conditional = given->batch.change == NULL ||
                       (given->batch.change->fields & WAL_CHANGE_EXPECT) != 0;
    struct wal_ticket *ticket = NULL;
    enum wal_status status;

    if (plain && differential_chance(run, 2)) {
        return wal_append(given->session, given->entries,
                          given->batch.entry_count, &given->options, result,
                          &run->error);
    }
    if (!conditional || differential_chance(run, 2)) {
        return wal_batch_commit(given->session, &given->batch, &given->options,
                                result, &run->error);
    }
    if (plain && differential_chance(run, 2)) {
        status =
            wal_submit(given->session, given->entries, given->batch.entry_count,
                       &given->options, &ticket, &run->error);
    } else {
        status = wal_batch_submit(given->session, &given->batch,
                                  &given->options, &ticket, &run->error);
    }
    if (status == WAL_OK) {
        status = wal_ticket_wait(ticket, -1, result, &run->error);
        wal_ticket_destroy(ticket);
    }
    return status;
}

static void compare_result(struct differential *run,
                           const struct wal_append_result *result,
                           const struct wal_append_result *wanted)
{
    differential_check_number(run, "appended", result->appended,
                              wanted->appended);
    differential_check_number(run, "duplicates", result->duplicates,
                              wanted->duplicates);
    differential_check_number(run, "the result's sequence", result->sequence,
                              wanted->sequence);
    differential_check_slice(run, "the last id",
                             differential_slice(result->last_id),
                             differential_slice(wanted->last_id));
}

/* Both sides take the batch. */
static void commit(struct differential *run, struct given *given)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    enum wal_status status = submit(run, given, &result);

    differential_turn(run);
    if (status == WAL_OK && given->batch.entry_count > 0 &&
        given->entries[given->batch.entry_count - 1].id.size == 0) {
        given->entries[given->batch.entry_count - 1].id =
            differential_slice(result.last_id);
    }
    if (differential_agree(run, status,
                           reference_batch(run->ref, given->number,
                                           &given->batch, &given->options,
                                           &wanted, &run->wanted))) {
        compare_result(run, &result, &wanted);
    } else if (status == WAL_ECONFLICT) {
        differential_check_slice(run, "the actual tail",
                                 differential_slice(result.actual_tail),
                                 differential_slice(wanted.actual_tail));
    }
    differential_check_session(run, given->number);
}

void differential_append(struct differential *run)
{
    struct given given;

    if (!choose(run, &given)) {
        return;
    }
    fill_entries(run, &given);
    if (differential_chance(run, 5)) {
        expect_tail(run, &given);
    }
    if (differential_chance(run, 10)) {
        given.batch.entry_count = 1;
        given.entries[0].id = nothing;
    }
    commit(run, &given);
}

/* ------------------------------------------------------------- refusals --- */

/* Native entries that name what is not there, or name nothing. */
static void name_wrongly(struct differential *run, struct wal_entry *entry)
{
    static const uint32_t types[] = {WAL_TYPE_COMPACTION_SUMMARY,
                                     WAL_TYPE_BRANCH_SUMMARY,
                                     WAL_TYPE_REDACTION};
    uint32_t type = differential_roll(run, 3);

    entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
    entry->type = differential_slice(wal_entry_type_name(types[type]));
    entry->payload = differential_slice("{\"summary\":\"of nothing\"}");
    if (differential_chance(run, 2)) {
        entry->payload = differential_slice(
            "{\"firstKeptEntryId\":\"none\",\"sourceSessionId\":\"none\","
            "\"sourceEntryId\":\"none\",\"targetEntryId\":\"none\"}");
    }
}

static void spoil_content(struct differential *run, struct wal_entry *entry)
{
    switch (differential_roll(run, 10)) {
    case 0:
        entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
        entry->payload = differential_slice("{\"open\":[}");
        break;
    case 1:
        entry->meta = differential_slice("\"no object\"");
        break;
    case 2:
        entry->id = differential_noise(run, 256, 'i');
        break;
    case 3:
        entry->type = nothing;
        break;
    case 4:
        entry->timestamp = differential_noise(run, 65, '1');
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
void differential_append_refused(struct differential *run)
{
    struct given given;
    struct wal_entry *entry;

    if (!choose(run, &given)) {
        return;
    }
    fill_entries(run, &given);
    entry = &given.entries[differential_roll(run, given.batch.entry_count)];
    switch (differential_roll(run, 8)) {
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
        name_wrongly(run, entry);
        break;
    case 5:
        given.batch.entry_count = 0;
        break;
    default:
        spoil_content(run, entry);
        break;
    }
    commit(run, &given);
}

/* Entries that are there: the same, or another one under the same id; behind
 * them a new one, sometimes, and a tail that is not the tail. */
void differential_append_again(struct differential *run)
{
    struct given given;
    uint32_t count = 1 + differential_roll(run, 3);

    if (!choose(run, &given)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = differential_roll(
            run, (uint32_t)reference_last_sequence(run->ref) + 1);

        if (!reference_some_entry(run->ref, given.number, from,
                                  &given.entries[i])) {
            return;
        }
        given.entries[i].struct_size = sizeof(given.entries[i]);
        if (differential_chance(run, 3)) {
            given.entries[i].timestamp = nothing;
        }
    }
    given.batch.entry_count = count;
    if (differential_chance(run, 6)) {
        given.entries[0].payload = differential_json(run);
    } else if (differential_chance(run, 6)) {
        given.entries[0].parent_id = differential_entry_id(run, given.number);
    } else if (differential_chance(run, 6)) {
        given.entries[0].flags |= WAL_ENTRY_ROOT;
    }
    if (differential_chance(run, 4)) {
        differential_entry(run, given.number, &given.entries[count]);
        given.batch.entry_count++;
        /* Twice in one batch. */
        given.entries[count + 1] = given.entries[count];
        given.batch.entry_count += differential_chance(run, 3);
    }
    if (differential_chance(run, 6)) {
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_slice("nobody");
    }
    commit(run, &given);
}

/* --------------------------------------------------------------- batches --- */

static void fill_docs(struct differential *run, struct given *given)
{
    uint32_t count = differential_roll(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        bool is_store = differential_chance(run, 3);

        differential_doc(run, given->number, is_store, &given->docs[i]);
        given->docs[i].flags |= is_store ? WAL_DOC_STORE : 0;
        if (differential_chance(run, 6)) {
            given->docs[i].flags |= WAL_DOC_DELETE;
            given->docs[i].value = nothing;
        }
    }
    given->batch.document_count = count;
}

static void fill_heads(struct differential *run, struct given *given)
{
    uint32_t count = differential_roll(run, 3);

    for (uint32_t i = 0; i < count; i++) {
        struct wal_head *head = &given->heads[i];

        differential_head(run, given->number, head);
        if (given->batch.entry_count > 0 && differential_chance(run, 3)) {
            head->entry_id = given->entries[0].id;
            head->stream = given->entries[0].stream;
        }
        if (differential_chance(run, 4)) {
            head->flags |= WAL_HEAD_EXPECT;
            (void)reference_head_get(run->ref, given->number, head->stream,
                                     head->name, &head->expected);
        }
    }
    given->batch.head_count = count;
}

/* One condition that does not hold, or a part that is not valid. */
static void spoil_batch(struct differential *run, struct given *given)
{
    switch (differential_roll(run, 4)) {
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

void differential_batch(struct differential *run)
{
    struct given given;

    if (!choose(run, &given)) {
        return;
    }
    if (!differential_chance(run, 3)) {
        fill_entries(run, &given);
    }
    fill_docs(run, &given);
    fill_heads(run, &given);
    if (differential_chance(run, 3)) {
        given.change.struct_size = sizeof(given.change);
        differential_change(run, given.number, &given.change);
        given.batch.change = &given.change;
    }
    if (differential_chance(run, 5)) {
        spoil_batch(run, &given);
    } else if (differential_chance(run, 6)) {
        expect_tail(run, &given);
    }
    commit(run, &given);
    if (given.batch.document_count > 0) {
        struct wal_docs_options docs = {.struct_size = sizeof(docs)};

        differential_check_docs(run, given.number, &docs);
    }
}

/* ------------------------------------------------- made by the library --- */

/* An entry of a session as the engine made it; its texts are copied. */
static struct wal_entry entry_made(struct differential *run,
                                   struct wal_session *session, const char *id)
{
    struct wal_iter_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_ITER_REDACTED};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_iter *iter = NULL;
    enum wal_status status =
        wal_iter_open(session, &options, &iter, &run->error);

    if (status == WAL_OK) {
        status =
            wal_iter_get(iter, differential_slice(id), &entry, &run->error);
    }
    if (status != WAL_OK) {
        differential_fail(run, "reading what was made answers %d", status);
    }
    entry.id = differential_text(run, "%s", id);
    entry.type = differential_text(run, "%.*s", (int)entry.type.size,
                                   (const char *)entry.type.data);
    entry.payload = differential_text(run, "%.*s", (int)entry.payload.size,
                                      (const char *)entry.payload.data);
    entry.parent_id = nothing;
    entry.timestamp = nothing;
    entry.flags = 0;
    wal_iter_close(iter);
    return entry;
}

void differential_redact(struct differential *run)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_slice reason = {NULL, 0};
    struct given given;
    struct wal_slice target;
    enum wal_status status;

    if (!choose(run, &given)) {
        return;
    }
    target = differential_entry_id(run, given.number);
    if (target.size == 0 || differential_chance(run, 12)) {
        target = differential_slice("no entry");
    }
    if (differential_chance(run, 2)) {
        reason = differential_text(run, "because \"%u\"", ++run->made);
    }
    if (differential_chance(run, 20)) {
        reason = differential_noise(run, 4097, 'r');
    }
    status =
        wal_session_redact(given.session, target, reason, &result, &run->error);
    differential_turn(run);
    if (status == WAL_OK) {
        made = entry_made(run, given.session, result.last_id);
    }
    if (differential_agree(run, status,
                           reference_redact(run->ref, given.number, target,
                                            reason, &made, &wanted,
                                            &run->wanted))) {
        compare_result(run, &result, &wanted);
        differential_check_get(run, given.number, target, WAL_ITER_REDACTED);
        differential_check_get(run, given.number, target, 0);
    }
    differential_check_session(run, given.number);
}

static void check_summary(struct differential *run, struct wal_slice payload,
                          struct wal_slice summary)
{
    struct wal_slice told;

    if (!reference_member(payload, "summary", &told)) {
        differential_fail(run, "a compaction says \"%.*s\"", (int)payload.size,
                          (const char *)payload.data);
    }
    differential_check_slice(run, "the summary", told, summary);
    reference_free(told);
}

void differential_compact(struct differential *run)
{
    struct wal_compact_options options = {.struct_size = sizeof(options)};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_session_options into;
    struct wal_session *fork = NULL;
    struct given given;
    enum wal_status status;
    uint32_t number = 0;

    if (!choose(run, &given)) {
        return;
    }
    options.first_kept = differential_entry_id(run, given.number);
    if (options.first_kept.size == 0) {
        options.first_kept = differential_slice("no entry");
    }
    options.summary = differential_text(run, "so far \"%u\"\n", ++run->made);
    if (differential_chance(run, 3)) {
        differential_session_options(run, &into);
        options.into = &into;
    }
    status = wal_session_compact(given.session, &options, &fork, &result,
                                 &run->error);
    differential_turn(run);
    if (status == WAL_OK) {
        made = entry_made(run, options.into != NULL ? fork : given.session,
                          result.last_id);
        check_summary(run, made.payload, options.summary);
    }
    if (differential_agree(run, status,
                           reference_compact(run->ref, given.number, &options,
                                             &made, &number, &wanted,
                                             &run->wanted))) {
        compare_result(run, &result, &wanted);
        if (options.into != NULL) {
            differential_keep(run, number, fork);
            differential_check_session(run, number);
        }
    }
    differential_check_session(run, given.number);
}
