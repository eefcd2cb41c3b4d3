/*
 * test_sim_model.c - random calls on the simulated disk, checked against a naive model of
 * durability and against the operating system; and the speed that exhaustive crash tests rely on.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/sim/disk/sim_fixture.h"

enum { FILE_SIZE = 16384, STEPS = 60, ROUNDS = 300, PENDING_MAX = STEPS };

static uint32_t draw(uint64_t *random, uint32_t count)
{
    return (uint32_t)rng_below(random, count);
}

/* ------------------------------------------------- durability, naive --- */

struct pending {
    uint8_t byte;
    size_t offset;
    size_t size;
};

/* A file of FILE_SIZE bytes as a whole copy of each of its lives. */
struct model {
    uint8_t seen[FILE_SIZE];
    uint8_t durable[FILE_SIZE];
    struct pending pending[PENDING_MAX];
    size_t count;
};

static void apply_pending(const struct model *model, uint8_t *content)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct pending *write = &model->pending[i];

        memset(content + write->offset, write->byte, write->size);
    }
}

static void model_write(struct machine *m, struct wal__file *file, struct model *model,
                        uint64_t *random)
{
    static uint8_t data[4096];
    struct pending *write = &model->pending[model->count++];
    size_t put;

    write->byte = (uint8_t)draw(random, 4); /* 0 too: zeros are special */
    write->size = 1 + draw(random, sizeof(data));
    write->offset = draw(random, (uint32_t)(FILE_SIZE - write->size));
    memset(data, write->byte, write->size);
    memset(model->seen + write->offset, write->byte, write->size);

    struct iovec iov = {.iov_base = data, .iov_len = write->size};

    assert_ok(m->io->pwritev(m->io->ctx, file, &iov, 1, write->offset, &put, &m->error));
    assert_int_equal(put, write->size);
}

static void model_step(struct machine *m, struct wal__file *file, struct model *model,
                       uint64_t *random)
{
    switch (draw(random, 8)) {
    case 0:
        assert_ok(sync_file(m, file));
        apply_pending(model, model->durable);
        model->count = 0;
        break;
    case 1:
        sim_process_clear_faults(m->process);
        sim_process_add_fault(m->process, &(struct sim_fault){.call = SIM_SYNC, .sys_errno = EIO});
        assert_int_equal(sync_file(m, file), WAL_EIO);
        model->count = 0;
        break;
    default:
        model_write(m, file, model, random);
        break;
    }
}

static uint8_t *content_after(const struct machine *m, enum sim_persistence landing, uint64_t seed)
{
    struct sim_disk *copy = sim_disk_clone(m->disk);
    uint8_t *data;
    size_t size;

    sim_disk_power_loss(copy, &(struct sim_power_loss){.landing = landing}, seed);
    sim_disk_read_file(copy, "a", &data, &size);
    assert_int_equal(size, FILE_SIZE);
    sim_disk_destroy(copy);
    return data;
}

static void expect_bytes(uint8_t *data, const uint8_t *expected)
{
    assert_memory_equal(data, expected, FILE_SIZE);
    free(data);
}

/* Whether a byte is the durable one or comes from a pending write. */
static bool is_possible(const struct model *model, size_t at, uint8_t byte)
{
    bool possible = model->durable[at] == byte;

    for (size_t i = 0; i < model->count; i++) {
        const struct pending *write = &model->pending[i];

        possible = possible ||
                   (write->byte == byte && at >= write->offset && at - write->offset < write->size);
    }
    return possible;
}

static void check_model(const struct machine *m, const struct model *model, uint64_t seed)
{
    static uint8_t all[FILE_SIZE];
    uint8_t *data;
    size_t size;

    sim_disk_read_file(m->disk, "a", &data, &size);
    expect_bytes(data, model->seen);
    expect_bytes(content_after(m, SIM_PERSIST_NONE, seed), model->durable);
    memcpy(all, model->durable, sizeof(all));
    apply_pending(model, all);
    expect_bytes(content_after(m, SIM_PERSIST_ALL, seed), all);
    data = content_after(m, SIM_PERSIST_ANY, seed);
    for (size_t at = 0; at < FILE_SIZE; at++) {
        assert_true(is_possible(model, at, data[at]));
    }
    free(data);
}

SIM_TEST(sim_model__agrees_with_whole_copies)
{
    struct machine *m = *state;
    uint64_t seed = rng_seed(1);
    uint64_t random = seed;
    static struct model model;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        memset(&model, 0, sizeof(model));
        sim_disk_write_file(m->disk, "a", model.durable, FILE_SIZE);

        struct wal__file *file = open_on(m->io, "a", WAL__IO_WRITE);

        for (uint32_t i = draw(&random, STEPS); i > 0; i--) {
            model_step(m, file, &model, &random);
        }
        check_model(m, &model, seed + round);
        close_file(m, file);
    }
}

/* -------------------------------------------- the operating system's --- */

static const char *const paths[] = {"d", "d/a", "d/b", "c", "x/y", "c/z"};

enum { PATHS = sizeof(paths) / sizeof(paths[0]), HANDLES = 4 };

/* The same calls on one table. */
struct side {
    const struct wal__io *io;
    struct wal__file *files[HANDLES];
    bool writable[HANDLES];
    uint8_t data[512];
    size_t count;
    struct wal__io_stat stat;
    int names;
};

static enum wal_status count_name(void *arg, const char *name)
{
    (void)name;
    (*(int *)arg)++;
    return WAL_OK;
}

