/*
 * map.c - maps that survive the loss of their pages, and writing through one (map.h).
 *
 * A table has the range of each guarded map. No lock protects it: the handler of SIGBUS cannot take
 * one, and a child of fork() would inherit it taken. A slot is claimed by its first word. The map
 * that faults is in use by the thread that faults, so its slot does not change meanwhile. The table
 * grows by chunks that are never freed, so that a chunk can be read at any moment.
 */
#include "engine/base/map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"

enum {
    CHUNK_SLOTS = 255,
    CLAIMED = 1 /* no address of a map */
};

/* A slot is free while begin is 0, and CLAIMED while size is set. */
struct slot {
    _Atomic uintptr_t begin;
    _Atomic size_t size;
};

struct chunk {
    struct slot slots[CHUNK_SLOTS];
    _Atomic(struct chunk *) next;
};

static struct chunk first_chunk;
static pthread_once_t installing = PTHREAD_ONCE_INIT;
static struct sigaction former;
static size_t page_size;
static _Atomic uint32_t losses;

/* Returns the slot of the map at `begin`, or NULL. */
static struct slot *find_slot(uintptr_t begin)
{
    for (struct chunk *chunk = &first_chunk; chunk != NULL; chunk = atomic_load(&chunk->next)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            if (atomic_load(&chunk->slots[i].begin) == begin) {
                return &chunk->slots[i];
            }
        }
    }
    return NULL;
}

static bool slot_has(struct slot *slot, uintptr_t address)
{
    uintptr_t begin = atomic_load(&slot->begin);
    size_t size = atomic_load(&slot->size);

    return begin > CLAIMED && address >= begin && address - begin < size &&
           atomic_load(&slot->begin) == begin;
}

static bool is_guarded(uintptr_t address)
{
    for (struct chunk *chunk = &first_chunk; chunk != NULL; chunk = atomic_load(&chunk->next)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            if (slot_has(&chunk->slots[i], address)) {
                return true;
            }
        }
    }
    return false;
}

/* Calls the handler that was there before, or ends the process as without one. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if ((former.sa_flags & SA_SIGINFO) != 0) {
        former.sa_sigaction(number, info, context);
    } else if (former.sa_handler == SIG_DFL ||
               (former.sa_handler == SIG_IGN && info->si_code > 0)) {
        (void)signal(number, SIG_DFL);
        (void)raise(number); /* delivered when the handler returns */
    } else if (former.sa_handler != SIG_IGN) {
        former.sa_handler(number);
    }
}

static void on_lost_page(int number, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    int saved = errno;

    /* A positive code: the kernel sent it, for this address. */
    if (info->si_code > 0 && is_guarded(address) &&
        mmap((void *)(address - address % page_size), page_size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        atomic_fetch_add(&losses, 1);
        errno = saved;
        return;
    }
    errno = saved;
    pass_on(number, info, context);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    page_size = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, &former);
}

/* Nothing of a library that is unloaded may be called any more. */
__attribute__((destructor)) static void uninstall(void)
{
    struct sigaction present;

    if (page_size != 0 && sigaction(SIGBUS, NULL, &present) == 0 &&
        (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == on_lost_page) {
        (void)sigaction(SIGBUS, &former, NULL);
    }
}

/* Returns the chunk after this one, which it makes if there is none; NULL without memory. */
static struct chunk *next_chunk(struct chunk *chunk)
{
    struct chunk *next = atomic_load(&chunk->next);
    struct chunk *made;

    if (next != NULL) {
        return next;
    }
    made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&chunk->next, &next, made)) {
        (void)munmap(made, sizeof(*made));
        return next; /* another thread was first */
    }
    return made;
}

/* Enters a map; false without memory. */
static bool enter(uintptr_t begin, size_t size)
{
    for (struct chunk *chunk = &first_chunk; chunk != NULL; chunk = next_chunk(chunk)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            struct slot *slot = &chunk->slots[i];
            uintptr_t expected = 0;

            if (atomic_load(&slot->begin) == 0 &&
                atomic_compare_exchange_strong(&slot->begin, &expected, CLAIMED)) {
                atomic_store(&slot->size, size);
                atomic_store(&slot->begin, begin);
                return true;
            }
        }
    }
    return false;
}

void *wal__guarded_map(int fd, off_t offset, size_t size, int protection, int flags)
{
    void *at = mmap(NULL, size, protection, flags, fd, offset);

    if (at == MAP_FAILED) {
        return NULL;
    }
    (void)pthread_once(&installing, install);
    if (!enter((uintptr_t)at, size)) {
        (void)munmap(at, size);
        errno = ENOMEM;
        return NULL;
    }
    return at;
}

void wal__guarded_unmap(void *at, size_t size)
{
    struct slot *slot = find_slot((uintptr_t)at);

    /* Before another thread can map something at the address. */
    if (slot != NULL) {
        atomic_store(&slot->begin, 0);
    }
    (void)munmap(at, size);
}

