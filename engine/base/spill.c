/*
 * spill.c - large blocks in unnamed files (spill.h). No section of SPEC.md.
 * Invariant: a block is either in the table or from the inner heap. One thread
 * at a time.
 */
#include "engine/base/spill.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/bytes/assert.h"

static struct wal__spill_block *find_block(const struct wal__spill *spill,
                                           const void *at)
{
    for (uint32_t i = 0; at != NULL && i < spill->count; i++) {
        if (spill->blocks[i].at == at) {
            return &spill->blocks[i];
        }
    }
    return NULL;
}

static void *inner_resize(const struct wal__spill *spill, void *at, size_t size)
{
    return spill->inner->resize(spill->inner->ctx, at, size);
}

static void free_block(struct wal__spill *spill, struct wal__spill_block *block)
{
    WAL__ASSERT(spill->count > 0 && block < spill->blocks + spill->count);
    (void)munmap(block->at, block->size);
    (void)close(block->fd);
    *block = spill->blocks[--spill->count];
}

/* A block of zeros in an unnamed file; NULL if that is not possible. */
static void *create_block(struct wal__spill *spill, size_t size)
{
    struct wal__spill_block *blocks =
        wal__heap_grow_array(spill->inner, spill->blocks, spill->count,
                             &spill->capacity, sizeof(*blocks));
    void *at = MAP_FAILED;
    int fd;

    if (blocks == NULL) {
        return NULL;
    }
    spill->blocks = blocks;
    fd = open(spill->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && fallocate(fd, 0, 0, (off_t)size) == 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return NULL;
    }
    blocks[spill->count++] = (struct wal__spill_block){at, size, fd};
    return at;
}

/* Grows the block's file; if that fails, moves the block to the inner heap. */
static void *grow_block(struct wal__spill *spill,
                        struct wal__spill_block *block, size_t size)
{
    void *at = MAP_FAILED;

    WAL__ASSERT(size > block->size);
    if (fallocate(block->fd, 0, 0, (off_t)size) == 0) {
        at = mremap(block->at, block->size, size, MREMAP_MAYMOVE);
    }
    if (at != MAP_FAILED) {
        block->at = at;
        block->size = size;
        return at;
    }
    at = inner_resize(spill, NULL, size);
    if (at != NULL) {
        memcpy(at, block->at, block->size);
        free_block(spill, block);
    }
    return at;
}

static void *spill_resize(void *ctx, void *at, size_t size)
{
    struct wal__spill *spill = ctx;
    struct wal__spill_block *block = find_block(spill, at);
    void *moved;

    if (block != NULL && size == 0) {
        free_block(spill, block);
        return NULL;
    }
    if (block != NULL) {
        return size <= block->size ? at : grow_block(spill, block, size);
    }
    if (size >= WAL__SPILL_SIZE && at == NULL) {
        at = create_block(spill, size);
        return at != NULL ? at : inner_resize(spill, NULL, size);
    }
    /* Only the inner heap knows the block's size, so it resizes the block
     * before it may move to a file. */
    at = inner_resize(spill, at, size);
    if (at == NULL || size < WAL__SPILL_SIZE) {
        return at;
    }
    moved = create_block(spill, size);
    if (moved == NULL) {
        return at;
    }
    memcpy(moved, at, size);
    (void)inner_resize(spill, at, 0);
    return moved;
}

void wal__spill_init(struct wal__spill *spill, const struct wal__heap *inner,
                     const char *directory)
{
    *spill = (struct wal__spill){
        .heap = {.resize = spill_resize, .ctx = spill},
        .inner = inner,
        .directory = directory,
    };
}

void wal__spill_deinit(struct wal__spill *spill)
{
    WAL__ASSERT(spill->count == 0);
    if (spill->inner != NULL) {
        wal__heap_free(spill->inner, spill->blocks);
    }
    spill->blocks = NULL;
}
