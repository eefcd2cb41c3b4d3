/*
 * retain.c - the verb retain: moves sessions to the trash by rules.
 *
 * Invariant: without --apply the store is opened for reading only.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/care/retain_plan.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

enum {
    ID_COLUMNS = 12,
    TITLE_COLUMNS = 40,
    HOUR_MS = 3600 * 1000
};

struct retain {
    struct retain_plan plan;
    struct wal__retain_rules rules;
    const char *project;
    const char *archive; /* directory of a store; NULL: none */
    bool apply;
    bool all;
    /* Of those that were chosen, and with apply moved. */
    uint64_t moved;
    uint64_t moved_bytes;
    /* Of those that stay although a rule may have chosen them. */
    uint64_t pinned;
    uint64_t claimed;
    uint64_t held;
};

static const char *rule_name(enum wal__retain_rule rule)
{
    static const char *const names[] = {"", "older-than", "keep-last",
                                        "max-bytes"};

    return names[rule];
}

static const char *reason_text(enum retain_reason reason)
{
    static const char *const texts[] = {
        "",
        "a process has claimed it",
        "it is pinned",
        "it has changed since it was chosen",
        "another process has moved or deleted it",
        "the archive has another session of its id"};

    return texts[reason];
}

static bool is_chosen(const struct retain *retain, size_t rank)
{
    return retain->plan.sessions[rank].rule != WAL__RETAIN_STAYS;
}

static bool is_moved(const struct retain *retain, size_t rank)
{
    return is_chosen(retain, rank) &&
           retain->plan.items[rank].reason == RETAIN_NONE;
}

/* --- output ------------------------------------------------------------- */

static void count(struct retain *retain)
{
    for (size_t i = 0; i < retain->plan.count; i++) {
        const struct wal__retain_session *session = &retain->plan.sessions[i];
        enum retain_reason reason = retain->plan.items[i].reason;

        if (is_moved(retain, i)) {
            retain->moved++;
            retain->moved_bytes += session->bytes;
        } else if (!is_chosen(retain, i) && session->is_selected &&
                   !session->is_trashed) {
            retain->pinned += reason == RETAIN_PINNED;
            retain->claimed += reason == RETAIN_CLAIMED;
            retain->held += session->is_held;
        }
    }
}

static void write_item(struct wal__json_out *json, const struct retain *retain,
                       size_t rank)
{
    const struct retain_item *item = &retain->plan.items[rank];
    const struct wal__retain_session *session = &retain->plan.sessions[rank];

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "sessionId", cli_slice(item->id));
    cli_json_member_text_or_null(json, "title", cli_slice(item->title));
    cli_json_member_time(json, "updated", session->updated_ms);
    wal__json_out_member_count(json, "entries", item->entries);
    wal__json_out_member_count(json, "bytes", session->bytes);
    cli_json_member_text(json, "rule", cli_slice(rule_name(session->rule)));
    if (item->reason != RETAIN_NONE) {
        cli_json_member_text(json, "skipped",
                             cli_slice(reason_text(item->reason)));
    }
    wal__json_out_close(json, '}');
}

