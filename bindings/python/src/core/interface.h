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

extern const struct table wal_append_options_in;
extern const struct table wal_doc_in;
extern const struct table wal_entry_cursor_options_in;
extern const struct table wal_entry_in;
extern const struct table wal_head_in;
extern const struct table wal_import_options_in;
extern const struct table wal_import_report_out;
extern const struct table wal_import_result_out;
extern const struct table wal_open_options_in;
extern const struct table wal_search_hit_out;
extern const struct table wal_search_query_in;
extern const struct table wal_session_change_in;
extern const struct table wal_session_cursor_options_in;
extern const struct table wal_session_info_out;

#endif
