/*
 * document_files.c - replaces the documents of a view (document_files.h,
 * SPEC.md 10.3).
 *
 * Threads: one thread at a time.
 */
#include "convert/files/document_files.h"

#include <string.h>
#include <unistd.h>

#include "convert/files/shared_file.h"
#include "engine/base/error.h"

/* Whether the file has the content of the document. */
static bool matches_file(struct wal__view_file *file, int directory,
                         const char *name, struct wal__file_stamp *stamp)
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

static enum wal_status replace_document(struct wal__view_files *files,
                                        struct wal__view_file *file,
                                        struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    const char *name = NULL;
    int directory = -1;
    int fd = -1;
    enum wal_status status = wal__view_fs_open_parent(
        env, files->root, file->lines.path, true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__view_fs_create(env, files->temporary_dir, file->temporary,
                                 &fd, error);

    if (status == WAL_OK) {
        status = wal__view_fs_write(env, fd, file->data.data, file->data.size,
                                    error);
        if (status == WAL_OK) {
            status = wal__view_fs_sync(env, fd, &file->lines.stamp, error);
        }
        close(fd);
        if (status == WAL_OK) {
            status =
                wal__view_fs_rename(env, files->temporary_dir, file->temporary,
                                    directory, name, false, error);
        }
        if (status != WAL_OK) {
            (void)wal__view_fs_remove(env, files->temporary_dir,
                                      file->temporary);
        }
    }
    close(directory);
    files->bytes += file->data.size;
    files->has_replaced = true;
    return status;
}

static void count_lines(struct wal__view_files *files,
                        const struct wal__view_file *file)
{
    for (size_t i = 0; i < file->data.size; i++) {
        files->lines += file->data.data[i] == '\n' ? 1 : 0;
    }
}

/* Determines whether the document must be written, and sets its saved state.
 * Fails if the file has what another program wrote. */
static enum wal_status check_document(struct wal__view_files *files,
                                      struct wal__view_file *file,
                                      struct wal_error *error)
{
    struct wal__saved_file *saved = &file->lines.saved;
    struct wal__file_stamp stamp = {.size = 0};
    const char *name = NULL;
    int directory = -1;
    bool is_own;
    enum wal_status status =
        wal__view_fs_open_parent(files->env, files->root, file->lines.path,
                                 true, &directory, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    file->is_same = matches_file(file, directory, name, &stamp);
    /* Without a state, a document next to a file of lines is made again. */
    is_own = file->is_same ||
             (!saved->is_known && files->dialect->write_ops->join == NULL) ||
             wal__line_file_is_own(saved, directory, name, &stamp);
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
    wal__fingerprint_update(&saved->fingerprint, file->data.data,
                            file->data.size);
    saved->stable = saved->fingerprint;
    return WAL_OK;
}

static enum wal_status write_document(struct wal__view_files *files,
                                      struct wal__view_file *file,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (file->is_shared) {
        const struct wal__shared_file shared = {.env = files->env,
                                                .root = files->root,
                                                .path = file->lines.path,
                                                .temporary_dir =
                                                    files->temporary_dir,
                                                .temporary = file->temporary,
                                                .data = file->data.data,
                                                .size = file->data.size};
        status = file->kind == WAL__OUTPUT_SHARED_LINE
                     ? wal__shared_file_add_line(&shared, error)
                     : wal__shared_file_create(&shared, error);
    } else if (!file->is_same) {
        status = replace_document(files, file, error);
        file->lines.saved.stamp = file->lines.stamp;
        count_lines(files, file);
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

/* Makes the names of the documents durable that were renamed into place: the
 * next state does not have the stamps of those that they replaced. */
static enum wal_status sync_documents(struct wal__view_files *files,
                                      struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const char *synced = NULL;

    for (uint32_t i = 0; i < files->count && status == WAL_OK; i++) {
        struct wal__view_file *file = files->items[i];
        const char *path = file->lines.path;
        const char *name = NULL;
        int directory = -1;

        if (!file->is_replaced ||
            (synced != NULL && have_same_parent(synced, path))) {
            continue;
        }
        status = wal__view_fs_open_parent(files->env, files->root, path, false,
                                          &directory, &name, error);
        if (status == WAL_OK) {
            status =
                wal__view_fs_sync_names(files->env, directory, path, error);
            close(directory);
        }
        synced = path;
    }
    return status;
}

enum wal_status wal__document_files_write(struct wal__view_files *files,
                                          struct wal_error *error)
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
        file->is_replaced =
            file->has_data && !file->is_shared &&
            (!file->is_same || file->lines.saved.append_pending);
        if (file->has_data) {
            status = write_document(files, file, error);
        }
    }
    return status == WAL_OK ? sync_documents(files, error) : status;
}
