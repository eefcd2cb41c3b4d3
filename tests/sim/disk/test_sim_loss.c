/*
 * test_sim_loss.c - what a power loss and a failed sync do to the bytes of the simulated disk.
 * Seeds are counted from 0, so each run is the same.
 */
#include <errno.h>
#include <stdio.h>

#include "tests/sim/disk/sim_fixture.h"

/* A durable file of sectors of `byte`. */
static struct wal__file *make_sectors(struct machine *m, const char *path, char byte,
                                      size_t sectors)
{
    size_t size = sectors * SIM_SECTOR_SIZE;
    char *data = malloc(size + 1);

    WAL__ASSERT(data != NULL);
    memset(data, byte, size);
    sim_disk_write_file(m->disk, path, data, size);
    free(data);
    return open_on(m->io, path, WAL__IO_WRITE);
}

static void write_bytes(struct machine *m, struct wal__file *file, char byte, uint64_t offset,
                        size_t size)
{
    char data[8192];
    struct iovec iov = {.iov_base = data, .iov_len = size};
    size_t put = 0;

    WAL__ASSERT(size <= sizeof(data));
    memset(data, byte, size);
    assert_ok(m->io->pwritev(m->io->ctx, file, &iov, 1, offset, &put, &m->error));
    assert_int_equal(put, size);
}

/* Which letters the file of whole sectors holds, a sector each; '?' where a sector is mixed. */
static void letters_of(struct sim_disk *disk, const char *path, char *letters)
{
    uint8_t *data;
    size_t size;

    sim_disk_read_file(disk, path, &data, &size);
    assert_int_equal(size % SIM_SECTOR_SIZE, 0);
    for (size_t i = 0; i < size; i += SIM_SECTOR_SIZE) {
        bool is_whole = memcmp(data + i, data + i + 1, SIM_SECTOR_SIZE - 1) == 0;

        *letters = '?';
        if (is_whole) {
            memcpy(letters, data + i, 1);
        }
        letters++;
    }
    *letters = '\0';
    free(data);
}

/* ------------------------------------------------------------- bytes --- */

SIM_TEST(sim_loss__closing_syncs_nothing)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 1);

    write_text(m, file, "new", 0);
    close_file(m, file);
    assert_false(sim_file_is_durable(m->disk, "a", 0, 3));
    assert_true(sim_file_is_durable(m->disk, "a", 3, 509));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, 1);
    uint8_t *data;
    size_t size;

    sim_disk_read_file(copy, "a", &data, &size);
    assert_memory_equal(data, "oooo", 4);
    free(data);
    sim_disk_destroy(copy);
}

SIM_TEST(sim_loss__synced_bytes_survive_every_landing)
{
    struct machine *m = *state;
    struct wal__file *file = make(m, "a");

    sync_dir(m, "/");
    write_text(m, file, "hello", 0);
    assert_false(sim_file_is_durable(m->disk, "a", 0, 5));
    assert_ok(sync_file(m, file));
    assert_true(sim_file_is_durable(m->disk, "a", 0, 5));
    for (int landing = 0; landing < SIM_PERSISTENCES; landing++) {
        expect_after_power_loss(m, (enum sim_persistence)landing, "a", "hello");
    }
}

SIM_TEST(sim_loss__size_is_lost_with_the_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 0);

    write_text(m, file, "hello", 0);
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "hello");
    assert_ok(m->io->allocate(m->io->ctx, file, 1 << 20, &m->error));
    assert_false(sim_file_is_durable(m->disk, "a", 5000, 1));
    assert_true(sim_file_is_durable(m->disk, "a", 0, 0));
    assert_ok(sync_file(m, file));
    assert_true(sim_file_is_durable(m->disk, "a", 5000, 1));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, 1);

    assert_int_equal(sim_file_size(copy, "a"), 1 << 20);
    sim_disk_destroy(copy);
}

