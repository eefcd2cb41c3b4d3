/*
 * cli.c - errors, exit codes, memory and files of the command line tools, and the store of a
 * command: where it is, creating, opening and closing it.
 *
 * Invariant: a store and its missing parents are created with mode 0700, and standard error names
 * the store that was created.
 */
#include "tools/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/system.h"
#include "format/bytes/crc32.h"
#include "tools/cli/json.h"
#include "tools/cli/key.h"

enum {
    WRITE_SIZE = 256 << 10 /* bytes of a file that are written at a time */
};

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
static void write_member(struct wal__json_out *json, const char *key, const char *text)
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

static int fail_text(const struct cli *cli, int code, const char *status, const char *what,
                     const char *why, va_list arguments)
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

int cli_error(const struct cli *cli, int code, const char *what, const char *why, ...)
{
    va_list arguments;

    va_start(arguments, why);
    fail_text(cli, code, code_name(code), what, why, arguments);
    va_end(arguments);
    return code;
}

const char *cli_status_name(enum wal_status status)
{
#define STATUS_NAME(name) [-(name)] = #name
    static const char *const names[] = {
        STATUS_NAME(WAL_OK),        STATUS_NAME(WAL_EINVAL),      STATUS_NAME(WAL_ENOTFOUND),
        STATUS_NAME(WAL_EEXISTS),   STATUS_NAME(WAL_ECONFLICT),   STATUS_NAME(WAL_ETOOBIG),
        STATUS_NAME(WAL_ENOSPACE),  STATUS_NAME(WAL_EIO),         STATUS_NAME(WAL_ETORN),
        STATUS_NAME(WAL_ECORRUPT),  STATUS_NAME(WAL_EVERSION),    STATUS_NAME(WAL_ELOCKED),
        STATUS_NAME(WAL_EPOISONED), STATUS_NAME(WAL_ENOMEM),      STATUS_NAME(WAL_EBUSY),
        STATUS_NAME(WAL_EREADONLY), STATUS_NAME(WAL_ENOTSTORE),   STATUS_NAME(WAL_EFORKED),
        STATUS_NAME(WAL_ENOPARENT), STATUS_NAME(WAL_EBADJSON),    STATUS_NAME(WAL_EDAMAGED),
        STATUS_NAME(WAL_ENETWORK),  STATUS_NAME(WAL_EDEPENDENCY), STATUS_NAME(WAL_ECALLBACK),
        STATUS_NAME(WAL_ESCHEMA),   STATUS_NAME(WAL_ECLAIMED),    STATUS_NAME(WAL_ELIMIT),
        STATUS_NAME(WAL_ELOCKFILE), STATUS_NAME(WAL_EREDACTED),   STATUS_NAME(WAL_EOUTSIDE),
        STATUS_NAME(WAL_ECHANGED),  STATUS_NAME(WAL_EACCESS),     STATUS_NAME(WAL_ENOTFILE),
        STATUS_NAME(WAL_ECLOSED),   STATUS_NAME(WAL_ETRASHED),    STATUS_NAME(WAL_EREMOTE),
        STATUS_NAME(WAL_EFENCED),   STATUS_NAME(WAL_EKEY),
    };
#undef STATUS_NAME
    size_t at = status <= 0 ? (size_t) - (int)status : SIZE_MAX;

    return at < sizeof(names) / sizeof(names[0]) && names[at] != NULL ? names[at] : "failed";
}

int cli_error_status(const struct cli *cli, enum wal_status status, const char *what,
                     const char *why, ...)
{
    int code = cli_exit_code(status);
    va_list arguments;

    va_start(arguments, why);
    fail_text(cli, code, cli_status_name(status), what, why, arguments);
    va_end(arguments);
    return code;
}

