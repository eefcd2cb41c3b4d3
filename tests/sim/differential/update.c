/*
 * update.c - operations that change what a session says about
 * itself (differential.h). The same function is called by both sides; it
 * checks its arguments, and writes to the session that it is called for.
 */
#include <stdio.h>

#include "tests/sim/differential/differential.h"

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
    (void)snprintf(update_call->title, sizeof(update_call->title), "call %u",
                   update_call->calls);
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
                ? wal_session_update(update_call->session, retitle, update_call,
                                     NULL)
                : reference_session_update(update_call->run->ref,
                                           update_call->number, retitle,
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
    differential_check_number(run, "calls of the function", engine->calls,
                              reference->calls);
    for (uint32_t i = 0; i < CALLS; i++) {
        differential_check_number(run, "the version passed to the function",
                                  engine->versions[i], reference->versions[i]);
    }
    differential_check_number(run, "the function's error",
                              (uint64_t)run->error.sys_errno,
                              (uint64_t)run->expected.sys_errno);
}

static void invalidate(struct differential *run,
                       struct update_call *update_call)
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
    struct update_call engine = {
        .run = run, .number = number, .nested = nested};
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
        invalidate(run, &engine);
    }
    reference = engine;
    reference.session = NULL;
    status = wal_session_update(engine.session, update_callback, &engine,
                                &run->error);
    differential_enter_reference(run);
    (void)differential_compare_status(
        run, status,
        reference_session_update(run->ref, number, update_callback, &reference,
                                 &run->expected));
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}

void differential_update(struct differential *run)
{
    update(run,
           differential_one_in(run, 8) ? 1 + differential_random(run, 3) : 0);
}

/* Somebody always writes first; of a small store, since it grows by it. */
void differential_update_contended(struct differential *run)
{
    update(run, reference_last_sequence(run->ref) < 800 ? 2000 : 3);
}

/* To a version above, the same, or below; without a function, up to 1. */
void differential_migrate(struct differential *run)
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
    status =
        wal_session_migrate(engine.session, to, asks ? update_callback : NULL,
                            &engine, &result, &run->error);
    differential_enter_reference(run);
    if (differential_compare_status(
            run, status,
            reference_session_migrate(run->ref, number, to,
                                      asks ? update_callback : NULL, &reference,
                                      &wanted, &run->expected))) {
        differential_check_number(run, "from", result.from, wanted.from);
        differential_check_number(run, "to", result.to, wanted.to);
        differential_check_number(run, "sessions", result.sessions,
                                  wanted.sessions);
    }
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}
