/*
 * module.h - the extension agentwal._wal: what its files share.
 *
 * Every call of the library is a function of the module with positional
 * arguments; the Python layer (agentwal/) is what people use. The extension
 * keeps to the limited interface of Python 3.11, so that one file serves every
 * later version, and has no variables but the state of the module, so that each
 * interpreter of a process has its own; what is of the process is in process.c.
 *
 * Threads: the interpreter's lock is held unless a comment says otherwise; it
 * is released around calls that may wait or read a disk (call.h).
 */
#ifndef AGENTWAL_PYTHON_CORE_MODULE_H
#define AGENTWAL_PYTHON_CORE_MODULE_H

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

/* That of interface.txt is the first. */
#define MODULE_METHODS(X) \
    X(interface_methods)  \
    X(handle_methods)     \
    X(store_methods)      \
    X(admin_methods)      \
    X(transfer_methods)   \
    X(session_methods)    \
    X(document_methods)   \
    X(batch_methods)      \
    X(iterator_methods)   \
    X(blob_methods)       \
    X(checkpoint_methods) \
    X(view_methods)       \
    X(import_methods)     \
    X(search_methods)

#define MODULE_DECLARE(name) extern PyMethodDef name[];
MODULE_METHODS(MODULE_DECLARE)
#undef MODULE_DECLARE

#endif
