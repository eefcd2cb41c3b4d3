/*
 * joined_files.h - the documents of a view in memory, as a dialect reads them.
 *
 * Invariant: keys are in byte order.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_FILES_JOINED_FILES_H
#define AGENTWAL_CONVERT_FILES_JOINED_FILES_H

#include "convert/files/view_files.h"

/* The owner sets `files`, which must not change meanwhile. */
struct wal__joined_files {
    const struct wal__view_files *files;
    const struct wal__view_file **items; /* the documents, by path */
    uint32_t count;
};

/* Sets *documents, which borrows *joined. False: no memory. */
bool wal__joined_files_init(struct wal__joined_files *joined,
                            struct wal__model_documents *documents);
void wal__joined_files_deinit(struct wal__joined_files *joined);

#endif
