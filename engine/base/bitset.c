/*
 * bitset.c - a set of numbers (bitset.h). No section of SPEC.md. Invariant:
 * members are never removed, and pages never move. One writer.
 */
#include "engine/base/bitset.h"

#include <string.h>

#include "format/bytes/assert.h"

enum {
    WORD_SHIFT = 6,
    PAGE_SHIFT = 15,
    PAGE_WORDS = 1 << (PAGE_SHIFT - WORD_SHIFT)
};

void wal__bitset_init(struct wal__bitset *bits, const struct wal__heap *heap)
{
    *bits = (struct wal__bitset){.heap = heap};
}

void wal__bitset_deinit(struct wal__bitset *bits)
{
    for (uint32_t i = 0; i < bits->page_count; i++) {
        wal__heap_free(bits->heap, bits->pages[i]);
    }
    wal__heap_free(bits->heap, bits->pages);
    *bits = (struct wal__bitset){.heap = bits->heap};
}

/* Extends the page table up to this page. */
static enum wal_status reserve_pages(struct wal__bitset *bits, uint32_t page)
{
    uint64_t **pages;

    if (page < bits->page_count) {
        return WAL_OK;
    }
    pages = wal__heap_resize(bits->heap, bits->pages, (size_t)page + 1,
                             sizeof(*pages));
    if (pages == NULL) {
        return WAL_ENOMEM;
    }
    memset(pages + bits->page_count, 0,
           (page + 1 - bits->page_count) * sizeof(*pages));
    bits->pages = pages;
    bits->page_count = page + 1;
    WAL__ASSERT(page < bits->page_count);
    return WAL_OK;
}

enum wal_status wal__bitset_reserve(struct wal__bitset *bits, uint32_t number)
{
    uint32_t page = number >> PAGE_SHIFT;
    enum wal_status status = reserve_pages(bits, page);

    if (status != WAL_OK || bits->pages[page] != NULL) {
        return status;
    }
    bits->pages[page] =
        wal__heap_zalloc(bits->heap, PAGE_WORDS * sizeof(*bits->pages[page]));
    return bits->pages[page] == NULL ? WAL_ENOMEM : WAL_OK;
}

/* The word of a number whose page is allocated. */
static uint64_t *find_word(const struct wal__bitset *bits, uint32_t number)
{
    return &bits->pages[number >> PAGE_SHIFT]
                       [(number >> WORD_SHIFT) % PAGE_WORDS];
}

static uint64_t bit_mask(uint32_t number)
{
    return UINT64_C(1) << (number & ((1u << WORD_SHIFT) - 1));
}

void wal__bitset_set(struct wal__bitset *bits, uint32_t number)
{
    WAL__ASSERT(number >> PAGE_SHIFT < bits->page_count &&
                bits->pages[number >> PAGE_SHIFT] != NULL);
    *find_word(bits, number) |= bit_mask(number);
}

bool wal__bitset_contains(const struct wal__bitset *bits, uint32_t number)
{
    uint32_t page = number >> PAGE_SHIFT;

    return page < bits->page_count && bits->pages[page] != NULL &&
           (*find_word(bits, number) & bit_mask(number)) != 0;
}
