/*
 * test_sim_tree.c - work trees on the simulated machine: what every table does (tree_cases.h), and
 * what power losses, faults and deaths do to a tree.
 */
#include <stdio.h>

#include "tests/lib/test.h"
#include "tests/lib/tree_cases.h"
#include "tests/sim/disk/sim_fixture.h"
#include "tests/sim/disk/tree.h"

#define ROOT     "/work/tree"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------ as every other table --- */

static struct machine *shared; /* of the test that runs */

static void make_pipe(const char *path)
{
    const struct sim_tree_entry entry = {path, WAL__WORKTREE_OTHER, 0, NULL};

    sim_tree_make(shared->disk, ROOT, &entry, 1);
}

static void set_mode(const char *path, uint32_t mode)
{
    char whole[256];

    (void)snprintf(whole, sizeof(whole), ROOT "/%s", path);
    sim_tree_set_mode(shared->disk, whole, mode);
}

/* Nobody is a superuser here. */
static void drop(bool dropped)
{
    (void)dropped;
}

static void read_outside(char out[8])
{
    uint8_t *data = NULL;
    size_t size = 0;

    sim_disk_read_file(shared->disk, "/work/outside", &data, &size);
    assert_int_equal(size, 7);
    memcpy(out, data, size);
    out[size] = '\0';
    free(data);
}

static struct tree_backend world = {
    .root = ROOT,
    .make_pipe = make_pipe,
    .set_mode = set_mode,
    .drop = drop,
    .read_outside = read_outside,
};

static int enter(void **state)
{
    (void)set_up(state);
    shared = *state;
    sim_tree_make(shared->disk, ROOT, NULL, 0);
    sim_disk_write_file(shared->disk, "/work/outside", "outside", 7);
    world.io = shared->io->worktree;
    tree_case_set_up(&world);
    return 0;
}

static int leave(void **state)
{
    tree_case_tear_down();
    return tear_down(state);
}

/* ------------------------------------------------------------- making --- */

static const struct sim_tree_entry before[] = {
    {"a", WAL__WORKTREE_REGULAR, 0644, "old a"},  {"d/b", WAL__WORKTREE_REGULAR, 0755, "old b"},
    {"d/link", WAL__WORKTREE_SYMLINK, 0, "../a"}, {"e/f", WAL__WORKTREE_DIRECTORY, 0, NULL},
    {"new", WAL__WORKTREE_ABSENT, 0, NULL},
};

static void is_equal(struct sim_disk *disk, const struct sim_tree_entry *entries, size_t count)
{
    char why[256] = "";

    if (!sim_tree_equals(disk, ROOT, entries, count, why, sizeof(why))) {
        fail_msg("%s", why);
    }
}

static void differs(struct sim_disk *disk, struct sim_tree_entry changed, const char *how)
{
    struct sim_tree_entry entries[COUNT(before)];
    char why[256] = "";

    memcpy(entries, before, sizeof(before));
    for (size_t i = 0; i < COUNT(before); i++) {
        if (strcmp(entries[i].path, changed.path) == 0) {
            entries[i] = changed;
        }
    }
    assert_false(sim_tree_equals(disk, ROOT, entries, COUNT(before), why, sizeof(why)));
    assert_string_equal(why, how);
}

TEST_WITH(sim_tree__a_tree_is_compared, set_up, tear_down)
{
    struct machine *m = *state;
    struct sim_disk *clone;
    char why[256] = "";
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};

    sim_tree_make(m->disk, ROOT, before, COUNT(before));
    is_equal(m->disk, before, COUNT(before));
    differs(m->disk, (struct sim_tree_entry){"a", WAL__WORKTREE_REGULAR, 0, "x"},
            "a has another content");
    differs(m->disk, (struct sim_tree_entry){"a", WAL__WORKTREE_REGULAR, 0600, 0},
            "a has another mode");
    differs(m->disk, (struct sim_tree_entry){"a", WAL__WORKTREE_SYMLINK, 0, 0},
            "a is of another kind");
    differs(m->disk, (struct sim_tree_entry){"d/link", WAL__WORKTREE_SYMLINK, 0, "a"},
            "d/link has another content");
    differs(m->disk, (struct sim_tree_entry){"new", WAL__WORKTREE_REGULAR, 0, ""},
            "new is not there");
    assert_false(sim_tree_equals(m->disk, ROOT, before + 1, COUNT(before) - 1, why, sizeof(why)));
    assert_string_equal(why, "a should not be there");

    /* All of it is durable, and a copy has all of it. */
    clone = sim_disk_clone(m->disk);
    sim_disk_power_loss(m->disk, &none, 1);
    is_equal(m->disk, before, COUNT(before));
    is_equal(clone, before, COUNT(before));
    sim_disk_destroy(clone);
}

