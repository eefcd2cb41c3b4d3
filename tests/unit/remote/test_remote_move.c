/*
 * test_remote_move.c - sessions that go on at other machines: stores on the disk, and a remote in
 * memory whose calls fail.
 */
#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "format/bytes/bytes.h"
#include "remote/move/move.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/remote/memory_driver.h"

enum {
    MACHINES = 3,
    CALLS_MAX = 500,
    NAME_MAX_SIZE = 128
};

/* A machine: its store, and where it keeps replicas. */
struct machine {
    struct wal_store *store;
    struct wal_remote_writer *writer; /* NULL: it has pushed nothing */
    uint8_t uuid[16];
    char path[16];
    char replicas[32];
};

struct world {
    struct memory_driver memory;
    struct machine machines[MACHINES];
};

static struct wal_remote *remote_of(struct world *world)
{
    return &world->memory.remote;
}

static void begin(struct world *world)
{
    memory_driver_init(&world->memory);
    for (unsigned i = 0; i < MACHINES; i++) {
        struct machine *machine = &world->machines[i];

        *machine = (struct machine){.store = NULL};
        snprintf(machine->path, sizeof(machine->path), "%c", 'a' + (char)i);
        snprintf(machine->replicas, sizeof(machine->replicas), "%s.remotes", machine->path);
        machine->store = kit_open(machine->path, WAL_OPEN_CREATE);
        memcpy(machine->uuid, kit_store_info(machine->store).uuid, 16);
    }
}

static void end(struct world *world)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        wal_remote_writer_close(world->machines[i].writer);
        kit_close(world->machines[i].store);
    }
    memory_driver_deinit(&world->memory);
    assert_int_equal(system("rm -rf a b c *.remotes"), 0);
}

static void push(struct world *world, unsigned i)
{
    struct machine *machine = &world->machines[i];
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_error error = KIT_ERROR;

    options.writer[0] = (uint8_t)(i + 1);
    options.parallel = 1;
    assert_ok(wal_sync(machine->store, NULL));
    if (machine->writer == NULL &&
        wal_remote_writer_open(remote_of(world), machine->store, &options, &machine->writer,
                               &error) != WAL_OK) {
        fail_msg("%s: %s", error.file, error.text);
    }
    assert_done(wal_remote_push(machine->writer, NULL, kit_error()));
}

static void append(struct world *world, unsigned i, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(world->machines[i].store, id);

    kit_append_all(session, ids);
    wal_session_close(session);
}

static void assert_entries(struct world *world, unsigned i, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(world->machines[i].store, id);

    assert_branch(session, ids);
    wal_session_close(session);
}

/* An append to the session is refused; *host: where it says that it is. */
static void assert_away(struct world *world, unsigned i, const char *id, const char *host)
{
    struct wal_session *session = kit_session(world->machines[i].store, id);
    const struct wal_entry entry = kit_entry("refused", NULL, "{}");

    assert_fails(wal_append(session, &entry, 1, NULL, NULL, kit_error()), WAL_ECLAIMED, host);
    wal_session_close(session);
}

static enum wal_status try_resume(struct world *world, unsigned i, const uint8_t *from,
                                  uint32_t flags, struct wal_remote_resume_result *result,
                                  struct wal_error *error)
{
    struct machine *machine = &world->machines[i];
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);

    options.flags = flags;
    options.session = WAL_STR("s");
    options.directory = kit_text(machine->replicas);
    if (from != NULL) {
        memcpy(options.uuid, from, 16);
    }
    *error = KIT_ERROR;
    *result = (struct wal_remote_resume_result)WAL_INIT(wal_remote_resume_result);
    return wal_remote_resume(remote_of(world), machine->store, &options, result, error);
}

/* Brings the session s from the store of a machine, which must succeed. */
static struct wal_remote_resume_result resume(struct world *world, unsigned i, unsigned from)
{
    struct wal_remote_resume_result result;

    assert_done(try_resume(world, i, world->machines[from].uuid, 0, &result, kit_error()));
    return result;
}

static void count_moved(void *ctx, struct wal_slice session, const char *host)
{
    (void)host;
    assert_true(kit_slice_is(session, "s"));
    ++*(unsigned *)ctx;
}

static enum wal_status try_check(struct world *world, unsigned i, unsigned *count,
                                 struct wal_error *error)
{
    struct wal_remote_moves *moves = NULL;
    enum wal_status status =
        wal_remote_moves_open(remote_of(world), world->machines[i].store, &moves, error);

