/*
 * value.c - arguments of Python, and structs of the library (value.h).
 */
#include "bindings/python/src/core/value.h"

#include <stdlib.h>
#include <string.h>

/* --- values --------------------------------------------------------------- */

bool value_count(PyObject *module, const char *function, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted) {
        return true;
    }
    PyErr_Format(module_state(module)->invalid_type, "%s takes %zd arguments, not %zd", function,
                 wanted, count);
    return false;
}

/* Makes an exception of Python one of the package. */
static bool replace_exception(struct module_state *state, const char *name, const char *text)
{
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
        return false;
    }
    PyErr_Clear();
    raise_invalid(state, name, text);
    return false;
}

static bool text_of(struct module_state *state, PyObject *value, const char *name,
                    struct wal_slice *slice)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(value, &size);

    if (data == NULL) {
        return replace_exception(state, name, "has half a surrogate pair, which is not UTF-8");
    }
    slice->data = data;
    slice->size = (uint64_t)size;
    return true;
}

static bool bytes_of(PyObject *value, struct wal_slice *slice)
{
    char *data;
    Py_ssize_t size;

    if (PyBytes_AsStringAndSize(value, &data, &size) != 0) {
        return false;
    }
    slice->data = data;
    slice->size = (uint64_t)size;
    return true;
}

bool value_text(struct module_state *state, PyObject *value, const char *name,
                struct wal_slice *slice)
{
    if (value == Py_None) {
        *slice = (struct wal_slice){NULL, 0};
        return true;
    }
    if (!PyUnicode_Check(value)) {
        raise_type(state, name, "a str", value);
        return false;
    }
    return text_of(state, value, name, slice);
}

static bool value_content(struct module_state *state, PyObject *value, const char *name,
                          struct wal_slice *slice)
{
    if (value == Py_None) {
        *slice = (struct wal_slice){NULL, 0};
        return true;
    }
    if (PyUnicode_Check(value)) {
        return text_of(state, value, name, slice);
    }
    if (!PyBytes_Check(value)) {
        raise_type(state, name, "a str or bytes", value);
        return false;
    }
    return bytes_of(value, slice);
}

bool value_path(struct module_state *state, PyObject *value, const char *name,
                struct wal_slice *slice)
{
    if (value == Py_None) {
        *slice = (struct wal_slice){NULL, 0};
        return true;
    }
    if (!PyBytes_Check(value)) {
        raise_type(state, name, "a path as bytes", value);
        return false;
    }
    if (!bytes_of(value, slice)) {
        return false;
    }
    if (memchr(slice->data, '\0', (size_t)slice->size) != NULL) {
        raise_invalid(state, name, "a path has no NUL byte");
        return false;
    }
    return true;
}

bool value_system_path(struct module_state *state, PyObject *value, const char *name,
                       const char **path)
{
    struct wal_slice slice;

    if (value == Py_None) {
        raise_type(state, name, "a path as bytes", value);
        return false;
    }
    if (!value_path(state, value, name, &slice)) {
        return false;
    }
    *path = slice.data; /* bytes of Python end with NUL */
    return true;
}

/* An int, and nothing that can be made one. */
static bool is_int(struct module_state *state, PyObject *value, const char *name)
{
    if (PyLong_Check(value)) {
        return true;
    }
    raise_type(state, name, "an int", value);
    return false;
}

bool value_u64(struct module_state *state, PyObject *value, const char *name, uint64_t *number)
{
    unsigned long long got;

    if (!is_int(state, value, name)) {
        return false;
    }
    got = PyLong_AsUnsignedLongLong(value);
    if (got == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
        return replace_exception(state, name, "not in 0 to 2**64 - 1");
    }
    *number = got;
    return true;
}

bool value_u32(struct module_state *state, PyObject *value, const char *name, uint32_t *number)
{
    uint64_t got;

    if (!value_u64(state, value, name, &got)) {
        return false;
    }
    if (got > UINT32_MAX) {
        raise_invalid(state, name, "not in 0 to 2**32 - 1");
        return false;
    }
    *number = (uint32_t)got;
    return true;
}

