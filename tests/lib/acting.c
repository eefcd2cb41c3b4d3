/*
 * acting.c - see acting.h.
 */
#include "tests/lib/acting.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/base/assert.h"

enum {
    ACTORS_MAX = 8,
    PATIENCE = 120 /* seconds until a child that hangs is ended */
};

static struct board *make_board(void)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    WAL__ASSERT(board != MAP_FAILED);
    return board;
}

static void meet(struct board *board, int count)
{
    atomic_fetch_add(&board->ready, 1);
    while (atomic_load(&board->ready) < count) {
        usleep(100);
    }
}

/* A process that writes works once, one that reads until all writers are
 * done. */
static pid_t start(struct actor actor, actor_fn *act, bool reads, int count)
{
    pid_t child = fork();

    if (child != 0) {
        assert_true(child > 0);
        return child;
    }
    (void)alarm(PATIENCE);
    meet(actor.board, count);
    do {
        act(&actor);
        atomic_fetch_add(&actor.board->reads, reads ? 1 : 0);
    } while (reads && atomic_load(&actor.board->working) > 0);
    atomic_fetch_sub(&actor.board->working, reads ? 0 : 1);
    _exit(0);
}

void acting_run(struct board *board, actor_fn *write, int writers,
                actor_fn *read, int readers)
{
    pid_t children[ACTORS_MAX];
    uint64_t random = kit_seed();
    int count = writers + readers;
    bool well = true;

    WAL__ASSERT(count <= ACTORS_MAX);
    (void)fflush(NULL);
    atomic_store(&board->ready, 0);
    atomic_store(&board->working, writers);
    for (int i = 0; i < count; i++) {
        bool reads = i >= writers;
        struct actor actor = {board, reads ? i - writers : i,
                              kit_random(&random) | 1};

        children[i] = start(actor, reads ? read : write, reads, count);
    }
    for (int i = 0; i < count; i++) {
        int status = 0;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            atomic_store(&board->working, 0);
            well = false;
        }
    }
    assert_true(well);
    assert_true(readers == 0 || atomic_load(&board->reads) >= 1);
}

struct board *acting_begin(const char *entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append_all(session, entries);
    wal_session_close(session);
    kit_close(store);
    return make_board();
}

void acting_end(struct board *board)
{
    assert_int_equal(munmap(board, sizeof(*board)), 0);
}

struct visit acting_arrive(uint32_t flags)
{
    struct visit visit = {.store = racing_open(flags)};

    visit.session = racing_session(visit.store, "s");
    return visit;
}

void acting_leave(struct visit *visit)
{
    racing_close(visit->store, visit->session);
}

pid_t acting_hold(struct board *board)
{
    pid_t child = fork();

    if (child == 0) {
        struct visit visit;

        (void)alarm(PATIENCE);
        visit = acting_arrive(0);
        atomic_store(&board->live, true);
        while (atomic_load(&board->live)) {
            usleep(1000);
        }
        acting_leave(&visit);
        _exit(0);
    }
    assert_true(child > 0);
    while (!atomic_load(&board->live)) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        usleep(1000);
    }
    return child;
}

void acting_let_go(struct board *board, pid_t holder)
{
    int status = 0;

    atomic_store(&board->live, false);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void acting_maybe_leave(struct visit *visit, uint64_t *random)
{
    if (kit_random(random) % 8 == 0) {
        acting_leave(visit);
        *visit = acting_arrive(0);
    }
}
