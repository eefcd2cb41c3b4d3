/*
 * missing.c - what there is in place of search.c in an extension that was built without SQLite.
 */
#include "bindings/python/src/core/module.h"

void search_close(void *search)
{
    (void)search;
}

static PyObject *missing(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    raise_status(module_state(module), WAL_EINVAL,
                 "this build of agentwal is without full-text search: it needs "
                 "libsqlite3.a (Debian: libsqlite3-dev) when it is built");
    return NULL;
}

PyMethodDef search_methods[] = {
    MODULE_FUNCTION("search_open", missing),
    MODULE_FUNCTION("search_find", missing),
    MODULE_FUNCTION("search_update", missing),
    {0},
};