    if (status == WAL_OK) {
        status = wal_remote_moves_check(moves, count_moved, count, error);
    }
    wal_remote_moves_close(moves);
    return status;
}

/* What the machine learns: the number of sessions that moved. */
static unsigned check(struct world *world, unsigned i)
{
    unsigned count = 0;

    assert_done(try_check(world, i, &count, kit_error()));
    return count;
}

/* Machine 0 has the session s with a and b, and has pushed it. */
static void begin_pushed(struct world *world)
{
    begin(world);
    wal_session_close(kit_create(world->machines[0].store, "s"));
    append(world, 0, "s", "a b");
    push(world, 0);
}

static void name_claim(const struct world *world, unsigned i, const char *session, uint64_t number,
                       char name[NAME_MAX_SIZE])
{
    struct wal__store_object object = {.kind = WAL__OBJECT_OWN, .number = number};

    memcpy(object.uuid, world->machines[i].uuid, sizeof(object.uuid));
    assert_ok(wal__own_id(session, object.id));
    wal__store_object_format(&object, name);
}

static bool has_claim(struct world *world, unsigned i, uint64_t number)
{
    char name[NAME_MAX_SIZE];

    name_claim(world, i, "s", number, name);
    return memory_find(&world->memory, name) != NULL;
}

static void put_claim(struct world *world, unsigned i, const char *session, uint64_t number,
                      const char *json)
{
    struct wal__driver *driver = remote_of(world)->driver;
    char name[NAME_MAX_SIZE];

    name_claim(world, i, session, number, name);
    assert_ok(driver->calls->put_if_absent(driver, name, kit_text(json), NULL));
}

/* --- moving --------------------------------------------------------------- */

KIT_TEST(move__session_goes_on_at_another_machine)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_CREATED);
    assert_int_equal(result.entries, 2);
    assert_string_equal(result.session, "s");
    assert_memory_equal(result.uuid, world.machines[0].uuid, 16);
    assert_true(result.host[0] != '\0');
    append(&world, 1, "s", "c");
    assert_int_equal(check(&world, 0), 1);
    assert_away(&world, 0, "s", result.host);
    assert_int_equal(check(&world, 0), 0);
    assert_entries(&world, 0, "s", "a b");
    end(&world);
}

KIT_TEST(move__only_other_store_needs_no_id)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    push(&world, 1);
    assert_ok(try_resume(&world, 1, NULL, 0, &result, kit_error()));
    end(&world);
}

KIT_TEST(move__of_several_stores_one_has_its_claim)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    push(&world, 1);
    push(&world, 2);
    assert_fails(try_resume(&world, 2, NULL, 0, &result, kit_error()), WAL_EINVAL, "--store-id");
    (void)resume(&world, 1, 0);
    push(&world, 1);
    assert_ok(try_resume(&world, 2, NULL, 0, &result, kit_error()));
    assert_memory_equal(result.uuid, world.machines[1].uuid, 16);
    end(&world);
}

KIT_TEST(move__repeated_it_brings_what_is_new)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_UNCHANGED);
    assert_false(has_claim(&world, 0, 2));
    append(&world, 0, "s", "late");
    push(&world, 0);
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_CONTINUED);
    assert_int_equal(result.entries, 1);
    assert_entries(&world, 1, "s", "a b late");
    end(&world);
}

KIT_TEST(move__both_went_on_and_both_remain)
{
    struct world world;
    struct wal_remote_resume_result result;
    char branch[WAL_ID_SIZE];

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    append(&world, 0, "s", "late");
    push(&world, 0);
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_BRANCHED);
    /* Both have the host's name, which would not tell them apart. */
    snprintf(branch, sizeof(branch), "s@%02x%02x%02x%02x", world.machines[0].uuid[0],
             world.machines[0].uuid[1], world.machines[0].uuid[2], world.machines[0].uuid[3]);
    assert_string_equal(result.session, branch);
    assert_entries(&world, 1, "s", "a b c");
    assert_entries(&world, 1, branch, "a b late");
    end(&world);
}

