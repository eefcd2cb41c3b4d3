/*
 * test_store_claim.c - tests of claims of sessions, between handles, stores and processes.
 */
#include "tests/lib/kit/store_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/base/io.h"
#include "engine/log/control.h"
#include "engine/session/session.h"

static enum wal_status claim(struct wal_session *session)
{
    return wal_session_claim(session, NULL);
}

static void expect_claimed(struct wal_session *session, pid_t holder)
{
    struct wal_error error = KIT_ERROR;
    char text[64];

    (void)snprintf(text, sizeof(text), "process %d claims", (int)holder);
    assert_int_equal(wal_session_claim(session, &error), WAL_ECLAIMED);
    assert_error(&error, WAL_ECLAIMED, text);
    assert_int_equal(error.holder, holder);
}

KIT_TEST(claim__one_handle_at_a_time)
{
    struct wal_store *stores[2] = {kit_store(), kit_store()};
    struct wal_session *first = kit_create(stores[0], "s");
    struct wal_session *second = kit_session(stores[0], "s");
    struct wal_session *apart = kit_session(stores[1], "s");
    struct wal_session *other = kit_create(stores[1], "t");

    assert_ok(claim(first));
    assert_ok(claim(first));
    expect_claimed(second, getpid());
    expect_claimed(apart, getpid());
    assert_ok(claim(other));
    assert_ok(wal_session_unclaim(second, NULL));
    expect_claimed(second, getpid());
    kit_append(apart, "a", NULL); /* advice, not a lock */
    assert_ok(wal_session_unclaim(first, NULL));
    assert_ok(wal_session_unclaim(first, NULL));
    assert_ok(claim(apart));
    expect_claimed(first, getpid());
    wal_session_close(apart);
    assert_ok(claim(second));
    wal_session_close(first);
    expect_claimed((apart = kit_session(stores[1], "s")), getpid());
    wal_session_close(second);
    kit_close(stores[0]);
    assert_ok(claim(apart));
}

/* A child that claims "s" and keeps running; -1 if the claim failed. */
static pid_t hold(void)
{
    int ends[2];
    char got = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = kit_start_process();
    if (child == 0) {
        struct wal_store *store = kit_open("store", 0);
        struct wal_session *session = kit_session(store, "s");

        got = claim(session) == WAL_OK ? 'y' : 'n';
        if (write(ends[1], &got, 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ends[0], &got, 1), 1);
    assert_int_equal(got, 'y');
    (void)close(ends[0]);
    (void)close(ends[1]);
    return child;
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

KIT_TEST(claim__ends_with_its_process)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    pid_t child;

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    for (int i = 0; i < 3; i++) {
        child = hold();
        store = kit_store();
        session = kit_session(store, "s");
        expect_claimed(session, child);
        end(child);
        assert_ok(claim(session));
        wal_session_close(session);
        kit_close(store);
    }
}

KIT_TEST(claim__child_of_fork_does_not_hold_it)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store *later;
    struct wal_session *other;
    pid_t child;

    assert_ok(claim(session));
    child = kit_start_process();
    if (child == 0) {
        bool refused = wal_session_claim(session, NULL) == WAL_EFORKED &&
                       wal_session_unclaim(session, NULL) == WAL_EFORKED;

        wal_session_close(session); /* leaves the parent's claim alone */
        (void)(refused && pause());
        _exit(1);
    }
    later = kit_store();
    other = kit_session(later, "s");
    usleep(50000);
    expect_claimed(other, getpid());
    wal_session_close(session);
    kit_close(store);
    assert_ok(claim(other));
    end(child);
}

/* Claims in the page by dead processes, and by a live one that has no lock, are ignored and
 * replaced. */
KIT_TEST(claim__stale_names_are_ignored)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal__control_page *page = store->core.control.page;

    /* Then in a page where process ids name nobody. */
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < WAL__CLAIMS; i++) {
            page->claims[i].start = 77;
            page->claims[i].session_and_pid = (uint64_t)(i + 1) << 32 | 1;
        }
        assert_ok(claim(session));
        assert_ok(wal_session_unclaim(session, NULL));
        page->process_namespace = 0;
    }
    page->claims[0].start = store->core.control.process_start_time;
    page->claims[0].session_and_pid = (uint64_t)session->number << 32 | (uint32_t)getpid();
    assert_ok(claim(session));
}

