/*
 * session.c - operations that make, open, fork and delete sessions
 * (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/differential.h"

static const struct wal_slice nothing = {NULL, 0};

/* The id of a session that the engine made up. */
static struct wal_slice id_of(struct differential *run,
                              struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, &run->error);

    if (status != WAL_OK) {
        differential_fail(run, "a new session's status answers %d", status);
    }
    return differential_text(run, "%.*s", (int)info.id.size,
                             (const char *)info.id.data);
}

/* An id that is taken, or was by a session that is deleted. */
static struct wal_slice some_id(struct differential *run)
{
    uint32_t number = differential_session(run);
    struct reference_info info;

    if (number == 0 ||
        reference_session_status(run->ref, number, &info) != WAL_OK) {
        return differential_slice("nobody");
    }
    return info.info.id;
}

/* Spoils the options in one way; or takes an id that is taken. */
static void invalidate(struct differential *run,
                       struct wal_session_options *options)
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

void differential_create(struct differential *run)
{
    struct wal_session_options options;
    struct wal_session *session = NULL;
    enum wal_status status;
    uint32_t number = 0;

    differential_session_options(run, &options);
    if (differential_one_in(run, 8)) {
        options.id = nothing;
    } else if (differential_one_in(run, 3)) {
        invalidate(run, &options);
    }
    status = wal_session_create(run->store, &options, &session, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && options.id.size == 0) {
        options.id = id_of(run, session);
    }
    if (differential_compare_status(run, status,
                                    reference_session_create(run->ref, &options,
                                                             &number,
                                                             &run->expected))) {
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
    if (differential_compare_status(
            run, status, reference_session_open(run->ref, id, &number))) {
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
    if (differential_compare_status(
            run, status, reference_session_latest(run->ref, cwd, &number))) {
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

void differential_open_or_create(struct differential *run)
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
    status = wal_session_open_or_create(run->store, &options, &session,
                                        &created, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && created == 1) {
        made = id_of(run, session);
    }
    if (differential_compare_status(
            run, status,
            reference_session_open_or_create(run->ref, &options, made, &number,
                                             &expected, &run->expected))) {
        if (created != expected) {
            differential_fail(run, "created is %d, not %d", created, expected);
        }
        differential_set_handle(run, number, session);
        differential_check_session(run, number);
    }
}

void differential_fork(struct differential *run)
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
        invalidate(run, &options);
    } else if (differential_one_in(run, 12)) {
        at = differential_slice("no entry");
    }
    status = wal_session_fork(session, at, &options, &fork, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK && options.id.size == 0) {
        options.id = id_of(run, fork);
    }
    if (differential_compare_status(run, status,
                                    reference_session_fork(run->ref, number, at,
                                                           &options, &made,
                                                           &run->expected))) {
        differential_set_handle(run, made, fork);
        differential_check_session(run, made);
    }
}

void differential_delete(struct differential *run)
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
    (void)differential_compare_status(
        run, status,
        reference_session_delete(run->ref, number, &run->expected));
}

void differential_trash(struct differential *run)
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
    if (differential_compare_status(
            run, status,
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
void differential_undelete(struct differential *run)
{
    uint32_t count = reference_session_count(run->ref);
    uint32_t start = differential_random(run, count + 1);
    bool any = differential_one_in(run, 8);
    struct reference_info info;
    enum wal_status status;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (start + i) % count + 1;

        if (!reference_is_trashed(run->ref, number) &&
            (!any ||
             reference_session_status(run->ref, number, &info) != WAL_OK)) {
            continue;
        }
        (void)!reference_session_status(run->ref, number, &info);
        status = wal_session_undelete(run->store, info.info.id, &run->error);
        differential_enter_reference(run);
        if (differential_compare_status(
                run, status,
                reference_session_undelete(run->ref, info.info.id,
                                           &run->expected))) {
            differential_learn_dropped(run, false); /* while it was not read */
            differential_check_session(run, number);
        }
        return;
    }
}
