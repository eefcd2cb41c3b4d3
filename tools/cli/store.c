/*
 * store.c - the store of a command: where it is, creating, opening and closing
 * it.
 *
 * Invariant: a store and its missing parents are created with mode 0700, and
 * standard error names the store that was created.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"

/* Returns the path of the store that no option and no AGENTWAL_STORE names; the
 * process owns it. NULL when there is no home directory. */
static char *default_store(void)
{
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;

    /* The XDG specification ignores relative paths. */
    if (data != NULL && data[0] == '/') {
        home = data;
        data = "agentwal";
    } else if (home != NULL && home[0] == '/') {
        data = ".local/share/agentwal";
    } else {
        return NULL;
    }
    if (asprintf(&path, "%s/%s", home, data) < 0) {
        path = NULL;
    }
    return path;
}

static int check_store(const struct cli *cli, const char *what,
                       const char *store)
{
    if (store[0] == '\0') {
        return cli_error(cli, CLI_USAGE, what,
                         "is empty; it must name the "
                         "directory of a store");
    }
    if (store[0] == '~') {
        return cli_error(cli, CLI_USAGE, what,
                         "'%s' begins with '~', which the shell did not "
                         "expand; write the path of the home directory, or "
                         "./%s",
                         store, store);
    }
    return CLI_CONTINUE;
}

/* Sets cli->store. */
static int find_store(struct cli *cli)
{
    const char *variable = getenv("AGENTWAL_STORE");

    if (cli->store != NULL) {
        return check_store(cli, "--store", cli->store);
    }
    if (variable != NULL) {
        cli->store = variable;
        return check_store(cli, "AGENTWAL_STORE", variable);
    }
    cli->store = default_store();
    if (cli->store == NULL) {
        return cli_error(cli, CLI_USAGE, "--store",
                         "is required: neither AGENTWAL_STORE nor HOME names a "
                         "directory");
    }
    return CLI_CONTINUE;
}

int cli_insert_store(struct cli *cli)
{
    size_t at = (size_t)cli->store_at;
    size_t count = (size_t)cli->count;
    char **items;
    int code;

    if (cli->store_at == CLI_NO_STORE || count < at) {
        return CLI_CONTINUE;
    }
    code = find_store(cli);
    if (code != CLI_CONTINUE) {
        return code;
    }
    items = cli_alloc((count + 2) * sizeof(items[0]));
    memcpy(items, cli->items, at * sizeof(items[0]));
    /* cli_keep_text owns it; no command writes to its operands. */
    items[at] = (char *)(uintptr_t)cli_keep_text(cli->store);
    memcpy(items + at + 1, cli->items + at, (count - at) * sizeof(items[0]));
    cli->items = items;
    cli->count++;
    return CLI_CONTINUE;
}

struct wal_open_options cli_open_options(const struct cli *cli, uint32_t flags)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);

    options.flags = flags;
    if (cli->strict) {
        options.flags |= WAL_OPEN_STRICT;
    }
    if (cli->force_network_fs) {
        options.flags |= WAL_OPEN_NETWORK_FS;
    }
    return options;
}

/* Creates the parents of a directory that are missing. The store itself is made
 * by wal_open. Returns CLI_CONTINUE, or prints the error and returns the exit
 * code. */
static int make_parents(const struct cli *cli, const char *path)
{
    char *copy = cli_copy_text(path, strlen(path));
    int code = CLI_CONTINUE;

    for (char *slash = strchr(copy + 1, '/');
         slash != NULL && code == CLI_CONTINUE;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
            code = cli_error(cli, CLI_FAILED, path,
                             "creating the directory %s failed: %s", copy,
                             strerror(errno));
        }
        *slash = '/';
    }
    free(copy);
    return code;
}

/* Prints why there is no store at the path of a verb. */
static int report_missing(const struct cli *cli, const char *path)
{
    return cli_error_status(
        cli, WAL_ENOTSTORE, path,
        "there is no store yet; create one with: agentwal init, "
        "or import sessions with: agentwal import PATH");
}

static bool has_file(const char *path, const char *name)
{
    struct stat stat;
    char *file = cli_alloc(strlen(path) + strlen(name) + 2);
    bool exists;

    strcat(strcat(strcpy(file, path), "/"), name);
    exists = lstat(file, &stat) == 0;
    free(file);
    return exists;
}

/* Whether there is nothing, or what a creation left that was cut short: it is
 * repeated (SPEC 3.7). */
static bool is_missing(const char *path)
{
    struct stat stat;

    return (lstat(path, &stat) != 0 && (errno == ENOENT || errno == ENOTDIR)) ||
           (has_file(path, "LOCK") && has_file(path, "log") &&
            !has_file(path, "MANIFEST"));
}

int cli_require_store(const struct cli *cli, const char *path)
{
    return is_missing(path) ? report_missing(cli, path) : CLI_CONTINUE;
}

/*
 * Warns where others may write the directory of a new store: they could put
 * files in place of its files. Also with the sticky bit, with which they can
 * still add names. A group that is the user's own is taken as private.
 */
static void warn_if_shared(const struct cli *cli, const char *path)
{
    struct stat stat_of;

    if (stat(path, &stat_of) == 0 &&
        ((stat_of.st_mode & S_IWOTH) != 0 ||
         ((stat_of.st_mode & S_IWGRP) != 0 && stat_of.st_gid != getegid()))) {
        cli_note(cli, path,
                 "warning: other users may write to this directory, and put "
                 "files in place of those of the store; chmod go-w prevents "
                 "that");
    }
}

int cli_open_store(const struct cli *cli, const char *path, uint32_t flags,
                   struct wal_store **store)
{
    bool missing = is_missing(path);
    struct wal_open_options options;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code;

    if (missing && cli->adds_to_store) {
        flags |= WAL_OPEN_CREATE;
    }
    if (missing && (flags & WAL_OPEN_CREATE) == 0) {
        return report_missing(cli, path);
    }
    code = missing ? make_parents(cli, path) : CLI_CONTINUE;
    if (code != CLI_CONTINUE) {
        return code;
    }
    options = cli_open_options(cli, flags);
    status = wal_open(path, &options, store, &error);
    if (status != WAL_OK) {
        return cli_report(cli, path, status, &error);
    }
    if (missing) {
        cli_note(cli, path, "created this store");
    }
    if ((flags & WAL_OPEN_CREATE) != 0) {
        warn_if_shared(cli, path);
    }
    return CLI_CONTINUE;
}

int cli_close_store(const struct cli *cli, const char *path,
                    struct wal_store *store, int code)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_close(store, &error);

    if (status == WAL_EPOISONED && code != CLI_OK && code != CLI_CONTINUE) {
        return code; /* the same failure, which was reported */
    }
    if (status != WAL_OK) {
        return cli_worse_code(code, cli_report(cli, path, status, &error));
    }
    return code;
}
