/*
 * canaries.c - looks in all files of the store, as they are and decompressed, and among the words
 * of its search indexes, for texts that were erased (model.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

/* A canary of the reference. */
struct canary {
    uint32_t number;
    bool is_erased;
    uint64_t sequence; /* of a record that has it */
};

struct search {
    struct differential *run;
    struct canary *canaries; /* by number; those that live first */
    size_t count;
    size_t capacity;
    size_t erased;
};

static int compare(const void *a, const void *b)
{
    const struct canary *left = a;
    const struct canary *right = b;

    if (left->number != right->number) {
        return left->number < right->number ? -1 : 1;
    }
    return (int)left->is_erased - (int)right->is_erased;
}

/* The canaries of all records. In a copy of sessions only those of redacted entries count. */
static void collect(struct search *search, bool is_transfer)
{
    const struct reference *ref = search->run->ref;
    uint64_t count = reference_last_sequence(ref);
    size_t kept = 0;

    for (uint64_t sequence = 1; sequence <= count; sequence++) {
        struct wal_slice texts[2];
        bool is_erased = reference_is_erased(ref, sequence, texts);

        is_erased = is_transfer ? reference_is_redacted(ref, sequence) : is_erased;

        for (int i = 0; i < 2; i++) {
            uint32_t number;

            while (differential_next_canary(&texts[i], &number)) {
                if (search->count == search->capacity) {
                    search->capacity = search->capacity * 2 + 64;
                    search->canaries =
                        realloc(search->canaries, search->capacity * sizeof(struct canary));
                    WAL__ASSERT(search->canaries != NULL);
                }
                search->canaries[search->count++] = (struct canary){number, is_erased, sequence};
            }
        }
    }
    if (search->count == 0) {
        return;
    }
    qsort(search->canaries, search->count, sizeof(struct canary), compare);
    for (size_t i = 0; i < search->count; i++) {
        if (kept == 0 || search->canaries[kept - 1].number != search->canaries[i].number) {
            search->canaries[kept++] = search->canaries[i];
            search->erased += search->canaries[i].is_erased;
        }
    }
    search->count = kept;
}

static void search_bytes(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    struct search *search = ctx;
    struct wal_slice left = {bytes, size};
    uint32_t number;

    while (differential_next_canary(&left, &number)) {
        const struct canary key = {.number = number};
        const struct canary *found = NULL;
        size_t low = 0;
        size_t high = search->count;

        while (low < high) {
            size_t middle = (low + high) / 2;

            found = &search->canaries[middle];
            if (found->number == key.number) {
                break;
            }
            low = found->number < key.number ? middle + 1 : low;
            high = found->number < key.number ? high : middle;
        }
        if (low < high && found->is_erased) {
            differential_fail(search->run,
                              "%s has canary %08u of record %" PRIu64 ", which was erased", file,
                              number, found->sequence);
        }
    }
}

void model_search(struct model *model, struct differential *run, const char *root)
{
    struct search search = {.run = run};

    run->operation = "search for what was erased";
    collect(&search, root == model->other);
    store_bytes_visit_directory(root, search_bytes, &search);
    model_visit_words(root, search_bytes, &search);
    model->tally.erasures++;
    model->tally.canaries += search.erased;
    free(search.canaries);
}
