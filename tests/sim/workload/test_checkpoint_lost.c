/*
 * test_checkpoint_lost.c - a loss of power that takes bytes of a file which a checkpoint has, and
 * leaves its size and times as they were: the next checkpoint is of what is there (SPEC.md 5.13,
 * racy times).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "engine/base/heap.h"
#include "engine/session/store.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/tree.h"

enum { SIZE = 5000, SEEDS = 64 };

static char old_bytes[SIZE + 1];
static char new_bytes[SIZE + 1];

struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    struct wal_store *store;
    struct wal_session *session;
};

static struct wal_slice text(const char *from)
{
    return (struct wal_slice){from, strlen(from)};
}

static struct machine start(struct sim_disk *disk, bool creates)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    const struct wal_session_options session = {
        .struct_size = sizeof(session), .id = text("s"), .cwd = text("/work")};
    struct machine machine = {.disk = disk, .process = sim_process_create(disk)};

    assert_ok(wal__store_open("/store", &options, &wal__heap_libc, sim_process_io(machine.process),
                              &machine.store, NULL));
    assert_ok(creates ? wal_session_create(machine.store, &session, &machine.session, NULL)
                      : wal_session_open(machine.store, text("s"), &machine.session, NULL));
    return machine;
}

static void stop(struct machine *machine)
{
    wal_session_close(machine->session);
    assert_ok(wal_close(machine->store, NULL));
    sim_process_destroy(machine->process);
}

/* Overwrites the content of "a" without a sync. */
static void write_over(struct machine *machine)
{
    const struct wal__io *io = sim_process_io(machine->process);
    const struct iovec iov = {new_bytes, SIZE};
    struct wal__file *file;
    int error = 0;

    assert_ok(io->open(io->ctx, "/work/a", WAL__IO_WRITE, &file, &error));
    assert_ok(wal__io_write_full(io, file, &iov, 1, 0, &error));
    io->close(io->ctx, file);
}

static void checkpoint(struct machine *machine, const char *id)
{
    const struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = text(id)};
    const struct wal_slice path = text("a");

    /* Times tell what changes later. */
    sim_disk_advance(machine->disk, 100000000);
    assert_ok(wal_checkpoint_create(machine->session, &path, 1, &options, NULL, NULL));
}

/* The content of "a" as the checkpoint has it. */
static void read_back(struct machine *machine, const char *id, char *out)
{
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_file_cursor *opened;
    struct wal_blob *blob;
    uint64_t got = 0;

    assert_ok(wal_file_cursor_open(machine->session, text(id), &opened, NULL));
    assert_ok(wal_file_cursor_next(opened, &file, NULL));
    assert_ok(wal_blob_open(machine->store, file.digest, &blob, NULL));
    assert_ok(wal_blob_read(blob, 0, out, SIZE, &got, NULL));
    out[got] = '\0';
    wal_blob_close(blob);
    wal_file_cursor_close(opened);
}

static bool is_same_stat(const struct wal__worktree_stat *a, const struct wal__worktree_stat *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->inode == b->inode;
}

/* Whether bytes were lost while the times remained. */
static bool lose_bytes(struct sim_disk *disk, uint64_t seed)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};
    struct machine machine = start(disk, false);
    char content[SIZE + 1];
    const struct sim_tree_entry entry = {"a", WAL__WORKTREE_REGULAR, 0644, content};
    struct wal__worktree_stat before;
    struct wal__worktree_stat after;
    char why[256] = "";

    /* Not at a whole second: such times would not be trusted anyhow. */
    sim_disk_advance(disk, 1234000000);
    write_over(&machine);
    checkpoint(&machine, "one");
    stop(&machine);
    assert_true(sim_tree_stat(disk, "/work/a", &before));
    sim_disk_power_loss(disk, &loss, seed);
    assert_true(sim_tree_stat(disk, "/work/a", &after));

    machine = start(disk, false);
    checkpoint(&machine, "two");
    read_back(&machine, "one", content);
    assert_string_equal(content, new_bytes);
    read_back(&machine, "two", content);
    stop(&machine);
    if (!sim_tree_equals(disk, "/work", &entry, 1, why, sizeof(why))) {
        fail_msg("seed %d: %s", (int)seed, why);
    }
    return is_same_stat(&before, &after) && strcmp(content, new_bytes) != 0;
}

TEST(checkpoint_lost__bytes_lost_with_times_unchanged)
{
    const struct sim_tree_entry entry = {"a", WAL__WORKTREE_REGULAR, 0644, old_bytes};
    struct sim_disk *base = sim_disk_create(7);
    struct machine machine;
    uint32_t lost = 0;

    memset(old_bytes, 'o', SIZE);
    memset(new_bytes, 'n', SIZE);
    sim_tree_make(base, "/work", &entry, 1);
    machine = start(base, true);
    stop(&machine);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = sim_disk_clone(base);

        lost += lose_bytes(copy, seed);
        sim_disk_destroy(copy);
    }
    assert_true(lost > 0);
    sim_disk_destroy(base);
}