uint32_t wal__guarded_map_losses(void)
{
    return atomic_load(&losses);
}

/* --- writing through a map ---------------------------------------------- */

enum {
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

/* With the mutex: populates [from, end) and some more. */
static bool populate(struct wal__write_map *map, const struct wal__io *io, uint64_t from,
                     uint64_t end, uint64_t now)
{
    uint64_t to = end + POPULATE_SIZE;
    int ignored = 0;

    to = to < map->size ? to : map->size;
    if (end > to || io->populate_writable(io->ctx, map->at + from, to - from, &ignored) != WAL_OK) {
        return false;
    }
    atomic_store(&map->populated_ns, now);
    atomic_store(&map->populated, to);
    return true;
}

/* With the mutex: maps the file, unless it is mapped, and again when a page of this process
 * vanished, which may be one of its. A file that may need space when it is written again gets a map
 * of no bytes. */
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
    if (io->map(io->ctx, target->file, target->size, true, &at, &ignored) != WAL_OK) {
        return false;
    }
    map->at = at;
    map->size = target->size;
    map->id = target->id;
    return true;
}

/* With the mutex: unmaps the pages before `end`, if at least `least` bytes are written. */
static void evict_written(struct wal__write_map *map, const struct wal__io *io, uint64_t end,
                          uint64_t least)
{
    if (end >= map->kept + least) {
        io->evict(io->ctx, map->at + map->kept, end - map->kept);
        map->kept = end;
    }
}

/* Returns whether the file is populated up to `end`. A simulated process, which has no threads, is
 * asked each time: killed, it must not store any more. */
static bool is_populated(const struct wal__write_map *map, const struct wal__io *io, uint64_t end,
                         uint64_t now)
{
    return io->threads && end <= atomic_load(&map->populated) &&
           now - atomic_load(&map->populated_ns) < TRUST_NS;
}

/* Makes [offset, end) writable without a fault. */
static bool make_ready(struct wal__write_map *map, const struct wal__io *io,
                       const struct wal__write_target *target, uint64_t offset, uint64_t end)
{
    uint64_t now = (uint64_t)wal__system_clock_ns(WAL__CLOCK_COARSE);
    bool ready;

    /* The writer alone changes the map. */
    if (map->id == target->id && map->losses == wal__guarded_map_losses() &&
        is_populated(map, io, end, now)) {
        return true;
    }
    pthread_mutex_lock(&map->mutex);
    ready = map_target(map, io, target) &&
            (is_populated(map, io, end, now) || populate(map, io, offset, end, now));
    if (ready) {
        evict_written(map, io, offset, KEEP_SIZE);
    }
    pthread_mutex_unlock(&map->mutex);
    return ready;
}

/* Stores the first word before all others: memcpy may store it last. A killed process would leave
 * zeros there, which is how the end of the log looks, and bytes after them (SPEC.md 4.3). A signal
 * fence orders stores of a thread. */
static void copy_pieces(uint8_t *at, const struct iovec *iov, int count)
{
    memcpy(at, iov[0].iov_base, iov[0].iov_len < FIRST_SIZE ? iov[0].iov_len : FIRST_SIZE);
    atomic_signal_fence(memory_order_seq_cst);
    for (int i = 0; i < count; i++) {
        memcpy(at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
}

bool wal__write_map_write(struct wal__write_map *map, const struct wal__io *io,
                          const struct wal__write_target *target, const struct iovec *iov,
                          int count, uint64_t offset)
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

void wal__write_map_prepare(struct wal__write_map *map, const struct wal__io *io)
{
    uint64_t populated = atomic_load(&map->populated);

    if (populated == 0 || populated >= atomic_load(&map->written) + PREPARE_SIZE ||
        pthread_mutex_trylock(&map->mutex) != 0) {
        return;
    }
    populated = atomic_load(&map->populated);
    if (populated != 0 && populated < map->size &&
        populated < atomic_load(&map->written) + PREPARE_SIZE) {
        (void)populate(map, io, populated, populated,
                       (uint64_t)wal__system_clock_ns(WAL__CLOCK_COARSE));
        evict_written(map, io, atomic_load(&map->written), KEEP_SIZE);
    }
    pthread_mutex_unlock(&map->mutex);
}

void wal__write_map_keep(struct wal__write_map *map, const struct wal__io *io, uint64_t id)
{
    if (map->id != id) {
        pthread_mutex_lock(&map->mutex);
        unmap(map, io);
        pthread_mutex_unlock(&map->mutex);
    }
}

void wal__write_map_evict(struct wal__write_map *map, const struct wal__io *io)
{
    if (atomic_load(&map->populated) != 0 && pthread_mutex_trylock(&map->mutex) == 0) {
        evict_written(map, io, atomic_load(&map->written), 1);
        pthread_mutex_unlock(&map->mutex);
    }
}
