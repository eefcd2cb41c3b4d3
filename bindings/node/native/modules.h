/*
 * modules.h - the lists of functions that the addon exports. A module of a new
 * noun adds its list here and to addon.c.
 */
#ifndef AGENTWAL_NODE_MODULES_H
#define AGENTWAL_NODE_MODULES_H

#include "bindings/node/native/base/call.h"

extern const struct call_method backup_methods[];
extern const struct call_method blob_methods[];
extern const struct call_method blob_writer_methods[];
extern const struct call_method checkpoint_list_methods[];
extern const struct call_method checkpoint_methods[];
extern const struct call_method compact_methods[];
extern const struct call_method cursor_methods[];
extern const struct call_method document_methods[];
extern const struct call_method export_methods[];
extern const struct call_method file_change_methods[];
extern const struct call_method head_methods[];
extern const struct call_method import_follow_methods[];
extern const struct call_method import_methods[];
extern const struct call_method job_thread_methods[];
extern const struct call_method repair_methods[];
extern const struct call_method rewind_methods[];
extern const struct call_method salvage_methods[];
extern const struct call_method search_methods[];
extern const struct call_method session_append_methods[];
extern const struct call_method session_change_methods[];
extern const struct call_method session_fork_methods[];
extern const struct call_method session_job_methods[];
extern const struct call_method session_list_methods[];
extern const struct call_method session_methods[];
extern const struct call_method store_call_methods[];
extern const struct call_method store_methods[];
extern const struct call_method transfer_methods[];
extern const struct call_method view_list_methods[];
extern const struct call_method view_methods[];
extern const struct call_method watcher_methods[];

#endif
