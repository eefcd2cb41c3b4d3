/*
 * file_import.h - the import of one file of lines.
 *
 * A file continues the session whose lines are its beginning, whatever the ordinal in that
 * session's source; otherwise it becomes a new session. With import->matches_ids, these are also
 * the sessions that have the file's id and file name; and if such a session begins with the file's
 * lines, the file adds nothing.
 *
 * A file that is a view of a session of the store adds to that session.
 *
 * Invariant: importing a file again appends nothing. Importing a file that has grown appends the
 * new lines, and gives the same session as one import of the whole file.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_FILE_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_FILE_IMPORT_H

#include "convert/import/import.h"
#include "convert/import/line_import.h"
#include "convert/source/source_name.h"

struct wal__import_file {
    struct wal__import *import;
    int fd;
    uint64_t size;
    const char *name;
    const char *path;
    const char *title; /* that the client has in another file; or NULL */
    struct wal__file_probe probe;
    struct wal_session *session;
    char source[WAL__SOURCE_SIZE_MAX + 1]; /* of the session */
    uint64_t seen;                         /* last_sequence of the session before it was read */
    /* unused source for a new session */
    char free_source[WAL__SOURCE_SIZE_MAX + 1];
    struct wal__import_lines lines;
    uint64_t count;    /* lines of the file */
    bool is_covered;   /* the session has all its lines, and more */
    bool has_other_id; /* the new session could not have the file's id */
};

/* Imports an open regular file and reports the result. `name` is the path as it is reported, `path`
 * is relative to the argument of the import. */
enum wal_status wal__import_file(struct wal__import *import, int fd, const char *name,
                                 const char *path, struct wal_error *error) WAL_MUST_USE;

/* Imports a file of lines into a stream of a session directory's session, and reports the result.
 * The stream must be a prefix of the file. */
enum wal_status wal__import_stream(struct wal__import *import, int fd, const char *name,
                                   struct wal_session *session, const struct wal__dialect *dialect,
                                   uint32_t stream, struct wal_error *error) WAL_MUST_USE;

/* Imports the lines that were appended to a view into its session, and reports the result. *is_view
 * is false if the file is not a view, or is one that was changed other than by appending; then
 * import->view_session is its session. */
enum wal_status wal__import_view(struct wal__import *import, int fd, const char *name,
                                 bool *is_view, struct wal_error *error) WAL_MUST_USE;

#endif
