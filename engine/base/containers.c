/*
 * containers.c - a set of numbers, a multimap and a table of ids, both with linear probing, and
 * heapsort with its binary heap (containers.h).
 *
 * Invariants: members of a set are never removed, and its pages never move. At most three quarters
 * of the slots of a map are used, so that every probe ends at a free slot; nothing is ever removed,
 * so that a probe from a hash's home slot passes all its values before a free slot. An item of a
 * heap is not greater than its parent, items[(i - 1) / 2].
 */
#include "engine/base/containers.h"

#include <stdbool.h>
#include <string.h>

#include "format/bytes/assert.h"

/* --- a set of numbers --------------------------------------------------- */

enum { WORD_SHIFT = 6, PAGE_SHIFT = 15, PAGE_WORDS = 1 << (PAGE_SHIFT - WORD_SHIFT) };

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
    pages = wal__heap_resize(bits->heap, bits->pages, (size_t)page + 1, sizeof(*pages));
    if (pages == NULL) {
        return WAL_ENOMEM;
    }
    memset(pages + bits->page_count, 0, (page + 1 - bits->page_count) * sizeof(*pages));
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
    bits->pages[page] = wal__heap_zalloc(bits->heap, PAGE_WORDS * sizeof(*bits->pages[page]));
    return bits->pages[page] == NULL ? WAL_ENOMEM : WAL_OK;
}

/* The word of a number whose page is allocated. */
static uint64_t *find_word(const struct wal__bitset *bits, uint32_t number)
{
    return &bits->pages[number >> PAGE_SHIFT][(number >> WORD_SHIFT) % PAGE_WORDS];
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

/* --- a map from hashes -------------------------------------------------- */

/* The maximum keeps slot + 1 within the 32 bits of a cursor. */
#define CAPACITY_MIN UINT32_C(16)
#define CAPACITY_MAX (UINT32_C(1) << 31)

void wal__hashmap_init(struct wal__hashmap *map, const struct wal__heap *heap)
{
    *map = (struct wal__hashmap){.heap = heap};
}

void wal__hashmap_deinit(struct wal__hashmap *map)
{
    wal__heap_free(map->heap, map->hashes);
    wal__heap_free(map->heap, map->values);
    *map = (struct wal__hashmap){.heap = map->heap};
}

static bool fits_load_factor(uint32_t capacity, uint64_t count)
{
    return count <= capacity / 4 * UINT64_C(3);
}

/* Where a probe begins. Sequential numbers are used as hashes too; unmixed they would form one
 * cluster, which every miss would scan. */
static uint32_t home_slot(uint64_t hash, uint32_t mask)
{
    return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
}

/* `stored` is a value + 1. There is a free slot. */
static void insert_slot(struct wal__hashmap *map, uint64_t hash, uint32_t stored)
{
    uint32_t mask = map->capacity - 1;
    uint32_t slot = home_slot(hash, mask);

    WAL__ASSERT(map->count < map->capacity && stored != 0);
    while (map->values[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    map->hashes[slot] = hash;
    map->values[slot] = stored;
    map->count++;
}

static enum wal_status rehash(struct wal__hashmap *map, uint32_t capacity)
{
    struct wal__hashmap bigger = {.heap = map->heap, .capacity = capacity};

    bigger.hashes = wal__heap_resize(map->heap, NULL, capacity, sizeof(*bigger.hashes));
    bigger.values = wal__heap_resize(map->heap, NULL, capacity, sizeof(*bigger.values));
    if (bigger.hashes == NULL || bigger.values == NULL) {
        wal__hashmap_deinit(&bigger);
        return WAL_ENOMEM;
    }
    memset(bigger.values, 0, capacity * sizeof(*bigger.values));
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->values[i] != 0) {
            insert_slot(&bigger, map->hashes[i], map->values[i]);
        }
    }
    WAL__ASSERT(bigger.count == map->count);
    wal__hashmap_deinit(map);
    *map = bigger;
    return WAL_OK;
}

enum wal_status wal__hashmap_reserve(struct wal__hashmap *map, uint32_t more)
{
    uint64_t needed = (uint64_t)map->count + more;
    uint32_t capacity = map->capacity;

    if (fits_load_factor(capacity, needed)) {
        return WAL_OK;
    }
    if (!fits_load_factor(CAPACITY_MAX, needed)) {
        return WAL_ENOMEM;
    }
    if (capacity == 0) {
        capacity = CAPACITY_MIN;
    }
    while (!fits_load_factor(capacity, needed)) {
        capacity *= 2;
    }
    return rehash(map, capacity);
}

enum wal_status wal__hashmap_add(struct wal__hashmap *map, uint64_t hash, uint32_t value)
{
    WAL__ASSERT(value < UINT32_MAX);

    enum wal_status status = wal__hashmap_reserve(map, 1);

    if (status != WAL_OK) {
        return status;
    }
    insert_slot(map, hash, value + 1);
    return WAL_OK;
}

bool wal__hashmap_find(const struct wal__hashmap *map, uint64_t hash, uint32_t *cursor,
                       uint32_t *value)
{
    if (map->capacity == 0) {
        return false;
    }

    /* The cursor is the slot after the one found last. */
    uint32_t mask = map->capacity - 1;
    uint32_t slot = *cursor == 0 ? home_slot(hash, mask) : *cursor & mask;

    while (map->values[slot] != 0) {
        if (map->hashes[slot] == hash) {
            *cursor = slot + 1;
            *value = map->values[slot] - 1;
            return true;
        }
        slot = (slot + 1) & mask;
    }
    return false;
}

/* --- heapsort ----------------------------------------------------------- */

static bool is_less(const struct wal__heapsort_item *a, const struct wal__heapsort_item *b)
{
    if (a->key != b->key) {
        return a->key < b->key;
    }
    return a->tie < b->tie || (a->tie == b->tie && a->value < b->value);
}

/* Places `item` in the subtree of the free slot `hole`. */
static void sift_down(struct wal__heapsort_item *items, uint32_t count, uint32_t hole,
                      struct wal__heapsort_item item)
{
    uint64_t child = 2 * (uint64_t)hole + 1;

    WAL__ASSERT(hole < count);

    while (child < count) {
        if (child + 1 < count && is_less(&items[child], &items[child + 1])) {
            child++;
        }
        if (!is_less(&item, &items[child])) {
            break;
        }
        items[hole] = items[child];
        hole = (uint32_t)child;
        child = 2 * child + 1;
    }
    items[hole] = item;
}

void wal__heapsort_make_heap(struct wal__heapsort_item *items, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--) {
        sift_down(items, count, i - 1, items[i - 1]);
    }
}

