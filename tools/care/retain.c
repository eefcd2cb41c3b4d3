/*
 * retain.c - the verb retain, which moves sessions to the trash by rules (docs/keeping.md), after
 * it has copied them to an archive, which is a store; and the verb restore, which takes them back.
 *
 * Invariant: without --apply the store is opened for reading only. A session is in the archive,
 * durably, before it is moved.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/care/retain.h"
#include "format/json/json_scan.h"
#include "tools/cli/session.h"
#include "tools/cli/transfer.h"
#include "tools/cli/verbs.h"

/* --- the sessions, and what the rules choose ---------------------------- */

/* Why a session stays that the rules apply to, or was not moved. */
enum retain_reason {
    RETAIN_NONE = 0,
    RETAIN_CLAIMED,
    RETAIN_PINNED,
    RETAIN_CHANGED, /* since it was chosen */
    RETAIN_GONE,    /* since then: it is in the trash, or deleted */
    RETAIN_REFUSED  /* by the archive */
};

struct retain_item {
    char *id;
    char *title; /* or the first text */
    uint32_t number;
    uint64_t entries;
    uint64_t last_sequence;
    enum retain_reason reason;
};

/* The items and sessions of a rank belong together; newest first, and at the end those in the
 * trash. Zeroed: none. */
struct retain_plan {
    struct retain_item *items;
    struct wal__retain_session *sessions;
    size_t count;
    size_t capacity[2];
    uint32_t selected; /* that the rules apply to */
    uint32_t chosen;
};

/* --- reading ------------------------------------------------------------ */

/* The sessions while they are read: ranks + 1 by id, and the ids of their parents. */
struct reading {
    const struct cli *cli;
    struct retain_plan *plan;
    const char *project;
    struct cli_ids ranks;
    char **parents; /* of a fork with a ">" before */
    size_t capacity;
};

static void add_session(struct reading *reading, const struct wal_session_info *info)
{
    struct retain_plan *plan = reading->plan;
    size_t rank = plan->count;
    char text[CLI_TEXT_MAX];
    struct wal_slice title = info->title.size > 0
                                 ? info->title
                                 : cli_session_first_text(reading->cli->store, info, text);
    bool is_fork = (info->flags & WAL_SESSION_FORK) != 0;
    char *parent = cli_alloc((size_t)info->parent_id.size + 2);

    plan->items = cli_reserve(plan->items, rank, &plan->capacity[0], sizeof(*plan->items));
    plan->sessions = cli_reserve(plan->sessions, rank, &plan->capacity[1], sizeof(*plan->sessions));
    reading->parents =
        cli_reserve(reading->parents, rank, &reading->capacity, sizeof(*reading->parents));
    snprintf(parent, (size_t)info->parent_id.size + 2, "%s%.*s", is_fork ? ">" : "",
             WAL_ARG(info->parent_id));
    reading->parents[rank] = parent;
    plan->items[rank] = (struct retain_item){
        .id = cli_copy_slice(info->id),
        .title = cli_copy_slice(title),
        .number = info->number,
        .entries = info->entries,
        .last_sequence = info->last_sequence,
    };
    plan->sessions[rank] = (struct wal__retain_session){
        .updated_ms = info->updated_ms,
        .bytes = info->bytes,
        .parent = WAL__RETAIN_NONE,
        .is_trashed = (info->flags & WAL_SESSION_TRASHED) != 0,
        .is_selected =
            reading->project == NULL || cli_slice_equal(info->project, cli_slice(reading->project)),
    };
    plan->selected += plan->sessions[rank].is_selected && !plan->sessions[rank].is_trashed;
    *cli_ids_get_or_add(&reading->ranks, info->id) = (uint32_t)rank + 1;
    plan->count++;
}

/* What cannot be read ends the process. */
static void check(const struct reading *reading, enum wal_status status)
{
    cli_check(reading->cli, reading->cli->items[1], status);
}

static void read_list(struct reading *reading, uint32_t flags)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;

    options.flags = flags;

    for (cli_sessions_open(&list, reading->cli->store, &options, reading->cli->error);
         cli_sessions_next(&list);) {
        uint32_t *known = cli_ids_find(&reading->ranks, list.info.id);

        /* One that was moved between the two lists counts once. */
        if (known == NULL) {
            add_session(reading, &list.info);
        }
    }
    check(reading, list.status);
}

