/*
 * line_file.c - updates a file of lines, and fingerprints its bytes
 * (line_file.h, SPEC.md 10.3, 10.4).
 *
 * Invariant: each step of a fingerprint is a bijection of the word, so that
 * contents that differ in one word only always have different fingerprints.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/files/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

/* --- the fingerprint ----------------------------------------------------- */

static uint64_t mix_word(uint64_t value, uint64_t word)
{
    value = (value << 29 | value >> 35) ^ word;
    return value * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t load_le64(const uint8_t *at)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)at[i] << (8 * i);
    }
    return word;
}

void wal__fingerprint_update(struct wal__fingerprint *fingerprint,
                             const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t value;

    while (size > 0 && fingerprint->size % 8 != 0) {
        fingerprint->part |= (uint64_t)*at++ << (8 * (fingerprint->size++ % 8));
        size--;
        if (fingerprint->size % 8 == 0) {
            fingerprint->value =
                mix_word(fingerprint->value, fingerprint->part);
            fingerprint->part = 0;
        }
    }
    value = fingerprint->value;
    fingerprint->size += size;
    for (; size >= 8; size -= 8, at += 8) {
        value = mix_word(value, load_le64(at));
    }
    fingerprint->value = value;
    for (unsigned i = 0; i < size; i++) {
        fingerprint->part |= (uint64_t)at[i] << (8 * i);
    }
}

/* --- the file ------------------------------------------------------------ */

#define BUFFER_SIZE ((size_t)256 << 10)

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void wal__line_file_begin(struct wal__line_file *file, bool is_incremental)
{
    const struct wal__fingerprint nothing = {.size = 0};

    file->mode = WAL__LINES_IDLE;
    file->directory = -1;
    file->existing_fd = -1;
    file->out_fd = -1;
    file->exists = false;
    file->buffered = 0;
    file->lines = 0;
    file->bytes = 0;
    file->content = is_incremental ? file->saved.stable : nothing;
    file->stable = file->content;
}

static enum wal_status fail_changed(const struct wal__line_file *file,
                                    const char *what, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECHANGED, 0, file->path, 0,
                        "%s; not touched (import it first)", what);
}

/* --- ownership ----------------------------------------------------------- */

/* Computes the fingerprint of the first bytes of the existing file. */
static bool read_fingerprint(struct wal__line_file *file, uint64_t size,
                             struct wal__fingerprint *fingerprint)
{
    *fingerprint = (struct wal__fingerprint){.size = 0};
    while (fingerprint->size < size) {
        uint64_t want = size - fingerprint->size;
        ssize_t got = pread(file->existing_fd, file->buffer,
                            want < BUFFER_SIZE ? (size_t)want : BUFFER_SIZE,
                            (off_t)fingerprint->size);
        if (got <= 0) {
            return false;
        }
        wal__fingerprint_update(fingerprint, file->buffer, (size_t)got);
    }
    file->buffered = 0;
    return true;
}

/* Whether the existing content is exactly what the view left. *has_more: more
 * bytes follow it. */
static bool is_own_content(struct wal__line_file *file, bool *has_more)
{
    const struct wal__saved_file *saved = &file->saved;
    struct wal__fingerprint fingerprint;

    *has_more = false;
    if (!saved->is_known) {
        return false;
    }
    if (wal__file_stamp_equal(&file->stamp, &saved->stamp) ||
        (saved->has_old_stamp &&
         wal__file_stamp_equal(&file->stamp, &saved->old_stamp))) {
        return true;
    }
    if (file->stamp.size < saved->fingerprint.size ||
        !read_fingerprint(file, saved->fingerprint.size, &fingerprint) ||
        !wal__fingerprint_equal(&fingerprint, &saved->fingerprint)) {
        return false;
    }
    *has_more =
        file->stamp.size > saved->fingerprint.size && !saved->append_pending;
    return !*has_more;
}

/* --- opening ------------------------------------------------------------- */

static enum wal_status open_existing(struct wal__line_file *file,
                                     struct wal_error *error)
{
    enum wal_status status =
        wal__view_fs_open_parent(file->env, file->root, file->path, true,
                                 &file->directory, &file->name, error);