/* ------------------------------------------------------------- a script --- */

enum {
    big = 2000 /* four sectors, so that it can be torn */
};

static char content[big + 1]; /* of the new file */

/* Writes a new "a" and "d/b" next to the old ones and renames them over these; only the steps in
 * `parts`. The first failure ends it. */
enum part { DATA = 1, SYNC = 2, RENAME = 4, SETTLE = 8, ALL = 15 };

static enum wal_status write_one(const struct wal__worktree_io *io, struct wal__worktree *tree,
                                 const char *path)
{
    struct wal__worktree_file *file = NULL;
    size_t put = 0;
    int error;
    enum wal_status status = io->create(io->ctx, tree, path, 0600, &file, &error);

    if (status != WAL_OK) {
        return status;
    }
    status = io->write(io->ctx, file, content, big, 0, &put, &error);
    if (status == WAL_OK) {
        status = io->set_mode(io->ctx, file, 0700, &error);
    }
    io->close(io->ctx, file);
    return status;
}

static enum wal_status run_parts(const struct wal__worktree_io *io, struct wal__worktree *tree,
                                 unsigned parts)
{
    enum wal_status status = WAL_OK;
    int error;

    if ((parts & DATA) != 0) {
        status = write_one(io, tree, ".a");
        status = status == WAL_OK ? write_one(io, tree, "d/.b") : status;
    }
    if (status == WAL_OK && (parts & SYNC) != 0) {
        status = io->sync_all(io->ctx, tree, &error);
    }
    if (status == WAL_OK && (parts & RENAME) != 0) {
        status = io->rename(io->ctx, tree, ".a", "a", &error);
        status = status == WAL_OK ? io->rename(io->ctx, tree, "d/.b", "d/b", &error) : status;
    }
    if (status == WAL_OK && (parts & SETTLE) != 0) {
        status = io->sync_directories(io->ctx, tree, "", 1, &error);
        status = status == WAL_OK ? io->sync_directories(io->ctx, tree, "d", 2, &error) : status;
    }
    return status;
}

static void prepare(struct machine *m)
{
    memset(content, 'n', big);
    sim_tree_make(m->disk, ROOT, before, COUNT(before));
}

static enum wal_status run_script(struct machine *m, unsigned parts)
{
    const struct wal__worktree_io *io = m->io->worktree;
    struct wal__worktree *tree = NULL;
    enum wal_status status = io->open_root(io->ctx, ROOT, &tree, &m->error);

    if (status != WAL_OK) {
        return status;
    }
    status = run_parts(io, tree, parts);
    io->close_root(io->ctx, tree);
    return status;
}

enum found { GONE = 1, OLD = 2, NEW = 4, TORN = 8 };

static enum found look(struct sim_disk *disk, const char *path, const char *old)
{
    struct wal__worktree_stat st;
    uint8_t *data = NULL;
    size_t size = 0;
    enum found found = TORN;

    if (!sim_tree_stat(disk, path, &st)) {
        return GONE;
    }
    sim_disk_read_file(disk, path, &data, &size);
    if (size == strlen(old) && memcmp(data, old, size) == 0) {
        found = OLD;
    } else if (size == big && memcmp(data, content, size) == 0 && st.mode == 0700) {
        found = NEW;
    }
    free(data);
    return found;
}

