/*
 * raise.c - raises the exceptions of the package (raise.h).
 */
#include "bindings/python/src/core/raise.h"

#include <string.h>

/* Text of the library is UTF-8 that may be cut at the end of its array. */
static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *raise_make(struct module_state *state, const struct wal_error *error)
{
    const char *text =
        error->text[0] != '\0' ? error->text : wal_status_text(error->status);
    PyObject *sentence = text_of(text);
    PyObject *file = PyUnicode_DecodeUTF8(
        error->file, (Py_ssize_t)strlen(error->file), "surrogateescape");
    PyObject *actual = text_of(error->actual);
    PyObject *made = NULL;

    if (sentence != NULL && file != NULL && actual != NULL) {
        made = PyObject_CallFunction(
            state->make_error, "iOiiIKOO", (int)error->status, sentence,
            (int)error->sys_errno, (int)error->holder,
            (unsigned)error->expectation, (unsigned long long)error->offset,
            file, actual);
    }
    Py_XDECREF(sentence);
    Py_XDECREF(file);
    Py_XDECREF(actual);
    return made;
}

void raise_error(struct module_state *state, const struct wal_error *error)
{
    PyObject *made = raise_make(state, error);

    if (made != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
}

void raise_status(struct module_state *state, enum wal_status status,
                  const char *text)
{
    struct wal_error error = WAL_INIT(wal_error);

    error.status = status;
    if (text != NULL) {
        (void)PyOS_snprintf(error.text, sizeof(error.text), "%s", text);
    }
    raise_error(state, &error);
}

void raise_invalid(struct module_state *state, const char *name,
                   const char *text)
{
    PyErr_Format(state->invalid, "%s: %s", name, text);
}

void raise_type(struct module_state *state, const char *name,
                const char *wanted, PyObject *value)
{
    PyObject *made =
        PyObject_CallFunction(state->wrong_type, "ssO", name, wanted, value);

    if (made != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
}