static void write_json(const struct retain *retain)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"moved", retain->apply ? retain->moved : 0},
        {"bytes", retain->moved_bytes},
        {"staying", retain->plan.selected - retain->moved},
        {"pinned", retain->pinned},
        {"claimed", retain->claimed},
        {"ancestors", retain->held},
    };
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    wal__json_out_member_bool(&json, "applied", retain->apply);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        wal__json_out_member_count(&json, numbers[i].key, numbers[i].value);
    }
    wal__json_out_member_open(&json, "sessions", '[');
    for (size_t i = 0; i < retain->plan.count; i++) {
        if (is_chosen(retain, i)) {
            write_item(&json, retain, i);
        }
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_item(const struct retain *retain, struct cli_short_ids *ids,
                       size_t rank, int64_t now_ms)
{
    const struct retain_item *item = &retain->plan.items[rank];
    const struct wal__retain_session *session = &retain->plan.sessions[rank];
    struct wal_slice id = cli_short_id(ids, cli_slice(item->id));
    size_t width = cli_print_name(stdout, id);
    char age[WHEN_SIZE];
    char size[SIZE_TEXT];

    when_age(session->updated_ms, now_ms, age);
    size_text(session->bytes, size);
    printf("%*s  %-*s  %11s  %-10s  ",
           width < ID_COLUMNS ? (int)(ID_COLUMNS - width) : 0, "",
           WHEN_AGE_COLUMNS, age, size, rule_name(session->rule));
    cell_print(stdout, item->title, strlen(item->title), TITLE_COLUMNS, 0);
    putchar('\n');
}

static void print_number(const char **separator, uint64_t number,
                         const char *what)
{
    if (number > 0) {
        printf("%s%" PRIu64 " %s", *separator, number, what);
        *separator = ", ";
    }
}

/* The sessions that stay in spite of a rule. */
static void print_staying(const struct retain *retain)
{
    const char *separator = "staying in any case: ";

    print_number(&separator, retain->pinned, "pinned");
    print_number(&separator, retain->claimed, "claimed");
    print_number(&separator, retain->held, "with forks or children that stay");
    if (separator[0] == ',') {
        putchar('\n');
    }
}

static void print_table(const struct retain *retain, struct wal_store *store)
{
    struct cli_short_ids ids = {.items = NULL};
    int64_t now_ms = when_now_ms();

    cli_short_ids_add_sessions(&ids, store);
    printf("%-*s  %-*s  %11s  %-10s  %s\n", ID_COLUMNS, "SESSION",
           WHEN_AGE_COLUMNS, "UPDATED", "BYTES", "RULE", "TITLE");
    for (size_t i = 0; i < retain->plan.count; i++) {
        if (is_moved(retain, i)) {
            print_item(retain, &ids, i, now_ms);
        }
    }
    cli_short_ids_deinit(&ids);
}

static void print(const struct cli *cli, const struct retain *retain,
                  struct wal_store *store)
{
    char size[SIZE_TEXT];

    size_text(retain->moved_bytes, size);
    if (retain->moved > 0) {
        cli_start_pager(cli);
        print_table(retain, store);
    }
    printf("%s %" PRIu64 " of %" PRIu32 " %s, %s, to the trash\n",
           retain->apply ? "moved" : "would move", retain->moved,
           retain->plan.selected,
           cli_plural(retain->plan.selected, "session", "sessions"), size);
    print_staying(retain);
    if (!retain->apply && retain->moved > 0) {
        puts("nothing has changed; --apply moves them");
    } else if (retain->moved > 0) {
        puts("undo: agentwal undelete SESSION; give the space back: "
             "agentwal gc --erase");
    }
}

/* --- moving ------------------------------------------------------------- */

/* Oldest first: a run that is cut short has moved what matters least. */
static int apply(const struct cli *cli, struct retain *retain,
                 struct wal_store *store)
{
    struct wal_error error = CLI_ERROR_INIT;

    for (size_t i = retain->plan.count; i > 0; i--) {
        struct retain_item *item = &retain->plan.items[i - 1];
        enum wal_status status = WAL_OK;

        if (is_moved(retain, i - 1)) {
            status = retain_plan_move(item, store, &error);
        }
        if (status != WAL_OK) {
            return cli_report(cli, item->id, status, &error);
        }
        if (is_chosen(retain, i - 1) && item->reason != RETAIN_NONE) {
            cli_note(cli, item->id, reason_text(item->reason));
        }
    }
    return CLI_CONTINUE;
}

static int check_rest(const struct cli *cli, const struct retain *retain)
{
    if (retain->all || retain->plan.chosen == 0 ||
        retain->plan.chosen < retain->plan.selected) {
        return CLI_CONTINUE;
    }
    return cli_error(cli, CLI_NEGATIVE, cli->items[1],
                     "the rules leave none of %" PRIu32 " %s; --all permits "
                     "that",
                     retain->plan.selected,
                     cli_plural(retain->plan.selected, "session", "sessions"));
}

static int run(const struct cli *cli, struct retain *retain,
               struct wal_store *store)
{
    int code = retain_plan_read(&retain->plan, cli, store, &retain->rules,
                                retain->project);

    if (code == CLI_CONTINUE) {
        code = check_rest(cli, retain);
    }
    if (code == CLI_CONTINUE && retain->apply && retain->archive != NULL &&
        retain->plan.chosen > 0) {
        code = retain_plan_archive(&retain->plan, cli, store, retain->archive);
    }
    if (code == CLI_CONTINUE && retain->apply) {
        code = apply(cli, retain, store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    count(retain);
    if (cli->json) {
        write_json(retain);
    } else {
        print(cli, retain, store);
    }
    return CLI_OK;
}

/* --- options ------------------------------------------------------------ */

/* An age: a number of hours, days, weeks or years. */
static int parse_age(const struct cli *cli, const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        uint64_t hours;
    } units[] = {{'h', 1}, {'d', 24}, {'w', 7 * 24}, {'y', 365 * 24}};
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 10);
    uint64_t hours = 0;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (end[0] == units[i].unit && end[1] == '\0') {
            hours = units[i].hours;
        }
    }
    if (text[0] < '0' || text[0] > '9' || hours == 0 ||
        value > (uint64_t)INT32_MAX / hours) {
        return cli_error(cli, CLI_USAGE, "--older-than",
                         "'%s' is not an age such as 12h, 90d, 8w or 1y", text);
    }
    *ms = (int64_t)(value * hours) * HOUR_MS;
    return CLI_CONTINUE;
}