/* Returns the rank of the nearest ancestor that is listed: those between are deleted. */
static uint32_t find_ancestor(const struct reading *reading, const char *id)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;
    const uint32_t *found = NULL;

    options.flags = WAL_SESSION_CURSOR_LINEAGE;
    options.lineage_of = cli_slice(id);
    for (cli_sessions_open(&list, reading->cli->store, &options, reading->cli->error);
         cli_sessions_next(&list);) {
        found = (list.info.flags & WAL_SESSION_DELETED) != 0
                    ? NULL
                    : cli_ids_find(&reading->ranks, list.info.id);
        list.status = found != NULL ? WAL_END : WAL_OK;
    }
    check(reading, list.status == WAL_ENOTFOUND ? WAL_OK : list.status);
    return found != NULL ? *found - 1 : WAL__RETAIN_NONE;
}

static void find_parents(const struct reading *reading)
{
    struct retain_plan *plan = reading->plan;

    for (size_t i = 0; i < plan->count; i++) {
        const char *text = reading->parents[i];
        bool is_fork = text[0] == '>';
        const uint32_t *found = cli_ids_find(&reading->ranks, cli_slice(is_fork ? text + 1 : text));

        if (found != NULL) {
            plan->sessions[i].parent = *found - 1;
        } else if (is_fork) {
            plan->sessions[i].parent = find_ancestor(reading, plan->items[i].id);
        }
    }
}

static void protect(struct retain_plan *plan, size_t rank, enum retain_reason reason)
{
    plan->sessions[rank].is_protected = true;
    plan->items[rank].reason = reason;
}

static void read_claims(const struct reading *reading)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    struct wal_claim_cursor *claims = NULL;
    enum wal_status status =
        wal_claim_cursor_open(reading->cli->store, &claims, reading->cli->error);

    while (status == WAL_OK &&
           (status = wal_claim_cursor_next(claims, &claim, reading->cli->error)) == WAL_OK) {
        const uint32_t *rank = cli_ids_find(&reading->ranks, claim.session_id);

        if (rank != NULL) {
            protect(reading->plan, *rank - 1, RETAIN_CLAIMED);
        }
    }
    wal_claim_cursor_close(claims);
    check(reading, status == WAL_END ? WAL_OK : status);
}

/* --- choosing ----------------------------------------------------------- */

static bool is_pinned(struct wal_slice metadata)
{
    struct wal__json_member pinned = {.key = "pinned"};

    return metadata.size > 0 &&
           wal__json_members(metadata.data, (size_t)metadata.size, &pinned, 1, NULL) ==
               WAL__JSON_OK &&
           pinned.value.kind == WAL__JSON_TRUE;
}

/* Protects a session that is pinned. Returns whether it is. */
static bool check_pin(const struct reading *reading, size_t rank)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(reading->cli->store, cli_slice(reading->plan->items[rank].id), &session,
                         reading->cli->error);
    bool has_pin;

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, reading->cli->error);
    }
    /* It may be gone since it was listed. */
    check(reading, status == WAL_ENOTFOUND || status == WAL_ETRASHED ? WAL_OK : status);
    has_pin = status == WAL_OK && is_pinned(info.metadata);
    if (has_pin) {
        protect(reading->plan, rank, RETAIN_PINNED);
    }
    wal_session_close(session);
    return has_pin;
}

/* Only the metadata of sessions that were chosen is read. A pin among them changes the choice,
 * which is made again. */
static void choose(const struct reading *reading, const struct wal__retain_rules *rules)
{
    struct retain_plan *plan = reading->plan;
    bool *checked = cli_keep(cli_alloc(plan->count + 1));
    bool is_new = true;

    while (is_new) {
        is_new = false;
        (void)!wal__retain_choose(&cli_heap, rules, plan->sessions, (uint32_t)plan->count,
                                  &plan->chosen);
        for (size_t i = 0; i < plan->count; i++) {
            if (plan->sessions[i].rule != WAL__RETAIN_STAYS && !checked[i]) {
                checked[i] = true;
                is_new |= check_pin(reading, i);
            }
        }
    }
}

/* Reads the sessions and chooses. project: the rules apply to it only; NULL: to all. Ends the
 * process after an error. */
