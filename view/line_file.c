/*
 * line_file.c - a file of lines that is brought up to what it is to hold
 * (SPEC.md 10.3).
 *
 * Threads: one thread at a time.
 */
#include "view/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

#define BUFFER_SIZE ((size_t)256 << 10)

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void wal__line_file_begin(struct wal__line_file *file, bool goes_on)
{
    const struct wal__digest nothing = {.size = 0};

    file->mode = WAL__LINES_IDLE;
    file->directory = -1;
    file->there = -1;
    file->out = -1;
    file->is_there = false;
    file->buffered = 0;
    file->lines = 0;
    file->bytes = 0;
    file->at = goes_on ? file->left.settled : nothing;
    file->settled = file->at;
}

static enum wal_status changed(const struct wal__line_file *file,
                               const char *what, struct wal_error *error)
{
    return wal__fail(error, WAL_ECHANGED, 0, file->path, 0,
                     "%s; not touched (import it first)", what);
}

/* -------------------------------------------------------- whose it is --- */

/* Digests the first bytes of what is there, through the buffer. */
static bool read_digest(struct wal__line_file *file, uint64_t size,
                        struct wal__digest *digest)
{
    *digest = (struct wal__digest){.size = 0};
    while (digest->size < size) {
        uint64_t want = size - digest->size;
        ssize_t got = pread(file->there, file->buffer,
                            want < BUFFER_SIZE ? (size_t)want : BUFFER_SIZE,
                            (off_t)digest->size);
        if (got <= 0) {
            return false;
        }
        wal__digest_add(digest, file->buffer, (size_t)got);
    }
    file->buffered = 0;
    return true;
}

/* Whether what is there is what the view left, and nothing else. */
static bool find_own(struct wal__line_file *file, bool *has_more)
{
    const struct wal__left *left = &file->left;
    struct wal__digest digest;

    *has_more = false;
    if (!left->is_known) {
        return false;
    }
    if (wal__stamp_equal(&file->stamp, &left->stamp) ||
        (left->has_old && wal__stamp_equal(&file->stamp, &left->old))) {
        return true;
    }
    if (file->stamp.size < left->digest.size ||
        !read_digest(file, left->digest.size, &digest) ||
        !wal__digest_equal(&digest, &left->digest)) {
        return false;
    }
    *has_more = file->stamp.size > left->digest.size && !left->is_open;
    return !*has_more;
}

/* ------------------------------------------------------------ opening --- */

static enum wal_status look(struct wal__line_file *file,
                            struct wal_error *error)
{
    enum wal_status status =
        wal__place_directory(file->env, file->root, file->path, true,
                             &file->directory, &file->name, error);

