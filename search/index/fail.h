/*
 * fail.h - errors of SQLite and of files as errors of the interface.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FAIL_H
#define AGENTWAL_SEARCH_INDEX_FAIL_H

#include <sqlite3.h>

#include "engine/base/error.h"

/* Fills *error for a failed call of SQLite on a connection, which may be NULL;
 * `what` says what failed. WAL_ENOMEM; WAL_ECORRUPT for a database that is not
 * as it was written; else WAL_EIO. */
enum wal_status wal__search_fail(struct wal_error *error, sqlite3 *db, int code,
                                 const char *what);

#endif
