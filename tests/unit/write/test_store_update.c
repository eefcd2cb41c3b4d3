/*
 * test_store_update.c - tests of changing a session's metadata, and of its schema (SPEC.md 5.9,
 * 7.2).
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

#include <pthread.h>

#include "format/bytes/assert.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

static struct wal_store *open_as(uint32_t schema)
{
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = WAL_OPEN_CREATE, .schema_version = schema};
    struct wal_store *store = NULL;

    assert_ok(wal_open("store", &options, &store, NULL));
    return kit_keep(store);
}

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s"),
                                          .cwd = kit_text("/old"),
                                          .title = kit_text("old"),
                                          .project = kit_text("p"),
                                          .metadata = kit_text("{\"n\":0}"),
                                          .created_ms = 1234567};

    bench.session = kit_create_with(bench.store, &options);
    kit_append(bench.session, "a", NULL);
    return bench;
}

static void reopen(struct bench *bench, uint32_t schema)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
    bench->store = open_as(schema);
    bench->session = kit_session(bench->store, "s");
}

/* The actions of an update function, and the state that it saw. */
struct script {
    struct bench *bench;
    struct wal_session_change change; /* given as it is */
    int32_t answer;
    uint32_t calls;
    uint32_t interferences; /* calls that first change the session themselves */
    uint32_t fails_at;
    uint32_t seen[8];
};

static int32_t run_script(void *ctx, const struct wal_session_info *now,
                          struct wal_session_change *change)
{
    struct script *script = ctx;
    struct wal_session_change none = {.struct_size = sizeof(none)};

    WAL__ASSERT(memcmp(change, &none, sizeof(none)) == 0);
    WAL__ASSERT(now->struct_size == sizeof(*now));
    script->seen[script->calls % 8] = now->schema_version;
    script->calls++;
    if (script->interferences >= script->calls) {
        struct wal_session_change other = kit_title("other");
        struct wal_batch batch = {.struct_size = sizeof(batch), .change = &other};
        char title[32];

        (void)snprintf(title, sizeof(title), "other %u", script->calls);
        other.title = kit_text(title);
        WAL__ASSERT(wal_batch_commit(script->bench->session, &batch, NULL, NULL, NULL) == WAL_OK);
    }
    if (script->fails_at != 0 && script->calls == script->fails_at) {
        return 42;
    }
    if (script->change.struct_size != 0) {
        *change = script->change;
    }
    return script->answer;
}

static struct script scripted(struct bench *bench)
{
    struct script script = {.bench = bench};

    script.change.struct_size = sizeof(script.change);
    return script;
}

static enum wal_status update(struct bench *bench, struct script *script, struct wal_error *error)
{
    *error = KIT_ERROR;
    return wal_session_update(bench->session, run_script, script, error);
}

static void refused(struct bench *bench, struct script *script, enum wal_status status)
{
    char *before = kit_snapshot(bench->store, bench->session);
    struct wal_error error;

    assert_int_equal(update(bench, script, &error), status);
    assert_int_equal(error.status, status);
    assert_unchanged(bench->store, bench->session, before);
}

KIT_TEST(update__sets_only_the_given_fields)
{
    struct bench bench = begin();
    uint64_t last = kit_store_info(bench.store).last_sequence;
    struct script script = scripted(&bench);
    struct wal_session_info info;

    script.change.fields = WAL_CHANGE_TITLE | WAL_CHANGE_CWD;
    script.change.title = kit_text("new");
    script.change.cwd = kit_text("/new");
    script.change.project = kit_text("not asked for");
    assert_ok(update(&bench, &script, kit_error()));
    assert_int_equal(script.calls, 1);
    assert_int_equal(kit_store_info(bench.store).last_sequence, last + 1);
    script.change.fields = WAL_CHANGE_PROJECT | WAL_CHANGE_METADATA;
    script.change.project = kit_text(NULL);
    script.change.metadata = kit_text(" {\"n\":1} ");
    assert_ok(update(&bench, &script, kit_error()));
    for (int i = 0; i < 2; i++) {
        info = kit_info(bench.session);
        assert_slice(info.title, "new");
        assert_slice(info.cwd, "/new");
        assert_slice(info.project, "");
        assert_slice(info.metadata, " {\"n\":1} ");
        assert_int_equal(info.created_ms, 1234567);
        assert_int_equal(info.schema_version, 1);
        assert_int_equal(info.metadata_version, last + 2);
        assert_int_equal(info.entries, 1);
        assert_branch(bench.session, "a");
        reopen(&bench, 0);
    }
    script.change.metadata = kit_text(NULL);
    assert_ok(update(&bench, &script, kit_error()));
    assert_slice(kit_info(bench.session).metadata, "");
}

