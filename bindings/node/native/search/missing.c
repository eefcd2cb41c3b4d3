/*
 * missing.c - what there is in place of search.c in an addon that was built without SQLite.
 */
#include "bindings/node/native/interface.h"

/* openSearch(store, flags) */
static napi_value open_search(struct call *call)
{
    call_fail(call, WAL_EINVAL,
              "this binary of agentwal was built without full-text search: it "
              "needs libsqlite3.a (Debian: libsqlite3-dev) when it is built");
    return NULL;
}

const struct call_method search_methods[] = {
    {"openSearch", open_search},
    {NULL, NULL},
};