/* What a loss of power after these parts leaves of both files, by a bit for each pair. */
static unsigned outcomes(struct machine *m, unsigned parts)
{
    unsigned seen = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct sim_power_loss loss = {.garbage = seed % 2 == 0};
        struct machine copy = {.disk = sim_disk_clone(m->disk)};

        copy.process = sim_process_create(copy.disk);
        copy.io = sim_process_io(copy.process);
        assert_ok(run_script(&copy, parts));
        sim_disk_power_loss(copy.disk, &loss, seed);
        seen |= (unsigned)look(copy.disk, ROOT "/a", "old a");
        seen |= (unsigned)look(copy.disk, ROOT "/d/b", "old b") << 4;
        sim_disk_destroy(copy.disk);
    }
    return seen;
}

/* --------------------------------------------------------- power loss --- */

TEST_WITH(sim_tree__synced_file_is_replaced_whole, set_up, tear_down)
{
    struct machine *m = *state;
    const unsigned both = OLD | NEW;

    prepare(m);
    assert_int_equal(outcomes(m, DATA | SYNC), OLD | OLD << 4);
    assert_int_equal(outcomes(m, DATA | SYNC | RENAME), both | both << 4);
    assert_int_equal(outcomes(m, ALL), NEW | NEW << 4);
}

TEST_WITH(sim_tree__unsynced_file_is_torn, set_up, tear_down)
{
    struct machine *m = *state;
    const unsigned some = NEW | TORN;

    prepare(m);
    assert_int_equal(outcomes(m, DATA | RENAME | SETTLE), some | some << 4);
    assert_int_equal(outcomes(m, DATA | RENAME), (some | OLD) | (some | OLD) << 4);
}

TEST_WITH(sim_tree__syncing_bytes_syncs_no_name, set_up, tear_down)
{
    struct machine *m = *state;
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};

    prepare(m);
    assert_ok(run_script(m, DATA | SYNC | RENAME));
    sim_disk_power_loss(m->disk, &none, 1);
    is_equal(m->disk, before, COUNT(before));
}

TEST_WITH(sim_tree__a_mode_waits_for_a_sync, set_up, tear_down)
{
    struct machine *m = *state;
    const struct wal__worktree_io *io = m->io->worktree;
    const struct sim_power_loss none = {.landing = SIM_PERSIST_NONE};
    struct wal__worktree *tree = NULL;
    struct wal__worktree_file *file = NULL;
    struct wal__worktree_stat st;

    prepare(m);
    assert_ok(io->open_root(io->ctx, ROOT, &tree, &m->error));
    assert_ok(io->open(io->ctx, tree, "a", &file, &m->error));
    assert_ok(io->set_mode(io->ctx, file, 0600, &m->error));
    assert_ok(io->sync_all(io->ctx, tree, &m->error));
    assert_ok(io->set_mode(io->ctx, file, 0640, &m->error));
    assert_ok(io->set_mode(io->ctx, file, 0400, &m->error));
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &st));
    assert_int_equal(st.mode, 0400);
    sim_disk_power_loss(m->disk, &none, 1);
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &st));
    assert_int_equal(st.mode, 0600);
}

/* Every pair of old and new of the two files. */
TEST_WITH(sim_tree__names_become_durable_one_by_one, set_up, tear_down)
{
    struct machine *m = *state;
    unsigned pairs = 0;

    prepare(m);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct sim_power_loss loss = {.landing = SIM_PERSIST_BY_CHANGE};
        struct machine copy = {.disk = sim_disk_clone(m->disk)};

        copy.process = sim_process_create(copy.disk);
        copy.io = sim_process_io(copy.process);
        assert_ok(run_script(&copy, DATA | SYNC | RENAME));
        sim_disk_power_loss(copy.disk, &loss, seed);

        bool a = look(copy.disk, ROOT "/a", "old a") == NEW;
        bool b = look(copy.disk, ROOT "/d/b", "old b") == NEW;

        pairs |= 1u << (2 * a + b);
        sim_disk_destroy(copy.disk);
    }
    assert_int_equal(pairs, 15);
}

