/*
 * options.c - the verb line: options and operands, the name that a user meant, and times.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/json/json_scan.h"
#include "format/payload/timestamp.h"
#include "tools/cli/json.h"

#define OPTIONS_MAX 32

#define FIRST_OPTION 256 /* option values start above every character */

/* The tables that the command line is matched with. */
enum { TABLE_COUNT = 3 };

struct tables {
    const struct cli_option *items[TABLE_COUNT];
};

static void set_option(struct cli *cli, const struct cli_option *option, size_t argc)
{
    char name[64];

    if (option->flag != NULL && optarg != NULL) {
        cli->store_path = optarg; /* --store=DIR of a verb with a flag --store */
        return;
    }
    if (option->flag != NULL) {
        *option->flag = true;
        return;
    }
    snprintf(name, sizeof(name), "--%s", option->name);
    if (optarg[0] == '\0' && !option->may_be_empty) {
        cli_fail(cli, CLI_USAGE, name, "is empty");
    }
    if (option->number != NULL) {
        cli_parse_number(cli, name, optarg, option->max, option->number);
        if (*option->number < option->min) {
            cli_fail(cli, CLI_USAGE, name, "must be at least %llu",
                     (unsigned long long)option->min);
        }
    } else if (option->size != NULL) {
        cli_parse_size(cli, name, optarg, option->size);
    } else if (option->time != NULL) {
        cli_parse_time(cli, name, optarg, option->time);
    } else if (option->directory != NULL) {
        *option->directory = cli_keep_absolute(optarg);
        cli_check_size(cli, name, *option->directory, CLI_TEXT_MAX);
    } else if (option->values != NULL) {
        if (option->values->items == NULL) {
            option->values->items = cli_keep(cli_alloc(argc * sizeof(option->values->items[0])));
        }
        option->values->items[option->values->count++] = optarg;
    } else {
        *option->value = optarg;
        if (option->max > 0) {
            cli_check_size(cli, name, optarg, option->max);
        }
        if (option->check != NULL) {
            option->check(cli, name, optarg);
        }
    }
}

/* Returns the name of the option nearest to an argument, or NULL. */
static const char *suggest_option(const struct tables *tables, const char *argument)
{
    char *name = cli_copy_text(argument, strcspn(argument, "="));
    struct cli_suggestion suggestion = {.typed = name + strspn(name, "-")};

    for (size_t t = 0; t < TABLE_COUNT && strncmp(name, "--", 2) == 0; t++) {
        const struct cli_option *option = tables->items[t];
        for (; option->name != NULL; option++) {
            cli_suggest(&suggestion, option->name);
        }
    }
    free(name);
    return suggestion.nearest;
}

static _Noreturn void bad_option(const struct cli *cli, int found, char **argv,
                                 const struct tables *tables)
{
    char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = found == '?' && optopt > 0 && optopt < FIRST_OPTION;
    const char *argument = is_letter ? letter : argv[optind - 1];
    const char *nearest = NULL;
    const char *why = is_letter ? "no such option; -- ends the options" : "no such option";

    if (found == ':') {
        why = "needs an argument";
    } else if (optopt >= FIRST_OPTION) {
        why = "takes no argument";
    } else {
        nearest = suggest_option(tables, argument);
    }
    if (nearest != NULL) {
        cli_fail(cli, CLI_USAGE, argument, "%s; did you mean --%s? (see %s)", why, nearest,
                 cli_help_command(cli));
    }
    cli_fail(cli, CLI_USAGE, argument, "%s (see %s)", why, cli_help_command(cli));
}

static int argument_kind(const struct cli_option *option)
{
    if (option->flag == NULL) {
        return required_argument;
    }
    return strcmp(option->name, "store") == 0 ? optional_argument : no_argument;
}

/* Builds the getopt_long list of the tables. Option number i of all has the value FIRST_OPTION +
 * i. */
static void list_options(const struct tables *tables, struct option *list)
{
    int value = FIRST_OPTION;
    size_t count = 0;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        const struct cli_option *option = tables->items[t];
        for (; option->name != NULL && count < OPTIONS_MAX; option++) {
            list[count++] = (struct option){
                .name = option->name,
                .has_arg = argument_kind(option),
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

/* Returns the option of a value that getopt_long returned, or NULL. */
static const struct cli_option *find_option(const struct tables *tables, int found)
{
    int left = found - FIRST_OPTION;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        const struct cli_option *option = tables->items[t];
        for (; option->name != NULL; option++) {
            if (found < FIRST_OPTION ? option->letter == found : left-- == 0) {
                return option;
            }
        }
    }
    return NULL;
}

static void read_options(struct cli *cli, int argc, char **argv, const struct tables *tables,
                         bool *help)
{
    struct option list[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 3];
    int found;

    list_options(tables, list);
    list_short_options(tables->items[1], letters);
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, list, NULL)) != -1) {
        const struct cli_option *option = find_option(tables, found);
        if (found == 'h') {
            *help = true;
        } else if (option != NULL) {
            set_option(cli, option, (size_t)argc);
        } else {
            bad_option(cli, found, argv, tables);
        }
    }
}

