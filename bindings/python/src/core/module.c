/*
 * module.c - the module agentwal._wal (module.h).
 */
#include "bindings/python/src/core/module.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bindings/python/src/core/interface.h"

#define PY_SSIZE_T_CLEAN

/* --- counting forks ------------------------------------------------------- */

/* Of the process, and so of all its interpreters. */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_watched;

static atomic_uint_least32_t generation;

static void count_child(void)
{
    (void)atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    is_watched = pthread_atfork(NULL, NULL, count_child) == 0;
}

/* Counts calls of fork() from now on. Called when the module is loaded; false: no memory. Any
 * thread. */
static bool process_watch(void)
{
    return pthread_once(&once, watch) == 0 && is_watched;
}

uint32_t process_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* --- exceptions ----------------------------------------------------------- */

/* Text of the library is UTF-8 that may be cut at the end of its array. */
static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *raise_make(struct module_state *state, const struct wal_error *error)
{
    const char *text = error->text[0] != '\0' ? error->text : wal_status_text(error->status);
    PyObject *sentence = text_of(text);
    PyObject *file =
        PyUnicode_DecodeUTF8(error->file, (Py_ssize_t)strlen(error->file), "surrogateescape");
    PyObject *actual = text_of(error->actual);
    PyObject *made = NULL;

    if (sentence != NULL && file != NULL && actual != NULL) {
        made = PyObject_CallFunction(state->make_error, "iOiiIKOO", (int)error->status, sentence,
                                     (int)error->sys_errno, (int)error->holder,
                                     (unsigned)error->expectation,
                                     (unsigned long long)error->offset, file, actual);
    }
    Py_XDECREF(sentence);
    Py_XDECREF(file);
    Py_XDECREF(actual);
    return made;
}

void raise_error(struct module_state *state, const struct wal_error *error)
{
    PyObject *made = raise_make(state, error);

    if (made != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
}

void raise_status(struct module_state *state, enum wal_status status, const char *text)
{
    struct wal_error error = WAL_INIT(wal_error);

    error.status = status;
    if (text != NULL) {
        (void)PyOS_snprintf(error.text, sizeof(error.text), "%s", text);
    }
    raise_error(state, &error);
}

void raise_invalid(struct module_state *state, const char *name, const char *text)
{
    PyErr_Format(state->invalid, "%s: %s", name, text);
}

void raise_type(struct module_state *state, const char *name, const char *wanted, PyObject *value)
{
    PyObject *made = PyObject_CallFunction(state->wrong_type, "ssO", name, wanted, value);

    if (made != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
}

/* --- the module ----------------------------------------------------------- */

struct module_state *module_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* Takes an attribute of another module of the package. */
static bool take(PyObject **place, PyObject *from, const char *name)
{
    *place = from == NULL ? NULL : PyObject_GetAttrString(from, name);
    return *place != NULL;
}

static bool take_python(struct module_state *state)
{
    PyObject *errors = PyImport_ImportModule("agentwal._errors");
    PyObject *json = errors == NULL ? NULL : PyImport_ImportModule("agentwal._json");
    bool ok = json != NULL && take(&state->make_error, errors, "make_error") &&
              take(&state->wrong_type, errors, "wrong_type") &&
              take(&state->invalid, errors, "Invalid") &&
              take(&state->invalid_type, errors, "InvalidType") &&
              take(&state->bad_json, errors, "BadJSON") && take(&state->decode, json, "decode");

    Py_XDECREF(errors);
    Py_XDECREF(json);
    return ok;
}

static bool add_type(PyObject *module, const PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, (PyType_Spec *)(uintptr_t)spec, NULL);
    return *type != NULL && PyModule_AddType(module, *type) == 0;
}

static bool add_constants(PyObject *module)
{
    bool ok = true;

    for (size_t i = 0; ok && constants[i].name != NULL; i++) {
        ok = PyModule_AddIntConstant(module, constants[i].name, constants[i].value) == 0;
    }
    return ok;
}

static bool watch_process(void)
{
    if (!process_watch()) {
        (void)PyErr_NoMemory();
        return false;
    }
    return true;
}

static int execute(PyObject *module)
{
    struct module_state *state = module_state(module);
    bool ok = watch_process() && take_python(state) &&
              add_type(module, &handle_spec, &state->handle_type) &&
              add_type(module, &entry_spec, &state->entry_type) &&
              add_type(module, &iterator_spec, &state->iterator_type) && add_constants(module);

#define MODULE_ADD(name) ok = ok && PyModule_AddFunctions(module, name) == 0;
    MODULE_METHODS(MODULE_ADD)
#undef MODULE_ADD
    return ok ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = module_state(module);

    Py_VISIT(state->handle_type);
    Py_VISIT(state->entry_type);
    Py_VISIT(state->iterator_type);
    Py_VISIT(state->make_error);
    Py_VISIT(state->wrong_type);
    Py_VISIT(state->invalid);
    Py_VISIT(state->invalid_type);
    Py_VISIT(state->bad_json);
    Py_VISIT(state->decode);
    return 0;
}

static int clear(PyObject *module)
{
    struct module_state *state = module_state(module);

    Py_CLEAR(state->handle_type);
    Py_CLEAR(state->entry_type);
    Py_CLEAR(state->iterator_type);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->wrong_type);
    Py_CLEAR(state->invalid);
    Py_CLEAR(state->invalid_type);
    Py_CLEAR(state->bad_json);
    Py_CLEAR(state->decode);
    return 0;
}

static void release(void *module)
{
    (void)clear(module);
}

/* Of Python 3.12: the module may be loaded in interpreters that have a lock each. The headers of
 * 3.11 lack the names, and 3.11 refuses the slot. */
enum {
    SLOT_MULTIPLE_INTERPRETERS = 3,
    PER_INTERPRETER_LOCK_SUPPORTED = 2,
    VERSION_WITH_SLOT = 0x030c0000
};

static PyModuleDef_Slot slots_3_11[] = {
    {Py_mod_exec, (void *)(uintptr_t)execute},
    {0, NULL},
};

static PyModuleDef_Slot slots_3_12[] = {
    {Py_mod_exec, (void *)(uintptr_t)execute},
    {SLOT_MULTIPLE_INTERPRETERS, (void *)PER_INTERPRETER_LOCK_SUPPORTED},
    {0, NULL},
};

#define DEFINITION(slots)                                                                        \
    {                                                                                            \
        PyModuleDef_HEAD_INIT, .m_name = "agentwal._wal", .m_size = sizeof(struct module_state), \
                               .m_slots = (slots), .m_traverse = traverse, .m_clear = clear,     \
                               .m_free = release,                                                \
    }

static struct PyModuleDef definition_3_11 = DEFINITION(slots_3_11);

static struct PyModuleDef definition_3_12 = DEFINITION(slots_3_12);

PyMODINIT_FUNC PyInit__wal(void);

PyMODINIT_FUNC PyInit__wal(void)
{
    return PyModuleDef_Init(Py_Version < VERSION_WITH_SLOT ? &definition_3_11 : &definition_3_12);
}
