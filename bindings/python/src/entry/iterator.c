/*
 * iterator.c - iterates over entries: reads up to 256 of them in one call
 * without the interpreter's lock, and makes an object of each when it is asked
 * for.
 *
 * A failure concerns the entry that would be next: it is raised once those
 * before it were returned, and the next call goes on after it.
 */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/entry/entry.h"

enum {
    FETCH_FIRST = 8,       /* entries */
    FETCH_MAX = 256,       /* entries */
    FETCH_BYTES = 1 << 20, /* of payloads, from which a fetch ends */
    FETCH_PASSED = 4096    /* entries that are left out, until signals are
                              * handled */
};

struct iterator {
    PyObject_HEAD PyObject *cursor; /* a handle */
    PyObject *owner;                /* what keeps the store open */
    uint64_t after; /* leave out entries up to this sequence number */
    uint32_t index;
    uint32_t count;
    uint32_t limit; /* of the next fetch */
    bool is_busy;   /* a thread reads; blocks and counts are its */
    bool is_at_end;
    bool is_failed; /* `error` is to be raised after the blocks */
    struct wal_error error;
    struct entry_block *blocks[FETCH_MAX];
};

static struct module_state *state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

/* Reads entries. Without the interpreter's lock. */
static void fetch(struct iterator *iterator, struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    uint64_t bytes = 0;
    uint32_t passed = 0;

    while (iterator->count < iterator->limit && bytes < FETCH_BYTES &&
           passed < FETCH_PASSED) {
        enum wal_status status =
            wal_entry_cursor_next(cursor, &entry, &iterator->error);
        struct entry_block *block;

        if (status == WAL_END) {
            iterator->is_at_end = true;
            return;
        }
        if (status != WAL_OK) {
            iterator->error.status = status;
            iterator->is_failed = true;
            return;
        }
        if (entry.sequence <= iterator->after) {
            passed++;
            continue;
        }
        block = entry_block_copy(&entry);
        if (block == NULL) {
            iterator->error.status = WAL_ENOMEM;
            iterator->error.text[0] = '\0';
            iterator->is_failed = true;
            return;
        }
        iterator->blocks[iterator->count++] = block;
        bytes += block->block_payload_size;
    }
    if (iterator->limit < FETCH_MAX) {
        iterator->limit *= 2;
    }
}

static PyObject *take(PyObject *object, struct iterator *iterator)
{
    const struct handle *cursor = (struct handle *)iterator->cursor;

    if (call_refuses(state_of(object), cursor)) {
        return NULL;
    }
    return entry_new(state_of(object), iterator->blocks[iterator->index++]);
}

/* Raises the failure after the blocks. */
static PyObject *fail(PyObject *object, struct iterator *iterator)
{
    iterator->is_failed = false;
    raise_error(state_of(object), &iterator->error);
    memset(&iterator->error, 0, sizeof(iterator->error));
    iterator->error.struct_size = (uint32_t)sizeof(iterator->error);
    return NULL;
}

static PyObject *next(PyObject *object)
{
    struct iterator *iterator = (struct iterator *)object;
    PyObject *module = PyType_GetModule(Py_TYPE(object));

    for (;;) {
        struct call call;
        struct wal_entry_cursor *cursor;

        if (!iterator->is_busy && iterator->index < iterator->count) {
            return take(object, iterator);
        }
        if (!iterator->is_busy && iterator->is_failed) {
            return fail(object, iterator);
        }
        if (!iterator->is_busy && iterator->is_at_end) {
            return NULL;
        }
        /* Raises Busy when another thread reads. */
        cursor = call_begin(&call, module, iterator->cursor, HANDLE_CURSOR);
        if (cursor == NULL) {
            return NULL;
        }
        iterator->index = 0;
        iterator->count = 0;
        iterator->is_busy = true;
        call_unlock(&call);
        fetch(iterator, cursor);
        call_lock(&call);
        iterator->is_busy = false;
        call_end(&call);
        if (PyErr_CheckSignals() != 0) {
            return NULL;
        }
    }
}