KIT_TEST(claim__a_full_table)
{
    struct wal_store *store = kit_store();
    struct wal_session *sessions[WAL__CLAIMS + 1];
    struct wal_error error = KIT_ERROR;
    char id[16];

    for (int i = 0; i <= WAL__CLAIMS; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        sessions[i] = kit_create(store, id);
        assert_int_equal(wal_session_claim(sessions[i], &error),
                         i < WAL__CLAIMS ? WAL_OK : WAL_ELIMIT);
    }
    assert_error(&error, WAL_ELIMIT, "no room");
    assert_ok(wal_session_unclaim(sessions[5], NULL));
    assert_ok(claim(sessions[WAL__CLAIMS]));
    for (int i = 0; i <= WAL__CLAIMS; i++) {
        wal_session_close(sessions[i]);
    }
    assert_ok(wal_session_claim((sessions[0] = kit_session(store, "s0")), NULL));
}

/* Shared by many processes: the results of their claims, and the signal to end. */
struct tally {
    _Atomic uint32_t claimed;
    _Atomic uint32_t refused;
    _Atomic uint32_t failed;
    _Atomic uint32_t over;
};

static void wait_for(const _Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) != value) {
        usleep(1000);
    }
}

static void claim_and_wait(struct tally *tally, int number)
{
    const struct wal_entry entry = kit_entry("e", NULL, "{}");
    struct wal_session_options options = {.struct_size = sizeof(options)};
    /* On few processors it takes long until each of them has had its turn. */
    const struct wal_open_options patient = {.struct_size = sizeof(patient),
                                             .lock_timeout_ms = 60000};
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    enum wal_status status;
    char id[16];

    (void)snprintf(id, sizeof(id), "s%d", number);
    options.id = kit_text(id);
    status = wal_open("store", &patient, &store, NULL);
    if (status == WAL_OK) {
        status = wal_session_create(store, &options, &session, NULL);
    }
    if (status == WAL_OK) {
        status = wal_append(session, &entry, 1, NULL, NULL, NULL);
    }
    if (status == WAL_OK) {
        status = wal_session_claim(session, NULL);
    }
    atomic_fetch_add(status == WAL_OK       ? &tally->claimed
                     : status == WAL_ELIMIT ? &tally->refused
                                            : &tally->failed,
                     1);
    wait_for(&tally->over, 1);
    wal_session_close(session);
    _exit(wal_close(store, NULL) == WAL_OK ? 0 : 1);
}

/* The control page has no room for all claims; all processes write. */
KIT_TEST(claim__more_processes_than_table_slots)
{
    enum { PROCESSES = WAL__CLAIMS + 4 };
    struct tally *tally =
        mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct wal_store *store = kit_store();
    pid_t children[PROCESSES];
    int status = 0;

    assert_true(tally != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0) {
            claim_and_wait(tally, i);
        }
    }
    while (atomic_load(&tally->claimed) + atomic_load(&tally->refused) +
               atomic_load(&tally->failed) <
           PROCESSES) {
        usleep(1000);
    }
    atomic_store(&tally->over, 1);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&tally->failed), 0);
    assert_int_equal(atomic_load(&tally->claimed), WAL__CLAIMS);
    assert_int_equal(atomic_load(&tally->refused), PROCESSES - WAL__CLAIMS);
    for (int i = 0; i < PROCESSES; i++) {
        struct wal_session *session;
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        session = kit_session(store, id);
        assert_branch(session, "e");
        wal_session_close(session);
    }
    kit_close(store);
    (void)munmap(tally, sizeof(*tally));
}

/* --- the list ------------------------------------------------------------ */

/* Expects the list to be "ID PROCESS OWN" of each claim, separated by commas; the process is
 * `self`, `other` or 0. */
static void expect_list(struct wal_store *store, pid_t other, const char *expected)
{
    struct wal_claim_cursor *cursor = NULL;
    struct wal_claim claim = {.struct_size = sizeof(claim)};
    char text[1024] = "";
    size_t size = 0;

    assert_ok(wal_claim_cursor_open(store, &cursor, kit_error()));
    while (wal_claim_cursor_next(cursor, &claim, kit_error()) == WAL_OK) {
        const char *process = claim.process_id == getpid() ? "self"
                              : claim.process_id == other  ? "other"
                              : claim.process_id == 0      ? "0"
                                                           : "?";

        size +=
            (size_t)snprintf(text + size, sizeof(text) - size, "%s%.*s %s%s", size == 0 ? "" : ", ",
                             (int)claim.session_id.size, (const char *)claim.session_id.data,
                             process, (claim.flags & WAL_CLAIM_OWN) != 0 ? " own" : "");
        assert_true(size < sizeof(text));
    }
    assert_int_equal(wal_claim_cursor_next(cursor, &claim, kit_error()), WAL_END);
    wal_claim_cursor_close(cursor);
    assert_string_equal(text, expected);
}

