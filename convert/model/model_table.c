/*
 * model_table.c - a hash table of spans, and a hash set (model_table.h). Both use open addressing
 * with linear probing.
 *
 * Invariant: at most three quarters of the slots are in use.
 */
#include "convert/model/model_table.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_text.h"

#define FIRST_CAPACITY 256

static struct wal__model_table_slot *find_slot(const struct wal__model_table *table, uint64_t key)
{
    size_t at = (size_t)key & (table->capacity - 1);

    WAL__ASSERT(table->count < table->capacity);
    while (table->entries[at].key != 0 && table->entries[at].key != key) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entries[at];
}

static bool grow(struct wal__model_table *table)
{
    struct wal__model_table larger = {.arena = table->arena, .base = table->base};

    larger.capacity = table->capacity > 0 ? 2 * table->capacity : FIRST_CAPACITY;
    larger.entries = wal__arena_calloc(table->arena, larger.capacity * sizeof(larger.entries[0]));
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].key != 0) {
            *find_slot(&larger, table->entries[i].key) = table->entries[i];
        }
    }
    larger.count = table->count;
    *table = larger;
    return true;
}

bool wal__model_table_put(struct wal__model_table *table, uint64_t key, struct wal__json_span value)
{
    struct wal__model_table_slot *entry;

    if (4 * table->count >= 3 * table->capacity && !grow(table)) {
        return false;
    }
    entry = find_slot(table, key);
    table->count += entry->key == 0 ? 1 : 0;
    entry->key = key;
    entry->value = value;
    return true;
}

bool wal__model_table_get(const struct wal__model_table *table, uint64_t key,
                          struct wal__json_span *value)
{
    for (; table != NULL; table = table->base) {
        const struct wal__model_table_slot *entry =
            table->capacity > 0 ? find_slot(table, key) : NULL;
        if (entry != NULL && entry->key != 0) {
            *value = entry->value;
            return true;
        }
    }
    return false;
}

static uint32_t *find_hash(const struct wal__model_set *set, uint32_t hash)
{
    size_t at = hash & (set->capacity - 1);

    WAL__ASSERT(set->count < set->capacity);
    while (set->hashes[at] != 0 && set->hashes[at] != hash) {
        at = (at + 1) & (set->capacity - 1);
    }
    return &set->hashes[at];
}

static bool grow_set(struct wal__model_set *set)
{
    struct wal__model_set larger = {.arena = set->arena, .count = set->count, .base = set->base};

    larger.capacity = set->capacity > 0 ? 2 * set->capacity : FIRST_CAPACITY;
    larger.hashes = wal__arena_calloc(set->arena, larger.capacity * sizeof(larger.hashes[0]));
    if (larger.hashes == NULL) {
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->hashes[i] != 0) {
            *find_hash(&larger, set->hashes[i]) = set->hashes[i];
        }
    }
    *set = larger;
    return true;
}

bool wal__model_set_put(struct wal__model_set *set, uint32_t hash, bool *was_present)
{
    uint32_t *at;

    WAL__ASSERT(hash != 0);
    for (const struct wal__model_set *base = set->base; base != NULL; base = base->base) {
        if (base->capacity > 0 && *find_hash(base, hash) != 0) {
            *was_present = true;
            return true;
        }
    }
    if (4 * set->count >= 3 * set->capacity && !grow_set(set)) {
        return false;
    }
    at = find_hash(set, hash);
    *was_present = *at != 0;
    set->count += *at != 0 ? 0 : 1;
    *at = hash;
    return true;
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xBF58476D1CE4E5B9);
    value ^= value >> 27;
    value *= UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static uint64_t hash_byte(uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001B3);
}

static uint64_t finalize(uint64_t hash)
{
    hash = mix(hash);
    return hash != 0 ? hash : 1;
}

uint64_t wal__model_hash(uint64_t seed, struct wal__json_span bytes)
{
    uint64_t hash = mix(seed + UINT64_C(0xCBF29CE484222325));

    for (size_t i = 0; i < bytes.size; i++) {
        hash = hash_byte(hash, bytes.data[i]);
    }
    return finalize(hash);
}

uint64_t wal__model_text_hash(const char *text)
{
    return wal__model_hash(0, (struct wal__json_span){(const uint8_t *)text, strlen(text)});
}

uint64_t wal__model_string_hash(uint64_t seed, struct wal__json_span string)
{
    uint64_t hash = mix(seed + UINT64_C(0xCBF29CE484222325));
    struct wal__json_span plain = {string.data, 0};
    const uint8_t *at;
    const uint8_t *end;
    uint32_t code_point;

    if (string.size < 2) {
        return wal__model_hash(seed, plain);
    }
    at = string.data + 1;
    end = string.data + string.size - 1;
    plain = (struct wal__json_span){at, string.size - 2};
    if (memchr(at, '\\', plain.size) == NULL) {
        return wal__model_hash(seed, plain);
    }
    while (at < end && wal__json_character_read(&at, end, &code_point)) {
        uint8_t utf8[4];
        size_t size = wal__json_character_write(code_point, utf8);
        for (size_t i = 0; i < size; i++) {
            hash = hash_byte(hash, utf8[i]);
        }
    }
    return finalize(hash);
}
