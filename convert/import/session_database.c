/*
 * session_database.c - reads sessions of OpenCode's database (session_database.h).
 *
 * Columns are found by their names, so that a table may have more or fewer than this version knows:
 * others than those that are only about the row become members with the column's name. Tables are
 * used only if they are tables and have the columns without which a row means nothing.
 *
 * Without SQLite a database is recognised by its name, and refused.
 *
 * A database without a log is opened as one that nobody changes. Whether that held is known
 * afterwards: a program that writes creates a log first. Then the session is read again.
 */
#include "convert/import/session_database.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/payload/timestamp.h"

/* Whether the file has the name of a database: it is one, although it is not known of what. */
static bool has_ending(const char *name)
{
    size_t size = strlen(name);

    return size > 3 && strcmp(name + size - 3, ".db") == 0;
}

#ifdef AGENTWAL_HAVE_SQLITE

#include <sqlite3.h>

#define BUSY_MS   2000 /* to wait for a lock of another program */
#define NAME_SIZE 128  /* bytes of an id in a path, with its NUL */
#define TRIES     3    /* to read a session while it is changed */

enum table {
    SESSION,
    MESSAGE,
    PART,
    SESSION_2,
    MESSAGE_2,
    TASK,
    MESSAGE_WITH_TIME,
    PART_OF_SESSION,
    TABLES
};

/* Tables, and the columns without which they are not read. Of an optional one nothing is missed. */
static const struct {
    const char *name;
    const char *columns[6]; /* ends with NULL */
    const char *session;    /* column with the session's id, which may be there alone; or NULL */
    bool is_optional;
} tables[TABLES] = {
    [SESSION] = {.name = "session", .columns = {"id"}, .session = "id"},
    [MESSAGE] = {.name = "message",
                 .columns = {"id", "session_id", "data"},
                 .session = "session_id"},
    [PART] = {.name = "part", .columns = {"id", "message_id", "data"}},
    [SESSION_2] = {.name = "session_v2", .columns = {"id"}, .session = "id"},
    [MESSAGE_2] = {.name = "session_message",
                   .columns = {"id", "session_id", "type", "data"},
                   .session = "session_id"},
    [TASK] = {.name = "todo", .columns = {"session_id", "position"}, .is_optional = true},
    [MESSAGE_WITH_TIME] = {.name = "message",
                           .columns = {"id", "session_id", "data", "time_created"},
                           .is_optional = true},
    [PART_OF_SESSION] = {.name = "part",
                         .columns = {"id", "message_id", "data", "session_id"},
                         .session = "session_id",
                         .is_optional = true},
};

enum query {
    FIRST,      /* the least id of a session */
    NEXT,       /* the least above ?1; or with since all, ?2: since */
    INFO,       /* ?1: the session */
    INFO_2,     /* the same of version 2 */
    MESSAGES,   /* ?1: session; in the client's order */
    PARTS,      /* ?1: session, ?2: since */
    MESSAGES_2, /* the same */
    TASKS,      /* ?1: session */
    QUERIES
};

#define ROWS_OF_2  "SELECT r.* FROM session_message r WHERE r.session_id = ?1"
#define HAS(table) (1U << (table))

/* The statement of a query is the first one whose tables are there; without one the database has no
 * such rows. ?1: the session. `since` goes before ORDER BY. */
static const struct {
    enum query query;
    uint32_t needs; /* HAS(...) */
    const char *sql;
    const char *order; /* of rows that are read since a time; or NULL */
} statements[] = {
    {INFO, HAS(SESSION), "SELECT * FROM session WHERE id = ?1", NULL},
    {INFO_2, HAS(SESSION_2), "SELECT * FROM session_v2 WHERE id = ?1", NULL},
    {MESSAGES, HAS(MESSAGE_WITH_TIME),
     "SELECT * FROM message WHERE session_id = ?1 ORDER BY time_created, id", NULL},
    {MESSAGES, HAS(MESSAGE), "SELECT * FROM message WHERE session_id = ?1 ORDER BY id", NULL},
    {PARTS, HAS(PART_OF_SESSION) | HAS(MESSAGE),
     "SELECT r.*, m.id IS NULL AS \"\" FROM part r LEFT JOIN message m ON m.id = r.message_id "
     "WHERE r.session_id = ?1",
     " ORDER BY r.id"},
    {PARTS, HAS(PART_OF_SESSION), "SELECT r.* FROM part r WHERE r.session_id = ?1",
     " ORDER BY r.id"},
    {PARTS, HAS(PART) | HAS(MESSAGE),
     "SELECT r.*, m.id IS NULL AS \"\" FROM part r JOIN message m ON m.id = r.message_id "
     "WHERE m.session_id = ?1",
     " ORDER BY r.id"},
    {MESSAGES_2, HAS(MESSAGE_2) | HAS(MESSAGE) | HAS(SESSION_2),
     ROWS_OF_2 " AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id >= substr(r.id, 1, 16) "
               "AND m.id <= substr(r.id, 1, 16) || '~' AND m.session_id = r.session_id "
               "AND substr(m.id, 1, 16) = substr(r.id, 1, 16))",
     ""},
    /* Without session_v2 the client is one of version 1, which may keep copies. */
    {MESSAGES_2, HAS(MESSAGE_2) | HAS(MESSAGE),
     ROWS_OF_2 " AND NOT EXISTS (SELECT 1 FROM message m WHERE m.session_id = r.session_id)", ""},
    {MESSAGES_2, HAS(MESSAGE_2), ROWS_OF_2, ""},
    {TASKS, HAS(TASK), "SELECT * FROM todo WHERE session_id = ?1 ORDER BY position", NULL},
};

