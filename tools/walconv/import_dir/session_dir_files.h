/*
 * session_dir_files.h - the files of a session directory, as stored in its
 * session.
 *
 * Invariant: a file is a document or the last entry of its path; if both exist,
 * the document.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_FILES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_FILES_H

#include "agentwal.h"
#include "tools/cli/ids.h"

/* A version of a file that is not JSON, in log order. */
struct walconv_dir_version {
    struct wal_slice path; /* as in the entry's meta */
    struct wal_slice entry_id;
    bool is_last;
};

struct walconv_dir_files {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_doc_cursor *docs;
    struct wal_entry_cursor *cursor; /* reads versions */
    struct walconv_dir_version *versions;
    size_t count;
    size_t capacity;
    struct cli_ids ids;  /* of all entries of the session */
    struct cli_ids last; /* index + 1 of the last version, by path */
    char **texts;        /* owned; versions point into them */
    size_t text_count;
    size_t text_capacity;
};

/* The caller deinitialises *files in any case. */
enum wal_status walconv_dir_files_open(struct walconv_dir_files *files,
                                       struct wal_store *store,
                                       struct wal_session *session,
                                       struct wal_error *error);
void walconv_dir_files_deinit(struct walconv_dir_files *files);

/* Returns the bytes of a version, valid until the next call; the caller frees
 * *memory. */
enum wal_status walconv_dir_files_get(struct walconv_dir_files *files,
                                      const struct walconv_dir_version *version,
                                      struct wal_slice *bytes, char **memory,
                                      struct wal_error *error);

/* Returns the last version of a path, or NULL. */
const struct walconv_dir_version *
walconv_dir_files_last(const struct walconv_dir_files *files,
                       struct wal_slice path);

#endif