static void retain_plan_read(struct retain_plan *plan, const struct cli *cli,
                             const struct wal__retain_rules *rules, const char *project)
{
    static struct reading reading;

    reading = (struct reading){.cli = cli, .plan = plan, .project = project};
    read_list(&reading, 0);
    read_list(&reading, WAL_SESSION_CURSOR_TRASH);
    find_parents(&reading);
    read_claims(&reading);
    choose(&reading, rules);
}

/* --- moving ------------------------------------------------------------- */

/* The claim keeps those out that ask for one; by the expected sequence the session is as it was
 * listed, and copied to the archive. */
static enum wal_status move_unchanged(const struct retain_item *item, struct wal_session *session,
                                      struct wal_error *error)
{
    struct wal_session_remove_options options = WAL_INIT(wal_session_remove_options);
    enum wal_status status = wal_session_claim(session, error);

    options.flags = WAL_SESSION_REMOVE_TRASH | WAL_SESSION_REMOVE_EXPECT;
    options.expected_sequence = item->last_sequence;
    return status == WAL_OK ? wal_session_remove(session, &options, error) : status;
}

/* Moves a chosen session to the trash, unless it has changed since it was read: then its reason is
 * set. */
static enum wal_status retain_plan_move(struct retain_item *item, struct wal_store *store,
                                        struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(store, cli_slice(item->id), &session, error);

    if (status == WAL_OK) {
        status = move_unchanged(item, session, error);
    }
    wal_session_close(session);
    switch ((int)status) {
    case WAL_ECONFLICT:
        item->reason = RETAIN_CHANGED;
        return WAL_OK;
    case WAL_ECLAIMED:
        item->reason = RETAIN_CLAIMED;
        return WAL_OK;
    case WAL_ENOTFOUND:
    case WAL_ETRASHED:
        item->reason = RETAIN_GONE;
        return WAL_OK;
    default:
        return status;
    }
}

/* --- to the archive ------------------------------------------------------- */

struct copying {
    const struct cli *cli;
    struct retain_plan *plan;
};

static int32_t note_refusal(void *ctx, const struct wal_transfer_report *made)
{
    const struct copying *copying = ctx;

    if (made->kind != WAL_TRANSFER_REFUSED) {
        return 0;
    }
    for (size_t i = 0; i < copying->plan->count; i++) {
        struct retain_item *item = &copying->plan->items[i];

        if (copying->plan->sessions[i].rule != WAL__RETAIN_STAYS &&
            cli_slice_equal(made->session_id, cli_slice(item->id))) {
            item->reason = RETAIN_REFUSED;
            cli_note(copying->cli, item->id,
                     made->error != NULL ? made->error->text
                                         : wal_status_text((enum wal_status)made->status));
        }
    }
    return 0;
}

static enum wal_status copy(struct copying *copying, struct wal_store *from, struct wal_store *to,
                            struct wal_error *error)
{
    const struct retain_plan *plan = copying->plan;
    struct wal_slice *ids = cli_keep(cli_alloc((plan->count + 1) * sizeof(*ids)));
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);

    for (size_t i = 0; i < plan->count; i++) {
        if (plan->sessions[i].rule != WAL__RETAIN_STAYS) {
            ids[options.session_count++] = cli_slice(plan->items[i].id);
        }
    }
    options.sessions = ids;
    options.report = note_refusal;
    options.ctx = copying;
    return wal_store_merge(from, to, &options, NULL, error);
}

/* Copies the chosen sessions to the store in a directory, which is made when it is not there. One
 * that it refuses gets the reason, after a message. Ends the process after an error. */
static void retain_plan_archive(struct retain_plan *plan, const struct cli *cli,
                                struct wal_store *store, const char *directory)
{
    struct copying copying = {cli, plan};
    struct wal_store *archive = NULL;
    enum wal_status status = cli_try_open(cli, directory, WAL_OPEN_CREATE, &archive, cli->error);
    int code;

    cli_check(cli, directory, status);
    status = copy(&copying, store, archive, cli->error);
    code = cli_report(cli, directory, status);
    cli_need(cli, cli_close_store(cli, directory, archive, code));
}

/* --- back ----------------------------------------------------------------- */

