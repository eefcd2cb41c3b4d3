/*
 * batch.h - entries, documents, heads and a change as rows of Python.
 */
#ifndef AGENTWAL_PYTHON_ENTRY_BATCH_H
#define AGENTWAL_PYTHON_ENTRY_BATCH_H

#include "bindings/python/src/core/value.h"

/* A batch whose texts are borrowed from the rows. */
struct batch_rows {
    struct wal_batch batch;
    struct wal_session_change change;
    void *entries;
    void *documents;
    void *heads;
};

extern const struct value_table batch_document_table;
extern const struct value_table batch_head_table;
extern const struct value_table batch_change_table;

/* Sets a zeroed struct; false: an exception is set. Free it in either case.
 * documents and heads may be null, change may be None. */
bool batch_set(struct module_state *state, struct batch_rows *rows,
               PyObject *entries, PyObject *documents, PyObject *heads,
               PyObject *change);
void batch_free(struct batch_rows *rows);

bool batch_options(struct module_state *state, PyObject *row,
                   struct wal_append_options *options);

/* (appended, duplicates, sequence, last_id) */
PyObject *batch_result(const struct wal_append_result *result);

#endif