struct wal__session_database {
    struct wal__import *import;
    const char *name; /* path of the file */
    int64_t since_ms;
    int64_t rows_since_ms; /* of the session that is read */
    sqlite3 *db;
    bool is_alone; /* opened without a log */
    struct stat stat;
    bool has[TABLES];
    char lack[256]; /* or empty */
    sqlite3_stmt *queries[QUERIES];
    sqlite3_value *id; /* of the session; NULL: before the first */
    char session[NAME_SIZE];
    bool is_lost;             /* the session has no row, which is not reported yet */
    struct wal__buf text;     /* of a document */
    int64_t number;           /* of the row in its query */
    char greatest[NAME_SIZE]; /* of the names of messages before */
};

/* --- errors -------------------------------------------------------------- */

/* Fills *error for a result of SQLite. */
static enum wal_status fail(const struct wal__session_database *database, int code,
                            struct wal_error *error)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return wal__no_memory(error);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return wal__fail_at(error, WAL_EBUSY, EBUSY, NULL, 0,
                            "another program has locked the database: import it again when that "
                            "program has ended");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return wal__fail(error, WAL_EBADJSON, "the database is damaged: %s",
                         sqlite3_errmsg(database->db));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        return wal__fail(error, WAL_EACCESS,
                         database->is_alone
                             ? "the database cannot be opened"
                             : "the database has a log (-wal or -journal), which cannot be read "
                               "in a folder that cannot be written to: copy the database with "
                               "its log to another folder");
    default:
        return wal__fail(error, WAL_EIO, "the database cannot be read: %s",
                         sqlite3_errmsg(database->db));
    }
}

/* --- opening ------------------------------------------------------------- */

static bool is_there(const struct wal__session_database *database, const char *suffix)
{
    char name[4096 + 16];
    struct stat stat;
    int used = snprintf(name, sizeof(name), "%s%s", database->name, suffix);

    return used < 0 || (size_t)used >= sizeof(name) || lstat(name, &stat) == 0;
}

/* Whether no program has the database open to write to it. */
static bool is_alone(struct wal__session_database *database)
{
    return !is_there(database, "-wal") && !is_there(database, "-journal");
}

/* Writes the URI of the file. Returns false if it is too long. */
static bool write_uri(const char *name, const char *options, char *uri, size_t size)
{
    size_t used = (size_t)snprintf(uri, size, "file:");

    for (; *name != '\0' && used + 4 < size; name++) {
        if (strchr("%?#", *name) != NULL) {
            used += (size_t)snprintf(uri + used, size - used, "%%%02X", (unsigned)*name);
        } else {
            uri[used++] = *name;
        }
    }
    return *name == '\0' && (size_t)snprintf(uri + used, size - used, "%s", options) < size - used;
}

static int open_db(struct wal__session_database *database)
{
    char uri[3 * 4096];
    int code;

    database->is_alone = is_alone(database);
    if (stat(database->name, &database->stat) != 0 ||
        !write_uri(database->name, database->is_alone ? "?immutable=1" : "?mode=ro", uri,
                   sizeof(uri))) {
        return SQLITE_CANTOPEN;
    }
    code = sqlite3_open_v2(uri, &database->db,
                           SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(database->db, BUSY_MS);
        /* The program that made the database must not run functions of this process. */
        (void)sqlite3_db_config(database->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void)sqlite3_db_config(database->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        code = sqlite3_exec(database->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
    }
    return code;
}

static void close_db(struct wal__session_database *database)
{
    for (size_t i = 0; i < QUERIES; i++) {
        sqlite3_finalize(database->queries[i]);
        database->queries[i] = NULL;
    }
    sqlite3_close(database->db);
    database->db = NULL;
}

static int run(struct wal__session_database *database, const char *sql, const char *text,
               int64_t *result)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL);

    if (code == SQLITE_OK && text != NULL) {
        code = sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    }
    code = code == SQLITE_OK ? sqlite3_step(statement) : code;
    if (code == SQLITE_ROW) {
        *result = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    } else if (code == SQLITE_DONE) {
        code = SQLITE_NOTFOUND;
    }
    sqlite3_finalize(statement);
    return code;
}

/* Sets *has to whether the table has that column; NULL: whether there is such a table, and neither
 * a view nor one of a module. */
static int look(struct wal__session_database *database, const char *table, const char *column,
                bool *has)
{
    char sql[160];
    int64_t count = 0;
    int code;

    if (column == NULL) {
        sqlite3_snprintf(sizeof(sql), sql,
                         "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = %Q "
                         "AND sql NOT LIKE 'create virtual%%'",
                         table);
    } else {
        sqlite3_snprintf(sizeof(sql), sql,
                         "SELECT count(*) FROM pragma_table_info(%Q) "
                         "WHERE name = %Q",
                         table, column);
    }
    code = run(database, sql, NULL, &count);
    *has = count > 0;
    return code;
}