/* The advice for a status, or NULL; `why` may have it. */
static const char *hint(const struct cli *cli, enum wal_status status, const char *why)
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
    if (status == WAL_EKEY && strstr(why, "a key opens it") != NULL) {
        return "name it: --key-file, --key-command, --key-keyring, --passphrase-fd or "
               "--recovery-code";
    }
    if (status == WAL_ELOCKED) {
        return "wait for the process that holds the lock, or end it";
    }
    if (status == WAL_ENOSPACE && strstr(why, "free disk space") == NULL) {
        return "check free space, quotas and the file size limit";
    }
    return NULL;
}

bool cli_is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_EIO;
}

/* Sets the file of an error unless the texts have it, and, for damage and I/O errors, the offset in
 * it. */
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

int cli_report_error(const struct cli *cli, const char *what, enum wal_status status,
                     const struct wal_error *error)
{
    struct failure failure = {
        .status = cli_status_name(status),
        .what = what,
        .why = wal_status_text(status),
        .cause = "",
        .file = "",
    };

    if (status == WAL_OK) {
        return CLI_OK;
    }
    if (error != NULL && error->text[0] != '\0') {
        failure.why = error->text;
    }
    failure.advice = hint(cli, status, failure.why);
    if (error != NULL) {
        const char *cause = strerror(error->sys_errno);
        if (error->sys_errno != 0 && status != WAL_ECALLBACK &&
            (status != WAL_ENOSPACE || failure.advice != NULL) &&
            strstr(failure.why, cause) == NULL) {
            failure.cause = cause;
        }
        set_location(&failure, status, error);
    }
    return fail(cli, cli_exit_code(status), &failure);
}

void cli_end(const struct cli *cli, int code)
{
    exit(cli_finish(cli, cli_close(cli, code)));
}

void cli_need(const struct cli *cli, int code)
{
    if (code != CLI_OK) {
        cli_end(cli, code);
    }
}

void cli_fail(const struct cli *cli, int code, const char *what, const char *why, ...)
{
    va_list arguments;

    va_start(arguments, why);
    fail_text(cli, code, code_name(code), what, why, arguments);
    va_end(arguments);
    cli_end(cli, code);
}

int cli_report(const struct cli *cli, const char *what, enum wal_status status)
{
    return cli_report_error(cli, what, status, cli->error);
}

void cli_check(const struct cli *cli, const char *what, enum wal_status status)
{
    cli_need(cli, cli_report(cli, what, status));
}

