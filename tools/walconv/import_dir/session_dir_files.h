/*
 * session_dir_files.h - the files of a tree as its session has them.
 *
 * Invariant: a file is a document, or the last entry of its path; where there
 * are both it is the document.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_FILES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_FILES_H

#include "agentwal.h"
#include "tools/cli/ids.h"

/* A file that is not JSON; its versions in the order of the log. */
struct walconv_dir_version {
    struct wal_slice path; /* as in the meta */
    struct wal_slice entry_id;
    bool is_last;
};

struct walconv_dir_files {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_doc_cursor *docs;
    struct wal_entry_cursor *iter; /* for getting versions */
    struct walconv_dir_version *versions;
    size_t count;
    size_t capacity;
    struct cli_ids ids;  /* of all entries of the session */
    struct cli_ids last; /* index + 1 of the last version, by path */
    char **texts;        /* texts that versions point to */
    size_t text_count;
    size_t text_capacity;
};

/* *files is deinitialised in any case. */
enum wal_status walconv_dir_files_open(struct walconv_dir_files *files,
                                       struct wal_store *store,
                                       struct wal_session *session,
                                       struct wal_error *error);
void walconv_dir_files_deinit(struct walconv_dir_files *files);

/* The bytes of a version, until the next call; *memory is to be freed. */
enum wal_status walconv_dir_files_get(struct walconv_dir_files *files,
                                      const struct walconv_dir_version *of,
                                      struct wal_slice *bytes, char **memory,
                                      struct wal_error *error);

/* The last version of a path, or null. */
const struct walconv_dir_version *
walconv_dir_files_last(const struct walconv_dir_files *files,
                       struct wal_slice path);

#endif
