/*
 * test_guarded_map.c - tests of engine/base/guarded_map: a map whose file is
 * cut reads zeros, and every other SIGBUS goes where it went before.
 * Every test runs in a separate empty directory, the current one.
 */
#include "tests/lib/kit/store_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/base/map.h"
#include "format/bytes/assert.h"

enum {
    PAGE = 65536, /* a multiple of any page */
    PAGES = 4,
    MANY = 1000,
    ROUNDS = 50
};

static int make_file(const char *name)
{
    uint8_t bytes[PAGE];
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

    WAL__ASSERT(fd >= 0);
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < PAGES; i++) {
        WAL__ASSERT(write(fd, bytes, PAGE) == PAGE);
    }
    return fd;
}

static volatile uint8_t *map_file(int fd)
{
    void *at = wal__guarded_map(fd, 0, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED);

    WAL__ASSERT(at != NULL);
    return at;
}

static void unmap_file(volatile uint8_t *at)
{
    wal__guarded_unmap((void *)(uintptr_t)at, (size_t)PAGES * PAGE);
}

/* Runs in a child, in which the first map installs the handler: the test program sets its own for
 * each test. Returns how the child ended. */
static int in_child(void (*run)(void))
{
    int status = 0;
    pid_t child = kit_start_process();

    if (child == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void cut_file(void)
{
    int fd = make_file("file");
    volatile uint8_t *at = map_file(fd);
    uint32_t losses = wal__guarded_map_losses();

    WAL__ASSERT(ftruncate(fd, PAGE) == 0);
    WAL__ASSERT(at[PAGE - 1] == 'x');
    WAL__ASSERT(wal__guarded_map_losses() == losses);
    WAL__ASSERT(at[PAGE] == 0 && at[3 * PAGE + 7] == 0);
    WAL__ASSERT(wal__guarded_map_losses() == losses + 2);
    at[2 * PAGE] = 'y'; /* a store to such a page goes nowhere */
    WAL__ASSERT(at[2 * PAGE] == 'y');
    WAL__ASSERT(wal__guarded_map_losses() == losses + 3);
    WAL__ASSERT(lseek(fd, 0, SEEK_END) == PAGE);
    unmap_file(at);
}

KIT_TEST(guarded_map__page_of_a_cut_file_is_zeros)
{
    assert_int_equal(in_child(cut_file), 0);
}

static void map_many(void)
{
    static volatile uint8_t *maps[MANY];
    int fd = make_file("file");

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MANY; i++) {
            maps[i] = map_file(fd);
        }
        WAL__ASSERT(ftruncate(fd, PAGE) == 0);
        for (size_t i = 0; i < MANY; i++) {
            WAL__ASSERT(maps[i][2 * PAGE] == 0);
            unmap_file(maps[i]);
        }
        WAL__ASSERT(ftruncate(fd, PAGES * PAGE) == 0);
    }
}

KIT_TEST(guarded_map__many_maps_and_their_slots_again)
{
    assert_int_equal(in_child(map_many), 0);
}

static void *touch(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = make_file(arg);
        volatile uint8_t *at = map_file(fd);

        WAL__ASSERT(ftruncate(fd, PAGE) == 0);
        WAL__ASSERT(at[2 * PAGE] == 0);
        unmap_file(at);
        WAL__ASSERT(close(fd) == 0);
    }
    return NULL;
}

static void touch_by_threads(void)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++) {
        WAL__ASSERT(pthread_create(&threads[i], NULL, touch, names[i]) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        WAL__ASSERT(pthread_join(threads[i], NULL) == 0);
    }
}

KIT_TEST(guarded_map__threads_fault_while_others_map)
{
    assert_int_equal(in_child(touch_by_threads), 0);
}

static void touch_in_a_child(void)
{
    static char name[] = "parent";
    int status = 0;
    pid_t child;

    (void)touch(name);
    child = kit_start_process();
    if (child == 0) {
        (void)touch(name);
        _exit(0);
    }
    WAL__ASSERT(waitpid(child, &status, 0) == child && status == 0);
}

KIT_TEST(guarded_map__child_of_fork_is_guarded)
{
    assert_int_equal(in_child(touch_in_a_child), 0);
}

/* --- other maps ----------------------------------------------------------- */

/* A map of the caller, of a file that is cut. */
static volatile uint8_t *foreign_map(void)
{
    int fd = make_file("foreign");
    void *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);

    WAL__ASSERT(at != MAP_FAILED && ftruncate(fd, 0) == 0);
    return at;
}

static void read_foreign(void)
{
    (void)signal(SIGBUS, SIG_DFL);
    unmap_file(map_file(make_file("file")));
    _exit(foreign_map()[0]);
}

KIT_TEST(guarded_map__other_map_ends_the_process_as_before)
{
    int status = in_child(read_foreign);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static sigjmp_buf back;

static void jump_back(int number)
{
    WAL__ASSERT(number == SIGBUS);
    siglongjmp(back, 1);
}

static void jump_back_with_info(int number, siginfo_t *info, void *context)
{
    WAL__ASSERT(info->si_addr != NULL && context != NULL);
    jump_back(number);
}

static void read_foreign_with(const struct sigaction *action)
{
    WAL__ASSERT(sigaction(SIGBUS, action, NULL) == 0);
    unmap_file(map_file(make_file("file")));
    if (sigsetjmp(back, 1) == 0) {
        _exit(foreign_map()[0]);
    }
    _exit(7);
}

static void with_handler(void)
{
    const struct sigaction action = {.sa_handler = jump_back};

    read_foreign_with(&action);
}

static void with_info_handler(void)
{
    const struct sigaction action = {.sa_sigaction = jump_back_with_info, .sa_flags = SA_SIGINFO};

    read_foreign_with(&action);
}

KIT_TEST(guarded_map__other_map_goes_to_the_handler_before)
{
    int status = in_child(with_handler);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    status = in_child(with_info_handler);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}