int cli_exit_code(enum wal_status status)
{
    static const enum wal_status negative_statuses[] = {
        WAL_ENOTFOUND, WAL_EEXISTS,   WAL_ECONFLICT, WAL_ETOOBIG,  WAL_ETORN,
        WAL_ECORRUPT,  WAL_ENOPARENT, WAL_EBADJSON,  WAL_EDAMAGED, WAL_EDEPENDENCY,
        WAL_ECALLBACK, WAL_ESCHEMA,   WAL_EREDACTED, WAL_EOUTSIDE, WAL_ECHANGED,
        WAL_ENOTFILE,  WAL_ETRASHED,  WAL_EFENCED,   WAL_EKEY,
    };

    if (status == WAL_OK || status == WAL_END) {
        return CLI_OK;
    }
    if (status == WAL_EINVAL) {
        return CLI_USAGE;
    }
    for (size_t i = 0; i < sizeof(negative_statuses) / sizeof(*negative_statuses); i++) {
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

const char *cli_counted(uint64_t count, const char *one, const char *many)
{
    static char texts[8][64];
    static size_t next;
    char *text = texts[next++ % 8];

    snprintf(text, sizeof(texts[0]), "%" PRIu64 " %s", count, cli_plural(count, one, many));
    return text;
}

bool cli_output_failed(void)
{
    return ferror(stdout) != 0;
}

bool cli_output_is_read(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return !cli_output_failed() &&
           (poll(&output, 1, 0) <= 0 || (output.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0);
}

/* Says that the work can be repeated, and ends as without a handler. */
static void note_signal(int number)
{
    static const char text[] = "agentwal: interrupted: run it again to go on\n";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void cli_note_interrupts(void)
{
    const struct sigaction action = {.sa_handler = note_signal};
    struct sigaction old;

    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
        (void)sigaction(SIGINT, &action, NULL);
    }
}

static void exit_on_signal(int number)
{
    (void)number;
    _exit(CLI_OK);
}

void cli_permit_end(bool is_permitted)
{
    const struct sigaction action = {.sa_handler = exit_on_signal};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)sigprocmask(is_permitted ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
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
    /* The errno of an earlier failed write is lost: a further write fails again, without output,
     * and sets it. */
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

static void *resize(void *ctx, void *block, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(block);
        return NULL;
    }
    return check_alloc(realloc(block, size));
}

const struct wal__heap cli_heap = {.resize = resize};

void cli_append(struct wal__buf *buf, const void *data, size_t size)
{
    buf->heap = &cli_heap;
    (void)!wal__buf_append(buf, data, size);
}

FILE *cli_open_memory(char **text, size_t *size)
{
    return check_alloc(open_memstream(text, size));
}

char *cli_copy_slice(struct wal_slice text)
{
    return cli_copy_text(text.data, (size_t)text.size);
}

char *cli_format(const char *form, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, form);
    if (vasprintf(&text, form, arguments) < 0) {
        text = check_alloc(NULL);
    }
    va_end(arguments);
    return text;
}

void *cli_keep(void *memory)
{
    static struct cli_texts kept; /* reachable until the process ends */

    if (memory != NULL) {
        *CLI_ADD(&kept) = memory;
    }
    return memory;
}

const char *cli_keep_slice(struct wal_slice text)
{
    return cli_keep(cli_copy_slice(text));
}

const char *cli_keep_text(const char *text)
{
    return cli_keep_slice(cli_slice(text));
}

void *cli_reserve(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity > 0 ? *capacity * 2 : 16;
    return check_alloc(*capacity > SIZE_MAX / item_size ? NULL
                                                        : realloc(items, *capacity * item_size));
}

struct wal_slice cli_slice(const char *text)
{
    struct wal_slice slice = {text, text != NULL ? strlen(text) : 0};

    return slice;
}

bool cli_slice_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A path of Windows, which sessions that come from there have. */
static bool has_drive(const char *path)
{
    return path[0] != '\0' && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
}

char *cli_absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    char here[PATH_MAX];

    if (resolved != NULL) {
        return resolved;
    }
    if (path[0] == '/' || has_drive(path) || getcwd(here, sizeof(here)) == NULL) {
        return cli_copy_text(path, strlen(path));
    }
    return cli_format("%s/%s", here, path);
}

const char *cli_keep_absolute(const char *path)
{
    return cli_keep(cli_absolute_path(path));
}

void cli_texts_add(struct cli_texts *texts, struct wal_slice text)
{
    *CLI_ADD(texts) = cli_copy_slice(text);
}

void cli_texts_deinit(struct cli_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
    *texts = (struct cli_texts){.items = NULL};
}

/* --- a map from ids to numbers ------------------------------------------ */

static struct cli_id *find_id(const struct cli_ids *ids, struct wal_slice id)
{
    uint64_t hash = wal__id_hash(id.data, (size_t)id.size);
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&ids->ranks, hash, &cursor, &rank)) {
        struct cli_id *item = &ids->items[rank];

        if (cli_slice_equal((struct wal_slice){item->text, item->size}, id)) {
            return item;
        }
    }
    return NULL;
}

uint32_t *cli_ids_find(const struct cli_ids *ids, struct wal_slice id)
{
    struct cli_id *item = id.size > 0 ? find_id(ids, id) : NULL;

    return item != NULL ? &item->value : NULL;
}

