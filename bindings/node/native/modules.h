/*
 * modules.h - the lists of functions that the addon exports. A module of a new
 * noun adds its list here.
 */
#ifndef AGENTWAL_NODE_MODULES_H
#define AGENTWAL_NODE_MODULES_H

#include "bindings/node/native/base/call.h"

/* That of interface.txt is the first. */
#define MODULES(X)        \
    X(interface_methods)  \
    X(admin_methods)      \
    X(blob_methods)       \
    X(change_methods)     \
    X(checkpoint_methods) \
    X(cursor_methods)     \
    X(document_methods)   \
    X(export_methods)     \
    X(import_methods)     \
    X(job_thread_methods) \
    X(search_methods)     \
    X(session_methods)    \
    X(store_methods)      \
    X(transfer_methods)   \
    X(view_methods)       \
    X(watcher_methods)

#define MODULES_DECLARE(name) extern const struct call_method name[];
MODULES(MODULES_DECLARE)
#undef MODULES_DECLARE

#endif