KIT_TEST(move__back_it_is_written_to_again)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    push(&world, 1);
    assert_int_equal(check(&world, 0), 1);
    result = resume(&world, 0, 1);
    assert_int_equal(result.kind, WAL_TRANSFER_CONTINUED);
    assert_entries(&world, 0, "s", "a b c");
    append(&world, 0, "s", "d");
    assert_int_equal(check(&world, 0), 0);
    append(&world, 0, "s", "e");
    assert_int_equal(check(&world, 1), 1);
    assert_away(&world, 1, "s", result.host);
    /* And there again. */
    push(&world, 0);
    (void)resume(&world, 1, 0);
    assert_entries(&world, 1, "s", "a b c d e");
    append(&world, 1, "s", "f");
    assert_int_equal(check(&world, 1), 0);
    assert_int_equal(check(&world, 0), 1);
    end(&world);
}

/* Also when the first machine had not learned that it was away. */
KIT_TEST(move__back_before_it_was_known)
{
    struct world world;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    push(&world, 1);
    (void)resume(&world, 0, 1);
    assert_int_equal(check(&world, 0), 0);
    append(&world, 0, "s", "d");
    assert_entries(&world, 0, "s", "a b c d");
    end(&world);
}

/* The claims lead on: the third machine names the first one's store. */
KIT_TEST(move__third_machine_finds_the_second_one)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    push(&world, 1);
    result = resume(&world, 2, 0);
    assert_memory_equal(result.uuid, world.machines[1].uuid, 16);
    assert_entries(&world, 2, "s", "a b c");
    assert_int_equal(check(&world, 1), 1);
    assert_away(&world, 1, "s", result.host);
    /* The second one finds it at the third, though the first names it. */
    append(&world, 2, "s", "d");
    push(&world, 2);
    result = resume(&world, 1, 0);
    assert_memory_equal(result.uuid, world.machines[2].uuid, 16);
    assert_entries(&world, 1, "s", "a b c d");
    append(&world, 1, "s", "e");
    end(&world);
}

KIT_TEST(move__holder_is_not_in_the_remote)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    assert_fails(try_resume(&world, 2, world.machines[0].uuid, 0, &result, kit_error()),
                 WAL_ECLAIMED, "--take-over");
    assert_false(has_claim(&world, 0, 2));
    assert_ok(try_resume(&world, 2, world.machines[0].uuid, WAL_REMOTE_RESUME_TAKE_OVER, &result,
                         kit_error()));
    assert_true(has_claim(&world, 0, 2));
    assert_entries(&world, 2, "s", "a b");
    end(&world);
}

/* --- two at once ---------------------------------------------------------- */

struct rival {
    struct world *world;
    const char *call; /* before which it claims the session: */
    const char *name; /* the first one with this in its name */
    bool is_done;
};

/* Machine 2 claims the session before machine 1 does. */
static void claim_first(void *ctx, const char *call, const char *name)
{
    struct rival *rival = ctx;

    if (rival->is_done || strcmp(call, rival->call) != 0 || strstr(name, rival->name) == NULL) {
        return;
    }
    rival->is_done = true;
    (void)resume(rival->world, 2, 0);
}

static void lose_at(const char *call, const char *name)
{
    struct world world;
    struct rival rival = {.world = &world, .call = call, .name = name};
    struct wal_remote_resume_result result;
    struct wal_error error;

    begin_pushed(&world);
    world.memory.hook = claim_first;
    world.memory.hook_ctx = &rival;
    assert_int_equal(try_resume(&world, 1, world.machines[0].uuid, 0, &result, &error),
                     WAL_ECLAIMED);
    world.memory.hook = NULL;
    assert_true(rival.is_done);
    assert_non_null(strstr(error.text, "at the same time"));
    assert_int_equal(wal_session_open(world.machines[1].store, WAL_STR("s"),
                                      &(struct wal_session *){NULL}, NULL),
                     WAL_ENOTFOUND);
    assert_entries(&world, 2, "s", "a b");
    end(&world);
}

KIT_TEST(move__of_two_at_once_one_wins)
{
    lose_at("create", "/own/");
}

KIT_TEST(move__claimed_while_the_store_was_pulled)
{
    lose_at("get", "/part/");
}

/* --- what fails ----------------------------------------------------------- */