static PyObject *remaining(PyObject *object, PyObject *unused)
{
    struct iterator *iterator = (struct iterator *)object;
    struct wal_entry_cursor *cursor;
    struct call call;
    uint64_t left;

    (void)unused;
    cursor = call_begin(&call, PyType_GetModule(Py_TYPE(object)),
                        iterator->cursor, HANDLE_CURSOR);
    if (cursor == NULL) {
        return NULL;
    }
    left = wal_entry_cursor_remaining(cursor);
    left += iterator->count - iterator->index;
    call_end(&call);
    return PyLong_FromUnsignedLongLong(left);
}

static PyObject *refuse_pickle(PyObject *object, PyObject *protocol)
{
    (void)protocol;
    PyErr_SetString(state_of(object)->invalid_type,
                    "an iterator over entries cannot be pickled or copied: "
                    "pass the ids of the session and of an entry");
    return NULL;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    struct iterator *iterator = (struct iterator *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(iterator->cursor);
    Py_VISIT(iterator->owner);
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((struct iterator *)object)->owner);
    return 0;
}

static void deallocate(PyObject *object)
{
    struct iterator *iterator = (struct iterator *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    for (uint32_t i = iterator->index; i < iterator->count; i++) {
        free(iterator->blocks[i]);
    }
    Py_XDECREF(iterator->cursor);
    Py_XDECREF(iterator->owner);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"remaining", remaining, METH_NOARGS, "Entries that are left."},
    {"__length_hint__", remaining, METH_NOARGS, NULL},
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)deallocate},
    {Py_tp_traverse, (void *)(uintptr_t)traverse},
    {Py_tp_clear, (void *)(uintptr_t)clear},
    {Py_tp_iter, (void *)(uintptr_t)PyObject_SelfIter},
    {Py_tp_iternext, (void *)(uintptr_t)next},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Iterates over entries; reads up to 256 of them in one call "
                "of the library."},
    {0, NULL},
};

const PyType_Spec iterator_spec = {
    .name = "agentwal._wal.EntryIterator",
    .basicsize = sizeof(struct iterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* Opening ---------------------------------------------------------------- */

static PyObject *iterator_new(struct module_state *state, PyObject *cursor,
                              uint64_t after, PyObject *owner)
{
    struct iterator *iterator;

    if (cursor == NULL) {
        return NULL;
    }
    iterator = PyObject_GC_New(struct iterator, state->iterator_type);
    if (iterator == NULL) {
        Py_DECREF(cursor);
        return NULL;
    }
    iterator->cursor = cursor;
    Py_INCREF(owner);
    iterator->owner = owner;
    iterator->after = after;
    iterator->index = 0;
    iterator->count = 0;
    iterator->limit = FETCH_FIRST;
    iterator->is_busy = false;
    iterator->is_at_end = false;
    iterator->is_failed = false;
    memset(&iterator->error, 0, sizeof(iterator->error));
    iterator->error.struct_size = (uint32_t)sizeof(iterator->error);
    PyObject_GC_Track(iterator);
    return (PyObject *)iterator;
}

/* entries(session, options, after, owner) */
static PyObject *entries(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session;
    uint64_t after;
    struct call call;

    if (!value_count(module, "entries", count, 4) ||
        !value_row(state, args[1], "options", &wal_entry_cursor_options_in,
                   &options) ||
        !value_u64(state, args[2], "after", &after)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status =
        wal_entry_cursor_open(session, &options, &cursor, &call.error);
    call_lock(&call);
    return iterator_new(state, call_handle(&call, HANDLE_CURSOR, cursor), after,
                        args[3]);
}

/* entry_get(session, id): None when there is none. */
static PyObject *entry_get(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct entry_block *block = NULL;
    struct wal_session *session;
    struct wal_slice id;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "entry_get", count, 2) ||
        !value_text(state, args[1], "id", &id)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    (void)pthread_mutex_lock(&call.handle->slices);
    call.status = wal_entry_get(session, id, &entry, &call.error);
    if (call.status == WAL_OK) {
        block = entry_block_copy(&entry);
    }
    (void)pthread_mutex_unlock(&call.handle->slices);
    call_lock(&call);
    if (call.status == WAL_ENOTFOUND) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = block != NULL ? entry_new(state, block) : PyErr_NoMemory();
    }
    call_end(&call);
    return made;
}

PyMethodDef iterator_methods[] = {
    MODULE_FUNCTION("entries", entries),
    MODULE_FUNCTION("entry_get", entry_get),
    {0},
};
