/*
 * file_issues.h - the paths of a request that could not be recorded, with the reasons (SPEC.md
 * 5.13). Threads: one at a time per list.
 */
#ifndef AGENTWAL_ENGINE_FILES_FILE_ISSUES_H
#define AGENTWAL_ENGINE_FILES_FILE_ISSUES_H

#include "agentwal/checkpoint.h"
#include "engine/base/heap.h"
#include "format/bytes/bytes.h"

/* A zeroed struct with a heap is an empty list. */
struct wal__file_issues {
    const struct wal__heap *heap;
    struct wal_checkpoint_issue *items; /* a text of each is path and reason */
    uint32_t count;
    uint32_t capacity;
};

void wal__file_issues_deinit(struct wal__file_issues *issues);
/* Adds a path and the reason of an error, which is none any more. */
enum wal_status wal__file_issues_add(struct wal__file_issues *issues, struct wal__span path,
                                     struct wal_error *error) WAL_MUST_USE;
/* Sorts by path; of each path one remains. */
void wal__file_issues_sort(struct wal__file_issues *issues);

#endif
