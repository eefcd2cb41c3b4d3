/*
 * entry.c - an entry as an object of Python: a copy in one block of memory; iterators over entries,
 * and appends.
 *
 * A copy, and not the map of the log, so that it remains valid when the store is closed, compacted
 * or damaged, and takes no memory but its size.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/value.h"

/* The texts of an entry, in their order in a block. */
enum {
    TEXT_ID,
    TEXT_PARENT_ID,
    TEXT_TYPE,
    TEXT_TIMESTAMP,
    TEXT_RUN_ID,
    TEXT_META,
    TEXT_PAYLOAD,
    TEXTS
};

struct entry_block {
    uint64_t sequence;
    uint64_t depth;
    uint64_t payload_size; /* of the entry; in the block may be none of it */
    uint32_t flags;
    uint32_t stream;
    uint32_t begins[TEXTS + 1]; /* of each text, and the end of the last */
    uint8_t digest[WAL_DIGEST_SIZE];
    char text[];
};

/* --- entries -------------------------------------------------------------- */

struct entry {
    PyObject_HEAD struct entry_block *block;
    PyObject *payload; /* parsed, or null */
    PyObject *meta;    /* parsed, or null */
};

/* Copies an entry; null: no memory. Needs no lock of the interpreter. Free it with free(), or give
 * it to entry_new. */
static struct entry_block *entry_block_copy(const struct wal_entry *entry)
{
    const struct wal_slice texts[TEXTS] = {entry->id,        entry->parent_id, entry->type,
                                           entry->timestamp, entry->run_id,    entry->meta,
                                           entry->payload};
    struct entry_block *block;
    uint64_t size = 0;

    for (size_t i = 0; i < TEXTS; i++) {
        size += texts[i].size;
    }
    block = size > UINT32_MAX ? NULL : malloc(sizeof(*block) + (size_t)size);
    if (block == NULL) {
        return NULL;
    }
    block->sequence = entry->sequence;
    block->depth = entry->depth;
    block->payload_size = entry->payload_size;
    block->flags = entry->flags;
    block->stream = entry->stream;
    memcpy(block->digest, entry->payload_digest, WAL_DIGEST_SIZE);
    size = 0;
    block->begins[0] = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i].size > 0) {
            memcpy(block->text + size, texts[i].data, (size_t)texts[i].size);
        }
        size += texts[i].size;
        block->begins[i + 1] = (uint32_t)size;
    }
    return block;
}

/* An object that owns the block, also when this fails. */
/* It is tracked by the collector of cycles once something is parsed: before that it has no
 * references. */
static PyObject *entry_new(struct module_state *state, struct entry_block *block)
{
    struct entry *entry = PyObject_GC_New(struct entry, state->entry_type);

    if (entry == NULL) {
        free(block);
        return NULL;
    }
    entry->block = block;
    entry->payload = NULL;
    entry->meta = NULL;
    return (PyObject *)entry;
}

static struct module_state *state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

static const struct entry_block *block_of(PyObject *object)
{
    return ((struct entry *)object)->block;
}

static struct wal_slice text_of(const struct entry_block *block, size_t text)
{
    const uint32_t *begin = block->begins + text;

    return (struct wal_slice){block->text + begin[0], begin[1] - begin[0]};
}

/* Fields ---------------------------------------------------------------- */

static PyObject *get_text_of(PyObject *object, void *text)
{
    return value_str(text_of(block_of(object), (uintptr_t)text));
}

static PyObject *get_text_or_none(PyObject *object, void *text)
{
    struct wal_slice found = text_of(block_of(object), (uintptr_t)text);

    return found.size == 0 ? Py_NewRef(Py_None) : value_str(found);
}

