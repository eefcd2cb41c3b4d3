/*
 * common_heap.c - a region that is mapped shared, with lists of free blocks by their sizes, which
 * are powers of two (common_heap.h).
 *
 * Invariant: the lock is held by a thread of a process that lives.
 */
#include "tests/lib/common_heap.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/bytes/assert.h"

enum {
    CLASSES = 48,
    SMALLEST = 5 /* the binary logarithm of the smallest block */
};

/* Before each block. */
struct head {
    uint64_t class;
    struct head *next; /* while it is free */
};

struct region {
    atomic_int is_locked;
    size_t size;
    size_t used;
    struct head *free[CLASSES];
};

static struct region *region; /* null: the C library's heap is used */

static size_t begin_of_blocks(void)
{
    return (sizeof(struct region) + 63) & ~(size_t)63;
}

void common_heap_init(size_t size)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    WAL__ASSERT(at != MAP_FAILED && region == NULL);
    region = at;
    region->size = size;
    region->used = begin_of_blocks();
}

void common_heap_clear_but(const void *first)
{
    const struct head *head = (const struct head *)first - 1;
    size_t page = 4096;
    size_t kept;

    WAL__ASSERT((const char *)head == (char *)region + begin_of_blocks());
    region->used = begin_of_blocks() + ((size_t)1 << head->class);
    memset(region->free, 0, sizeof(region->free));
    kept = (region->used + page - 1) & ~(page - 1);
#ifdef MADV_REMOVE
    WAL__ASSERT(madvise((char *)region + kept, region->size - kept, MADV_REMOVE) == 0);
#else
    memset((char *)region + kept, 0, region->size - kept);
#endif
}

static void lock(void)
{
    while (atomic_exchange_explicit(&region->is_locked, 1, memory_order_acquire) != 0) {
        (void)sched_yield();
    }
}

static void unlock(void)
{
    atomic_store_explicit(&region->is_locked, 0, memory_order_release);
}

void *common_alloc(size_t count, size_t size)
{
    size_t class = SMALLEST;
    struct head *head;

    if (region == NULL) {
        void *block = calloc(count > 0 ? count : 1, size > 0 ? size : 1);

        WAL__ASSERT(block != NULL);
        return block;
    }
    size = size * count + sizeof(*head);
    while (((size_t)1 << class) < size) {
        class ++;
    }
    lock();
    head = region->free[class];
    if (head != NULL) {
        region->free[class] = head->next;
    } else {
        WAL__ASSERT(region->size - region->used >= (size_t)1 << class);
        head = (struct head *)((char *)region + region->used);
        region->used += (size_t)1 << class;
    }
    unlock();
    memset(head, 0, size);
    head->class = class;
    return head + 1;
}

void *common_resize(void *block, size_t size)
{
    struct head *head = block;
    size_t room;
    void *moved;

    if (region == NULL) {
        moved = realloc(block, size);
        WAL__ASSERT(moved != NULL);
        return moved;
    }
    if (block == NULL) {
        return common_alloc(1, size);
    }
    room = ((size_t)1 << head[-1].class) - sizeof(*head);
    if (size <= room) {
        return block;
    }
    moved = common_alloc(1, size);
    memcpy(moved, block, room);
    common_free(block);
    return moved;
}

void common_free(void *block)
{
    struct head *head = block;

    if (region == NULL) {
        free(block);
        return;
    }
    if (block == NULL) {
        return;
    }
    head--;
    lock();
    head->next = region->free[head->class];
    region->free[head->class] = head;
    unlock();
}
