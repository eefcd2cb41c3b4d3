/*
 * value.h - arguments of Python and structs of the library.
 *
 * A row is a tuple that has the fields of a table in its order; null is None. Text of a row is
 * borrowed: tuples, str and bytes do not change, and the caller of a function holds them
 * until it returns.
 */
#ifndef AGENTWAL_BINDINGS_PYTHON_SRC_CORE_VALUE_H
#define AGENTWAL_BINDINGS_PYTHON_SRC_CORE_VALUE_H

#include "bindings/python/src/core/module.h"
#include "bindings/table/table.h"

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
               const struct table *table, void *made);

/* The structs of a tuple of rows, to be freed with free(); struct_size is set. Null with *count 0:
 * there are none; null otherwise: an exception is set. */
bool value_rows(struct module_state *state, PyObject *rows, const char *name,
                const struct table *table, void **made, uint32_t *count);

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
PyObject *value_dict(struct module_state *state, const struct table *table, const void *filled);

/* The structs of a list as a list of dicts. */
PyObject *value_list(struct module_state *state, const struct table *table,
                     const struct list *list);

#endif
