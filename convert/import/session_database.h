/*
 * session_database.h - sessions of OpenCode's database, as the documents that its storage has of
 * them (docs/clients.md, OpenCode's database).
 *
 * Rows of `session`, `message` and `part` are the client's first form: each becomes the object of
 * the file session/PROJECT/ID.json, message/SESSION/ID.json or part/MESSAGE/ID.json, with its ids.
 * Rows of `session_v2` and `session_message` are the form of version 2: a message has a type
 * instead of a role, and its parts in it. Both are read. Version 2 copies each message of the first
 * form, with its id or an id with the same first 16 characters; the copies are left out.
 *
 * The database is opened to be read only, and each session is read in one transaction. While it
 * has no log, no other program writes to it, and nothing is created next to it.
 *
 * Invariant: documents are passed row by row. What is not a JSON object is passed unchanged.
 *
 * Threads: one thread at a time per database.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SESSION_DATABASE_H
#define AGENTWAL_CONVERT_IMPORT_SESSION_DATABASE_H

#include "convert/import/import.h"
#include "convert/import/session_dir.h"

/* A row as a document. `missing` of the file may be set, its group is not. */
typedef enum wal_status wal__session_row_fn(void *ctx, const struct wal__session_dir_file *file,
                                            struct wal_slice json, struct wal_error *error);

/* Opens the database; *database is NULL if the file is no database of sessions. `path` is that of
 * the source if it is in a client's folder; else NULL. With since_ms only the rows count that were
 * changed at that time or later. WAL_EBUSY: another program has locked it; WAL_EBADJSON: it is
 * damaged; WAL_ESCHEMA: it is of another version, as one in which the client keeps its sessions and
 * that has other tables alone is; WAL_EACCESS. */
enum wal_status wal__session_database_open(struct wal__import *import, const char *name,
                                           const char *path, int64_t since_ms,
                                           struct wal__session_database **database,
                                           struct wal_error *error) WAL_MUST_USE;
void wal__session_database_close(struct wal__session_database *database);

/* Begins the next session, in the order of their ids, and fills *group with texts in the arena of
 * the import, which the caller empties before. WAL_END: there is none; WAL_ESCHEMA: nor that, and
 * something that the database has was not read. */
enum wal_status wal__session_database_next(struct wal__session_database *database,
                                           struct wal__session_dir_group *group,
                                           struct wal_error *error) WAL_MUST_USE;

/* Passes the documents of the session; is_whole: those that were not changed too. Again, if the
 * session was changed while it was read. */
enum wal_status wal__session_database_scan(struct wal__session_database *database, bool is_whole,
                                           wal__session_row_fn *each, void *ctx,
                                           struct wal_error *error) WAL_MUST_USE;

/* Counts the sessions. */
enum wal_status wal__session_database_count(struct wal__session_database *database, uint64_t *count,
                                            struct wal_error *error) WAL_MUST_USE;

/* Whether the database has that session. */
bool wal__session_database_has(struct wal__session_database *database, const char *id);

#endif
