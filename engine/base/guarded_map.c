/*
 * guarded_map.c - maps that survive the loss of their pages (guarded_map.h).
 *
 * A table has the range of each map. No lock protects it: the handler of SIGBUS
 * cannot take one, and a child of fork() would inherit it taken. A slot is
 * claimed by its first word. The map that faults is in use by the thread that
 * faults, so its slot does not change meanwhile. The table grows by chunks that
 * are never freed, so that a chunk can be read at any moment.
 */
#include "engine/base/guarded_map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    for (struct chunk *chunk = &first_chunk; chunk != NULL;
         chunk = atomic_load(&chunk->next)) {
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
    for (struct chunk *chunk = &first_chunk; chunk != NULL;
         chunk = atomic_load(&chunk->next)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            if (slot_has(&chunk->slots[i], address)) {
                return true;
            }
        }
    }
    return false;
}

/* Calls the handler that was there before, or ends the process as without
 * one. */
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
        mmap((void *)(address - address % page_size), page_size,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) != MAP_FAILED) {
        atomic_fetch_add(&losses, 1);
        errno = saved;
        return;
    }
    errno = saved;
    pass_on(number, info, context);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_lost_page,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};

    page_size = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, &former);
}

/* Nothing of a library that is unloaded may be called any more. */
__attribute__((destructor)) static void uninstall(void)
{
    struct sigaction present;

    if (page_size != 0 && sigaction(SIGBUS, NULL, &present) == 0 &&
        (present.sa_flags & SA_SIGINFO) != 0 &&
        present.sa_sigaction == on_lost_page) {
        (void)sigaction(SIGBUS, &former, NULL);
    }
}

/* Returns the chunk after this one, which it makes if there is none; NULL
 * without memory. */
static struct chunk *next_chunk(struct chunk *chunk)
{
    struct chunk *next = atomic_load(&chunk->next);
    struct chunk *made;

    if (next != NULL) {
        return next;
    }
    made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    for (struct chunk *chunk = &first_chunk; chunk != NULL;
         chunk = next_chunk(chunk)) {
        for (size_t i = 0; i < CHUNK_SLOTS; i++) {
            struct slot *slot = &chunk->slots[i];
            uintptr_t expected = 0;

            if (atomic_load(&slot->begin) == 0 &&
                atomic_compare_exchange_strong(&slot->begin, &expected,
                                               CLAIMED)) {
                atomic_store(&slot->size, size);
                atomic_store(&slot->begin, begin);
                return true;
            }
        }
    }
    return false;
}

void *wal__guarded_map(int fd, off_t offset, size_t size, int protection,
                       int flags)
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
