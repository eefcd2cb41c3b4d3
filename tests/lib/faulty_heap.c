/*
 * faulty_heap.c - see faulty_heap.h. Invariant: a failed allocation leaves the block as it was.
 */
#include "tests/lib/faulty_heap.h"

static bool is_failing(const struct faulty_heap *faulty, uint64_t number)
{
    return faulty->fail_at != 0 &&
           (number == faulty->fail_at || (faulty->sticky && number > faulty->fail_at));
}

static void *resize(void *ctx, void *at, size_t size)
{
    struct faulty_heap *faulty = ctx;
    const struct wal__heap *under = faulty->under;

    if (size == 0) {
        faulty->live -= at != NULL;
        return under->resize(under->ctx, at, 0);
    }
    if (is_failing(faulty, ++faulty->allocations)) {
        faulty->failures++;
        return NULL;
    }

    void *result = under->resize(under->ctx, at, size);

    faulty->live += at == NULL && result != NULL;
    return result;
}

void faulty_heap_init(struct faulty_heap *faulty, const struct wal__heap *under)
{
    faulty->heap = (struct wal__heap){.resize = resize, .ctx = faulty};
    faulty->under = under;
    faulty->allocations = 0;
    faulty->failures = 0;
    faulty->live = 0;
    faulty->fail_at = 0;
    faulty->sticky = false;
}

void faulty_heap_fail(struct faulty_heap *faulty, uint64_t nth, bool sticky)
{
    faulty->fail_at = nth == 0 ? 0 : faulty->allocations + nth;
    faulty->sticky = sticky;
}