    if (status == WAL_OK && file->buffer == NULL) {
        file->buffer = wal__heap_alloc(file->env->heap, BUFFER_SIZE);
        if (file->buffer == NULL) {
            return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
        }
    }
    if (status == WAL_OK) {
        status = wal__place_open(file->directory, file->name, &file->there,
                                 &file->stamp, error);
    }
    file->is_there = status == WAL_OK;
    if (status == WAL_ENOTFILE) {
        return changed(file, "is there, and is no regular file", error);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Copies the beginning that stays into the new file. */
static enum wal_status copy_beginning(struct wal__line_file *file,
                                      struct wal_error *error)
{
    off_t from = 0;

    while ((uint64_t)from < file->at.size) {
        uint64_t left = file->at.size - (uint64_t)from;
        size_t want = left < ((size_t)1 << 30) ? (size_t)left : (size_t)1 << 30;
        ssize_t got;
        (void)wal__view_step(file->env, 0);
        got = copy_file_range(file->there, &from, file->out, NULL, want, 0);
        if (got > 0) {
            continue;
        }
        if (got < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
            errno != EOPNOTSUPP) {
            return wal__place_fail(error, file->path);
        }
        want = want < BUFFER_SIZE ? want : BUFFER_SIZE;
        got = pread(file->there, file->buffer, want, from);
        if (got <= 0) {
            return changed(file, "became shorter", error);
        }
        from += got;
        if (wal__place_write(file->env, file->out, file->buffer, (size_t)got,
                             error) != WAL_OK) {
            return wal__place_fail(error, file->path);
        }
    }
    file->buffered = 0;
    return WAL_OK;
}

static enum wal_status begin_replace(struct wal__line_file *file,
                                     struct wal_error *error)
{
    bool has_more = false;
    enum wal_status status;

    if (file->is_there && !find_own(file, &has_more)) {
        return changed(file,
                       has_more ? "was written to by somebody else"
                                : "is there with other content",
                       error);
    }
    status = wal__place_create(file->env, file->folder, file->temporary,
                               &file->out, error);
    file->mode = WAL__LINES_REPLACE;
    return status == WAL_OK ? copy_beginning(file, error) : status;
}

/* Whether somebody else is writing a line behind what the view left: that it
 * begins as the view's next one does is chance. */
static bool is_being_written(const struct wal__line_file *file)
{
    const struct wal__left *left = &file->left;
    char last = '\n';

    return left->is_known && !left->is_open &&
           file->at.size > left->digest.size &&
           pread(file->there, &last, 1, (off_t)file->at.size - 1) == 1 &&
           last != '\n';
}

/* From the end of what is there on. */
static enum wal_status begin_append(struct wal__line_file *file,
                                    struct wal_error *error)
{
    struct stat stat;
    enum wal_status status = wal__place_append(file->env, file->directory,
                                               file->name, &file->out, error);

    if (status != WAL_OK) {
        return status;
    }
    if (fstat(file->out, &stat) != 0 ||
        (uint64_t)stat.st_ino != file->stamp.inode ||
        (uint64_t)stat.st_size != file->at.size || is_being_written(file)) {
        return changed(file, "was written to by somebody else", error);
    }
    file->mode = WAL__LINES_APPEND;
    file->buffered = 0;
    file->left = (struct wal__left){.is_known = true,
                                    .is_open = true,
                                    .stamp = file->stamp,
                                    .digest = file->at,
                                    .settled = file->at};
    return file->owner->before_append(file->owner->ctx, error);
}

/* ------------------------------------------------------------ content --- */

static enum wal_status write_out(struct wal__line_file *file, const void *data,
                                 size_t size, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status =
        wal__place_write(file->env, file->out, data, size, &own);

    file->bytes += size;
    return status == WAL_OK ? WAL_OK
                            : wal__fail(error, status, own.sys_errno,
                                        file->path, 0, "%s", own.text);
}

static enum wal_status flush(struct wal__line_file *file,
                             struct wal_error *error)
{
    size_t size = file->buffered;

    file->buffered = 0;
    return size > 0 ? write_out(file, file->buffer, size, error) : WAL_OK;
}

static enum wal_status add(struct wal__line_file *file, const uint8_t *data,
                           size_t size, struct wal_error *error)
{
    const uint8_t *end = data + size;
    enum wal_status status = WAL_OK;

    wal__digest_add(&file->at, data, size);
    for (const uint8_t *at = data;
         (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
        file->lines++;
    }
    if (file->buffered + size > BUFFER_SIZE) {
        status = flush(file, error);
    }
    if (status == WAL_OK && size >= BUFFER_SIZE) {
        return write_out(file, data, size, error);
    }
    if (status == WAL_OK) {
        memcpy(file->buffer + file->buffered, data, size);
        file->buffered += size;
    }
    return status;
}

/* Passes what is there and the same; answers how many bytes that were. */
static size_t compare(struct wal__line_file *file, const uint8_t *data,
                      size_t size)
{
    size_t same = 0;

    while (same < size) {
        uint64_t at = file->at.size + same;
        size_t have = 0;
        size_t common = size - same;
        const uint8_t *there;
        if (at >= file->read_at && at < file->read_at + file->buffered) {
            have = (size_t)(file->read_at + file->buffered - at);
        } else {
            ssize_t got =
                pread(file->there, file->buffer, BUFFER_SIZE, (off_t)at);
            file->read_at = at;
            file->buffered = got > 0 ? (size_t)got : 0;
            have = file->buffered;
        }
        there = file->buffer + (at - file->read_at);
        common = common < have ? common : have;
        if (common == 0 || memcmp(there, data + same, common) != 0) {
            break;
        }
        same += common;
    }
    wal__digest_add(&file->at, data, same);
    return same;
}

/* The first byte that differs, within what a comparison refused. */
static size_t compare_bytes(struct wal__line_file *file, const uint8_t *data,
                            size_t size)
{
    size_t same = compare(file, data, size);
    uint64_t offset = file->at.size - file->read_at;
    size_t more = 0;

    while (same + more < size && offset + more < file->buffered &&
           file->buffer[offset + more] == data[same + more]) {
        more++;
    }
    wal__digest_add(&file->at, data + same, more);
    return same + more;
}

enum wal_status wal__line_file_put(struct wal__line_file *file,
                                   const void *data, size_t size,
                                   struct wal_error *error)
{
    const uint8_t *at = data;
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_IDLE) {
        status = look(file, error);
        file->mode = WAL__LINES_COMPARE;
        if (status == WAL_OK && !file->is_there) {
            status = begin_replace(file, error);
        }
    }
    if (status == WAL_OK && file->mode == WAL__LINES_COMPARE && size > 0) {
        size_t same = compare_bytes(file, at, size);
        at += same;
        size -= same;
        if (size > 0) {
            status = file->at.size >= file->stamp.size
                         ? begin_append(file, error)
                         : begin_replace(file, error);
        }
    }
    return status == WAL_OK && size > 0 ? add(file, at, size, error) : status;
}

bool wal__line_file_appends(const struct wal__line_file *file)
{
    return file->mode == WAL__LINES_IDLE || file->mode == WAL__LINES_COMPARE ||
           file->mode == WAL__LINES_APPEND;
}

void wal__line_file_settle(struct wal__line_file *file)
{
    file->settled = file->at;
}

enum wal_status wal__line_file_finish(struct wal__line_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_IDLE) {
        if (file->left.is_known && file->at.size == file->left.digest.size &&
            wal__line_file_is_left(file)) {
            file->stamp = file->left.stamp;
            return WAL_OK;
        }
        status = wal__line_file_put(file, NULL, 0, error);
    }
    if (status == WAL_OK && file->mode == WAL__LINES_COMPARE &&
        file->at.size < file->stamp.size) {
        status = begin_replace(file, error);
    }
    if (status == WAL_OK && file->out >= 0) {
        struct wal_error own = {.struct_size = sizeof(own)};
        status = flush(file, error);
        if (status == WAL_OK) {
            status = wal__place_finish(file->env, file->out, true, &file->stamp,
                                       &own);
            if (status != WAL_OK) {
                return wal__fail(error, status, own.sys_errno, file->path, 0,
                                 "%s", own.text);
            }
        }
        if (status == WAL_OK && file->stamp.size != file->at.size) {
            status = changed(file, "was written to by somebody else", error);
        }
    }
    return status;
}

enum wal_status wal__line_file_commit(struct wal__line_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_REPLACE) {
        status = wal__place_rename(file->env, file->folder, file->temporary,
                                   file->directory, file->name, true, error);
    }
    if (status == WAL_OK) {
        file->left = (struct wal__left){.is_known = true,
                                        .stamp = file->stamp,
                                        .digest = file->at,
                                        .settled = file->settled};
        if (file->mode == WAL__LINES_REPLACE) {
            file->mode = WAL__LINES_APPEND;
        }
    }
    return status;
}