int verb_restore(struct cli *cli, int argc, char **argv)
{
    struct cli_transfer transfer;
    struct wal_store *archive = NULL;
    enum wal_status status;
    int code;

    cli_parse_operands(cli, argc, argv, NULL, 4, argc);
    status = cli_try_open(cli, cli->items[2], WAL_OPEN_READ_ONLY, &archive, cli->error);
    cli_check(cli, cli->items[2], status);
    cli_use_store(cli, cli->items[1], 0);
    cli_transfer_init(&transfer, cli, "restore", NULL);
    cli_transfer_select(&transfer, archive, 3, cli->count);
    for (uint64_t i = 0; i < transfer.options.session_count; i++) {
        /* Those that are in the trash of the store come out of it. */
        status = wal_session_undelete(cli->store, transfer.sessions[i], cli->error);
        cli_check(cli, cli->items[3 + i], status == WAL_ENOTFOUND ? WAL_OK : status);
    }
    status = wal_store_merge(archive, cli->store, &transfer.options, &transfer.result, cli->error);
    code = cli_transfer_finish(&transfer, cli->items[2], status);
    return cli_close_store(cli, cli->items[2], archive, code);
}

/* --- the verb retain ---------------------------------------------------- */

enum { HOUR_MS = 3600 * 1000 };

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
    static const char *const names[] = {"", "older-than", "keep-last", "max-bytes"};

    return names[rule];
}

static const char *reason_text(enum retain_reason reason)
{
    static const char *const texts[] = {"",
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
    return is_chosen(retain, rank) && retain->plan.items[rank].reason == RETAIN_NONE;
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
        } else if (!is_chosen(retain, i) && session->is_selected && !session->is_trashed) {
            retain->pinned += reason == RETAIN_PINNED;
            retain->claimed += reason == RETAIN_CLAIMED;
            retain->held += session->is_held;
        }
    }
}

static void write_item(struct wal__json_out *json, const struct retain *retain, size_t rank)
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
        cli_json_member_text(json, "skipped", cli_slice(reason_text(item->reason)));
    }
    wal__json_out_close(json, '}');
}

static void write_json(const struct retain *retain)
{
    const struct cli_count numbers[] = {
        {"moved", retain->apply ? retain->moved : 0},
        {"bytes", retain->moved_bytes},
        {"staying", retain->plan.selected - retain->moved},
        {"pinned", retain->pinned},
        {"claimed", retain->claimed},
        {"ancestors", retain->held},
    };
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_bool(&json, "applied", retain->apply);
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    wal__json_out_member_open(&json, "sessions", '[');
    for (size_t i = 0; i < retain->plan.count; i++) {
        if (is_chosen(retain, i)) {
            write_item(&json, retain, i);
        }
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_number(const char **separator, uint64_t number, const char *what)
{
    if (number > 0) {
        printf("%s%" PRIu64 " %s", *separator, number, what);
        *separator = ", ";
    }
}

/* The sessions that stay in spite of a rule. */
static void print_staying(const struct retain *retain)
{
    const char *separator = "kept: ";

    print_number(&separator, retain->pinned, "pinned");
    print_number(&separator, retain->claimed, "claimed");
    print_number(&separator, retain->held, "with forks or children that are kept");
    if (separator[0] == ',') {
        putchar('\n');
    }
}

static void print_table(const struct cli *cli, const struct retain *retain)
{
    struct table table;

    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_TIME("UPDATED"), TABLE_NUMBER("SIZE"),
                             TABLE_ANY("RULE", 0, 0, TABLE_VARIED),
                             TABLE_TEXT("TITLE", TABLE_ID_MAX)));
    for (size_t i = 0; i < retain->plan.count; i++) {
        const struct wal__retain_session *session = &retain->plan.sessions[i];
        const char *title = retain->plan.items[i].title;

        if (is_moved(retain, i)) {
            table_put(&table, cli_session_short(cli->store, cli_slice(retain->plan.items[i].id)));
            table_put_age(&table, session->updated_ms, when_now_ms());
            table_put_size(&table, session->bytes);
            table_put(&table, cli_slice(rule_name(session->rule)));
            table_put(&table, cli_slice(title[0] != '\0' ? title : "(no messages)"));
        }
    }
    table_finish(&table);
}