KIT_TEST(move__session_or_store_that_is_not_there)
{
    struct world world;
    struct wal_remote_resume_result result;
    const uint8_t unknown[16] = {9};

    begin(&world);
    assert_int_equal(try_resume(&world, 1, NULL, 0, &result, kit_error()), WAL_ENOTFOUND);
    wal_session_close(kit_create(world.machines[0].store, "other"));
    push(&world, 0);
    assert_int_equal(try_resume(&world, 1, NULL, 0, &result, kit_error()), WAL_ENOTFOUND);
    assert_false(has_claim(&world, 0, 1));
    assert_int_equal(try_resume(&world, 1, unknown, 0, &result, kit_error()), WAL_ENOTFOUND);
    assert_int_equal(try_resume(&world, 0, world.machines[0].uuid, 0, &result, kit_error()),
                     WAL_EINVAL);
    assert_int_equal(try_resume(&world, 1, NULL, 2, &result, kit_error()), WAL_EINVAL);
    assert_int_equal(
        wal_remote_resume(remote_of(&world), world.machines[1].store, NULL, &result, kit_error()),
        WAL_EINVAL);
    end(&world);
}

/* Every call fails once, before it is done or after it: the next attempt brings all of it, and the
 * claim is one. */
static void fail_calls(bool after)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct world world;
        struct wal_remote_resume_result result;
        enum wal_status status;

        begin_pushed(&world);
        world.memory.fails_after = after;
        world.memory.fail_at = world.memory.calls + nth;
        status = try_resume(&world, 1, world.machines[0].uuid, 0, &result, kit_error());
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(status == WAL_OK || struck);
        assert_true(nth < CALLS_MAX);
        (void)resume(&world, 1, 0);
        assert_entries(&world, 1, "s", "a b");
        assert_true(has_claim(&world, 0, 1));
        assert_false(has_claim(&world, 0, 2));
        append(&world, 1, "s", "c");
        assert_int_equal(check(&world, 0), 1);
        end(&world);
    }
}

KIT_TEST(move__nth_call_fails)
{
    fail_calls(false);
}

KIT_TEST(move__nth_call_is_done_and_fails)
{
    fail_calls(true);
}

/* The same of the way back. */
KIT_TEST(move__nth_call_of_the_way_back_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct world world;
        struct wal_remote_resume_result result;

        begin_pushed(&world);
        (void)resume(&world, 1, 0);
        append(&world, 1, "s", "c");
        push(&world, 1);
        (void)check(&world, 0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + nth;
        (void)!try_resume(&world, 0, world.machines[1].uuid, 0, &result, kit_error());
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        (void)resume(&world, 0, 1);
        append(&world, 0, "s", "d");
        assert_entries(&world, 0, "s", "a b c d");
        assert_int_equal(check(&world, 0), 0);
        append(&world, 0, "s", "e");
        assert_int_equal(check(&world, 1), 1);
        end(&world);
    }
}

/* --- handing off and taking back ------------------------------------------ */

static enum wal_status try_handoff(struct world *world, unsigned i, struct wal_error *error)
{
    *error = KIT_ERROR;
    return wal_remote_handoff(remote_of(world), world->machines[i].store, WAL_STR("s"), error);
}

/* Both steps, with a push between them. */
static void hand_off(struct world *world, unsigned i)
{
    assert_int_equal(try_handoff(world, i, kit_error()), WAL_EBUSY);
    push(world, i);
    assert_done(try_handoff(world, i, kit_error()));
}

static void permit_appends(struct world *world, unsigned i)
{
    struct wal_session *session = kit_session(world->machines[i].store, "s");
    struct wal_session_move move = WAL_INIT(wal_session_move);

    assert_ok(wal_session_get_move(session, &move, NULL));
    move.flags = 0;
    assert_ok(wal_session_set_move(session, &move, NULL));
    wal_session_close(session);
}

KIT_TEST(handoff__next_one_gets_it)
{
    struct world world;

    begin_pushed(&world);
    hand_off(&world, 0);
    assert_away(&world, 0, "s", "another machine");
    assert_ok(try_handoff(&world, 0, kit_error()));
    assert_false(has_claim(&world, 0, 2));
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    assert_int_equal(check(&world, 0), 1);
    assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_ECLAIMED);
    end(&world);
}

