/*
 * cli.c - errors, exit codes and memory of the command line tools.
 *
 * Invariant: a tool that rejects its command line prints one line with the
 * argument and the reason, and changes nothing.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"

void cli_ensure_std_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int flags = fd == STDIN_FILENO ? O_RDONLY : O_WRONLY;

        /* Lower descriptors are open, so open() returns this one. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd) {
            _exit(CLI_FAILED);
        }
    }
}

int cli_error(const struct cli *cli, int code, const char *what,
              const char *why, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, why);
    if (vasprintf(&text, why, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "%s: ", cli->tool);
    if (what != NULL) {
        cli_print_name(stderr, cli_slice(what));
        fputs(": ", stderr);
    }
    cli_print_name(stderr, cli_slice(text != NULL ? text : why));
    fputc('\n', stderr);
    free(text);
    return code;
}

const char *cli_advice(const struct cli *cli, const char *for_tool,
                       const char *for_verb)
{
    return cli->verb == NULL ? for_tool : for_verb;
}

/* The advice for a status, or NULL. */
static const char *hint(const struct cli *cli, enum wal_status status)
{
    if (status == WAL_ENOTSTORE && !cli->makes_store) {
        return cli_advice(cli, "create one with: walctl init STORE",
                          "create one with: agentwal init");
    }
    if (status == WAL_EVERSION) {
        return cli_advice(
            cli, "to write to an older store, run: walctl migrate STORE",
            "to write to an older store, run: agentwal migrate");
    }
    if (status == WAL_ENETWORK) {
        return "use --force-network-fs to accept it";
    }
    if (status == WAL_EDAMAGED) {
        return cli_advice(
            cli, "run walcheck, then: walctl accept-damage STORE [SESSION]",
            "run agentwal check, then: agentwal accept-damage [SESSION]");
    }
    if (status == WAL_ECORRUPT) {
        return cli_advice(cli, "to see what is damaged, run: walcheck STORE",
                          "to see what is damaged, run: agentwal check");
    }
    if (status == WAL_ETORN) {
        return cli_advice(cli, "run walcheck, or omit --strict",
                          "run agentwal check, or omit --strict");
    }
    if (status == WAL_ELOCKED) {
        return "wait for the process that holds the lock, or end it";
    }
    if (status == WAL_EPOISONED) {
        return "close and open the store again";
    }
    if (status == WAL_ENOSPACE) {
        return "check free space, quotas and the file size limit";
    }
    return NULL;
}

/* Formats the system's error text unless `why` contains it. */
static void print_cause(enum wal_status status, const struct wal_error *error,
                        const char *why, char *cause, size_t size)
{
    const char *text = strerror(error->sys_errno);

    if (error->sys_errno != 0 && status != WAL_ECALLBACK &&
        strstr(why, text) == NULL) {
        snprintf(cause, size, ": %s", text);
    }
}

/* Formats the file and, for damage and I/O errors, the offset in it. */
static void print_location(const char *what, enum wal_status status,
                           const struct wal_error *error, const char *why,
                           char *location, size_t size)
{
    bool is_content = status == WAL_ECORRUPT || status == WAL_EIO;
    unsigned long long offset = error->offset;

    if (error->file[0] == '\0' || strstr(why, error->file) != NULL ||
        (what != NULL && strcmp(what, error->file) == 0)) {
        return;
    }
    if (is_content) {
        snprintf(location, size, "%s, byte %llu", error->file, offset);
    } else if (error->sys_errno != 0) {
        snprintf(location, size, "%s", error->file);
    }
}

int cli_report(const struct cli *cli, const char *what, enum wal_status status,
               const struct wal_error *error)
{
    const char *why = wal_status_text(status);
    const char *advice = hint(cli, status);
    char cause[160] = "";
    char location[640] = "";

    if (error != NULL && error->text[0] != '\0') {
        why = error->text;
    }
    if (error != NULL) {
        print_cause(status, error, why, cause, sizeof(cause));
        print_location(what, status, error, why, location, sizeof(location));
    }
    if (location[0] != '\0' && advice != NULL) {
        return cli_error(cli, cli_exit_code(status), what, "%s%s (%s; %s)", why,
                         cause, location, advice);
    }
    if (location[0] != '\0' || advice != NULL) {
        return cli_error(cli, cli_exit_code(status), what, "%s%s (%s)", why,
                         cause, advice != NULL ? advice : location);
    }
    return cli_error(cli, cli_exit_code(status), what, "%s%s", why, cause);
}

int cli_exit_code(enum wal_status status)
{
    static const enum wal_status negative_statuses[] = {
        WAL_ENOTFOUND, WAL_EEXISTS,     WAL_ECONFLICT, WAL_ETOOBIG,
        WAL_ETORN,     WAL_ECORRUPT,    WAL_ENOPARENT, WAL_EBADJSON,
        WAL_EDAMAGED,  WAL_EDEPENDENCY, WAL_ECALLBACK, WAL_ESCHEMA,
        WAL_EREDACTED, WAL_EOUTSIDE,    WAL_ECHANGED,  WAL_ENOTFILE,
    };

    if (status == WAL_OK || status == WAL_END) {
        return CLI_OK;
    }
    if (status == WAL_EINVAL) {
        return CLI_USAGE;
    }
    for (size_t i = 0;
         i < sizeof(negative_statuses) / sizeof(*negative_statuses); i++) {
        if (status == negative_statuses[i]) {
            return CLI_NEGATIVE;
        }
    }
    return CLI_FAILED;
}

int cli_worse_code(int code, int other)
{
    return code > other ? code : other;
}

const char *cli_plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

bool cli_output_failed(void)
{
    return ferror(stdout) != 0;
}

int cli_finish(const struct cli *cli, int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    /* The errno of an earlier failed write is lost: a further write fails
     * again, without output, and sets it. */
    if (errno == 0 && fputc('\n', stdout) == '\n') {
        fflush(stdout);
    }
    if (errno == EPIPE) {
        return code;
    }
    return cli_error(cli, CLI_FAILED, "standard output", "%s", strerror(errno));
}

static void *check_alloc(void *data)
{
    if (data == NULL) {
        fputs("agentwal: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    return data;
}

void *cli_alloc(size_t size)
{
    return check_alloc(calloc(1, size > 0 ? size : 1));
}

void *cli_realloc(void *data, size_t size)
{
    return check_alloc(realloc(data, size > 0 ? size : 1));
}

char *cli_copy_text(const void *data, size_t size)
{
    char *copy = cli_alloc(size + 1);

    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

void *cli_reserve(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity > 0 ? *capacity * 2 : 16;
    return check_alloc(reallocarray(items, *capacity, item_size));
}

struct wal_slice cli_slice(const char *text)
{
    struct wal_slice slice = {text, text != NULL ? strlen(text) : 0};

    return slice;
}

bool cli_slice_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

char *cli_absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    char here[PATH_MAX];
    char *joined;

    if (resolved != NULL) {
        return resolved;
    }
    if (path[0] == '/' || getcwd(here, sizeof(here)) == NULL) {
        return cli_copy_text(path, strlen(path));
    }
    joined = cli_alloc(strlen(here) + strlen(path) + 2);
    sprintf(joined, "%s/%s", here, path);
    return joined;
}
