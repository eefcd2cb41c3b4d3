/*
 * interface.h - what bindings/generate.py makes from interface.txt: tables of structs, which code
 * by hand uses too, and constants.
 */
#ifndef AGENTWAL_PYTHON_CORE_INTERFACE_H
#define AGENTWAL_PYTHON_CORE_INTERFACE_H

#include "bindings/python/src/core/value.h"

/* A constant of the module. */
struct constant {
    const char *name; /* without WAL_ */
    long value;
};

/* The last has no name. */
extern const struct constant constants[];

extern const struct value_table wal_append_options_in;
extern const struct value_table wal_append_result_out;
extern const struct value_table wal_checkpoint_info_out;
extern const struct value_table wal_checkpoint_options_in;
extern const struct value_table wal_claim_out;
extern const struct value_table wal_doc_cursor_options_in;
extern const struct value_table wal_doc_in;
extern const struct value_table wal_doc_out;
extern const struct value_table wal_entry_cursor_options_in;
extern const struct value_table wal_entry_in;
extern const struct value_table wal_file_change_out;
extern const struct value_table wal_file_changes_info_out;
extern const struct value_table wal_file_in;
extern const struct value_table wal_file_out;
extern const struct value_table wal_head_in;
extern const struct value_table wal_head_out;
extern const struct value_table wal_import_follow_info_out;
extern const struct value_table wal_import_issue_out;
extern const struct value_table wal_import_options_in;
extern const struct value_table wal_import_report_out;
extern const struct value_table wal_import_result_out;
extern const struct value_table wal_migrate_result_out;
extern const struct value_table wal_open_options_in;
extern const struct value_table wal_rewind_options_in;
extern const struct value_table wal_rewind_result_out;
extern const struct value_table wal_salvage_report_out;
extern const struct value_table wal_salvage_result_out;
extern const struct value_table wal_search_hit_out;
extern const struct value_table wal_search_query_in;
extern const struct value_table wal_search_update_result_out;
extern const struct value_table wal_session_change_in;
extern const struct value_table wal_session_cursor_options_in;
extern const struct value_table wal_session_info_out;
extern const struct value_table wal_session_options_in;
extern const struct value_table wal_session_remove_options_in;
extern const struct value_table wal_session_space_out;
extern const struct value_table wal_store_backup_result_out;
extern const struct value_table wal_store_compact_options_in;
extern const struct value_table wal_store_compact_result_out;
extern const struct value_table wal_store_info_out;
extern const struct value_table wal_transfer_report_out;
extern const struct value_table wal_transfer_result_out;
extern const struct value_table wal_view_cursor_options_in;
extern const struct value_table wal_view_flush_result_out;
extern const struct value_table wal_view_import_result_out;
extern const struct value_table wal_view_info_in;
extern const struct value_table wal_view_info_out;

#endif