uint32_t *cli_ids_get_or_add(struct cli_ids *ids, struct wal_slice id)
{
    struct cli_id *item = find_id(ids, id);

    if (item == NULL) {
        ids->ranks.heap = &cli_heap;
        (void)!wal__hashmap_add(&ids->ranks, wal__id_hash(id.data, (size_t)id.size),
                                (uint32_t)ids->count);
        item = CLI_ADD(ids);
        *item = (struct cli_id){.text = cli_copy_slice(id), .size = id.size};
    }
    return &item->value;
}

void cli_ids_deinit(struct cli_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++) {
        free(ids->items[i].text);
    }
    free(ids->items);
    wal__hashmap_deinit(&ids->ranks);
    *ids = (struct cli_ids){.items = NULL};
}

/* --- files of a store ---------------------------------------------------- */

const char *cli_file_error(int error)
{
    switch (error) {
    case ELOOP:
        return "it is a symbolic link";
    case EISDIR:
        return "it is a directory";
    case ENXIO:
        return "it is a FIFO, a socket or a device";
    default:
        return strerror(error);
    }
}

DIR *cli_directory_open(const char *path, int *error)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat status;
    DIR *directory = NULL;
    int fd = open(path, flags);

    *error = errno;
    if (fd >= 0) {
        directory = fdopendir(fd);
        *error = errno;
    } else if (*error == ENOTDIR && lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        *error = ELOOP;
    }
    if (fd >= 0 && directory == NULL) {
        close(fd);
    }
    return directory;
}

/* --- files that get their name when they are complete ------------------- */

int cli_make_directory_at(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int cli_atomic_file_create(struct cli_atomic_file *file, int directory)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = -1;

    *file = (struct cli_atomic_file){.directory = directory};
    for (unsigned i = 0; fd < 0 && i < 1000; i++) {
        snprintf(file->temporary, sizeof(file->temporary), ".agentwal-export-%ld-%u",
                 (long)getpid(), i);
        fd = openat(directory, file->temporary, flags, 0600);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        return errno;
    }
    file->stream = check_alloc(fdopen(fd, "w"));
    (void)setvbuf(file->stream, NULL, _IOFBF, WRITE_SIZE);
    return 0;
}

/* A link, unlike a rename, replaces no file; some file systems have none. */
static int give_name(const struct cli_atomic_file *file, const char *name)
{
    if (file->is_new && linkat(file->directory, file->temporary, file->directory, name, 0) == 0) {
        unlinkat(file->directory, file->temporary, 0);
        return 0;
    }
    if (file->is_new && errno == EEXIST) {
        return EEXIST;
    }
    return renameat(file->directory, file->temporary, file->directory, name) == 0 ? 0 : errno;
}

int cli_atomic_file_commit(struct cli_atomic_file *file, const char *name, bool syncs,
                           int error_number)
{
    if (error_number == 0 && (fflush(file->stream) != 0 || ferror(file->stream) ||
                              (syncs && wal__system_sync_whole(fileno(file->stream)) != 0))) {
        error_number = errno != 0 ? errno : EIO; /* that of an earlier write may be lost */
    }
    if (fclose(file->stream) != 0 && error_number == 0) {
        error_number = errno;
    }
    file->stream = NULL;
    if (error_number == 0) {
        error_number = give_name(file, name);
    }
    if (error_number != 0) {
        unlinkat(file->directory, file->temporary, 0);
    } else if (syncs && wal__system_sync_whole(file->directory) != 0) {
        error_number = errno;
    }
    return error_number;
}

/* --- the store ---------------------------------------------------------- */

/* Returns the path of the store that no option and no AGENTWAL_STORE names; the process owns it.
 * NULL when there is no home directory. */
static char *default_store(void)
{
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");

    /* The XDG specification ignores relative paths. */
    if (data != NULL && data[0] == '/') {
        home = data;
        data = "agentwal";
    } else if (home != NULL && home[0] == '/') {
        data = ".local/share/agentwal";
    } else {
        return NULL;
    }
    return cli_format("%s/%s", home, data);
}

