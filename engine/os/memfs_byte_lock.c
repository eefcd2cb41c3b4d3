/*
 * memfs_byte_lock.c - the lock bytes of files in memory (memfs_byte_lock.h). No
 * section of SPEC.md. Invariants: a holder has at most one lock per byte, and
 * an exclusive lock is the only one of its byte. Any thread that holds the
 * mutex.
 */
#include "engine/os/memfs_byte_lock.h"

#include <errno.h>
#include <stddef.h>

#include "format/bytes/assert.h"

struct wal__memfs_byte_lock {
    struct wal__memfs_byte_lock *next;
    const void *holder;
    uint64_t offset;
    bool exclusive;
};

/* The link to the holder's lock of the byte at *offset, or of any byte when
 * offset is NULL; the link at the list's end when there is none. */
static struct wal__memfs_byte_lock **find_link(struct wal__memfs_node *node,
                                               const void *holder,
                                               const uint64_t *offset)
{
    struct wal__memfs_byte_lock **link = &node->locks;

    while (*link != NULL && ((*link)->holder != holder ||
                             (offset != NULL && (*link)->offset != *offset))) {
        link = &(*link)->next;
    }
    return link;
}

static void unlink_lock(struct wal__memfs *fs,
                        struct wal__memfs_byte_lock **link)
{
    struct wal__memfs_byte_lock *lock = *link;

    *link = lock->next;
    wal__heap_free(fs->heap, lock);
}

bool wal__memfs_byte_lock_conflicts(const struct wal__memfs_node *node,
                                    const void *holder, uint64_t offset,
                                    bool exclusive)
{
    const struct wal__memfs_byte_lock *lock = node->locks;

    while (lock != NULL && (lock->holder == holder || lock->offset != offset ||
                            (!exclusive && !lock->exclusive))) {
        lock = lock->next;
    }
    return lock != NULL;
}

int wal__memfs_byte_lock_acquire(struct wal__memfs *fs,
                                 struct wal__memfs_node *node,
                                 const void *holder, uint64_t offset,
                                 bool exclusive)
{
    struct wal__memfs_byte_lock **link = find_link(node, holder, &offset);
    struct wal__memfs_byte_lock *lock;

    if (wal__memfs_byte_lock_conflicts(node, holder, offset, exclusive)) {
        return EAGAIN;
    }
    if (*link == NULL) {
        lock = wal__heap_zalloc(fs->heap, sizeof(*lock));
        if (lock == NULL) {
            return ENOMEM;
        }
        lock->holder = holder;
        lock->offset = offset;
        *link = lock;
    }
    (*link)->exclusive = exclusive;
    return 0;
}

void wal__memfs_byte_lock_release(struct wal__memfs *fs,
                                  struct wal__memfs_node *node,
                                  const void *holder, uint64_t offset)
{
    struct wal__memfs_byte_lock **link = find_link(node, holder, &offset);

    if (*link != NULL) {
        unlink_lock(fs, link);
    }
    WAL__ASSERT(*find_link(node, holder, &offset) == NULL);
}

void wal__memfs_byte_lock_release_all(struct wal__memfs *fs,
                                      struct wal__memfs_node *node,
                                      const void *holder)
{
    struct wal__memfs_byte_lock **link = find_link(node, holder, NULL);

    while (*link != NULL) {
        unlink_lock(fs, link);
        link = find_link(node, holder, NULL);
    }
}