static enum wal_status side_open(struct side *side, const char *path, int flags, size_t slot,
                                 int *error)
{
    if (side->files[slot] != NULL) {
        side->io->close(side->io->ctx, side->files[slot]);
        side->files[slot] = NULL;
    }
    side->writable[slot] = (flags & WAL__IO_WRITE) != 0;
    return side->io->open(side->io->ctx, path, flags, &side->files[slot], error);
}

static enum wal_status side_file_call(struct side *side, uint32_t call, size_t slot,
                                      uint32_t number, int *error)
{
    const struct wal__io *io = side->io;
    struct wal__file *file = side->files[slot];
    struct iovec iov = {.iov_base = (char[]){"0123456789"}, .iov_len = number % 11};

    switch (call) {
    case 0:
        return io->pread(io->ctx, file, side->data, sizeof(side->data), number, &side->count,
                         error);
    case 1:
        return io->pwritev(io->ctx, file, &iov, 1, number, &side->count, error);
    case 2:
        return io->allocate(io->ctx, file, (uint64_t)number * 4, error);
    case 3:
        return io->stat(io->ctx, file, &side->stat, error);
    case 4:
        return io->sync(io->ctx, file, error);
    default:
        return io->lock(io->ctx, file, number % 2, (enum wal__io_lock)(number / 2 % 3), error);
    }
}

static enum wal_status side_name_call(struct side *side, uint32_t call, const char *path,
                                      const char *to, int *error)
{
    const struct wal__io *io = side->io;

    switch (call) {
    case 0:
        return io->path_stat(io->ctx, path, &side->stat, error);
    case 1:
        return io->make_directory(io->ctx, path, error);
    case 2:
        return io->rename(io->ctx, path, to, error);
    case 3:
        return io->unlink(io->ctx, path, error);
    case 4:
        return io->sync_directory(io->ctx, path, error);
    default:
        side->names = 0;
        return io->list(io->ctx, path, count_name, &side->names, error);
    }
}

static enum wal_status side_step(struct side *side, uint64_t random, int *error)
{
    const char *path = paths[draw(&random, PATHS)];
    const char *to = paths[draw(&random, PATHS)];
    size_t slot = draw(&random, HANDLES);
    uint32_t number = draw(&random, 512);
    uint32_t call = draw(&random, 14);

    memset(side->data, 0, sizeof(side->data));
    side->count = 0;
    memset(&side->stat, 0, sizeof(side->stat));
    if (call >= 12 || (call < 6 && side->files[slot] == NULL)) {
        return side_open(side, path, (int)(number % 16), slot, error);
    }
    return call < 6 ? side_file_call(side, call, slot, number, error)
                    : side_name_call(side, call - 6, path, to, error);
}

static void close_side(struct side *side)
{
    for (size_t i = 0; i < HANDLES; i++) {
        if (side->files[i] != NULL) {
            side->io->close(side->io->ctx, side->files[i]);
        }
    }
}

static void step_both(struct side *sim, struct side *posix, uint64_t random, int step)
{
    int sim_error = 0;
    int error = 0;
    enum wal_status left = side_step(sim, random, &sim_error);
    enum wal_status right = side_step(posix, random, &error);

    if (left != right || (left != WAL_OK && sim_error != error)) {
        fail_msg("step %d: %d (%s), the system %d (%s)", step, left, strerror(sim_error), right,
                 strerror(error));
    }
    if (!sim->stat.is_directory) {
        assert_int_equal(sim->stat.size, posix->stat.size);
    }
    assert_int_equal(sim->count, posix->count);
    assert_memory_equal(sim->data, posix->data, sizeof(sim->data));
    assert_int_equal(sim->names, posix->names);
    assert_int_equal(sim->stat.is_directory, posix->stat.is_directory);
}

SIM_TEST(sim_model__agrees_with_the_operating_system)
{
    struct machine *m = *state;
    uint64_t random = rng_seed(1);
    char place[] = "model-XXXXXX";
    struct side sim = {.io = m->io};
    struct side posix = {.io = &wal__io_posix};

    assert_non_null(mkdtemp(place));
    assert_int_equal(chdir(place), 0);
    for (int step = 0; step < 20000; step++) {
        (void)draw(&random, 1);
        step_both(&sim, &posix, random, step);
    }
    close_side(&sim);
    close_side(&posix);
    assert_int_equal(chdir(".."), 0);
}

/* ------------------------------------------------------------- speed --- */

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

SIM_TEST(sim_model__many_losses_from_one_state_are_cheap)
{
    struct machine *m = *state;
    const int losses = getenv("AGENTWAL_LONG") != NULL ? 100000 : 1000;
    char path[16];

    for (int i = 0; i < 6; i++) {
        (void)snprintf(path, sizeof(path), "%d.seg", i);

        struct wal__file *file = make(m, path);

        assert_ok(m->io->allocate(m->io->ctx, file, 64 << 20, &m->error));
        for (uint64_t at = 0; at < 8; at++) {
            write_text(m, file, "a few bytes", at * 1000);
            write_text(m, file, "at the end", (64 << 20) - 1000 * (at + 1));
        }
        close_file(m, file);
    }

    double start = seconds();

    for (int i = 0; i < losses; i++) {
        struct sim_disk *copy = sim_disk_clone(m->disk);

        sim_disk_power_loss(copy, &(struct sim_power_loss){.garbage = true}, (uint64_t)i);
        sim_disk_destroy(copy);
    }

    double each = (seconds() - start) / losses;

    print_message("%.1f us a loss\n", each * 1e6);
    /* A copy of whole files would take a hundred times as long. */
    assert_true(each < 0.005);
}