void cli_parse(struct cli *cli, int argc, char **argv, const struct cli_option *options)
{
    bool help = false;
    bool version = false;
    const struct cli_option common[] = {
        {.name = "help", .flag = &help},
        {.name = "version", .flag = &version},
        {.name = "json", .flag = &cli->json},
        {.name = "no-progress", .flag = &cli->no_progress},
        {.name = "strict", .flag = &cli->strict},
        {.name = "force-network-fs", .flag = &cli->force_network_fs},
        {.name = "key-file", .value = &cli->key.file},
        {.name = "key-command", .value = &cli->key.command},
        {.name = "key-keyring", .value = &cli->key.keyring},
        {.name = "passphrase-fd", .value = &cli->key.fd},
        {.name = "recovery-code", .flag = &cli->key.is_code},
        {.name = NULL},
    };
    const struct cli_option of_verbs[] = {
        {.name = "store", .value = &cli->store_path},
        {.name = "no-color", .flag = &cli->no_colour},
        {.name = "no-pager", .flag = &cli->no_pager},
        {.name = NULL},
    };
    const struct cli_option none = {.name = NULL};
    /* The verb's table comes first, so that its names are preferred. */
    const struct tables tables = {
        {common, options != NULL ? options : &none, &of_verbs[cli->names_store ? 1 : 0]},
    };

    signal(SIGPIPE, SIG_IGN);
    cli->terminal = cli_alloc(sizeof(*cli->terminal));
    read_options(cli, argc, argv, &tables, &help);
    if (help) {
        fputs(cli->help, stdout);
        cli_end(cli, CLI_OK);
    }
    if (version) {
        printf("%s %s\n", cli->tool, wal_version());
        cli_end(cli, CLI_OK);
    }
    cli->items = argv + optind;
    cli->count = argc - optind;
    terminal_init(cli->terminal, cli->no_colour);
    if (!cli->names_store) {
        cli_insert_store(cli);
    }
}

void cli_parse_operands(struct cli *cli, int argc, char **argv, const struct cli_option *options,
                        int min, int max)
{
    cli_parse(cli, argc, argv, options);
    cli_check_operands(cli, min, max);
}

int cli_refuse_missing(struct cli *cli, int argc, char **argv, const char *why)
{
    const char *last = argv[argc - 1];

    if (argc == 2 || strcmp(last, "--help") == 0 || strcmp(last, "--version") == 0) {
        cli_parse(cli, argc, argv, NULL);
    }
    return cli_error(cli, CLI_FAILED, cli->verb, "%s", why);
}

const char *cli_help_command(const struct cli *cli)
{
    static char text[64];

    snprintf(text, sizeof(text), "agentwal help%s%s", strcmp(cli->verb, "help") == 0 ? "" : " ",
             strcmp(cli->verb, "help") == 0 ? "" : cli->verb);
    return text;
}

void cli_check_operands(const struct cli *cli, int min, int max)
{
    if (cli->count < min) {
        cli_fail(cli, CLI_USAGE, cli->verb, "too few arguments (see %s)", cli_help_command(cli));
    }
    if (cli->count > max) {
        cli_fail(cli, CLI_USAGE, cli->items[max], "too many arguments (see %s)",
                 cli_help_command(cli));
    }
}

void cli_parse_number(const struct cli *cli, const char *option, const char *text, uint64_t max,
                      uint64_t *number)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > max) {
        if (max == UINT64_MAX) {
            cli_fail(cli, CLI_USAGE, option, "'%s' is not a number of 0 or more", text);
        }
        cli_fail(cli, CLI_USAGE, option, "'%s' is not a number from 0 to %llu", text,
                 (unsigned long long)max);
    }
    *number = value;
}

/* Returns the factor of a unit; 0: it is none. */
static uint64_t unit_factor(const char *unit)
{
    static const char letters[] = "kMGT";
    const char *letter;
    uint64_t factor = 1;
    bool is_binary;

    if (unit[0] == '\0' || strcmp(unit, "B") == 0) {
        return 1;
    }
    letter = strchr(letters, unit[0] == 'K' ? 'k' : unit[0]);
    is_binary = strcmp(unit + 1, "iB") == 0;
    if (letter == NULL || !(is_binary || unit[1] == '\0' || strcmp(unit + 1, "B") == 0)) {
        return 0;
    }
    for (ptrdiff_t i = letter - letters; i >= 0; i--) {
        factor *= is_binary ? 1024 : 1000;
    }
    return factor;
}

void cli_parse_size(const struct cli *cli, const char *option, const char *text, uint64_t *size)
{
    char *end = NULL;
    unsigned long long value;
    uint64_t factor;

    errno = 0;
    value = strtoull(text, &end, 10);
    factor = unit_factor(end);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || factor == 0 ||
        value > (UINT64_MAX - 1) / factor) {
        cli_fail(cli, CLI_USAGE, option, "'%s' is not a size such as 500000, 64MiB or 2GB", text);
    }
    *size = value * factor;
}

