/*
 * interface.h - what bindings/generate.py makes from interface.txt: tables of structs, which code
 * by hand uses too, and kinds of handles; and the lists of functions that the addon exports.
 */
#ifndef AGENTWAL_NODE_INTERFACE_H
#define AGENTWAL_NODE_INTERFACE_H

#include "bindings/node/native/base/value.h"

struct handle_type;

extern const struct handle_type session_type;
extern const struct handle_type view_type;
extern const struct handle_type blob_type;
extern const struct handle_type writer_type;
extern const struct handle_type list_type;

extern const struct table search_hit_out;
extern const struct table search_session_out;
extern const struct table wal_append_options_in;
extern const struct table wal_append_result_out;
extern const struct table wal_checkpoint_info_out;
extern const struct table wal_checkpoint_options_in;
extern const struct table wal_claim_out;
extern const struct table wal_doc_cursor_options_in;
extern const struct table wal_doc_in;
extern const struct table wal_doc_out;
extern const struct table wal_entry_cursor_options_in;
extern const struct table wal_entry_in;
extern const struct table wal_file_change_out;
extern const struct table wal_file_changes_info_out;
extern const struct table wal_file_in;
extern const struct table wal_file_out;
extern const struct table wal_head_in;
extern const struct table wal_head_out;
extern const struct table wal_import_issue_out;
extern const struct table wal_import_options_in;
extern const struct table wal_import_report_out;
extern const struct table wal_import_result_out;
extern const struct table wal_migrate_result_out;
extern const struct table wal_open_options_in;
extern const struct table wal_rewind_options_in;
extern const struct table wal_rewind_result_out;
extern const struct table wal_salvage_report_out;
extern const struct table wal_salvage_result_out;
extern const struct table wal_search_query_in;
extern const struct table wal_search_update_options_in;
extern const struct table wal_search_update_result_out;
extern const struct table wal_session_change_in;
extern const struct table wal_session_cursor_options_in;
extern const struct table wal_session_info_out;
extern const struct table wal_session_options_in;
extern const struct table wal_session_remove_options_in;
extern const struct table wal_session_space_out;
extern const struct table wal_store_backup_result_out;
extern const struct table wal_store_compact_options_in;
extern const struct table wal_store_compact_result_out;
extern const struct table wal_store_info_out;
extern const struct table wal_transfer_report_out;
extern const struct table wal_transfer_result_out;
extern const struct table wal_view_cursor_options_in;
extern const struct table wal_view_flush_result_out;
extern const struct table wal_view_import_result_out;
extern const struct table wal_view_info_out;
extern const struct table wal_view_options_in;

/* That of interface.txt is the first. */
#define MODULES(X)        \
    X(interface_methods)  \
    X(admin_methods)      \
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
