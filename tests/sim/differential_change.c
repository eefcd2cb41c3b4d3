/*
 * differential_change.c - operations that change what a session says about
 * itself (differential.h). The same function is called by both sides; it looks
 * at what it is told, and writes to the session that it is asked about.
 */
#include <stdio.h>

#include "tests/sim/differential.h"

enum {
    CALLS = 2 /* that are looked at */
};

/* What the function does, on one side. */
struct asked {
    struct differential *run;
    uint32_t number;
    struct wal_session *session; /* the engine's side; null: the reference */
    struct wal_session_change change;
    uint32_t fail_at; /* this call answers no; 0: none does */
    uint32_t nested;  /* so many calls change the title themselves */
    uint32_t calls;
    char title[32];
    uint64_t versions[CALLS]; /* of the metadata, as it was told */
};

/* A title that was never there. */
static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    struct asked *asked = ctx;

    (void)now;
    (void)snprintf(asked->title, sizeof(asked->title), "call %u", asked->calls);
    change->fields = WAL_CHANGE_TITLE;
    change->title = differential_slice(asked->title);
    return 0;
}

static int32_t answer(void *ctx, const struct wal_session_info *now,
                      struct wal_session_change *change)
{
    struct asked *asked = ctx;

    if (asked->calls < CALLS) {
        asked->versions[asked->calls] = now->metadata_version;
    }
    asked->calls++;
    if (asked->calls == asked->fail_at) {
        return 42;
    }
    if (asked->calls <= asked->nested) {
        enum wal_status status =
            asked->session != NULL
                ? wal_session_update(asked->session, retitle, asked, NULL)
                : reference_session_update(asked->run->ref, asked->number,
                                           retitle, asked, NULL);

        if (status != WAL_OK) {
            return 43;
        }
    }
    if (change->struct_size != sizeof(*change) || change->fields != 0) {
        return 44;
    }
    *change = asked->change;
    return 0;
}

static void compare(struct differential *run, const struct asked *engine,
                    const struct asked *reference)
{
    differential_check_number(run, "calls of the function", engine->calls,
                              reference->calls);
    for (uint32_t i = 0; i < CALLS; i++) {
        differential_check_number(run, "the version that it was told",
                                  engine->versions[i], reference->versions[i]);
    }
    differential_check_number(run, "the function's error",
                              (uint64_t)run->error.sys_errno,
                              (uint64_t)run->wanted.sys_errno);
}

static void spoil(struct differential *run, struct asked *asked)
{
    switch (differential_roll(run, 5)) {
    case 0:
        asked->fail_at = 1;
        break;
    case 1:
        asked->change.fields = WAL_CHANGE_METADATA;
        asked->change.metadata = differential_slice("{\"bad\":}");
        break;
    case 2:
        asked->change.fields = 1u << 9;
        break;
    case 3:
        asked->change.fields = WAL_CHANGE_TITLE;
        asked->change.title = differential_noise(run, 4097, 't');
        break;
    default:
        asked->change.fields = WAL_CHANGE_EXPECT | WAL_CHANGE_TITLE;
        asked->change.title = differential_slice("expected");
        asked->change.expected_version = 3;
        break;
    }
}

static void update(struct differential *run, uint32_t nested)
{
    uint32_t number = differential_session(run);
    struct asked engine = {.run = run, .number = number, .nested = nested};
    struct asked reference;
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
    } else if (differential_chance(run, 3)) {
        spoil(run, &engine);
    }
    reference = engine;
    reference.session = NULL;
    status = wal_session_update(engine.session, answer, &engine, &run->error);
    differential_turn(run);
    (void)differential_agree(run, status,
                             reference_session_update(run->ref, number, answer,
                                                      &reference,
                                                      &run->wanted));
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}

void differential_update(struct differential *run)
{
    update(run,
           differential_chance(run, 8) ? 1 + differential_roll(run, 3) : 0);
}

/* Somebody always writes first; of a small store, since it grows by it. */
void differential_update_often(struct differential *run)
{
    update(run, reference_last_sequence(run->ref) < 800 ? 2000 : 3);
}

/* To a version above, the same, or below; without a function, up to 1. */
void differential_migrate(struct differential *run)
{
    struct wal_migration result = {.struct_size = sizeof(result)};
    struct wal_migration wanted = result;
    uint32_t number = differential_session(run);
    struct asked engine = {.run = run, .number = number};
    struct asked reference;
    uint32_t to = differential_roll(run, 6);
    bool asks = !differential_chance(run, 3);
    enum wal_status status;

    engine.session = number == 0 ? NULL : differential_handle(run, number);
    if (engine.session == NULL) {
        return;
    }
    engine.change.struct_size = sizeof(engine.change);
    if (differential_chance(run, 2)) {
        engine.change.fields = WAL_CHANGE_TITLE;
        engine.change.title = differential_text(run, "to %u", to);
    }
    if (differential_chance(run, 4)) {
        engine.fail_at = 2; /* what was done before stays */
    }
    reference = engine;
    reference.session = NULL;
    status = wal_session_migrate(engine.session, to, asks ? answer : NULL,
                                 &engine, &result, &run->error);
    differential_turn(run);
    if (differential_agree(run, status,
                           reference_session_migrate(
                               run->ref, number, to, asks ? answer : NULL,
                               &reference, &wanted, &run->wanted))) {
        differential_check_number(run, "from", result.from, wanted.from);
        differential_check_number(run, "to", result.to, wanted.to);
        differential_check_number(run, "sessions", result.sessions,
                                  wanted.sessions);
    }
    compare(run, &engine, &reference);
    differential_check_session(run, number);
}