/* Nothing can be acknowledged between the push and the claim. */
KIT_TEST(handoff__appends_are_refused_before_the_push)
{
    struct world world;

    begin_pushed(&world);
    append(&world, 0, "s", "c");
    assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_EBUSY);
    assert_away(&world, 0, "s", "another machine");
    assert_fails(try_handoff(&world, 0, kit_error()), WAL_EBUSY, "push the store");
    assert_false(has_claim(&world, 0, 1));
    push(&world, 0);
    assert_ok(try_handoff(&world, 0, kit_error()));
    assert_true(has_claim(&world, 0, 1));
    (void)resume(&world, 1, 0);
    assert_entries(&world, 1, "s", "a b c");
    end(&world);
}

KIT_TEST(handoff__another_machine_was_first_while_it_pushed)
{
    struct world world;
    struct wal_error error;

    begin_pushed(&world);
    assert_int_equal(try_handoff(&world, 0, &error), WAL_EBUSY);
    push(&world, 0);
    (void)resume(&world, 1, 0);
    assert_int_equal(try_handoff(&world, 0, &error), WAL_ECLAIMED);
    assert_away(&world, 0, "s", "moved to");
    assert_null(strstr(error.text, "resumes it next"));
    end(&world);
}

/* Another machine claims the number that the handoff would have had. */
KIT_TEST(handoff__given_up_and_claimed_then)
{
    struct world world;

    begin_pushed(&world);
    assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_EBUSY);
    permit_appends(&world, 0);
    append(&world, 0, "s", "c");
    push(&world, 0);
    assert_int_equal(check(&world, 0), 0);
    (void)resume(&world, 1, 0);
    assert_int_equal(check(&world, 0), 1);
    assert_away(&world, 0, "s", "moved to");
    end(&world);
}

KIT_TEST(handoff__given_up_after_the_claim_was_made)
{
    struct world world;

    begin_pushed(&world);
    hand_off(&world, 0);
    permit_appends(&world, 0);
    assert_int_equal(check(&world, 0), 0);
    append(&world, 0, "s", "c");
    hand_off(&world, 0);
    (void)resume(&world, 1, 0);
    assert_entries(&world, 1, "s", "a b c");
    assert_int_equal(check(&world, 0), 1);
    end(&world);
}

KIT_TEST(handoff__nth_call_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct world world;

        begin_pushed(&world);
        assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_EBUSY);
        push(&world, 0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + (nth + 1) / 2;
        (void)!try_handoff(&world, 0, kit_error());
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        assert_ok(try_handoff(&world, 0, kit_error()));
        assert_true(has_claim(&world, 0, 1));
        assert_false(has_claim(&world, 0, 2));
        assert_away(&world, 0, "s", "another machine");
        end(&world);
    }
}

KIT_TEST(handoff__session_that_is_not_there)
{
    struct world world;

    begin_pushed(&world);
    assert_int_equal(
        wal_remote_handoff(remote_of(&world), world.machines[0].store, WAL_STR("no"), NULL),
        WAL_ENOTFOUND);
    assert_int_equal(
        wal_remote_handoff(remote_of(&world), world.machines[0].store, WAL_STR(""), NULL),
        WAL_EINVAL);
    end(&world);
}

KIT_TEST(handoff__another_machine_was_first)
{
    struct world world;
    struct rival rival = {.world = &world, .call = "create", .name = "/own/"};

    begin_pushed(&world);
    assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_EBUSY);
    push(&world, 0);
    world.memory.hook = claim_first;
    world.memory.hook_ctx = &rival;
    assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_ECLAIMED);
    world.memory.hook = NULL;
    assert_away(&world, 0, "s", "moved to");
    append(&world, 2, "s", "c");
    end(&world);
}

static void take_back(struct world *world, unsigned i)
{
    assert_done(wal_remote_take_back(remote_of(world), world->machines[i].store, WAL_STR("s"),
                                     kit_error()));
}

/* --- a session that was handed off, by itself ---------------------------- */

static struct memory_object *find_bundle(struct world *world)
{
    for (size_t i = 0; i < world->memory.count; i++) {
        if (strstr(world->memory.objects[i].name, "/bundle/") != NULL) {
            return &world->memory.objects[i];
        }
    }
    return NULL;
}

static bool has_replica(struct world *world, unsigned i, unsigned of)
{
    char uuid[WAL__UUID_TEXT_SIZE];
    char path[NAME_MAX_SIZE];

    wal__hex_write(world->machines[of].uuid, 16, uuid);
    snprintf(path, sizeof(path), "%s/%s", world->machines[i].replicas, uuid);
    return access(path, F_OK) == 0;
}

