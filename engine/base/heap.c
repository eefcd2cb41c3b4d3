/*
 * heap.c - the allocator of the engine, and arenas, buffers and large blocks in unnamed files on it
 * (heap.h). Invariants: NULL always means that memory is exhausted, for any size; an arena that is
 * reset repeatedly keeps one block; a failure leaves a buffer unchanged; a block of a spill heap is
 * either in its table or from the inner heap.
 */
#include "engine/base/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/system.h"
#include "format/bytes/assert.h"

static void *libc_resize(void *ctx, void *block, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, size);
}

const struct wal__heap wal__heap_libc = {.resize = libc_resize};

void *wal__heap_alloc(const struct wal__heap *heap, size_t size)
{
    return wal__heap_resize(heap, NULL, size, 1);
}

void *wal__heap_zalloc(const struct wal__heap *heap, size_t size)
{
    void *block = wal__heap_alloc(heap, size);

    if (block != NULL) {
        memset(block, 0, size);
    }
    return block;
}

void *wal__heap_resize(const struct wal__heap *heap, void *block, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }

    size_t bytes = count * size;

    /* A size of zero would free the block. */
    return heap->resize(heap->ctx, block, bytes == 0 ? 1 : bytes);
}

bool wal__heap_grow_array(const struct wal__heap *heap, void *array, uint32_t count,
                          uint32_t *capacity, size_t size)
{
    uint32_t bigger = *capacity == 0 ? 8 : *capacity * 2;
    void *items;

    WAL__ASSERT(count <= *capacity);
    if (count < *capacity) {
        return true;
    }
    if (bigger < *capacity) {
        return false;
    }
    memcpy(&items, array, sizeof(items));
    items = wal__heap_resize(heap, items, bigger, size);
    if (items == NULL) {
        return false;
    }
    memcpy(array, &items, sizeof(items));
    *capacity = bigger;
    WAL__ASSERT(count < *capacity);
    return true;
}

void wal__heap_free(const struct wal__heap *heap, void *block)
{
    /* A zeroed struct has neither memory nor a heap. */
    if (block != NULL) {
        (void)heap->resize(heap->ctx, block, 0);
    }
}

/* --- arenas ------------------------------------------------------------- */

#define BLOCK_SIZE 65536

static void *alloc_block(void *ctx, size_t size, size_t *got)
{
    struct wal__heap_arena *arena = ctx;
    void *block;

    if (!WAL__HEAP_GROW(arena->heap, arena->blocks, arena->count, arena->capacity)) {
        arena->has_failed = true;
        return NULL;
    }
    size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    block = wal__heap_alloc(arena->heap, size);
    if (block == NULL) {
        arena->has_failed = true;
        return NULL;
    }
    if (arena->count == 0) {
        arena->first_size = size;
    }
    WAL__ASSERT(arena->count < arena->capacity);
    arena->blocks[arena->count++] = block;
    *got = size;
    return block;
}

void wal__heap_arena_init(struct wal__heap_arena *arena, const struct wal__heap *heap)
{
    *arena =
        (struct wal__heap_arena){.arena = {.alloc_block = alloc_block, .ctx = arena}, .heap = heap};
}

void wal__heap_arena_reset(struct wal__heap_arena *arena)
{
    if (arena->count == 0) {
        return;
    }
    if (arena->first_size > BLOCK_SIZE) {
        /* Do not keep the memory of one large item. */
        wal__heap_arena_deinit(arena);
        return;
    }
    while (arena->count > 1) {
        wal__heap_free(arena->heap, arena->blocks[--arena->count]);
    }
    arena->arena.at = arena->blocks[0];
    arena->arena.end = arena->arena.at + arena->first_size;
}

void wal__heap_arena_deinit(struct wal__heap_arena *arena)
{
    while (arena->count > 0) {
        wal__heap_free(arena->heap, arena->blocks[--arena->count]);
    }
    wal__heap_free(arena->heap, arena->blocks);
    wal__heap_arena_init(arena, arena->heap);
}

