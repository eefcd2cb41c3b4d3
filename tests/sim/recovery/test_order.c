/*
 * test_order.c - the order of writes, syncs and names of files that are not
 * segments (SPEC.md 3.6, 3.7): a file has its name only when its bytes are
 * durable, MANIFEST after everything that it refers to, and an index of the
 * tail is gone for good before the first append.
 */
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

struct order {
    struct sim_disk *disk;
    uint32_t renames;
    uint32_t manifests;
};

static bool ends_in(const char *path, const char *end)
{
    size_t size = strlen(path);

    return size >= strlen(end) && strcmp(path + size - strlen(end), end) == 0;
}

/* Whether the bytes of a file, and its size, are durable; not its names. */
static bool bytes_are_durable(struct sim_disk *disk, const char *path)
{
    struct sim_disk *copy = sim_disk_clone(disk);
    const struct sim_power_loss nothing = {.landing = SIM_PERSIST_NONE};
    struct sim_process *process = sim_process_create(copy);
    const struct wal__io *io = sim_process_io(process);
    char directory[256];
    uint8_t *before;
    uint8_t *after = NULL;
    size_t before_size;
    size_t after_size = 0;
    bool durable = false;
    int err = 0;

    sim_disk_read_file(copy, path, &before, &before_size);
    /* Makes the names durable, and then nothing else. */
    (void)snprintf(directory, sizeof(directory), "%s", path);
    do {
        *strrchr(directory, '/') = '\0';
        assert_ok(io->sync_directory(
            io->ctx, directory[0] == '\0' ? "/" : directory, &err));
    } while (directory[0] != '\0');
    sim_disk_power_loss(copy, &nothing, 1);
    if (sim_file_exists(copy, path)) {
        sim_disk_read_file(copy, path, &after, &after_size);
        durable = after_size == before_size &&
                  memcmp(before, after, before_size) == 0;
    }
    free(before);
    free(after);
    sim_disk_destroy(copy);
    return durable;
}

/* Whether a name survives a power loss at which nothing else lands. */
static bool survives(struct sim_disk *disk, const char *path)
{
    struct sim_disk *copy = sim_disk_clone(disk);
    bool exists;

    sim_disk_power_loss(
        copy, &(struct sim_power_loss){.landing = SIM_PERSIST_NONE}, 1);
    exists = sim_file_exists(copy, path);
    sim_disk_destroy(copy);
    return exists;
}

static void see_rename(void *arg, const struct sim_event *event)
{
    struct order *order = arg;

    if (event->call != SIM_RENAME || event->sys_errno != 0 ||
        event->to == NULL) {
        return;
    }
    if (ends_in(event->to, ".idx") || ends_in(event->to, "/catalogue") ||
        ends_in(event->to, "/MANIFEST")) {
        order->renames++;
        if (!bytes_are_durable(order->disk, event->to)) {
            fail_msg("%s has its name before its bytes are durable", event->to);
        }
    }
    if (ends_in(event->to, "/MANIFEST")) {
        static const char *const names[] = {"log", "index", "LOCK"};

        order->manifests++;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            char path[256];

            (void)snprintf(path, sizeof(path), WORKLOAD_ROOT "/%s", names[i]);
            if (!survives(order->disk, path)) {
                fail_msg("MANIFEST has its name before %s is durable", path);
            }
        }
    }
}

static struct order watch(struct workload *w)
{
    return (struct order){.disk = w->disk};
}

TEST(order__names_follow_bytes)
{
    struct workload *w =
        workload_create(&(struct workload_options){.seed = 1, .actors = 2});
    struct order order = watch(w);

    ledger_set_context("test_order");
    sim_disk_on_call(w->disk, see_rename, &order);
    assert_ok(workload_open(w, 0));
    assert_int_equal(order.manifests, 1);
    assert_ok(workload_add_session(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_ok(workload_close(w, 0));
    assert_true(order.renames >= 3); /* MANIFEST, an index, the catalogue */
    sim_disk_on_call(w->disk, NULL, NULL);
    workload_destroy(w);
}

/* Power is lost at the name of MANIFEST: whichever names land, the store is one
 * or its creation is repeated. */
TEST(order__creation_lost_at_the_manifest)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const struct sim_power_loss loss = {.landing = SIM_PERSIST_BY_CHANGE};
        struct workload *w = workload_create(
            &(struct workload_options){.seed = seed, .actors = 1});

        ledger_set_context("seed %llu", (unsigned long long)seed);
        (void)workload_start(w, 0);
        sim_process_add_fault(w->actors[0].process,
                              &(struct sim_fault){.call = SIM_RENAME,
                                                  .path = "MANIFEST",
                                                  .effect = SIM_KILL_AFTER});
        assert_true(open_until_killed(w));
        workload_free_call(w);
        workload_crash(w, &loss, seed);
        assert_ok(workload_open(w, 0));
        assert_ok(workload_add_session(w, 0));
        assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
        workload_crash(w, NULL, 0);
        (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
        workload_destroy(w);
    }
}

/* The index of the tail does not come back after an append that is durable. */
RECOVERY_TEST(order__index_of_the_tail_is_gone_for_good)
{
    struct workload *w = *state;

    assert_ok(workload_close(w, 0));
    crash(w);
    assert_true(survives(w->disk, INDEX));
    assert_ok(workload_open(w, 0));
    assert_true(survives(w->disk, INDEX));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_false(sim_file_exists(w->disk, INDEX));
    assert_false(survives(w->disk, INDEX));
    expect_all(w);
}
