/*
 * rados_library.c - finds the calls of librados (rados_library.h). Any thread.
 */
#include "remote/driver/rados/rados_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "engine/base/error.h"

static const char *const names[] = {
#define NAME(name) "rados_" #name,
    WAL__RADOS_CALLS(NAME)
#undef NAME
};

enum {
    COUNT = sizeof(names) / sizeof(names[0])
};

static_assert(sizeof(struct wal__rados_calls) == COUNT * sizeof(void *),
              "the calls are an array of pointers");

enum wal_status wal__rados_load(struct wal__rados_calls *calls,
                                struct wal_error *error)
{
    void *found[COUNT];
    void *library = dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        return wal__invalid(error, "a URL rados:// needs librados.so.2, which "
                                   "is not installed (Debian: librados2)");
    }
    for (size_t i = 0; i < COUNT; i++) {
        found[i] = dlsym(library, names[i]);
        if (found[i] == NULL) {
            return wal__invalid(error, "librados.so.2 is too old: it has no %s",
                                names[i]);
        }
    }
    memcpy(calls, found, sizeof(*calls));
    return WAL_OK;
}