struct wal__json_span wal__json_quote(struct wal__arena *arena, struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    return span.size > 0 ? wal__arena_escape(arena, span) : span;
}

struct wal_slice wal__slice_from_text(const char *text)
{
    return (struct wal_slice){text, text != NULL ? strlen(text) : 0};
}

bool wal__slice_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

char *wal__heap_copy_text(const struct wal__heap *heap, const void *data, size_t size)
{
    char *text = wal__heap_alloc(heap, size + 1);

    if (text != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
    }
    return text;
}

/* --- buffers ------------------------------------------------------------ */

enum { BUF_CAPACITY_MIN = 64 };

void wal__buf_init(struct wal__buf *buf, const struct wal__heap *heap)
{
    *buf = (struct wal__buf){.heap = heap};
}

void wal__buf_deinit(struct wal__buf *buf)
{
    wal__heap_free(buf->heap, buf->data);
    *buf = (struct wal__buf){.heap = buf->heap};
}

/* Doubles, so that appending n bytes copies O(n). */
static enum wal_status grow(struct wal__buf *buf, size_t needed)
{
    size_t capacity = BUF_CAPACITY_MIN;

    if (buf->capacity > SIZE_MAX / 2) {
        capacity = SIZE_MAX;
    } else if (buf->capacity * 2 > capacity) {
        capacity = buf->capacity * 2;
    }
    if (capacity < needed) {
        capacity = needed;
    }

    uint8_t *data = wal__heap_resize(buf->heap, buf->data, capacity, 1);

    if (data == NULL) {
        return WAL_ENOMEM;
    }
    buf->data = data;
    buf->capacity = capacity;
    return WAL_OK;
}

enum wal_status wal__buf_reserve(struct wal__buf *buf, size_t more, uint8_t **end)
{
    WAL__ASSERT(buf->size <= buf->capacity);
    if (more > SIZE_MAX - buf->size) {
        return WAL_ENOMEM;
    }
    if (buf->data == NULL || buf->size + more > buf->capacity) {
        enum wal_status status = grow(buf, buf->size + more);

        if (status != WAL_OK) {
            return status;
        }
    }
    WAL__ASSERT(more <= buf->capacity - buf->size);
    *end = buf->data + buf->size;
    return WAL_OK;
}

enum wal_status wal__buf_append(struct wal__buf *buf, const void *data, size_t size)
{
    uint8_t *end;
    enum wal_status status = wal__buf_reserve(buf, size, &end);

    if (status != WAL_OK) {
        return status;
    }
    /* memcpy must not get the null pointer that an empty slice may have. */
    if (size > 0) {
        memcpy(end, data, size);
        buf->size += size;
    }
    return WAL_OK;
}

/* --- large blocks in files ----------------------------------------------- */

static struct wal__spill_block *find_block(const struct wal__spill *spill, const void *at)
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
    void *at = MAP_FAILED;
    int fd;

    if (!WAL__HEAP_GROW(spill->inner, spill->blocks, spill->count, spill->capacity)) {
        return NULL;
    }
    fd = wal__system_unnamed_file(spill->directory);
    if (fd >= 0 && wal__system_allocate(fd, size) == 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return NULL;
    }
    spill->blocks[spill->count++] = (struct wal__spill_block){at, size, fd};
    return at;
}

/* Grows the block's file; if that fails, moves the block to the inner heap. */
static void *grow_block(struct wal__spill *spill, struct wal__spill_block *block, size_t size)
{
    void *at = MAP_FAILED;

    WAL__ASSERT(size > block->size);
    if (wal__system_allocate(block->fd, size) == 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
    }
    if (at != MAP_FAILED) {
        (void)munmap(block->at, block->size);
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
    /* Only the inner heap knows the block's size, so it resizes the block before it may move to a
     * file. */
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

void wal__spill_init(struct wal__spill *spill, const struct wal__heap *inner, const char *directory)
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