/* Sets cli->store_path. */
static void find_store(struct cli *cli)
{
    const char *what = cli->store_path != NULL ? "--store" : "AGENTWAL_STORE";

    if (cli->store_path == NULL) {
        cli->store_is_default = true;
        cli->store_path = getenv("AGENTWAL_STORE");
    }
    if (cli->store_path == NULL) {
        cli->store_path = default_store();
        if (cli->store_path == NULL) {
            cli_fail(cli, CLI_USAGE, "--store",
                     "is required: neither AGENTWAL_STORE nor HOME names a directory");
        }
    }
    if (cli->store_path[0] == '\0') {
        cli_fail(cli, CLI_USAGE, what, "is empty; it must name the directory of a store");
    }
    if (cli->store_path[0] == '~') {
        cli_fail(cli, CLI_USAGE, what,
                 "'%s' begins with '~', which the shell did not expand; write the path of the home "
                 "directory, or ./%s",
                 cli->store_path, cli->store_path);
    }
}

void cli_insert_store(struct cli *cli)
{
    size_t at = (size_t)cli->store_at;
    size_t count = (size_t)cli->count;
    char **items;

    if (cli->store_at == CLI_NO_STORE || count < at) {
        return;
    }
    find_store(cli);
    items = cli_alloc((count + 2) * sizeof(items[0]));
    memcpy(items, cli->items, at * sizeof(items[0]));
    /* cli_keep_text owns it; no command writes to its operands. */
    items[at] = (char *)(uintptr_t)cli_keep_text(cli->store_path);
    memcpy(items + at + 1, cli->items + at, (count - at) * sizeof(items[0]));
    cli->items = items;
    cli->count++;
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

/* Creates the parents of a directory that are missing. The store itself is made by wal_open. */
static void make_parents(const struct cli *cli, const char *path)
{
    char *copy = cli_copy_text(path, strlen(path));

    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
            cli_fail(cli, CLI_FAILED, path, "creating the directory %s failed: %s", copy,
                     strerror(errno));
        }
        *slash = '/';
    }
    free(copy);
}

/* Says why there is no store at the path of a verb. */
static _Noreturn void fail_missing(const struct cli *cli, const char *path)
{
    cli_end(cli, cli_error_status(cli, WAL_ENOTSTORE, path,
                                  "there is no store yet; import your sessions with: agentwal "
                                  "adopt, or create one with: agentwal init"));
}

bool cli_is_missing(const char *path)
{
    static const char *const left[] = {".",    "..",           "log",  "pack",    "index",
                                       "LOCK", "MANIFEST.new", "KEYS", "KEYS.new"};
    const struct dirent *entry;
    bool is_left = true;
    struct stat stat;
    DIR *directory;

    if (lstat(path, &stat) != 0) {
        return errno == ENOENT || errno == ENOTDIR;
    }
    directory = opendir(path);
    if (directory == NULL) {
        return false;
    }
    while (is_left && (entry = readdir(directory)) != NULL) {
        is_left = false;
        for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
            is_left |= strcmp(entry->d_name, left[i]) == 0;
        }
    }
    closedir(directory);
    return is_left;
}

void cli_require_store(const struct cli *cli, const char *path)
{
    if (cli_is_missing(path)) {
        fail_missing(cli, path);
    }
}

/*
 * Warns where others may write the directory of a new store: they could put files in place of its
 * files. Also with the sticky bit, with which they can still add names. A group that is the user's
 * own is taken as private.
 */
static void warn_if_shared(const struct cli *cli, const char *path)
{
    struct stat stat_of;

    if (stat(path, &stat_of) == 0 &&
        ((stat_of.st_mode & S_IWOTH) != 0 ||
         ((stat_of.st_mode & S_IWGRP) != 0 && stat_of.st_gid != getegid()))) {
        cli_note(cli, path,
                 "warning: other users may write to this directory, and put files in place of "
                 "those of the store; chmod go-w prevents that");
    }
}

