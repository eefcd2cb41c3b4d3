/*
 * import.h - imports and their reports.
 */
#ifndef AGENTWAL_PYTHON_CONVERT_IMPORT_H
#define AGENTWAL_PYTHON_CONVERT_IMPORT_H

#include "agentwal/import.h"
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/value.h"

/* The functions of an import; the context of the library's. */
struct import_ctx {
    struct callback callback;
    PyObject *project; /* or null */
};

/* Sets options from a row, with the functions of a context. */
bool import_options(struct module_state *state, PyObject *row,
                    struct wal_import_options *options, struct import_ctx *ctx);

/* Prepares for a call; progress and project may be None. */
bool import_begin(struct import_ctx *ctx, struct call *call, PyObject *progress,
                  PyObject *project);

/* Ends a call: the result with its reports. */
PyObject *import_end(struct import_ctx *ctx, struct call *call,
                     const struct wal_import_result *result);

#endif
