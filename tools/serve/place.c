/*
 * place.c - the files of a running server (place.h).
 */
#include "tools/serve/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/serve/http/access.h"

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

/* Whether a file has what serve_write_token writes. */
static bool is_token(int fd)
{
    char text[SERVE_SECRET_SIZE + 1];
    struct stat found;

    return fstat(fd, &found) == 0 && S_ISREG(found.st_mode) &&
           found.st_uid == geteuid() && found.st_size == SERVE_SECRET_SIZE &&
           read(fd, text, sizeof(text)) == SERVE_SECRET_SIZE &&
           text[SERVE_SECRET_SIZE - 1] == '\n' &&
           strspn(text, "0123456789abcdef") == SERVE_SECRET_SIZE - 1;
}

/* Removes the token of a server that has ended. */
static int remove_old_token(const struct cli *cli, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    int code = CLI_CONTINUE;

    if (fd < 0 && errno == ENOENT) {
        return CLI_CONTINUE;
    }
    if (fd < 0 || !is_token(fd)) {
        code = cli_error(cli, CLI_FAILED, path,
                         "is not a token of agentwal serve; remove it, or name "
                         "another file with --token-file");
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        code = cli_error(cli, CLI_FAILED, path,
                         "is the token of another server, which runs; name "
                         "another file with --token-file");
    } else if (unlink(path) != 0 && errno != ENOENT) {
        code = cli_error(cli, CLI_FAILED, path, "cannot replace the token: %s",
                         strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

int serve_write_token(const struct cli *cli, struct serve_file *file,
                      const char *token)
{
    size_t size = strlen(token);
    int code = remove_old_token(cli, file->path);

    if (code != CLI_CONTINUE) {
        return code;
    }
    file->lock =
        open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
             S_IRUSR | S_IWUSR);
    if (file->lock < 0 || flock(file->lock, LOCK_EX | LOCK_NB) != 0 ||
        write(file->lock, token, size) != (ssize_t)size ||
        write(file->lock, "\n", 1) != 1) {
        code = cli_error(cli, CLI_FAILED, file->path,
                         "cannot write the token: %s", strerror(errno));
        if (file->lock >= 0) {
            close(file->lock);
        }
        return code;
    }
    serve_file_note(file);
    return CLI_CONTINUE;
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
