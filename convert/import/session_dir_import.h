/*
 * session_dir_import.h - imports the sessions of session directories.
 *
 * A session is continued if it has the id that the files suggest and its
 * streams are prefixes of the files; otherwise a new session is created. A
 * failure of one of its files is reported; then the session is not.
 *
 * Invariant: importing a directory again changes nothing. A changed file
 * becomes a new version of its document; a stream's file that has grown adds
 * lines.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SESSION_DIR_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_SESSION_DIR_IMPORT_H

#include "convert/import/session_dir.h"

/* Imports a session directory: files of lines and files of JSON. `path` is
 * relative to the argument of the import, and empty for the argument itself.
 * `patterns` are those of the files to import (client.h); NULL: all. */
enum wal_status wal__import_dir(struct wal__import *import, const char *name,
                                const char *path,
                                const struct wal__dialect *dialect,
                                const char *const *patterns,
                                struct wal_error *error) WAL_MUST_USE;

/* Imports a file that contains a complete session of OpenCode, in the format
 * that its client exports, as a document of that session. *is_exported is false
 * if it is not such a file. */
enum wal_status wal__import_exported(struct wal__import *import,
                                     const char *name, const char *path,
                                     bool *is_exported,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