SIM_TEST(sim_loss__truncation_waits_for_a_sync)
{
    struct machine *m = *state;
    struct wal__file *file;

    sim_disk_write_file(m->disk, "a", "old content", 11);
    file = open_on(m->io, "a", WAL__IO_WRITE | WAL__IO_TRUNCATE);
    write_text(m, file, "new", 0);
    expect_content(m->disk, "a", "new");
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "old content");
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "new");
    assert_ok(sync_file(m, file));
    expect_after_power_loss(m, SIM_PERSIST_NONE, "a", "new");
}

SIM_TEST(sim_loss__truncated_file_is_old_or_new)
{
    struct machine *m = *state;
    int kept = 0;

    sim_disk_write_file(m->disk, "a", "old content", 11);
    write_text(m, open_on(m->io, "a", WAL__IO_WRITE | WAL__IO_TRUNCATE), "new", 0);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = power_loss(m, SIM_PERSIST_ANY, seed);

        if (sim_file_size(copy, "a") == 11) {
            expect_content(copy, "a", "old content");
            kept++;
        }
        sim_disk_destroy(copy);
    }
    assert_in_range(kept, SEEDS / 10, SEEDS - SEEDS / 10);
}

SIM_TEST(sim_loss__bytes_past_a_lost_size_are_gone)
{
    struct machine *m = *state;

    write_bytes(m, make_sectors(m, "a", 'o', 1), 'n', 512, 4096);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = power_loss(m, SIM_PERSIST_BY_CHANGE, seed);
        const struct wal__io *io = sim_process_io(sim_process_create(copy));
        bool is_long = sim_file_size(copy, "a") > 512;
        struct wal__file *file = open_on(io, "a", WAL__IO_WRITE);
        char letters[16];

        assert_ok(io->allocate(io->ctx, file, 1024, &m->error));
        letters_of(copy, "a", letters);
        assert_true(is_long || letters[1] == '\0');
        sim_disk_destroy(copy);
    }
}

SIM_TEST(sim_loss__later_of_two_landed_writes_wins)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 0);

    write_text(m, file, "firstfirst", 0);
    write_text(m, file, "second", 2);
    expect_after_power_loss(m, SIM_PERSIST_ALL, "a", "fisecondst");
}

/* Four writes of two sectors over old ones; what the seeds make of them. */
struct tally {
    int different;  /* from what the seed before gave */
    int gaps;       /* a later write landed, an earlier did not */
    int torn;       /* one sector of a write landed */
    int mixed;      /* garbage */
    int lost_early; /* an earlier write landed, a later did not */
};

static void count_letters(const char *letters, struct tally *tally)
{
    bool is_gone = false;
    bool is_there = false;

    for (size_t i = 0; i < 4; i++) {
        bool first = letters[2 * i] == 'n';
        bool second = letters[2 * i + 1] == 'n';

        tally->torn += first != second;
        tally->gaps += is_gone && first && second;
        tally->lost_early += is_there && !first && !second;
        is_gone = is_gone || (!first && !second);
        is_there = is_there || (first && second);
    }
    tally->mixed += strchr(letters, '?') != NULL;
}

static struct tally try_seeds(struct machine *m, const struct sim_power_loss *loss)
{
    struct wal__file *file = make_sectors(m, "a", 'o', 8);
    struct tally tally = {0};
    char last[16] = "";

    for (uint64_t i = 0; i < 4; i++) {
        write_bytes(m, file, 'n', i * 1024, 1024);
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = sim_disk_clone(m->disk);
        char letters[16];

        sim_disk_power_loss(copy, loss, seed);
        letters_of(copy, "a", letters);
        count_letters(letters, &tally);
        tally.different += strcmp(letters, last) != 0;
        memcpy(last, letters, sizeof(last));
        sim_disk_destroy(copy);
    }
    return tally;
}

SIM_TEST(sim_loss__by_change_keeps_writes_whole)
{
    struct tally tally =
        try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_BY_CHANGE});

    assert_int_equal(tally.torn, 0);
    assert_int_equal(tally.mixed, 0);
    assert_true(tally.gaps > SEEDS / 20);
    assert_true(tally.lost_early > SEEDS / 20);
    assert_true(tally.different > SEEDS / 4);
}

