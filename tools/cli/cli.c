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

/* An error, as text or as JSON. */
struct failure {
    const char *status; /* a name, for JSON */
    const char *what;   /* or NULL */
    const char *why;
    const char *cause; /* the system's text, or empty */
    const char *file;  /* or empty */
    uint64_t offset;
    bool has_offset;
    const char *advice; /* or NULL */
};

/* The member is left out when the text is NULL or empty. */
static void write_member(struct wal__json_out *json, const char *key,
                         const char *text)
{
    if (text != NULL && text[0] != '\0') {
        cli_json_member_text(json, key, cli_slice(text));
    }
}

static void write_failure(const struct failure *failure, int code)
{
    struct wal__json_out json;

    cli_json_init(&json, stderr);
    wal__json_out_open(&json, '{');
    wal__json_out_member_open(&json, "error", '{');
    write_member(&json, "status", failure->status);
    cli_json_member_text_or_null(&json, "what", cli_slice(failure->what));
    write_member(&json, "why", failure->why);
    write_member(&json, "cause", failure->cause);
    write_member(&json, "file", failure->file);
    if (failure->has_offset) {
        wal__json_out_member_count(&json, "offset", failure->offset);
    }
    write_member(&json, "advice", failure->advice);
    wal__json_out_member_count(&json, "exitCode", (uint64_t)code);
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_failure(const struct cli *cli, const struct failure *failure)
{
    const char *before = " (";

    fprintf(stderr, "%s: ", cli->tool);
    if (failure->what != NULL) {
        cli_print_name(stderr, cli_slice(failure->what));
        fputs(": ", stderr);
    }
    cli_print_name(stderr, cli_slice(failure->why));
    if (failure->cause[0] != '\0') {
        fprintf(stderr, ": %s", failure->cause);
    }
    if (failure->file[0] != '\0') {
        fputs(before, stderr);
        before = "; ";
        cli_print_name(stderr, cli_slice(failure->file));
        if (failure->has_offset) {
            fprintf(stderr, ", byte %llu", (unsigned long long)failure->offset);
        }
    }
    if (failure->advice != NULL) {
        fprintf(stderr, "%s%s", before, failure->advice);
        before = "; ";
    }
    fputs(before[0] == ';' ? ")\n" : "\n", stderr);
}

static int fail(const struct cli *cli, int code, const struct failure *failure)
{
    fflush(stdout);
    if (cli->json || cli->json_errors) {
        write_failure(failure, code);
    } else {
        print_failure(cli, failure);
    }
    return code;
}

static const char *code_name(int code)
{
    switch (code) {
    case CLI_USAGE:
        return "usage";
    case CLI_NEGATIVE:
        return "negative";
    default:
        return code == CLI_OK ? "note" : "failed";
    }
}

static int fail_text(const struct cli *cli, int code, const char *status,
                     const char *what, const char *why, va_list arguments)
{
    struct failure failure = {
        .status = status,
        .what = what,
        .cause = "",
        .file = "",
    };
    char *text = NULL;

    if (vasprintf(&text, why, arguments) < 0) {
        text = NULL;
    }
    failure.why = text != NULL ? text : why;
    fail(cli, code, &failure);
    free(text);
    return code;
}

int cli_error(const struct cli *cli, int code, const char *what,
              const char *why, ...)
{
    va_list arguments;

    va_start(arguments, why);
    fail_text(cli, code, code_name(code), what, why, arguments);
    va_end(arguments);
    return code;
}

/* The name of a status in agentwal.h. */
static const char *status_name(enum wal_status status)
{
#define STATUS_NAME(name) [-(name)] = #name
    static const char *const names[] = {
        STATUS_NAME(WAL_OK),          STATUS_NAME(WAL_EINVAL),
        STATUS_NAME(WAL_ENOTFOUND),   STATUS_NAME(WAL_EEXISTS),
        STATUS_NAME(WAL_ECONFLICT),   STATUS_NAME(WAL_ETOOBIG),
        STATUS_NAME(WAL_ENOSPACE),    STATUS_NAME(WAL_EIO),
        STATUS_NAME(WAL_ETORN),       STATUS_NAME(WAL_ECORRUPT),
        STATUS_NAME(WAL_EVERSION),    STATUS_NAME(WAL_ELOCKED),
        STATUS_NAME(WAL_EPOISONED),   STATUS_NAME(WAL_ENOMEM),
        STATUS_NAME(WAL_EBUSY),       STATUS_NAME(WAL_EREADONLY),
        STATUS_NAME(WAL_ENOTSTORE),   STATUS_NAME(WAL_EFORKED),
        STATUS_NAME(WAL_ENOPARENT),   STATUS_NAME(WAL_EBADJSON),
        STATUS_NAME(WAL_EDAMAGED),    STATUS_NAME(WAL_ENETWORK),
        STATUS_NAME(WAL_EDEPENDENCY), STATUS_NAME(WAL_ECALLBACK),
        STATUS_NAME(WAL_ESCHEMA),     STATUS_NAME(WAL_ECLAIMED),
        STATUS_NAME(WAL_ELIMIT),      STATUS_NAME(WAL_ELOCKFILE),
        STATUS_NAME(WAL_EREDACTED),   STATUS_NAME(WAL_EOUTSIDE),
        STATUS_NAME(WAL_ECHANGED),    STATUS_NAME(WAL_EACCESS),
        STATUS_NAME(WAL_ENOTFILE),    STATUS_NAME(WAL_ECLOSED),
        STATUS_NAME(WAL_ETRASHED),    STATUS_NAME(WAL_EREMOTE),
        STATUS_NAME(WAL_EFENCED),
    };
#undef STATUS_NAME
    size_t at = status <= 0 ? (size_t) - (int)status : SIZE_MAX;

    return at < sizeof(names) / sizeof(names[0]) && names[at] != NULL
               ? names[at]
               : "failed";
}

int cli_error_status(const struct cli *cli, enum wal_status status,
                     const char *what, const char *why, ...)
{
    int code = cli_exit_code(status);
    va_list arguments;

    va_start(arguments, why);
    fail_text(cli, code, status_name(status), what, why, arguments);
    va_end(arguments);
    return code;
}

/* The advice for a status, or NULL. */
static const char *hint(const struct cli *cli, enum wal_status status)
{
    if (status == WAL_ENOTSTORE && !cli->makes_store) {
        return "create one with: agentwal init";
    }
    if (status == WAL_EVERSION) {
        return "to write to an older store, run: agentwal migrate";
    }
    if (status == WAL_ENETWORK) {
        return "use --force-network-fs to accept it";
    }
    if (status == WAL_EDAMAGED) {
        return "run agentwal check, then: agentwal accept-damage [SESSION]";
    }
    if (status == WAL_ECORRUPT) {
        return "to see what is damaged, run: agentwal check";
    }
    if (status == WAL_ETORN) {
        return "run agentwal check, or omit --strict";
    }
    if (status == WAL_ELOCKED) {
        return "wait for the process that holds the lock, or end it";
    }
    if (status == WAL_ENOSPACE) {
        return "check free space, quotas and the file size limit";
    }
    return NULL;
}

bool cli_is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_EIO;
}