bool value_i64(struct module_state *state, PyObject *value, const char *name, int64_t *number)
{
    long long got;

    if (!is_int(state, value, name)) {
        return false;
    }
    got = PyLong_AsLongLong(value);
    if (got == -1 && PyErr_Occurred() != NULL) {
        return replace_exception(state, name, "not in -2**63 to 2**63 - 1");
    }
    *number = got;
    return true;
}

/* True for True alone. */
bool value_bool(struct module_state *state, PyObject *value, const char *name, int32_t *number)
{
    (void)state;
    (void)name;
    *number = value == Py_True;
    return true;
}

bool value_digest(struct module_state *state, PyObject *value, const char *name,
                  uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_slice text = {NULL, 0};

    if (value == Py_None) {
        memset(digest, 0, WAL_DIGEST_SIZE);
        return true;
    }
    if (!value_text(state, value, name, &text)) {
        return false;
    }
    if (!digest_read(text, digest)) {
        raise_invalid(state, name, "a SHA-256 has 64 hexadecimal digits");
        return false;
    }
    return true;
}

bool value_some_digest(struct module_state *state, PyObject *value, const char *name,
                       uint8_t digest[WAL_DIGEST_SIZE])
{
    if (value == Py_None) {
        raise_type(state, name, "a str", value);
        return false;
    }
    return value_digest(state, value, name, digest);
}

static bool set_field(struct module_state *state, PyObject *value, const struct field *field,
                      char *made)
{
    void *place = made + field->offset;
    struct wal_slice slice = {NULL, 0};
    uint32_t count = 0;
    bool ok;

    switch (field->kind) {
    case FIELD_TEXTS:
        ok = value_slices(state, value, field->name, false, place, &count);
        *(uint64_t *)(void *)(made + field->count) = count;
        return ok;
    case FIELD_TEXT:
        return value_text(state, value, field->name, place);
    case FIELD_SECRET:
    case FIELD_CONTENT:
        return value_content(state, value, field->name, place);
    case FIELD_PATH:
        return value_path(state, value, field->name, place);
    case FIELD_U32:
        return value_u32(state, value, field->name, place);
    case FIELD_U64:
        return value_u64(state, value, field->name, place);
    case FIELD_I64:
        return value_i64(state, value, field->name, place);
    case FIELD_DIGEST:
        return value_digest(state, value, field->name, place);
    case FIELD_CHARS:
        if (!value_text(state, value, field->name, &slice)) {
            return false;
        }
        if (slice.size >= field->size) {
            raise_invalid(state, field->name, "too long");
            return false;
        }
        if (slice.size > 0) {
            memcpy(place, slice.data, (size_t)slice.size);
        }
        return true;
    default:
        break;
    }
    raise_invalid(state, field->name, "is not set by a caller");
    return false;
}

/* As value_row, for fields that are not rows. */
static bool set_fields(struct module_state *state, PyObject *row, const char *name,
                       const struct table *table, void *made)
{
    if (!PyTuple_Check(row) || PyTuple_Size(row) != (Py_ssize_t)table->count) {
        raise_type(state, name, "a row of its fields", row);
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->kind != FIELD_STRUCT &&
            !set_field(state, PyTuple_GetItem(row, (Py_ssize_t)i), field, made)) {
            return false;
        }
    }
    return true;
}

bool value_row(struct module_state *state, PyObject *row, const char *name,
               const struct table *table, void *made)
{
    if (!set_fields(state, row, name, table, made)) {
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        void **place = (void *)((char *)made + field->offset);
        PyObject *value = PyTuple_GetItem(row, (Py_ssize_t)i);

        if (field->kind == FIELD_STRUCT && value == Py_None) {
            *place = NULL;
        } else if (field->kind == FIELD_STRUCT &&
                   !set_fields(state, value, field->name, field->items, *place)) {
            return false;
        }
    }
    return true;
}

/* The size of a tuple; false: it is none, or too large. */
static bool tuple_size(struct module_state *state, PyObject *values, const char *name,
                       uint32_t *count)
{
    if (!PyTuple_Check(values)) {
        raise_type(state, name, "a tuple", values);
        return false;
    }
    if (PyTuple_Size(values) > (Py_ssize_t)UINT32_MAX) {
        raise_invalid(state, name, "too many");
        return false;
    }
    *count = (uint32_t)PyTuple_Size(values);
    return true;
}

