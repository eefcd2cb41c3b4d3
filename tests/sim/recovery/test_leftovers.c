/*
 * test_leftovers.c - segments that a failed attempt left, and that the chain has replaced since
 * (SPEC.md 3.5): walcheck notes them, and the next process that opens the store alone removes them.
 * Segments with records that the chain lacks stay.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

#define THIRD    WORKLOAD_ROOT "/log/0000000000000003.seg"
#define PACK_ONE WORKLOAD_ROOT "/pack/0000000000000001.seg"

static void add_fault(struct workload *w, enum sim_call call, const char *path, bool sticky)
{
    sim_process_add_fault(
        w->actors[0].process,
        &(struct sim_fault){.call = call, .path = path, .sticky = sticky, .sys_errno = EIO});
}

/* Healing makes segment 2 with two records and cannot sync its name; then it makes segment 3, and
 * cannot remove segment 2. */
static void leave_healed_segment(struct workload *w)
{
    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    add_fault(w, SIM_SYNC, ".seg", false);
    add_fault(w, SIM_SYNC_DIRECTORY, "/store/log", true);
    add_fault(w, SIM_UNLINK, ".seg", true);
    assert_int_equal(workload_append(w, 0, 1, WAL_DURABLE, 300), WAL_EPOISONED);
    sim_process_clear_faults(w->actors[0].process);
    w->actors[0].poisoned = false;
    add_fault(w, SIM_UNLINK, ".seg", true);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_true(sim_file_exists(w->disk, SECOND));
}

/* Runs walcheck on a copy of the store, and returns its exit code; `output` has what it prints. */
static int run_walcheck(struct workload *w, const char *option)
{
    char command[1024];
    int status;

    assert_int_equal(system("rm -rf copy out"), 0);
    assert_true(sim_disk_dump(w->disk, WORKLOAD_ROOT, "copy"));
    (void)snprintf(command, sizeof(command), "\"$WALBIN/walcheck\" %s copy >output 2>&1", option);
    status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool output_has(const char *text)
{
    static char output[16384];
    FILE *file = fopen("output", "r");
    size_t size;

    assert_non_null(file);
    size = fread(output, 1, sizeof(output) - 1, file);
    (void)fclose(file);
    output[size] = '\0';
    return strstr(output, text) != NULL;
}

static void expect_note(struct workload *w, const char *name)
{
    char line[128];

    assert_int_equal(run_walcheck(w, "--json"), 0);
    (void)snprintf(line, sizeof(line), "\"notes\":[{\"file\":\"%s\"", name);
    if (!output_has(line) || !output_has("\"damage\":[]")) {
        fail_msg("%s is not a note", name);
    }
    assert_int_equal(run_walcheck(w, "--salvage out"), 0);
    assert_false(output_has("lost:"));
}

/* What happens in log/ and pack/ after a segment is removed. */
struct removal {
    bool has_removed;
    bool is_synced;
};

static void see_removal(void *arg, const struct sim_event *event)
{
    struct removal *removal = arg;

    if (event->sys_errno != 0 || event->path == NULL) {
        return;
    }
    if (event->call == SIM_UNLINK && strstr(event->path, ".seg") != NULL &&
        strstr(event->path, ".new") == NULL) {
        removal->has_removed = true;
        removal->is_synced = false;
    } else if (event->call == SIM_SYNC_DIRECTORY) {
        removal->is_synced = true;
    } else if (event->call == SIM_PWRITEV || event->call == SIM_RENAME) {
        /* Nothing else is changed before the removal is durable. */
        assert_true(!removal->has_removed || removal->is_synced);
    }
}

static bool exists_after_power_loss(struct workload *w, const char *path)
{
    struct sim_disk *copy = sim_disk_clone(w->disk);
    bool exists;

    sim_disk_power_loss(copy, &(struct sim_power_loss){.landing = SIM_PERSIST_NONE}, 1);
    exists = sim_file_exists(copy, path);
    sim_disk_destroy(copy);
    return exists;
}

/* Opens alone, which removes `path` durably, and finds everything. */
static void expect_removed(struct workload *w, const char *path)
{
    struct removal removal = {false, false};

    crash(w);
    sim_disk_on_call(w->disk, see_removal, &removal);
    assert_ok(workload_open(w, 0));
    sim_disk_on_call(w->disk, NULL, NULL);
    assert_true(removal.has_removed && removal.is_synced);
    assert_false(sim_file_exists(w->disk, path));
    assert_false(exists_after_power_loss(w, path));
    assert_int_equal(run_walcheck(w, "--json"), 0);
    assert_true(output_has("\"notes\":[]"));
    expect_all(w);
}

RECOVERY_TEST(leftovers__healed_twice_is_a_note_and_removed)
{
    struct workload *w = *state;

    leave_healed_segment(w);
    expect_note(w, "log/0000000000000002.seg");
    expect_removed(w, SECOND);
}

/* A process that opens while another one runs removes nothing. */
RECOVERY_TEST(leftovers__stay_while_another_process_runs)
{
    struct workload *w = *state;

    leave_healed_segment(w);
    assert_ok(workload_open(w, 1));
    assert_true(sim_file_exists(w->disk, SECOND));
    assert_true(workload_check(w, 1));
}

/* Strict or read-only opening of the same store reads it, and a leftover that cannot be removed
 * harms nothing. */
RECOVERY_TEST(leftovers__that_cannot_be_removed_stay)
{
    struct workload *w = *state;
    const enum sim_call calls[] = {SIM_UNLINK, SIM_LIST, SIM_PREAD};

    leave_healed_segment(w);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        crash(w);
        (void)workload_start(w, 0);
        sim_process_add_fault(w->actors[0].process,
                              &(struct sim_fault){.call = calls[i],
                                                  .path = i == 1 ? "/log" : ".seg",
                                                  .after = i == 1 ? 1 : 0,
                                                  .sticky = i == 0,
                                                  .sys_errno = EIO});
        (void)open_with(w, 0);
        sim_process_clear_faults(w->actors[0].process);
        assert_true(i == 2 || sim_file_exists(w->disk, SECOND));
    }
    expect_removed(w, SECOND);
}