SIM_TEST(sim_loss__by_sector_tears_writes)
{
    struct tally tally =
        try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_BY_SECTOR});

    assert_true(tally.torn > SEEDS / 4);
    assert_int_equal(tally.mixed, 0);
}

SIM_TEST(sim_loss__prefix_loses_the_later_writes)
{
    struct tally tally = try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_PREFIX});

    assert_int_equal(tally.gaps, 0);
    assert_true(tally.lost_early > SEEDS / 10);
    assert_true(tally.torn > 0);
}

SIM_TEST(sim_loss__suffix_loses_the_earlier_writes)
{
    struct tally tally = try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_SUFFIX});

    assert_int_equal(tally.lost_early, 0);
    assert_true(tally.gaps > SEEDS / 10);
    assert_true(tally.torn > 0);
}

SIM_TEST(sim_loss__any_covers_every_landing)
{
    struct tally tally = try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_ANY});

    assert_true(tally.gaps > 0 && tally.lost_early > 0 && tally.torn > 0);
}

SIM_TEST(sim_loss__unwritten_sectors_contain_garbage)
{
    struct tally tally =
        try_seeds(*state, &(struct sim_power_loss){.landing = SIM_PERSIST_NONE, .garbage = true});

    assert_true(tally.mixed > SEEDS / 2);
}

/* How many of the seeds change the durable bytes around a small write. */
static int count_damaged_neighbours(struct machine *m, bool unsafe)
{
    struct wal__file *file = make_sectors(m, "a", 'o', 4);
    int harmed = 0;

    write_bytes(m, file, 'n', 1100, 100);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = sim_disk_clone(m->disk);
        uint8_t *data;
        size_t size;

        sim_disk_power_loss(copy,
                            &(struct sim_power_loss){.landing = SIM_PERSIST_ANY,
                                                     .garbage = true,
                                                     .unsafe_overwrite = unsafe},
                            seed);
        sim_disk_read_file(copy, "a", &data, &size);
        assert_int_equal(size, 2048);
        /* Other sectors are never harmed. */
        assert_true(data[1023] == 'o' && data[1536] == 'o');
        harmed += data[1024] != 'o' || data[1099] != 'o' || data[1200] != 'o';
        free(data);
        sim_disk_destroy(copy);
    }
    return harmed;
}

SIM_TEST(sim_loss__other_bytes_of_a_sector_are_unchanged)
{
    assert_int_equal(count_damaged_neighbours(*state, false), 0);
}

SIM_TEST(sim_loss__unsafe_overwrite_damages_the_sector)
{
    assert_true(count_damaged_neighbours(*state, true) > SEEDS / 20);
}

SIM_TEST(sim_loss__same_seed_gives_the_same_disk)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 8);
    const struct sim_power_loss loss = {.garbage = true};
    uint8_t *data[2];
    size_t size[2];

    write_bytes(m, file, 'n', 100, 3000);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *one = sim_disk_clone(m->disk);
        struct sim_disk *two = sim_disk_clone(one);

        sim_disk_power_loss(one, &loss, seed);
        sim_disk_power_loss(two, &loss, seed);
        sim_disk_read_file(one, "a", &data[0], &size[0]);
        sim_disk_read_file(two, "a", &data[1], &size[1]);
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
        free(data[0]);
        free(data[1]);
        sim_disk_destroy(one);
        sim_disk_destroy(two);
    }
}

/* -------------------------------------------------------------- maps --- */

SIM_TEST(sim_loss__stores_through_maps_wait_for_a_sync)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "LOCK", 'o', 8);
    void *at = NULL;
    char letters[16];

    assert_ok(m->io->map(m->io->ctx, file, 4096, true, &at, &m->error));
    memset(at, 's', 512);
    assert_ok(sync_file(m, file));
    memset((char *)at + 512, 'm', 512);
    write_bytes(m, file, 'w', 1024, 512);
    assert_false(sim_file_is_durable(m->disk, "LOCK", 512, 1));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, 1);

    letters_of(copy, "LOCK", letters);
    assert_string_equal(letters, "sooooooo");
    sim_disk_destroy(copy);
    copy = power_loss(m, SIM_PERSIST_ALL, 1);
    letters_of(copy, "LOCK", letters);
    assert_string_equal(letters, "smwooooo");
    sim_disk_destroy(copy);
}

