/*
 * value.h - arguments of Python and structs of the library.
 *
 * A table names the fields of a struct in the order in which a row, a tuple, has them. Text of a
 * row is borrowed: tuples, str and bytes do not change, and the caller of a function holds them
 * until it returns.
 */
#ifndef AGENTWAL_BINDINGS_PYTHON_SRC_CORE_VALUE_H
#define AGENTWAL_BINDINGS_PYTHON_SRC_CORE_VALUE_H

#include "bindings/python/src/core/module.h"

enum value_kind {
    VALUE_TEXT,    /* wal_slice; str, or None: empty */
    VALUE_OR_NULL, /* wal_slice, out only: None when it is empty */
    VALUE_OR_NONE, /* likewise */
    VALUE_CONTENT, /* wal_slice; str or bytes, or None: empty. Out: str */
    VALUE_PATH,    /* wal_slice; bytes, or None: empty. Out: str */
    VALUE_CHARS,   /* char[]; str. Bytes that are no UTF-8 are escaped */
    VALUE_ID,      /* likewise, out only: None when it is empty */
    VALUE_U32,
    VALUE_BOOL, /* uint32_t or int32_t, out only */
    VALUE_FLAG, /* uint32_t, out only: whether bits of `mask` are set */
    VALUE_NAME, /* uint32_t, out only: one of `names` */
    VALUE_CODE, /* int32_t, a status, out only: its number */
    VALUE_U64,
    VALUE_U64_OR_NULL, /* out only: None for UINT64_MAX */
    VALUE_I32,
    VALUE_I64,
    VALUE_DOUBLE,    /* out only */
    VALUE_DIGEST,    /* uint8_t[WAL_DIGEST_SIZE]; hexadecimal, or None: zeros */
    VALUE_NO_DIGEST, /* likewise, out only: None for zeros */
    VALUE_UUID,      /* uint8_t[16]; out only */
    VALUE_STRING,    /* const char *, out only */
    VALUE_TEXTS,     /* const struct wal_slice *, and their number at `count`, in only: a tuple, or
                      * None. To be freed with free() */
    VALUE_STRUCT,    /* a pointer to a struct of `items`, in only: a row, or None: null */
    VALUE_STRUCTS,   /* an array of structs of `items`, of which the first states the size, and
                      * their number at `count`, out only: a list of dicts */
    VALUE_COUNTS,    /* uint64_t[], out only: a dict by name_of(index) */
    VALUE_ERROR      /* const struct wal_error *, out only: an exception, or None */
};

struct value_field {
    const char *name;
    uint32_t kind; /* enum value_kind */
    uint32_t offset;
    uint32_t size;            /* of the member */
    uint32_t mask;            /* VALUE_FLAG; VALUE_NAME: the number of names */
    uint32_t count;           /* offset of a uint64_t */
    const char *const *names; /* VALUE_NAME; others are the first */
    const struct value_table *items;
    const char *(*name_of)(uint32_t index);
};

struct value_table {
    const struct value_field *fields;
    uint32_t count;
    uint32_t stride; /* bytes of the struct */
};

/* Raises InvalidType unless there are as many arguments. */
bool value_count(PyObject *module, const char *function, Py_ssize_t count, Py_ssize_t wanted);
bool value_text(struct module_state *state, PyObject *value, const char *name,
                struct wal_slice *slice);
bool value_path(struct module_state *state, PyObject *value, const char *name,
                struct wal_slice *slice);

/* A path without NUL bytes, as the system takes it. */
bool value_system_path(struct module_state *state, PyObject *value, const char *name,
                       const char **path);
bool value_u32(struct module_state *state, PyObject *value, const char *name, uint32_t *number);
bool value_u64(struct module_state *state, PyObject *value, const char *name, uint64_t *number);
bool value_bool(struct module_state *state, PyObject *value, const char *name, int32_t *number);
bool value_i64(struct module_state *state, PyObject *value, const char *name, int64_t *number);
bool value_digest(struct module_state *state, PyObject *value, const char *name,
                  uint8_t digest[WAL_DIGEST_SIZE]);

/* Likewise, and not None. */
bool value_some_digest(struct module_state *state, PyObject *value, const char *name,
                       uint8_t digest[WAL_DIGEST_SIZE]);

/* Sets the fields of a zeroed struct from a row. */
bool value_row(struct module_state *state, PyObject *row, const char *name,
               const struct value_table *table, void *made);

/* The structs of a tuple of rows, to be freed with free(); struct_size is set. Null with *count 0:
 * there are none; null otherwise: an exception is set. */
bool value_rows(struct module_state *state, PyObject *rows, const char *name,
                const struct value_table *table, void **made, uint32_t *count);

/* A tuple of str, or with paths of bytes, as slices, to be freed with free(). None: null. */
bool value_slices(struct module_state *state, PyObject *values, const char *name, bool paths,
                  struct wal_slice **slices, uint32_t *count);

/* Content that is borrowed until it is released: a str, or any object with the buffer interface.
 * Zeroed, there is nothing to release. */
struct content {
    struct wal_slice slice;
    Py_buffer view;
    bool has_view;
};

bool content_take(struct module_state *state, PyObject *value, const char *name,
                  struct content *content);
void content_release(struct content *content);

/* Text of the library; bytes that are no UTF-8 are escaped by surrogates. */
PyObject *value_str(struct wal_slice text);
PyObject *value_hex(const uint8_t *bytes, size_t size);

/* The names that a function has by their indexes, as a tuple. */
PyObject *value_names(const char *name_of(uint32_t index));

/* Lets go of an object, and sets it to null; as Py_CLEAR, which is a loop. */
void value_clear(PyObject **object);

/* Adds to a list, and lets go of, an object; false: an exception is set. */
bool value_add(PyObject *list, PyObject *object);

/* Sets an item of a dict, and lets go of the object; false: an exception is set. */
bool value_set(PyObject *dict, const char *name, PyObject *object);

/* The struct as a dict of the table's names; of a field without a name its value alone. */
PyObject *value_dict(struct module_state *state, const struct value_table *table,
                     const void *filled);

struct rows {
    const struct value_table *table;
    char *items;
    size_t count;
    size_t capacity;
    struct rows_chunk *chunks;
};

/* A zeroed struct with a table is empty. Both calls may run without the interpreter's lock. False:
 * no memory. */
bool rows_add(struct rows *rows, const void *item);
void rows_free(struct rows *rows);

/* A function that fills an item from a cursor, as a wal_..._next does. */
typedef enum wal_status rows_next(void *cursor, void *item, struct wal_error *error);

/* Adds at most `limit` items of a cursor; WAL_OK, also at its end. Without the interpreter's
 * lock. */
enum wal_status rows_fill(struct rows *rows, rows_next *next, void *cursor, size_t limit,
                          struct wal_error *error);

/* The rows as a list of dicts. */
PyObject *rows_list(const struct rows *rows, struct module_state *state);

/* The first of them as a dict. */
PyObject *rows_first(const struct rows *rows, struct module_state *state);

#endif
