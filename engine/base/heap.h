/*
 * heap.h - the allocator interface of the engine, and what grows on it: arenas, buffers, large
 * blocks in files. All allocations go through it, so that a test can fail the Nth one. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAP_H
#define AGENTWAL_ENGINE_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "format/json/arena.h"

struct wal__heap {
    /* Allocates when block is NULL, frees when size is 0, else resizes. */
    void *(*resize)(void *ctx, void *block, size_t size);
    void *ctx;
};

/* The C library's heap. */
extern const struct wal__heap wal__heap_libc;

/* NULL means that memory is exhausted, also for size 0. A product count x size that overflows
 * counts as exhausted. Freeing NULL needs no heap. */
void *wal__heap_alloc(const struct wal__heap *heap, size_t size);
void *wal__heap_zalloc(const struct wal__heap *heap, size_t size);
void *wal__heap_resize(const struct wal__heap *heap, void *block, size_t count, size_t size);
/* Makes room for one more than `count` items of an array, whose pointer is at `array`: moved, with
 * *capacity doubled, when it was full. False when memory is exhausted; the array and *capacity are
 * then unchanged. */
bool wal__heap_grow_array(const struct wal__heap *heap, void *array, uint32_t count,
                          uint32_t *capacity, size_t size) WAL_MUST_USE;
#define WAL__HEAP_GROW(heap, array, count, capacity) \
    wal__heap_grow_array(heap, &(array), count, &(capacity), sizeof((array)[0]))
void wal__heap_free(const struct wal__heap *heap, void *block);

/* --- arenas ------------------------------------------------------------- */

/* Arenas whose blocks are on the heap, and copies of texts. One thread at a time per arena. */

/* Must not move in memory: `arena` points back to it. */
struct wal__heap_arena {
    struct wal__arena arena;
    const struct wal__heap *heap;
    void **blocks;
    uint32_t count;
    uint32_t capacity;
    size_t first_size; /* bytes of the first block */
    bool has_failed;   /* an allocation failed */
};

void wal__heap_arena_init(struct wal__heap_arena *arena, const struct wal__heap *heap);

/* Frees everything allocated from the arena; keeps one block. */
void wal__heap_arena_reset(struct wal__heap_arena *arena);
void wal__heap_arena_deinit(struct wal__heap_arena *arena);

/* Quotes the text as a JSON string; empty for an empty text; data is NULL without memory. */
struct wal__json_span wal__json_quote(struct wal__arena *arena, struct wal_slice text);

/* Returns the text as a slice; empty for NULL. */
struct wal_slice wal__slice_from_text(const char *text);
bool wal__slice_equal(struct wal_slice a, struct wal_slice b);

/* Copies the bytes and appends a NUL; NULL: no memory. */
char *wal__heap_copy_text(const struct wal__heap *heap, const void *data, size_t size);

/* --- buffers ------------------------------------------------------------ */

/* A growing byte buffer. init/deinit work on the caller's memory; a zeroed struct with a heap is a
 * valid empty buffer. One thread at a time. */
struct wal__buf {
    const struct wal__heap *heap;
    uint8_t *data;
    size_t size;
    size_t capacity;
};

void wal__buf_init(struct wal__buf *buf, const struct wal__heap *heap);
void wal__buf_deinit(struct wal__buf *buf);

/* Ensures capacity for `more` bytes after `size`; *end points to the first of them until the next
 * reserve or append. Size is unchanged. WAL_ENOMEM leaves the buffer unchanged. */
enum wal_status wal__buf_reserve(struct wal__buf *buf, size_t more, uint8_t **end) WAL_MUST_USE;
/* Appends `size` bytes. data must not point into the buffer, which may move. */
enum wal_status wal__buf_append(struct wal__buf *buf, const void *data, size_t size) WAL_MUST_USE;

/* --- large blocks in files ----------------------------------------------- */

/*
 * A heap whose large blocks are mapped unnamed files, so that the system can write them out: the
 * index of a session with millions of entries need not fit into memory. Small blocks come from an
 * inner heap, and large ones too if no file can be created.
 *
 * Invariant: a file has disk space for its whole block, so that only a damaged device makes an
 * access fail. One thread at a time.
 */

/* Blocks of this size and above are files. */
#define WAL__SPILL_SIZE ((size_t)4 << 20)

struct wal__spill_block {
    void *at;
    size_t size;
    int fd;
};

struct wal__spill {
    struct wal__heap heap; /* the heap that callers use */
    const struct wal__heap *inner;
    const char *directory; /* where the files are created */
    struct wal__spill_block *blocks;
    uint32_t count;
    uint32_t capacity;
};

/* `inner` and `directory` must outlive it. */
void wal__spill_init(struct wal__spill *spill, const struct wal__heap *inner,
                     const char *directory);

/* All blocks must have been freed. */
void wal__spill_deinit(struct wal__spill *spill);

#endif
