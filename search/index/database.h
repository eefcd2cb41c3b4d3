/*
 * database.h - the database of an index: in memory while it is made or extended, or in an index
 * file, read only (docs/search.md, Bytes of a file). SQLite reads the pages of a file through a
 * file system layer that verifies each page by its checksum, and that writes nothing.
 *
 * Threads: one at a time per database.
 */
#ifndef AGENTWAL_SEARCH_INDEX_DATABASE_H
#define AGENTWAL_SEARCH_INDEX_DATABASE_H

#include <sqlite3.h>

#include "engine/base/error.h"
#include "format/index/search_file.h"
#include "search/text/extract.h"
#include "search/text/tokenizer.h"

/* Fills *error for a failed call of SQLite on a connection, which may be NULL; `what` says what
 * failed. WAL_ENOMEM; WAL_ECORRUPT for a database that is not as it was written; else WAL_EIO. */
enum wal_status wal__search_fail(struct wal_error *error, sqlite3 *db, int code, const char *what);

/* Returns the size of an index file. */
uint64_t wal__fts_file_size(const struct wal__search_file *file, uint64_t overhead);

/* Reads and verifies header and table of checksums of an open file. Sets *file, and *table, to be
 * freed, if that is not NULL. False when it is not valid. The file is of a store that encrypts
 * such files with this overhead: then it has no table, and *table is NULL. */
bool wal__fts_read_head(int fd, uint64_t overhead, struct wal__search_file *file, uint32_t **table);

/* A record that a row belongs to. */
struct wal__row {
    uint64_t sequence;
    int64_t time_ms;
    uint32_t session; /* number */
    uint32_t unit;    /* in the record */
    uint32_t kind;    /* enum wal_record_kind */
};

/* Rows from `first` up to that of the next run are of one session. */
struct wal__run_of_rows {
    int64_t first;
    uint32_t session;
};

/* Zeroed: closed. */
struct wal__database {
    sqlite3 *db;
    enum wal__search_kind kind;
    bool is_memory;
    sqlite3_stmt *add_text; /* while it is made */
    sqlite3_stmt *add_entry;
    sqlite3_stmt *add_run;
    sqlite3_stmt *get_entry;
    sqlite3_stmt *match;      /* rows of an expression */
    sqlite3_stmt *vocabulary; /* words that contain a text */
    struct wal__run_of_rows *runs;
    size_t run_count;
    size_t run_capacity;
    uint8_t *sets; /* by row - 1: the columns that it has, as bits */
    size_t set_count;
    size_t set_capacity;
};

/* Makes an empty database in memory. */
enum wal_status wal__database_create(struct wal__database *database, enum wal__search_kind kind,
                                     struct wal_error *error) WAL_MUST_USE;

/* Opens that of an index file of the store, to be read; *head is the header of the file. One that
 * is encrypted is decrypted to memory. WAL_ECORRUPT. */
enum wal_status wal__database_open(struct wal__database *database, enum wal__search_kind kind,
                                   struct wal_store *store, const char *path,
                                   struct wal__search_file *head,
                                   struct wal_error *error) WAL_MUST_USE;

/* Loads that of an index file to memory, to be extended. WAL_ECORRUPT; WAL_ENOTFOUND when the file
 * is gone. */
enum wal_status wal__database_load(struct wal__database *database, enum wal__search_kind kind,
                                   struct wal_store *store, const char *path,
                                   struct wal__search_file *head,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__database_close(struct wal__database *database);

/* Between these two, rows are added. end merges what the index has in pieces when `is_final`. */
enum wal_status wal__database_begin(struct wal__database *database,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__database_add(struct wal__database *database, int64_t row,
                                  const struct wal__row *entry, const struct wal__unit *unit,
                                  struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__database_end(struct wal__database *database, bool is_final,
                                  struct wal_error *error) WAL_MUST_USE;

/* Returns the bytes of a database in memory, valid until it is changed; NULL: no memory. *is_copy:
 * to be freed by sqlite3_free. */
unsigned char *wal__database_bytes(struct wal__database *database, uint64_t *size, bool *is_copy);

/* Returns the bytes of its pages. */
uint64_t wal__database_size(struct wal__database *database);

/* Reads the entry of a row; its session is not set. WAL_ENOTFOUND. */
enum wal_status wal__database_get(struct wal__database *database, int64_t row,
                                  struct wal__row *entry, struct wal_error *error) WAL_MUST_USE;

/* Returns the set of bits 1 << enum wal__column of the columns of a row, or
 * 0. */
uint8_t wal__database_columns(const struct wal__database *database, int64_t row);

/* Returns the number of the session that a row is of, or 0. */
uint32_t wal__database_session(const struct wal__database *database, int64_t row);

#endif
