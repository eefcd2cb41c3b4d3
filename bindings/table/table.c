/*
 * table.c - copies of structs in arenas, and texts of bytes (table.h).
 */
#include "bindings/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory --------------------------------------------------------------- */

enum { BLOCK_SIZE = 8 * 1024, ALIGNMENT = 16 };

struct arena_block {
    struct arena_block *older;
    size_t size; /* of bytes[] */
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

static int add_block(struct arena *arena, size_t size)
{
    struct arena_block *block = malloc(sizeof(*block) + size);

    if (block == NULL) {
        return 0;
    }
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->next = block->bytes;
    arena->room = size;
    return 1;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t padding = (size_t)(-(uintptr_t)arena->next % ALIGNMENT);
    void *result;

    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    if (arena->blocks == NULL || padding > arena->room || size > arena->room - padding) {
        if (!add_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE)) {
            return NULL;
        }
        padding = 0;
    }
    result = arena->next + padding;
    arena_take(arena, padding + size);
    return result;
}

void *arena_calloc(struct arena *arena, size_t count, size_t size)
{
    void *result;

    if (size != 0 && count > SIZE_MAX / 2 / size) {
        return NULL;
    }
    result = arena_alloc(arena, count * size);
    if (result != NULL) {
        memset(result, 0, count * size);
    }
    return result;
}

uint8_t *arena_room(struct arena *arena, size_t *size)
{
    if (arena->room == 0 && !add_block(arena, BLOCK_SIZE)) {
        *size = 0;
        return NULL;
    }
    *size = arena->room;
    return arena->next;
}

void arena_take(struct arena *arena, size_t size)
{
    arena->next += size;
    arena->room -= size;
}

/* Frees the blocks after the first one. */
static void free_older(struct arena_block *block)
{
    while (block->older != NULL) {
        struct arena_block *older = block->older;

        block->older = older->older;
        free(older);
    }
}

void arena_reset(struct arena *arena)
{
    if (arena->blocks == NULL) {
        return;
    }
    if (arena->blocks->size > BLOCK_SIZE || arena->is_secret) {
        arena_destroy(arena);
        return;
    }
    free_older(arena->blocks);
    arena->next = arena->blocks->bytes;
    arena->room = arena->blocks->size;
}

void arena_destroy(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *block = arena->blocks;

        arena->blocks = block->older;
        if (arena->is_secret) {
            memory_clear(block->bytes, block->size);
        }
        free(block);
    }
    *arena = (struct arena){0};
}

void memory_clear(void *bytes, size_t size)
{
    volatile uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++) {
        at[i] = 0;
    }
}

/* --- lists ---------------------------------------------------------------- */

struct structs structs_of(const struct field *field, const char *filled)
{
    struct structs structs;

    memcpy(&structs.first, filled + field->offset, sizeof(structs.first));
    memcpy(&structs.count, filled + field->count, sizeof(structs.count));
    if (field->mask > 0 && structs.count > field->mask) {
        structs.count = field->mask;
    }
    structs.stride = structs.count > 0 ? *(const uint32_t *)(const void *)structs.first : 0;
    return structs;
}

void *list_add(struct list *list, struct arena *arena, size_t size)
{
    struct list_item *item = arena_calloc(arena, 1, size);

    if (item == NULL) {
        list->lacks_memory = true;
        return NULL;
    }
    if (list->last != NULL) {
        list->last->next = item;
    } else {
        list->first = item;
    }
    list->last = item;
    list->count++;
    return item;
}

/* Copies text, or an error if there is one, for an item of the list. */
static struct wal_slice list_copy_text(struct list *list, struct arena *arena,
                                       struct wal_slice text)
{
    char *copy;

    if (text.size == 0) {
        return (struct wal_slice){NULL, 0};
    }
    copy = arena_alloc(arena, text.size);
    if (copy == NULL) {
        list->lacks_memory = true;
        return (struct wal_slice){NULL, 0};
    }
    memcpy(copy, text.data, text.size);
    return (struct wal_slice){copy, text.size};
}

static const struct wal_error *list_copy_error(struct list *list, struct arena *arena,
                                               const struct wal_error *error)
{
    struct wal_error *copy;

    if (error == NULL) {
        return NULL;
    }
    copy = arena_alloc(arena, sizeof(*copy));
    if (copy == NULL) {
        list->lacks_memory = true;
        return NULL;
    }
    *copy = *error;
    return copy;
}

