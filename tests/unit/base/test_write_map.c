/*
 * test_write_map.c - tests of writing through a map of a file (engine/base/map.h): what is written
 * is in the file at once, and what cannot be written is refused without a signal.
 */
#include "engine/base/map.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "engine/base/linux/storage.h"
#include "engine/base/system.h"
#include "tests/lib/test.h"

enum {
    CAPACITY = 2 * 1024 * 1024,
    PIECE = 3000,
    ROUNDS = 400, /* of PIECE: more than half of the segment */
    STEP = 4096,
    COPY = 4 * STEP
};

/* wal__io_posix, on a file system that writes in place. */
static struct wal__io tested;
static const struct wal__io *const io = &tested;
static bool in_place;
static struct wal__write_target segment;
static struct wal__write_map map;
static uint8_t bytes[64 * 1024];

static bool writes_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    (void)file;
    return in_place;
}

static int open_segment(void **state)
{
    int err = 0;

    (void)state;
    tested = wal__io_posix;
    tested.writes_in_place = writes_in_place;
    in_place = true;
    memset(&segment, 0, sizeof(segment));
    segment.id = 7;
    segment.size = CAPACITY;
    (void)unlink("segment");
    assert_ok(io->open(io->ctx, "segment", WAL__IO_WRITE | WAL__IO_CREATE, &segment.file, &err));
    assert_ok(io->allocate(io->ctx, segment.file, CAPACITY, &err));
    wal__write_map_init(&map);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    return 0;
}

static int close_segment(void **state)
{
    (void)state;
    wal__write_map_deinit(&map, io);
    io->close(io->ctx, segment.file);
    return 0;
}

static bool write_at(uint64_t offset, size_t size)
{
    const struct iovec iov[] = {{bytes, size / 3}, {bytes + size / 3, size - size / 3}};

    return wal__write_map_write(&map, io, &segment, iov, 2, offset);
}

static void assert_in_file(uint64_t offset, size_t size)
{
    static uint8_t found[sizeof(bytes)];
    size_t got = 0;
    int err = 0;

    assert_ok(wal__io_read_full(io, segment.file, found, size, offset, &got, &err));
    assert_int_equal(got, size);
    assert_memory_equal(found, bytes, size);
}

/*
 * The page goes between populating it and the store: the caller writes by the file, and neither
 * that page nor another is stored to as if it were there. In a child, whose first map installs the
 * handler of SIGBUS; first of all tests, since each sets the handler of the test program.
 */
TEST_WITH(map__vanished_page_is_refused, open_segment, close_segment)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        bool ok = write_at(4096, PIECE);

        ok = truncate("segment", 4096) == 0 && ok;
        for (int i = 0; i < 2; i++) {
            atomic_store(&map.populated_ns, (uint64_t)wal__system_clock_ns(WAL__CLOCK_COARSE));
            ok = !write_at((uint64_t)4 * 4096, PIECE) && ok;
        }
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST_WITH(map__what_is_written_is_in_the_file, open_segment, close_segment)
{
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_true(write_at(4096 + i * PIECE, PIECE));
        assert_in_file(4096 + i * PIECE, PIECE);
    }
    wal__write_map_evict(&map, io);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_in_file(4096 + i * PIECE, PIECE);
    }
}

TEST_WITH(map__the_last_page_can_be_written, open_segment, close_segment)
{
    assert_true(write_at(CAPACITY - PIECE, PIECE));
    assert_in_file(CAPACITY - PIECE, PIECE);
}

/* The page that an evicted range ends in is written on both sides. */
TEST_WITH(map__eviction_keeps_the_page_that_is_written, open_segment, close_segment)
{
    assert_true(write_at(4096, PIECE));
    wal__write_map_evict(&map, io);
    assert_true(write_at(4096 + PIECE, PIECE));
    wal__write_map_evict(&map, io);
    assert_in_file(4096, PIECE);
    assert_in_file(4096 + PIECE, PIECE);
}

TEST_WITH(map__large_write_is_left_to_the_file, open_segment, close_segment)
{
    assert_false(write_at(4096, sizeof(bytes)));
}

/* A store to such a page would raise SIGBUS. */
TEST_WITH(map__truncated_file_is_refused, open_segment, close_segment)
{
    assert_int_equal(truncate("segment", 65536), 0);
    assert_false(write_at(4096 + 65536, PIECE));
    assert_false(write_at(65536 - PIECE / 2, PIECE));
}

