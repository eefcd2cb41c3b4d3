/*
 * database.c - the database of an index (database.h).
 */
#include "search/index/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentwal/record.h"
#include "search/index/features.h"
#include "search/index/fts_vfs.h"

enum {
    KIND_BITS = 2,       /* of the column `kind`; the unit is above them */
    CACHE_KIB = 1024,    /* of a database that is read */
    HASH_SIZE = 32 << 20 /* bytes of words that FTS5 holds before it writes */
};

static const char make_tables[] =
    "CREATE TABLE entry(row INTEGER PRIMARY KEY, sequence INTEGER, "
    "time INTEGER, kind INTEGER);"
    "CREATE TABLE run(first INTEGER PRIMARY KEY, session INTEGER);";
static const char make_text[] =
    "CREATE VIRTUAL TABLE text USING fts5(user, assistant, tool, path, title, "
    "summary, content='', columnsize=0, tokenize='agentwal');";
static const char make_deep[] =
    "CREATE VIRTUAL TABLE text USING fts5(result, content='', columnsize=0, "
    "tokenize='agentwal');";

static enum wal_status run_sql(struct wal__database *database, const char *sql,
                               struct wal_error *error)
{
    int code = sqlite3_exec(database->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? WAL_OK
                             : wal__search_fail(error, database->db, code,
                                                "cannot use a search index");
}

static enum wal_status prepare(struct wal__database *database, const char *sql,
                               sqlite3_stmt **statement,
                               struct wal_error *error)
{
    int code = sqlite3_prepare_v3(database->db, sql, -1,
                                  SQLITE_PREPARE_PERSISTENT, statement, NULL);

    return code == SQLITE_OK ? WAL_OK
                             : wal__search_fail(error, database->db, code,
                                                "cannot read a search index");
}

/* What every connection needs. */
static enum wal_status set_up(struct wal__database *database,
                              struct wal_error *error)
{
    int code = wal__tokenizer_register(database->db);

    if (code == SQLITE_OK) {
        code = wal__features_register(database->db);
    }
    return code == SQLITE_OK
               ? WAL_OK
               : wal__fail(error, WAL_EVERSION, "this SQLite has no FTS5: %s",
                           sqlite3_libversion());
}

static enum wal_status open_memory(struct wal__database *database,
                                   enum wal__search_kind kind,
                                   struct wal_error *error)
{
    int code;

    memset(database, 0, sizeof(*database));
    database->kind = kind;
    database->is_memory = true;
    code = sqlite3_open_v2(":memory:", &database->db,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    return code == SQLITE_OK ? set_up(database, error)
                             : wal__search_fail(error, database->db, code,
                                                "cannot make a search index");
}

enum wal_status wal__database_create(struct wal__database *database,
                                     enum wal__search_kind kind,
                                     struct wal_error *error)
{
    enum wal_status status = open_memory(database, kind, error);

