/*
 * ending.c - what is to be done when a test ends (test.h).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/bytes/assert.h"
#include "tests/lib/test.h"

struct ending {
    void (*end)(void *arg);
    void *arg;
    uint64_t number;
    struct ending *before;
};

static struct ending *last_ending;
static pthread_mutex_t endings_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mark_locked(void)
{
    return last_ending != NULL ? last_ending->number : 0;
}

void test_at_end(void (*end)(void *arg), void *arg)
{
    struct ending *ending = calloc(1, sizeof(*ending));

    WAL__ASSERT(ending != NULL);
    (void)pthread_mutex_lock(&endings_lock);
    *ending = (struct ending){end, arg, mark_locked() + 1, last_ending};
    last_ending = ending;
    (void)pthread_mutex_unlock(&endings_lock);
}

uint64_t test_mark(void)
{
    uint64_t mark;

    (void)pthread_mutex_lock(&endings_lock);
    mark = mark_locked();
    (void)pthread_mutex_unlock(&endings_lock);
    return mark;
}

/* Ends the last one that is newer than the mark and of arg, or null: of any. */
static bool end_one(uint64_t mark, const void *arg)
{
    struct ending **at = &last_ending;
    struct ending *found;

    (void)pthread_mutex_lock(&endings_lock);
    while (*at != NULL && arg != NULL && (*at)->arg != arg) {
        at = &(*at)->before;
    }
    found = *at != NULL && (*at)->number > mark ? *at : NULL;
    if (found != NULL) {
        *at = found->before;
    }
    (void)pthread_mutex_unlock(&endings_lock);
    if (found != NULL) {
        found->end(found->arg);
        free(found);
    }
    return found != NULL;
}

void test_end_since(uint64_t mark)
{
    while (end_one(mark, NULL)) {
    }
}

bool test_end_now(const void *arg)
{
    return arg != NULL && end_one(0, arg);
}

void *test_memory(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);

    WAL__ASSERT(memory != NULL);
    test_at_end(free, memory);
    return memory;
}

char *test_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *bytes;

    if (file == NULL) {
        fail_msg("%s cannot be opened", path);
    }
    (void)fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = test_memory(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}
