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

enum { MACHINES = 3, CALLS_MAX = 500, NAME_MAX_SIZE = 128 };

/* A machine: its store, and where it keeps replicas. */
struct machine {
    struct wal_store *store;
    struct wal_remote_writer *writer; /* NULL: it has pushed nothing */
    uint8_t uuid[16];
    char path[16];
    char replicas[32];
};

static struct {
    struct memory_driver memory;
    struct machine machines[MACHINES];
} world;

static struct wal_remote *const remote = &world.memory.remote;

static void begin(void)
{
    memory_driver_init(&world.memory);
    for (unsigned i = 0; i < MACHINES; i++) {
        struct machine *machine = &world.machines[i];

        *machine = (struct machine){.store = NULL};
        snprintf(machine->path, sizeof(machine->path), "%c", 'a' + (char)i);
        snprintf(machine->replicas, sizeof(machine->replicas), "%s.remotes", machine->path);
        machine->store = kit_open(machine->path, WAL_OPEN_CREATE);
        memcpy(machine->uuid, kit_store_info(machine->store).uuid, 16);
    }
}

static void end(void)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        wal_remote_writer_close(test_forget(world.machines[i].writer));
        kit_close(world.machines[i].store);
    }
    memory_driver_deinit(&world.memory);
    assert_int_equal(system("rm -rf a b c *.remotes"), 0);
}

static void end_writer(void *writer)
{
    wal_remote_writer_close(writer);
}

static void push(unsigned i)
{
    struct machine *machine = &world.machines[i];
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);

    options.writer[0] = (uint8_t)(i + 1);
    options.parallel = 1;
    assert_ok(wal_sync(machine->store, NULL));
    if (machine->writer == NULL) {
        assert_done(wal_remote_writer_open(remote, machine->store, &options, &machine->writer,
                                           kit_error()));
        test_at_end(end_writer, machine->writer);
    }
    assert_done(wal_remote_push(machine->writer, NULL, kit_error()));
}

static void append(unsigned i, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(world.machines[i].store, id);

    kit_append_all(session, ids);
    wal_session_close(session);
}

static void assert_entries(unsigned i, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(world.machines[i].store, id);

    assert_branch(session, ids);
    wal_session_close(session);
}

/* An append to the session is refused; *host: where it says that it is. */
static void assert_away(unsigned i, const char *id, const char *host)
{
    struct wal_session *session = kit_session(world.machines[i].store, id);
    const struct wal_entry entry = kit_entry("refused", NULL, "{}");

    assert_fails(wal_append(session, &entry, 1, NULL, NULL, kit_error()), WAL_ECLAIMED, host);
    wal_session_close(session);
}

/* What the last resume reported. */
static struct wal_remote_resume_result resumed;

/* The error is that of the kit. */
static enum wal_status try_resume(unsigned i, const uint8_t *from, uint32_t flags)
{
    struct machine *machine = &world.machines[i];
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);

    options.flags = flags;
    options.session = WAL_STR("s");
    options.key = kit_test_key();
    options.directory = kit_text(machine->replicas);
    if (from != NULL) {
        memcpy(options.uuid, from, 16);
    }
    resumed = (struct wal_remote_resume_result)WAL_INIT(wal_remote_resume_result);
    return wal_remote_resume(remote, machine->store, &options, &resumed, kit_error());
}

/* Brings the session s from the store of a machine, which must succeed. */
static void resume(unsigned i, unsigned from)
{
    assert_done(try_resume(i, world.machines[from].uuid, 0));
}

static void count_moved(void *ctx, struct wal_slice session, const char *host)
{
    (void)host;
    assert_true(kit_slice_is(session, "s"));
    ++*(unsigned *)ctx;
}

static enum wal_status try_check(unsigned i, unsigned *count, struct wal_error *error)
{
    struct wal_remote_moves *moves = NULL;
    enum wal_status status = wal_remote_moves_open(remote, world.machines[i].store, &moves, error);