/* Sets whether the table can be read, and if it is there and cannot, what it lacks. */
static int find_table(struct wal__session_database *database, enum table table)
{
    const char *name = tables[table].name;
    bool *has = &database->has[table];
    int code = look(database, name, NULL, has);

    for (size_t n = 0; code == SQLITE_OK && *has && tables[table].columns[n] != NULL; n++) {
        code = look(database, name, tables[table].columns[n], has);
        if (code == SQLITE_OK && !*has && !tables[table].is_optional) {
            snprintf(database->lack, sizeof(database->lack),
                     "the database is of another version: table %s has no column %s, and is not "
                     "read",
                     name, tables[table].columns[n]);
        }
    }
    return code;
}

static int find_tables(struct wal__session_database *database)
{
    int code = SQLITE_OK;

    for (size_t i = 0; code == SQLITE_OK && i < TABLES; i++) {
        code = find_table(database, (enum table)i);
    }
    if (code == SQLITE_OK && database->has[SESSION_2] && !database->has[MESSAGE_2] &&
        database->lack[0] == '\0') {
        snprintf(database->lack, sizeof(database->lack),
                 "the database has table session_v2 and no table session_message: messages of "
                 "version 2 are missing");
    }
    return code;
}

/* Writes the statement that finds the next session: all that have a row in any table. */
static void write_next(const struct wal__session_database *database, bool is_from_start, char *sql,
                       size_t size)
{
    const bool is_since = database->since_ms > 0;
    const char *before = is_since ? "SELECT id FROM (" : "SELECT min(id) FROM (";
    size_t used = 0;

    for (size_t i = 0; i < TABLES; i++) {
        const char *id = tables[i].session;
        if (!database->has[i] || id == NULL) {
            continue;
        }
        used += (size_t)snprintf(sql + used, size - used, "%sSELECT %s%s%s AS id FROM %s", before,
                                 is_since ? "" : "min(", id, is_since ? "" : ")", tables[i].name);
        if (is_since || !is_from_start) {
            used += (size_t)snprintf(sql + used, size - used, " WHERE %s%s",
                                     is_since ? "time_updated >= ?2" : id, is_since ? "" : " > ?1");
        }
        before = is_since ? " UNION " : " UNION ALL ";
    }
    snprintf(sql + used, size - used, is_since ? ") WHERE id IS NOT NULL ORDER BY id" : ")");
}

static int prepare(struct wal__session_database *database)
{
    uint32_t has = 0;
    char sql[1024];
    int code = SQLITE_OK;

    for (size_t i = 0; i < TABLES; i++) {
        has |= database->has[i] ? HAS(i) : 0;
    }
    for (size_t i = FIRST; code == SQLITE_OK && i <= NEXT; i++) {
        write_next(database, i == FIRST, sql, sizeof(sql));
        code = sqlite3_prepare_v2(database->db, sql, -1, &database->queries[i], NULL);
    }
    for (size_t i = 0; code == SQLITE_OK && i < sizeof(statements) / sizeof(statements[0]); i++) {
        const char *order = statements[i].order;
        sqlite3_stmt **query = &database->queries[statements[i].query];
        if (*query == NULL && (statements[i].needs & ~has) == 0) {
            snprintf(sql, sizeof(sql), "%s%s%s", statements[i].sql,
                     order != NULL && database->since_ms > 0 ? " AND r.time_updated >= ?2" : "",
                     order != NULL ? order : "");
            code = sqlite3_prepare_v2(database->db, sql, -1, query, NULL);
        }
    }
    return code;
}

enum beginning {
    BEGINS_WITH_NOTHING, /* or it cannot be read */
    BEGINS_AS_DATABASE,
    BEGINS_AS_OTHER
};

/* Whether the file begins as those of SQLite do. */
static enum beginning read_beginning(const char *name)
{
    static const char magic[16] = "SQLite format 3";
    char bytes[sizeof(magic)];
    struct stat stat;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t got = 0;

    if (fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        got = wal__file_read_full(fd, bytes, sizeof(bytes));
    }
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0) {
        return BEGINS_WITH_NOTHING;
    }
    return got == (ssize_t)sizeof(bytes) && memcmp(bytes, magic, sizeof(bytes)) == 0
               ? BEGINS_AS_DATABASE
               : BEGINS_AS_OTHER;
}

/* Whether the path of a source is that of a client's database. */
static bool is_of_client(const char *path)
{
    const char *below = NULL;
    const struct wal__client *client =
        path != NULL ? wal__client_of_source(wal__dialect_opencode.name, path, &below) : NULL;

    return client != NULL && wal__client_matches(client->roots, below) && has_ending(below);
}

/* Sets *is_other to whether a client's database has something else instead of sessions. */
static int look_for_other(struct wal__session_database *database, const char *path, bool *is_other)
{
    int64_t count = 0;
    int code = is_of_client(path)
                   ? run(database, "SELECT count(*) FROM sqlite_master", NULL, &count)
                   : SQLITE_OK;

    *is_other = count > 0;
    return code;
}

enum wal_status wal__session_database_open(struct wal__import *import, const char *name,
                                           const char *path, int64_t since_ms,
                                           struct wal__session_database **database,
                                           struct wal_error *error)
{
    const enum beginning begins = read_beginning(name);
    struct wal__session_database *opened;
    enum wal_status status = WAL_OK;
    bool is_other = false;
    int code;