enum wal_status cli_try_open(const struct cli *cli, const char *path, uint32_t flags,
                             struct wal_store **store, struct wal_error *error)
{
    struct wal_open_options options = cli_open_options(cli, flags);

    (void)cli_use_key(cli, path, &options);
    return wal_open(path, &options, store, error);
}

struct wal_store *cli_open_store(const struct cli *cli, const char *path, uint32_t flags)
{
    bool missing = cli_is_missing(path);
    struct wal_open_options options;
    struct wal_store *store = NULL;
    bool needs_none;

    if (missing && cli->adds_to_store) {
        flags |= WAL_OPEN_CREATE;
    }
    if (missing && (flags & WAL_OPEN_CREATE) == 0) {
        fail_missing(cli, path);
    }
    if (missing) {
        make_parents(cli, path);
    }
    options = cli_open_options(cli, flags);
    needs_none = cli_use_key(cli, path, &options);
    if (cli_key_is_given(&cli->key) && !cli->makes_store &&
        (missing ? options.key == NULL : needs_none)) {
        cli_end(cli, cli_error_status(cli, WAL_EKEY, path,
                                      missing ? "there is no store yet; agentwal init --encrypt "
                                                "makes an encrypted one"
                                              : "the store is not encrypted, and needs no key; "
                                                "agentwal encrypt encrypts it"));
    }
    cli_check(cli, path, wal_open(path, &options, &store, cli->error));
    if (missing) {
        cli_note(cli, path, "created this store");
    }
    if ((flags & WAL_OPEN_CREATE) != 0) {
        warn_if_shared(cli, path);
    }
    return store;
}

void cli_sessions_open(struct cli_sessions *list, struct wal_store *store,
                       const struct wal_session_cursor_options *options, struct wal_error *error)
{
    *list = (struct cli_sessions){.info = WAL_INIT(wal_session_info), .error = error};
    list->status = wal_session_cursor_open(store, options, &list->cursor, error);
}

bool cli_sessions_next(struct cli_sessions *list)
{
    if (list->status == WAL_OK) {
        list->status = wal_session_cursor_next(list->cursor, &list->info, list->error);
    }
    if (list->status == WAL_OK) {
        return true;
    }
    wal_session_cursor_close(list->cursor);
    list->status = list->status == WAL_END ? WAL_OK : list->status;
    return false;
}

int cli_close_store(const struct cli *cli, const char *path, struct wal_store *store, int code)
{
    enum wal_status status = wal_close(store, cli->error);

    if ((status == WAL_EPOISONED || status == WAL_EBUSY) && code != CLI_OK) {
        return code; /* the same failure, which was reported, or handles of what failed */
    }
    if (status != WAL_OK) {
        return cli_worse_code(code, cli_report(cli, path, status));
    }
    return code;
}

void cli_use_store(struct cli *cli, const char *path, uint32_t flags)
{
    cli->opened = path;
    cli->store = cli_open_store(cli, path, flags);
}

int cli_close(const struct cli *cli, int code)
{
    wal_session_close(cli->session);
    return cli->store != NULL ? cli_close_store(cli, cli->opened, cli->store, code) : code;
}

/* --- what the verbs share ----------------------------------------------- */

void cli_open(struct cli *cli, uint32_t flags)
{
    cli_use_store(cli, cli->items[1], flags);
    cli_use_session(cli, cli->items[2]);
}

void cli_begin(struct cli *cli, int argc, char **argv, const struct cli_option *options, int least,
               int most, uint32_t flags)
{
    cli_parse_operands(cli, argc, argv, options, least, most);
    cli_use_store(cli, cli->items[1], flags);
}

void cli_begin_session(struct cli *cli, int argc, char **argv, const struct cli_option *options,
                       int least, int most, uint32_t flags)
{
    cli_parse_operands(cli, argc, argv, options, least, most);
    cli_open(cli, flags);
}

