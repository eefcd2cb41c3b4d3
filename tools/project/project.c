/*
 * project.c - find the git repository of a directory, and the project id stored
 * in it.
 *
 * Invariant: a stored id is used only if it is exactly forty hexadecimal
 * digits; any other content is replaced.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/project/project.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/bytes/fmt.h"
#include "tools/cli/cli.h"

enum {
    STORED_DIGITS = 40,
    LEGACY_BYTES = 8
};

/* Joins the paths; an absolute `path` is returned unchanged. The caller frees
 * the result. */
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

/* Reads a small regular file without trailing white space. Returns false when
 * it is missing or does not fit. */
static bool read_text(const char *path, char *text, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat file_stat;
    ssize_t size = -1;

    if (file < 0) {
        return false;
    }
    if (fstat(file, &file_stat) == 0 && S_ISREG(file_stat.st_mode)) {
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
    struct stat file_stat;
    bool is_found = stat(path, &file_stat) == 0 && S_ISDIR(file_stat.st_mode);

    free(path);
    return is_found;
}

/* Returns the common directory of the worktree whose git directory is `git`, or
 * NULL when that is not a repository. The caller frees it. */
static char *common_directory(const char *git)
{
    char text[PATH_MAX];
    struct stat file_stat;
    char *head = join(git, "HEAD");
    char *link = join(git, "commondir");
    char *common =
        read_text(link, text, sizeof(text)) ? join(git, text) : join(git, ".");

    if (lstat(head, &file_stat) != 0 || !is_directory(common, "objects") ||
        !is_directory(common, "refs")) {
        free(common);
        common = NULL;
    }
    free(link);
    free(head);
    return common;
}

/* Returns the common directory of the repository whose top is `top`, or NULL. A
 * `.git` file ends the search even if it is not valid. */
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

/* Searches upwards from `top` and sets it to the directory of the repository.
 * Returns the common directory, which the caller frees, or NULL. */
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

/* Stores the id atomically. Failures are ignored: the id can be computed
 * again. */
static void store_id(const char *path, const char *id)
{
    static const char suffix[] = ".XXXXXX";
    size_t size = strlen(path) + sizeof(suffix);
    char *temporary = cli_alloc(size);
    int file;
    bool is_complete;

    snprintf(temporary, size, "%s%s", path, suffix);
    file = mkostemp(temporary, O_CLOEXEC);
    if (file >= 0) {
        is_complete = write(file, id, strlen(id)) == (ssize_t)strlen(id) &&
                      fchmod(file, 0644) == 0;
        is_complete = close(file) == 0 && is_complete;
        if (!is_complete || rename(temporary, path) != 0) {
            unlink(temporary);
        }
    }
    free(temporary);
}

/* The repository of a directory, and the id that it stores. */
struct repository {
    char *top;
    char *id_path; /* NULL: there is no repository */
    bool is_stored;
};

/* Finds the repository, and sets `id` to the stored one or to "global". */
static void find_stored_id(struct repository *repository, const char *directory,
                           char id[CLI_PROJECT_SIZE])
{
    char text[CLI_PROJECT_SIZE];
    char *common = NULL;

    *repository =
        (struct repository){.top = cli_copy_text(directory, strlen(directory))};
    snprintf(id, CLI_PROJECT_SIZE, "%s", CLI_PROJECT_GLOBAL);
    if (directory[0] == '/' && is_directory(directory, ".")) {
        common = find_repository(repository->top);
    }
    if (common != NULL) {
        repository->id_path = join(common, "opencode");
        repository->is_stored =
            read_text(repository->id_path, text, sizeof(text)) &&
            cli_git_is_commit(text, STORED_DIGITS);
    }
    if (repository->is_stored) {
        memcpy(id, text, STORED_DIGITS + 1);
    }
    free(common);
}

static void repository_deinit(struct repository *repository)
{
    free(repository->top);
    free(repository->id_path);
}

void cli_project_find(const char *directory, bool stores,
                      char id[CLI_PROJECT_SIZE])
{
    struct repository repository;

    find_stored_id(&repository, directory, id);
    if (repository.id_path != NULL && !repository.is_stored &&
        cli_git_root_commit(repository.top, id) &&
        cli_git_is_commit(id, STORED_DIGITS) && stores) {
        store_id(repository.id_path, id);
    }
    repository_deinit(&repository);
}

bool cli_project_read(const char *directory, char id[CLI_PROJECT_SIZE])
{
    struct repository repository;
    bool is_known;

    find_stored_id(&repository, directory, id);
    is_known = repository.id_path == NULL || repository.is_stored;
    repository_deinit(&repository);
    return is_known;
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
    wal__hex_write(digest, LEGACY_BYTES, id);
}
