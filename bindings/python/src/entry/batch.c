/*
 * batch.c - appends and batches (batch.h).
 */
#include "bindings/python/src/entry/batch.h"

#include <stdlib.h>

#include "bindings/python/src/core/call.h"

static const struct value_field entry_fields[] = {
    VALUE_FIELD(wal_entry, flags, VALUE_U32),
    VALUE_FIELD(wal_entry, stream, VALUE_U32),
    VALUE_FIELD(wal_entry, id, VALUE_TEXT),
    VALUE_FIELD(wal_entry, parent_id, VALUE_TEXT),
    VALUE_FIELD(wal_entry, type, VALUE_TEXT),
    VALUE_FIELD(wal_entry, timestamp, VALUE_TEXT),
    VALUE_FIELD(wal_entry, run_id, VALUE_TEXT),
    VALUE_FIELD(wal_entry, payload, VALUE_CONTENT),
    VALUE_FIELD(wal_entry, meta, VALUE_CONTENT),
};
VALUE_TABLE(entry_table, wal_entry, entry_fields);

static const struct value_field document_fields[] = {
    VALUE_FIELD(wal_doc, flags, VALUE_U32),
    VALUE_FIELD(wal_doc, key, VALUE_TEXT),
    VALUE_FIELD(wal_doc, value, VALUE_CONTENT),
    VALUE_FIELD(wal_doc, version, VALUE_U64),
};
const struct value_table batch_document_table = {
    document_fields, sizeof(document_fields) / sizeof(*document_fields),
    sizeof(struct wal_doc)};

static const struct value_field head_fields[] = {
    VALUE_FIELD(wal_head, flags, VALUE_U32),
    VALUE_FIELD(wal_head, stream, VALUE_U32),
    VALUE_FIELD(wal_head, name, VALUE_TEXT),
    VALUE_FIELD(wal_head, entry_id, VALUE_TEXT),
    VALUE_FIELD(wal_head, note, VALUE_TEXT),
    VALUE_FIELD(wal_head, expected, VALUE_TEXT),
};
const struct value_table batch_head_table = {
    head_fields, sizeof(head_fields) / sizeof(*head_fields),
    sizeof(struct wal_head)};

static const struct value_field change_fields[] = {
    VALUE_FIELD(wal_session_change, fields, VALUE_U32),
    VALUE_FIELD(wal_session_change, schema_version, VALUE_U32),
    VALUE_FIELD(wal_session_change, metadata, VALUE_CONTENT),
    VALUE_FIELD(wal_session_change, title, VALUE_TEXT),
    VALUE_FIELD(wal_session_change, cwd, VALUE_TEXT),
    VALUE_FIELD(wal_session_change, project, VALUE_TEXT),
    VALUE_FIELD(wal_session_change, expected_version, VALUE_U64),
    VALUE_FIELD(wal_session_change, expected_sequence, VALUE_U64),
};
const struct value_table batch_change_table = {
    change_fields, sizeof(change_fields) / sizeof(*change_fields),
    sizeof(struct wal_session_change)};

static const struct value_field option_fields[] = {
    VALUE_FIELD(wal_append_options, durability, VALUE_U32),
    VALUE_FIELD(wal_append_options, flags, VALUE_U32),
    VALUE_FIELD(wal_append_options, expected_tail, VALUE_TEXT),
};
VALUE_TABLE(option_table, wal_append_options, option_fields);

bool batch_set(struct module_state *state, struct batch_rows *rows,
               PyObject *entries, PyObject *documents, PyObject *heads,
               PyObject *change)
{
    struct wal_batch *batch = &rows->batch;

    batch->struct_size = (uint32_t)sizeof(*batch);
    if (!value_rows(state, entries, "entries", &entry_table, &rows->entries,
                    &batch->entry_count)) {
        return false;
    }
    batch->entries = rows->entries;
    if (documents != NULL) {
        if (!value_rows(state, documents, "documents", &batch_document_table,
                        &rows->documents, &batch->document_count)) {
            return false;
        }
        batch->documents = rows->documents;
    }
    if (heads != NULL) {
        if (!value_rows(state, heads, "heads", &batch_head_table, &rows->heads,
                        &batch->head_count)) {
            return false;
        }
        batch->heads = rows->heads;
    }
    if (change != Py_None) {
        rows->change.struct_size = (uint32_t)sizeof(rows->change);
        if (!value_row(state, change, "change", &batch_change_table,
                       &rows->change)) {
            return false;
        }
        batch->change = &rows->change;
    }
    return true;
}