int cli_report_file(const struct cli *cli, const char *what, enum wal_status status)
{
    /* The file of a damaged blob is a segment: name the operand instead. */
    bool is_named = cli->error->file[0] != '\0' && status != WAL_ECORRUPT;

    return cli_report(cli, is_named ? cli->error->file : what, status);
}

char *cli_read_file(const struct cli *cli, const char *path, size_t most, const char *advice,
                    size_t *size)
{
    const char *what = path == NULL ? "standard input" : path;
    FILE *file = path == NULL ? stdin : fopen(path, "re");
    char *input = NULL;
    size_t capacity = 0;
    size_t read_size;

    if (file == NULL) {
        cli_fail(cli, CLI_FAILED, what, "%s", strerror(errno));
    }
    *size = 0;
    do {
        if (*size == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 65536;
            input = cli_realloc(input, capacity);
        }
        read_size = fread(input + *size, 1, capacity - *size, file);
        *size += read_size;
    } while (read_size > 0 && *size <= most);
    if (ferror(file)) {
        cli_fail(cli, CLI_FAILED, what, "%s", strerror(errno));
    }
    if (*size > most) {
        cli_fail(cli, CLI_FAILED, what, "too large%s", advice);
    }
    if (path != NULL) {
        fclose(file);
    }
    return input;
}

int cli_print_done(const struct cli *cli, const char *key, const char *value, const char *sentence)
{
    struct wal__json_out json;

    if (!cli->json) {
        printf("%s ", sentence);
        cli_print_name(stdout, cli_slice(value));
        putchar('\n');
    } else {
        cli_json_begin(&json);
        cli_json_member_text(&json, key, cli_slice(value));
        wal__json_out_close_line(&json);
    }
    return CLI_OK;
}

int cli_print_id(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, cli->error);
    struct wal__json_out json;

    if (status == WAL_OK && cli->json) {
        cli_json_begin(&json);
        cli_json_member_text(&json, "sessionId", info.id);
        wal__json_out_close_line(&json);
    } else if (status == WAL_OK) {
        fwrite(info.id.data, 1, (size_t)info.id.size, stdout);
        putchar('\n');
    }
    return cli_report(cli, cli->items[0], status);
}

static void print_appended_sentence(const struct wal_session_info *info,
                                    const struct wal_append_result *result, const uint64_t *queued)
{
    uint64_t count = queued != NULL ? *queued : result->appended;

    printf("%s %" PRIu64 " %s to the session ", queued != NULL ? "queued" : "appended", count,
           cli_plural(count, "entry", "entries"));
    cli_print_name(stdout, info->id);
    if (result->duplicates > 0) {
        printf("; %" PRIu32 " known", result->duplicates);
    }
    if (result->last_id[0] != '\0') {
        fputs("; the last one is ", stdout);
        cli_print_name(stdout, cli_slice(result->last_id));
    }
    putchar('\n');
    fflush(stdout);
}

void cli_print_appended(const struct cli *cli, struct wal_session *session,
                        const struct wal_append_result *result, const uint64_t *queued)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK) {
        info.id.size = 0;
    }
    if (!cli->json) {
        print_appended_sentence(&info, result, queued);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "sessionId", info.id);
    cli_json_member_text_or_null(&json, "lastAppendedEntryId", cli_slice(result->last_id));
    wal__json_out_member_count(&json, "appendedCount", result->appended);
    wal__json_out_member_count(&json, "duplicateCount", result->duplicates);
    if (queued != NULL) {
        wal__json_out_member_count(&json, "queued", *queued);
    }
    wal__json_out_close_line(&json);
    fflush(stdout);
}

void cli_print_conflict(const struct cli *cli, struct wal_slice expected, struct wal_slice actual)
{
    struct wal__json_out json;

    if (!cli->json) {
        return;
    }
    cli_json_begin(&json);
    wal__json_out_member_open(&json, "conflict", '{');
    cli_json_member_text(&json, "expected", expected);
    cli_json_member_text(&json, "actual", actual);
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
    fflush(stdout);
}