bool wal__line_file_is_left(struct wal__line_file *file)
{
    const char *name = NULL;
    struct stat stat;
    int directory = -1;
    bool is_left = false;

    if (file->left.is_known &&
        wal__place_directory(file->env, file->root, file->path, false,
                             &directory, &name, NULL) == WAL_OK) {
        is_left =
            fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(stat.st_mode) &&
            (uint64_t)stat.st_size == file->left.stamp.size &&
            (uint64_t)stat.st_ino == file->left.stamp.inode &&
            (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec ==
                file->left.stamp.mtime_ns;
        close(directory);
    }
    return is_left;
}

void wal__line_file_remove(struct wal__line_file *file)
{
    bool has_more;

    wal__line_file_begin(file, false);
    if (look(file, NULL) == WAL_OK && file->is_there &&
        find_own(file, &has_more)) {
        wal__place_remove(file->env, file->directory, file->name);
    }
    wal__line_file_end(file);
}

void wal__line_file_end(struct wal__line_file *file)
{
    if (file->mode == WAL__LINES_REPLACE && file->out >= 0) {
        wal__place_remove(file->env, file->folder, file->temporary);
    }
    close_fd(&file->directory);
    close_fd(&file->there);
    close_fd(&file->out);
    wal__heap_free(file->env->heap, file->buffer);
    file->buffer = NULL;
    file->mode = WAL__LINES_IDLE;
}