/* The first segment of the blob stream gets its name, and its directory cannot be synced. */
RECOVERY_TEST(leftovers__first_pack_segment_is_a_note_and_removed)
{
    static const uint8_t content[4000] = {1, 2, 3};
    struct workload *w = *state;
    struct wal_store *store = w->actors[0].store;
    uint8_t digest[WAL_DIGEST_SIZE];

    for (uint64_t after = 0; after < 3; after++) {
        sim_process_add_fault(w->actors[0].process, &(struct sim_fault){.call = SIM_SYNC_DIRECTORY,
                                                                        .path = "/store/pack",
                                                                        .after = after,
                                                                        .sticky = true,
                                                                        .sys_errno = EIO});
    }
    add_fault(w, SIM_UNLINK, ".seg", true);
    (void)!wal_blob_put(store, (struct wal_slice){content, sizeof(content)}, digest, NULL);
    sim_process_clear_faults(w->actors[0].process);
    add_fault(w, SIM_UNLINK, ".seg", true);
    assert_ok(wal_blob_put(store, (struct wal_slice){content, sizeof(content)}, digest, NULL));
    assert_int_equal(run_walcheck(w, "--json"), 0);
    assert_true(output_has("\"damage\":[]"));
    crash(w);
    assert_ok(workload_open(w, 0));
    assert_int_equal(run_walcheck(w, "--json"), 0);
    assert_true(output_has("\"notes\":[]"));
}

