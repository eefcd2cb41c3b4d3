/*
 * session.h - sessions as rows and dicts of Python.
 */
#ifndef AGENTWAL_PYTHON_SESSION_SESSION_H
#define AGENTWAL_PYTHON_SESSION_SESSION_H

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/value.h"

extern const struct value_table session_option_table;
extern const struct value_table session_info_table;

/* A call of the library on a session without other arguments. */
typedef enum wal_status session_action(struct wal_session *session,
                                       struct wal_error *error);
PyObject *session_act(PyObject *module, PyObject *const *args, Py_ssize_t count,
                      const char *name, session_action *action);

#endif
