/*
 * id_table.c - open addressing with linear probing (id_table.h). At most three
 * quarters of the slots are used, so that every probe ends.
 */
#include "engine/store/id_table.h"

#include "format/bytes/assert.h"

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

void wal__id_table_clear(struct wal__id_table *table,
                         const struct wal__heap *heap)
{
    wal__heap_free(heap, table->slots);
    *table = (struct wal__id_table){NULL, 0, 0};
}

static void insert(struct wal__id_slot *slots, uint32_t capacity,
                   const struct wal__id_slot *id)
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
static enum wal_status resize(struct wal__id_table *table,
                              const struct wal__heap *heap, uint32_t capacity)
{
    struct wal__id_slot *slots =
        wal__heap_zalloc(heap, capacity * sizeof(*slots));

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

enum wal_status wal__id_table_reserve(struct wal__id_table *table,
                                      const struct wal__heap *heap,
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

void wal__id_table_add(struct wal__id_table *table, uint64_t id_hash,
                       uint64_t position, uint32_t number)
{
    WAL__ASSERT(fits(table->capacity, (uint64_t)table->count + 1));
    insert(table->slots, table->capacity,
           &(struct wal__id_slot){position, fold_hash(id_hash), number});
    table->count++;
}

enum wal_status wal__id_table_merge(struct wal__id_table *table,
                                    const struct wal__heap *heap,
                                    const struct wal__id_table *from,
                                    uint32_t last)
{
    enum wal_status status = wal__id_table_reserve(
        table, heap, (uint64_t)table->count + from->count);

    for (uint32_t i = 0; i < from->capacity && status == WAL_OK; i++) {
        if (from->slots[i].number != 0 && from->slots[i].number <= last) {
            insert(table->slots, table->capacity, &from->slots[i]);
            table->count++;
        }
    }
    return status;
}

const struct wal__id_slot *wal__id_table_find(const struct wal__id_table *table,
                                              uint64_t id_hash, uint32_t last,
                                              uint32_t *skip)
{
    if (table->capacity == 0) {
        return NULL;
    }

    uint32_t hash = fold_hash(id_hash);
    uint32_t mask = table->capacity - 1;
    uint32_t slot = hash & mask;

    for (; table->slots[slot].number != 0; slot = (slot + 1) & mask) {
        if (table->slots[slot].hash != hash ||
            table->slots[slot].number > last) {
            continue;
        }
        if (*skip == 0) {
            return &table->slots[slot];
        }
        (*skip)--;
    }
    return NULL;
}
