/*
 * session_dir_files.h - the files of a session directory, as stored in its session.
 *
 * Invariant: a file is a document or the last entry of its path; if both exist, the document.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_SESSION_DIR_FILES_H
#define AGENTWAL_CONVERT_SOURCE_SESSION_DIR_FILES_H

#include "agentwal.h"
#include "convert/model/dialect.h"
#include "convert/model/model_table.h"
#include "engine/base/heap.h"

/* The stream number of files that are neither JSON nor lines. */
#define WAL__FILES_STREAM        255
#define WAL__SESSION_DIR_STREAMS 3

/* The streams that imported sessions can have. */
extern const uint32_t wal__session_dir_streams[WAL__SESSION_DIR_STREAMS];

/* A version of a file that is not JSON, in log order. */
struct wal__session_dir_version {
    struct wal_slice path; /* as in the entry's meta */
    struct wal_slice entry_id;
    bool is_last;
};

/* The owner sets the first three fields and zeroes the others. Must not move in memory after
 * wal__session_dir_files_open. */
struct wal__session_dir_files {
    const struct wal__heap *heap;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_doc_cursor *docs;
    struct wal_entry_cursor *cursor; /* reads versions */
    struct wal__session_dir_version *versions;
    uint32_t count;
    uint32_t capacity;
    struct wal__heap_arena arena;
    struct wal__model_table ids;  /* of all entries of the session, by hash */
    struct wal__model_table last; /* index of the last version, by path */
};

/* The caller deinitialises *files in any case. */
enum wal_status wal__session_dir_files_open(struct wal__session_dir_files *files,
                                            struct wal_error *error) WAL_MUST_USE;
void wal__session_dir_files_deinit(struct wal__session_dir_files *files);

/* Adds the id of an entry, and returns whether it was missing. False also without memory, when
 * arena.has_failed is set. */
bool wal__session_dir_files_add_id(struct wal__session_dir_files *files, struct wal_slice id);

/* Returns the bytes of a version; *memory, which holds them unless it is NULL, is on the heap, and
 * the caller frees it. */
enum wal_status wal__session_dir_files_get(struct wal__session_dir_files *files,
                                           const struct wal__session_dir_version *version,
                                           struct wal_slice *bytes, char **memory,
                                           struct wal_error *error) WAL_MUST_USE;

/* Returns the last version of a path, or NULL. */
const struct wal__session_dir_version *
wal__session_dir_files_last(const struct wal__session_dir_files *files, struct wal_slice path);

/* Returns the end of the root in the path of a source; NULL: the source is not a session
 * directory. */
const char *wal__session_dir_root_end(const char *path);

/* Returns the path of the stream's file relative to the root, or NULL. */
const char *wal__session_dir_stream_path(const struct wal__dialect *dialect, uint32_t stream);

#endif
