/*
 * database.c - the database of an index, and the file system layer of index files (database.h).
 *
 * Invariant: SQLite gets no byte of a page whose checksum does not match.
 */
#include "search/index/database.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/record.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

#define WAL__FTS_VFS "agentwal-index"

enum wal_status wal__search_fail(struct wal_error *error, sqlite3 *db, int code, const char *what)
{
    int primary = code & 0xff;
    enum wal_status status = primary == SQLITE_NOMEM ? WAL_ENOMEM
                             : primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
                                     primary == SQLITE_IOERR || primary == SQLITE_SCHEMA ||
                                     primary == SQLITE_ERROR
                                 ? WAL_ECORRUPT
                                 : WAL_EIO;

    return status == WAL_ENOMEM ? wal__no_memory(error)
                                : wal__fail(error, status, "%s: %s", what,
                                            db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(db));
}

/* --- pages of a file ------------------------------------------------------ */

enum { PAGE = WAL__SEARCH_FILE_PAGE, PATH_SIZE = 4096 };

static bool read_full(int fd, void *out, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));

        if (got <= 0) {
            if (got < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* Bytes after the header of an encrypted file: the header again, and the pages, encrypted. */
static uint64_t encrypted_size(const struct wal__search_file *file, uint64_t overhead)
{
    return WAL__SEARCH_FILE_HEADER + (uint64_t)file->page_count * PAGE + overhead;
}

uint64_t wal__fts_file_size(const struct wal__search_file *file, uint64_t overhead)
{
    return overhead != 0 ? PAGE + encrypted_size(file, overhead)
                         : wal__search_file_pages(file) + (uint64_t)file->page_count * PAGE;
}

bool wal__fts_read_head(int fd, uint64_t overhead, struct wal__search_file *file, uint32_t **table)
{
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    struct stat stat;
    size_t size;
    uint8_t *read;

    if (!read_full(fd, bytes, sizeof(bytes), 0) ||
        wal__search_file_decode(span, file) != WAL__FMT_OK || fstat(fd, &stat) != 0 ||
        (uint64_t)stat.st_size != wal__fts_file_size(file, overhead)) {
        return false;
    }
    if (overhead != 0) {
        if (table != NULL) {
            *table = NULL;
        }
        return true;
    }
    size = (size_t)file->page_count * 4;
    read = malloc(size);
    if (read == NULL || !read_full(fd, read, size, PAGE) ||
        wal__crc32(0, read, size) != file->table_crc) {
        free(read);
        return false;
    }
    if (table == NULL) {
        free(read);
        return true;
    }
    *table = (uint32_t *)(void *)read;
    for (uint32_t i = 0; i < file->page_count; i++) {
        (*table)[i] = wal__get32(read + (size_t)i * 4);
    }
    return true;
}

/* Reads a page of the database and verifies it. False when it is damaged. */
static bool fts_read_page(int fd, const struct wal__search_file *file, const uint32_t *table,
                          uint32_t page, uint8_t *out)
{
    return page < file->page_count &&
           read_full(fd, out, PAGE, wal__search_file_pages(file) + (uint64_t)page * PAGE) &&
           wal__crc32(0, out, PAGE) == table[page];
}

/* --- a file ------------------------------------------------------------- */

struct index_file {
    sqlite3_file base;
    int fd;
    struct wal__search_file head;
    uint32_t *table;
};

static int close_file(sqlite3_file *base)
{
    struct index_file *file = (struct index_file *)base;

    close(file->fd);
    free(file->table);
    return SQLITE_OK;
}

static int read_bytes(sqlite3_file *base, void *out, int amount, sqlite3_int64 offset)
{
    const struct index_file *file = (const struct index_file *)base;
    uint64_t end = (uint64_t)file->head.page_count * PAGE;
    uint8_t bytes[PAGE];
    uint8_t *to = out;

    if (amount < 0 || offset < 0 || (uint64_t)offset + (uint64_t)amount > end) {
        memset(out, 0, amount < 0 ? 0 : (size_t)amount);
        return SQLITE_IOERR_SHORT_READ;
    }
    while (amount > 0) {
        uint32_t page = (uint32_t)(offset / PAGE);
        size_t begin = (size_t)(offset % PAGE);
        size_t size = PAGE - begin < (size_t)amount ? PAGE - begin : (size_t)amount;
        bool whole = size == PAGE;

        if (!fts_read_page(file->fd, &file->head, file->table, page, whole ? to : bytes)) {
            return SQLITE_CORRUPT;
        }
        if (!whole) {
            memcpy(to, bytes + begin, size);
        }
        to += size;
        offset += (sqlite3_int64)size;
        amount -= (int)size;
    }
    return SQLITE_OK;
}

static int write_bytes(sqlite3_file *base, const void *data, int amount, sqlite3_int64 offset)
{
    (void)base;
    (void)data;
    (void)amount;
    (void)offset;
    return SQLITE_READONLY;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size)
{
    (void)base;
    (void)size;
    return SQLITE_READONLY;
}

static int take_flag(sqlite3_file *base, int flag)
{
    (void)base;
    (void)flag;
    return SQLITE_OK;
}

static int get_size(sqlite3_file *base, sqlite3_int64 *size)
{
    const struct index_file *file = (const struct index_file *)base;

    *size = (sqlite3_int64)file->head.page_count * PAGE;
    return SQLITE_OK;
}

static int check_reserved(sqlite3_file *base, int *result)
{
    (void)base;
    *result = 0;
    return SQLITE_OK;
}

static int control(sqlite3_file *base, int operation, void *argument)
{
    (void)base;
    (void)operation;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *base)
{
    (void)base;
    return PAGE;
}

static int characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_bytes,
    .xWrite = write_bytes,
    .xTruncate = truncate_file,
    .xSync = take_flag,
    .xFileSize = get_size,
    .xLock = take_flag,
    .xUnlock = take_flag,
    .xCheckReservedLock = check_reserved,
    .xFileControl = control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
};

/* --- the layer ---------------------------------------------------------- */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                     int *out_flags)
{
    struct index_file *file = (struct index_file *)base;

    (void)vfs;
    file->base.pMethods = NULL;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0 || name == NULL) {
        return SQLITE_CANTOPEN;
    }
    file->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file->fd < 0) {
        return SQLITE_CANTOPEN;
    }
    if (!wal__fts_read_head(file->fd, 0, &file->head, &file->table)) {
        close(file->fd);
        return SQLITE_NOTADB;
    }
    file->base.pMethods = &methods;
    if (out_flags != NULL) {
        *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
    }
    return SQLITE_OK;
}

