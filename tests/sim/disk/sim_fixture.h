/*
 * sim_fixture.h - what the tests of the simulated machine share: a disk with one process, and its
 * calls on one line.
 */
#ifndef AGENTWAL_TESTS_SIM_DISK_SIM_FIXTURE_H
#define AGENTWAL_TESTS_SIM_DISK_SIM_FIXTURE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

/* That a test tries. */
enum { SEEDS = 200 };

/* A disk, a process on it, and its table. */
struct machine {
    struct sim_disk *disk;
    struct sim_process *process;
    const struct wal__io *io;
    int error;
};

static inline int set_up(void **state)
{
    struct machine *m = calloc(1, sizeof(*m));

    WAL__ASSERT(m != NULL);
    m->disk = sim_disk_create(1);
    m->process = sim_process_create(m->disk);
    m->io = sim_process_io(m->process);
    *state = m;
    return 0;
}

static inline int tear_down(void **state)
{
    struct machine *m = *state;

    sim_disk_destroy(m->disk);
    free(m);
    return 0;
}

static inline struct wal__file *open_on(const struct wal__io *io, const char *path, int flags)
{
    struct wal__file *file = NULL;
    int error;

    assert_ok(io->open(io->ctx, path, flags, &file, &error));
    return file;
}

static inline struct wal__file *make(const struct machine *m, const char *path)
{
    return open_on(m->io, path, WAL__IO_WRITE | WAL__IO_CREATE);
}

static inline enum wal_status try_write(struct machine *m, struct wal__file *file, const char *text,
                                        uint64_t offset, size_t *put)
{
    char *data = strdup(text);
    struct iovec iov = {.iov_base = data, .iov_len = strlen(text)};

    WAL__ASSERT(data != NULL);

    enum wal_status status = m->io->pwritev(m->io->ctx, file, &iov, 1, offset, put, &m->error);

    free(data);
    return status;
}

static inline void write_text(struct machine *m, struct wal__file *file, const char *text,
                              uint64_t offset)
{
    size_t put = 0;

    assert_ok(try_write(m, file, text, offset, &put));
    assert_int_equal(put, strlen(text));
}

static inline enum wal_status sync_file(struct machine *m, struct wal__file *file)
{
    return m->io->sync(m->io->ctx, file, &m->error);
}

static inline void close_file(const struct machine *m, struct wal__file *file)
{
    m->io->close(m->io->ctx, file);
}

static inline void expect_content(struct sim_disk *disk, const char *path, const char *text)
{
    uint8_t *data;
    size_t size;

    sim_disk_read_file(disk, path, &data, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

static inline enum wal_status lock(struct machine *m, struct wal__file *file, uint64_t offset,
                                   enum wal__io_lock mode)
{
    return m->io->lock(m->io->ctx, file, offset, mode, &m->error);
}

/* A copy of the disk after a power loss. */
static inline struct sim_disk *power_loss(const struct machine *m, enum sim_persistence landing,
                                          uint64_t seed)
{
    struct sim_disk *copy = sim_disk_clone(m->disk);

    sim_disk_power_loss(copy, &(struct sim_power_loss){.landing = landing}, seed);
    return copy;
}

static inline void expect_after_power_loss(const struct machine *m, enum sim_persistence landing,
                                           const char *path, const char *text)
{
    struct sim_disk *copy = power_loss(m, landing, 1);

    if (text == NULL) {
        assert_false(sim_file_exists(copy, path));
    } else {
        expect_content(copy, path, text);
    }
    sim_disk_destroy(copy);
}

static inline void sync_dir(struct machine *m, const char *path)
{
    assert_ok(m->io->sync_directory(m->io->ctx, path, &m->error));
}

static inline void fail_next(const struct machine *m, enum sim_call call, bool partial)
{
    sim_process_add_fault(m->process,
                          &(struct sim_fault){.call = call, .sys_errno = EIO, .partial = partial});
}

#define SIM_TEST(name) TEST_WITH(name, set_up, tear_down)

#endif