    if (status == WAL_OK) {
        status = run_sql(database, "PRAGMA page_size=4096;", error);
    }
    if (status == WAL_OK) {
        status = run_sql(database, make_tables, error);
    }
    if (status == WAL_OK) {
        status = run_sql(
            database, kind == WAL__SEARCH_DEEP ? make_deep : make_text, error);
    }
    if (status == WAL_OK) {
        char *sql = sqlite3_mprintf(
            "INSERT INTO text(text, rank) VALUES('hashsize', %d)", HASH_SIZE);

        status =
            sql == NULL ? wal__no_memory(error) : run_sql(database, sql, error);
        sqlite3_free(sql);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    }
    return status;
}

/* --- runs --------------------------------------------------------------- */

static enum wal_status add_run(struct wal__database *database, int64_t first,
                               uint32_t session, struct wal_error *error)
{
    if (database->run_count == database->run_capacity) {
        size_t capacity = database->run_capacity * 2 + 64;
        void *grown =
            realloc(database->runs, capacity * sizeof(*database->runs));

        if (grown == NULL) {
            return wal__no_memory(error);
        }
        database->runs = grown;
        database->run_capacity = capacity;
    }
    database->runs[database->run_count++] =
        (struct wal__run_of_rows){.first = first, .session = session};
    return WAL_OK;
}

static enum wal_status read_runs(struct wal__database *database,
                                 struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = SQLITE_ROW;
    enum wal_status status =
        prepare(database, "SELECT first, session FROM run ORDER BY first",
                &statement, error);

    while (status == WAL_OK && code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW) {
            status =
                add_run(database, sqlite3_column_int64(statement, 0),
                        (uint32_t)sqlite3_column_int64(statement, 1), error);
        }
    }
    if (status == WAL_OK && code != SQLITE_DONE) {
        status = wal__search_fail(error, database->db, code,
                                  "cannot read a search index");
    }
    sqlite3_finalize(statement);
    return status;
}

uint32_t wal__database_session(const struct wal__database *database,
                               int64_t row)
{
    size_t low = 0;
    size_t high = database->run_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (database->runs[middle].first <= row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : database->runs[low - 1].session;
}

/* --- opening ------------------------------------------------------------ */

enum wal_status wal__database_open(struct wal__database *database,
                                   enum wal__search_kind kind, const char *path,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    int code = wal__fts_vfs_register();

    memset(database, 0, sizeof(*database));
    database->kind = kind;
    if (code == SQLITE_OK) {
        code = sqlite3_open_v2(path, &database->db,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_PRIVATECACHE,
                               WAL__FTS_VFS);
    }
    if (code != SQLITE_OK) {
        status = wal__search_fail(error, database->db, code,
                                  "cannot open a search index");
    }
    if (status == WAL_OK) {
        status = set_up(database, error);
    }
    if (status == WAL_OK) {
        char *sql = sqlite3_mprintf(
            "PRAGMA cache_size=-%d; PRAGMA temp_store=memory", CACHE_KIB);

        status =
            sql == NULL ? wal__no_memory(error) : run_sql(database, sql, error);
        sqlite3_free(sql);
    }
    if (status == WAL_OK) {
        status = read_runs(database, error);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    }
    return status;
}

/* Reads all pages of an index file to memory of SQLite. */
static enum wal_status read_pages(int fd, enum wal__search_kind kind,
                                  unsigned char **bytes, uint64_t *size,
                                  struct wal_error *error)
{
    struct wal__search_file file;
    uint32_t *table = NULL;
    enum wal_status status = WAL_OK;

    if (!wal__fts_read_head(fd, &file, &table) || file.kind != (unsigned)kind) {
        free(table);
        return wal__fail(error, WAL_ECORRUPT, "a search index is damaged");
    }
    *size = (uint64_t)file.page_count * WAL__SEARCH_FILE_PAGE;
    *bytes = sqlite3_malloc64(*size);
    if (*bytes == NULL) {
        status = wal__no_memory(error);
    }
    for (uint32_t i = 0; i < file.page_count && status == WAL_OK; i++) {
        if (!wal__fts_read_page(fd, &file, table, i,
                                *bytes + (size_t)i * WAL__SEARCH_FILE_PAGE)) {
            sqlite3_free(*bytes);
            status = wal__fail(error, WAL_ECORRUPT,
                               "a page of a search index is damaged");
        }
    }
    free(table);
    return status;
}

enum wal_status wal__database_load(struct wal__database *database,
                                   enum wal__search_kind kind, const char *path,
                                   struct wal_error *error)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    enum wal_status status;
    int code;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        return wal__fail_at(error, WAL_ENOTFOUND, errno, path, 0,
                            "cannot open a search index");
    }
    status = read_pages(fd, kind, &bytes, &size, error);
    close(fd);
    if (status != WAL_OK) {
        return status;
    }
    status = open_memory(database, kind, error);
    if (status != WAL_OK) {
        sqlite3_free(bytes);
        wal__database_close(database);
        return status;
    }
    /* It frees the bytes also when it fails. */
    code = sqlite3_deserialize(
        database->db, "main", bytes, (sqlite3_int64)size, (sqlite3_int64)size,
        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    if (code != SQLITE_OK) {
        status = wal__search_fail(error, database->db, code,
                                  "cannot load a search index");
    } else {
        status = read_runs(database, error);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    }
    return status;
}

void wal__database_close(struct wal__database *database)
{
    sqlite3_finalize(database->add_text);
    sqlite3_finalize(database->add_entry);
    sqlite3_finalize(database->add_run);
    sqlite3_finalize(database->get_entry);
    sqlite3_finalize(database->match);
    sqlite3_finalize(database->vocabulary);
    sqlite3_close(database->db);
    free(database->runs);
    memset(database, 0, sizeof(*database));
}

/* --- rows --------------------------------------------------------------- */

static enum wal_status finish_step(struct wal__database *database,
                                   sqlite3_stmt *statement,
                                   struct wal_error *error)
{
    int code = sqlite3_step(statement);

