/*
 * machine.h - what the tests of the simulated machine share: a disk with one
 * process, and its calls on one line.
 */
#ifndef WAL_TESTS_SIM_MACHINE_H
#define WAL_TESTS_SIM_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/assert.h"
#include "tests/sim/sim_io.h"

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

static inline struct wal__file *open_on(const struct wal__io *io,
                                        const char *path, int flags)
{
    struct wal__file *file = NULL;
    int error;

    assert_int_equal(io->open(io->ctx, path, flags, &file, &error), WAL_OK);
    return file;
}

static inline struct wal__file *make(const struct machine *m, const char *path)
{
    return open_on(m->io, path, WAL__IO_WRITE | WAL__IO_CREATE);
}

static inline enum wal_status try_write(struct machine *m,
                                        struct wal__file *file,
                                        const char *text, uint64_t offset,
                                        size_t *put)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)text,
                        .iov_len = strlen(text)};

    return m->io->pwritev(m->io->ctx, file, &iov, 1, offset, put, &m->error);
}

static inline void write_text(struct machine *m, struct wal__file *file,
                              const char *text, uint64_t offset)
{
    size_t put = 0;

    assert_int_equal(try_write(m, file, text, offset, &put), WAL_OK);
    assert_int_equal(put, strlen(text));
}

static inline enum wal_status sync_file(struct machine *m,
                                        struct wal__file *file)
{
    return m->io->sync(m->io->ctx, file, &m->error);
}

static inline void close_file(const struct machine *m, struct wal__file *file)
{
    m->io->close(m->io->ctx, file);
}

static inline void expect_content(struct sim_disk *disk, const char *path,
                                  const char *text)
{
    uint8_t *data;
    size_t size;

    sim_disk_read_file(disk, path, &data, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    free(data);
}

static inline enum wal_status lock(struct machine *m, struct wal__file *file,
                                   uint64_t offset, enum wal__io_lock mode)
{
    return m->io->lock(m->io->ctx, file, offset, mode, &m->error);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