static PyObject *get_number(PyObject *object, void *offset)
{
    uint64_t number;

    memcpy(&number, (const char *)block_of(object) + (uintptr_t)offset, sizeof(number));
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *get_stream(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(block_of(object)->stream);
}

static PyObject *get_flag(PyObject *object, void *flag)
{
    return PyBool_FromLong((block_of(object)->flags & (uintptr_t)flag) != 0);
}

static PyObject *get_digest(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    if ((block->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        Py_RETURN_NONE;
    }
    return value_hex(block->digest, WAL_DIGEST_SIZE);
}

/* Payload --------------------------------------------------------------- */

static bool has_payload(PyObject *object)
{
    if ((block_of(object)->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        return true;
    }
    raise_invalid(state_of(object), "payload",
                  "it was left out of line: read the blob of `digest`");
    return false;
}

static PyObject *get_payload_bytes(PyObject *object, void *unused)
{
    struct wal_slice payload = text_of(block_of(object), TEXT_PAYLOAD);

    (void)unused;
    if (!has_payload(object)) {
        return NULL;
    }
    return PyBytes_FromStringAndSize(payload.data, (Py_ssize_t)payload.size);
}

static PyObject *get_payload_view(PyObject *object, void *unused)
{
    (void)unused;
    return PyMemoryView_FromObject(object);
}

static PyObject *get_text(PyObject *object, void *unused)
{
    struct wal_slice payload = text_of(block_of(object), TEXT_PAYLOAD);

    (void)unused;
    if (!has_payload(object)) {
        return NULL;
    }
    return PyUnicode_DecodeUTF8(payload.data, (Py_ssize_t)payload.size, "replace");
}

/* Returns what is kept of a text; else parses the JSON and keeps the value: another thread may have
 * been faster. */
static PyObject *parse(PyObject *object, PyObject **kept, size_t which)
{
    struct module_state *state = state_of(object);
    struct wal_slice json = text_of(block_of(object), which);
    PyObject *text;
    PyObject *value;

    if (*kept != NULL) {
        return Py_NewRef(*kept);
    }
    text = PyUnicode_DecodeUTF8(json.data, (Py_ssize_t)json.size, NULL);
    if (text == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            PyErr_SetString(state->bad_json, "the payload is not UTF-8");
        }
        return NULL;
    }
    value = PyObject_CallFunctionObjArgs(state->decode, text, NULL);
    Py_DECREF(text);
    if (value == NULL) {
        return NULL;
    }
    if (*kept != NULL) {
        Py_DECREF(value);
    } else {
        *kept = value;
        if (!PyObject_GC_IsTracked(object)) {
            PyObject_GC_Track(object);
        }
    }
    return Py_NewRef(*kept);
}

static PyObject *get_payload(PyObject *object, void *unused)
{
    (void)unused;
    return has_payload(object) ? parse(object, &((struct entry *)object)->payload, TEXT_PAYLOAD)
                               : NULL;
}

static PyObject *get_meta(PyObject *object, void *unused)
{
    (void)unused;
    return text_of(block_of(object), TEXT_META).size == 0
               ? Py_NewRef(Py_None)
               : parse(object, &((struct entry *)object)->meta, TEXT_META);
}

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct wal_slice payload = text_of(block_of(object), TEXT_PAYLOAD);

    if (!has_payload(object)) {
        view->obj = NULL;
        return -1;
    }
    return PyBuffer_FillInfo(view, object, (void *)(uintptr_t)payload.data,
                             (Py_ssize_t)payload.size, 1, flags);
}

/* The object ------------------------------------------------------------ */

static PyObject *represent(PyObject *object)
{
    const struct entry_block *block = block_of(object);
    PyObject *id = value_str(text_of(block, TEXT_ID));
    PyObject *type = value_str(text_of(block, TEXT_TYPE));
    PyObject *text = NULL;

    if (id != NULL && type != NULL) {
        text = PyUnicode_FromFormat("<agentwal.Entry %U %U, %llu bytes>", type, id,
                                    (unsigned long long)block->payload_size);
    }
    Py_XDECREF(id);
    Py_XDECREF(type);
    return text;
}

/* Of entries and iterators. */
static PyObject *refuse_pickle(PyObject *object, PyObject *protocol)
{
    struct module_state *state = state_of(object);

    (void)protocol;
    PyErr_SetString(state->invalid_type,
                    Py_TYPE(object) == state->entry_type
                        ? "an Entry cannot be pickled or copied: pass its payload, or its id and "
                          "the session's"
                        : "an iterator over entries cannot be pickled or copied: pass the ids of "
                          "the session and of an entry");
    return NULL;
}

static int entry_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct entry *entry = (struct entry *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(entry->payload);
    Py_VISIT(entry->meta);
    return 0;
}

static int entry_clear(PyObject *object)
{
    struct entry *entry = (struct entry *)object;

    Py_CLEAR(entry->payload);
    Py_CLEAR(entry->meta);
    return 0;
}

static void entry_deallocate(PyObject *object)
{
    struct entry *entry = (struct entry *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    (void)entry_clear(object);
    free(entry->block);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

#define NUMBER(name, member)                                                                   \
    {                                                                                          \
        name, get_number, NULL, NULL, (void *)(uintptr_t)offsetof(struct entry_block, member), \
    }

#define FLAG(name, flag)                                       \
    {                                                          \
        name, get_flag, NULL, NULL, (void *)(uintptr_t)(flag), \
    }

#define TEXT(name, getter, text, doc)                       \
    {                                                       \
        name, getter, NULL, doc, (void *)(uintptr_t)(text), \
    }

#define FIELD(name, getter, doc)      \
    {                                 \
        name, getter, NULL, doc, NULL \
    }

static PyGetSetDef fields[] = {
    TEXT("id", get_text_of, TEXT_ID, NULL),
    TEXT("parent_id", get_text_or_none, TEXT_PARENT_ID, "None: it is a root."),
    TEXT("type", get_text_of, TEXT_TYPE, NULL),
    TEXT("timestamp", get_text_of, TEXT_TIMESTAMP, NULL),
    TEXT("run_id", get_text_or_none, TEXT_RUN_ID, NULL),
    FIELD("stream", get_stream, "0: the conversation; 1: the transcript."),
    FIELD("payload", get_payload,
          "Parsed when it is first read, and kept. Raises BadJSON for a line "
          "that is no JSON,\nInvalid for a payload out of line."),
    FIELD("text", get_text,
          "The payload as text; bytes of a line that are not UTF-8 are "
          "replaced by U+FFFD."),
    FIELD("payload_bytes", get_payload_bytes, NULL),
    FIELD("payload_view", get_payload_view,
          "The payload without a copy, read-only; it keeps the entry."),
    FIELD("meta", get_meta, "Parsed when it is first read, and kept."),
    NUMBER("sequence", sequence),
    NUMBER("depth", depth),
    NUMBER("payload_size", payload_size),
    FLAG("is_root", WAL_ENTRY_ROOT),
    FLAG("is_line", WAL_ENTRY_LINE),
    FLAG("is_redacted", WAL_ENTRY_REDACTED),
    FLAG("is_out_of_line", WAL_ENTRY_OUT_OF_LINE),
    FIELD("digest", get_digest, "Of a payload out of line: the blob that has it; else None."),
    {0},
};

static PyMethodDef entry_type_methods[] = {
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {0},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)entry_deallocate},
    {Py_tp_traverse, (void *)(uintptr_t)entry_traverse},
    {Py_tp_clear, (void *)(uintptr_t)entry_clear},
    {Py_tp_repr, (void *)(uintptr_t)represent},
    {Py_tp_getset, fields},
    {Py_tp_methods, entry_type_methods},
    {Py_bf_getbuffer, (void *)(uintptr_t)get_buffer},
    {Py_tp_doc, "An entry of a session. It is a copy, and remains when the store is "
                "closed.\n\nIt has the buffer interface: memoryview(entry) is its "
                "payload."},
    {0, NULL},
};

const PyType_Spec entry_spec = {
    .name = "agentwal._wal.Entry",
    .basicsize = sizeof(struct entry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = entry_slots,
};

/* --- iterators ------------------------------------------------------------ */

/*
 * A failure concerns the entry that would be next: it is raised once those before it were returned,
 * and the next call goes on after it.
 */

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
    uint64_t after;                 /* leave out entries up to this sequence number */
    uint32_t index;
    uint32_t count;
    uint32_t limit; /* of the next fetch */
    bool is_busy;   /* a thread reads; blocks and counts are its */
    bool is_at_end;
    bool is_failed; /* `error` is to be raised after the blocks */
    struct wal_error error;
    struct entry_block *blocks[FETCH_MAX];
};

/* Reads entries. Without the interpreter's lock. */
static void fetch(struct iterator *iterator, struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    uint64_t bytes = 0;
    uint32_t passed = 0;

    while (iterator->count < iterator->limit && bytes < FETCH_BYTES && passed < FETCH_PASSED) {
        enum wal_status status = wal_entry_cursor_next(cursor, &entry, &iterator->error);
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
        bytes += entry.payload.size;
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
    iterator->error = (struct wal_error)WAL_INIT(wal_error);
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
    cursor = call_begin(&call, PyType_GetModule(Py_TYPE(object)), iterator->cursor, HANDLE_CURSOR);
    if (cursor == NULL) {
        return NULL;
    }
    left = wal_entry_cursor_remaining(cursor);
    left += iterator->count - iterator->index;
    call_end(&call);
    return PyLong_FromUnsignedLongLong(left);
}

static int iterator_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct iterator *iterator = (struct iterator *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(iterator->cursor);
    Py_VISIT(iterator->owner);
    return 0;
}

static int iterator_clear(PyObject *object)
{
    Py_CLEAR(((struct iterator *)object)->owner);
    return 0;
}

static void iterator_deallocate(PyObject *object)
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

static PyMethodDef iterator_methods[] = {
    {"remaining", remaining, METH_NOARGS, "Entries that are left."},
    {"__length_hint__", remaining, METH_NOARGS, NULL},
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {0},
};

static PyType_Slot iterator_slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)iterator_deallocate},
    {Py_tp_traverse, (void *)(uintptr_t)iterator_traverse},
    {Py_tp_clear, (void *)(uintptr_t)iterator_clear},
    {Py_tp_iter, (void *)(uintptr_t)PyObject_SelfIter},
    {Py_tp_iternext, (void *)(uintptr_t)next},
    {Py_tp_methods, iterator_methods},
    {Py_tp_doc, "Iterates over entries; reads up to 256 of them in one call "
                "of the library."},
    {0, NULL},
};