bool value_rows(struct module_state *state, PyObject *rows, const char *name,
                const struct table *table, void **made, uint32_t *count)
{
    char *items;
    uint32_t wanted;

    *made = NULL;
    *count = 0;
    if (!tuple_size(state, rows, name, &wanted)) {
        return false;
    }
    if (wanted == 0) {
        return true;
    }
    items = calloc(wanted, table->size);
    if (items == NULL) {
        (void)PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        char *item = items + (size_t)i * table->size;

        memcpy(item, &table->size, sizeof(table->size)); /* struct_size */
        if (!value_row(state, PyTuple_GetItem(rows, (Py_ssize_t)i), name, table, item)) {
            free(items);
            return false;
        }
    }
    *made = items;
    *count = wanted;
    return true;
}

bool value_slices(struct module_state *state, PyObject *values, const char *name, bool paths,
                  struct wal_slice **slices, uint32_t *count)
{
    struct wal_slice *items;
    bool ok = true;

    *slices = NULL;
    *count = 0;
    if (values == Py_None) {
        return true;
    }
    if (!tuple_size(state, values, name, count)) {
        return false;
    }
    items = calloc(*count + 1u, sizeof(*items)); /* none is not null */
    if (items == NULL) {
        (void)PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; ok && i < *count; i++) {
        PyObject *value = PyTuple_GetItem(values, (Py_ssize_t)i);

        ok = paths ? value_path(state, value, name, &items[i])
                   : value_text(state, value, name, &items[i]);
    }
    if (!ok) {
        free(items);
        return false;
    }
    *slices = items;
    return true;
}

bool content_take(struct module_state *state, PyObject *value, const char *name,
                  struct content *content)
{
    if (PyUnicode_Check(value)) {
        return value_text(state, value, name, &content->slice);
    }
    if (PyObject_GetBuffer(value, &content->view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        raise_type(state, name, "a str or contiguous bytes", value);
        return false;
    }
    content->has_view = true;
    content->slice = (struct wal_slice){content->view.buf, (uint64_t)content->view.len};
    return true;
}

void content_release(struct content *content)
{
    if (content->has_view) {
        PyBuffer_Release(&content->view);
    }
}

/* Structs of the library -------------------------------------------------- */

bool value_add(PyObject *list, PyObject *object)
{
    bool ok = object != NULL && PyList_Append(list, object) == 0;

    Py_XDECREF(object);
    return ok;
}

bool value_set(PyObject *dict, const char *name, PyObject *object)
{
    bool ok = object != NULL && PyDict_SetItemString(dict, name, object) == 0;

    Py_XDECREF(object);
    return ok;
}

void value_clear(PyObject **object)
{
    Py_CLEAR(*object);
}

PyObject *value_str(struct wal_slice text)
{
    return PyUnicode_DecodeUTF8(text.size == 0 ? "" : text.data, (Py_ssize_t)text.size,
                                "surrogateescape");
}

PyObject *value_hex(const uint8_t *bytes, size_t size)
{
    char text[HEX_SIZE];

    hex_write(text, bytes, size);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

static PyObject *none(void)
{
    return Py_NewRef(Py_None);
}

/* Numbers of 32 bits. */
static PyObject *get_small(const struct field *field, const char *place)
{
    uint32_t bits;

    memcpy(&bits, place, sizeof(bits));
    switch (field->kind) {
    case FIELD_U32:
        return PyLong_FromUnsignedLong(bits);
    case FIELD_BOOL:
        return PyBool_FromLong(bits != 0);
    case FIELD_FLAG:
        return PyBool_FromLong((bits & field->mask) != 0);
    case FIELD_NAME:
        return PyUnicode_FromString(field->names[bits < field->mask ? bits : 0]);
    default:
        return PyLong_FromLong((int32_t)bits);
    }
}

static PyObject *get_counts(const struct field *field, const char *place)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict != NULL && i < field->size / sizeof(uint64_t); i++) {
        uint64_t count;

        memcpy(&count, place + i * sizeof(count), sizeof(count));
        if (!value_set(dict, field->name_of(i), PyLong_FromUnsignedLongLong(count))) {
            value_clear(&dict);
        }
    }
    return dict;
}