KIT_TEST(update__misuse_is_refused)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);
    char text[4098];

    memset(text, 't', 4097);
    text[4097] = '\0';
    assert_int_equal(wal_session_update(bench.session, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_update(NULL, run_script, &script, NULL), WAL_EINVAL);
    script.change.fields = 1u << 20;
    refused(&bench, &script, WAL_EINVAL);
    script.change.fields = WAL_CHANGE_TITLE;
    script.change.struct_size = 5;
    refused(&bench, &script, WAL_EINVAL);
    script.change.struct_size = sizeof(script.change);
    script.change.title = kit_text(text);
    refused(&bench, &script, WAL_ETOOBIG);
    script.change.title = kit_text("\xc3");
    refused(&bench, &script, WAL_EINVAL);
    script.change.fields = WAL_CHANGE_SCHEMA;
    refused(&bench, &script, WAL_EINVAL);
}

/* The function itself changes the session with another call: it is called again, with the new
 * state. */
KIT_TEST(update__function_is_called_again_after_a_change)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);

    script.interferences = 3;
    script.change.fields = WAL_CHANGE_CWD;
    script.change.cwd = kit_text("/new");
    assert_ok(update(&bench, &script, kit_error()));
    assert_int_equal(script.calls, 4);
    assert_slice(kit_info(bench.session).title, "other 3");
    assert_slice(kit_info(bench.session).cwd, "/new");
}

KIT_TEST(update__persistent_conflict_is_returned)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);
    struct wal_error error;

    script.interferences = UINT32_MAX;
    script.change.fields = WAL_CHANGE_CWD;
    script.change.cwd = kit_text("/new");
    assert_int_equal(update(&bench, &script, &error), WAL_ECONFLICT);
    assert_int_equal(script.calls, 1000);
    assert_true(error.actual[0] != '\0');
    assert_slice(kit_info(bench.session).cwd, "/old");
}

/* No lock is held during the function, so it may make any call. */
static int32_t call_everything(void *ctx, const struct wal_session_info *now,
                               struct wal_session_change *change)
{
    struct bench *bench = ctx;
    struct wal_session *fork;

    (void)kit_put(bench->store, bench->session, "from", "\"inside\"");
    kit_append(bench->session, "inside", NULL);
    kit_move_head(bench->session, "mark", "inside");
    fork = kit_fork(bench->session, NULL, "f");
    wal_session_close(fork);
    assert_ok(wal_sync(bench->store, NULL));
    (void)kit_info(bench->session);
    assert_slice(now->title, "old");
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text("new");
    return 0;
}

KIT_TEST(update__function_may_call_the_library)
{
    struct bench bench = begin();

    assert_ok(wal_session_update(bench.session, call_everything, &bench, NULL));
    assert_slice(kit_info(bench.session).title, "new");
    assert_branch(bench.session, "a inside");
}

static int32_t delete_it(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    struct bench *bench = ctx;

    (void)now;
    WAL__ASSERT(wal_session_delete(bench->session, NULL) == WAL_OK);
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text("new");
    return 0;
}

KIT_TEST(update__function_that_deletes_the_session)
{
    struct bench bench = begin();

    assert_int_equal(wal_session_update(bench.session, delete_it, &bench, NULL), WAL_ENOTFOUND);
}

/* --- threads -------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 50 };

static int32_t count_up(void *ctx, const struct wal_session_info *now,
                        struct wal_session_change *change)
{
    char *text = ctx;
    char number[32];

    (void)snprintf(number, sizeof(number), "%.*s",
                   now->metadata.size < 31 ? (int)now->metadata.size : 31,
                   (const char *)now->metadata.data);
    (void)snprintf(text, 32, "{\"n\":%ld}", strtol(number + 5, NULL, 10) + 1);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata = kit_text(text);
    return 0;
}

static void *count_thread(void *arg)
{
    struct wal_session *session = arg;
    char text[32];

    for (int i = 0; i < ROUNDS; i++) {
        WAL__ASSERT(wal_session_update(session, count_up, text, NULL) == WAL_OK);
    }
    return NULL;
}

KIT_TEST(update__no_lost_update_with_several_threads)
{
    struct bench bench = begin();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        WAL__ASSERT(pthread_create(&threads[i], NULL, count_thread, bench.session) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    assert_slice(kit_info(bench.session).metadata, "{\"n\":200}");
}

/* --- schemas -------------------------------------------------------------- */

/* The nth call of those that write parts of a session. */
static enum wal_status write_part(struct bench *bench, int nth, struct wal_error *error)
{
    struct wal_entry entry = kit_entry("b", NULL, "{}");
    struct wal_head head = kit_head("mark", "a", NULL);
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_session_change change = kit_title("new");
    struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};
    struct wal_ticket *ticket = NULL;
    enum wal_status status;

    switch (nth) {
    case 0:
        return wal_append(bench->session, &entry, 1, NULL, NULL, error);
    case 1:
        return wal_head_move(bench->session, &head, NULL, error);
    case 2:
        return wal_doc_put(bench->store, bench->session, &doc, NULL, error);
    case 3:
        return wal_doc_delete(NULL, bench->session, &doc, NULL, error);
    case 4:
        return wal_batch_commit(bench->session, &batch, NULL, NULL, error);
    default:
        assert_ok(wal_submit(bench->session, &entry, 1, NULL, &ticket, error));
        status = wal_ticket_wait(ticket, -1, NULL, error);
        wal_ticket_destroy(ticket);
        return status;
    }
}