/* Nothing is left of the files by which a bundle went. */
static void assert_no_files(void)
{
    assert_int_equal(system("test -z \"$(find . -name '*.bundle*' -o -name '.agentwal*')\""), 0);
}

static void put_sessions(struct world *world, unsigned i)
{
    assert_ok(wal_remote_put_sessions(remote_of(world), world->machines[i].store, NULL));
}

KIT_TEST(bundle__is_read_instead_of_the_store)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    hand_off(&world, 0);
    assert_non_null(find_bundle(&world));
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_CREATED);
    assert_int_equal(result.entries, 2);
    assert_int_equal(result.parts, 0);
    assert_true(result.bytes > 0);
    assert_false(has_replica(&world, 1, 0));
    assert_null(find_bundle(&world));
    assert_no_files();
    assert_entries(&world, 1, "s", "a b");
    append(&world, 1, "s", "c");
    /* The claim is that of a resume which pulls. */
    assert_true(has_claim(&world, 0, 2));
    assert_int_equal(check(&world, 0), 1);
    result = resume(&world, 1, 0);
    assert_int_equal(result.kind, WAL_TRANSFER_UNCHANGED);
    /* And back in the same way. */
    push(&world, 1);
    hand_off(&world, 1);
    result = resume(&world, 0, 1);
    assert_int_equal(result.parts, 0);
    assert_int_equal(result.entries, 1);
    assert_entries(&world, 0, "s", "a b c");
    append(&world, 0, "s", "d");
    end(&world);
}

KIT_TEST(bundle__damaged_or_lost_the_store_is_pulled)
{
    for (unsigned how = 0; how < 5; how++) {
        struct world world;
        struct wal_remote_resume_result result;
        struct memory_object *bundle;

        begin_pushed(&world);
        hand_off(&world, 0);
        bundle = find_bundle(&world);
        assert_non_null(bundle);
        if (how == 0) {
            memory_remove(&world.memory, bundle->name);
        } else if (how == 4) {
            bundle->data[3] ^= 1;
        } else {
            bundle->size = bundle->size * (how - 1) / 3;
        }
        result = resume(&world, 1, 0);
        assert_int_equal(result.parts > 0, 1);
        assert_int_equal(result.entries, 2);
        assert_entries(&world, 1, "s", "a b");
        assert_true(has_claim(&world, 0, 2));
        assert_no_files();
        end(&world);
    }
}