KIT_TEST(claims__none)
{
    struct wal_store *store = kit_store();

    expect_list(store, -1, "");
    wal_session_close(kit_create(store, "s"));
    expect_list(store, -1, "");
}

/* Those of this handle, and of another one of this process. */
KIT_TEST(claims__of_this_process)
{
    struct wal_store *stores[2] = {kit_store(), kit_store()};
    struct wal_session *a = kit_create(stores[0], "a");
    struct wal_session *b = kit_create(stores[0], "b");
    struct wal_session *c = kit_create(stores[1], "c");
    struct wal_claim_cursor *cursor = NULL;
    struct wal_claim listed = {.struct_size = sizeof(listed)};

    assert_ok(claim(c));
    assert_ok(claim(a));
    expect_list(stores[0], -1, "a self own, c self own");
    expect_list(stores[1], -1, "a self own, c self own");
    assert_ok(claim(b));
    assert_ok(wal_claim_cursor_open(stores[1], &cursor, NULL));
    assert_ok(wal_claim_cursor_next(cursor, &listed, NULL));
    assert_int_equal(listed.session_number, kit_info(a).number);
    /* A cursor is a copy. */
    assert_ok(wal_session_unclaim(b, NULL));
    assert_ok(wal_claim_cursor_next(cursor, &listed, NULL));
    assert_int_equal(listed.session_number, kit_info(b).number);
    wal_claim_cursor_close(cursor);
    expect_list(stores[1], -1, "a self own, c self own");
    wal_session_close(a);
    expect_list(stores[0], -1, "c self own");
    wal_session_close(b);
    wal_session_close(c);
    expect_list(stores[0], -1, "");
}

KIT_TEST(claims__of_another_process_that_is_killed)
{
    struct wal_store *store = kit_store();
    struct wal_session *own;
    struct wal_store *reader;
    pid_t child;

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    child = hold();
    store = kit_store();
    own = kit_create(store, "t");
    assert_ok(claim(own));
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    expect_list(store, child, "s other, t self own");
    expect_list(reader, child, "s other, t self own");
    end(child);
    expect_list(store, child, "t self own");
    expect_list(reader, child, "t self own");
    wal_session_close(own);
    expect_list(reader, child, "");
}

/* A reader that was opened while no process wrote, and one without LOCK. */
KIT_TEST(claims__visible_to_readers)
{
    struct wal_store *store = kit_store();
    struct wal_claim_cursor *cursor = NULL;
    struct wal_error error = KIT_ERROR;
    struct wal_store *reader;
    uid_t user = geteuid();
    pid_t child;

    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    expect_list(reader, -1, "");
    child = hold();
    expect_list(reader, child, "s other");
    /* Permission bits do not stop the super-user. */
    assert_int_equal(chmod("store/LOCK", 0), 0);
    (void)(user == 0 && seteuid(65534) == 0);
    assert_int_equal(wal_claim_cursor_open(reader, &cursor, &error), WAL_EREADONLY);
    assert_int_equal(seteuid(user), 0);
    assert_error(&error, WAL_EREADONLY, "list the claims");
    end(child);
    assert_int_equal(unlink("store/LOCK"), 0);
    expect_list(reader, -1, "");
    kit_close(reader);
    assert_null(cursor);
}

/* The lock decides: names in the page without one are not listed, and a lock whose holder the page
 * does not name is listed without it. */
KIT_TEST(claims__names_of_dead_processes)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal__control_page *page = store->core.control.page;

    /* Before the slot of the claim: a name of a dead process. */
    page->claims[0].start = 77;
    page->claims[0].session_and_pid = (uint64_t)session->number << 32 | 1;
    page->claims[1].start = 77;
    page->claims[1].session_and_pid = UINT64_C(99) << 32 | 1;
    expect_list(store, -1, "");
    page->claims[0].start = 0;
    assert_ok(claim(session));
    page->claims[2] = page->claims[0];
    page->claims[0].start = 77;
    page->claims[0].session_and_pid = (uint64_t)session->number << 32 | 1;
    expect_list(store, -1, "s self own");
    page->claims[3] = page->claims[0];
    page->claims[0].start = 0;
    expect_list(store, -1, "s self own");
    page->claims[2].start = 0;
    expect_list(store, -1, "s 0");
    page->claims[3].start = 0;
}