    if (status == WAL_OK) {
        status = wal_remote_moves_check(moves, count_moved, count, error);
    }
    wal_remote_moves_close(moves);
    return status;
}

/* What the machine learns: the number of sessions that moved. */
static unsigned check(unsigned i)
{
    unsigned count = 0;

    assert_done(try_check(i, &count, kit_error()));
    return count;
}

/* Machine 0 has the session s with a and b, and has pushed it. */
static void begin_pushed(void)
{
    begin();
    wal_session_close(kit_create(world.machines[0].store, "s"));
    append(0, "s", "a b");
    push(0);
}

static int set_up(void **state)
{
    int result = kit_set_up(state);

    begin_pushed();
    return result;
}

static int tear_down(void **state)
{
    memory_driver_deinit(&world.memory);
    return kit_tear_down(state);
}

#define MOVE_TEST(name) TEST_WITH(name, set_up, tear_down)

/* The machines are as at the beginning of the test. */
static void begin_again(void)
{
    end();
    begin_pushed();
}

static void name_claim(unsigned i, const char *session, uint64_t number, char name[NAME_MAX_SIZE])
{
    struct wal__store_object object = {.kind = WAL__OBJECT_OWN, .number = number};

    memcpy(object.uuid, world.machines[i].uuid, sizeof(object.uuid));
    assert_ok(wal__own_id(session, object.id));
    wal__store_object_format(&object, name);
}

static bool has_claim(unsigned i, uint64_t number)
{
    char name[NAME_MAX_SIZE];

    name_claim(i, "s", number, name);
    return memory_find(&world.memory, name) != NULL;
}

static void put_claim(unsigned i, const char *session, uint64_t number, const char *json)
{
    struct wal__driver *driver = remote->driver;
    char name[NAME_MAX_SIZE];

    name_claim(i, session, number, name);
    assert_ok(driver->calls->put_if_absent(driver, name, kit_text(json), NULL));
}

/* --- moving --------------------------------------------------------------- */

MOVE_TEST(move__session_goes_on_at_another_machine)
{
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_CREATED);
    assert_int_equal(resumed.entries, 2);
    assert_string_equal(resumed.session, "s");
    assert_memory_equal(resumed.uuid, world.machines[0].uuid, 16);
    assert_true(resumed.host[0] != '\0');
    append(1, "s", "c");
    assert_int_equal(check(0), 1);
    assert_away(0, "s", resumed.host);
    assert_int_equal(check(0), 0);
    assert_entries(0, "s", "a b");
}

MOVE_TEST(move__only_other_store_needs_no_id)
{
    push(1);
    assert_ok(try_resume(1, NULL, 0));
}

MOVE_TEST(move__of_several_stores_one_has_its_claim)
{
    push(1);
    push(2);
    assert_fails(try_resume(2, NULL, 0), WAL_EINVAL, "--store-id");
    resume(1, 0);
    push(1);
    assert_ok(try_resume(2, NULL, 0));
    assert_memory_equal(resumed.uuid, world.machines[1].uuid, 16);
}

MOVE_TEST(move__repeated_it_brings_what_is_new)
{
    resume(1, 0);
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_UNCHANGED);
    assert_false(has_claim(0, 2));
    append(0, "s", "late");
    push(0);
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_CONTINUED);
    assert_int_equal(resumed.entries, 1);
    assert_entries(1, "s", "a b late");
}

MOVE_TEST(move__both_went_on_and_both_remain)
{
    char branch[WAL_ID_SIZE];

    resume(1, 0);
    append(1, "s", "c");
    append(0, "s", "late");
    push(0);
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_BRANCHED);
    /* Both have the host's name, which would not tell them apart. */
    snprintf(branch, sizeof(branch), "s@%02x%02x%02x%02x", world.machines[0].uuid[0],
             world.machines[0].uuid[1], world.machines[0].uuid[2], world.machines[0].uuid[3]);
    assert_string_equal(resumed.session, branch);
    assert_entries(1, "s", "a b c");
    assert_entries(1, branch, "a b late");
}

