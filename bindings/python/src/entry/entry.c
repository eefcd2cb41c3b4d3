/*
 * entry.c - an entry as an object of Python (entry.h).
 */
#include "bindings/python/src/entry/entry.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/value.h"

struct entry {
    PyObject_HEAD struct entry_block *block;
    PyObject *payload; /* parsed, or null */
    PyObject *meta;    /* parsed, or null */
};

static char *put(char *place, struct wal_slice text)
{
    if (text.size > 0) {
        memcpy(place, text.data, (size_t)text.size);
    }
    return place + text.size;
}

struct entry_block *entry_block_copy(const struct wal_entry *entry)
{
    uint64_t size = entry->id.size + entry->parent_id.size + entry->type.size +
                    entry->timestamp.size + entry->run_id.size +
                    entry->meta.size + entry->payload.size;
    struct entry_block *block = malloc(sizeof(*block) + (size_t)size);
    char *place;

    if (block == NULL) {
        return NULL;
    }
    block->sequence = entry->sequence;
    block->depth = entry->depth;
    block->payload_size = entry->payload_size;
    block->block_payload_size = entry->payload.size;
    block->meta_size = entry->meta.size;
    block->flags = entry->flags;
    block->stream = entry->stream;
    block->id_size = (uint16_t)entry->id.size;
    block->parent_size = (uint16_t)entry->parent_id.size;
    block->type_size = (uint16_t)entry->type.size;
    block->timestamp_size = (uint16_t)entry->timestamp.size;
    block->run_size = (uint16_t)entry->run_id.size;
    memcpy(block->digest, entry->payload_digest, WAL_DIGEST_SIZE);
    place = put(block->text, entry->id);
    place = put(place, entry->parent_id);
    place = put(place, entry->type);
    place = put(place, entry->timestamp);
    place = put(place, entry->run_id);
    place = put(place, entry->meta);
    (void)put(place, entry->payload);
    return block;
}

/* It is tracked by the collector of cycles once something is parsed: before
 * that it has no references. */
PyObject *entry_new(struct module_state *state, struct entry_block *block)
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

/* Where the texts of a block are. */

static const char *parent_text(const struct entry_block *block)
{
    return block->text + block->id_size;
}

static const char *type_text(const struct entry_block *block)
{
    return parent_text(block) + block->parent_size;
}

static const char *timestamp_text(const struct entry_block *block)
{
    return type_text(block) + block->type_size;
}

static const char *run_text(const struct entry_block *block)
{
    return timestamp_text(block) + block->timestamp_size;
}

static const char *meta_text(const struct entry_block *block)
{
    return run_text(block) + block->run_size;
}

static const char *payload_text(const struct entry_block *block)
{
    return meta_text(block) + block->meta_size;
}

/* Fields ---------------------------------------------------------------- */

static PyObject *text_or_none(const char *text, uint64_t size)
{
    if (size == 0) {
        Py_RETURN_NONE;
    }
    return value_str((struct wal_slice){text, size});
}

static PyObject *get_id(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    return value_str((struct wal_slice){block->text, block->id_size});
}

static PyObject *get_parent_id(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    return text_or_none(parent_text(block), block->parent_size);
}

static PyObject *get_type(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    return value_str((struct wal_slice){type_text(block), block->type_size});
}

static PyObject *get_timestamp(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    return value_str(
        (struct wal_slice){timestamp_text(block), block->timestamp_size});
}

static PyObject *get_run_id(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    return text_or_none(run_text(block), block->run_size);
}

static PyObject *get_number(PyObject *object, void *offset)
{
    uint64_t number;

    memcpy(&number, (const char *)block_of(object) + (uintptr_t)offset,
           sizeof(number));
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
    const struct entry_block *block = block_of(object);

    (void)unused;
    if (!has_payload(object)) {
        return NULL;
    }
    return PyBytes_FromStringAndSize(payload_text(block),
                                     (Py_ssize_t)block->block_payload_size);
}

static PyObject *get_payload_view(PyObject *object, void *unused)
{
    (void)unused;
    return PyMemoryView_FromObject(object);
}

static PyObject *get_text(PyObject *object, void *unused)
{
    const struct entry_block *block = block_of(object);

    (void)unused;
    if (!has_payload(object)) {
        return NULL;
    }
    return PyUnicode_DecodeUTF8(
        payload_text(block), (Py_ssize_t)block->block_payload_size, "replace");
}

