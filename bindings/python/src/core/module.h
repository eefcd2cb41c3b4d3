/*
 * module.h - the extension agentwal._wal: what its files share.
 *
 * Every call of the library is a function of the module with positional arguments; the Python layer
 * (agentwal/) is what people use. The extension keeps to the limited interface of Python 3.11, so
 * that one file serves every later version, and has no variables but the state of the module, so
 * that each interpreter of a process has its own; what is of the process is the count of forks.
 *
 * Threads: the interpreter's lock is held unless a comment says otherwise; it is released around
 * calls that may wait or read a disk (call.h).
 */
#ifndef AGENTWAL_BINDINGS_PYTHON_SRC_CORE_MODULE_H
#define AGENTWAL_BINDINGS_PYTHON_SRC_CORE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

struct module_state {
    PyTypeObject *handle_type;
    PyTypeObject *entry_type;
    PyTypeObject *iterator_type;
    /* Of agentwal._errors and agentwal._json. */
    PyObject *make_error;
    PyObject *wrong_type;
    PyObject *invalid;
    PyObject *invalid_type;
    PyObject *bad_json;
    PyObject *decode;
};

struct module_state *module_state(PyObject *module);

/* A function of the module, whose arguments are an array. */
#define MODULE_FUNCTION(name, function)                                    \
    {                                                                      \
        name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL \
    }

/* The functions of each file, and of the types. */
extern const PyType_Spec handle_spec;
extern const PyType_Spec entry_spec;
extern const PyType_Spec iterator_spec;

/* How many forks lie between the first process that loaded the module and this one: a handle is of
 * this process when the number is that of its making. Asked by every call, which getpid(2), a
 * system call, is too slow for. Any thread; also in the child of a process with threads. */
uint32_t process_generation(void);

/* The exception of an error, not raised; null: another one is. */
PyObject *raise_make(struct module_state *state, const struct wal_error *error);

/* Raises the exception of an error. */
void raise_error(struct module_state *state, const struct wal_error *error);

/* Raises a failure of the extension; text null: that of the status. */
void raise_status(struct module_state *state, enum wal_status status, const char *text);

/* Raises Invalid for an argument: "NAME: FORMATTED". */
void raise_invalid(struct module_state *state, const char *name, const char *text);

/* Raises InvalidType for an argument. */
void raise_type(struct module_state *state, const char *name, const char *wanted, PyObject *value);

/* The result of an append, faster than as a dict: (appended, duplicates, sequence, last_id). */
PyObject *batch_result(const struct wal_append_result *result);

/* Closes a struct wal_search. Without the interpreter's lock. */
void search_close(void *search);

/* That of interface.txt is the first. */
#define MODULE_METHODS(X) \
    X(interface_methods)  \
    X(handle_methods)     \
    X(store_methods)      \
    X(entry_methods)      \
    X(convert_methods)    \
    X(search_methods)

#define MODULE_DECLARE(name) extern PyMethodDef name[];
MODULE_METHODS(MODULE_DECLARE)
#undef MODULE_DECLARE

#endif
