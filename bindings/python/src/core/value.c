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

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool value_digest(struct module_state *state, PyObject *value, const char *name,
                  uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_slice text = {NULL, 0};
    const char *digits;
    bool ok;

    if (value == Py_None) {
        memset(digest, 0, WAL_DIGEST_SIZE);
        return true;
    }
    if (!value_text(state, value, name, &text)) {
        return false;
    }
    digits = text.data;
    ok = text.size == (size_t)2 * WAL_DIGEST_SIZE;
    for (size_t i = 0; ok && i < WAL_DIGEST_SIZE; i++) {
        int high = hex_digit(digits[2 * i]);
        int low = hex_digit(digits[2 * i + 1]);

        ok = high >= 0 && low >= 0;
        if (ok) {
            digest[i] = (uint8_t)(high << 4 | low);
        }
    }
    if (!ok) {
        raise_invalid(state, name, "a SHA-256 has 64 hexadecimal digits");
    }
    return ok;
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

static bool set_field(struct module_state *state, PyObject *value, const struct value_field *field,
                      char *made)
{
    void *place = made + field->offset;
    struct wal_slice slice = {NULL, 0};
    uint32_t count = 0;
    bool ok;

    switch (field->kind) {
    case VALUE_TEXTS:
        ok = value_slices(state, value, field->name, false, place, &count);
        *(uint64_t *)(void *)(made + field->count) = count;
        return ok;
    case VALUE_TEXT:
        return value_text(state, value, field->name, place);
    case VALUE_CONTENT:
        return value_content(state, value, field->name, place);
    case VALUE_PATH:
        return value_path(state, value, field->name, place);
    case VALUE_U32:
        return value_u32(state, value, field->name, place);
    case VALUE_U64:
        return value_u64(state, value, field->name, place);
    case VALUE_I64:
        return value_i64(state, value, field->name, place);
    case VALUE_DIGEST:
        return value_digest(state, value, field->name, place);
    case VALUE_CHARS:
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
                       const struct value_table *table, void *made)
{
    if (!PyTuple_Check(row) || PyTuple_Size(row) != (Py_ssize_t)table->count) {
        raise_type(state, name, "a row of its fields", row);
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct value_field *field = &table->fields[i];

        if (field->kind != VALUE_STRUCT &&
            !set_field(state, PyTuple_GetItem(row, (Py_ssize_t)i), field, made)) {
            return false;
        }
    }
    return true;
}

bool value_row(struct module_state *state, PyObject *row, const char *name,
               const struct value_table *table, void *made)
{
    if (!set_fields(state, row, name, table, made)) {
        return false;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct value_field *field = &table->fields[i];
        void **place = (void *)((char *)made + field->offset);
        PyObject *value = PyTuple_GetItem(row, (Py_ssize_t)i);

        if (field->kind == VALUE_STRUCT && value == Py_None) {
            *place = NULL;
        } else if (field->kind == VALUE_STRUCT &&
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
                const struct value_table *table, void **made, uint32_t *count)
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
    items = calloc(wanted, table->stride);
    if (items == NULL) {
        (void)PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        char *item = items + (size_t)i * table->stride;

        memcpy(item, &table->stride, sizeof(table->stride)); /* struct_size */
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
    static const char digits[] = "0123456789abcdef";
    char text[2 * WAL_DIGEST_SIZE];

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

static PyObject *uuid_str(const uint8_t bytes[16])
{
    return PyUnicode_FromFormat(
        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1],
        bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10],
        bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]);
}

static PyObject *none(void)
{
    return Py_NewRef(Py_None);
}

static bool is_zero(const char digest[WAL_DIGEST_SIZE])
{
    static const char zeros[WAL_DIGEST_SIZE];

    return memcmp(digest, zeros, sizeof(zeros)) == 0;
}

/* Numbers of 32 bits. */
static PyObject *get_small(const struct value_field *field, const char *place)
{
    uint32_t bits;

    memcpy(&bits, place, sizeof(bits));
    switch (field->kind) {
    case VALUE_U32:
        return PyLong_FromUnsignedLong(bits);
    case VALUE_BOOL:
        return PyBool_FromLong(bits != 0);
    case VALUE_FLAG:
        return PyBool_FromLong((bits & field->mask) != 0);
    case VALUE_NAME:
        return PyUnicode_FromString(field->names[bits < field->mask ? bits : 0]);
    default:
        return PyLong_FromLong((int32_t)bits);
    }
}

static PyObject *get_counts(const struct value_field *field, const char *place)
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

static PyObject *get_field(struct module_state *state, const struct value_field *field,
                           const char *filled)
{
    const char *place = filled + field->offset;
    const struct wal_error *error;
    const char *string;
    struct wal_slice slice;
    uint64_t wide;
    int64_t large;
    double real;

    switch (field->kind) {
    case VALUE_ERROR:
        memcpy(&error, place, sizeof(error));
        return error == NULL ? none() : raise_make(state, error);
    case VALUE_STRING:
        memcpy(&string, place, sizeof(string));
        return PyUnicode_FromString(string);
    case VALUE_COUNTS:
        return get_counts(field, place);
    case VALUE_TEXT:
    case VALUE_CONTENT:
    case VALUE_PATH:
        memcpy(&slice, place, sizeof(slice));
        return value_str(slice);
    case VALUE_OR_NULL:
    case VALUE_OR_NONE:
        memcpy(&slice, place, sizeof(slice));
        return slice.size == 0 ? none() : value_str(slice);
    case VALUE_CHARS:
    case VALUE_ID:
        slice = (struct wal_slice){place, strnlen(place, field->size)};
        return slice.size == 0 && field->kind == VALUE_ID ? none() : value_str(slice);
    case VALUE_U64:
    case VALUE_U64_OR_NULL:
        memcpy(&wide, place, sizeof(wide));
        return wide == UINT64_MAX && field->kind == VALUE_U64_OR_NULL
                   ? none()
                   : PyLong_FromUnsignedLongLong(wide);
    case VALUE_I64:
        memcpy(&large, place, sizeof(large));
        return PyLong_FromLongLong(large);
    case VALUE_DOUBLE:
        memcpy(&real, place, sizeof(real));
        return PyFloat_FromDouble(real);
    case VALUE_DIGEST:
    case VALUE_NO_DIGEST:
        return field->kind == VALUE_NO_DIGEST && is_zero(place)
                   ? none()
                   : value_hex((const uint8_t *)place, WAL_DIGEST_SIZE);
    case VALUE_UUID:
        return uuid_str((const uint8_t *)place);
    default:
        return get_small(field, place);
    }
}

/* The struct as a dict, for fields that are not structs. */
static PyObject *get_fields(struct module_state *state, const struct value_table *table,
                            const char *filled)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict != NULL && i < table->count; i++) {
        const struct value_field *field = &table->fields[i];

        if (field->kind != VALUE_STRUCTS &&
            !value_set(dict, field->name, get_field(state, field, filled))) {
            value_clear(&dict);
        }
    }
    return dict;
}

