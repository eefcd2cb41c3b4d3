/*
 * fts_file.c - index files and their drafts (fts_file.h).
 */
#include "search/index/fts_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "search/index/fts_vfs.h"

enum {
    PAGE = WAL__SEARCH_FILE_PAGE
};

static bool set_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static int open_name(int directory, const char *name, int flags)
{
    return openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  0600);
}

/* --- drafts ------------------------------------------------------------- */

enum wal_status wal__fts_draft_open(struct wal__fts_draft *draft, int directory,
                                    uint64_t id, enum wal__search_kind kind)
{
    uint64_t random = 0;

    draft->directory = directory;
    draft->fd = -1;
    if (directory < 0 ||
        getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return WAL_EREADONLY;
    }
    wal__search_file_name(id, kind, draft->name);
    snprintf(draft->temporary, sizeof(draft->temporary),
             "%.40s.new-%016" PRIx64, draft->name, random);
    draft->fd =
        open_name(directory, draft->temporary, O_RDWR | O_CREAT | O_EXCL);
    if (draft->fd < 0) {
        return WAL_EREADONLY;
    }
    if (!set_lock(draft->fd)) {
        wal__fts_draft_close(draft);
        return WAL_EREADONLY;
    }
    return WAL_OK;
}

static bool write_full(int fd, const void *data, size_t size, uint64_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t written = pwrite(fd, (const char *)data + done, size - done,
                                 (off_t)(offset + done));

        if (written <= 0) {
            if (written < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

enum wal_status wal__fts_draft_write(struct wal__fts_draft *draft,
                                     struct wal__database *database,
                                     struct wal__search_file *head)
{
    uint64_t size = 0;
    bool is_copy = false;
    bool is_written = false;
    uint8_t bytes[PAGE] = {0};
    unsigned char *pages = wal__database_bytes(database, &size, &is_copy);
    uint32_t count = (uint32_t)(size / PAGE);
    uint8_t *table = calloc((size_t)count + 1, 4);

    if (pages != NULL && table != NULL && size % PAGE == 0) {
        for (uint32_t i = 0; i < count; i++) {
            wal__put32(table + (size_t)i * 4,
                       wal__crc32(0, pages + (size_t)i * PAGE, PAGE));
        }
        head->page_count = count;
        head->table_crc = wal__crc32(0, table, (size_t)count * 4);
        wal__search_file_encode(head, bytes);
        /* The header last: without it the rest is nothing. */
        is_written = write_full(draft->fd, pages, (size_t)size,
                                wal__search_file_pages(head)) &&
                     write_full(draft->fd, table, (size_t)count * 4, PAGE) &&
                     write_full(draft->fd, bytes, PAGE, 0);
    }
    if (is_copy) {
        sqlite3_free(pages);
    }
    free(table);
    return is_written                       ? WAL_OK
           : pages == NULL || table == NULL ? WAL_ENOMEM
                                            : WAL_EREADONLY;
}

enum wal_status wal__fts_draft_commit(struct wal__fts_draft *draft)
{
    if (renameat(draft->directory, draft->temporary, draft->directory,
                 draft->name) != 0) {
        return errno == ENOENT ? WAL_ENOTFOUND : WAL_EREADONLY;
    }
    close(draft->fd);
    draft->fd = -1;
    return WAL_OK;
}

void wal__fts_draft_close(struct wal__fts_draft *draft)
{
    if (draft->fd >= 0) {
        (void)unlinkat(draft->directory, draft->temporary, 0);
        close(draft->fd);
        draft->fd = -1;
    }
}

/* --- the directory ------------------------------------------------------ */

/* Returns false to stop. */
typedef bool name_fn(void *ctx, int directory, const char *name, uint64_t id,
                     enum wal__search_kind kind, bool is_temporary);

static void visit_names(int directory, name_fn *each, void *ctx)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;

    if (stream == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        return;
    }
    while ((entry = readdir(stream)) != NULL) {
        enum wal__search_kind kind;
        bool is_temporary;
        uint64_t id;

        if (wal__search_file_is_name(entry->d_name, &id, &kind,
                                     &is_temporary) &&
            !each(ctx, directory, entry->d_name, id, kind, is_temporary)) {
            break;
        }
    }
    closedir(stream);
}

/* Whether another process holds the lock of a draft. */
static bool is_locked(int directory, const char *name)
{
    int fd = open_name(directory, name, O_RDWR);
    bool locked;

    if (fd < 0) {
        return false;
    }
    locked = !set_lock(fd) && (errno == EAGAIN || errno == EACCES);
    close(fd);
    return locked;
}

struct wanted {
    uint64_t id;
    enum wal__search_kind kind;
    bool is_found;
};

static bool find_draft(void *ctx, int directory, const char *name, uint64_t id,
                       enum wal__search_kind kind, bool is_temporary)
{
    struct wanted *wanted = ctx;

    if (is_temporary && id == wanted->id && kind == wanted->kind &&
        is_locked(directory, name)) {
        wanted->is_found = true;
    }
    return !wanted->is_found;
}

bool wal__fts_is_being_made(int directory, uint64_t id,
                            enum wal__search_kind kind)
{
    struct wanted wanted = {.id = id, .kind = kind};

    if (directory >= 0) {
        visit_names(directory, find_draft, &wanted);
    }
    return wanted.is_found;
}

static bool read_named(int directory, const char *name, uint64_t id,
                       enum wal__search_kind kind,
                       struct wal__search_file *file)
{
    int fd = open_name(directory, name, O_RDONLY);
    bool is_valid;

    if (fd < 0) {
        return false;
    }
    is_valid = wal__fts_read_head(fd, file, NULL) && file->id == id &&
               file->kind == (unsigned)kind;
    close(fd);
    return is_valid;
}

bool wal__fts_read(int directory, uint64_t id, enum wal__search_kind kind,
                   struct wal__search_file *file)
{
    char name[WAL__SEARCH_FILE_NAME];

    if (directory < 0) {
        return false;
    }
    wal__search_file_name(id, kind, name);
    return read_named(directory, name, id, kind, file);
}

struct removal {
    wal__fts_is_live_fn *is_live;
    void *ctx;
};

static bool consider(void *ctx, int directory, const char *name, uint64_t id,
                     enum wal__search_kind kind, bool is_temporary)
{
    struct removal *removal = ctx;
    struct wal__search_file file;

    if (is_temporary) {
        if (!is_locked(directory, name)) {
            (void)unlinkat(directory, name, 0);
        }
    } else if (!read_named(directory, name, id, kind, &file) ||
               !removal->is_live(removal->ctx, &file)) {
        (void)unlinkat(directory, name, 0);
    }
    return true;
}

void wal__fts_remove_stale(int directory, wal__fts_is_live_fn *is_live,
                           void *ctx)
{
    struct removal removal = {.is_live = is_live, .ctx = ctx};

    if (directory >= 0) {
        visit_names(directory, consider, &removal);
    }
}
