/*
 * value_out.c - structs of the library for Python (value.h).
 */
#include <string.h>

#include "bindings/python/src/core/value.h"

void value_clear(PyObject **object)
{
    Py_CLEAR(*object);
}

PyObject *value_str(struct wal_slice text)
{
    return PyUnicode_DecodeUTF8(text.size == 0 ? "" : text.data,
                                (Py_ssize_t)text.size, "surrogateescape");
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
        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6],
        bytes[7], bytes[8], bytes[9], bytes[10], bytes[11], bytes[12],
        bytes[13], bytes[14], bytes[15]);
}

static PyObject *get_field(const struct value_field *field, const char *filled)
{
    const char *place = filled + field->offset;
    struct wal_slice slice;
    uint32_t number;
    uint64_t wide;
    int32_t small;
    int64_t large;

    switch (field->kind) {
    case VALUE_TEXT:
    case VALUE_CONTENT:
    case VALUE_PATH:
        memcpy(&slice, place, sizeof(slice));
        return value_str(slice);
    case VALUE_CHARS:
        slice = (struct wal_slice){place, strnlen(place, field->size)};
        return value_str(slice);
    case VALUE_U32:
        memcpy(&number, place, sizeof(number));
        return PyLong_FromUnsignedLong(number);
    case VALUE_U64:
        memcpy(&wide, place, sizeof(wide));
        return PyLong_FromUnsignedLongLong(wide);
    case VALUE_I32:
        memcpy(&small, place, sizeof(small));
        return PyLong_FromLong(small);
    case VALUE_I64:
        memcpy(&large, place, sizeof(large));
        return PyLong_FromLongLong(large);
    case VALUE_DIGEST:
        return value_hex((const uint8_t *)place, WAL_DIGEST_SIZE);
    case VALUE_UUID:
        return uuid_str((const uint8_t *)place);
    }
    PyErr_SetString(PyExc_SystemError, "a field of an unknown kind");
    return NULL;
}

PyObject *value_dict(const struct value_table *table, const void *filled)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict != NULL && i < table->count; i++) {
        PyObject *value = get_field(&table->fields[i], filled);

        if (value == NULL ||
            PyDict_SetItemString(dict, table->fields[i].name, value) != 0) {
            value_clear(&dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}

PyObject *value_names(const char *name_of(uint32_t index))
{
    PyObject *list = PyList_New(0);
    PyObject *names = NULL;

    for (uint32_t i = 0; list != NULL && name_of(i) != NULL; i++) {
        PyObject *name = PyUnicode_FromString(name_of(i));

        if (name == NULL || PyList_Append(list, name) != 0) {
            value_clear(&list);
        }
        Py_XDECREF(name);
    }
    if (list != NULL) {
        names = PyList_AsTuple(list);
        Py_DECREF(list);
    }
    return names;
}
