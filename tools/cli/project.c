/*
 * project.c - finding the repository of a directory, and the id that is kept
 * in it.
 *
 * Invariant: of what stands in the file only forty hexadecimal digits are
 * believed; whatever else is there is replaced.
 *
 * Threads: a tool is one thread.
 */
#include "tools/cli/project.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"

enum {
    STORED_DIGITS = 40,
    LEGACY_BYTES = 8
};

/* A path below another unless it is absolute; to be freed. */
static char *join(const char *directory, const char *path)
{
    size_t size = strlen(directory) + strlen(path) + 2;
    char *joined = cli_alloc(size);

    if (path[0] == '/') {
        memcpy(joined, path, strlen(path));
    } else {
        snprintf(joined, size, "%s/%s", directory, path);
    }
    return joined;
}

/* The text of a small regular file without the blanks at its end. False when
 * there is no such file, or it is larger. */
static bool read_text(const char *path, char *text, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat found;
    ssize_t size = -1;

    if (file < 0) {
        return false;
    }
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
        size = read(file, text, capacity);
    }
    close(file);
    if (size < 0 || (size_t)size == capacity) {
        return false;
    }
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL) {
        size--;
    }
    text[size] = '\0';
    return true;
}

static bool is_directory(const char *directory, const char *name)
{
    char *path = join(directory, name);
    struct stat found;
    bool is = stat(path, &found) == 0 && S_ISDIR(found.st_mode);

    free(path);
    return is;
}

/* What the worktrees of a repository share, given the directory of one of
 * them; null unless it is a repository's. To be freed. */
static char *common_directory(const char *git)
{
    char text[PATH_MAX];
    struct stat found;
    char *head = join(git, "HEAD");
    char *link = join(git, "commondir");
    char *common =
        read_text(link, text, sizeof(text)) ? join(git, text) : join(git, ".");

    if (lstat(head, &found) != 0 || !is_directory(common, "objects") ||
        !is_directory(common, "refs")) {
        free(common);
        common = NULL;
    }
    free(link);
    free(head);
    return common;
}

/* The common directory of the repository whose top this directory is, or null.
 * A `.git` that is a file ends the search, wherever it leads. */
static char *common_directory_at(const char *top, bool *is_end)
{
    static const char prefix[] = "gitdir: ";
    char text[PATH_MAX];
    char *git = join(top, ".git");
    char *common;

    *is_end = read_text(git, text, sizeof(text));
    if (*is_end && strncmp(text, prefix, strlen(prefix)) == 0) {
        free(git);
        git = join(top, text + strlen(prefix));
    }
    common = common_directory(git);
    free(git);
    return common != NULL || *is_end ? common : common_directory(top);
}

/* The repository around a directory: its common directory, to be freed, or
 * null. `top` becomes the place where it was found. */
static char *find_repository(char *top)
{
    bool is_end = false;
    char *common = common_directory_at(top, &is_end);

    while (common == NULL && !is_end && strcmp(top, "/") != 0) {
        char *slash = strrchr(top, '/');
        if (slash == NULL) {
            return NULL;
        }
        slash[slash == top ? 1 : 0] = '\0';
        common = common_directory_at(top, &is_end);
    }
    return common;
}

/* Writes the file whole or not at all. Where that fails it is done without. */
static void store_id(const char *path, const char *id)
{
    static const char suffix[] = ".XXXXXX";
    size_t size = strlen(path) + sizeof(suffix);
    char *temporary = cli_alloc(size);
    int file;
    bool is_whole;

    snprintf(temporary, size, "%s%s", path, suffix);
    file = mkostemp(temporary, O_CLOEXEC);
    if (file >= 0) {
        is_whole = write(file, id, strlen(id)) == (ssize_t)strlen(id) &&
                   fchmod(file, 0644) == 0;
        is_whole = close(file) == 0 && is_whole;
        if (!is_whole || rename(temporary, path) != 0) {
            unlink(temporary);
        }
    }
    free(temporary);
}

void cli_project_find(const char *directory, char id[CLI_PROJECT_SIZE])
{
    char *top = cli_copy_text(directory, strlen(directory));
    char *common = NULL;
    char *kept;
    char text[CLI_PROJECT_SIZE];

    snprintf(id, CLI_PROJECT_SIZE, "%s", CLI_PROJECT_GLOBAL);
    if (directory[0] == '/' && is_directory(directory, ".")) {
        common = find_repository(top);
    }
    if (common != NULL) {
        kept = join(common, "opencode");
        if (read_text(kept, text, sizeof(text)) &&
            cli_git_is_commit(text, STORED_DIGITS)) {
            memcpy(id, text, STORED_DIGITS + 1);
        } else if (cli_git_root_commit(top, id) &&
                   cli_git_is_commit(id, STORED_DIGITS)) {
            store_id(kept, id);
        }
        free(kept);
    }
    free(common);
    free(top);
}

void cli_project_legacy_id(struct wal_slice directory,
                           char id[CLI_PROJECT_SIZE])
{
    uint8_t digest[WAL_DIGEST_SIZE] = {0};

    if (EVP_Digest(directory.data, (size_t)directory.size, digest, NULL,
                   EVP_sha256(), NULL) != 1) {
        fputs("agentwal: SHA-256 is not available\n", stderr);
        exit(CLI_FAILED);
    }
    for (size_t i = 0; i < LEGACY_BYTES; i++) {
        snprintf(id + 2 * i, 3, "%02x", digest[i]);
    }
}