MOVE_TEST(move__back_it_is_written_to_again)
{
    resume(1, 0);
    append(1, "s", "c");
    push(1);
    assert_int_equal(check(0), 1);
    resume(0, 1);
    assert_int_equal(resumed.kind, WAL_TRANSFER_CONTINUED);
    assert_entries(0, "s", "a b c");
    append(0, "s", "d");
    assert_int_equal(check(0), 0);
    append(0, "s", "e");
    assert_int_equal(check(1), 1);
    assert_away(1, "s", resumed.host);
    /* And there again. */
    push(0);
    resume(1, 0);
    assert_entries(1, "s", "a b c d e");
    append(1, "s", "f");
    assert_int_equal(check(1), 0);
    assert_int_equal(check(0), 1);
}

/* Also when the first machine had not learned that it was away. */
MOVE_TEST(move__back_before_it_was_known)
{
    resume(1, 0);
    append(1, "s", "c");
    push(1);
    resume(0, 1);
    assert_int_equal(check(0), 0);
    append(0, "s", "d");
    assert_entries(0, "s", "a b c d");
}

/* The claims lead on: the third machine names the first one's store. */
MOVE_TEST(move__third_machine_finds_the_second_one)
{
    resume(1, 0);
    append(1, "s", "c");
    push(1);
    resume(2, 0);
    assert_memory_equal(resumed.uuid, world.machines[1].uuid, 16);
    assert_entries(2, "s", "a b c");
    assert_int_equal(check(1), 1);
    assert_away(1, "s", resumed.host);
    /* The second one finds it at the third, though the first names it. */
    append(2, "s", "d");
    push(2);
    resume(1, 0);
    assert_memory_equal(resumed.uuid, world.machines[2].uuid, 16);
    assert_entries(1, "s", "a b c d");
    append(1, "s", "e");
}

MOVE_TEST(move__holder_is_not_in_the_remote)
{
    resume(1, 0);
    assert_fails(try_resume(2, world.machines[0].uuid, 0), WAL_ECLAIMED, "--take-over");
    assert_false(has_claim(0, 2));
    assert_ok(try_resume(2, world.machines[0].uuid, WAL_REMOTE_RESUME_TAKE_OVER));
    assert_true(has_claim(0, 2));
    assert_entries(2, "s", "a b");
}

/* --- two at once ---------------------------------------------------------- */

struct rival {
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
    resume(2, 0);
}

static void lose_at(const char *call, const char *name)
{
    struct rival rival = {.call = call, .name = name};

    world.memory.hook = claim_first;
    world.memory.hook_ctx = &rival;
    assert_fails(try_resume(1, world.machines[0].uuid, 0), WAL_ECLAIMED, "at the same time");
    world.memory.hook = NULL;
    assert_true(rival.is_done);
    assert_int_equal(wal_session_open(world.machines[1].store, WAL_STR("s"),
                                      &(struct wal_session *){NULL}, NULL),
                     WAL_ENOTFOUND);
    assert_entries(2, "s", "a b");
}

MOVE_TEST(move__of_two_at_once_one_wins)
{
    lose_at("create", "/own/");
}

MOVE_TEST(move__claimed_while_the_store_was_pulled)
{
    lose_at("get", "/part/");
}

/* --- what fails ----------------------------------------------------------- */

MOVE_TEST(move__session_or_store_that_is_not_there)
{
    const uint8_t unknown[16] = {9};

    end();
    begin();
    assert_int_equal(try_resume(1, NULL, 0), WAL_ENOTFOUND);
    wal_session_close(kit_create(world.machines[0].store, "other"));
    push(0);
    assert_int_equal(try_resume(1, NULL, 0), WAL_ENOTFOUND);
    assert_false(has_claim(0, 1));
    assert_int_equal(try_resume(1, unknown, 0), WAL_ENOTFOUND);
    assert_int_equal(try_resume(0, world.machines[0].uuid, 0), WAL_EINVAL);
    assert_int_equal(try_resume(1, NULL, 2), WAL_EINVAL);
    assert_int_equal(
        wal_remote_resume(remote, world.machines[1].store, NULL, &resumed, kit_error()),
        WAL_EINVAL);
}