void cli_check_size(const struct cli *cli, const char *what, const char *text, size_t max)
{
    size_t size = text != NULL ? strlen(text) : 0;

    if (size > max) {
        cli_fail(cli, CLI_USAGE, what, "is %zu bytes long; the maximum is %zu", size, max);
    }
}

void cli_check_id(const struct cli *cli, const char *what, const char *id)
{
    cli_check_size(cli, what, id, CLI_ID_MAX);
}

static void refuse_empty(const struct cli *cli, const char *what, const char *id)
{
    if (id != NULL && id[0] == '\0') {
        cli_fail(cli, CLI_USAGE, what, "is empty");
    }
}

void cli_check_checkpoint_id(const struct cli *cli, const char *what, const char *id)
{
    refuse_empty(cli, what, id);
    cli_check_id(cli, what, id);
}

void cli_check_new_id(const struct cli *cli, const char *what, const char *id)
{
    const unsigned char *at = (const unsigned char *)(id != NULL ? id : "");

    refuse_empty(cli, what, id);
    if (at[0] == '@') {
        cli_fail(cli, CLI_USAGE, what, "'%s' begins with '@', as @latest does", id);
    }
    for (; *at != '\0'; at++) {
        /* In UTF-8, C2 80 to C2 9F are control characters too. */
        if (*at < 0x20 || *at == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0)) {
            cli_fail(cli, CLI_USAGE, what, "'%s' contains a control character", id);
        }
    }
    cli_check_id(cli, what, id);
}

void cli_check_object(const struct cli *cli, const char *what, const char *text)
{
    struct wal_slice slice = cli_slice(text);
    enum wal__json_status json_status =
        text == NULL ? WAL__JSON_OK
                     : wal__json_members(slice.data, (size_t)slice.size, NULL, 0, NULL);

    if (json_status != WAL__JSON_OK) {
        cli_fail(cli, CLI_USAGE, what, "not a JSON object: %s", wal__json_status_text(json_status));
    }
}

/* --- the name that a user meant ----------------------------------------- */

enum { WORD_MAX = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_edit_distance(const char *from, const char *to)
{
    size_t from_size = strlen(from);
    size_t to_size = strlen(to);
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0];
    size_t *above = rows[1];
    size_t *row = rows[2];

    if (from_size > WORD_MAX || to_size > WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= to_size; j++) {
        above[j] = j;
        before[j] = j;
    }
    for (size_t i = 1; i <= from_size; i++) {
        size_t *free_row = before;

        row[0] = i;
        for (size_t j = 1; j <= to_size; j++) {
            size_t cost = from[i - 1] == to[j - 1] ? 0 : 1;
            bool is_exchange =
                i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];

            row[j] = least(above[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], above[j - 1] + cost);
            if (is_exchange) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[to_size];
}

void cli_suggest(struct cli_suggestion *suggestion, const char *name)
{
    size_t size = strlen(suggestion->typed);
    size_t distance = cli_edit_distance(suggestion->typed, name);
    bool is_prefix = size >= 3 && strncmp(suggestion->typed, name, size) == 0;

    if (is_prefix) {
        distance = 1;
    }
    if (size == 0 || distance > (size + 2) / 3 || distance >= strlen(name)) {
        return;
    }
    if (suggestion->nearest == NULL || distance < suggestion->distance) {
        suggestion->nearest = name;
        suggestion->distance = distance;
    }
}

/* --- times -------------------------------------------------------------- */

/* Reads NUMBER and a unit as an age. */
static bool read_age(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'m', 60000}, {'h', 3600000}, {'d', 86400000}, {'w', 7 * INT64_C(86400000)}};
    char *end = NULL;
    unsigned long count = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || count > 100000 || *end == '\0' || end[1] != '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (*end == units[i].unit) {
            *ms = when_now_ms() - (int64_t)count * units[i].ms;
            return true;
        }
    }
    return false;
}

/* Reads a date, or a date and time, of the local zone. */
static bool read_local(const char *text, int64_t *ms)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm parts;
        const char *end;
        time_t seconds;
        int day;

        memset(&parts, 0, sizeof(parts));
        parts.tm_isdst = -1;
        end = strptime(text, forms[i], &parts);
        if (end == NULL || *end != '\0') {
            continue;
        }
        day = parts.tm_mday;
        seconds = mktime(&parts);
        *ms = (int64_t)seconds * 1000;
        return seconds != (time_t)-1 && parts.tm_mday == day;
    }
    return false;
}

void cli_parse_time(const struct cli *cli, const char *option, const char *text, int64_t *ms)
{
    struct wal__json_span span = {(const uint8_t *)text, text == NULL ? 0 : strlen(text)};

    if (text != NULL && !read_age(text, ms) && !read_local(text, ms) &&
        !wal__model_time_read_text(span, ms)) {
        cli_fail(cli, CLI_USAGE, option,
                 "\"%s\" is no time; use 2026-11-20, 2026-11-20T14:03, or "
                 "an age such as 12h or 7d",
                 text);
    }
}
