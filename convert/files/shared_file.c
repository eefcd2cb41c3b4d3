/*
 * shared_file.c - files that a view shares with the client (shared_file.h).
 *
 * Threads: any; several processes may write the same file.
 */
#include "convert/files/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/files/view_fs.h"
#include "engine/base/error.h"

#define SEARCH_MAX ((uint64_t)64 << 20) /* bytes of a file that are searched */

/* Gives a complete file its name unless the name is taken: *exists. A link,
 * unlike a rename, never replaces a file that the client has just made. */
static enum wal_status link_new(const struct wal__shared_file *file,
                                int directory, const char *name, bool *exists,
                                struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    (void)wal__view_fault_point(file->env, 0);
    *exists =
        linkat(file->temporary_dir, file->temporary, directory, name, 0) != 0;
    if (*exists && errno != EEXIST) {
        *exists = false;
        status =
            wal__view_fs_rename(file->env, file->temporary_dir, file->temporary,
                                directory, name, true, error);
    } else if (fsync(directory) != 0) {
        status = wal__view_fs_fail(error, name);
    }
    (void)wal__view_fs_remove(file->env, file->temporary_dir, file->temporary);
    return status;
}

/* Creates the file unless it was made meanwhile: *exists. */
static enum wal_status create(const struct wal__shared_file *file,
                              int directory, const char *name, bool *exists,
                              struct wal_error *error)
{
    struct wal__file_stamp stamp;
    int fd = -1;
    enum wal_status status = wal__view_fs_create(file->env, file->temporary_dir,
                                                 file->temporary, &fd, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__view_fs_write(file->env, fd, file->data, file->size, error);
    if (status == WAL_OK) {
        status = wal__view_fs_sync(file->env, fd, &stamp, error);
    }
    close(fd);
    if (status != WAL_OK) {
        (void)wal__view_fs_remove(file->env, file->temporary_dir,
                                  file->temporary);
        return status;
    }
    return link_new(file, directory, name, exists, error);
}

/* Creates the file unless something has its name: *exists is set then. *name is
 * in *directory, which is -1 or to be closed. */
static enum wal_status open_or_create(const struct wal__shared_file *file,
                                      int *directory, const char **name,
                                      bool *exists, struct wal_error *error)
{
    struct stat stat;
    enum wal_status status = wal__view_fs_open_parent(
        file->env, file->root, file->path, true, directory, name, error);

    if (status != WAL_OK) {
        return status;
    }
    *exists = fstatat(*directory, *name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
    return *exists ? WAL_OK : create(file, *directory, *name, exists, error);
}

enum wal_status wal__shared_file_create(const struct wal__shared_file *file,
                                        struct wal_error *error)
{
    const char *name = NULL;
    int directory = -1;
    bool exists = false;
    enum wal_status status =
        open_or_create(file, &directory, &name, &exists, error);

    if (directory >= 0) {
        close(directory);
    }
    return status;
}

/* Whether a line of the text begins with these bytes; one without its newline
 * may be torn. */
static bool has_line(const uint8_t *text, size_t size, const void *line,
                     size_t line_size)
{
    const uint8_t *end = text + size;
    const uint8_t *newline;

    while ((newline = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        if ((size_t)(newline - text) >= line_size &&
            memcmp(text, line, line_size) == 0) {
            return true;
        }
        text = newline + 1;
    }
    return false;
}

/* Reads the file and determines whether it has the line, and whether it ends in
 * a newline. */
static enum wal_status search(const struct wal__shared_file *file, int fd,
                              uint64_t size, bool *is_found, bool *is_ended,
                              struct wal_error *error)
{
    const uint8_t *comma = memrchr(file->data, ',', file->size);
    size_t compared = comma != NULL
                          ? (size_t)(comma - (const uint8_t *)file->data)
                          : file->size;
    uint8_t *text = wal__heap_alloc(file->env->heap, (size_t)size + 1);
    size_t have = 0;
    ssize_t got = 1;

    if (text == NULL) {
        return wal__no_memory(error);
    }
    while (have < size && got > 0) {
        got = pread(fd, text + have, (size_t)size - have, (off_t)have);
        have += got > 0 ? (size_t)got : 0;
    }
    *is_found = has_line(text, have, file->data, compared);
    *is_ended = have == 0 || text[have - 1] == '\n';
    wal__heap_free(file->env->heap, text);
    return WAL_OK;
}

static enum wal_status append(const struct wal__shared_file *file,
                              int directory, const char *name, bool is_ended,
                              struct wal_error *error)
{
    struct wal__file_stamp stamp;
    int fd = -1;
    enum wal_status status =
        wal__view_fs_open_append(file->env, directory, name, &fd, error);

    if (status == WAL_OK && !is_ended) {
        status = wal__view_fs_write(file->env, fd, "\n", 1, error);
    }
    if (status == WAL_OK) {
        status =
            wal__view_fs_write(file->env, fd, file->data, file->size, error);
    }
    if (status == WAL_OK) {
        status = wal__view_fs_sync(file->env, fd, &stamp, error);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* Appends the line to a file that exists, unless that has it. */
static enum wal_status append_new(const struct wal__shared_file *file,
                                  int directory, const char *name,
                                  struct wal_error *error)
{
    struct wal__file_stamp stamp = {.size = 0};
    int fd = -1;
    bool is_found = false;
    bool is_ended = true;
    enum wal_status status =
        wal__view_fs_open(directory, name, &fd, &stamp, error);

    if (status != WAL_OK) {
        return status;
    }
    if (stamp.size <= SEARCH_MAX) {
        status = search(file, fd, stamp.size, &is_found, &is_ended, error);
    }
    if (status == WAL_OK && !is_found && stamp.size <= SEARCH_MAX) {
        status = append(file, directory, name, is_ended, error);
    }
    close(fd);
    return status;
}

enum wal_status wal__shared_file_add_line(const struct wal__shared_file *file,
                                          struct wal_error *error)
{
    const char *name = NULL;
    int directory = -1;
    bool exists = false;
    enum wal_status status =
        open_or_create(file, &directory, &name, &exists, error);

    if (status == WAL_OK && exists) {
        status = append_new(file, directory, name, error);
    }
    if (directory >= 0) {
        close(directory);
    }
    return status;
}