/* What was deleted or changed since does not come back with a bundle. */
KIT_TEST(bundle__of_a_session_that_was_deleted_since)
{
    struct world world;
    struct wal_remote_resume_result result;
    struct wal_session *session;

    begin_pushed(&world);
    hand_off(&world, 0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    push(&world, 0);
    put_sessions(&world, 0);
    assert_int_equal(try_resume(&world, 1, world.machines[0].uuid, 0, &result, kit_error()),
                     WAL_ENOTFOUND);
    assert_false(has_claim(&world, 0, 2));
    end(&world);
}

KIT_TEST(bundle__of_a_session_that_went_on_since)
{
    struct world world;
    struct wal_remote_resume_result result;
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_session *session;

    begin_pushed(&world);
    hand_off(&world, 0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_get_move(session, &move, NULL));
    move.flags = 0;
    assert_ok(wal_session_set_move(session, &move, NULL));
    wal_session_close(session);
    append(&world, 0, "s", "c");
    push(&world, 0);
    put_sessions(&world, 0);
    result = resume(&world, 1, 0);
    assert_true(result.parts > 0);
    assert_entries(&world, 1, "s", "a b c");
    end(&world);
}

/* What is shared can be redacted without a record of the session. */
KIT_TEST(bundle__of_shared_entries_there_is_none)
{
    static const char *const names[] = {"source", "s"};

    for (unsigned is_fork = 0; is_fork < 2; is_fork++) {
        struct world world;
        struct wal_remote_resume_result result;
        struct wal_session *source;
        struct wal_session *fork = NULL;
        const struct wal_session_options named = {
            .struct_size = sizeof(named),
            .id = kit_text(names[is_fork]),
        };

        begin(&world);
        source = kit_create(world.machines[0].store, names[1 - is_fork]);
        kit_append_all(source, "a b");
        assert_ok(wal_session_fork(source, WAL_STR(""), &named, &fork, NULL));
        wal_session_close(fork);
        wal_session_close(source);
        push(&world, 0);
        hand_off(&world, 0);
        assert_null(find_bundle(&world));
        result = resume(&world, 1, 0);
        assert_true(result.parts > 0);
        assert_entries(&world, 1, "s", "a b");
        end(&world);
    }
}

/* A fork is made after the handoff, and what it shares is redacted there. */
KIT_TEST(bundle__of_entries_that_were_redacted_since)
{
    for (unsigned is_trashed = 0; is_trashed < 2; is_trashed++) {
        struct world world;
        struct wal_remote_resume_result result;
        struct wal_session *session;
        struct wal_session *fork = NULL;

        begin_pushed(&world);
        hand_off(&world, 0);
        assert_non_null(find_bundle(&world));
        session = kit_session(world.machines[0].store, "s");
        assert_ok(wal_session_fork(session, WAL_STR(""), NULL, &fork, NULL));
        wal_session_close(session);
        assert_ok(wal_session_redact(fork, WAL_STR("a"), WAL_STR(""), NULL, NULL));
        if (is_trashed != 0) {
            assert_ok(wal_session_trash(fork, NULL));
        }
        wal_session_close(fork);
        push(&world, 0);
        put_sessions(&world, 0);
        result = resume(&world, 1, 0);
        assert_true(result.parts > 0);
        end(&world);
    }
}

/* Of a handoff and the resume after it every call fails once, before it is done or after it. */
KIT_TEST(bundle__nth_call_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct world world;
        struct wal_remote_resume_result result;

        begin_pushed(&world);
        assert_int_equal(try_handoff(&world, 0, kit_error()), WAL_EBUSY);
        push(&world, 0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + (nth + 1) / 2;
        (void)!try_handoff(&world, 0, kit_error());
        (void)!try_resume(&world, 1, world.machines[0].uuid, 0, &result, kit_error());
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        (void)!try_handoff(&world, 0, kit_error());
        (void)resume(&world, 1, 0);
        assert_no_files();
        assert_entries(&world, 1, "s", "a b");
        append(&world, 1, "s", "c");
        (void)check(&world, 0);
        assert_away(&world, 0, "s", "moved to");
        end(&world);
    }
}

KIT_TEST(bundle__is_collected)
{
    struct world world;
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);

    begin_pushed(&world);
    hand_off(&world, 0);
    assert_non_null(find_bundle(&world));
    assert_ok(
        wal_remote_compact(remote_of(&world), world.machines[0].store, NULL, &result, kit_error()));
    assert_null(find_bundle(&world));
    assert_int_equal(resume(&world, 1, 0).entries, 2);
    end(&world);
}

KIT_TEST(take_back__both_learn_of_it)
{
    struct world world;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    append(&world, 1, "s", "c");
    (void)check(&world, 0);
    take_back(&world, 0);
    append(&world, 0, "s", "d");
    assert_int_equal(check(&world, 0), 0);
    append(&world, 0, "s", "e");
    assert_int_equal(check(&world, 1), 1);
    take_back(&world, 0);
    end(&world);
}

KIT_TEST(take_back__after_a_handoff)
{
    struct world world;

    begin_pushed(&world);
    hand_off(&world, 0);
    take_back(&world, 0);
    append(&world, 0, "s", "d");
    assert_int_equal(check(&world, 0), 0);
    append(&world, 0, "s", "e");
    end(&world);
}

KIT_TEST(take_back__of_what_never_moved)
{
    struct world world;

    begin_pushed(&world);
    assert_int_equal(
        wal_remote_take_back(remote_of(&world), world.machines[0].store, WAL_STR("s"), NULL),
        WAL_ENOTFOUND);
    end(&world);
}

/* --- what a check finds --------------------------------------------------- */

KIT_TEST(check__moved_session_was_deleted)
{
    struct world world;
    struct wal_session *session;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    assert_int_equal(check(&world, 0), 0);
    end(&world);
}