/* Sets the file of an error unless the texts have it, and, for damage and I/O
 * errors, the offset in it. */
static void set_location(struct failure *failure, enum wal_status status,
                         const struct wal_error *error)
{
    bool is_content = cli_is_damage(status);

    if (error->file[0] == '\0' || strstr(failure->why, error->file) != NULL ||
        (failure->what != NULL && strcmp(failure->what, error->file) == 0) ||
        (!is_content && error->sys_errno == 0)) {
        return;
    }
    failure->file = error->file;
    failure->offset = error->offset;
    failure->has_offset = is_content;
}

int cli_report(const struct cli *cli, const char *what, enum wal_status status,
               const struct wal_error *error)
{
    struct failure failure = {
        .status = status_name(status),
        .what = what,
        .why = wal_status_text(status),
        .cause = "",
        .file = "",
        .advice = hint(cli, status),
    };

    if (error != NULL && error->text[0] != '\0') {
        failure.why = error->text;
    }
    if (error != NULL) {
        const char *cause = strerror(error->sys_errno);
        if (error->sys_errno != 0 && status != WAL_ECALLBACK &&
            strstr(failure.why, cause) == NULL) {
            failure.cause = cause;
        }
        set_location(&failure, status, error);
    }
    return fail(cli, cli_exit_code(status), &failure);
}

int cli_exit_code(enum wal_status status)
{
    static const enum wal_status negative_statuses[] = {
        WAL_ENOTFOUND, WAL_EEXISTS,     WAL_ECONFLICT, WAL_ETOOBIG,
        WAL_ETORN,     WAL_ECORRUPT,    WAL_ENOPARENT, WAL_EBADJSON,
        WAL_EDAMAGED,  WAL_EDEPENDENCY, WAL_ECALLBACK, WAL_ESCHEMA,
        WAL_EREDACTED, WAL_EOUTSIDE,    WAL_ECHANGED,  WAL_ENOTFILE,
        WAL_ETRASHED,  WAL_EFENCED,
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

void cli_start_pager(const struct cli *cli)
{
    if (!cli->no_pager) {
        terminal_start_pager(cli->terminal);
    }
}

void cli_note(const struct cli *cli, const char *what, const char *note)
{
    if (!cli->json) {
        cli_error(cli, CLI_OK, what, "%s", note);
    }
}

static int flush_output(const struct cli *cli, int code)
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

int cli_finish(const struct cli *cli, int code)
{
    code = flush_output(cli, code);
    if (cli->terminal != NULL) {
        terminal_wait_pager(cli->terminal);
    }
    return code;
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

FILE *cli_open_memory(char **text, size_t *size)
{
    return check_alloc(open_memstream(text, size));
}

const char *cli_keep_text(const char *text)
{
    static char **texts; /* reachable until the process ends */
    static size_t count;
    static size_t capacity;

    texts = cli_reserve(texts, count, &capacity, sizeof(texts[0]));
    texts[count] = cli_copy_text(text, strlen(text));
    return texts[count++];
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