/* Every call fails once, before it is done or after it: the next attempt brings all of it, and the
 * claim is one. */
static void fail_calls(bool after)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        enum wal_status status;

        begin_again();
        world.memory.fails_after = after;
        world.memory.fail_at = world.memory.calls + nth;
        status = try_resume(1, world.machines[0].uuid, 0);
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(status == WAL_OK || struck);
        assert_true(nth < CALLS_MAX);
        resume(1, 0);
        assert_entries(1, "s", "a b");
        assert_true(has_claim(0, 1));
        assert_false(has_claim(0, 2));
        append(1, "s", "c");
        assert_int_equal(check(0), 1);
    }
}

MOVE_TEST(move__nth_call_fails)
{
    fail_calls(false);
}

MOVE_TEST(move__nth_call_is_done_and_fails)
{
    fail_calls(true);
}

/* The same of the way back. */
MOVE_TEST(move__nth_call_of_the_way_back_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        begin_again();
        resume(1, 0);
        append(1, "s", "c");
        push(1);
        (void)check(0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + nth;
        (void)!try_resume(0, world.machines[1].uuid, 0);
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        resume(0, 1);
        append(0, "s", "d");
        assert_entries(0, "s", "a b c d");
        assert_int_equal(check(0), 0);
        append(0, "s", "e");
        assert_int_equal(check(1), 1);
    }
}

/* --- handing off and taking back ------------------------------------------ */

static enum wal_status try_handoff(unsigned i)
{
    return wal_remote_handoff(remote, world.machines[i].store, WAL_STR("s"), kit_error());
}

/* Both steps, with a push between them. */
static void hand_off(unsigned i)
{
    assert_int_equal(try_handoff(i), WAL_EBUSY);
    push(i);
    assert_done(try_handoff(i));
}

static void permit_appends(unsigned i)
{
    struct wal_session *session = kit_session(world.machines[i].store, "s");
    struct wal_session_move move = WAL_INIT(wal_session_move);

    assert_ok(wal_session_get_move(session, &move, NULL));
    move.flags = 0;
    assert_ok(wal_session_set_move(session, &move, NULL));
    wal_session_close(session);
}

MOVE_TEST(handoff__next_one_gets_it)
{
    hand_off(0);
    assert_away(0, "s", "another machine");
    assert_ok(try_handoff(0));
    assert_false(has_claim(0, 2));
    resume(1, 0);
    append(1, "s", "c");
    assert_int_equal(check(0), 1);
    assert_int_equal(try_handoff(0), WAL_ECLAIMED);
}

/* Nothing can be acknowledged between the push and the claim. */
MOVE_TEST(handoff__appends_are_refused_before_the_push)
{
    append(0, "s", "c");
    assert_int_equal(try_handoff(0), WAL_EBUSY);
    assert_away(0, "s", "another machine");
    assert_fails(try_handoff(0), WAL_EBUSY, "push the store");
    assert_false(has_claim(0, 1));
    push(0);
    assert_ok(try_handoff(0));
    assert_true(has_claim(0, 1));
    resume(1, 0);
    assert_entries(1, "s", "a b c");
}

MOVE_TEST(handoff__another_machine_was_first_while_it_pushed)
{
    assert_int_equal(try_handoff(0), WAL_EBUSY);
    push(0);
    resume(1, 0);
    assert_int_equal(try_handoff(0), WAL_ECLAIMED);
    assert_null(strstr(kit_last_error()->text, "resumes it next"));
    assert_away(0, "s", "moved to");
}

/* Another machine claims the number that the handoff would have had. */
MOVE_TEST(handoff__given_up_and_claimed_then)
{
    assert_int_equal(try_handoff(0), WAL_EBUSY);
    permit_appends(0);
    append(0, "s", "c");
    push(0);
    assert_int_equal(check(0), 0);
    resume(1, 0);
    assert_int_equal(check(0), 1);
    assert_away(0, "s", "moved to");
}

