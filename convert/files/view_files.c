/*
 * view_files.c - the files of a view: lines as they are put, fingerprints of their bytes, and
 * documents, which are replaced once they are complete (view_files.h, SPEC.md 10.3, 10.4).
 *
 * Invariant: keys of documents in memory are in byte order. Each step of a fingerprint is a
 * bijection of the word, so that contents that differ in one word only always have different
 * fingerprints.
 */
#include "convert/files/view_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/model_table.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"

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

void wal__fingerprint_update(struct wal__fingerprint *fingerprint, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t value;

    while (size > 0 && fingerprint->size % 8 != 0) {
        fingerprint->part |= (uint64_t)*at++ << (8 * (fingerprint->size++ % 8));
        size--;
        if (fingerprint->size % 8 == 0) {
            fingerprint->value = mix_word(fingerprint->value, fingerprint->part);
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

bool wal__saved_file_has_stamp(const struct wal__saved_file *saved,
                               const struct wal__file_stamp *stamp)
{
    return wal__file_stamp_equal(stamp, &saved->stamp) ||
           (saved->has_old_stamp && wal__file_stamp_equal(stamp, &saved->old_stamp));
}

#define BUFFER_SIZE ((size_t)256 << 10)

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Starts a run; must be called before any other function. Content is put from the beginning, or
 * with `is_incremental` from the end of the stable part. */
static void line_file_begin(struct wal__line_file *file, bool is_incremental)
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

static enum wal_status fail_changed(const struct wal__line_file *file, const char *what,
                                    struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECHANGED, 0, file->path, 0, "%s; not touched (import it first)",
                        what);
}

/* --- ownership ----------------------------------------------------------- */

/* Computes the fingerprint of the first bytes of the existing file. */
static bool read_fingerprint(struct wal__line_file *file, uint64_t size,
                             struct wal__fingerprint *fingerprint)
{
    *fingerprint = (struct wal__fingerprint){.size = 0};
    while (fingerprint->size < size) {
        uint64_t want = size - fingerprint->size;
        ssize_t got =
            pread(file->existing_fd, file->buffer, want < BUFFER_SIZE ? (size_t)want : BUFFER_SIZE,
                  (off_t)fingerprint->size);
        if (got <= 0) {
            return false;
        }
        wal__fingerprint_update(fingerprint, file->buffer, (size_t)got);
    }
    file->buffered = 0;
    return true;
}

/* Whether the existing content is exactly what the view left. *has_more: more bytes follow it. */
static bool is_own_content(struct wal__line_file *file, bool *has_more)
{
    const struct wal__saved_file *saved = &file->saved;
    struct wal__fingerprint fingerprint;

    *has_more = false;
    if (!saved->is_known) {
        return false;
    }
    if (wal__saved_file_has_stamp(saved, &file->stamp)) {
        return true;
    }
    if (file->stamp.size < saved->fingerprint.size ||
        !read_fingerprint(file, saved->fingerprint.size, &fingerprint) ||
        !wal__fingerprint_equal(&fingerprint, &saved->fingerprint)) {
        return false;
    }
    *has_more = file->stamp.size > saved->fingerprint.size && !saved->append_pending;
    return !*has_more;
}

/* --- opening ------------------------------------------------------------- */

static enum wal_status open_existing(struct wal__line_file *file, struct wal_error *error)
{
    enum wal_status status = wal__view_fs_open_parent(file->env, file->root, file->path, true,
                                                      &file->directory, &file->name, error);

    if (status == WAL_OK && file->buffer == NULL) {
        file->buffer = wal__heap_alloc(file->env->heap, BUFFER_SIZE);
        if (file->buffer == NULL) {
            return wal__no_memory(error);
        }
    }
    if (status == WAL_OK) {
        status =
            wal__view_fs_open(file->directory, file->name, &file->existing_fd, &file->stamp, error);
    }
    file->exists = status == WAL_OK;
    if (status == WAL_ENOTFILE) {
        return fail_changed(file, "exists and is no regular file", error);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Copies the prefix that is unchanged into the new file. */
static enum wal_status copy_stable_prefix(struct wal__line_file *file, struct wal_error *error)
{
    off_t from = 0;

    while ((uint64_t)from < file->content.size) {
        uint64_t left = file->content.size - (uint64_t)from;
        size_t want = left < ((size_t)1 << 30) ? (size_t)left : (size_t)1 << 30;
        ssize_t got;
        (void)wal__view_fault_point(file->env, 0);
        got = wal__system_copy(file->out_fd, file->existing_fd, &from, want);
        if (got > 0) {
            continue;
        }
        if (got < 0 && errno != EOPNOTSUPP) {
            return wal__view_fs_fail(error, file->path);
        }
        want = want < BUFFER_SIZE ? want : BUFFER_SIZE;
        got = pread(file->existing_fd, file->buffer, want, from);
        if (got <= 0) {
            return fail_changed(file, "became shorter", error);
        }
        from += got;
        if (wal__view_fs_write(file->env, file->out_fd, file->buffer, (size_t)got, error) !=
            WAL_OK) {
            return wal__view_fs_fail(error, file->path);
        }
    }
    file->buffered = 0;
    return WAL_OK;
}

static enum wal_status begin_replace(struct wal__line_file *file, struct wal_error *error)
{
    bool has_more = false;
    enum wal_status status;

    if (file->exists && !is_own_content(file, &has_more)) {
        return fail_changed(
            file, has_more ? "another program wrote to it" : "exists with other content", error);
    }
    /* Not what the state says: an interrupted append came after it, or its own replacement did
     * not. */
    file->replaced = file->stamp;
    status = wal__view_fs_create(file->env, file->state_dir, file->temporary, &file->out_fd, error);
    file->mode = WAL__LINES_REPLACE;
    return status == WAL_OK ? copy_stable_prefix(file, error) : status;
}

/* Whether another program is writing a line after the view's content, which the view's next line
 * matches so far by chance. */
static bool has_foreign_partial_line(const struct wal__line_file *file)
{
    const struct wal__saved_file *saved = &file->saved;
    char last = '\n';

    return saved->is_known && !saved->append_pending &&
           file->content.size > saved->fingerprint.size &&
           pread(file->existing_fd, &last, 1, (off_t)file->content.size - 1) == 1 && last != '\n';
}

/* Whether an interrupted append left bytes, of which nobody knows whether they are synced: a sync
 * that failed, or that another process did not get to, is not made up for by a later one. They are
 * written again. */
static bool has_unsynced_tail(const struct wal__line_file *file)
{
    const struct wal__saved_file *saved = &file->saved;

    return saved->is_known && saved->append_pending && file->stamp.size > saved->fingerprint.size;
}

/* Starts appending at the end of the existing file. */
static enum wal_status begin_append(struct wal__line_file *file, struct wal_error *error)
{
    struct stat stat;
    enum wal_status status =
        wal__view_fs_open_append(file->env, file->directory, file->name, &file->out_fd, error);

    if (status != WAL_OK) {
        return status;
    }
    if (fstat(file->out_fd, &stat) != 0 || (uint64_t)stat.st_ino != file->stamp.inode ||
        (uint64_t)stat.st_size != file->content.size || has_foreign_partial_line(file)) {
        return fail_changed(file, "another program wrote to it", error);
    }
    WAL__ASSERT(file->mode == WAL__LINES_COMPARE);
    if (file->saved.has_old_stamp) {
        /* The state, which names the file that this one replaced, will not. */
        status = wal__view_fs_sync_names(file->env, file->directory, file->name, error);
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

static enum wal_status write_out(struct wal__line_file *file, const void *data, size_t size,
                                 struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__view_fs_write(file->env, file->out_fd, data, size, &own);

    file->bytes += size;
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, own.sys_errno, file->path, 0, "%s", own.text);
}

static enum wal_status flush(struct wal__line_file *file, struct wal_error *error)
{
    size_t size = file->buffered;

    file->buffered = 0;
    return size > 0 ? write_out(file, file->buffer, size, error) : WAL_OK;
}

static enum wal_status append_data(struct wal__line_file *file, const uint8_t *data, size_t size,
                                   struct wal_error *error)
{
    const uint8_t *end = data + size;
    enum wal_status status = WAL_OK;

    wal__fingerprint_update(&file->content, data, size);
    for (const uint8_t *at = data; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
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

/* Compares with the existing file, in whole buffers; returns the number of equal bytes and advances
 * past them. */
static size_t compare(struct wal__line_file *file, const uint8_t *data, size_t size)
{
    size_t same = 0;

    while (same < size) {
        uint64_t at = file->content.size + same;
        size_t have = 0;
        size_t common = size - same;
        const uint8_t *existing;
        if (at >= file->buffer_offset && at < file->buffer_offset + file->buffered) {
            have = (size_t)(file->buffer_offset + file->buffered - at);
        } else {
            ssize_t got = pread(file->existing_fd, file->buffer, BUFFER_SIZE, (off_t)at);
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

/* Compares to the first byte that differs; returns the number of equal bytes. */
static size_t compare_bytes(struct wal__line_file *file, const uint8_t *data, size_t size)
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

static enum wal_status line_file_put(struct wal__line_file *file, const void *data, size_t size,
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
            status = file->content.size >= file->stamp.size && !has_unsynced_tail(file)
                         ? begin_append(file, error)
                         : begin_replace(file, error);
        }
    }
    return status == WAL_OK && size > 0 ? append_data(file, at, size, error) : status;
}

/* Whether the stamp of the file is unchanged; opens only its directory. */
static bool line_file_is_unchanged(struct wal__line_file *file)
{
    const char *name = NULL;
    struct wal__file_stamp stamp;
    struct stat stat;
    int directory = -1;
    bool is_unchanged = false;

    if (file->saved.is_known && wal__view_fs_open_parent(file->env, file->root, file->path, false,
                                                         &directory, &name, NULL) == WAL_OK) {
        if (fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode)) {
            stamp = wal__file_stamp_of(&stat);
            is_unchanged = wal__file_stamp_equal(&stamp, &file->saved.stamp);
        }
        close(directory);
    }
    return is_unchanged;
}

/* Closes all descriptors and removes an uncommitted temporary file. */
static void line_file_end(struct wal__line_file *file)
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

/* Ends the content: makes it durable, in place or in the temporary file. Sets
 * *stamp. */
static enum wal_status line_file_finish(struct wal__line_file *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->mode == WAL__LINES_IDLE) {
        if (file->saved.is_known && file->content.size == file->saved.fingerprint.size &&
            line_file_is_unchanged(file)) {
            file->stamp = file->saved.stamp;
            return WAL_OK;
        }
        status = line_file_put(file, NULL, 0, error);
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
            status = wal__view_fs_sync(file->env, file->out_fd, &file->stamp, &own);
            if (status != WAL_OK) {
                return wal__fail_at(error, status, own.sys_errno, file->path, 0, "%s", own.text);
            }
        }
        if (status == WAL_OK && file->stamp.size != file->content.size) {
            status = fail_changed(file, "another program wrote to it", error);
        }
    }
    return status;
}

/* Renames the temporary file into place, if there is one; updates file->saved. */
static enum wal_status line_file_commit(struct wal__line_file *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(file->stable.size <= file->content.size);
    if (file->mode == WAL__LINES_REPLACE) {
        status = wal__view_fs_rename(file->env, file->state_dir, file->temporary, file->directory,
                                     file->name, true, error);
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

/* Whether the content of the file is the saved one; reads the file. */
static bool line_file_has_saved_content(struct wal__line_file *file)
{
    struct wal__file_stamp stamp;
    const char *name = NULL;
    int directory = -1;
    bool is_equal = false;
    int fd = -1;

    if (!file->saved.is_known || wal__view_fs_open_parent(file->env, file->root, file->path, false,
                                                          &directory, &name, NULL) != WAL_OK) {
        return false;
    }
    if (wal__view_fs_open(directory, name, &fd, &stamp, NULL) == WAL_OK) {
        is_equal =
            stamp.size == file->saved.fingerprint.size && has_content(fd, &file->saved.fingerprint);
        close(fd);
    }
    close(directory);
    return is_equal;
}

/* Whether a file is missing, or has what the saved state says. *stamp is that of the file, if it
 * exists. */
static bool line_file_is_own(const struct wal__saved_file *saved, int directory, const char *name,
                             const struct wal__file_stamp *stamp)
{
    struct wal__file_stamp now;
    int fd = -1;
    enum wal_status status = wal__view_fs_open(directory, name, &fd, &now, NULL);
    bool is_own = status == WAL_ENOTFOUND;

    if (status == WAL_OK) {
        is_own = saved->is_known &&
                 (wal__saved_file_has_stamp(saved, stamp) || has_content(fd, &saved->fingerprint));
        close(fd);
    }
    return is_own;
}

/* Removes the file, durably, if its content is the view's. */
static enum wal_status line_file_remove(struct wal__line_file *file, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool has_more;

    line_file_begin(file, false);
    if (open_existing(file, NULL) == WAL_OK && file->exists && is_own_content(file, &has_more) &&
        !wal__view_fs_remove(file->env, file->directory, file->name)) {
        status = wal__view_fs_fail(error, file->path);
    }
    if (status == WAL_OK && file->directory >= 0) {
        /* Also when an earlier flush removed it and did not get to this. */
        status = wal__view_fs_sync_names(file->env, file->directory, file->name, error);
    }
    line_file_end(file);
    return status;
}

/* --- documents in memory ------------------------------------------------- */

/* The owner sets `files`, which must not change meanwhile. */
struct joined_files {
    const struct wal__view_files *files;
    const struct wal__view_file **items; /* the documents, by path */
    uint32_t count;
};

static int compare_paths(const void *a, const void *b)
{
    const struct wal__view_file *const *one = a;
    const struct wal__view_file *const *two = b;

    return strcmp((*one)->lines.path, (*two)->lines.path);
}

/* Returns the index of the first document whose path is not before the key. */
static uint32_t lower_bound(const struct joined_files *joined, const char *key)
{
    uint32_t low = 0;
    uint32_t high = joined->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(joined->items[middle]->lines.path, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct wal__json_span value_of(const struct wal__view_file *file)
{
    return (struct wal__json_span){file->data.data, file->data.size};
}

static bool get_document(void *ctx, const char *key, struct wal__json_span *value)
{
    const struct joined_files *joined = ctx;
    uint32_t at = lower_bound(joined, key);

    if (at == joined->count || strcmp(joined->items[at]->lines.path, key) != 0) {
        return false;
    }
    *value = value_of(joined->items[at]);
    return true;
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    const struct joined_files *joined = ctx;
    size_t size = strlen(prefix);

    for (uint32_t i = lower_bound(joined, prefix); i < joined->count; i++) {
        const struct wal__view_file *file = joined->items[i];
        if (strncmp(file->lines.path, prefix, size) != 0) {
            break;
        }
        if (!each(each_ctx, file->lines.path, value_of(file))) {
            return false;
        }
    }
    return true;
}

/* Sets *documents, which borrows *joined. False: no memory. */
static bool joined_files_init(struct joined_files *joined, struct wal__model_documents *documents)
{
    const struct wal__view_files *files = joined->files;

    joined->count = 0;
    joined->items =
        wal__heap_alloc(files->env->heap, (files->count + 1) * sizeof(joined->items[0]));
    if (joined->items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_document && files->items[i]->is_current) {
            joined->items[joined->count++] = files->items[i];
        }
    }
    qsort(joined->items, joined->count, sizeof(joined->items[0]), compare_paths);
    *documents =
        (struct wal__model_documents){.ctx = joined, .get = get_document, .scan = scan_documents};
    return true;
}

/* --- documents on disk --------------------------------------------------- */

/* Whether the file has the content of the document. */
static bool matches_file(struct wal__view_file *file, int directory, const char *name,
                         struct wal__file_stamp *stamp)
{
    size_t at = 0;
    char piece[4096];
    int fd;
    ssize_t got = 0;

    if (wal__view_fs_open(directory, name, &fd, stamp, NULL) != WAL_OK) {
        return false;
    }
    while (stamp->size == file->data.size && at < file->data.size &&
           (got = pread(fd, piece, sizeof(piece), (off_t)at)) > 0 &&
           (size_t)got <= file->data.size - at &&
           memcmp(piece, file->data.data + at, (size_t)got) == 0) {
        at += (size_t)got;
    }
    close(fd);
    return stamp->size == file->data.size && at == file->data.size;
}

static enum wal_status replace_document(struct wal__view_files *files, struct wal__view_file *file,
                                        struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    const char *name = NULL;
    int directory = -1;
    int fd = -1;
    enum wal_status status = wal__view_fs_open_parent(env, files->root, file->lines.path, true,
                                                      &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__view_fs_create(env, files->temporary_dir, file->temporary, &fd, error);

    if (status == WAL_OK) {
        status = wal__view_fs_write(env, fd, file->data.data, file->data.size, error);
        if (status == WAL_OK) {
            status = wal__view_fs_sync(env, fd, &file->lines.stamp, error);
        }
        close(fd);
        if (status == WAL_OK) {
            status = wal__view_fs_rename(env, files->temporary_dir, file->temporary, directory,
                                         name, false, error);
        }
        if (status != WAL_OK) {
            (void)wal__view_fs_remove(env, files->temporary_dir, file->temporary);
        }
    }
    close(directory);
    files->bytes += file->data.size;
    files->has_replaced = true;
    return status;
}

/* Determines whether the document must be written, and sets its saved state. Fails if the file has
 * what another program wrote. */
static enum wal_status check_document(struct wal__view_files *files, struct wal__view_file *file,
                                      struct wal_error *error)
{
    struct wal__saved_file *saved = &file->lines.saved;
    struct wal__file_stamp stamp = {.size = 0};
    const char *name = NULL;
    int directory = -1;
    bool is_own;
    enum wal_status status = wal__view_fs_open_parent(files->env, files->root, file->lines.path,
                                                      true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    file->is_same = matches_file(file, directory, name, &stamp);
    /* Without a state, a document next to a file of lines is made again. */
    is_own = file->is_same || (!saved->is_known && files->dialect->write_ops->join == NULL) ||
             line_file_is_own(saved, directory, name, &stamp);
    close(directory);
    if (!is_own) {
        return wal__fail_at(error, WAL_ECHANGED, 0, file->lines.path, 0, "%s",
                            saved->is_known ? "another program wrote to it"
                                            : "exists with other content");
    }
    saved->has_old_stamp = saved->is_known;
    saved->old_stamp = saved->stamp;
    saved->is_known = true;
    saved->stamp = stamp;
    saved->fingerprint = (struct wal__fingerprint){.size = 0};
    wal__fingerprint_update(&saved->fingerprint, file->data.data, file->data.size);
    saved->stable = saved->fingerprint;
    return WAL_OK;
}

static enum wal_status write_document(struct wal__view_files *files, struct wal__view_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->is_shared) {
        const struct wal__shared_file shared = {.env = files->env,
                                                .root = files->root,
                                                .path = file->lines.path,
                                                .temporary_dir = files->temporary_dir,
                                                .temporary = file->temporary,
                                                .data = file->data.data,
                                                .size = file->data.size};
        status = file->kind == WAL__OUTPUT_SHARED_LINE ? wal__shared_file_add_line(&shared, error)
                                                       : wal__shared_file_create(&shared, error);
    } else if (!file->is_same) {
        status = replace_document(files, file, error);
        file->lines.saved.stamp = file->lines.stamp;
        for (size_t i = 0; i < file->data.size; i++) {
            files->lines += file->data.data[i] == '\n' ? 1 : 0;
        }
    }
    if (status == WAL_OK) {
        file->lines.saved.has_old_stamp = false;
        file->lines.saved.append_pending = false;
        wal__buf_deinit(&file->data);
        wal__buf_init(&file->data, files->env->heap);
        file->has_data = false;
    }
    return status;
}

/* Whether two paths have the same directory. */
static bool have_same_parent(const char *one, const char *two)
{
    const char *end = strrchr(one, '/');
    size_t size = end != NULL ? (size_t)(end - one) + 1 : 0;

    return strncmp(one, two, size) == 0 && strchr(two + size, '/') == NULL;
}

/* Makes the names of the documents durable that were renamed into place: the next state does not
 * have the stamps of those that they replaced. */
static enum wal_status sync_documents(struct wal__view_files *files, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const char *synced = NULL;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        const char *path = file->lines.path;
        const char *name = NULL;
        int directory = -1;

        if (!file->is_replaced || (synced != NULL && have_same_parent(synced, path))) {
            continue;
        }
        status = wal__view_fs_open_parent(files->env, files->root, path, false, &directory, &name,
                                          error);
        if (status == WAL_OK) {
            status = wal__view_fs_sync_names(files->env, directory, path, error);
            close(directory);
        }
        synced = path;
    }
    return status;
}

/*
 * Writes the documents whose content was put and differs from the file's; those that are shared
 * with the client are created or get a line. The saved state has all new documents, durably, before
 * the first is written; all names are durable when it returns. WAL_ECHANGED: a document is not the
 * view's; nothing is written.
 */
static enum wal_status document_files_write(struct wal__view_files *files, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_same = true;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (file->has_data && !file->is_shared) {
            status = check_document(files, file, error);
            is_same &= file->is_same;
        }
    }
    if (status == WAL_OK && !is_same) {
        status = files->owner.before_append(files->owner.ctx, error);
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];

        /* An interrupted flush may have replaced one that is the same. */
        file->is_replaced = file->has_data && !file->is_shared &&
                            (!file->is_same || file->lines.saved.append_pending);
        if (file->has_data) {
            status = write_document(files, file, error);
        }
    }
    return status == WAL_OK ? sync_documents(files, error) : status;
}

/* --- the files ----------------------------------------------------------- */

#define PENDING_SIZE ((size_t)64 << 10)

void wal__view_files_init(struct wal__view_files *files, const struct wal__view_env *env)
{
    files->env = env;
    files->state_dir = -1;
    files->temporary_dir = -1;
    wal__hashmap_init(&files->index_by_path, env->heap);
    wal__buf_init(&files->pending, env->heap);
}

static void free_file(struct wal__view_files *files, struct wal__view_file *file)
{
    line_file_end(&file->lines);
    wal__buf_deinit(&file->data);
    wal__heap_free(files->env->heap, file->lines.path);
    wal__heap_free(files->env->heap, file);
}

void wal__view_files_clear(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free_file(files, files->items[i]);
    }
    files->count = 0;
    files->current = NULL;
    files->stable = NULL;
    wal__hashmap_deinit(&files->index_by_path);
    wal__hashmap_init(&files->index_by_path, files->env->heap);
}

void wal__view_files_deinit(struct wal__view_files *files)
{
    if (files->env == NULL) {
        return;
    }
    wal__view_files_clear(files);
    wal__heap_free(files->env->heap, files->items);
    wal__hashmap_deinit(&files->index_by_path);
    wal__buf_deinit(&files->pending);
}

struct wal__view_file *wal__view_files_find(const struct wal__view_files *files, const char *path)
{
    uint32_t cursor = 0;
    uint32_t index;

    while (wal__hashmap_find(&files->index_by_path, wal__model_text_hash(path), &cursor, &index)) {
        if (strcmp(files->items[index]->lines.path, path) == 0) {
            return files->items[index];
        }
    }
    return NULL;
}

struct wal__view_file *wal__view_files_add(struct wal__view_files *files, const char *path,
                                           bool is_document)
{
    const struct wal__heap *heap = files->env->heap;
    struct wal__view_file *file;

    if (!WAL__HEAP_GROW(heap, files->items, files->count, files->capacity)) {
        return NULL;
    }
    file = wal__heap_zalloc(heap, sizeof(*file));
    if (file == NULL) {
        return NULL;
    }
    wal__buf_init(&file->data, heap);
    file->is_document = is_document;
    file->lines.env = files->env;
    file->lines.owner = &files->owner;
    file->lines.root = files->root;
    file->lines.temporary = file->temporary;
    line_file_begin(&file->lines, false);
    file->lines.path = wal__heap_copy_text(heap, path, strlen(path));
    if (file->lines.path == NULL ||
        wal__hashmap_add(&files->index_by_path, wal__model_text_hash(path), files->count) !=
            WAL_OK) {
        free_file(files, file);
        return NULL;
    }
    snprintf(file->temporary, sizeof(file->temporary), "%s%s.%u.tmp",
             files->prefix != NULL ? files->prefix : "", files->key,
             is_document ? 9 : (unsigned)files->count % 8);
    WAL__ASSERT(files->count < files->capacity);
    files->items[files->count++] = file;
    return file;
}

void wal__view_files_begin(struct wal__view_files *files, bool is_incremental)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct wal__view_file *file = files->items[i];
        line_file_begin(&file->lines, is_incremental);
        file->lines.state_dir = files->temporary_dir;
        file->is_current = is_incremental && !file->is_provisional;
        file->is_provisional = false;
        file->has_data = false;
    }
    files->current = is_incremental ? files->stable : NULL;
    files->is_past_stable = false;
    files->status = WAL_OK;
    files->error = (struct wal_error){.struct_size = sizeof(files->error)};
    files->lines = 0;
    files->bytes = 0;
    files->has_replaced = false;
    files->pending.size = 0;
}

/* --- output -------------------------------------------------------------- */

static bool fail(struct wal__view_files *files, enum wal_status status)
{
    files->status = status;
    return false;
}

static bool no_memory(struct wal__view_files *files)
{
    return fail(files, wal__no_memory(&files->error));
}

static bool select_file(void *ctx, const char *path, enum wal__output_kind kind)
{
    struct wal__view_files *files = ctx;
    bool is_document = kind != WAL__OUTPUT_LINES;
    struct wal__view_file *file = wal__view_files_find(files, path);

    if (file == NULL) {
        file = wal__view_files_add(files, path, is_document);
        if (file == NULL) {
            return no_memory(files);
        }
    }
    file->kind = kind;
    file->is_shared = is_document && kind != WAL__OUTPUT_DOCUMENT;
    file->is_provisional = is_document && files->is_past_stable && !file->is_current;
    file->is_current = true;
    file->lines.state_dir = files->temporary_dir;
    files->current = file;
    file->data.size = 0;
    file->has_data = is_document;
    if (is_document || files->root == NULL) {
        return true;
    }
    files->status = line_file_put(&file->lines, NULL, 0, &files->error);
    return files->status == WAL_OK;
}

static bool call_callback(struct wal__view_files *files, const void *data, size_t size)
{
    int32_t answer = size > 0 ? files->put(files->put_ctx, data, size) : 0;

    return answer == 0 ||
           fail(files, wal__fail_at(&files->error, WAL_ECALLBACK, answer, NULL, 0,
                                    "the callback that receives lines returned %d", answer));
}

static bool buffer_output(struct wal__view_files *files, const void *data, size_t size)
{
    if (files->pending.size + size > PENDING_SIZE) {
        if (!call_callback(files, files->pending.data, files->pending.size)) {
            return false;
        }
        files->pending.size = 0;
    }
    WAL__ASSERT(files->pending.size <= PENDING_SIZE);
    if (size >= PENDING_SIZE) {
        return call_callback(files, data, size);
    }
    return wal__buf_append(&files->pending, data, size) == WAL_OK || no_memory(files);
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct wal__view_files *files = ctx;
    struct wal__view_file *file = files->current;

    if (files->status != WAL_OK || size == 0) {
        return files->status == WAL_OK;
    }
    WAL__ASSERT(file != NULL);
    if (files->root == NULL && !file->is_document) {
        return buffer_output(files, data, size);
    }
    if (files->root == NULL && files->dialect->write_ops->join == NULL) {
        return true;
    }
    if (file->is_document) {
        return wal__buf_append(&file->data, data, size) == WAL_OK || no_memory(files);
    }
    files->status = line_file_put(&file->lines, data, size, &files->error);
    return files->status == WAL_OK;
}

struct wal__model_output wal__view_files_output(struct wal__view_files *files)
{
    return (struct wal__model_output){.ctx = files, .file = select_file, .put = put};
}

bool wal__view_files_is_appending(const struct wal__view_files *files)
{
    return files->root != NULL && files->current->lines.mode != WAL__LINES_REPLACE;
}

void wal__view_files_set_stable(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        files->items[i]->lines.stable = files->items[i]->lines.content;
    }
    files->stable = files->current;
    files->is_past_stable = true;
}

/* --- documents ----------------------------------------------------------- */

static bool put_joined(void *ctx, const void *data, size_t size)
{
    struct wal__view_files *files = ctx;

    files->lines += size > 0 && ((const char *)data)[size - 1] == '\n' ? 1 : 0;
    return buffer_output(files, data, size);
}

/* Passes the documents to `put` as one file. */
static bool join_documents(struct wal__view_files *files)
{
    struct wal__json_out out = {.put = put_joined, .ctx = files};
    struct joined_files joined = {.files = files};
    struct wal__model_documents documents;
    bool is_done;

    if (files->dialect->write_ops->join == NULL) {
        return true;
    }
    if (!joined_files_init(&joined, &documents)) {
        return no_memory(files);
    }
    is_done = files->dialect->write_ops->join(&documents, &out) && !out.has_failed &&
              put_joined(files, "\n", 1);
    wal__heap_free(files->env->heap, joined.items);
    return is_done || (files->status == WAL_OK ? no_memory(files) : false);
}

/* --- commit -------------------------------------------------------------- */

enum wal_status wal__view_files_finish(struct wal__view_files *files, struct wal_error *error)
{
    enum wal_status status = files->status;

    if (status != WAL_OK) {
        wal__error_copy(error, &files->error);
        return status;
    }
    if (files->root == NULL) {
        if (!join_documents(files) ||
            !call_callback(files, files->pending.data, files->pending.size)) {
            wal__error_copy(error, &files->error);
        }
        return files->status;
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (!file->is_document && file->is_current) {
            file->lines.state_dir = files->temporary_dir;
            file->lines.modified_ms = files->modified_ms;
            status = line_file_finish(&file->lines, error);
        }
    }
    return status == WAL_OK ? document_files_write(files, error) : status;
}

/* Removes a file that is no longer part of the view. */
static enum wal_status remove_file(struct wal__view_files *files, struct wal__view_file *file,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->lines.saved.is_known) {
        status = line_file_remove(&file->lines, error);
    }
    free_file(files, file);
    return status;
}

static enum wal_status remove_unused_files(struct wal__view_files *files, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->is_current) {
            files->items[kept++] = files->items[i];
        } else if (status == WAL_OK) {
            status = remove_file(files, files->items[i], error);
        } else {
            free_file(files, files->items[i]);
        }
    }
    WAL__ASSERT(kept <= files->count);
    if (kept == files->count) {
        return WAL_OK;
    }
    files->count = kept;
    if (status != WAL_OK) {
        wal__view_files_clear(files);
        return status;
    }
    wal__hashmap_deinit(&files->index_by_path);
    wal__hashmap_init(&files->index_by_path, files->env->heap);
    for (uint32_t i = 0; i < kept && status == WAL_OK; i++) {
        status = wal__hashmap_add(&files->index_by_path,
                                  wal__model_text_hash(files->items[i]->lines.path), i);
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__view_files_commit(struct wal__view_files *files, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (files->root == NULL) {
        return WAL_OK;
    }
    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        if (file->is_document || !file->is_current) {
            continue;
        }
        files->has_replaced |= file->lines.mode == WAL__LINES_REPLACE;
        status = line_file_commit(&file->lines, error);
        files->lines += file->lines.lines;
        files->bytes += file->lines.bytes;
    }
    return status == WAL_OK ? remove_unused_files(files, error) : status;
}

void wal__view_files_end(struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        line_file_end(&files->items[i]->lines);
    }
}

bool wal__view_files_are_unchanged(struct wal__view_files *files, bool include_documents)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct wal__view_file *file = files->items[i];
        if (!file->is_shared && (include_documents || !file->is_document) &&
            !line_file_is_unchanged(&file->lines) &&
            (!file->is_document || !line_file_has_saved_content(&file->lines))) {
            return false;
        }
    }
    return true;
}

struct wal__saved_file wal__view_file_to_save(const struct wal__view_file *file)
{
    struct wal__saved_file saved = file->lines.saved;

    if (!file->is_document && file->is_current) {
        saved = (struct wal__saved_file){
            .is_known = true,
            .has_old_stamp = file->lines.mode == WAL__LINES_REPLACE && file->lines.exists,
            .stamp = file->lines.stamp,
            .old_stamp = file->lines.replaced,
            .fingerprint = file->lines.content,
            .stable = file->lines.stable,
        };
    }
    return saved;
}
