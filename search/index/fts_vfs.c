/*
 * fts_vfs.c - the file system layer of index files (fts_vfs.h).
 *
 * Invariant: SQLite gets no byte of a page whose checksum does not match.
 */
#include "search/index/fts_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__SEARCH_FILE_PAGE,
    PATH_SIZE = 4096
};

static bool read_full(int fd, void *out, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got =
            pread(fd, (char *)out + done, size - done, (off_t)(offset + done));

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

bool wal__fts_read_head(int fd, struct wal__search_file *file, uint32_t **table)
{
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    struct stat stat;
    size_t size;
    uint8_t *read;

    if (!read_full(fd, bytes, sizeof(bytes), 0) ||
        wal__search_file_decode(span, file) != WAL__FMT_OK ||
        fstat(fd, &stat) != 0 ||
        (uint64_t)stat.st_size !=
            wal__search_file_pages(file) + (uint64_t)file->page_count * PAGE) {
        return false;
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

bool wal__fts_read_page(int fd, const struct wal__search_file *file,
                        const uint32_t *table, uint32_t page, uint8_t *out)
{
    return page < file->page_count &&
           read_full(fd, out, PAGE,
                     wal__search_file_pages(file) + (uint64_t)page * PAGE) &&
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

static int read_bytes(sqlite3_file *base, void *out, int amount,
                      sqlite3_int64 offset)
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
        size_t size =
            PAGE - begin < (size_t)amount ? PAGE - begin : (size_t)amount;
        bool whole = size == PAGE;

        if (!wal__fts_read_page(file->fd, &file->head, file->table, page,
                                whole ? to : bytes)) {
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

static int write_bytes(sqlite3_file *base, const void *data, int amount,
                       sqlite3_int64 offset)
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

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base,
                     int flags, int *out_flags)
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
    if (!wal__fts_read_head(file->fd, &file->head, &file->table)) {
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

static int check_access(sqlite3_vfs *vfs, const char *name, int flags,
                        int *result)
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
    registered =
        layer.pAppData == NULL ? SQLITE_ERROR : sqlite3_vfs_register(&layer, 0);
}

int wal__fts_vfs_register(void)
{
    pthread_once(&once, register_once);
    return registered;
}

const struct wal__search_file *wal__fts_vfs_head(sqlite3 *db)
{
    struct index_file *file = NULL;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return &file->head;
}