MOVE_TEST(handoff__given_up_after_the_claim_was_made)
{
    hand_off(0);
    permit_appends(0);
    assert_int_equal(check(0), 0);
    append(0, "s", "c");
    hand_off(0);
    resume(1, 0);
    assert_entries(1, "s", "a b c");
    assert_int_equal(check(0), 1);
}

MOVE_TEST(handoff__nth_call_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        begin_again();
        assert_int_equal(try_handoff(0), WAL_EBUSY);
        push(0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + (nth + 1) / 2;
        (void)!try_handoff(0);
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        assert_ok(try_handoff(0));
        assert_true(has_claim(0, 1));
        assert_false(has_claim(0, 2));
        assert_away(0, "s", "another machine");
    }
}

MOVE_TEST(handoff__session_that_is_not_there)
{
    assert_int_equal(wal_remote_handoff(remote, world.machines[0].store, WAL_STR("no"), NULL),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_remote_handoff(remote, world.machines[0].store, WAL_STR(""), NULL),
                     WAL_EINVAL);
}

MOVE_TEST(handoff__another_machine_was_first)
{
    struct rival rival = {.call = "create", .name = "/own/"};

    assert_int_equal(try_handoff(0), WAL_EBUSY);
    push(0);
    world.memory.hook = claim_first;
    world.memory.hook_ctx = &rival;
    assert_int_equal(try_handoff(0), WAL_ECLAIMED);
    world.memory.hook = NULL;
    assert_away(0, "s", "moved to");
    append(2, "s", "c");
}

static void take_back(unsigned i)
{
    assert_done(wal_remote_take_back(remote, world.machines[i].store, WAL_STR("s"), kit_error()));
}

/* --- a session that was handed off, by itself ---------------------------- */

static struct memory_object *find_bundle(void)
{
    for (size_t i = 0; i < world.memory.count; i++) {
        if (strstr(world.memory.objects[i].name, "/bundle/") != NULL) {
            return &world.memory.objects[i];
        }
    }
    return NULL;
}

static bool has_replica(unsigned i, unsigned of)
{
    char uuid[WAL__UUID_TEXT_SIZE];
    char path[NAME_MAX_SIZE];

    wal__hex_write(world.machines[of].uuid, 16, uuid);
    snprintf(path, sizeof(path), "%s/%s", world.machines[i].replicas, uuid);
    return access(path, F_OK) == 0;
}

/* Nothing is left of the files by which a bundle went. */
static void assert_no_files(void)
{
    assert_int_equal(system("test -z \"$(find . -name '*.bundle*' -o -name '.agentwal*')\""), 0);
}

static void put_sessions(unsigned i)
{
    assert_ok(wal_remote_put_sessions(remote, world.machines[i].store, NULL));
}

MOVE_TEST(bundle__is_read_instead_of_the_store)
{
    hand_off(0);
    assert_non_null(find_bundle());
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_CREATED);
    assert_int_equal(resumed.entries, 2);
    assert_int_equal(resumed.parts, 0);
    assert_true(resumed.bytes > 0);
    assert_false(has_replica(1, 0));
    assert_null(find_bundle());
    assert_no_files();
    assert_entries(1, "s", "a b");
    append(1, "s", "c");
    /* The claim is that of a resume which pulls. */
    assert_true(has_claim(0, 2));
    assert_int_equal(check(0), 1);
    resume(1, 0);
    assert_int_equal(resumed.kind, WAL_TRANSFER_UNCHANGED);
    /* And back in the same way. */
    push(1);
    hand_off(1);
    resume(0, 1);
    assert_int_equal(resumed.parts, 0);
    assert_int_equal(resumed.entries, 1);
    assert_entries(0, "s", "a b c");
    append(0, "s", "d");
}