KIT_TEST(check__a_repetition_is_one_request)
{
    struct world world;
    struct wal_remote_moves *moves = NULL;
    uint64_t before;

    begin_pushed(&world);
    (void)resume(&world, 1, 0);
    assert_ok(wal_remote_moves_open(remote_of(&world), world.machines[0].store, &moves, NULL));
    assert_ok(wal_remote_moves_check(moves, NULL, NULL, NULL));
    before = world.memory.calls;
    assert_ok(wal_remote_moves_check(moves, NULL, NULL, NULL));
    assert_int_equal(world.memory.calls - before, 1);
    assert_away(&world, 0, "s", "moved to");
    wal_remote_moves_close(moves);
    /* In another process too: the session says that it was recorded. */
    before = world.memory.calls;
    assert_int_equal(check(&world, 0), 0);
    assert_int_equal(world.memory.calls - before, 1);
    end(&world);
}

/* Claims that are no claims are reported, and the others done. */
KIT_TEST(check__hostile_claims)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"version\":1}",
        "{\"version\":1,\"session\":1}",
        "{\"version\":1,\"move\":1,\"session\":\"\",\"store\":"
        "\"00000000000000000000000000000001\",\"host\":\"h\",\"entry\":\"\","
        "\"sequence\":0,\"claimed\":0}",
        "{\"version\":1,\"move\":1,\"session\":\"s\",\"store\":"
        "\"00000000000000000000000000000001\",\"host\":\"h\",\"entry\":\"\","
        "\"sequence\":0,\"claimed\":0}", /* under the name of another one */
        "{\"version\":1,\"move\":1,\"session\":\"hostile\",\"store\":"
        "\"01\",\"host\":\"h\","
        "\"entry\":\"\",\"sequence\":0,\"claimed\":0}",
        "{\"version\":1,\"move\":1,\"session\":\"hostile\",\"store\":"
        "\"00000000000000000000000000000001\",\"host\":\"a\\u001bb\","
        "\"entry\":\"\",\"sequence\":0,\"claimed\":0}",
        "{\"version\":1,\"move\":1,\"session\":\"hostile\",\"store\":"
        "\"00000000000000000000000000000001\",\"host\":\"h\",\"entry\":\"\","
        "\"sequence\":-1,\"claimed\":0}",
        "{\"version\":1,\"move\":1,\"session\":\"hos\\u0000tile\",\"store\":"
        "\"00000000000000000000000000000001\",\"host\":\"h\",\"entry\":\"\","
        "\"sequence\":0,\"claimed\":0}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct world world;
        struct wal_error error = KIT_ERROR;
        unsigned count = 0;

        begin_pushed(&world);
        put_claim(&world, 0, "hostile", 1, texts[i]);
        (void)resume(&world, 1, 0);
        assert_int_equal(try_check(&world, 0, &count, &error), WAL_ECORRUPT);
        assert_non_null(strstr(error.file, "/own/"));
        assert_int_equal(count, 1);
        assert_away(&world, 0, "s", "moved to");
        end(&world);
    }
}

KIT_TEST(check__claim_of_a_newer_version)
{
    struct world world;
    struct wal_remote_resume_result result;
    unsigned count = 0;

    begin_pushed(&world);
    put_claim(&world, 0, "s", 1, "{\"version\":2}");
    assert_int_equal(try_check(&world, 0, &count, kit_error()), WAL_EVERSION);
    assert_int_equal(try_resume(&world, 1, world.machines[0].uuid, 0, &result, kit_error()),
                     WAL_EVERSION);
    end(&world);
}

/* The one with the higher move was made later, and ends it. */
KIT_TEST(check__claims_that_lead_in_a_circle)
{
    struct world world;
    struct wal_remote_resume_result result;

    begin_pushed(&world);
    wal_session_close(kit_create(world.machines[1].store, "s"));
    append(&world, 1, "s", "a b c");
    push(&world, 1);
    for (unsigned i = 0; i < 2; i++) {
        char uuid[WAL__UUID_TEXT_SIZE];
        char json[512];

        wal__hex_write(world.machines[1 - i].uuid, 16, uuid);
        snprintf(json, sizeof(json),
                 "{\"version\":1,\"session\":\"s\",\"move\":%u,\"store\":"
                 "\"%s\",\"host\":\"h\",\"entry\":\"\",\"sequence\":0,"
                 "\"claimed\":0}",
                 i == 0 ? 8U : 7U, uuid);
        put_claim(&world, i, "s", 1, json);
    }
    result = resume(&world, 2, 0);
    assert_memory_equal(result.uuid, world.machines[1].uuid, 16);
    result = resume(&world, 2, 1);
    assert_memory_equal(result.uuid, world.machines[1].uuid, 16);
    end(&world);
}
