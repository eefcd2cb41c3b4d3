/*
 * raise.h - raises the exceptions of the package (agentwal/_errors.py).
 */
#ifndef AGENTWAL_PYTHON_CORE_RAISE_H
#define AGENTWAL_PYTHON_CORE_RAISE_H

#include "bindings/python/src/core/module.h"

/* The exception of an error, not raised; null: another one is. */
PyObject *raise_make(struct module_state *state, const struct wal_error *error);

/* Raises the exception of an error. */
void raise_error(struct module_state *state, const struct wal_error *error);

/* Raises a failure of the extension; text null: that of the status. */
void raise_status(struct module_state *state, enum wal_status status,
                  const char *text);

/* Raises Invalid for an argument: "NAME: FORMATTED". */
void raise_invalid(struct module_state *state, const char *name,
                   const char *text);

/* Raises InvalidType for an argument. */
void raise_type(struct module_state *state, const char *name,
                const char *wanted, PyObject *value);

#endif