    (void)sqlite3_reset(statement);
    return code == SQLITE_DONE ? WAL_OK
                               : wal__search_fail(error, database->db, code,
                                                  "cannot add to a search "
                                                  "index");
}

enum wal_status wal__database_begin(struct wal__database *database,
                                    struct wal_error *error)
{
    const char *add_text =
        database->kind == WAL__SEARCH_DEEP
            ? "INSERT INTO text(rowid, result) VALUES(?1, ?2)"
            : "INSERT INTO text(rowid, user, assistant, tool, path, title, "
              "summary) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    enum wal_status status =
        run_sql(database, "PRAGMA journal_mode=off; BEGIN", error);

    if (status == WAL_OK && database->add_text == NULL) {
        status = prepare(database, add_text, &database->add_text, error);
    }
    if (status == WAL_OK && database->add_entry == NULL) {
        status = prepare(database, "INSERT INTO entry VALUES(?1, ?2, ?3, ?4)",
                         &database->add_entry, error);
    }
    if (status == WAL_OK && database->add_run == NULL) {
        status = prepare(database, "INSERT INTO run VALUES(?1, ?2)",
                         &database->add_run, error);
    }
    return status;
}

/* The texts of a column, one after another; *joined is to be freed. */
static bool join(const struct wal__unit *unit, enum wal__column column,
                 char **joined, struct wal_slice *text)
{
    size_t size = 0;
    size_t count = 0;
    char *at;

    for (size_t i = 0; i < unit->count; i++) {
        if (unit->fields[i].column == column) {
            *text = unit->fields[i].text;
            size += unit->fields[i].text.size + 1;
            count++;
        }
    }
    if (count <= 1) {
        return true;
    }
    *joined = at = malloc(size);
    if (at == NULL) {
        return false;
    }
    for (size_t i = 0; i < unit->count; i++) {
        if (unit->fields[i].column == column) {
            memcpy(at, unit->fields[i].text.data, unit->fields[i].text.size);
            at += unit->fields[i].text.size;
            *at++ = '\n';
        }
    }
    *text = (struct wal_slice){*joined, size};
    return true;
}

static enum wal_status add_texts(struct wal__database *database, int64_t row,
                                 const struct wal__unit *unit,
                                 struct wal_error *error)
{
    enum wal__column first = database->kind == WAL__SEARCH_DEEP
                                 ? WAL__COLUMN_RESULT
                                 : WAL__COLUMN_USER;
    int count = database->kind == WAL__SEARCH_DEEP ? 1 : WAL__COLUMN_RESULT;
    char *joined[WAL__COLUMN_COUNT] = {NULL};
    enum wal_status status = WAL_OK;