    *database = NULL;
    if (begins != BEGINS_AS_DATABASE) {
        return begins == BEGINS_AS_OTHER && is_of_client(path)
                   ? wal__fail(error, WAL_EBADJSON,
                               "the database is damaged: it does not begin as one does")
                   : WAL_OK;
    }
    opened = wal__heap_zalloc(import->heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->import = import;
    opened->name = name;
    opened->since_ms = since_ms;
    opened->text.heap = import->heap;
    code = open_db(opened);
    code = code == SQLITE_OK ? find_tables(opened) : code;
    if (code == SQLITE_NOTADB && !has_ending(name)) {
        wal__session_database_close(opened);
        return WAL_OK;
    }
    if (code == SQLITE_OK && !opened->has[SESSION] && !opened->has[SESSION_2] &&
        !opened->has[MESSAGE] && opened->lack[0] == '\0') {
        code = look_for_other(opened, path, &is_other);
        if (code == SQLITE_OK && !is_other) {
            wal__session_database_close(opened);
            return WAL_OK;
        }
    }
    if (code == SQLITE_OK && is_other) {
        status = wal__fail(error, WAL_ESCHEMA,
                           "the database is of another version: it has no table of sessions that "
                           "is read");
    } else if (code == SQLITE_OK && !opened->has[MESSAGE] && !opened->has[MESSAGE_2]) {
        status = wal__fail(error, WAL_ESCHEMA, "%s",
                           opened->lack[0] != '\0' ? opened->lack
                                                   : "the database has no table of messages");
    } else {
        code = code == SQLITE_OK ? prepare(opened) : code;
        status = code == SQLITE_OK ? WAL_OK : fail(opened, code, error);
    }
    if (status != WAL_OK) {
        wal__session_database_close(opened);
        return status;
    }
    *database = opened;
    return WAL_OK;
}

void wal__session_database_close(struct wal__session_database *database)
{
    if (database != NULL) {
        close_db(database);
        sqlite3_value_free(database->id);
        wal__buf_deinit(&database->text);
        wal__heap_free(database->import->heap, database);
    }
}

/* --- rows ---------------------------------------------------------------- */

/* Returns the index of a column, or -1. */
static int column_of(sqlite3_stmt *row, const char *name)
{
    int count = sqlite3_column_count(row);

    for (int i = 0; i < count; i++) {
        if (strcmp(sqlite3_column_name(row, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

static struct wal__json_span column_bytes(sqlite3_stmt *row, int column)
{
    const void *data = column >= 0 ? sqlite3_column_blob(row, column) : NULL;

    return (struct wal__json_span){data,
                                   data != NULL ? (size_t)sqlite3_column_bytes(row, column) : 0};
}

/* Writes an id as a component of a path and as a name: unchanged if it can be one, else its hash.
 * `number`, of the row, is for rows without an id. */
static void write_name(sqlite3_stmt *row, const char *column, int64_t number, char name[NAME_SIZE])
{
    struct wal__json_span id = column_bytes(row, column_of(row, column));
    bool is_name = id.size > 0 && id.size < NAME_SIZE && id.data[0] != '.';

    for (size_t i = 0; is_name && i < id.size; i++) {
        is_name = id.data[i] > ' ' && id.data[i] < 0x7f && strchr("/\\\"%~", id.data[i]) == NULL;
    }
    if (is_name) {
        memcpy(name, id.data, id.size);
        name[id.size] = '\0';
    } else {
        bool is_null = sqlite3_column_type(row, column_of(row, column)) == SQLITE_NULL;
        snprintf(name, NAME_SIZE, "id-%016" PRIx64,
                 is_null ? (uint64_t)number : wal__model_hash(1, id));
    }
}

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

/* Returns when the row was changed; 0: the table does not say. */
static int64_t time_updated(sqlite3_stmt *row)
{
    int column = column_of(row, "time_updated");

    return column >= 0 ? sqlite3_column_int64(row, column) : 0;
}

static void note_time(struct wal__session_database *database, sqlite3_stmt *row)
{
    int64_t *latest = &database->import->updated_ms;

    *latest = time_updated(row) > *latest ? time_updated(row) : *latest;
}

/* Writes a column's value: a number, JSON, or a text. */
static void put_column(struct wal__json_out *out, sqlite3_stmt *row, int column, bool is_json)
{
    char number[32];
    struct wal__json_span text;

    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        wal__json_out_number(out, sqlite3_column_int64(row, column));
        break;
    case SQLITE_FLOAT:
        sqlite3_snprintf(sizeof(number), number, "%!.17g", sqlite3_column_double(row, column));
        text = (struct wal__json_span){(const uint8_t *)number, strlen(number)};
        if (wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
            wal__json_out_value(out, text);
        } else {
            wal__json_out_text(out, text);
        }
        break;
    case SQLITE_NULL:
        wal__json_out_literal(out, "null");
        break;
    default:
        text = column_bytes(row, column);
        if (is_json && wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
            wal__json_out_value(out, text);
        } else {
            wal__json_out_text(out, text);
        }
    }
}

/* Writes the columns that have values, other than those of the list, as members of their names. */
static void put_others(struct wal__json_out *out, sqlite3_stmt *row, const char *const *known)
{
    int count = sqlite3_column_count(row);

    for (int i = 0; i < count; i++) {
        const char *name = sqlite3_column_name(row, i);
        bool is_known = sqlite3_column_type(row, i) == SQLITE_NULL || name[0] == '\0';

        for (size_t n = 0; !is_known && known[n] != NULL; n++) {
            is_known = strcmp(known[n], name) == 0;
        }
        if (!is_known && strpbrk(name, "\"\\") == NULL) {
            wal__json_out_key(out, name);
            put_column(out, row, i, false);
        }
    }
}

static enum wal_status pass(const char *path, const char *missing, struct wal__json_span json,
                            wal__session_row_fn *each, void *ctx, struct wal_error *error)
{
    const struct wal__session_dir_file file = {.path = path, .missing = missing};

    return each(ctx, &file, (struct wal_slice){json.data, json.size}, error);
}

/* --- sessions ------------------------------------------------------------ */

enum column_kind {
    PLAIN,
    JSON,
    IGNORED /* sums of the messages */
};

/* Members of a session's object; those of one parent follow each other. */
static const struct {
    const char *column;
    const char *key;
    const char *parent;
    enum column_kind kind;
} session_columns[] = {
    {.column = "id", .key = "id"},
    {.column = "slug", .key = "slug"},
    {.column = "version", .key = "version"},
    {.column = "project_id", .key = "projectID"},
    {.column = "workspace_id", .key = "workspaceID"},
    {.column = "directory", .key = "directory"},
    {.column = "path", .key = "path"},
    {.column = "parent_id", .key = "parentID"},
    {.column = "title", .key = "title"},
    {.column = "agent", .key = "agent"},
    {.column = "model", .key = "model", .kind = JSON},
    {.column = "metadata", .key = "metadata", .kind = JSON},
    {.column = "permission", .key = "permission", .kind = JSON},
    {.column = "revert", .key = "revert", .kind = JSON},
    {.column = "share_url", .key = "url", .parent = "share"},
    {.column = "summary_additions", .key = "additions", .parent = "summary"},
    {.column = "summary_deletions", .key = "deletions", .parent = "summary"},
    {.column = "summary_files", .key = "files", .parent = "summary"},
    {.column = "summary_diffs", .key = "diffs", .parent = "summary", .kind = JSON},
    {.column = "time_created", .key = "created", .parent = "time"},
    {.column = "time_updated", .key = "updated", .parent = "time"},
    {.column = "time_compacting", .key = "compacting", .parent = "time"},
    {.column = "time_archived", .key = "archived", .parent = "time"},
    {.column = "cost", .kind = IGNORED},
    {.column = "tokens_input", .kind = IGNORED},
    {.column = "tokens_output", .kind = IGNORED},
    {.column = "tokens_reasoning", .kind = IGNORED},
    {.column = "tokens_cache_read", .kind = IGNORED},
    {.column = "tokens_cache_write", .kind = IGNORED},
};

#define SESSION_COLUMNS (sizeof(session_columns) / sizeof(session_columns[0]))

/* Writes the session's object into the buffer. */
static enum wal_status write_session(struct wal__session_database *database, sqlite3_stmt *row,
                                     struct wal_error *error)
{
    struct wal__json_out out = {.put = put, .ctx = &database->text};
    const char *known[SESSION_COLUMNS + 1];
    const char *parent = NULL;

    database->text.size = 0;
    wal__json_out_open(&out, '{');
    for (size_t i = 0; i < SESSION_COLUMNS; i++) {
        int column = column_of(row, session_columns[i].column);

        known[i] = session_columns[i].column;
        if (parent != NULL &&
            (session_columns[i].parent == NULL || strcmp(session_columns[i].parent, parent) != 0)) {
            wal__json_out_close(&out, '}');
            parent = NULL;
        }
        if (column < 0 || session_columns[i].kind == IGNORED ||
            sqlite3_column_type(row, column) == SQLITE_NULL) {
            continue;
        }
        if (session_columns[i].parent != NULL && parent == NULL) {
            parent = session_columns[i].parent;
            wal__json_out_member_open(&out, parent, '{');
        }
        wal__json_out_key(&out, session_columns[i].key);
        put_column(&out, row, column, session_columns[i].kind == JSON);
    }
    known[SESSION_COLUMNS] = NULL;
    put_others(&out, row, known);
    wal__json_out_close(&out, '}');
    return out.has_failed ? wal__no_memory(error) : WAL_OK;
}

/* Runs a query of the session up to its first row. */
static int begin(struct wal__session_database *database, enum query query)
{
    sqlite3_stmt *statement = database->queries[query];
    int code;

    if (statement == NULL) {
        return SQLITE_DONE;
    }
    sqlite3_reset(statement);
    code = sqlite3_bind_value(statement, 1, database->id);
    if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 1) {
        code = sqlite3_bind_int64(statement, 2, database->rows_since_ms);
    }
    return code == SQLITE_OK ? sqlite3_step(statement) : code;
}

/* Finds the session's row: that of the two tables which was changed last. *row is NULL: neither has
 * one. */
static int find_info(struct wal__session_database *database, sqlite3_stmt **row)
{
    int first = begin(database, INFO);
    int second = begin(database, INFO_2);
    sqlite3_stmt *rows[] = {database->queries[INFO], database->queries[INFO_2]};
    int64_t times[2] = {0, 0};

    *row = NULL;
    if (first != SQLITE_ROW && first != SQLITE_DONE) {
        return first;
    }
    if (second != SQLITE_ROW && second != SQLITE_DONE) {
        return second;
    }
    for (size_t i = 0; i < 2; i++) {
        if ((i == 0 ? first : second) == SQLITE_ROW) {
            times[i] = time_updated(rows[i]);
            note_time(database, rows[i]);
        }
    }
    if (second == SQLITE_ROW && (first != SQLITE_ROW || times[1] > times[0])) {
        *row = rows[1];
    } else if (first == SQLITE_ROW) {
        *row = rows[0];
    }
    return SQLITE_OK;
}

static const char *copy_column(struct wal__session_database *database, sqlite3_stmt *row,
                               const char *name)
{
    struct wal__arena *arena = &database->import->arena.arena;
    struct wal__json_span text = column_bytes(row, column_of(row, name));
    struct wal_slice slice = {text.data, text.size};

    return text.size > 0 ? wal__string_copy(arena, wal__json_quote(arena, slice), WAL__STRING_MAX)
                         : NULL;
}

static const char *copy_time(struct wal__session_database *database, sqlite3_stmt *row)
{
    int column = column_of(row, "time_created");

    if (column < 0 || sqlite3_column_type(row, column) != SQLITE_INTEGER) {
        return column >= 0 ? copy_column(database, row, "time_created") : NULL;
    }
    return wal__import_time_text(&database->import->arena.arena, sqlite3_column_int64(row, column));
}

/* Finds the session above the last one. */
static int find_next(struct wal__session_database *database)
{
    bool is_from_start = database->id == NULL;
    sqlite3_stmt *next = database->queries[is_from_start && database->since_ms == 0 ? FIRST : NEXT];
    int code = SQLITE_OK;

    if (database->since_ms == 0) {
        sqlite3_reset(next);
        code = is_from_start ? SQLITE_OK : sqlite3_bind_value(next, 1, database->id);
    } else if (is_from_start) {
        code = sqlite3_bind_int64(next, 2, database->since_ms);
    }
    code = code == SQLITE_OK ? sqlite3_step(next) : code;
    if (code == SQLITE_ROW && sqlite3_column_type(next, 0) == SQLITE_NULL) {
        code = SQLITE_DONE;
    }
    if (code == SQLITE_ROW) {
        sqlite3_value_free(database->id);
        database->id = sqlite3_value_dup(sqlite3_column_value(next, 0));
        write_name(next, sqlite3_column_name(next, 0), 0, database->session);
        code = database->id != NULL ? SQLITE_ROW : SQLITE_NOMEM;
    }
    if (database->since_ms == 0) {
        sqlite3_reset(next);
    }
    return code;
}

enum wal_status wal__session_database_next(struct wal__session_database *database,
                                           struct wal__session_dir_group *group,
                                           struct wal_error *error)
{
    struct wal__arena *arena = &database->import->arena.arena;
    sqlite3_stmt *row = NULL;
    int code = find_next(database);

    if (code == SQLITE_DONE) {
        return database->lack[0] == '\0' ? WAL_END
                                         : wal__fail(error, WAL_ESCHEMA, "%s", database->lack);
    }
    code = code == SQLITE_ROW ? find_info(database, &row) : code;
    if (code != SQLITE_OK) {
        return fail(database, code, error);
    }
    *group = (struct wal__session_dir_group){.name = wal__arena_copy_text(arena, database->session),
                                             .has_id = true};
    group->id = group->name;
    if (row != NULL) {
        group->has_file = true;
        group->cwd = copy_column(database, row, "directory");
        group->title = copy_column(database, row, "title");
        group->project = copy_column(database, row, "project_id");
        group->parent = copy_column(database, row, "parent_id");
        group->is_subagent = group->parent != NULL;
        if (group->parent == NULL) {
            group->parent = copy_column(database, row, "fork_session_id");
        }
        wal__session_dir_set_origin(database->import, group,
                                    column_bytes(row, column_of(row, "metadata")));
        group->created = copy_time(database, row);
        group->updated_ms = time_updated(row);
    }
    return WAL_OK;
}

/* --- documents ----------------------------------------------------------- */

static enum wal_status pass_info(struct wal__session_database *database, wal__session_row_fn *each,
                                 void *ctx, struct wal_error *error)
{
    char project[NAME_SIZE];
    char path[3 * NAME_SIZE];
    sqlite3_stmt *row = NULL;
    int code = find_info(database, &row);
    enum wal_status status;

    database->is_lost = row == NULL;
    if (code != SQLITE_OK || row == NULL) {
        return code == SQLITE_OK ? WAL_OK : fail(database, code, error);
    }
    status = write_session(database, row, error);
    if (column_bytes(row, column_of(row, "project_id")).size == 0) {
        snprintf(project, sizeof(project), "global");
    } else {
        write_name(row, "project_id", 0, project);
    }
    snprintf(path, sizeof(path), "session/%s/%s.json", project, database->session);
    return status == WAL_OK
               ? pass(path, NULL, (struct wal__json_span){database->text.data, database->text.size},
                      each, ctx, error)
               : status;
}

/* Writes a column as a member, unless the object has such a member. */
static void put_id(struct wal__json_out *out, sqlite3_stmt *row, const char *column,
                   const char *key, struct wal__json_span object)
{
    struct wal__json_member member = {.key = key};
    int index = column_of(row, column);

    if (index >= 0 && sqlite3_column_type(row, index) != SQLITE_NULL &&
        (wal__json_members(object.data, object.size, &member, 1, NULL) != WAL__JSON_OK ||
         member.value.kind == WAL__JSON_NONE)) {
        wal__json_out_key(out, key);
        put_column(out, row, index, false);
    }
}

/* Passes a message or a part: the object of its data, with its ids. A message whose file is not
 * after those before it has its position. */
static enum wal_status pass_row(struct wal__session_database *database, enum query query,
                                wal__session_row_fn *each, void *ctx, struct wal_error *error)
{
    static const char *const known[] = {"id",   "session_id",   "message_id",
                                        "data", "time_created", "time_updated",
                                        "type", "seq",          NULL};
    sqlite3_stmt *row = database->queries[query];
    struct wal__json_out out = {.put = put, .ctx = &database->text};
    struct wal__json_span data = column_bytes(row, column_of(row, "data"));
    const char *missing = database->is_lost ? "its session is missing" : NULL;
    char above[NAME_SIZE];
    char name[NAME_SIZE];
    char path[3 * NAME_SIZE];
    int orphan = column_of(row, "");
    bool is_misplaced = false;

    note_time(database, row);
    write_name(row, "id", ++database->number, name);
    if (query == MESSAGES) {
        is_misplaced = strcmp(name, database->greatest) <= 0;
        if (!is_misplaced) {
            memcpy(database->greatest, name, sizeof(name));
        }
        if (time_updated(row) < database->rows_since_ms) {
            return WAL_OK; /* it is known */
        }
    }
    if (query == PARTS) {
        write_name(row, "message_id", 0, above);
        missing =
            orphan >= 0 && sqlite3_column_int(row, orphan) != 0 ? "its message is missing" : NULL;
    }
    snprintf(path, sizeof(path), "%s/%s/%s.json", query == PARTS ? "part" : "message",
             query == PARTS ? above : database->session, name);
    database->is_lost = false;
    if (data.size == 0 || wal__json_validate(data.data, data.size, NULL) != WAL__JSON_OK ||
        data.data[strspn((const char *)data.data, " \t\r\n")] != '{') {
        return pass(path, missing, data, each, ctx, error);
    }
    database->text.size = 0;
    wal__json_out_open(&out, '{');
    put_id(&out, row, "id", "id", data);
    put_id(&out, row, "session_id", "sessionID", data);
    put_id(&out, row, "message_id", "messageID", data);
    if (query == MESSAGES_2) {
        put_id(&out, row, "type", "type", data);
        put_id(&out, row, "seq", "seq", data);
    }
    if (query == MESSAGES && is_misplaced) {
        wal__json_out_member_int(&out, "position", database->number - 1);
    }
    put_others(&out, row, known);
    wal__json_out_members(&out, data);
    wal__json_out_close(&out, '}');
    if (out.has_failed) {
        return wal__no_memory(error);
    }
    return pass(path, missing, (struct wal__json_span){database->text.data, database->text.size},
                each, ctx, error);
}

static enum wal_status pass_rows(struct wal__session_database *database, enum query query,
                                 wal__session_row_fn *each, void *ctx, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    int code = begin(database, query);

    database->number = 0;
    database->greatest[0] = '\0';
    while (status == WAL_OK && code == SQLITE_ROW) {
        status = pass_row(database, query, each, ctx, error);
        code = status == WAL_OK ? sqlite3_step(database->queries[query]) : code;
    }
    if (status == WAL_OK && code != SQLITE_DONE) {
        status = fail(database, code, error);
    }
    sqlite3_reset(database->queries[query]);
    return status;
}

/* Passes the session's list of things to do, an array. */
static enum wal_status pass_todos(struct wal__session_database *database, wal__session_row_fn *each,
                                  void *ctx, struct wal_error *error)
{
    static const char *const known[] = {"session_id", "position", "time_created", "time_updated",
                                        NULL};
    struct wal__json_out out = {.put = put, .ctx = &database->text};
    char path[2 * NAME_SIZE];
    int code = begin(database, TASKS);
    bool has_todos = code == SQLITE_ROW;

    database->text.size = 0;
    wal__json_out_open(&out, '[');
    for (; code == SQLITE_ROW; code = sqlite3_step(database->queries[TASKS])) {
        wal__json_out_open(&out, '{');
        put_others(&out, database->queries[TASKS], known);
        wal__json_out_close(&out, '}');
    }
    wal__json_out_close(&out, ']');
    sqlite3_reset(database->queries[TASKS]);
    if (code != SQLITE_DONE || out.has_failed) {
        return out.has_failed ? wal__no_memory(error) : fail(database, code, error);
    }
    snprintf(path, sizeof(path), "todo/%s.json", database->session);
    return has_todos
               ? pass(path, NULL, (struct wal__json_span){database->text.data, database->text.size},
                      each, ctx, error)
               : WAL_OK;
}

static enum wal_status scan(struct wal__session_database *database, wal__session_row_fn *each,
                            void *ctx, struct wal_error *error)
{
    enum wal_status status = pass_info(database, each, ctx, error);

    if (status == WAL_OK) {
        status = pass_rows(database, MESSAGES, each, ctx, error);
    }
    if (status == WAL_OK) {
        status = pass_rows(database, PARTS, each, ctx, error);
    }
    if (status == WAL_OK) {
        status = pass_rows(database, MESSAGES_2, each, ctx, error);
    }
    return status == WAL_OK ? pass_todos(database, each, ctx, error) : status;
}

/* Whether another program began to write to a database that was opened as if there were none. */
static bool has_changed(struct wal__session_database *database)
{
    const struct stat *before = &database->stat;
    struct stat now;

    return database->is_alone && (!is_alone(database) || stat(database->name, &now) != 0 ||
                                  now.st_ino != before->st_ino || now.st_size != before->st_size ||
                                  wal__system_modified_ns(&now) != wal__system_modified_ns(before));
}

/* Reads the session in one transaction. */
static enum wal_status scan_once(struct wal__session_database *database, wal__session_row_fn *each,
                                 void *ctx, struct wal_error *error)
{
    int code = sqlite3_exec(database->db, "BEGIN", NULL, NULL, NULL);
    enum wal_status status =
        code == SQLITE_OK ? scan(database, each, ctx, error) : fail(database, code, error);

    for (size_t i = NEXT + 1; i < QUERIES; i++) {
        sqlite3_reset(database->queries[i]);
    }
    (void)sqlite3_exec(database->db, "COMMIT", NULL, NULL, NULL);
    return status;
}

enum wal_status wal__session_database_scan(struct wal__session_database *database, bool is_whole,
                                           wal__session_row_fn *each, void *ctx,
                                           struct wal_error *error)
{
    enum wal_status status;
    int code;

    database->rows_since_ms = is_whole ? 0 : database->since_ms;
    status = scan_once(database, each, ctx, error);

    for (unsigned i = 0;
         i < TRIES && has_changed(database) && status != WAL_ENOMEM && status != WAL_ECALLBACK;
         i++) {
        close_db(database);
        code = open_db(database);
        code = code == SQLITE_OK ? prepare(database) : code;
        status =
            code == SQLITE_OK ? scan_once(database, each, ctx, error) : fail(database, code, error);
    }
    return status;
}

/* --- what it has --------------------------------------------------------- */

enum wal_status wal__session_database_count(struct wal__session_database *database, uint64_t *count,
                                            struct wal_error *error)
{
    const bool *has = database->has;
    int64_t found = 0;
    int code = run(database,
                   has[SESSION] && has[SESSION_2]
                       ? "SELECT count(*) FROM (SELECT id FROM session UNION SELECT id FROM "
                         "session_v2)"
                   : has[SESSION]   ? "SELECT count(*) FROM session"
                   : has[SESSION_2] ? "SELECT count(*) FROM session_v2"
                                    : "SELECT count(DISTINCT session_id) FROM message",
                   NULL, &found);

    *count = (uint64_t)found;
    return code == SQLITE_OK ? WAL_OK : fail(database, code, error);
}

bool wal__session_database_has(struct wal__session_database *database, const char *id)
{
    int64_t found = 0;

    return (database->has[SESSION] &&
            run(database, "SELECT 1 FROM session WHERE id = ?1", id, &found) == SQLITE_OK) ||
           (database->has[SESSION_2] &&
            run(database, "SELECT 1 FROM session_v2 WHERE id = ?1", id, &found) == SQLITE_OK);
}

#else

/* --- without SQLite ------------------------------------------------------- */

enum wal_status wal__session_database_open(struct wal__import *import, const char *name,
                                           const char *path, int64_t since_ms,
                                           struct wal__session_database **database,
                                           struct wal_error *error)
{
    (void)import;
    (void)path;
    (void)since_ms;
    *database = NULL;
    return has_ending(name)
               ? wal__fail(error, WAL_ESCHEMA,
                           "a database cannot be read: agentwal was built without SQLite. On "
                           "Debian or Ubuntu: apt-get install libsqlite3-dev, and build it again")
               : WAL_OK;
}

void wal__session_database_close(struct wal__session_database *database)
{
    (void)database;
}

enum wal_status wal__session_database_next(struct wal__session_database *database,
                                           struct wal__session_dir_group *group,
                                           struct wal_error *error)
{
    (void)database;
    (void)group;
    (void)error;
    return WAL_END;
}

enum wal_status wal__session_database_scan(struct wal__session_database *database, bool is_whole,
                                           wal__session_row_fn *each, void *ctx,
                                           struct wal_error *error)
{
    (void)database;
    (void)is_whole;
    (void)each;
    (void)ctx;
    (void)error;
    return WAL_OK;
}

enum wal_status wal__session_database_count(struct wal__session_database *database, uint64_t *count,
                                            struct wal_error *error)
{
    (void)database;
    (void)count;
    (void)error;
    return WAL_OK;
}

bool wal__session_database_has(struct wal__session_database *database, const char *id)
{
    (void)database;
    (void)id;
    return false;
}

#endif