/* The disk itself, of which nobody has made a copy since the store. */
SIM_TEST(sim_loss__stores_through_maps_are_lost_in_place)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "LOCK", 'o', 8);
    void *at = NULL;
    char letters[16];

    assert_ok(sync_file(m, file));
    sync_dir(m, "/");
    assert_ok(m->io->map(m->io->ctx, file, 4096, true, &at, &m->error));
    memset(at, 'm', 1024);
    sim_disk_power_loss(m->disk, &(struct sim_power_loss){.landing = SIM_PERSIST_NONE}, 1);
    letters_of(m->disk, "LOCK", letters);
    assert_string_equal(letters, "oooooooo");
}

/* ------------------------------------------------------ failed syncs --- */

SIM_TEST(sim_loss__failed_sync_loses_bytes_for_good)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 4);
    char letters[16];

    write_bytes(m, file, 'x', 0, 1024);
    fail_next(m, SIM_SYNC, false);
    assert_int_equal(sync_file(m, file), WAL_EIO);
    write_bytes(m, file, 'y', 512, 1024);
    assert_ok(sync_file(m, file));
    letters_of(m->disk, "a", letters);
    assert_string_equal(letters, "xyyo");
    assert_false(sim_file_is_durable(m->disk, "a", 0, 512));
    assert_true(sim_file_is_durable(m->disk, "a", 512, 1536));

    struct sim_disk *copy = power_loss(m, SIM_PERSIST_ALL, 1);

    letters_of(copy, "a", letters);
    assert_string_equal(letters, "oyyo");
    sim_disk_destroy(copy);
    /* Written again, they are as good as new. */
    write_bytes(m, file, 'x', 0, 512);
    assert_ok(sync_file(m, file));
    assert_true(sim_file_is_durable(m->disk, "a", 0, 2048));
    copy = power_loss(m, SIM_PERSIST_NONE, 1);
    letters_of(copy, "a", letters);
    assert_string_equal(letters, "xyyo");
    sim_disk_destroy(copy);
}

SIM_TEST(sim_loss__failed_sync_may_write_some_bytes)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 8);
    char letters[16];
    int torn = 0;

    write_bytes(m, file, 'x', 0, 4096);
    fail_next(m, SIM_SYNC, true);
    assert_int_equal(sync_file(m, file), WAL_EIO);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = power_loss(m, SIM_PERSIST_NONE, seed);

        letters_of(copy, "a", letters);
        torn += strchr(letters, 'x') != NULL && strchr(letters, 'o') != NULL;
        sim_disk_destroy(copy);
    }
    assert_true(torn > SEEDS / 4);
    assert_false(sim_file_is_durable(m->disk, "a", 0, 1));
}

/* -------------------------------------------------------------- boot --- */

SIM_TEST(sim_loss__changes_the_boot_id_and_kills_all)
{
    struct machine *m = *state;
    struct wal__file *file = make_sectors(m, "a", 'o', 1);
    uint8_t before[16];
    uint8_t after[16];
    int64_t now = m->io->now_ms(m->io->ctx);

    m->io->boot_id(m->io->ctx, before);
    assert_ok(m->io->lock(m->io->ctx, file, 0, WAL__IO_LOCK_EXCLUSIVE, &m->error));
    sim_disk_power_loss(m->disk, &(struct sim_power_loss){0}, 7);
    assert_true(sim_process_is_dead(m->process));

    struct sim_process *process = sim_process_create(m->disk);
    const struct wal__io *io = sim_process_io(process);

    io->boot_id(io->ctx, after);
    assert_memory_not_equal(before, after, 16);
    assert_true(io->now_ms(io->ctx) > now);
    file = open_on(io, "a", WAL__IO_WRITE);
    assert_ok(io->lock(io->ctx, file, 0, WAL__IO_LOCK_EXCLUSIVE, &m->error));
    assert_true(sim_file_is_durable(m->disk, "a", 0, 512));
}
