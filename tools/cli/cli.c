/*
 * cli.c - options, errors, exit codes and memory of the command line tools.
 *
 * Invariant: a tool that rejects its command line prints one line with the
 * argument and the reason, and changes nothing.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/json/json_scan.h"
#include "tools/cli/json.h"

#define COMMON_COUNT 6
#define OPTIONS_MAX  32
#define FIRST_OPTION 256 /* option values start above every character */

static const char common_help[] =
    "\n"
    "  --json               results as JSON\n"
    "  --no-progress        no progress on standard error\n"
    "  --strict             refuse what recovery cannot decide\n"
    "  --force-network-fs   accept a store on a network file system\n"
    "  --help, --version    print this help or the version, and exit\n"
    "\n"
    "Exit codes: 0 done; 1 the answer is no (damage found, conflict, not\n"
    "found); 2 the command line is wrong; 3 could not do it.\n";

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

/* The advice for a status, or NULL. */
static const char *hint(const struct cli *cli, enum wal_status status)
{
    if (status == WAL_ENOTSTORE && !cli->makes_store) {
        return "create one with: walctl init STORE";
    }
    if (status == WAL_EVERSION) {
        return "to write to an older store, run: walctl migrate STORE";
    }
    if (status == WAL_ENETWORK) {
        return "use --force-network-fs to accept it";
    }
    if (status == WAL_EDAMAGED) {
        return "run walcheck, then: walctl accept-damage STORE [SESSION]";
    }
    if (status == WAL_ECORRUPT) {
        return "to see what is damaged, run: walcheck STORE";
    }
    if (status == WAL_ETORN) {
        return "run walcheck, or omit --strict";
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

static int set_option(const struct cli *cli, const struct cli_option *option)
{
    if (option->flag != NULL) {
        *option->flag = true;
        return CLI_CONTINUE;
    }
    if (option->value != NULL) {
        *option->value = optarg;
        return CLI_CONTINUE;
    }
    if (option->values == NULL) {
        return cli_error(cli, CLI_USAGE, option->name, "not understood");
    }
    option->values->items = cli_realloc(option->values->items,
                                        (option->values->count + 1) *
                                            sizeof(option->values->items[0]));
    option->values->items[option->values->count++] = optarg;
    return CLI_CONTINUE;
}

static int bad_option(const struct cli *cli, int found, char **argv)
{
    const char *why = "no such option";

    if (found == ':') {
        why = "needs an argument";
    } else if (optopt >= FIRST_OPTION) {
        why = "takes no argument";
    }
    return cli_error(cli, CLI_USAGE, argv[optind - 1], "%s (see %s --help)",
                     why, cli->tool);
}

/* Builds the getopt_long list of the common options and the table's. Option
 * number i has the value FIRST_OPTION + i. */
static void list_options(const struct cli_option *common,
                         const struct cli_option *options, struct option *list)
{
    const struct cli_option *tables[] = {common, options};
    int value = FIRST_OPTION;
    size_t count = 0;

    for (size_t t = 0; t < 2; t++) {
        const struct cli_option *option = tables[t];
        for (; option->name != NULL && count < OPTIONS_MAX; option++) {
            list[count++] = (struct option){
                .name = option->name,
                .has_arg =
                    option->flag != NULL ? no_argument : required_argument,
                .val = value++,
            };
        }
    }
    list[count] = (struct option){.name = NULL};
}

/* Builds the getopt string of the table's short options. */
static void list_short_options(const struct cli_option *options, char *letters)
{
    size_t count = 0;

    letters[count++] = ':';
    letters[count++] = 'h';
    for (; options->name != NULL && count < OPTIONS_MAX; options++) {
        if (options->letter != 0) {
            letters[count++] = options->letter;
            if (options->flag == NULL) {
                letters[count++] = ':';
            }
        }
    }
    letters[count] = '\0';
}

/* Returns the option of a letter, or NULL. */
static const struct cli_option *find_letter(const struct cli_option *options,
                                            int letter)
{
    while (options->name != NULL && options->letter != letter) {
        options++;
    }
    return options->name != NULL ? options : NULL;
}

/* Handles an option that getopt_long returned, except -h. */
static int apply_option(struct cli *cli, int found, char **argv,
                        const struct cli_option *common,
                        const struct cli_option *options)
{
    int at = found - FIRST_OPTION;
    const struct cli_option *option;

    if (at < 0) {
        option = find_letter(options, found);
    } else {
        option = at < COMMON_COUNT ? &common[at] : &options[at - COMMON_COUNT];
    }
    return option != NULL ? set_option(cli, option)
                          : bad_option(cli, found, argv);
}

int cli_parse(struct cli *cli, int argc, char **argv,
              const struct cli_option *options)
{
    bool help = false;
    bool version = false;
    const struct cli_option common[COMMON_COUNT + 1] = {
        {.name = "help", .flag = &help},
        {.name = "version", .flag = &version},
        {.name = "json", .flag = &cli->json},
        {.name = "no-progress", .flag = &cli->no_progress},
        {.name = "strict", .flag = &cli->strict},
        {.name = "force-network-fs", .flag = &cli->force_network_fs},
    };
    struct option list[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 3];
    int found, code;

    signal(SIGPIPE, SIG_IGN);
    list_options(common, options, list);
    list_short_options(options, letters);
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, list, NULL)) != -1) {
        if (found == 'h') {
            help = true;
            continue;
        }
        code = apply_option(cli, found, argv, common, options);
        if (code != CLI_CONTINUE) {
            return code;
        }
    }
    if (help) {
        printf("%s%s", cli->help, common_help);
        return CLI_OK;
    }
    if (version) {
        printf("%s %s\n", cli->tool, wal_version());
        return CLI_OK;
    }
    cli->items = argv + optind;
    cli->count = argc - optind;
    return CLI_CONTINUE;
}