static int delete_name(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int check_access(sqlite3_vfs *vfs, const char *name, int flags, int *result)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *result = 0; /* there is no journal */
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    size_t length = strlen(name);

    (void)vfs;
    if (size <= 0 || length >= (size_t)size) {
        return SQLITE_CANTOPEN;
    }
    memcpy(out, name, length + 1);
    return SQLITE_OK;
}

static int fill_random(sqlite3_vfs *vfs, int size, char *out)
{
    sqlite3_vfs *system = vfs->pAppData;

    return system->xRandomness(system, size, out);
}

static int pause_us(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *system = vfs->pAppData;

    return system->xSleep(system, microseconds);
}

static int current_time(sqlite3_vfs *vfs, double *now)
{
    sqlite3_vfs *system = vfs->pAppData;

    return system->xCurrentTime(system, now);
}

static int last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return 0;
}

static sqlite3_vfs layer = {
    .iVersion = 1,
    .szOsFile = sizeof(struct index_file),
    .mxPathname = PATH_SIZE,
    .zName = WAL__FTS_VFS,
    .xOpen = open_file,
    .xDelete = delete_name,
    .xAccess = check_access,
    .xFullPathname = full_path,
    .xRandomness = fill_random,
    .xSleep = pause_us,
    .xCurrentTime = current_time,
    .xGetLastError = last_error,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;

static void register_once(void)
{
    layer.pAppData = sqlite3_vfs_find(NULL);
    registered = layer.pAppData == NULL ? SQLITE_ERROR : sqlite3_vfs_register(&layer, 0);
}

/* Registers the layer, once per process. Returns a code of SQLite. */
static int fts_vfs_register(void)
{
    pthread_once(&once, register_once);
    return registered;
}

/* Returns the header of the file that a connection reads. */
static const struct wal__search_file *fts_vfs_head(sqlite3 *db)
{
    struct index_file *file = NULL;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return &file->head;
}

/* --- the database --------------------------------------------------------- */

enum {
    KIND_BITS = 2, /* of the column `kind`; the unit is above them */
    FREE_PART = 16 /* of the pages may be free */
};

/* Of a word FTS5 keeps the rows alone: where in a row it is, is found when the record is read. */
static const char make_tables[] =
    "CREATE TABLE entry(row INTEGER PRIMARY KEY, sequence INTEGER, "
    "time INTEGER, kind INTEGER);"
    "CREATE TABLE run(first INTEGER PRIMARY KEY, session INTEGER);"
    "CREATE TABLE columns(sets BLOB);"
    "CREATE VIRTUAL TABLE text USING fts5(words, content='', columnsize=0, "
    "detail=none, tokenize='agentwal');";

static enum wal_status run_sql(struct wal__database *database, const char *sql,
                               struct wal_error *error)
{
    int code = sqlite3_exec(database->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK
               ? WAL_OK
               : wal__search_fail(error, database->db, code, "cannot use a search index");
}

static enum wal_status prepare(struct wal__database *database, const char *sql,
                               sqlite3_stmt **statement, struct wal_error *error)
{
    int code =
        sqlite3_prepare_v3(database->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);

    return code == SQLITE_OK
               ? WAL_OK
               : wal__search_fail(error, database->db, code, "cannot read a search index");
}

/* What every connection needs. */
static enum wal_status set_up(struct wal__database *database, struct wal_error *error)
{
    return wal__tokenizer_register(database->db) == SQLITE_OK
               ? WAL_OK
               : wal__fail(error, WAL_EVERSION, "this SQLite has no FTS5: %s",
                           sqlite3_libversion());
}

static enum wal_status open_memory(struct wal__database *database, enum wal__search_kind kind,
                                   struct wal_error *error)
{
    enum wal_status status;
    int code;

    memset(database, 0, sizeof(*database));
    database->kind = kind;
    database->is_memory = true;
    code = sqlite3_open_v2(":memory:", &database->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                           NULL);
    if (code != SQLITE_OK) {
        return wal__search_fail(error, database->db, code, "cannot make a search index");
    }
    /* What was erased must not be left in temporary files. */
    status = run_sql(database, "PRAGMA temp_store=memory", error);
    return status == WAL_OK ? set_up(database, error) : status;
}

enum wal_status wal__database_create(struct wal__database *database, enum wal__search_kind kind,
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
        /* Bytes of words that FTS5 holds before it writes. */
        status =
            run_sql(database, "INSERT INTO text(text, rank) VALUES('hashsize', 33554432)", error);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    }
    return status;
}

/* --- runs --------------------------------------------------------------- */

static enum wal_status add_run(struct wal__database *database, int64_t first, uint32_t session,
                               struct wal_error *error)
{
    if (database->run_count == database->run_capacity) {
        size_t capacity = database->run_capacity * 2 + 64;
        void *grown = realloc(database->runs, capacity * sizeof(*database->runs));

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

static enum wal_status read_runs(struct wal__database *database, struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = SQLITE_ROW;
    enum wal_status status =
        prepare(database, "SELECT first, session FROM run ORDER BY first", &statement, error);

    while (status == WAL_OK && code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW) {
            status = add_run(database, sqlite3_column_int64(statement, 0),
                             (uint32_t)sqlite3_column_int64(statement, 1), error);
        }
    }
    if (status == WAL_OK && code != SQLITE_DONE) {
        status = wal__search_fail(error, database->db, code, "cannot read a search index");
    }
    sqlite3_finalize(statement);
    return status;
}

static enum wal_status reserve_sets(struct wal__database *database, size_t count,
                                    struct wal_error *error)
{
    size_t capacity = database->set_capacity;
    void *grown;

    if (count <= capacity) {
        return WAL_OK;
    }
    capacity = capacity * 2 > count ? capacity * 2 : count + 1024;
    grown = realloc(database->sets, capacity);
    if (grown == NULL) {
        return wal__no_memory(error);
    }
    database->sets = grown;
    database->set_capacity = capacity;
    return WAL_OK;
}

/* Reads the columns of all rows. */
static enum wal_status read_sets(struct wal__database *database, struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    enum wal_status status = prepare(database, "SELECT sets FROM columns", &statement, error);

    if (status == WAL_OK && sqlite3_step(statement) != SQLITE_ROW) {
        status = wal__fail(error, WAL_ECORRUPT, "a search index lacks the columns of its rows");
    }
    if (status == WAL_OK) {
        const void *sets = sqlite3_column_blob(statement, 0);
        size_t count = (size_t)sqlite3_column_bytes(statement, 0);

        status = reserve_sets(database, count, error);
        if (status == WAL_OK && count > 0) {
            memcpy(database->sets, sets, count);
            database->set_count = count;
        }
    }
    sqlite3_finalize(statement);
    return status;
}

uint8_t wal__database_columns(const struct wal__database *database, int64_t row)
{
    return row > 0 && (uint64_t)row <= database->set_count ? database->sets[row - 1] : 0;
}

uint32_t wal__database_session(const struct wal__database *database, int64_t row)
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

/* Reads all pages of an encrypted index file. False when it is damaged, or memory is missing. */
static bool read_encrypted(int fd, struct wal_store *store, const char *path,
                           const struct wal__search_file *file, unsigned char *bytes)
{
    const size_t size = (size_t)encrypted_size(file, wal_derived_overhead(store));
    const size_t count = (size_t)file->page_count * PAGE;
    uint8_t header[WAL__SEARCH_FILE_HEADER];
    uint8_t *stored = malloc(2 * size);
    uint8_t *plain = stored == NULL ? NULL : stored + size;
    bool is_read;

    wal__search_file_encode(file, header);
    is_read = stored != NULL && read_full(fd, stored, size, PAGE) &&
              wal_derived_decrypt(store, strrchr(path, '/') + 1, (struct wal_slice){stored, size},
                                  plain, NULL) == WAL_OK &&
              memcmp(plain, header, sizeof(header)) == 0;
    if (is_read) {
        memcpy(bytes, plain + sizeof(header), count);
    }
    free(stored);
    return is_read;
}

/* Reads all pages of an index file to memory of SQLite. */
static enum wal_status read_pages(int fd, enum wal__search_kind kind, struct wal_store *store,
                                  const char *path, struct wal__search_file *head,
                                  unsigned char **bytes, uint64_t *size, struct wal_error *error)
{
    const uint64_t overhead = wal_derived_overhead(store);
    struct wal__search_file file;
    uint32_t *table = NULL;
    bool is_read = true;

    if (!wal__fts_read_head(fd, overhead, &file, &table) || file.kind != (unsigned)kind) {
        free(table);
        return wal__fail(error, WAL_ECORRUPT, "a search index is damaged");
    }
    *size = (uint64_t)file.page_count * WAL__SEARCH_FILE_PAGE;
    *bytes = sqlite3_malloc64(*size);
    if (*bytes == NULL) {
        free(table);
        return wal__no_memory(error);
    }
    if (overhead != 0) {
        is_read = read_encrypted(fd, store, path, &file, *bytes);
    }
    for (uint32_t i = 0; i < file.page_count && is_read && overhead == 0; i++) {
        is_read = fts_read_page(fd, &file, table, i, *bytes + (size_t)i * WAL__SEARCH_FILE_PAGE);
    }
    free(table);
    *head = file;
    if (!is_read) {
        sqlite3_free(*bytes);
        return wal__fail(error, WAL_ECORRUPT, "a page of a search index is damaged");
    }
    return WAL_OK;
}

enum wal_status wal__database_load(struct wal__database *database, enum wal__search_kind kind,
                                   struct wal_store *store, const char *path,
                                   struct wal__search_file *head, struct wal_error *error)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    enum wal_status status;
    int code;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    memset(database, 0, sizeof(*database));
    if (fd < 0) {
        return wal__fail_at(error, WAL_ENOTFOUND, errno, path, 0, "cannot open a search index");
    }
    status = read_pages(fd, kind, store, path, head, &bytes, &size, error);
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
    code =
        sqlite3_deserialize(database->db, "main", bytes, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    if (code != SQLITE_OK) {
        status = wal__search_fail(error, database->db, code, "cannot load a search index");
    } else {
        status = read_runs(database, error);
    }
    if (status == WAL_OK) {
        status = read_sets(database, error);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    }
    return status;
}

enum wal_status wal__database_open(struct wal__database *database, enum wal__search_kind kind,
                                   struct wal_store *store, const char *path,
                                   struct wal__search_file *head, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    int code;

    if (wal_derived_overhead(store) != 0) {
        status = wal__database_load(database, kind, store, path, head, error);
        database->is_memory = false;
        return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
    }
    code = fts_vfs_register();
    memset(database, 0, sizeof(*database));
    database->kind = kind;
    if (code == SQLITE_OK) {
        code = sqlite3_open_v2(
            path, &database->db,
            SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, WAL__FTS_VFS);
    }
    if (code != SQLITE_OK) {
        status = wal__search_fail(error, database->db, code, "cannot open a search index");
    }
    if (status == WAL_OK) {
        status = set_up(database, error);
    }
    if (status == WAL_OK) {
        status = run_sql(database, "PRAGMA cache_size=-1024; PRAGMA temp_store=memory", error);
    }
    if (status == WAL_OK) {
        status = read_runs(database, error);
    }
    if (status == WAL_OK) {
        status = read_sets(database, error);
    }
    if (status != WAL_OK) {
        wal__database_close(database);
    } else {
        *head = *fts_vfs_head(database->db);
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
    free(database->sets);
    memset(database, 0, sizeof(*database));
}

/* --- rows --------------------------------------------------------------- */

static enum wal_status finish_step(struct wal__database *database, sqlite3_stmt *statement,
                                   struct wal_error *error)
{
    int code = sqlite3_step(statement);

    (void)sqlite3_reset(statement);
    return code == SQLITE_DONE ? WAL_OK
                               : wal__search_fail(error, database->db, code,
                                                  "cannot add to a search "
                                                  "index");
}

enum wal_status wal__database_begin(struct wal__database *database, struct wal_error *error)
{
    enum wal_status status = run_sql(database, "PRAGMA journal_mode=off; BEGIN", error);

    if (status == WAL_OK && database->add_text == NULL) {
        status = prepare(database, "INSERT INTO text(rowid, words) VALUES(?1, ?2)",
                         &database->add_text, error);
    }
    if (status == WAL_OK && database->add_entry == NULL) {
        status = prepare(database, "INSERT INTO entry VALUES(?1, ?2, ?3, ?4)", &database->add_entry,
                         error);
    }
    if (status == WAL_OK && database->add_run == NULL) {
        status = prepare(database, "INSERT INTO run VALUES(?1, ?2)", &database->add_run, error);
    }
    return status;
}

/* Whether a field is in this kind of index. */
static bool is_indexed(const struct wal__database *database, const struct wal__text_field *field)
{
    return (field->column == WAL__COLUMN_RESULT) == (database->kind == WAL__SEARCH_DEEP);
}

/* The texts of a row, each on a line, and the set of their columns.
 * *joined is to be freed. */
static bool join(const struct wal__database *database, const struct wal__unit *unit, char **joined,
                 struct wal_slice *text, uint8_t *columns)
{
    size_t size = 0;
    size_t count = 0;
    char *at;

    *columns = 0;
    for (size_t i = 0; i < unit->count; i++) {
        if (is_indexed(database, &unit->fields[i])) {
            *columns |= (uint8_t)(1U << unit->fields[i].column);
            *text = unit->fields[i].text;
            size += (size_t)unit->fields[i].text.size + 1;
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
        if (is_indexed(database, &unit->fields[i])) {
            memcpy(at, unit->fields[i].text.data, (size_t)unit->fields[i].text.size);
            at += unit->fields[i].text.size;
            *at++ = '\n';
        }
    }
    *text = (struct wal_slice){*joined, size};
    return true;
}

static enum wal_status add_texts(struct wal__database *database, int64_t row,
                                 const struct wal__unit *unit, struct wal_error *error)
{
    struct wal_slice text = {NULL, 0};
    char *joined = NULL;
    uint8_t columns;
    enum wal_status status;

    if (!join(database, unit, &joined, &text, &columns)) {
        return wal__no_memory(error);
    }
    status = reserve_sets(database, (size_t)row, error);
    if (status == WAL_OK) {
        sqlite3_bind_int64(database->add_text, 1, row);
        sqlite3_bind_text64(database->add_text, 2, text.data, text.size, SQLITE_STATIC,
                            SQLITE_UTF8);
        status = finish_step(database, database->add_text, error);
        sqlite3_clear_bindings(database->add_text);
    }
    if (status == WAL_OK) {
        database->sets[row - 1] = columns;
        database->set_count = (size_t)row;
    }
    free(joined);
    return status;
}

enum wal_status wal__database_add(struct wal__database *database, int64_t row,
                                  const struct wal__row *entry, const struct wal__unit *unit,
                                  struct wal_error *error)
{
    enum wal_status status = add_texts(database, row, unit, error);

    if (status == WAL_OK) {
        sqlite3_bind_int64(database->add_entry, 1, row);
        sqlite3_bind_int64(database->add_entry, 2, (sqlite3_int64)entry->sequence);
        sqlite3_bind_int64(database->add_entry, 3, entry->time_ms);
        sqlite3_bind_int64(database->add_entry, 4,
                           (sqlite3_int64)entry->unit << KIND_BITS | entry->kind);
        status = finish_step(database, database->add_entry, error);
    }
    if (status == WAL_OK && (database->run_count == 0 ||
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

static enum wal_status write_sets(struct wal__database *database, struct wal_error *error)
{
    sqlite3_stmt *statement = NULL;
    enum wal_status status = run_sql(database, "DELETE FROM columns", error);

    if (status == WAL_OK) {
        status = prepare(database, "INSERT INTO columns VALUES(?1)", &statement, error);
    }
    if (status == WAL_OK) {
        sqlite3_bind_blob64(statement, 1,
                            database->set_count == 0 ? (const void *)"" : database->sets,
                            database->set_count, SQLITE_STATIC);
        status = finish_step(database, statement, error);
    }
    sqlite3_finalize(statement);
    return status;
}

static int64_t read_number(struct wal__database *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = 0;

    if (prepare(database, sql, &statement, NULL) == WAL_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        number = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return number;
}

enum wal_status wal__database_end(struct wal__database *database, bool is_final,
                                  struct wal_error *error)
{
    enum wal_status status = write_sets(database, error);

    if (status == WAL_OK && is_final) {
        status = run_sql(database, "INSERT INTO text(text) VALUES('optimize')", error);
    }
    if (status == WAL_OK) {
        status = run_sql(database, "COMMIT", error);
    }
    /* Pages that merging left free would be written too. */
    return status == WAL_OK && read_number(database, "PRAGMA freelist_count") >
                                   read_number(database, "PRAGMA page_count") / FREE_PART
               ? run_sql(database, "VACUUM", error)
               : status;
}

unsigned char *wal__database_bytes(struct wal__database *database, uint64_t *size, bool *is_copy)
{
    sqlite3_int64 bytes = 0;
    unsigned char *data = sqlite3_serialize(database->db, "main", &bytes, SQLITE_SERIALIZE_NOCOPY);

    *is_copy = data == NULL;
    if (data == NULL) {
        data = sqlite3_serialize(database->db, "main", &bytes, 0);
    }
    *size = (uint64_t)bytes;
    return data;
}

uint64_t wal__database_size(struct wal__database *database)
{
    return (uint64_t)read_number(database, "PRAGMA page_count") * WAL__SEARCH_FILE_PAGE;
}

enum wal_status wal__database_get(struct wal__database *database, int64_t row,
                                  struct wal__row *entry, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    int code;

    if (database->get_entry == NULL) {
        status = prepare(database, "SELECT sequence, time, kind FROM entry WHERE row=?1",
                         &database->get_entry, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    sqlite3_bind_int64(database->get_entry, 1, row);
    code = sqlite3_step(database->get_entry);
    if (code == SQLITE_ROW) {
        sqlite3_int64 kind = sqlite3_column_int64(database->get_entry, 2);

        entry->sequence = (uint64_t)sqlite3_column_int64(database->get_entry, 0);
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