static PyObject *get_structs(struct module_state *state, const struct value_field *field,
                             const char *filled)
{
    PyObject *list = PyList_New(0);
    const char *item;
    uint64_t count;

    memcpy(&item, filled + field->offset, sizeof(item));
    memcpy(&count, filled + field->count, sizeof(count));
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        uint32_t stride;

        if (!value_add(list, get_fields(state, field->items, item))) {
            value_clear(&list);
        }
        memcpy(&stride, item, sizeof(stride));
        item += stride;
    }
    return list;
}

PyObject *value_dict(struct module_state *state, const struct value_table *table,
                     const void *filled)
{
    PyObject *dict;

    if (table->fields[0].name == NULL) {
        return get_field(state, &table->fields[0], filled);
    }
    dict = get_fields(state, table, filled);
    for (uint32_t i = 0; dict != NULL && i < table->count; i++) {
        const struct value_field *field = &table->fields[i];

        if (field->kind == VALUE_STRUCTS &&
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

/* --- rows ----------------------------------------------------------------- */

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

enum wal_status rows_fill(struct rows *rows, rows_next *next, void *cursor, size_t limit,
                          struct wal_error *error)
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

PyObject *rows_list(const struct rows *rows, struct module_state *state)
{
    PyObject *list = PyList_New((Py_ssize_t)rows->count);

    for (size_t i = 0; list != NULL && i < rows->count; i++) {
        PyObject *dict = value_dict(state, rows->table, rows->items + i * rows->table->stride);

        if (dict == NULL || PyList_SetItem(list, (Py_ssize_t)i, dict) != 0) {
            value_clear(&list);
        }
    }
    return list;
}

PyObject *rows_first(const struct rows *rows, struct module_state *state)
{
    return value_dict(state, rows->table, rows->items);
}