/* The rules as they are given; null: not at all. */
struct arguments {
    const char *older_than;
    const char *keep_last;
    const char *max_bytes;
};

static int read_rules(const struct cli *cli, const struct arguments *arguments,
                      struct wal__retain_rules *rules)
{
    int64_t age_ms = 0;
    int code = CLI_CONTINUE;

    *rules = (struct wal__retain_rules){.older_than_ms = INT64_MIN,
                                        .max_bytes = UINT64_MAX};
    if (arguments->older_than == NULL && arguments->keep_last == NULL &&
        arguments->max_bytes == NULL) {
        return cli_error(cli, CLI_USAGE, NULL,
                         "needs a rule: --older-than, --keep-last or "
                         "--max-bytes");
    }
    if (arguments->older_than != NULL) {
        code = parse_age(cli, arguments->older_than, &age_ms);
        rules->older_than_ms = when_now_ms() - age_ms;
    }
    if (code == CLI_CONTINUE && arguments->keep_last != NULL) {
        rules->has_keep_last = true;
        code = cli_parse_number(cli, "--keep-last", arguments->keep_last,
                                UINT32_MAX, &rules->keep_last);
    }
    if (code == CLI_CONTINUE && arguments->max_bytes != NULL) {
        code = cli_parse_size(cli, "--max-bytes", arguments->max_bytes,
                              &rules->max_bytes);
    }
    return code;
}

int verb_retain(struct cli *cli, int argc, char **argv)
{
    struct retain retain = {.apply = false};
    struct arguments arguments = {.older_than = NULL};
    const struct cli_option options[] = {
        {.name = "older-than", .value = &arguments.older_than},
        {.name = "keep-last", .value = &arguments.keep_last},
        {.name = "max-bytes", .value = &arguments.max_bytes},
        {.name = "project", .value = &retain.project},
        {.name = "archive", .value = &retain.archive},
        {.name = "all", .flag = &retain.all},
        {.name = "apply", .flag = &retain.apply},
        {.name = NULL},
    };
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "--project", retain.project, CLI_TEXT_MAX);
    }
    if (code == CLI_CONTINUE && retain.archive != NULL &&
        retain.archive[0] == '\0') {
        code = cli_error(cli, CLI_USAGE, "--archive", "is empty");
    }
    if (code == CLI_CONTINUE) {
        code = read_rules(cli, &arguments, &retain.rules);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1],
                              retain.apply ? 0 : WAL_OPEN_READ_ONLY, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = run(cli, &retain, store);
    retain_plan_deinit(&retain.plan);
    return cli_close_store(cli, cli->items[1], store, code);
}
