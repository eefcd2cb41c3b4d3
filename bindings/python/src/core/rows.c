/*
 * rows.c - copies of structs (rows.h).
 */
#include "bindings/python/src/core/rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 16384, /* bytes of text */
    ITEM_MAX = 8192     /* bytes of a struct */
};

/* Text of rows. */
struct rows_chunk {
    struct rows_chunk *next;
    size_t used;
    size_t size;
    char text[];
};

/* Room for text; null: no memory. */
static char *text_room(struct rows *rows, size_t size)
{
    struct rows_chunk *chunk = rows->chunks;
    char *text;

    if (chunk == NULL || size > chunk->size - chunk->used) {
        size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

        chunk = malloc(sizeof(*chunk) + room);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = rows->chunks;
        chunk->used = 0;
        chunk->size = room;
        rows->chunks = chunk;
    }
    text = chunk->text + chunk->used;
    chunk->used += size;
    return text;
}

static bool is_slice(const struct value_field *field)
{
    return field->kind <= VALUE_PATH;
}

static bool copy_text(struct rows *rows, char *item)
{
    for (uint32_t i = 0; i < rows->table->count; i++) {
        const struct value_field *field = &rows->table->fields[i];
        struct wal_slice slice;
        char *text;

        if (!is_slice(field)) {
            continue;
        }
        memcpy(&slice, item + field->offset, sizeof(slice));
        if (slice.size == 0) {
            continue;
        }
        text = text_room(rows, (size_t)slice.size);
        if (text == NULL) {
            return false;
        }
        memcpy(text, slice.data, (size_t)slice.size);
        slice.data = text;
        memcpy(item + field->offset, &slice, sizeof(slice));
    }
    return true;
}

bool rows_add(struct rows *rows, const void *item)
{
    size_t stride = rows->table->stride;
    char *place;

    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity == 0 ? 1 : 2 * rows->capacity;
        char *items = realloc(rows->items, capacity * stride);

        if (items == NULL) {
            return false;
        }
        rows->items = items;
        rows->capacity = capacity;
    }
    place = rows->items + rows->count * stride;
    memcpy(place, item, stride);
    if (!copy_text(rows, place)) {
        return false;
    }
    rows->count++;
    return true;
}

void rows_free(struct rows *rows)
{
    struct rows_chunk *chunk = rows->chunks;

    while (chunk != NULL) {
        struct rows_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    free(rows->items);
    rows->items = NULL;
    rows->chunks = NULL;
    rows->count = 0;
    rows->capacity = 0;
}

enum wal_status rows_fill(struct rows *rows, rows_next *next, void *cursor,
                          size_t limit, struct wal_error *error)
{
    union {
        uint32_t struct_size;
        max_align_t alignment;
        char bytes[ITEM_MAX];
    } item;

    while (rows->count < limit) {
        enum wal_status status;

        memset(&item, 0, rows->table->stride);
        item.struct_size = rows->table->stride;
        status = next(cursor, &item, error);
        if (status != WAL_OK) {
            return status == WAL_END ? WAL_OK : status;
        }
        if (!rows_add(rows, &item)) {
            error->status = WAL_ENOMEM;
            return WAL_ENOMEM;
        }
    }
    return WAL_OK;
}

PyObject *rows_list(const struct rows *rows)
{
    PyObject *list = PyList_New((Py_ssize_t)rows->count);

    for (size_t i = 0; list != NULL && i < rows->count; i++) {
        PyObject *dict =
            value_dict(rows->table, rows->items + i * rows->table->stride);

        if (dict == NULL || PyList_SetItem(list, (Py_ssize_t)i, dict) != 0) {
            value_clear(&list);
        }
    }
    return list;
}

PyObject *rows_first(const struct rows *rows)
{
    return value_dict(rows->table, rows->items);
}