const PyType_Spec iterator_spec = {
    .name = "agentwal._wal.EntryIterator",
    .basicsize = sizeof(struct iterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = iterator_slots,
};

/* Opening ---------------------------------------------------------------- */

static PyObject *iterator_new(struct module_state *state, PyObject *cursor, uint64_t after,
                              PyObject *owner)
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
    iterator->error = (struct wal_error)WAL_INIT(wal_error);
    PyObject_GC_Track(iterator);
    return (PyObject *)iterator;
}

/* entries(session, options, after, owner) */
static PyObject *entries(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session;
    uint64_t after;
    struct call call;

    if (!value_count(module, "entries", count, 4) ||
        !value_row(state, args[1], "options", &wal_entry_cursor_options_in, &options) ||
        !value_u64(state, args[2], "after", &after)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_entry_cursor_open(session, &options, &cursor, &call.error);
    call_lock(&call);
    return iterator_new(state, call_handle(&call, HANDLE_CURSOR, cursor), after, args[3]);
}

/* entry_get(session, id): None when there is none. */
static PyObject *entry_get(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct entry_block *block = NULL;
    struct wal_session *session;
    struct wal_slice id;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "entry_get", count, 2) || !value_text(state, args[1], "id", &id)) {
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

/* --- batches -------------------------------------------------------------- */

PyObject *batch_result(const struct wal_append_result *result)
{
    return Py_BuildValue("IIKs", (unsigned)result->appended, (unsigned)result->duplicates,
                         (unsigned long long)result->sequence, result->last_id);
}

/* (session, entries, documents, heads, change or None, options) */
static PyObject *write_batch(PyObject *module, PyObject *const *args, Py_ssize_t count, bool submit)
{
    struct module_state *state = module_state(module);
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_session_change change = WAL_INIT(wal_session_change);
    struct wal_batch batch = WAL_INIT(wal_batch);
    void *entries = NULL, *documents = NULL, *heads = NULL;
    struct wal_ticket *ticket = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call = {.handle = NULL};

    if (value_count(module, submit ? "submit_commit" : "commit", count, 6) &&
        value_rows(state, args[1], "entries", &wal_entry_in, &entries, &batch.entry_count) &&
        value_rows(state, args[2], "documents", &wal_doc_in, &documents, &batch.document_count) &&
        value_rows(state, args[3], "heads", &wal_head_in, &heads, &batch.head_count) &&
        (args[4] == Py_None ||
         value_row(state, args[4], "change", &wal_session_change_in, &change)) &&
        value_row(state, args[5], "options", &wal_append_options_in, &options) &&
        (session = call_begin(&call, module, args[0], HANDLE_SESSION)) != NULL) {
        batch.entries = entries;
        batch.documents = documents;
        batch.heads = heads;
        batch.change = args[4] == Py_None ? NULL : &change;
        call_unlock(&call);
        call.status = submit ? wal_batch_submit(session, &batch, &options, &ticket, &call.error)
                             : wal_batch_commit(session, &batch, &options, &result, &call.error);
        call_lock(&call);
        if (!call_failed(&call)) {
            made = submit ? call_object(&call, HANDLE_TICKET, ticket) : batch_result(&result);
        }
    }
    free(entries);
    free(documents);
    free(heads);
    call_end(&call);
    return made;
}

static PyObject *py_commit(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return write_batch(module, args, count, false);
}

static PyObject *py_submit_commit(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return write_batch(module, args, count, true);
}

/* Tickets ----------------------------------------------------------------- */

enum {
    CLOSING_MS = 5 /* until the store that is being closed is looked at again */
};

/* Whether the store is being closed: the outcome is there when it is. */
static bool is_closing(const struct handle *handle)
{
    const struct gate *gate = handle->gate;

    return gate->is_closing && !gate->is_closed && gate->generation == process_generation();
}

static void sleep_unlocked(void)
{
    struct timespec time = {.tv_nsec = CLOSING_MS * 1000000L};
    PyThreadState *thread = PyEval_SaveThread();

    (void)nanosleep(&time, NULL);
    PyEval_RestoreThread(thread);
}

/* ticket_wait(ticket, timeout_ms): None while it is pending. */
static PyObject *ticket_wait(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct handle *handle;
    struct wal_ticket *ticket;
    PyObject *made = NULL;
    int64_t timeout;
    struct call call;

    if (!value_count(module, "ticket_wait", count, 2) ||
        !value_i64(state, args[1], "timeout_ms", &timeout)) {
        return NULL;
    }
    handle = handle_of(state, args[0], HANDLE_TICKET);
    if (handle == NULL) {
        return NULL;
    }
    if (is_closing(handle)) {
        if (timeout != 0) {
            sleep_unlocked();
        }
        Py_RETURN_NONE;
    }
    ticket = call_begin(&call, module, args[0], HANDLE_TICKET);
    if (ticket == NULL) {
        return NULL;
    }
    if (timeout == 0) {
        call.status = wal_ticket_wait(ticket, 0, &result, &call.error);
    } else {
        call_unlock(&call);
        call.status = wal_ticket_wait(ticket, timeout, &result, &call.error);
        call_lock(&call);
    }
    if (call.status == WAL_EBUSY) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = batch_result(&result);
    }
    call_end(&call);
    return made;
}

PyMethodDef entry_methods[] = {
    MODULE_FUNCTION("entries", entries),         MODULE_FUNCTION("entry_get", entry_get),
    MODULE_FUNCTION("commit", py_commit),        MODULE_FUNCTION("submit_commit", py_submit_commit),
    MODULE_FUNCTION("ticket_wait", ticket_wait), {0},
};