MOVE_TEST(bundle__damaged_or_lost_the_store_is_pulled)
{
    for (unsigned how = 0; how < 5; how++) {
        struct memory_object *bundle;

        begin_again();
        hand_off(0);
        bundle = find_bundle();
        assert_non_null(bundle);
        if (how == 0) {
            memory_remove(&world.memory, bundle->name);
        } else if (how == 4) {
            bundle->data[3] ^= 1;
        } else {
            bundle->size = bundle->size * (how - 1) / 3;
        }
        resume(1, 0);
        assert_int_equal(resumed.parts > 0, 1);
        assert_int_equal(resumed.entries, 2);
        assert_entries(1, "s", "a b");
        assert_true(has_claim(0, 2));
        assert_no_files();
    }
}

/* What was deleted or changed since does not come back with a bundle. */
MOVE_TEST(bundle__of_a_session_that_was_deleted_since)
{
    struct wal_session *session;

    hand_off(0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    push(0);
    put_sessions(0);
    assert_int_equal(try_resume(1, world.machines[0].uuid, 0), WAL_ENOTFOUND);
    assert_false(has_claim(0, 2));
}

MOVE_TEST(bundle__of_a_session_that_went_on_since)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal_session *session;

    hand_off(0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_get_move(session, &move, NULL));
    move.flags = 0;
    assert_ok(wal_session_set_move(session, &move, NULL));
    wal_session_close(session);
    append(0, "s", "c");
    push(0);
    put_sessions(0);
    resume(1, 0);
    assert_true(resumed.parts > 0);
    assert_entries(1, "s", "a b c");
}

/* What is shared can be redacted without a record of the session. */
MOVE_TEST(bundle__of_shared_entries_there_is_none)
{
    static const char *const names[] = {"source", "s"};

    for (unsigned is_fork = 0; is_fork < 2; is_fork++) {
        struct wal_session *source;
        struct wal_session *fork = NULL;
        const struct wal_session_options named = {
            .struct_size = sizeof(named),
            .id = kit_text(names[is_fork]),
        };

        end();
        begin();
        source = kit_create(world.machines[0].store, names[1 - is_fork]);
        kit_append_all(source, "a b");
        assert_ok(wal_session_fork(source, WAL_STR(""), &named, &fork, NULL));
        wal_session_close(fork);
        wal_session_close(source);
        push(0);
        hand_off(0);
        assert_null(find_bundle());
        resume(1, 0);
        assert_true(resumed.parts > 0);
        assert_entries(1, "s", "a b");
    }
}

/* A fork is made after the handoff, and what it shares is redacted there. */
MOVE_TEST(bundle__of_entries_that_were_redacted_since)
{
    for (unsigned is_trashed = 0; is_trashed < 2; is_trashed++) {
        struct wal_session *session;
        struct wal_session *fork = NULL;

        begin_again();
        hand_off(0);
        assert_non_null(find_bundle());
        session = kit_session(world.machines[0].store, "s");
        assert_ok(wal_session_fork(session, WAL_STR(""), NULL, &fork, NULL));
        wal_session_close(session);
        assert_ok(wal_session_redact(fork, WAL_STR("a"), WAL_STR(""), NULL, NULL));
        if (is_trashed != 0) {
            assert_ok(wal_session_trash(fork, NULL));
        }
        wal_session_close(fork);
        push(0);
        put_sessions(0);
        resume(1, 0);
        assert_true(resumed.parts > 0);
    }
}

/* Of a handoff and the resume after it every call fails once, before it is done or after it. */
MOVE_TEST(bundle__nth_call_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        begin_again();
        assert_int_equal(try_handoff(0), WAL_EBUSY);
        push(0);
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + (nth + 1) / 2;
        (void)!try_handoff(0);
        (void)!try_resume(1, world.machines[0].uuid, 0);
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(nth < CALLS_MAX);
        (void)!try_handoff(0);
        resume(1, 0);
        assert_no_files();
        assert_entries(1, "s", "a b");
        append(1, "s", "c");
        (void)check(0);
        assert_away(0, "s", "moved to");
    }
}