KIT_TEST(claims__of_a_full_table)
{
    struct wal_store *store = kit_store();
    struct wal_session *sessions[WAL__CLAIMS + 1];
    struct wal_claim_cursor *cursor = NULL;
    struct wal_claim listed = {.struct_size = sizeof(listed)};
    char id[16];

    for (int i = 0; i <= WAL__CLAIMS; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        sessions[i] = kit_create(store, id);
        assert_int_equal(claim(sessions[i]), i < WAL__CLAIMS ? WAL_OK : WAL_ELIMIT);
    }
    assert_ok(wal_claim_cursor_open(store, &cursor, NULL));
    for (int i = 0; i < WAL__CLAIMS; i++) {
        assert_ok(wal_claim_cursor_next(cursor, &listed, NULL));
        assert_int_equal(listed.session_number, sessions[i]->number);
    }
    assert_int_equal(wal_claim_cursor_next(cursor, &listed, NULL), WAL_END);
    wal_claim_cursor_close(cursor);
    for (int i = 0; i <= WAL__CLAIMS; i++) {
        wal_session_close(sessions[i]);
    }
}

KIT_TEST(claims__of_a_deleted_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = kit_session(store, "s");

    assert_ok(claim(session));
    assert_ok(wal_session_delete(other, NULL));
    expect_list(store, -1, "");
}

KIT_TEST(claims__other_kinds_of_stores)
{
    struct wal_store *store = kit_open("none", WAL_OPEN_MEMORY);
    struct wal_session *session = kit_create(store, "s");

    expect_list(store, -1, "");
    assert_ok(claim(session));
    expect_list(store, -1, "s self own");
    wal_session_close(session);
    expect_list(store, -1, "");
}

KIT_TEST(claims__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_claim_cursor *cursor = NULL;
    struct wal_claim claim = {.struct_size = sizeof(claim)};
    struct wal_error error = KIT_ERROR;
    int how = 0;
    pid_t child;

    assert_int_equal(wal_claim_cursor_open(NULL, &cursor, &error), WAL_EINVAL);
    assert_int_equal(wal_claim_cursor_open(store, NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_claim_cursor_next(NULL, &claim, &error), WAL_EINVAL);
    assert_null(cursor);
    assert_ok(wal_claim_cursor_open(store, &cursor, &error));
    assert_int_equal(wal_claim_cursor_next(cursor, NULL, &error), WAL_EINVAL);
    claim.struct_size = 1;
    assert_int_equal(wal_claim_cursor_next(cursor, &claim, &error), WAL_EINVAL);
    wal_claim_cursor_close(cursor);
    wal_claim_cursor_close(NULL);
    child = kit_start_process();
    if (child == 0) {
        _exit(wal_claim_cursor_open(store, &cursor, &error) == WAL_EFORKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    /* Other processes may lock another file. */
    assert_int_equal(rename("store/LOCK", "store/LOCK.old"), 0);
    assert_int_equal(wal_claim_cursor_open(store, &cursor, &error), WAL_ELOCKFILE);
    assert_int_equal(rename("store/LOCK.old", "store/LOCK"), 0);
}

KIT_TEST(claim__other_kinds_of_stores)
{
    static const uint32_t flags[] = {WAL_OPEN_MEMORY, WAL_OPEN_NOOP};
    struct wal_store *store;
    struct wal_session *session;

    for (int i = 0; i < 2; i++) {
        store = kit_open("none", flags[i]);
        session = kit_create(store, "s");
        assert_ok(claim(session));
        assert_ok(claim(session));
        assert_ok(wal_session_unclaim(session, NULL));
        wal_session_close(session);
        kit_close(store);
    }
    store = kit_store();
    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    session = kit_session(store, "s");
    assert_int_equal(claim(session), WAL_EREADONLY);
    assert_ok(wal_session_unclaim(session, NULL));
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(claim(NULL), WAL_EINVAL);
    assert_int_equal(wal_session_unclaim(NULL, NULL), WAL_EINVAL);
}
