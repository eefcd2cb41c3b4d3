/*
 * place.c - the files of a running server (place.h).
 */
#include "tools/serve/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether no other user can replace what is in a directory: it belongs to this
 * user or to root, and where others may write, only to what is theirs. */
static bool is_safe_parent(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISDIR(found.st_mode) &&
           (found.st_uid == geteuid() || found.st_uid == 0) &&
           ((found.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
            (found.st_mode & S_ISVTX) != 0);
}

static bool is_own_directory(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) &&
           found.st_uid == geteuid() &&
           (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

char *serve_place(const struct cli *cli, const char *name)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char system[64];
    char *folder;
    char *path;

    if (runtime == NULL || runtime[0] != '/') {
        snprintf(system, sizeof(system), "/run/user/%u", (unsigned)geteuid());
        runtime = system;
    }
    if (!is_safe_parent(runtime)) {
        (void)cli_error(cli, CLI_FAILED, runtime,
                        "is not a directory in which only you can replace "
                        "files; set XDG_RUNTIME_DIR, or name a file with "
                        "--socket or --token-file");
        return NULL;
    }
    folder = cli_alloc(strlen(runtime) + sizeof("/agentwal"));
    sprintf(folder, "%s/agentwal", runtime);
    if ((mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) ||
        !is_own_directory(folder)) {
        (void)cli_error(cli, CLI_FAILED, folder,
                        "is not a directory that only you can read; set "
                        "XDG_RUNTIME_DIR, or name a file with --socket or "
                        "--token-file");
        free(folder);
        return NULL;
    }
    path = cli_alloc(strlen(folder) + strlen(name) + 2);
    sprintf(path, "%s/%s", folder, name);
    free(folder);
    return path;
}

int serve_write_token(const struct cli *cli, const char *path,
                      const char *token)
{
    size_t size = strlen(token);
    bool is_written;
    int failure;
    int fd;

    if (unlink(path) != 0 && errno != ENOENT) {
        return cli_error(cli, CLI_FAILED, path, "cannot replace the token: %s",
                         strerror(errno));
    }
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
              S_IRUSR | S_IWUSR);
    is_written = fd >= 0 && write(fd, token, size) == (ssize_t)size &&
                 write(fd, "\n", 1) == 1;
    failure = errno;
    if (fd >= 0) {
        close(fd);
    }
    return is_written
               ? CLI_CONTINUE
               : cli_error(cli, CLI_FAILED, path, "cannot write the token: %s",
                           strerror(failure));
}

void serve_file_note(struct serve_file *file)
{
    struct stat found;

    file->is_made = lstat(file->path, &found) == 0;
    if (file->is_made) {
        file->device = found.st_dev;
        file->inode = found.st_ino;
    }
}

void serve_file_remove(const struct serve_file *file)
{
    struct stat found;

    if (file->is_made && lstat(file->path, &found) == 0 &&
        found.st_dev == file->device && found.st_ino == file->inode) {
        unlink(file->path);
    }
}