int cli_check_operands(const struct cli *cli, int min, int max)
{
    if (cli->count < min) {
        return cli_error(cli, CLI_USAGE,
                         cli->count > 0 ? cli->items[0] : "command line",
                         "too few arguments (see %s --help)", cli->tool);
    }
    if (cli->count > max) {
        return cli_error(cli, CLI_USAGE, cli->items[max],
                         "too many arguments (see %s --help)", cli->tool);
    }
    return CLI_CONTINUE;
}

int cli_parse_number(const struct cli *cli, const char *option,
                     const char *text, uint64_t max, uint64_t *number)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        value > max) {
        return cli_error(cli, CLI_USAGE, option,
                         "'%s' is not a number from 0 to %llu", text,
                         (unsigned long long)max);
    }
    *number = value;
    return CLI_CONTINUE;
}

int cli_check_size(const struct cli *cli, const char *what, const char *text,
                   size_t max)
{
    size_t size = text != NULL ? strlen(text) : 0;

    return size <= max
               ? CLI_CONTINUE
               : cli_error(cli, CLI_USAGE, what,
                           "is %zu bytes long; the maximum is %zu", size, max);
}

int cli_check_id(const struct cli *cli, const char *what, const char *id)
{
    return cli_check_size(cli, what, id, CLI_ID_MAX);
}

int cli_check_new_id(const struct cli *cli, const char *what, const char *id)
{
    const unsigned char *at = (const unsigned char *)id;

    if (id == NULL) {
        return CLI_CONTINUE;
    }
    if (id[0] == '\0') {
        return cli_error(cli, CLI_USAGE, what, "is empty");
    }
    if (id[0] == '@') {
        return cli_error(cli, CLI_USAGE, what,
                         "'%s' begins with '@', as @latest does", id);
    }
    for (; *at != '\0'; at++) {
        /* In UTF-8, C2 80 to C2 9F are control characters too. */
        if (*at < 0x20 || *at == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0)) {
            return cli_error(cli, CLI_USAGE, what,
                             "'%s' contains a control character", id);
        }
    }
    return cli_check_id(cli, what, id);
}

int cli_check_object(const struct cli *cli, const char *what, const char *text)
{
    struct wal_slice slice = cli_slice(text);
    enum wal__json_status json_status;

    if (text == NULL) {
        return CLI_CONTINUE;
    }
    json_status =
        wal__json_members(slice.data, (size_t)slice.size, NULL, 0, NULL);
    return json_status == WAL__JSON_OK
               ? CLI_CONTINUE
               : cli_error(cli, CLI_USAGE, what, "not a JSON object: %s",
                           wal__json_status_text(json_status));
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

int cli_open_store(const struct cli *cli, const char *path, uint32_t flags,
                   struct wal_store **store)
{
    struct wal_open_options options = cli_open_options(cli, flags);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_open(path, &options, store, &error);

    if (status != WAL_OK) {
        return cli_report(cli, path, status, &error);
    }
    return CLI_CONTINUE;
}

int cli_close_store(const struct cli *cli, const char *path,
                    struct wal_store *store, int code)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_close(store, &error);

    if (status != WAL_OK) {
        return cli_worse_code(code, cli_report(cli, path, status, &error));
    }
    return code;
}