static PyObject *get_field(struct module_state *state, const struct field *field,
                           const char *filled)
{
    const char *place = filled + field->offset;
    const struct wal_error *error;
    const char *string;
    struct wal_slice slice;
    char uuid[UUID_TEXT_SIZE];
    uint64_t wide;
    int64_t large;
    double real;

    switch (field->kind) {
    case FIELD_ERROR:
        memcpy(&error, place, sizeof(error));
        return error == NULL ? none() : raise_make(state, error);
    case FIELD_STRING:
        memcpy(&string, place, sizeof(string));
        return PyUnicode_FromString(string);
    case FIELD_COUNTS:
        return get_counts(field, place);
    case FIELD_TEXT:
    case FIELD_CONTENT:
    case FIELD_PATH:
        memcpy(&slice, place, sizeof(slice));
        return value_str(slice);
    case FIELD_OR_NULL:
    case FIELD_OR_NONE:
        memcpy(&slice, place, sizeof(slice));
        return slice.size == 0 ? none() : value_str(slice);
    case FIELD_CHARS:
    case FIELD_ID:
        slice = (struct wal_slice){place, strnlen(place, field->size)};
        return slice.size == 0 && field->kind == FIELD_ID ? none() : value_str(slice);
    case FIELD_U64:
    case FIELD_U64_OR_NULL:
        memcpy(&wide, place, sizeof(wide));
        return wide == UINT64_MAX && field->kind == FIELD_U64_OR_NULL
                   ? none()
                   : PyLong_FromUnsignedLongLong(wide);
    case FIELD_I64:
        memcpy(&large, place, sizeof(large));
        return PyLong_FromLongLong(large);
    case FIELD_DOUBLE:
        memcpy(&real, place, sizeof(real));
        return PyFloat_FromDouble(real);
    case FIELD_DIGEST:
    case FIELD_NO_DIGEST:
        return field->kind == FIELD_NO_DIGEST && digest_is_zero((const uint8_t *)place)
                   ? none()
                   : value_hex((const uint8_t *)place, WAL_DIGEST_SIZE);
    case FIELD_UUID:
        uuid_write(uuid, (const uint8_t *)place);
        return PyUnicode_FromString(uuid);
    default:
        return get_small(field, place);
    }
}

/* The struct as a dict, for fields that are not structs. */
static PyObject *get_fields(struct module_state *state, const struct table *table,
                            const char *filled)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict != NULL && i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->kind != FIELD_STRUCTS &&
            !value_set(dict, field->name, get_field(state, field, filled))) {
            value_clear(&dict);
        }
    }
    return dict;
}

static PyObject *get_structs(struct module_state *state, const struct field *field,
                             const char *filled)
{
    struct structs structs = structs_of(field, filled);
    PyObject *list = PyList_New(0);

    for (uint64_t i = 0; list != NULL && i < structs.count; i++) {
        if (!value_add(list, get_fields(state, field->items, structs.first + i * structs.stride))) {
            value_clear(&list);
        }
    }
    return list;
}

PyObject *value_dict(struct module_state *state, const struct table *table, const void *filled)
{
    PyObject *dict;

    if (table->fields[0].name == NULL) {
        return get_field(state, &table->fields[0], filled);
    }
    dict = get_fields(state, table, filled);
    for (uint32_t i = 0; dict != NULL && i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->kind == FIELD_STRUCTS &&
            !value_set(dict, field->name, get_structs(state, field, filled))) {
            value_clear(&dict);
        }
    }
    return dict;
}

PyObject *value_names(const char *name_of(uint32_t index))
{
    PyObject *list = PyList_New(0);
    PyObject *names = NULL;

    for (uint32_t i = 0; list != NULL && name_of(i) != NULL; i++) {
        if (!value_add(list, PyUnicode_FromString(name_of(i)))) {
            value_clear(&list);
        }
    }
    if (list != NULL) {
        names = PyList_AsTuple(list);
        Py_DECREF(list);
    }
    return names;
}

PyObject *value_list(struct module_state *state, const struct table *table, const struct list *list)
{
    PyObject *made = PyList_New((Py_ssize_t)list->count);
    Py_ssize_t index = 0;

    for (const struct list_item *item = list->first; made != NULL && item != NULL;
         item = item->next) {
        PyObject *value = value_dict(state, table, item + 1);

        if (value == NULL || PyList_SetItem(made, index++, value) != 0) {
            value_clear(&made);
        }
    }
    return made;
}