    if (status == WAL_OK && file->buffer == NULL) {
        file->buffer = wal__heap_alloc(file->env->heap, BUFFER_SIZE);
        if (file->buffer == NULL) {
            return wal__no_memory(error);
        }
    }
    if (status == WAL_OK) {
        status = wal__view_fs_open(file->directory, file->name,
                                   &file->existing_fd, &file->stamp, error);
    }
    file->exists = status == WAL_OK;
    if (status == WAL_ENOTFILE) {
        return fail_changed(file, "exists and is no regular file", error);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Copies the prefix that is unchanged into the new file. */
static enum wal_status copy_stable_prefix(struct wal__line_file *file,
                                          struct wal_error *error)
{
    off_t from = 0;

    while ((uint64_t)from < file->content.size) {
        uint64_t left = file->content.size - (uint64_t)from;
        size_t want = left < ((size_t)1 << 30) ? (size_t)left : (size_t)1 << 30;
        ssize_t got;
        (void)wal__view_fault_point(file->env, 0);
        got = copy_file_range(file->existing_fd, &from, file->out_fd, NULL,
                              want, 0);
        if (got > 0) {
            continue;
        }
        if (got < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
            errno != EOPNOTSUPP) {
            return wal__view_fs_fail(error, file->path);
        }
        want = want < BUFFER_SIZE ? want : BUFFER_SIZE;
        got = pread(file->existing_fd, file->buffer, want, from);
        if (got <= 0) {
            return fail_changed(file, "became shorter", error);
        }
        from += got;
        if (wal__view_fs_write(file->env, file->out_fd, file->buffer,
                               (size_t)got, error) != WAL_OK) {
            return wal__view_fs_fail(error, file->path);
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

    if (file->exists && !is_own_content(file, &has_more)) {
        return fail_changed(file,
                            has_more ? "another program wrote to it"
                                     : "exists with other content",
                            error);
    }
    /* Not what the state says: an interrupted append came after it, or its own
     * replacement did not. */
    file->replaced = file->stamp;
    status = wal__view_fs_create(file->env, file->state_dir, file->temporary,
                                 &file->out_fd, error);
    file->mode = WAL__LINES_REPLACE;
    return status == WAL_OK ? copy_stable_prefix(file, error) : status;
}

/* Whether another program is writing a line after the view's content, which the
 * view's next line matches so far by chance. */
static bool has_foreign_partial_line(const struct wal__line_file *file)
{
    const struct wal__saved_file *saved = &file->saved;
    char last = '\n';

    return saved->is_known && !saved->append_pending &&
           file->content.size > saved->fingerprint.size &&
           pread(file->existing_fd, &last, 1, (off_t)file->content.size - 1) ==
               1 &&
           last != '\n';
}

/* Whether an interrupted append left bytes, of which nobody knows whether they
 * are synced: a sync that failed, or that another process did not get to, is
 * not made up for by a later one. They are written again. */
static bool has_unsynced_tail(const struct wal__line_file *file)
{
    const struct wal__saved_file *saved = &file->saved;

    return saved->is_known && saved->append_pending &&
           file->stamp.size > saved->fingerprint.size;
}

/* Starts appending at the end of the existing file. */
static enum wal_status begin_append(struct wal__line_file *file,
                                    struct wal_error *error)
{
    struct stat stat;
    enum wal_status status = wal__view_fs_open_append(
        file->env, file->directory, file->name, &file->out_fd, error);

    if (status != WAL_OK) {
        return status;
    }
    if (fstat(file->out_fd, &stat) != 0 ||
        (uint64_t)stat.st_ino != file->stamp.inode ||
        (uint64_t)stat.st_size != file->content.size ||
        has_foreign_partial_line(file)) {
        return fail_changed(file, "another program wrote to it", error);
    }
    WAL__ASSERT(file->mode == WAL__LINES_COMPARE);
    if (file->saved.has_old_stamp) {
        /* The state, which names the file that this one replaced, will not. */
        status = wal__view_fs_sync_names(file->env, file->directory, file->name,
                                         error);
        if (status != WAL_OK) {
            return status;
        }
    }
    file->mode = WAL__LINES_APPEND;
    file->buffered = 0;
    file->saved = (struct wal__saved_file){.is_known = true,
                                           .append_pending = true,
                                           .stamp = file->stamp,
                                           .fingerprint = file->content,
                                           .stable = file->content};
    return file->owner->before_append(file->owner->ctx, error);
}

/* --- content ------------------------------------------------------------- */

static enum wal_status write_out(struct wal__line_file *file, const void *data,
                                 size_t size, struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status =
        wal__view_fs_write(file->env, file->out_fd, data, size, &own);

    file->bytes += size;
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, own.sys_errno,
                                           file->path, 0, "%s", own.text);
}

static enum wal_status flush(struct wal__line_file *file,
                             struct wal_error *error)
{
    size_t size = file->buffered;

    file->buffered = 0;
    return size > 0 ? write_out(file, file->buffer, size, error) : WAL_OK;
}

static enum wal_status append_data(struct wal__line_file *file,
                                   const uint8_t *data, size_t size,
                                   struct wal_error *error)
{
    const uint8_t *end = data + size;
    enum wal_status status = WAL_OK;

    wal__fingerprint_update(&file->content, data, size);
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
        WAL__ASSERT(file->buffered + size <= BUFFER_SIZE);
        memcpy(file->buffer + file->buffered, data, size);
        file->buffered += size;
    }
    return status;
}

/* Compares with the existing file, in whole buffers; returns the number of
 * equal bytes and advances past them. */
static size_t compare(struct wal__line_file *file, const uint8_t *data,
                      size_t size)
{
    size_t same = 0;

    while (same < size) {
        uint64_t at = file->content.size + same;
        size_t have = 0;
        size_t common = size - same;
        const uint8_t *existing;
        if (at >= file->buffer_offset &&
            at < file->buffer_offset + file->buffered) {
            have = (size_t)(file->buffer_offset + file->buffered - at);
        } else {
            ssize_t got =
                pread(file->existing_fd, file->buffer, BUFFER_SIZE, (off_t)at);
            file->buffer_offset = at;
            file->buffered = got > 0 ? (size_t)got : 0;
            have = file->buffered;
        }
        existing = file->buffer + (at - file->buffer_offset);
        WAL__ASSERT(at >= file->buffer_offset && have <= BUFFER_SIZE);
        common = common < have ? common : have;
        if (common == 0 || memcmp(existing, data + same, common) != 0) {
            break;
        }
        same += common;
    }
    wal__fingerprint_update(&file->content, data, same);
    return same;
}

/* Compares to the first byte that differs; returns the number of equal
 * bytes. */
static size_t compare_bytes(struct wal__line_file *file, const uint8_t *data,
                            size_t size)
{
    size_t same = compare(file, data, size);
    uint64_t offset = file->content.size - file->buffer_offset;
    size_t more = 0;

    WAL__ASSERT(file->content.size >= file->buffer_offset);
    while (same + more < size && offset + more < file->buffered &&
           file->buffer[offset + more] == data[same + more]) {
        more++;
    }
    wal__fingerprint_update(&file->content, data + same, more);
    return same + more;
}

enum wal_status wal__line_file_put(struct wal__line_file *file,
                                   const void *data, size_t size,
                                   struct wal_error *error)
{
    const uint8_t *at = data;
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_IDLE) {
        status = open_existing(file, error);
        file->mode = WAL__LINES_COMPARE;
        if (status == WAL_OK && !file->exists) {
            status = begin_replace(file, error);
        }
    }
    if (status == WAL_OK && file->mode == WAL__LINES_COMPARE && size > 0) {
        size_t same = compare_bytes(file, at, size);
        at += same;
        size -= same;
        if (size > 0) {
            status = file->content.size >= file->stamp.size &&
                             !has_unsynced_tail(file)
                         ? begin_append(file, error)
                         : begin_replace(file, error);
        }
    }
    return status == WAL_OK && size > 0 ? append_data(file, at, size, error)
                                        : status;
}

bool wal__line_file_is_appending(const struct wal__line_file *file)
{
    return file->mode == WAL__LINES_IDLE || file->mode == WAL__LINES_COMPARE ||
           file->mode == WAL__LINES_APPEND;
}

void wal__line_file_set_stable(struct wal__line_file *file)
{
    file->stable = file->content;
}

enum wal_status wal__line_file_finish(struct wal__line_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_IDLE) {
        if (file->saved.is_known &&
            file->content.size == file->saved.fingerprint.size &&
            wal__line_file_is_unchanged(file)) {
            file->stamp = file->saved.stamp;
            return WAL_OK;
        }
        status = wal__line_file_put(file, NULL, 0, error);
    }
    if (status == WAL_OK && file->mode == WAL__LINES_COMPARE &&
        (file->content.size < file->stamp.size || has_unsynced_tail(file))) {
        status = begin_replace(file, error);
    }
    if (status == WAL_OK && file->out_fd >= 0) {
        struct wal_error own = {.struct_size = sizeof(own)};
        status = flush(file, error);
        if (status == WAL_OK) {
            /* Clients sort sessions by the times of their files. */
            wal__view_fs_set_time(file->out_fd, file->modified_ms);
            status =
                wal__view_fs_sync(file->env, file->out_fd, &file->stamp, &own);
            if (status != WAL_OK) {
                return wal__fail_at(error, status, own.sys_errno, file->path, 0,
                                    "%s", own.text);
            }
        }
        if (status == WAL_OK && file->stamp.size != file->content.size) {
            status = fail_changed(file, "another program wrote to it", error);
        }
    }
    return status;
}