TEST_WITH(sim_tree__a_failed_sync_loses_bytes_for_good, set_up, tear_down)
{
    struct machine *m = *state;
    const struct sim_fault fault = {.call = SIM_SYNC_ALL, .sys_errno = EIO};
    const struct sim_power_loss all = {.landing = SIM_PERSIST_ALL};

    prepare(m);
    sim_process_add_fault(m->process, &fault);
    assert_int_equal(run_script(m, DATA | SYNC), WAL_EIO);
    assert_ok(run_script(m, SYNC | RENAME | SETTLE));
    assert_int_equal(look(m->disk, ROOT "/a", "old a"), NEW);
    sim_disk_power_loss(m->disk, &all, 1);
    assert_int_equal(look(m->disk, ROOT "/a", "old a"), TORN);
}

TEST_WITH(sim_tree__times_stay_or_revert, set_up, tear_down)
{
    struct machine *m = *state;
    struct wal__worktree_stat old;
    unsigned seen = 0;

    prepare(m);
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &old));
    sim_disk_advance(m->disk, 50000000);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
        struct sim_disk *copy = sim_disk_clone(m->disk);
        struct sim_process *process = sim_process_create(copy);
        struct wal__worktree_stat st;

        write_text(&(struct machine){.io = sim_process_io(process)},
                   open_on(sim_process_io(process), ROOT "/a", WAL__IO_WRITE), "new", 0);
        sim_disk_power_loss(copy, &loss, seed);
        assert_true(sim_tree_stat(copy, ROOT "/a", &st));
        assert_int_equal(st.inode, old.inode);
        seen |= st.mtime_ns == old.mtime_ns ? 1 : 2;
        sim_disk_destroy(copy);
    }
    assert_int_equal(seen, 3);
}

/* -------------------------------------------------- faults and deaths --- */

/* Each call of the script is one that can fail, and is counted. */
TEST_WITH(sim_tree__every_call_can_fail, set_up, tear_down)
{
    struct machine *m = *state;
    uint64_t nth = 0;
    enum wal_status status = WAL_EIO;

    prepare(m);
    while (status != WAL_OK) {
        const struct sim_fault fault = {.call = SIM_ANY, .after = nth++, .sys_errno = EIO};
        struct machine copy = {.disk = sim_disk_clone(m->disk)};

        copy.process = sim_process_create(copy.disk);
        copy.io = sim_process_io(copy.process);
        sim_process_add_fault(copy.process, &fault);
        status = run_script(&copy, ALL);
        assert_true(status == WAL_OK || status == WAL_EIO);
        assert_int_equal(sim_process_counts(copy.process)->faults, status == WAL_OK ? 0 : 1);
        sim_disk_destroy(copy.disk);
    }
    /* The root, two files of three calls, the sync, two renames, two directories; and the one time
     * that none of them failed. */
    assert_int_equal(nth, 1 + 6 + 1 + 2 + 2 + 1);
}

TEST_WITH(sim_tree__calls_are_counted_by_kind, enter, leave)
{
    struct machine *m = *state;
    const struct sim_counts *counts = sim_process_counts(m->process);
    int error = 0;

    shared = m;
    for (size_t i = 0; i < TREE_CALLS; i++) {
        (void)tree_calls[i]("x", &error);
    }
    assert_int_equal(counts->calls[SIM_PATH_STAT], 1);
    assert_int_equal(counts->calls[SIM_READ_LINK], 1);
    assert_int_equal(counts->calls[SIM_MAKE_LINK], 1);
    assert_int_equal(counts->calls[SIM_MAY_REPLACE], 1);
    assert_int_equal(counts->calls[SIM_MAKE_DIRECTORY], 1);
    assert_int_equal(counts->calls[SIM_SYNC_DIRECTORY], 1);
    assert_int_equal(counts->calls[SIM_RENAME], 2);
    assert_string_equal(sim_call_name(SIM_SYNC_ALL), "sync_all");
}