/* Also where pages were populated before the file was truncated. */
TEST_WITH(map__populated_pages_are_trusted_briefly, open_segment, close_segment)
{
    const struct timespec while_trusted = {0, 50000000};

    assert_true(write_at(4096, PIECE));
    assert_int_equal(truncate("segment", 4096), 0);
    assert_int_equal(nanosleep(&while_trusted, NULL), 0);
    assert_false(write_at(4096 + PIECE, PIECE));
}

TEST_WITH(map__read_only_file_is_refused, open_segment, close_segment)
{
    struct wal__file *writable = segment.file;
    int err = 0;

    assert_ok(io->open(io->ctx, "segment", 0, &segment.file, &err));
    assert_false(write_at(4096, PIECE));
    io->close(io->ctx, segment.file);
    segment.file = writable;
}

TEST_WITH(map__without_the_call_is_refused, open_segment, close_segment)
{
    const struct iovec iov = {bytes, PIECE};
    struct wal__io without = *io;

    without.populate_writable = NULL;
    assert_false(wal__write_map_write(&map, &without, &segment, &iov, 1, 4096));
}

/* A store to a page that was written back may need space there. */
TEST_WITH(map__copy_on_write_is_left_to_the_file, open_segment, close_segment)
{
    in_place = false;
    for (int i = 0; i < 3; i++) {
        assert_false(write_at(4096, PIECE));
        wal__write_map_prepare(&map, io);
        wal__write_map_evict(&map, io);
    }
    in_place = true;
    segment.id++;
    assert_true(write_at(4096, PIECE));
}

TEST_WITH(map__file_systems_that_write_in_place, open_segment, close_segment)
{
    assert_true(wal__file_system_writes_in_place(0x0000EF53));  /* ext4 */
    assert_true(wal__file_system_writes_in_place(0x01021994));  /* tmpfs */
    assert_false(wal__file_system_writes_in_place(0x9123683E)); /* btrfs */
    assert_false(wal__file_system_writes_in_place(0x65735546)); /* fuse */
    assert_false(wal__file_system_writes_in_place(0x12345678)); /* unknown */
}

TEST_WITH(map__next_segment_replaces_the_map, open_segment, close_segment)
{
    struct wal__file *first = segment.file;
    int err = 0;

    assert_true(write_at(4096, PIECE));
    segment.id = 8;
    assert_ok(io->open(io->ctx, "next", WAL__IO_WRITE | WAL__IO_CREATE, &segment.file, &err));
    assert_ok(io->allocate(io->ctx, segment.file, CAPACITY, &err));
    assert_true(write_at(8192, PIECE));
    assert_in_file(8192, PIECE);
    io->close(io->ctx, segment.file);
    segment.file = first;
    assert_in_file(4096, PIECE);
}

/* --- a process that is killed while it copies ---------------------------- */

static sigjmp_buf interrupted;

static void interrupt(int number)
{
    siglongjmp(interrupted, number);
}

/* Copies from a source that cannot be read from `end` on, as if the process were killed there. */
static void copy_until(uint8_t *source, const uint8_t *end, uint64_t offset)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const struct iovec iov = {source, COPY};
    struct sigaction before;

    memcpy(source, bytes, (size_t)(end - source));
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    if (sigsetjmp(interrupted, 1) == 0) {
        (void)wal__write_map_write(&map, io, &segment, &iov, 1, offset);
        fail_msg("the source was read");
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* What follows the published end is looked at only where it does not begin with zeros, so the first
 * bytes are there before any others, whatever order memcpy has. */
TEST_WITH(map__interrupted_copy_leaves_its_first_bytes, open_segment, close_segment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t half = (COPY + page - 1) / page * page;
    uint8_t *map_at =
        mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *end = map_at + half;
    uint64_t offset = 4096;

    assert_true(map_at != MAP_FAILED);
    assert_int_equal(mprotect(end, half, PROT_NONE), 0);
    for (uint64_t i = 0; i < 64; i++) {
        copy_until(end - (i % 3 + 1) * STEP, end, offset);
        assert_in_file(offset, 8);
        offset += COPY + 8 * i;
    }
    assert_int_equal(munmap(map_at, 2 * half), 0);
}

/* --- preparing by other threads ------------------------------------------ */

static _Atomic bool stop;

static void *prepare(void *arg)
{
    while (!atomic_load(&stop)) {
        wal__write_map_prepare(&map, io);
        wal__write_map_evict(&map, io);
    }
    return arg;
}

TEST_WITH(map__is_prepared_while_it_is_written, open_segment, close_segment)
{
    pthread_t threads[2];

    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, prepare, NULL), 0);
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_true(write_at(4096 + i * PIECE, PIECE));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_in_file(4096 + i * PIECE, PIECE);
    }
}