enum wal_status wal__line_file_commit(struct wal__line_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(file->stable.size <= file->content.size);
    if (file->mode == WAL__LINES_REPLACE) {
        status =
            wal__view_fs_rename(file->env, file->state_dir, file->temporary,
                                file->directory, file->name, true, error);
    }
    if (status == WAL_OK) {
        file->saved = (struct wal__saved_file){.is_known = true,
                                               .stamp = file->stamp,
                                               .fingerprint = file->content,
                                               .stable = file->stable};
        if (file->mode == WAL__LINES_REPLACE) {
            file->mode = WAL__LINES_APPEND;
        }
    }
    return status;
}

bool wal__line_file_is_unchanged(struct wal__line_file *file)
{
    const char *name = NULL;
    struct stat stat;
    int directory = -1;
    bool is_unchanged = false;

    if (file->saved.is_known &&
        wal__view_fs_open_parent(file->env, file->root, file->path, false,
                                 &directory, &name, NULL) == WAL_OK) {
        is_unchanged =
            fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(stat.st_mode) &&
            (uint64_t)stat.st_size == file->saved.stamp.size &&
            (uint64_t)stat.st_ino == file->saved.stamp.inode &&
            (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec ==
                file->saved.stamp.mtime_ns;
        close(directory);
    }
    return is_unchanged;
}

/* Whether the open file has that content. */
static bool has_content(int fd, const struct wal__fingerprint *content)
{
    struct wal__fingerprint fingerprint = {.size = 0};
    uint8_t piece[4096];
    ssize_t got;

    while ((got = read(fd, piece, sizeof(piece))) > 0) {
        wal__fingerprint_update(&fingerprint, piece, (size_t)got);
    }
    return got == 0 && wal__fingerprint_equal(&fingerprint, content);
}

bool wal__line_file_has_saved_content(struct wal__line_file *file)
{
    struct wal__file_stamp stamp;
    const char *name = NULL;
    int directory = -1;
    bool is_equal = false;
    int fd = -1;

    if (!file->saved.is_known ||
        wal__view_fs_open_parent(file->env, file->root, file->path, false,
                                 &directory, &name, NULL) != WAL_OK) {
        return false;
    }
    if (wal__view_fs_open(directory, name, &fd, &stamp, NULL) == WAL_OK) {
        is_equal = stamp.size == file->saved.fingerprint.size &&
                   has_content(fd, &file->saved.fingerprint);
        close(fd);
    }
    close(directory);
    return is_equal;
}

bool wal__line_file_is_own(const struct wal__saved_file *saved, int directory,
                           const char *name,
                           const struct wal__file_stamp *stamp)
{
    struct wal__file_stamp now;
    bool is_own;
    int fd = -1;
    enum wal_status status =
        wal__view_fs_open(directory, name, &fd, &now, NULL);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND;
    }
    if (!saved->is_known) {
        close(fd);
        return false;
    }
    if (wal__file_stamp_equal(stamp, &saved->stamp) ||
        (saved->has_old_stamp &&
         wal__file_stamp_equal(stamp, &saved->old_stamp))) {
        close(fd);
        return true;
    }
    is_own = has_content(fd, &saved->fingerprint);
    close(fd);
    return is_own;
}

enum wal_status wal__line_file_remove(struct wal__line_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool has_more;

    wal__line_file_begin(file, false);
    if (open_existing(file, NULL) == WAL_OK && file->exists &&
        is_own_content(file, &has_more) &&
        !wal__view_fs_remove(file->env, file->directory, file->name)) {
        status = wal__view_fs_fail(error, file->path);
    }
    if (status == WAL_OK && file->directory >= 0) {
        /* Also when an earlier flush removed it and did not get to this. */
        status = wal__view_fs_sync_names(file->env, file->directory, file->name,
                                         error);
    }
    wal__line_file_end(file);
    return status;
}

void wal__line_file_end(struct wal__line_file *file)
{
    if (file->mode == WAL__LINES_REPLACE && file->out_fd >= 0) {
        (void)wal__view_fs_remove(file->env, file->state_dir, file->temporary);
    }
    close_fd(&file->directory);
    close_fd(&file->existing_fd);
    close_fd(&file->out_fd);
    wal__heap_free(file->env->heap, file->buffer);
    file->buffer = NULL;
    file->mode = WAL__LINES_IDLE;
}
