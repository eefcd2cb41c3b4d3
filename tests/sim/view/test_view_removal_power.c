/*
 * test_view_removal_power.c - the view of a session that was deleted is removed (SPEC.md 10.7) on a
 * disk that loses power before each change of a file, with every landing of what was not synced,
 * and whose calls fail one at a time. What was removed is gone when the call returns; until then
 * the state is there while a file is, so that the next call removes the rest.
 */
#include "tests/lib/kit/view_kit.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/view/libc_calls.h"

#include <fts.h>

#define ROOT   VIEW_DISK "/out"
#define CANARY "the-canary"

static const char *const dialects[] = {"claude", "codex", "pi", "opencode", "rollouts"};

static struct wal_store *store;
static struct wal_view_info info; /* of the view */
static char context[256];         /* printed by a test that fails */

static void begin(const char *dialect)
{
    struct wal_session *session;

    store = kit_open("store", WAL_OPEN_CREATE | WAL_OPEN_MEMORY);
    session = view_kit_import(store, 0xFFFF);
    for (unsigned i = 1; i <= 4; i++) {
        view_kit_row(session, i, i - 1, CANARY);
    }
    assert_int_equal(mkdir(VIEW_DISK, 0700), 0);
    (void)view_kit_export(store, session, dialect, ROOT);
    assert_true(view_kit_contains(ROOT, CANARY));
    info = (struct wal_view_info)WAL_INIT(wal_view_info);
    info.flags = WAL_VIEW_INFO_DELETED;
    (void)snprintf(info.session, sizeof(info.session), "%.*s", (int)kit_info(session).id.size,
                   (const char *)kit_info(session).id.data);
    (void)snprintf(info.dialect, sizeof(info.dialect), "%s", dialect);
    (void)snprintf(info.root, sizeof(info.root), ROOT);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
}

static void end(void)
{
    view_disk_free();
    kit_close(store);
    assert_int_equal(system("rm -rf " VIEW_DISK), 0);
    context[0] = '\0';
}

/* How many files the root holds, without the lock. */
static unsigned count_files(void)
{
    char *roots[] = {(char[]){ROOT}, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    unsigned count = 0;
    FTSENT *entry;

    while ((entry = fts_read(tree)) != NULL) {
        count += entry->fts_info == FTS_F && strcmp(entry->fts_name, "lock") != 0 &&
                         strcmp(entry->fts_name, "global.json") != 0
                     ? 1
                     : 0;
    }
    (void)fts_close(tree);
    return count;
}

static void remove_again(void)
{
    struct wal_error error = KIT_ERROR;

    if (wal_view_update(store, &info, NULL, &error) != WAL_OK) {
        fail_msg("the next removal fails: %s: %s", error.file, error.text);
    }
    assert_int_equal(count_files(), 0);
    assert_false(view_kit_contains(VIEW_DISK, CANARY));
}

static int leave(void **state)
{
    if (context[0] != '\0') {
        print_error("%s\n", context);
    }
    view_disk_free();
    return kit_tear_down(state);
}

TEST_WITH(view_removal__lost_before_every_call, kit_set_up, leave)
{
    uint64_t random = kit_seed();

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        size_t cuts;

        begin(dialects[i]);
        view_disk_start(NULL, true);
        remove_again();
        cuts = view_disk_stop();
        assert_true(cuts > 3);
        for (size_t cut = 0; cut < cuts; cut++) {
            for (int landing = SIM_PERSIST_NONE; landing < SIM_PERSISTENCES; landing++) {
                const struct sim_power_loss loss = {.landing = (enum sim_persistence)landing};

                (void)snprintf(context, sizeof(context),
                               "%s: power lost before call %zu of %zu (%s), "
                               "landing %d",
                               dialects[i], cut, cuts, view_disk_call(cut), landing);
                view_disk_lose(cut, &loss, kit_random(&random));
                if (cut + 1 == cuts) {
                    assert_int_equal(count_files(), 0);
                }
                remove_again();
            }
        }
        end();
    }
}

/* False: there are fewer calls. */
static bool fail_once(const char *dialect, unsigned at)
{
    const struct view_disk_fault fault = {.at = at, .sys_errno = EIO};
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    bool has_failed;

    begin(dialect);
    (void)snprintf(context, sizeof(context), "%s: call %u fails", dialect, at);
    view_disk_start(&fault, false);
    status = wal_view_update(store, &info, NULL, &error);
    has_failed = view_disk_calls() >= at;
    if (status == WAL_OK) {
        assert_int_equal(count_files(), 0);
    }
    remove_again();
    (void)view_disk_stop();
    end();
    return has_failed;
}

TEST_WITH(view_removal__every_call_fails, kit_set_up, leave)
{
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        unsigned at = 1;

        while (fail_once(dialects[i], at)) {
            at += sample_stride();
        }
        assert_true(at > 3);
    }
}
