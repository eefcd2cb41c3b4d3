/*
 * batch.h - the result of an append as a tuple.
 */
#ifndef AGENTWAL_PYTHON_ENTRY_BATCH_H
#define AGENTWAL_PYTHON_ENTRY_BATCH_H

#include "bindings/python/src/core/module.h"

/* (appended, duplicates, sequence, last_id) */
PyObject *batch_result(const struct wal_append_result *result);

#endif
