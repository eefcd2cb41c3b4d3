/*
 * common_heap.h - memory that a process and those that it forks later have in common, at the same
 * addresses: what one of them writes, all of them see. A process that never calls common_heap_init
 * gets blocks of the C library.
 *
 * Any thread and process. Running out of memory aborts.
 */
#ifndef AGENTWAL_TESTS_LIB_COMMON_HEAP_H
#define AGENTWAL_TESTS_LIB_COMMON_HEAP_H

#include <stddef.h>

/* From now on blocks are common, of a region of this size. */
void common_heap_init(size_t size);
/* Takes back all blocks but this one, which was the first. */
void common_heap_clear_but(const void *first);

/* Zeroed; never null. */
void *common_alloc(size_t count, size_t size);
/* As realloc; the new bytes of a common block are not zeroed. */
void *common_resize(void *block, size_t size);
void common_free(void *block);

#endif