/* The nth call of those that make, change or end a session as a whole. */
static enum wal_status write_whole(struct bench *bench, int nth, struct wal_error *error)
{
    struct wal_compact_options compact = {.struct_size = sizeof(compact),
                                          .first_kept = kit_text("a")};
    struct script script = scripted(bench);
    struct wal_session *fork = NULL;
    enum wal_status status;

    script.change.fields = WAL_CHANGE_TITLE;
    switch (nth) {
    case 0:
        return wal_session_update(bench->session, run_script, &script, error);
    case 1:
        return wal_session_redact(bench->session, kit_text("a"), kit_text("x"), NULL, error);
    case 2:
        return wal_session_compact(bench->session, &compact, NULL, NULL, error);
    case 3:
        return wal_session_delete(bench->session, error);
    default:
        status = wal_session_fork(bench->session, kit_text("a"), NULL, &fork, error);
        assert_null(fork);
        return status;
    }
}

/* Every call that writes gets the same error, and changes nothing. */
KIT_TEST(schema__unknown_schema_version_refuses_every_write)
{
    struct bench bench = begin();
    struct wal_session *made;
    char *before;

    reopen(&bench, 2);
    before = kit_snapshot(bench.store, bench.session);
    for (int i = 0; i < 11; i++) {
        struct wal_error error = KIT_ERROR;

        assert_int_equal(i < 6 ? write_part(&bench, i, &error) : write_whole(&bench, i - 6, &error),
                         WAL_ESCHEMA);
        assert_int_equal(error.status, WAL_ESCHEMA);
        assert_string_equal(error.actual, "1");
    }
    assert_unchanged(bench.store, bench.session, before);
    /* The store's own documents have no schema; new sessions have this one. */
    (void)kit_put(bench.store, NULL, "k", "1");
    made = kit_create(bench.store, "new");
    assert_int_equal(kit_info(made).schema_version, 2);
}

KIT_TEST(migrate__failed_step_keeps_earlier_steps)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);
    struct wal_migrate_result result = {.struct_size = sizeof(result), .from = 99};
    struct wal_error error = KIT_ERROR;

    script.fails_at = 3;
    assert_int_equal(wal_session_migrate(bench.session, 5, run_script, &script, &result, &error),
                     WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 42);
    assert_int_equal(result.from, 99);
    assert_int_equal(kit_info(bench.session).schema_version, 3);
    reopen(&bench, 3);
    kit_append(bench.session, "b", NULL);
    assert_ok(wal_session_migrate(bench.session, 5, run_script, &script, &result, &error));
    assert_int_equal(result.from, 3);
    assert_int_equal(kit_info(bench.session).schema_version, 5);
}

KIT_TEST(migrate__to_an_unknown_schema_version)
{
    struct bench bench = begin();
    struct wal_error error = KIT_ERROR;
    struct script script = scripted(&bench);
    char *before = kit_snapshot(bench.store, bench.session);

    assert_int_equal(wal_session_migrate(bench.session, 2, NULL, NULL, NULL, &error), WAL_ESCHEMA);
    assert_string_equal(error.actual, "1");
    assert_ok(wal_session_migrate(bench.session, 1, NULL, NULL, NULL, &error));
    assert_int_equal(wal_session_migrate(bench.session, 0, run_script, &script, NULL, &error),
                     WAL_ESCHEMA);
    assert_int_equal(script.calls, 0);
    assert_unchanged(bench.store, bench.session, before);
}

/* Another process migrates the session to `to` while the function runs: no step is made twice, and
 * no version decreases. */
static int32_t migrate_inside_to(struct script *script, uint32_t to,
                                 const struct wal_session_info *now)
{
    struct script other = scripted(script->bench);

    script->calls++;
    WAL__ASSERT(now->schema_version == 1);
    WAL__ASSERT(wal_session_migrate(script->bench->session, to, run_script, &other, NULL, NULL) ==
                WAL_OK);
    WAL__ASSERT(other.calls == to - 1);
    return 0;
}

static int32_t migrate_inside(void *ctx, const struct wal_session_info *now,
                              struct wal_session_change *change)
{
    (void)change;
    return migrate_inside_to(ctx, 3, now);
}

static int32_t migrate_inside_once(void *ctx, const struct wal_session_info *now,
                                   struct wal_session_change *change)
{
    (void)change;
    return migrate_inside_to(ctx, 2, now);
}

KIT_TEST(migrate__during_another_migration)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);

    assert_ok(wal_session_migrate(bench.session, 2, migrate_inside, &script, NULL, NULL));
    assert_int_equal(script.calls, 1);
    assert_int_equal(kit_info(bench.session).schema_version, 3);
}

KIT_TEST(migrate__same_step_of_another_process)
{
    struct bench bench = begin();
    struct script script = scripted(&bench);

    assert_ok(wal_session_migrate(bench.session, 2, migrate_inside_once, &script, NULL, NULL));
    assert_int_equal(script.calls, 1);
    assert_int_equal(kit_info(bench.session).schema_version, 2);
}