/* A record of it is changed: it is not what the chain has. */
RECOVERY_TEST(leftovers__with_another_record_stays)
{
    struct workload *w = *state;
    struct place entry;
    struct frames frames;
    uint8_t *frame;

    leave_healed_segment(w);
    entry = find(w, SECOND, WAL__FRAME_ENTRY, 0);
    read_frames(w, SECOND, &frames);
    frame = frames.bytes + entry.offset;
    frame[WAL__FRAME_SIZE + entry.frame.stored_size - 3] ^= 1;
    entry.frame.data_crc = wal__crc32(0, frame + WAL__FRAME_SIZE, entry.frame.stored_size);
    wal__frame_encode(&entry.frame, frames.salt, entry.offset, frame);
    overwrite(w, SECOND, entry.offset, frame, WAL__FRAME_SIZE + entry.frame.stored_size);
    free(frames.bytes);
    assert_int_equal(run_walcheck(w, ""), 1);
    assert_true(output_has("no later segment names it as its predecessor"));
    crash(w);
    assert_ok(workload_open(w, 0));
    assert_true(sim_file_exists(w->disk, SECOND));
    assert_true(workload_check(w, 0));
}

/* Power is lost after every call of an opening that removes one. */
RECOVERY_TEST(leftovers__removal_loses_nothing)
{
    struct workload *w = *state;
    uint64_t calls = 0;

    leave_healed_segment(w);
    crash(w);
    for (uint64_t after = 0; after <= calls; after++) {
        struct workload *copy = workload_clone(w);

        ledger_set_context("killed at call %llu", (unsigned long long)after);
        (void)workload_start(copy, 0);
        sim_process_add_fault(
            copy->actors[0].process,
            &(struct sim_fault){.call = SIM_ANY, .after = after, .effect = SIM_KILL_AFTER});
        if (open_until_killed(copy)) {
            calls = after + 1;
        } else {
            assert_false(sim_file_exists(copy->disk, SECOND));
        }
        workload_free_call(copy);
        workload_crash(copy, &(struct sim_power_loss){.landing = SIM_PERSIST_ANY}, after);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KILL);
        (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
        assert_false(sim_file_exists(copy->disk, SECOND));
        workload_destroy(copy);
    }
    assert_true(calls > 10);
}

/* --- order --------------------------------------------------------------- */

/*
 * The order of writes, syncs and names of files that are not segments (SPEC.md
 * 3.6, 3.7): a file has its name only when its bytes are durable, MANIFEST
 * after everything that it refers to, and an index of the tail is gone for
 * good before the first append.
 */

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
        assert_ok(io->sync_directory(io->ctx, directory[0] == '\0' ? "/" : directory, &err));
    } while (directory[0] != '\0');
    sim_disk_power_loss(copy, &nothing, 1);
    if (sim_file_exists(copy, path)) {
        sim_disk_read_file(copy, path, &after, &after_size);
        durable = after_size == before_size && memcmp(before, after, before_size) == 0;
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

    sim_disk_power_loss(copy, &(struct sim_power_loss){.landing = SIM_PERSIST_NONE}, 1);
    exists = sim_file_exists(copy, path);
    sim_disk_destroy(copy);
    return exists;
}

static void see_rename(void *arg, const struct sim_event *event)
{
    struct order *order = arg;

    if (event->call != SIM_RENAME || event->sys_errno != 0 || event->to == NULL) {
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
    struct workload *w = workload_create(&(struct workload_options){.seed = 1, .actors = 2});
    struct order order = watch(w);

    ledger_set_context("test_leftovers");
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

/* Power is lost at the name of MANIFEST: whichever names land, the store is one or its creation is
 * repeated. */
TEST(order__creation_lost_at_the_manifest)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        const struct sim_power_loss loss = {.landing = SIM_PERSIST_BY_CHANGE};
        struct workload *w = workload_create(&(struct workload_options){.seed = seed, .actors = 1});

        ledger_set_context("seed %llu", (unsigned long long)seed);
        (void)workload_start(w, 0);
        sim_process_add_fault(
            w->actors[0].process,
            &(struct sim_fault){.call = SIM_RENAME, .path = "MANIFEST", .effect = SIM_KILL_AFTER});
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