struct wal__heapsort_item wal__heapsort_pop(struct wal__heapsort_item *items, uint32_t *count)
{
    WAL__ASSERT(*count > 0);

    struct wal__heapsort_item top = items[0];

    (*count)--;
    if (*count > 0) {
        sift_down(items, *count, 0, items[*count]);
    }
    return top;
}

void wal__heapsort_sort(struct wal__heapsort_item *items, uint32_t count)
{
    wal__heapsort_make_heap(items, count);
    while (count > 1) {
        struct wal__heapsort_item top = wal__heapsort_pop(items, &count);

        items[count] = top;
    }
}

/* --- ids ------------------------------------------------------------------ */

#define CAPACITY_MIN UINT32_C(16)
#define CAPACITY_MAX (UINT32_C(1) << 31)

static uint32_t fold_hash(uint64_t id_hash)
{
    return (uint32_t)(id_hash ^ id_hash >> 32);
}

static bool fits(uint32_t capacity, uint64_t count)
{
    return count <= capacity / 4 * UINT64_C(3);
}

void wal__id_table_clear(struct wal__id_table *table, const struct wal__heap *heap)
{
    wal__heap_free(heap, table->slots);
    *table = (struct wal__id_table){NULL, 0, 0};
}

static void insert(struct wal__id_slot *slots, uint32_t capacity, const struct wal__id_slot *id)
{
    uint32_t mask = capacity - 1;
    uint32_t slot = id->hash & mask;

    WAL__ASSERT((capacity & mask) == 0 && id->number != 0);
    while (slots[slot].number != 0) {
        slot = (slot + 1) & mask;
    }
    slots[slot] = *id;
}

/* Moves the ids to a table of another capacity. */
static enum wal_status resize(struct wal__id_table *table, const struct wal__heap *heap,
                              uint32_t capacity)
{
    struct wal__id_slot *slots = wal__heap_zalloc(heap, capacity * sizeof(*slots));

    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].number != 0) {
            insert(slots, capacity, &table->slots[i]);
        }
    }
    wal__heap_free(heap, table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return WAL_OK;
}

enum wal_status wal__id_table_reserve(struct wal__id_table *table, const struct wal__heap *heap,
                                      uint64_t count)
{
    uint32_t capacity = table->capacity == 0 ? CAPACITY_MIN : table->capacity;

    if (fits(table->capacity, count)) {
        return WAL_OK;
    }
    while (!fits(capacity, count)) {
        if (capacity == CAPACITY_MAX) {
            return WAL_ENOMEM;
        }
        capacity *= 2;
    }
    return resize(table, heap, capacity);
}

void wal__id_table_add(struct wal__id_table *table, uint64_t id_hash, uint64_t position,
                       uint32_t number)
{
    WAL__ASSERT(fits(table->capacity, (uint64_t)table->count + 1));
    insert(table->slots, table->capacity,
           &(struct wal__id_slot){position, fold_hash(id_hash), number});
    table->count++;
}

enum wal_status wal__id_table_merge(struct wal__id_table *table, const struct wal__heap *heap,
                                    const struct wal__id_table *from, uint32_t last)
{
    enum wal_status status =
        wal__id_table_reserve(table, heap, (uint64_t)table->count + from->count);

    for (uint32_t i = 0; i < from->capacity && status == WAL_OK; i++) {
        if (from->slots[i].number != 0 && from->slots[i].number <= last) {
            insert(table->slots, table->capacity, &from->slots[i]);
            table->count++;
        }
    }
    return status;
}

const struct wal__id_slot *wal__id_table_find(const struct wal__id_table *table, uint64_t id_hash,
                                              uint32_t last, uint32_t *skip)
{
    if (table->capacity == 0) {
        return NULL;
    }

    uint32_t hash = fold_hash(id_hash);
    uint32_t mask = table->capacity - 1;
    uint32_t slot = hash & mask;

    for (; table->slots[slot].number != 0; slot = (slot + 1) & mask) {
        if (table->slots[slot].hash != hash || table->slots[slot].number > last) {
            continue;
        }
        if (*skip == 0) {
            return &table->slots[slot];
        }
        (*skip)--;
    }
    return NULL;
}
