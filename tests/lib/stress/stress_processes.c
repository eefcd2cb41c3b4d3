/*
 * stress_processes.c - see acting.h.
 */
#include "tests/lib/stress/stress_processes.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"

enum {
    PROCESSES_MAX = 8,
    CHILD_TIMEOUT_S = 120 /* seconds until a child that hangs is ended */
};

static struct stress_shared *map_shared(void)
{
    struct stress_shared *stress_shared =
        mmap(NULL, sizeof(*stress_shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    WAL__ASSERT(stress_shared != MAP_FAILED);
    return stress_shared;
}

static void wait_for_start(struct stress_shared *stress_shared, int count)
{
    atomic_fetch_add(&stress_shared->ready, 1);
    while (atomic_load(&stress_shared->ready) < count) {
        usleep(100);
    }
}

/* A process that writes works once, one that reads until all writers are
 * done. */
static pid_t start_process(struct stress_process stress_process,
                           stress_process_fn *act, bool reads, int count)
{
    pid_t child = fork();

    if (child != 0) {
        assert_true(child > 0);
        return child;
    }
    (void)alarm(CHILD_TIMEOUT_S);
    wait_for_start(stress_process.stress_shared, count);
    do {
        act(&stress_process);
        atomic_fetch_add(&stress_process.stress_shared->reads, reads ? 1 : 0);
    } while (reads && atomic_load(&stress_process.stress_shared->working) > 0);
    atomic_fetch_sub(&stress_process.stress_shared->working, reads ? 0 : 1);
    _exit(0);
}

void stress_run_processes(struct stress_shared *stress_shared,
                          stress_process_fn *write, int writers,
                          stress_process_fn *read, int readers)
{
    pid_t children[PROCESSES_MAX];
    uint64_t random = kit_seed();
    int count = writers + readers;
    bool well = true;

    WAL__ASSERT(count <= PROCESSES_MAX);
    (void)fflush(NULL);
    atomic_store(&stress_shared->ready, 0);
    atomic_store(&stress_shared->working, writers);
    for (int i = 0; i < count; i++) {
        bool reads = i >= writers;
        struct stress_process stress_process = {
            stress_shared, reads ? i - writers : i, kit_random(&random) | 1};

        children[i] =
            start_process(stress_process, reads ? read : write, reads, count);
    }
    for (int i = 0; i < count; i++) {
        int status = 0;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            atomic_store(&stress_shared->working, 0);
            well = false;
        }
    }
    assert_true(well);
    assert_true(readers == 0 || atomic_load(&stress_shared->reads) >= 1);
}

struct stress_shared *stress_shared_create(const char *entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, entries);
    wal_session_close(session);
    kit_close(store);
    return map_shared();
}

void stress_shared_destroy(struct stress_shared *stress_shared)
{
    assert_int_equal(munmap(stress_shared, sizeof(*stress_shared)), 0);
}

struct stress_handle stress_handle_open(uint32_t flags)
{
    struct stress_handle stress_handle = {.store = stress_open(flags)};

    stress_handle.session = stress_session(stress_handle.store, "s");
    return stress_handle;
}

void stress_handle_close(struct stress_handle *stress_handle)
{
    stress_close(stress_handle->store, stress_handle->session);
}

pid_t stress_start_holder(struct stress_shared *stress_shared)
{
    pid_t child = fork();

    if (child == 0) {
        struct stress_handle stress_handle;

        (void)alarm(CHILD_TIMEOUT_S);
        stress_handle = stress_handle_open(0);
        atomic_store(&stress_shared->live, true);
        while (atomic_load(&stress_shared->live)) {
            usleep(1000);
        }
        stress_handle_close(&stress_handle);
        _exit(0);
    }
    assert_true(child > 0);
    while (!atomic_load(&stress_shared->live)) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        usleep(1000);
    }
    return child;
}

void stress_stop_holder(struct stress_shared *stress_shared, pid_t holder)
{
    int status = 0;

    atomic_store(&stress_shared->live, false);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void stress_handle_maybe_reopen(struct stress_handle *stress_handle,
                                uint64_t *random)
{
    if (kit_random(random) % 8 == 0) {
        stress_handle_close(stress_handle);
        *stress_handle = stress_handle_open(0);
    }
}