/* A death at any call leaves nothing torn to see, and its handles are gone. */
TEST_WITH(sim_tree__a_process_dies_at_any_call, set_up, tear_down)
{
    struct machine *m = *state;
    uint64_t nth = 0;
    bool died = true;

    prepare(m);
    while (died) {
        const struct sim_fault fault = {.call = SIM_ANY,
                                        .after = nth / 2,
                                        .effect = nth % 2 == 0 ? SIM_KILL_BEFORE : SIM_KILL_AFTER};
        struct machine copy = {.disk = sim_disk_clone(m->disk)};

        copy.process = sim_process_create(copy.disk);
        copy.io = sim_process_io(copy.process);
        sim_process_add_fault(copy.process, &fault);
        died = run_script(&copy, ALL) != WAL_OK;
        assert_true(died == sim_process_is_dead(copy.process));
        assert_int_not_equal(look(copy.disk, ROOT "/a", "old a"), TORN);
        assert_int_not_equal(look(copy.disk, ROOT "/d/b", "old b"), TORN);
        sim_disk_destroy(copy.disk);
        nth++;
    }
    assert_int_equal(nth, 2 * 12 + 1);
}

/* --------------------------------------------------- what is refused --- */

static enum wal_status try_replace(struct machine *m, const char *path)
{
    const struct wal__worktree_io *io = m->io->worktree;
    struct wal__worktree *tree = NULL;
    enum wal_status status;

    assert_ok(io->open_root(io->ctx, ROOT, &tree, &m->error));
    status = io->check_replace(io->ctx, tree, path, &m->error);
    io->close_root(io->ctx, tree);
    return status;
}

TEST_WITH(sim_tree__limits_of_the_disk_are_reported, set_up, tear_down)
{
    struct machine *m = *state;

    prepare(m);
    sim_tree_set_immutable(m->disk, ROOT "/a", true);
    assert_int_equal(try_replace(m, "a"), WAL_EACCESS);
    assert_int_equal(m->error, EPERM);
    assert_int_equal(run_script(m, DATA | RENAME), WAL_EACCESS);
    sim_tree_set_immutable(m->disk, ROOT "/a", false);
    assert_ok(try_replace(m, "a"));
    sim_tree_set_immutable(m->disk, ROOT "/d", true);
    assert_int_equal(try_replace(m, "d/new"), WAL_EACCESS);

    sim_disk_set_read_only(m->disk, true);
    assert_int_equal(try_replace(m, "a"), WAL_EACCESS);
    assert_int_equal(m->error, EROFS);
    sim_disk_set_read_only(m->disk, false);

    sim_tree_make(m->disk, ROOT,
                  (struct sim_tree_entry[]){{".a", WAL__WORKTREE_ABSENT, 0, 0},
                                            {"d/.b", WAL__WORKTREE_ABSENT, 0, 0}},
                  2);
    sim_disk_set_limit(m->disk, sim_disk_used_bytes(m->disk));
    assert_int_equal(run_script(m, DATA), WAL_ENOSPACE);
}

TEST_WITH(sim_tree__times_have_a_granularity, set_up, tear_down)
{
    struct machine *m = *state;
    const int64_t second = 1000000000;
    struct wal__worktree_stat st;
    int64_t first;

    prepare(m);
    sim_disk_set_time_granularity(m->disk, (uint64_t)second);
    sim_disk_advance(m->disk, 2000000000);
    sim_tree_make(m->disk, ROOT, before, 1);
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &st));
    assert_int_equal(st.mtime_ns % second, 0);
    assert_true(st.mtime_ns <= m->io->worktree->now_ns(m->io->worktree->ctx));
    first = st.mtime_ns;
    sim_disk_advance(m->disk, 1000000);
    sim_tree_make(m->disk, ROOT, before, 1);
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &st));
    assert_int_equal(st.mtime_ns, first);
    sim_disk_advance(m->disk, 1000000000);
    sim_tree_make(m->disk, ROOT, before, 1);
    assert_true(sim_tree_stat(m->disk, ROOT "/a", &st));
    assert_int_equal(st.mtime_ns, first + second);
}

static int run_cases(void)
{
    return tree_cases_run("sim_tree, as every table", enter, leave);
}

TEST_FILE(NULL, NULL, run_cases);
