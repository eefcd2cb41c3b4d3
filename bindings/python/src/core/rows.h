/*
 * rows.h - copies of structs that a cursor fills, with the text that they name:
 * made without the interpreter's lock, turned into a list of dicts with it.
 */
#ifndef AGENTWAL_PYTHON_CORE_ROWS_H
#define AGENTWAL_PYTHON_CORE_ROWS_H

#include "bindings/python/src/core/value.h"

struct rows {
    const struct value_table *table;
    char *items;
    size_t count;
    size_t capacity;
    struct rows_chunk *chunks;
};

/* A zeroed struct with a table is empty. Both calls may run without the
 * interpreter's lock. False: no memory. */
bool rows_add(struct rows *rows, const void *item);
void rows_free(struct rows *rows);

/* A function that fills an item from a cursor, as a wal_..._next does. */
typedef enum wal_status rows_next(void *cursor, void *item,
                                  struct wal_error *error);

/* Adds at most `limit` items of a cursor; WAL_OK, also at its end. Without the
 * interpreter's lock. */
enum wal_status rows_fill(struct rows *rows, rows_next *next, void *cursor,
                          size_t limit, struct wal_error *error);

/* The rows as a list of dicts. */
PyObject *rows_list(const struct rows *rows);
/* The first of them as a dict. */
PyObject *rows_first(const struct rows *rows);

#endif
