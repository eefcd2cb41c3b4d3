/*
 * fail.c - errors of SQLite (fail.h).
 */
#include "search/index/fail.h"

enum wal_status wal__search_fail(struct wal_error *error, sqlite3 *db, int code,
                                 const char *what)
{
    int primary = code & 0xff;
    enum wal_status status =
        primary == SQLITE_NOMEM ? WAL_ENOMEM
        : primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
                primary == SQLITE_IOERR || primary == SQLITE_SCHEMA ||
                primary == SQLITE_ERROR
            ? WAL_ECORRUPT
            : WAL_EIO;

    return status == WAL_ENOMEM ? wal__no_memory(error)
                                : wal__fail(error, status, "%s: %s", what,
                                            db == NULL ? sqlite3_errstr(code)
                                                       : sqlite3_errmsg(db));
}