/* Parses JSON and keeps the value; another thread may have been faster. */
static PyObject *parse(PyObject *object, PyObject **kept, const char *data,
                       uint64_t size)
{
    struct module_state *state = state_of(object);
    PyObject *text = PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, NULL);
    PyObject *value;

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
    Py_INCREF(*kept);
    return *kept;
}

static PyObject *get_payload(PyObject *object, void *unused)
{
    struct entry *entry = (struct entry *)object;

    (void)unused;
    if (entry->payload != NULL) {
        Py_INCREF(entry->payload);
        return entry->payload;
    }
    if (!has_payload(object)) {
        return NULL;
    }
    return parse(object, &entry->payload, payload_text(entry->block),
                 entry->block->block_payload_size);
}

static PyObject *get_meta(PyObject *object, void *unused)
{
    struct entry *entry = (struct entry *)object;

    (void)unused;
    if (entry->meta != NULL) {
        Py_INCREF(entry->meta);
        return entry->meta;
    }
    if (entry->block->meta_size == 0) {
        Py_RETURN_NONE;
    }
    return parse(object, &entry->meta, meta_text(entry->block),
                 entry->block->meta_size);
}

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    const struct entry_block *block = block_of(object);

    if (!has_payload(object)) {
        view->obj = NULL;
        return -1;
    }
    return PyBuffer_FillInfo(view, object,
                             (void *)(uintptr_t)payload_text(block),
                             (Py_ssize_t)block->block_payload_size, 1, flags);
}

/* The object ------------------------------------------------------------ */

static PyObject *represent(PyObject *object)
{
    const struct entry_block *block = block_of(object);
    PyObject *id = get_id(object, NULL);
    PyObject *type = get_type(object, NULL);
    PyObject *text = NULL;

    if (id != NULL && type != NULL) {
        text =
            PyUnicode_FromFormat("<agentwal.Entry %U %U, %llu bytes>", type, id,
                                 (unsigned long long)block->payload_size);
    }
    Py_XDECREF(id);
    Py_XDECREF(type);
    return text;
}

static PyObject *refuse_pickle(PyObject *object, PyObject *protocol)
{
    (void)protocol;
    PyErr_SetString(state_of(object)->invalid_type,
                    "an Entry cannot be pickled or copied: pass its payload, "
                    "or its id and the session's");
    return NULL;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    struct entry *entry = (struct entry *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(entry->payload);
    Py_VISIT(entry->meta);
    return 0;
}

static int clear(PyObject *object)
{
    struct entry *entry = (struct entry *)object;

    Py_CLEAR(entry->payload);
    Py_CLEAR(entry->meta);
    return 0;
}

static void deallocate(PyObject *object)
{
    struct entry *entry = (struct entry *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    (void)clear(object);
    free(entry->block);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

#define NUMBER(name, member)                                         \
    {                                                                \
        name, get_number, NULL, NULL,                                \
            (void *)(uintptr_t)offsetof(struct entry_block, member), \
    }
#define FLAG(name, flag)                                       \
    {                                                          \
        name, get_flag, NULL, NULL, (void *)(uintptr_t)(flag), \
    }
#define FIELD(name, getter, doc)      \
    {                                 \
        name, getter, NULL, doc, NULL \
    }

static PyGetSetDef fields[] = {
    FIELD("id", get_id, NULL),
    FIELD("parent_id", get_parent_id, "None: it is a root."),
    FIELD("type", get_type, NULL),
    FIELD("timestamp", get_timestamp, NULL),
    FIELD("run_id", get_run_id, NULL),
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
    FIELD("digest", get_digest,
          "Of a payload out of line: the blob that has it; else None."),
    {0},
};

static PyMethodDef methods[] = {
    {"__reduce_ex__", refuse_pickle, METH_O, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)deallocate},
    {Py_tp_traverse, (void *)(uintptr_t)traverse},
    {Py_tp_clear, (void *)(uintptr_t)clear},
    {Py_tp_repr, (void *)(uintptr_t)represent},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, (void *)(uintptr_t)get_buffer},
    {Py_tp_doc,
     "An entry of a session. It is a copy, and remains when the store is "
     "closed.\n\nIt has the buffer interface: memoryview(entry) is its "
     "payload."},
    {0, NULL},
};

const PyType_Spec entry_spec = {
    .name = "agentwal._wal.Entry",
    .basicsize = sizeof(struct entry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
