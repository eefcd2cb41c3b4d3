/*
 * generated.c - operations whose entries the library makes up
 * (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/request.h"

static const struct wal_slice nothing = {NULL, 0};

/* ------------------------------------------------- made by the library --- */

/* An entry of a session as the engine made it; its texts are copied. */
static struct wal_entry find_generated(struct differential *run,
                                       struct wal_session *session,
                                       const char *id)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_ENTRY_CURSOR_REDACTED};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(session, &options, &cursor, &run->error);

    if (status == WAL_OK) {
        status = wal_entry_cursor_get(cursor, differential_slice(id), &entry,
                                      &run->error);
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
    wal_entry_cursor_close(cursor);
    return entry;
}

/* Sometimes an entry that a reader is about to give. */
static void choose_open_entry(struct differential *run,
                              struct differential_request *given,
                              struct wal_slice *target)
{
    const struct differential_readers *held = &run->readers;
    uint32_t left = held->cursor == NULL ? 0 : held->count - held->at;

    if (left > 0 && differential_one_in(run, 2) &&
        differential_handle(run, held->number) != NULL) {
        given->number = held->number;
        given->session = differential_handle(run, held->number);
        *target =
            held->entries[held->at + differential_random(run, left)].entry.id;
    }
}

void differential_redact(struct differential *run)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_slice reason = {NULL, 0};
    struct differential_request given;
    struct wal_slice target;
    enum wal_status status;

    if (!differential_request_init(run, &given)) {
        return;
    }
    target = differential_entry_id(run, given.number);
    choose_open_entry(run, &given, &target);
    if (target.size == 0 || differential_one_in(run, 12)) {
        target = differential_slice("no entry");
    }
    if (differential_one_in(run, 2)) {
        reason = differential_text(run, "because \"%u\"", ++run->made);
    }
    if (differential_one_in(run, 20)) {
        reason = differential_random_bytes(run, 4097, 'r');
    }
    status =
        wal_session_redact(given.session, target, reason, &result, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK) {
        made = find_generated(run, given.session, result.last_id);
    }
    if (differential_compare_status(
            run, status,
            reference_redact(run->ref, given.number, target, reason, &made,
                             &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
        differential_check_get(run, given.number, target,
                               WAL_ENTRY_CURSOR_REDACTED);
        differential_check_get(run, given.number, target, 0);
    }
    differential_check_session(run, given.number);
}

static void check_summary(struct differential *run, struct wal_slice payload,
                          struct wal_slice summary)
{
    struct wal_slice reported;

    if (!reference_member(payload, "summary", &reported)) {
        differential_fail(run, "a compaction says \"%.*s\"", (int)payload.size,
                          (const char *)payload.data);
    }
    differential_check_slice(run, "the summary", reported, summary);
    reference_free(reported);
}

void differential_compact(struct differential *run)
{
    struct wal_compact_options options = {.struct_size = sizeof(options)};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_session_options into;
    struct wal_session *fork = NULL;
    struct differential_request given;
    enum wal_status status;
    uint32_t number = 0;

    if (!differential_request_init(run, &given)) {
        return;
    }
    options.first_kept = differential_entry_id(run, given.number);
    if (options.first_kept.size == 0) {
        options.first_kept = differential_slice("no entry");
    }
    options.summary = differential_text(run, "so far \"%u\"\n", ++run->made);
    if (differential_one_in(run, 3)) {
        differential_session_options(run, &into);
        options.into = &into;
    }
    status = wal_session_compact(given.session, &options, &fork, &result,
                                 &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK) {
        made = find_generated(run, options.into != NULL ? fork : given.session,
                              result.last_id);
        check_summary(run, made.payload, options.summary);
    }
    if (differential_compare_status(
            run, status,
            reference_compact(run->ref, given.number, &options, &made, &number,
                              &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
        if (options.into != NULL) {
            differential_set_handle(run, number, fork);
            differential_check_session(run, number);
        }
    }
    differential_check_session(run, given.number);
}
