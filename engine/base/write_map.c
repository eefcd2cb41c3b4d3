/*
 * write_map.c - writing through a map of a file. No section of SPEC.md.
 */
#include "engine/base/write_map.h"

#include <string.h>
#include <time.h>

#include "engine/base/guarded_map.h"
#include "engine/base/io.h"
#include "format/bytes/assert.h"

enum {
    MAP_PAGE = 4096,
    POPULATE_SIZE = 64 * 1024, /* ahead of what is written */
    PREPARE_SIZE = 32 * 1024,  /* less than this is left: prepare */
    KEEP_SIZE = 256 * 1024,    /* written, before pages are unmapped */
    WRITE_MAX = 32 * 1024,     /* more costs less by the file */
    TRUST_NS = 10000000,
    FIRST_SIZE = 8 /* bytes that are stored before the others */
};

void wal__write_map_init(struct wal__write_map *map)
{
    memset(map, 0, sizeof(*map));
    pthread_mutex_init(&map->mutex, NULL);
}

static void unmap(struct wal__write_map *map, const struct wal__io *io)
{
    if (map->at != NULL) {
        io->unmap(io->ctx, map->at, map->size);
    }
    map->at = NULL;
    map->id = 0;
    map->size = 0;
    map->kept = 0;
    atomic_store(&map->populated, 0);
    atomic_store(&map->written, 0);
}

void wal__write_map_deinit(struct wal__write_map *map, const struct wal__io *io)
{
    unmap(map, io);
    pthread_mutex_destroy(&map->mutex);
}

/* Monotonic, up to a tick late: cheaper than the exact time. */
static uint64_t coarse_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* With the mutex: populates [from, end) and some more. */
static bool populate(struct wal__write_map *map, const struct wal__io *io,
                     uint64_t from, uint64_t end, uint64_t now)
{
    uint64_t to = end / MAP_PAGE * MAP_PAGE + POPULATE_SIZE;
    int ignored = 0;

    from = from / MAP_PAGE * MAP_PAGE;
    to = to < map->size ? to : map->size;
    if (end > to || io->populate_writable(io->ctx, map->at + from, to - from,
                                          &ignored) != WAL_OK) {
        return false;
    }
    atomic_store(&map->populated_ns, now);
    atomic_store(&map->populated, to);
    return true;
}

/* With the mutex: maps the file, unless it is mapped, and again when a page of
 * this process vanished, which may be one of its. A file that may need space
 * when it is written again gets a map of no bytes. */
static bool map_target(struct wal__write_map *map, const struct wal__io *io,
                       const struct wal__write_target *target)
{
    void *at = NULL;
    int ignored = 0;

    if (map->id == target->id && map->losses == wal__guarded_map_losses()) {
        return true;
    }
    unmap(map, io);
    map->losses = wal__guarded_map_losses();
    if (!io->writes_in_place(io->ctx, target->file)) {
        map->id = target->id;
        return true;
    }
    if (io->map(io->ctx, target->file, target->size, true, &at, &ignored) !=
        WAL_OK) {
        return false;
    }
    map->at = at;
    map->size = target->size;
    map->id = target->id;
    return true;
}

/* With the mutex: unmaps the pages before `end`, at least `least` bytes. */
static void evict_written(struct wal__write_map *map, const struct wal__io *io,
                          uint64_t end, uint64_t least)
{
    end = end / MAP_PAGE * MAP_PAGE;
    if (end >= map->kept + least) {
        io->evict(io->ctx, map->at + map->kept, end - map->kept);
        map->kept = end;
    }
}

/* Whether the file is populated up to `end`. A simulated process, which has no
 * threads, is asked each time: killed, it must not store any more. */
static bool is_populated(const struct wal__write_map *map,
                         const struct wal__io *io, uint64_t end, uint64_t now)
{
    return io->threads && end <= atomic_load(&map->populated) &&
           now - atomic_load(&map->populated_ns) < TRUST_NS;
}

/* Makes [offset, end) writable without a fault. */
static bool make_ready(struct wal__write_map *map, const struct wal__io *io,
                       const struct wal__write_target *target, uint64_t offset,
                       uint64_t end)
{
    uint64_t now = coarse_now_ns();
    bool ready;

    /* The writer alone changes the map. */
    if (map->id == target->id && map->losses == wal__guarded_map_losses() &&
        is_populated(map, io, end, now)) {
        return true;
    }
    pthread_mutex_lock(&map->mutex);
    ready =
        map_target(map, io, target) && (is_populated(map, io, end, now) ||
                                        populate(map, io, offset, end, now));
    if (ready) {
        evict_written(map, io, offset, KEEP_SIZE);
    }
    pthread_mutex_unlock(&map->mutex);
    return ready;
}

/* Stores the first word before all others: memcpy may store it last. A killed
 * process would leave zeros there, which is how the end of the log looks, and
 * bytes after them (SPEC.md 4.3). A signal fence orders stores of a thread. */
static void copy_pieces(uint8_t *at, const struct iovec *iov, int count)
{
    memcpy(at, iov[0].iov_base,
           iov[0].iov_len < FIRST_SIZE ? iov[0].iov_len : FIRST_SIZE);
    atomic_signal_fence(memory_order_seq_cst);
    for (int i = 0; i < count; i++) {
        memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
}

bool wal__write_map_write(struct wal__write_map *map, const struct wal__io *io,
                          const struct wal__write_target *target,
                          const struct iovec *iov, int count, uint64_t offset)
{
    uint64_t end = offset;

    for (int i = 0; i < count; i++) {
        end += iov[i].iov_len;
    }
    WAL__ASSERT(end <= target->size);
    if (io->populate_writable == NULL || end - offset > WRITE_MAX ||
        !make_ready(map, io, target, offset, end)) {
        return false;
    }
    copy_pieces(map->at + offset, iov, count);
    atomic_store(&map->written, end);
    /* Else another program may have cut the file, and the page is not its. */
    return map->losses == wal__guarded_map_losses();
}

void wal__write_map_prepare(struct wal__write_map *map,
                            const struct wal__io *io)
{
    uint64_t populated = atomic_load(&map->populated);

    if (populated == 0 ||
        populated >= atomic_load(&map->written) + PREPARE_SIZE ||
        pthread_mutex_trylock(&map->mutex) != 0) {
        return;
    }
    populated = atomic_load(&map->populated);
    if (populated != 0 && populated < map->size &&
        populated < atomic_load(&map->written) + PREPARE_SIZE) {
        (void)populate(map, io, populated, populated, coarse_now_ns());
        evict_written(map, io, atomic_load(&map->written), KEEP_SIZE);
    }
    pthread_mutex_unlock(&map->mutex);
}

void wal__write_map_keep(struct wal__write_map *map, const struct wal__io *io,
                         uint64_t id)
{
    if (map->id != id) {
        pthread_mutex_lock(&map->mutex);
        unmap(map, io);
        pthread_mutex_unlock(&map->mutex);
    }
}

void wal__write_map_evict(struct wal__write_map *map, const struct wal__io *io)
{
    if (atomic_load(&map->populated) != 0 &&
        pthread_mutex_trylock(&map->mutex) == 0) {
        evict_written(map, io, atomic_load(&map->written), MAP_PAGE);
        pthread_mutex_unlock(&map->mutex);
    }
}
