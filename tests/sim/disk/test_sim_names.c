/*
 * test_sim_names.c - what a power loss and a failed directory sync do to the
 * names of the simulated disk.
 */
#include "tests/sim/disk/sim_fixture.h"

SIM_TEST(sim_names__new_name_waits_for_its_directory)
{
    struct machine *m = *state;
    struct wal__file *file;

    assert_ok(m->io->make_directory(m->io->ctx, "s", &m->error));
    file = make(m, "s/a");
    write_text(m, file, "hello", 0);
    assert_ok(sync_file(m, file));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", NULL);
    expect_after_power_loss(m, SIM_PERSIST_ALL, "s/a", "hello");
    /* The file's name is nothing without that of its directory. */
    sync_dir(m, "s");
    assert_false(sim_file_is_durable(m->disk, "s/a", 0, 5));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", NULL);
    sync_dir(m, "/");
    assert_true(sim_file_is_durable(m->disk, "s/a", 0, 5));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "s/a", "hello");
}

SIM_TEST(sim_names__lost_directory_loses_its_files)
{
    struct machine *m = *state;
    struct wal__file *file;

    assert_ok(m->io->make_directory(m->io->ctx, "s", &m->error));
    assert_ok(m->io->make_directory(m->io->ctx, "s/log", &m->error));
    file = make(m, "s/log/a");
    sync_dir(m, "s");
    sync_dir(m, "s/log");
    assert_ok(m->io->allocate(m->io->ctx, file, 8192, &m->error));
    assert_ok(sync_file(m, file));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, 1);

    assert_false(sim_file_exists(copy, "s"));
    assert_int_equal(sim_disk_used_bytes(copy), 0);
    sim_disk_destroy(copy);
}

SIM_TEST(sim_names__rename_leaves_the_old_or_the_new)
{
    struct machine *m = *state;
    int kept = 0;

    sim_disk_write_file(m->disk, "a", "old", 3);
    sim_disk_write_file(m->disk, "a.new", "new", 3);
    assert_ok(m->io->rename(m->io->ctx, "a.new", "a", &m->error));
    expect_content(m->disk, "a", "new");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = power_loss(m, SIM_PERSIST_ANY, seed);
        bool is_old = sim_file_exists(copy, "a.new");

        expect_content(copy, "a", is_old ? "old" : "new");
        kept += is_old;
        sim_disk_destroy(copy);
    }
    assert_in_range(kept, SEEDS / 10, SEEDS - SEEDS / 10);
    sync_dir(m, "/");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "new");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a.new", NULL);
}

SIM_TEST(sim_names__unlinked_file_may_reappear)
{
    struct machine *m = *state;

    sim_disk_write_file(m->disk, "a", "old", 3);
    assert_ok(m->io->unlink(m->io->ctx, "a", &m->error));
    close_file(m, make(m, "a"));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "old");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "");
    sync_dir(m, "/");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "");
}

SIM_TEST(sim_names__failed_directory_sync_loses_names)
{
    struct machine *m = *state;

    sim_disk_write_file(m->disk, "a", "old", 3);
    assert_ok(m->io->rename(m->io->ctx, "a", "b", &m->error));
    fail_next(m, SIM_SYNC_DIRECTORY, false);
    assert_int_equal(m->io->sync_directory(m->io->ctx, "/", &m->error),
                     WAL_EIO);
    sync_dir(m, "/");
    assert_false(sim_file_is_durable(m->disk, "b", 0, 3));
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "old");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "b", NULL);
}