MOVE_TEST(bundle__is_collected)
{
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);

    hand_off(0);
    assert_non_null(find_bundle());
    assert_ok(wal_remote_compact(remote, world.machines[0].store, NULL, &result, kit_error()));
    assert_null(find_bundle());
    resume(1, 0);
    assert_int_equal(resumed.entries, 2);
}

MOVE_TEST(take_back__both_learn_of_it)
{
    resume(1, 0);
    append(1, "s", "c");
    (void)check(0);
    take_back(0);
    append(0, "s", "d");
    assert_int_equal(check(0), 0);
    append(0, "s", "e");
    assert_int_equal(check(1), 1);
    take_back(0);
}

MOVE_TEST(take_back__after_a_handoff)
{
    hand_off(0);
    take_back(0);
    append(0, "s", "d");
    assert_int_equal(check(0), 0);
    append(0, "s", "e");
}

MOVE_TEST(take_back__of_what_never_moved)
{
    assert_int_equal(wal_remote_take_back(remote, world.machines[0].store, WAL_STR("s"), NULL),
                     WAL_ENOTFOUND);
}

/* --- what a check finds --------------------------------------------------- */

MOVE_TEST(check__moved_session_was_deleted)
{
    struct wal_session *session;

    resume(1, 0);
    session = kit_session(world.machines[0].store, "s");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    assert_int_equal(check(0), 0);
}

MOVE_TEST(check__a_repetition_is_one_request)
{
    struct wal_remote_moves *moves = NULL;
    uint64_t before;

    resume(1, 0);
    assert_ok(wal_remote_moves_open(remote, world.machines[0].store, &moves, NULL));
    assert_ok(wal_remote_moves_check(moves, NULL, NULL, NULL));
    before = world.memory.calls;
    assert_ok(wal_remote_moves_check(moves, NULL, NULL, NULL));
    assert_int_equal(world.memory.calls - before, 1);
    assert_away(0, "s", "moved to");
    wal_remote_moves_close(moves);
    /* In another process too: the session says that it was recorded. */
    before = world.memory.calls;
    assert_int_equal(check(0), 0);
    assert_int_equal(world.memory.calls - before, 1);
}

/* Claims that are no claims are reported, and the others done. */
MOVE_TEST(check__hostile_claims)
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
        struct wal_error error = KIT_ERROR;
        unsigned count = 0;

        begin_again();
        put_claim(0, "hostile", 1, texts[i]);
        resume(1, 0);
        assert_int_equal(try_check(0, &count, &error), WAL_ECORRUPT);
        assert_non_null(strstr(error.file, "/own/"));
        assert_int_equal(count, 1);
        assert_away(0, "s", "moved to");
    }
}

MOVE_TEST(check__claim_of_a_newer_version)
{
    unsigned count = 0;

    put_claim(0, "s", 1, "{\"version\":2}");
    assert_int_equal(try_check(0, &count, kit_error()), WAL_EVERSION);
    assert_int_equal(try_resume(1, world.machines[0].uuid, 0), WAL_EVERSION);
}

/* The one with the higher move was made later, and ends it. */
MOVE_TEST(check__claims_that_lead_in_a_circle)
{
    wal_session_close(kit_create(world.machines[1].store, "s"));
    append(1, "s", "a b c");
    push(1);
    for (unsigned i = 0; i < 2; i++) {
        char uuid[WAL__UUID_TEXT_SIZE];
        char json[512];

        wal__hex_write(world.machines[1 - i].uuid, 16, uuid);
        snprintf(json, sizeof(json),
                 "{\"version\":1,\"session\":\"s\",\"move\":%u,\"store\":"
                 "\"%s\",\"host\":\"h\",\"entry\":\"\",\"sequence\":0,"
                 "\"claimed\":0}",
                 i == 0 ? 8U : 7U, uuid);
        put_claim(i, "s", 1, json);
    }
    resume(2, 0);
    assert_memory_equal(resumed.uuid, world.machines[1].uuid, 16);
    resume(2, 1);
    assert_memory_equal(resumed.uuid, world.machines[1].uuid, 16);
}