static void print(const struct cli *cli, const struct retain *retain)
{
    char size[SIZE_TEXT];

    size_text(retain->moved_bytes, size);
    if (retain->moved > 0) {
        cli_start_pager(cli);
        print_table(cli, retain);
    }
    printf("%s %" PRIu64 " of %s, %s, to the trash\n", retain->apply ? "moved" : "would move",
           retain->moved, cli_counted(retain->plan.selected, "session", "sessions"), size);
    print_staying(retain);
    if (!retain->apply && retain->moved > 0) {
        puts("nothing has changed; --apply moves them");
    } else if (retain->moved > 0) {
        const char **ids = cli_keep(cli_alloc(retain->plan.count * sizeof(ids[0])));
        size_t count = 0;

        for (size_t i = 0; i < retain->plan.count; i++) {
            if (is_moved(retain, i)) {
                ids[count++] = retain->plan.items[i].id;
            }
        }
        cli_print_command(cli, "give the space back: ", "gc --erase", NULL, 0);
        cli_print_command(cli, "undo: ", "undelete", ids, count);
    }
}

/* --- moving ------------------------------------------------------------- */

/* Oldest first: a run that is cut short has moved what matters least. */
static void apply(const struct cli *cli, struct retain *retain, struct wal_store *store)
{
    for (size_t i = retain->plan.count; i > 0; i--) {
        struct retain_item *item = &retain->plan.items[i - 1];
        enum wal_status status = WAL_OK;

        if (is_moved(retain, i - 1)) {
            status = retain_plan_move(item, store, cli->error);
        }
        cli_check(cli, item->id, status);
        if (is_chosen(retain, i - 1) && item->reason != RETAIN_NONE) {
            cli_note(cli, item->id, reason_text(item->reason));
        }
    }
}

static void run(const struct cli *cli, struct retain *retain, struct wal_store *store)
{
    const struct retain_plan *plan = &retain->plan;

    retain_plan_read(&retain->plan, cli, &retain->rules, retain->project);
    if (!retain->all && plan->chosen > 0 && plan->chosen >= plan->selected) {
        cli_fail(cli, CLI_NEGATIVE, cli->items[1], "the rules leave none of %s; --all permits that",
                 cli_counted(plan->selected, "session", "sessions"));
    }
    if (retain->apply && retain->archive != NULL && plan->chosen > 0) {
        retain_plan_archive(&retain->plan, cli, store, retain->archive);
    }
    if (retain->apply) {
        apply(cli, retain, store);
    }
    count(retain);
    if (cli->json) {
        write_json(retain);
    } else {
        print(cli, retain);
    }
}

/* --- options ------------------------------------------------------------ */

/* An age: a number of hours, days, weeks or years. */
static int64_t parse_age(const struct cli *cli, const char *text)
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
    if (text[0] < '0' || text[0] > '9' || hours == 0 || value > (uint64_t)INT32_MAX / hours) {
        cli_fail(cli, CLI_USAGE, "--older-than", "'%s' is not an age such as 12h, 90d, 8w or 1y",
                 text);
    }
    return (int64_t)(value * hours) * HOUR_MS;
}

/* Completes the rules. */
static void read_rules(const struct cli *cli, const char *older_than,
                       struct wal__retain_rules *rules)
{
    rules->has_keep_last = rules->keep_last != UINT64_MAX;
    if (older_than == NULL && !rules->has_keep_last && rules->max_bytes == UINT64_MAX) {
        cli_fail(cli, CLI_USAGE, NULL, "needs a rule: --older-than, --keep-last or --max-bytes");
    }
    if (older_than != NULL) {
        rules->older_than_ms = when_now_ms() - parse_age(cli, older_than);
    }
}

int verb_retain(struct cli *cli, int argc, char **argv)
{
    static struct retain retain = {
        .rules = {.older_than_ms = INT64_MIN, .keep_last = UINT64_MAX, .max_bytes = UINT64_MAX}};
    const char *older_than = NULL;
    const struct cli_option options[] = {
        {.name = "older-than", .value = &older_than},
        {.name = "keep-last", .number = &retain.rules.keep_last, .max = UINT32_MAX},
        {.name = "max-bytes", .size = &retain.rules.max_bytes},
        {.name = "project", .value = &retain.project, .max = CLI_TEXT_MAX},
        {.name = "archive", .value = &retain.archive},
        {.name = "all", .flag = &retain.all},
        {.name = "apply", .flag = &retain.apply},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    read_rules(cli, older_than, &retain.rules);
    cli_use_store(cli, cli->items[1], retain.apply ? 0 : WAL_OPEN_READ_ONLY);
    run(cli, &retain, cli->store);
    return CLI_OK;
}