enum wal_status list_check(const struct list *list, enum wal_status status, struct wal_error *error)
{
    if (status < WAL_OK || !list->lacks_memory) {
        return status;
    }
    *error = (struct wal_error){.struct_size = sizeof(*error), .status = WAL_ENOMEM};
    snprintf(error->text, sizeof(error->text),
             "no memory for the result; the call itself succeeded");
    return WAL_ENOMEM;
}

/* Copies what a struct points to, but for structs. */
static void copy_flat(struct list *list, struct arena *arena, const struct table *table,
                      void *copied)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        void *place = (char *)copied + field->offset;

        if (field->kind <= FIELD_CONTENT) {
            struct wal_slice *text = place;

            *text = list_copy_text(list, arena, *text);
        } else if (field->kind == FIELD_ERROR) {
            const struct wal_error **error = place;

            *error = list_copy_error(list, arena, *error);
        }
    }
}

/* Copies the structs that a copied struct points to. */
static void copy_structs(struct list *list, struct arena *arena, const struct field *field,
                         char *copied)
{
    struct structs structs = structs_of(field, copied);
    uint32_t size = field->items->size;
    char *items = arena_calloc(arena, structs.count, size);

    list->lacks_memory |= items == NULL;
    structs.count = items == NULL ? 0 : structs.count;
    for (uint64_t i = 0; i < structs.count; i++) {
        char *item = items + i * size;

        memcpy(item, structs.first + i * structs.stride,
               structs.stride < size ? structs.stride : size);
        *(uint32_t *)(void *)item = size; /* struct_size */
        copy_flat(list, arena, field->items, item);
    }
    memcpy(copied + field->offset, &items, sizeof(items));
    memcpy(copied + field->count, &structs.count, sizeof(structs.count));
}

void list_add_struct(struct list *list, struct arena *arena, const struct table *table,
                     const void *filled)
{
    struct list_item *item = list_add(list, arena, sizeof(*item) + table->size);

    if (item == NULL) {
        return;
    }
    memcpy(item + 1, filled, table->size);
    copy_flat(list, arena, table, item + 1);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->fields[i].kind == FIELD_STRUCTS) {
            copy_structs(list, arena, &table->fields[i], (char *)(item + 1));
        }
    }
}

enum wal_status list_fill(struct list *list, struct arena *arena, const struct table *table,
                          table_next *next, void *cursor, uint32_t limit, struct wal_error *error)
{
    union table_item item;
    enum wal_status status = WAL_OK;

    memset(&item, 0, table->size);
    item.struct_size = table->size;
    while (list->count < limit && !list->lacks_memory &&
           (status = next(cursor, &item, error)) == WAL_OK) {
        list_add_struct(list, arena, table, &item);
    }
    return list_check(list, status == WAL_END ? WAL_OK : status, error);
}

/* --- texts of bytes ------------------------------------------------------- */

void hex_write(char *text, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool digest_read(struct wal_slice text, uint8_t digest[WAL_DIGEST_SIZE])
{
    const char *digits = text.data;
    bool ok = text.size == HEX_SIZE;

    for (size_t i = 0; ok && i < WAL_DIGEST_SIZE; i++) {
        int high = digit_value(digits[2 * i]);
        int low = digit_value(digits[2 * i + 1]);

        ok = high >= 0 && low >= 0;
        if (ok) {
            digest[i] = (uint8_t)(high * 16 + low);
        }
    }
    return ok;
}

bool digest_is_zero(const uint8_t digest[WAL_DIGEST_SIZE])
{
    static const uint8_t zeros[WAL_DIGEST_SIZE];

    return memcmp(digest, zeros, sizeof(zeros)) == 0;
}

void uuid_write(char text[UUID_TEXT_SIZE], const uint8_t uuid[16])
{
    static const size_t groups[] = {4, 2, 2, 2, 6};

    for (size_t i = 0; i < 5; i++) {
        hex_write(text, uuid, groups[i]);
        uuid += groups[i];
        text += 2 * groups[i];
        *text++ = i < 4 ? '-' : '\0';
    }
}
