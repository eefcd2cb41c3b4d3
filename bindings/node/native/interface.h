/*
 * interface.h - what bindings/generate.py makes from interface.txt: tables of structs, which code
 * by hand uses too, and kinds of handles; and the lists of functions that the addon exports.
 */
#ifndef AGENTWAL_NODE_INTERFACE_H
#define AGENTWAL_NODE_INTERFACE_H

#include "bindings/node/native/base/value.h"

struct handle_type;
struct store;

extern const struct handle_type session_type;
extern const struct handle_type view_type;
extern const struct handle_type blob_type;
extern const struct handle_type writer_type;
extern const struct handle_type list_type;
extern const struct handle_type search_type;

extern const struct table search_hit_out;
extern const struct table search_session_out;
extern const struct table wal_append_options_in;
extern const struct table wal_doc_in;
extern const struct table wal_entry_cursor_options_in;
extern const struct table wal_entry_in;
extern const struct table wal_head_in;
extern const struct table wal_import_options_in;
extern const struct table wal_import_report_out;
extern const struct table wal_import_result_out;
extern const struct table wal_open_options_in;
extern const struct table wal_search_query_in;
extern const struct table wal_session_change_in;
extern const struct table wal_session_info_out;
extern const struct table wal_session_options_in;

/* A session that was opened, until JavaScript has it. */
struct opened_session {
    struct wal_session *session; /* NULL: none */
    char id[WAL_ID_SIZE];
    size_t id_size; /* of an id, which may have NUL */
};

/* Fills the id once the session is there, in the thread that opened it: its promise may be settled
 * when the store is closed. `status` is that of opening it, and returned if it is a failure. Any
 * thread. */
enum wal_status session_identify(struct opened_session *opened, enum wal_status status,
                                 struct wal_error *error);

/* Closes a session that JavaScript did not get. */
void session_discard(struct opened_session *opened);

/* The array [session, id], or null without a session; takes the session. */
napi_value session_make(struct call *call, struct store *store, struct opened_session *opened);

/* That of interface.txt is the first. */
#define MODULES(X)        \
    X(interface_methods)  \
    X(content_methods)    \
    X(session_methods)    \
    X(exchange_methods)   \
    X(job_thread_methods) \
    X(search_methods)     \
    X(store_methods)

#define MODULES_DECLARE(name) extern const struct call_method name[];
MODULES(MODULES_DECLARE)
#undef MODULES_DECLARE

#endif
