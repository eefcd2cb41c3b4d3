/*
 * file_changes.h - differences of files as a job collects them.
 */
#ifndef AGENTWAL_NODE_FILE_CHANGES_H
#define AGENTWAL_NODE_FILE_CHANGES_H

#include <agentwal/checkpoint.h>

#include "bindings/node/native/base/list.h"
#include "bindings/node/native/store/job.h"

struct file_changes {
    struct list list;
    struct wal_file_changes_info totals;
};

/* In the thread of a job: copies what the cursor has, and closes it; it may be
 * NULL. */
enum wal_status file_changes_collect(struct file_changes *changes,
                                     struct arena *arena,
                                     struct wal_file_change_cursor *cursor,
                                     struct wal_error *error);

/* The array of the changes. */
napi_value file_changes_make(struct call *call,
                             const struct file_changes *changes);

/* The name of a kind: 'absent', 'file' or 'symlink'. */
napi_value file_kind_make(struct call *call, uint32_t kind);

#endif