void batch_free(struct batch_rows *rows)
{
    free(rows->entries);
    free(rows->documents);
    free(rows->heads);
}

bool batch_options(struct module_state *state, PyObject *row,
                   struct wal_append_options *options)
{
    return value_row(state, row, "options", &option_table, options);
}

PyObject *batch_result(const struct wal_append_result *result)
{
    return Py_BuildValue("IIKs", (unsigned)result->appended,
                         (unsigned)result->duplicates,
                         (unsigned long long)result->sequence, result->last_id);
}

/* A batch of which a part may be missing, and how to write it. */
struct request {
    struct batch_rows rows;
    struct wal_append_options options;
    bool is_batch; /* of more than entries */
};

static enum wal_status write_now(struct wal_session *session,
                                 const struct request *request,
                                 struct wal_append_result *result,
                                 struct wal_error *error)
{
    const struct wal_batch *batch = &request->rows.batch;

    if (request->is_batch) {
        return wal_batch_commit(session, batch, &request->options, result,
                                error);
    }
    return wal_append(session, batch->entries, batch->entry_count,
                      &request->options, result, error);
}

static enum wal_status write_later(struct wal_session *session,
                                   const struct request *request,
                                   struct wal_ticket **ticket,
                                   struct wal_error *error)
{
    const struct wal_batch *batch = &request->rows.batch;

    if (request->is_batch) {
        return wal_batch_submit(session, batch, &request->options, ticket,
                                error);
    }
    return wal_submit(session, batch->entries, batch->entry_count,
                      &request->options, ticket, error);
}

static PyObject *run(PyObject *module, PyObject *object,
                     struct request *request, bool submit)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_ticket *ticket = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call;

    session = call_begin(&call, module, object, HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = submit ? write_later(session, request, &ticket, &call.error)
                         : write_now(session, request, &result, &call.error);
    call_lock(&call);
    if (submit) {
        return call_handle(&call, HANDLE_TICKET, ticket);
    }
    if (!call_failed(&call)) {
        made = batch_result(&result);
    }
    call_end(&call);
    return made;
}

/* (session, entries, options) */
static PyObject *write_entries(PyObject *module, PyObject *const *args,
                               Py_ssize_t count, bool submit)
{
    struct module_state *state = module_state(module);
    struct request request = {.options = WAL_INIT(wal_append_options)};
    PyObject *made = NULL;

    if (!value_count(module, submit ? "submit" : "append", count, 3)) {
        return NULL;
    }
    if (batch_set(state, &request.rows, args[1], NULL, NULL, Py_None) &&
        batch_options(state, args[2], &request.options)) {
        made = run(module, args[0], &request, submit);
    }
    batch_free(&request.rows);
    return made;
}

/* (session, entries, documents, heads, change, options) */
static PyObject *write_batch(PyObject *module, PyObject *const *args,
                             Py_ssize_t count, bool submit)
{
    struct module_state *state = module_state(module);
    struct request request = {.options = WAL_INIT(wal_append_options),
                              .is_batch = true};
    PyObject *made = NULL;

    if (!value_count(module, submit ? "submit_commit" : "commit", count, 6)) {
        return NULL;
    }
    if (batch_set(state, &request.rows, args[1], args[2], args[3], args[4]) &&
        batch_options(state, args[5], &request.options)) {
        made = run(module, args[0], &request, submit);
    }
    batch_free(&request.rows);
    return made;
}

static PyObject *py_append(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_entries(module, args, count, false);
}

static PyObject *py_submit(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_entries(module, args, count, true);
}

static PyObject *py_commit(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_batch(module, args, count, false);
}

static PyObject *py_submit_commit(PyObject *module, PyObject *const *args,
                                  Py_ssize_t count)
{
    return write_batch(module, args, count, true);
}

PyMethodDef batch_methods[] = {
    MODULE_FUNCTION("append", py_append),
    MODULE_FUNCTION("submit", py_submit),
    MODULE_FUNCTION("commit", py_commit),
    MODULE_FUNCTION("submit_commit", py_submit_commit),
    {0},
};
