/*
 * ending.c - what is to be done when a test ends (test.h).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/bytes/assert.h"
#include "tests/lib/test.h"

struct ending {
    _Atomic(test_end_fn *) end; /* null: forgotten */
    void *arg;
    struct ending *before;
};

static struct ending *_Atomic last_ending;

void test_at_end(test_end_fn *end, void *arg)
{
    struct ending *ending = calloc(1, sizeof(*ending));

    WAL__ASSERT(ending != NULL);
    atomic_init(&ending->end, end);
    ending->arg = arg;
    ending->before = atomic_load(&last_ending);
    while (!atomic_compare_exchange_weak(&last_ending, &ending->before, ending)) {
    }
}

void *test_forget(const void *arg)
{
    struct ending *ending = atomic_load(&last_ending);

    while (ending != NULL && (ending->arg != arg || atomic_exchange(&ending->end, NULL) == NULL)) {
        ending = ending->before;
    }
    return (void *)(uintptr_t)arg;
}

const void *test_mark(void)
{
    return atomic_load(&last_ending);
}

void test_end_since(const void *mark)
{
    struct ending *ending;

    while ((ending = atomic_load(&last_ending)) != mark) {
        test_end_fn *end = atomic_load(&ending->end);

        atomic_store(&last_ending, ending->before);
        if (end != NULL) {
            end(ending->arg);
        }
        free(ending);
    }
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