    sqlite3_bind_int64(database->add_text, 1, row);
    for (int i = 0; i < count && status == WAL_OK; i++) {
        struct wal_slice text = {NULL, 0};

        if (!join(unit, (enum wal__column)((int)first + i), &joined[i],
                  &text)) {
            status = wal__no_memory(error);
        } else if (text.size == 0) {
            sqlite3_bind_null(database->add_text, 2 + i);
        } else {
            sqlite3_bind_text64(database->add_text, 2 + i, text.data, text.size,
                                SQLITE_STATIC, SQLITE_UTF8);
        }
    }
    if (status == WAL_OK) {
        status = finish_step(database, database->add_text, error);
    }
    sqlite3_clear_bindings(database->add_text);
    for (int i = 0; i < count; i++) {
        free(joined[i]);
    }
    return status;
}

enum wal_status wal__database_add(struct wal__database *database, int64_t row,
                                  const struct wal__row *entry,
                                  const struct wal__unit *unit,
                                  struct wal_error *error)
{
    enum wal_status status = add_texts(database, row, unit, error);

    if (status == WAL_OK) {
        sqlite3_bind_int64(database->add_entry, 1, row);
        sqlite3_bind_int64(database->add_entry, 2,
                           (sqlite3_int64)entry->sequence);
        sqlite3_bind_int64(database->add_entry, 3, entry->time_ms);
        sqlite3_bind_int64(database->add_entry, 4,
                           (sqlite3_int64)entry->unit << KIND_BITS |
                               entry->kind);
        status = finish_step(database, database->add_entry, error);
    }
    if (status == WAL_OK &&
        (database->run_count == 0 ||
         database->runs[database->run_count - 1].session != entry->session)) {
        sqlite3_bind_int64(database->add_run, 1, row);
        sqlite3_bind_int64(database->add_run, 2, entry->session);
        status = finish_step(database, database->add_run, error);
        if (status == WAL_OK) {
            status = add_run(database, row, entry->session, error);
        }
    }
    return status;
}

enum wal_status wal__database_end(struct wal__database *database, bool is_final,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (is_final) {
        status = run_sql(database, "INSERT INTO text(text) VALUES('optimize')",
                         error);
    }
    return status == WAL_OK ? run_sql(database, "COMMIT", error) : status;
}

unsigned char *wal__database_bytes(struct wal__database *database,
                                   uint64_t *size, bool *is_copy)
{
    sqlite3_int64 bytes = 0;
    unsigned char *data = sqlite3_serialize(database->db, "main", &bytes,
                                            SQLITE_SERIALIZE_NOCOPY);

    *is_copy = data == NULL;
    if (data == NULL) {
        data = sqlite3_serialize(database->db, "main", &bytes, 0);
    }
    *size = (uint64_t)bytes;
    return data;
}

uint64_t wal__database_size(struct wal__database *database)
{
    sqlite3_stmt *statement = NULL;
    uint64_t pages = 0;

    if (prepare(database, "PRAGMA page_count", &statement, NULL) == WAL_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        pages = (uint64_t)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return pages * WAL__SEARCH_FILE_PAGE;
}

enum wal_status wal__database_get(struct wal__database *database, int64_t row,
                                  struct wal__row *entry,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    int code;

    if (database->get_entry == NULL) {
        status = prepare(database,
                         "SELECT sequence, time, kind FROM entry WHERE row=?1",
                         &database->get_entry, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    sqlite3_bind_int64(database->get_entry, 1, row);
    code = sqlite3_step(database->get_entry);
    if (code == SQLITE_ROW) {
        sqlite3_int64 kind = sqlite3_column_int64(database->get_entry, 2);

        entry->sequence =
            (uint64_t)sqlite3_column_int64(database->get_entry, 0);
        entry->time_ms = sqlite3_column_int64(database->get_entry, 1);
        entry->kind = (uint32_t)(kind & ((1 << KIND_BITS) - 1));
        entry->unit = (uint32_t)(kind >> KIND_BITS);
    }
    (void)sqlite3_reset(database->get_entry);
    return code == SQLITE_ROW    ? WAL_OK
           : code == SQLITE_DONE ? WAL_ENOTFOUND
                                 : wal__search_fail(error, database->db, code,
                                                    "cannot read a search "
                                                    "index");
}
