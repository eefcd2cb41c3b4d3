/*
 * usage.c - the verb usage: tokens and costs as the sessions state them (docs/seeing.md).
 */
#include "tools/usage/usage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentwal/record.h"
#include "convert/model/dialect.h"
#include "convert/model/model_table.h"
#include "format/payload/timestamp.h"
#include "tools/cli/session.h"
#include "tools/cli/tail.h"
#include "tools/cli/verbs.h"
#include "tools/project/project.h"

/* --- texts with numbers --------------------------------------------------- */

/* Returns the number of a text, from 0 on; a new one gets the next. */
static uint32_t number_of(struct cli_ids *names, const char *text)
{
    uint32_t *number = cli_ids_get_or_add(names, cli_slice(text));

    if (*number == 0) {
        *number = (uint32_t)names->count;
    }
    return *number - 1;
}

/* --- the answers of all sessions ------------------------------------------ */

static struct wal_slice key_text(const uint64_t *key)
{
    return (struct wal_slice){key, sizeof(*key)};
}

/* Makes the key one of the answer, unless it is one of another. */
static void add_key(struct usage_answers *answers, uint64_t key, size_t item)
{
    uint32_t *rank = key != 0 ? cli_ids_get_or_add(&answers->ranks, key_text(&key)) : NULL;

    if (rank != NULL && *rank == 0) {
        *rank = (uint32_t)item;
    }
}

/* Returns the rank + 1 of the answer with the key; 0: there is none. */
static size_t find(const struct usage_answers *answers, uint64_t key)
{
    const uint32_t *rank = key != 0 ? cli_ids_find(&answers->ranks, key_text(&key)) : NULL;

    return rank != NULL ? *rank : 0;
}

/* Returns the rank + 1 of the answer that the sample repeats; 0: none. */
static size_t find_repeated(const struct usage_answers *answers, const struct usage_sample *sample)
{
    size_t item = find(answers, sample->key);

    if (item == 0) {
        item = find(answers, sample->replay_key);
        if (item != 0 && !sample->is_sidechain && !answers->items[item - 1].is_sidechain) {
            return 0;
        }
    }
    return item;
}

static void set_counts(struct usage_answers *answers, struct usage_answer *answer,
                       const struct usage_sample *sample)
{
    answer->tokens = sample->tokens;
    answer->model = number_of(&answers->models, sample->model);
    answer->is_request = sample->is_request;
    answer->is_sidechain = sample->is_sidechain;
    answer->is_fast = sample->is_fast;
    answer->others = sample->others;
    if (sample->has_cost) {
        answer->has_cost = true;
        answer->cost = sample->cost;
    }
}

static bool is_better(const struct usage_sample *sample, const struct usage_answer *answer)
{
    if (sample->is_sidechain != answer->is_sidechain) {
        return answer->is_sidechain;
    }
    return sample->tokens.total > answer->tokens.total ||
           (sample->tokens.total == answer->tokens.total &&
            sample->tokens.output > answer->tokens.output);
}

void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample)
{
    struct usage_answer *answer;
    size_t item = find_repeated(answers, sample);

    if (item != 0) {
        answer = &answers->items[item - 1];
        if (answer->is_sidechain && !sample->is_sidechain) {
            answer->session = session;
            answer->time_ms = sample->time_ms;
        }
        if (is_better(sample, answer)) {
            set_counts(answers, answer, sample);
        }
        add_key(answers, sample->key, item);
        return;
    }
    answer = CLI_ADD(answers);
    *answer = (struct usage_answer){.time_ms = sample->time_ms, .session = session};
    memcpy(answer->parents, sample->parents, sizeof(answer->parents));
    memcpy(answer->parent_keys, sample->parent_keys, sizeof(answer->parent_keys));
    answer->began_ms = sample->began_ms;
    set_counts(answers, answer, sample);
    add_key(answers, sample->key, answers->count);
    add_key(answers, sample->replay_key, answers->count);
    add_key(answers, sample->thread, answers->count);
}

/* Whether the parent had the answer before the thread began. */
static bool is_of_parent(const struct usage_answers *answers, const struct usage_answer *answer,
                         size_t parent)
{
    size_t item = find(answers, answer->parent_keys[parent]);
    int64_t time_ms = item != 0 ? answers->items[item - 1].time_ms : 0;

    if (item != 0 && &answers->items[item - 1] != answer) {
        return answer->began_ms == 0 || time_ms <= answer->began_ms;
    }
    return false;
}

/* Removes answers that a thread repeats of the one that it came from. Threads that came from one
 * which is not there repeat each other. No answer is added later. */
static void settle(struct usage_answers *answers)
{
    size_t kept = 0;

    for (size_t i = 0; i < answers->count; i++) {
        struct usage_answer *answer = &answers->items[i];
        bool has_parent = false;

        for (size_t p = 0; p < USAGE_PARENTS; p++) {
            has_parent |= find(answers, answer->parents[p]) != 0;
            answer->is_repeated |= is_of_parent(answers, answer, p);
        }
        if (!has_parent && answer->parent_keys[0] != 0) {
            uint64_t key = answer->parent_keys[0] + 1; /* of the threads without their parent */

            answer->is_repeated |= find(answers, key) != 0;
            add_key(answers, key, i + 1);
        }
    }
    for (size_t i = 0; i < answers->count; i++) {
        if (!answers->items[i].is_repeated) {
            answers->items[kept++] = answers->items[i];
        }
    }
    answers->count = kept;
    cli_ids_deinit(&answers->ranks);
}

void usage_answers_deinit(struct usage_answers *answers)
{
    free(answers->items);
    cli_ids_deinit(&answers->ranks);
    cli_ids_deinit(&answers->models);
    *answers = (struct usage_answers){.items = NULL};
}

/* --- sums of answers ------------------------------------------------------ */

enum {
    DAY_SIZE = 32 /* bytes of a date with its terminator */
};

/* "2026-11-20"; empty for a time that is unknown. */
static void day_of(int64_t unix_ms, char text[DAY_SIZE])
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;

    text[0] = '\0';
    if (unix_ms != 0 && localtime_r(&seconds, &parts) != NULL &&
        strftime(text, DAY_SIZE, "%Y-%m-%d", &parts) == 0) {
        text[0] = '\0';
    }
}

/* The name of the answer's group; `day` may hold it. */
static const char *name_of(enum usage_by by, const struct usage *usage,
                           const struct usage_answer *answer, char day[DAY_SIZE])
{
    const struct usage_session *session = &usage->sessions[answer->session];

    switch (by) {
    case USAGE_BY_DAY:
        day_of(answer->time_ms, day);
        return day;
    case USAGE_BY_MODEL:
        return usage->answers.models.items[answer->model].text;
    case USAGE_BY_PROJECT:
        return session->project[0] != '\0' ? session->project : session->cwd;
    case USAGE_BY_CLIENT:
        return session->client;
    case USAGE_BY_SESSION:
        break;
    }
    return session->id;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void usage_group_add(struct usage_group *group, const struct usage_answer *answer)
{
    struct usage_tokens *sum = &group->tokens;

    sum->input = add(sum->input, answer->tokens.input);
    sum->output = add(sum->output, answer->tokens.output);
    sum->cache_read = add(sum->cache_read, answer->tokens.cache_read);
    sum->cache_write = add(sum->cache_write, answer->tokens.cache_write);
    sum->reasoning = add(sum->reasoning, answer->tokens.reasoning);
    sum->total = add(sum->total, answer->tokens.total);
    group->requests += answer->is_request ? 1 + answer->others : 0;
    group->cost += answer->cost;
    if (answer->has_cost) {
        group->costed++;
    } else if (answer->is_computed) {
        group->computed += 1 + answer->others;
        group->computed_cost += answer->cost;
    } else if (answer->is_request && answer->tokens.total > 0) {
        group->unpriced += 1 + answer->others;
    }
}

static void add_answer(struct usage_group *group, const struct usage *usage,
                       const struct usage_answer *answer)
{
    usage_group_add(group, answer);
    if (group->session == NULL || answer->time_ms > group->time_ms) {
        group->session = &usage->sessions[answer->session];
        group->time_ms = answer->time_ms;
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct usage_group *one = a;
    const struct usage_group *other = b;

    return strcmp(one->name, other->name);
}

static int compare_tokens(const void *a, const void *b)
{
    const struct usage_group *one = a;
    const struct usage_group *other = b;

    if (one->tokens.total != other->tokens.total) {
        return one->tokens.total < other->tokens.total ? 1 : -1;
    }
    if (one->cost > other->cost || one->cost < other->cost) {
        return one->cost < other->cost ? 1 : -1;
    }
    return compare_names(a, b);
}

/* The group of a name, added if it is new. */
static struct usage_group *find_group(struct usage_groups *groups, const char *name)
{
    uint32_t number = number_of(&groups->names, name);

    if (number == groups->count) {
        *CLI_ADD(groups) = (struct usage_group){.name = groups->names.items[number].text};
    }
    return &groups->items[number];
}

void usage_groups_fill(struct usage_groups *groups, const struct usage *usage, int64_t since_ms,
                       int64_t until_ms)
{
    for (size_t i = 0; i < usage->answers.count; i++) {
        const struct usage_answer *answer = &usage->answers.items[i];
        char day[DAY_SIZE];

        if ((since_ms != 0 && answer->time_ms < since_ms) ||
            (until_ms != 0 && answer->time_ms >= until_ms)) {
            continue;
        }
        add_answer(find_group(groups, name_of(groups->by, usage, answer, day)), usage, answer);
        add_answer(&groups->total, usage, answer);
    }
    for (size_t i = 0; groups->by == USAGE_BY_CLIENT && i < usage->session_count; i++) {
        (void)find_group(groups, usage->sessions[i].client); /* also one that states nothing */
    }
    if (groups->count > 0) {
        qsort(groups->items, groups->count, sizeof(*groups->items),
              groups->by == USAGE_BY_DAY ? compare_names : compare_tokens);
    }
}

void usage_groups_deinit(struct usage_groups *groups)
{
    free(groups->items);
    cli_ids_deinit(&groups->names);
    *groups = (struct usage_groups){.items = NULL};
}

bool usage_by_find(const char *name, enum usage_by *by)
{
    static const char *const names[] = {
        [USAGE_BY_DAY] = "day",         [USAGE_BY_MODEL] = "model",
        [USAGE_BY_PROJECT] = "project", [USAGE_BY_CLIENT] = "client",
        [USAGE_BY_SESSION] = "session",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            *by = (enum usage_by)i;
            return true;
        }
    }
    return false;
}

/* --- reads the answers of a store ----------------------------------------- */

/*
 * Entries are read segment by segment, in the order of the log; documents session by session, as
 * they are now.
 */

enum {
    ATTEMPTS = 4 /* while compaction replaces segments */
};

/* --- sessions ----------------------------------------------------------- */

static struct usage_session *find_session(struct usage *usage, uint64_t number)
{
    return usage->session_count == 0 ? NULL
                                     : bsearch(&number, usage->sessions, usage->session_count,
                                               sizeof(usage->sessions[0]), wal__compare_u64);
}

/* Where answers go. */
struct reading {
    struct usage *usage;
    uint32_t session;
};

static void read_add_answer(void *ctx, const struct usage_sample *sample)
{
    struct reading *reading = ctx;

    usage_answers_add(&reading->usage->answers, reading->session, sample);
}

/* Lists the sessions, and those that have documents. */
static enum wal_status list_sessions(struct usage *usage, struct wal_store *store,
                                     struct cli_ids *with_documents, struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list);) {
        struct usage_session *session;
        char client[CLI_CLIENT_SIZE];
        char label[CLI_TEXT_MAX];

        cli_session_client(store, &list.info, client);
        session = CLI_PUSH(usage->sessions, usage->session_count, usage->session_capacity);
        *session = (struct usage_session){
            .number = list.info.number,
            .id = cli_copy_slice(list.info.id),
            .title = cli_copy_slice(list.info.title),
            .label = cli_copy_slice(cli_session_title(store, &list.info, label)),
            .cwd = cli_copy_slice(list.info.cwd),
            .project = cli_copy_slice(list.info.project),
            .client = cli_copy_slice(cli_slice(client))};
        if (list.info.documents > 0) {
            (void)number_of(with_documents, session->id);
        }
    }
    if (usage->session_count > 0) {
        qsort(usage->sessions, usage->session_count, sizeof(usage->sessions[0]), wal__compare_u64);
    }
    return list.status;
}

/* --- documents ---------------------------------------------------------- */

static enum wal_status read_documents(struct usage *usage, struct wal_store *store,
                                      struct wal_session *session, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;
    struct reading reading = {.usage = usage};
    const struct usage_session *known = NULL;
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        known = find_session(usage, info.number);
    }
    if (known == NULL) {
        return status;
    }
    reading.session = (uint32_t)(known - usage->sessions);
    status = wal_doc_cursor_open(store, session, NULL, &cursor, error);
    while (status == WAL_OK) {
        status = wal_doc_cursor_next(cursor, &doc, error);
        if (status == WAL_OK && usage_may_count(doc.value)) {
            usage_read_document((struct wal__json_span){doc.value.data, (size_t)doc.value.size},
                                doc.modified_ms, read_add_answer, &reading);
        } else if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        }
    }
    wal_doc_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status read_all_documents(struct usage *usage, struct wal_store *store,
                                          const struct cli_ids *ids, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < ids->count && status == WAL_OK; i++) {
        struct wal_session *session = NULL;

        status = wal_session_open(store, cli_slice(ids->items[i].text), &session, error);
        if (status == WAL_OK) {
            status = read_documents(usage, store, session, error);
        }
        wal_session_close(session);
        if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        } else if (status == WAL_ENOTFOUND || status == WAL_ETRASHED) {
            status = WAL_OK; /* deleted meanwhile */
        }
    }
    return status;
}

/* --- entries ------------------------------------------------------------ */

static void read_record(void *arg, const struct wal_record *record)
{
    struct usage *usage = arg;
    struct usage_session *session;
    struct reading reading = {.usage = usage};
    struct wal__json_span line;
    struct wal__json_span time;
    int64_t time_ms = 0;

    if (record->kind != WAL_RECORD_ENTRY || !usage_may_count(record->entry->payload)) {
        return;
    }
    session = find_session(usage, record->session_number);
    if (session == NULL) {
        return; /* created meanwhile */
    }
    if (session->codex == NULL) {
        session->codex = cli_alloc(sizeof(*session->codex));
    }
    line = wal__line_text(record->entry->payload.data, (size_t)record->entry->payload.size);
    time = (struct wal__json_span){record->entry->timestamp.data,
                                   (size_t)record->entry->timestamp.size};
    (void)wal__model_time_read_text(time, &time_ms);
    reading.session = (uint32_t)(session - usage->sessions);
    usage_read_line(line, time_ms, session->codex, read_add_answer, &reading);
}

static enum wal_status read_segments(struct usage *usage, struct wal_store *store,
                                     struct wal_error *error)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    struct wal_segment_cursor *segments = NULL;
    uint64_t done = 0;
    enum wal_status status = wal_segment_cursor_open(store, &segments, error);

    while (status == WAL_OK &&
           (status = wal_segment_cursor_next(segments, &segment, error)) == WAL_OK) {
        progress_update(usage->progress, "reading", done++, 0, "segments");
        status = cli_tail_read_segment(store, &segment, 0, 0, 0, read_record, usage,
                                       &usage->damaged, error);
        if (cli_is_damage(status)) {
            usage->damaged++;
            status = WAL_OK;
        }
    }
    wal_segment_cursor_close(segments);
    return status == WAL_END ? WAL_OK : status;
}

/* --- both --------------------------------------------------------------- */

static enum wal_status read_once(struct usage *usage, struct wal_store *store,
                                 struct wal_error *error)
{
    struct cli_ids with_documents = {.items = NULL};
    enum wal_status status = list_sessions(usage, store, &with_documents, error);

    if (status == WAL_OK) {
        status = read_segments(usage, store, error);
    }
    if (status == WAL_OK) {
        status = read_all_documents(usage, store, &with_documents, error);
    }
    settle(&usage->answers);
    cli_ids_deinit(&with_documents);
    return status;
}

enum wal_status usage_read(struct usage *usage, struct wal_store *store, struct wal_error *error)
{
    struct progress *progress = usage->progress;
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        status = read_once(usage, store, error);
        if (status != WAL_ENOTFOUND) {
            break;
        }
        usage_deinit(usage); /* compaction replaced a segment: read again */
        usage->progress = progress;
    }
    progress_clear(progress);
    return status;
}

void usage_deinit(struct usage *usage)
{
    for (size_t i = 0; i < usage->session_count; i++) {
        struct usage_session *session = &usage->sessions[i];

        free(session->id);
        free(session->title);
        free(session->label);
        free(session->cwd);
        free(session->project);
        free(session->client);
        free(session->codex);
    }
    free(usage->sessions);
    usage_answers_deinit(&usage->answers);
    *usage = (struct usage){.sessions = NULL};
}

/* --- prints sums of answers ----------------------------------------------- */

enum {
    COST_SIZE = 64, /* bytes of a text with its terminator */
    NAME_MIN = 20   /* columns of a name, where sums do not have room */
};

/* --- JSON --------------------------------------------------------------- */

static void write_cost(struct wal__json_out *json, const char *key, bool has_cost, double cost)
{
    char text[COST_SIZE] = "null";

    if (has_cost) {
        snprintf(text, sizeof(text), "%.9g", cost);
    }
    wal__json_out_key(json, key);
    cli_json_raw(json, cli_slice(text));
}

void usage_costs_write(struct wal__json_out *json, const struct usage_group *group)
{
    wal__json_out_member_count(json, "requests", group->requests);
    write_cost(json, "cost", group->costed + group->computed > 0, group->cost);
    wal__json_out_member_count(json, "costed", group->costed);
    write_cost(json, "computedCost", group->computed > 0, group->computed_cost);
    wal__json_out_member_count(json, "computed", group->computed);
    wal__json_out_member_count(json, "unpriced", group->unpriced);
}

void usage_tokens_write(struct wal__json_out *json, const struct usage_tokens *tokens)
{
    const struct cli_count counts[] = {
        {"inputTokens", tokens->input},          {"outputTokens", tokens->output},
        {"cacheReadTokens", tokens->cache_read}, {"cacheWriteTokens", tokens->cache_write},
        {"reasoningTokens", tokens->reasoning},  {"totalTokens", tokens->total},
    };

    cli_json_counts(json, counts, sizeof(counts) / sizeof(counts[0]));
}

/* Writes what identifies a group. */
static void write_name(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group)
{
    switch (by) {
    case USAGE_BY_DAY:
        cli_json_member_text_or_null(json, "day", cli_slice(group->name));
        break;
    case USAGE_BY_MODEL:
        cli_json_member_text_or_null(json, "model", cli_slice(group->name));
        break;
    case USAGE_BY_CLIENT:
        cli_json_member_text_or_null(json, "client", cli_slice(group->name));
        break;
    case USAGE_BY_PROJECT:
        cli_json_member_text_or_null(json, "projectId", cli_slice(group->session->project));
        cli_json_member_text_or_null(json, "cwd", cli_slice(group->session->cwd));
        break;
    case USAGE_BY_SESSION:
        cli_json_member_text_or_null(json, "sessionId", cli_slice(group->session->id));
        cli_json_member_text_or_null(json, "title", cli_slice(group->session->title));
        cli_json_member_text_or_null(json, "cwd", cli_slice(group->session->cwd));
        break;
    }
}

void usage_group_write(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group)
{
    wal__json_out_open(json, '{');
    write_name(json, by, group);
    usage_tokens_write(json, &group->tokens);
    usage_costs_write(json, group);
    wal__json_out_close(json, '}');
}

/* Writes a line of JSON for each group. */
static void usage_groups_write(const struct usage_groups *groups)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    for (size_t i = 0; i < groups->count; i++) {
        usage_group_write(&json, groups->by, &groups->items[i]);
        wal__json_out_newline(&json);
    }
}

/* --- the table ---------------------------------------------------------- */

static void put_tokens(struct table *table, uint64_t count)
{
    char text[SIZE_TEXT] = "";

    if (count > 0) {
        count_text(count, text);
    }
    table_put(table, cli_slice(text));
}

/* Puts the cells after those that name the group. */
static void put_sums(struct table *table, const struct usage_group *group)
{
    const struct usage_tokens *tokens = &group->tokens;
    char cost[COST_SIZE] = "";

    if (group->costed + group->computed > 0) {
        const bool is_least = group->cost > 0 && group->cost < 0.01;

        snprintf(cost, sizeof(cost), "%s%s$%.2f", group->computed > 0 ? "~" : "",
                 is_least ? "<" : "", is_least ? 0.01 : group->cost);
    }
    put_tokens(table, group->requests);
    put_tokens(table, tokens->input);
    put_tokens(table, tokens->output);
    put_tokens(table, tokens->cache_read);
    put_tokens(table, tokens->cache_write);
    put_tokens(table, tokens->reasoning);
    put_tokens(table, tokens->total);
    table_put(table, cli_slice(cost));
}

/* Puts the id of a session, else nothing, and the name of a group. */
static void put_name(struct table *table, struct wal_store *store, enum usage_by by,
                     const struct usage_group *group)
{
    const struct usage_session *session = group->session;

    table_put(table, by == USAGE_BY_SESSION ? cli_session_short(store, cli_slice(session->id))
                                            : cli_slice(""));
    if (by == USAGE_BY_SESSION) {
        table_put(table, cli_slice(session->label));
    } else if (by == USAGE_BY_PROJECT && strcmp(group->name, CLI_PROJECT_GLOBAL) != 0 &&
               session->cwd[0] != '\0') {
        table_put_directory(table, cli_slice(session->cwd));
    } else {
        table_put(table, cli_slice(group->name[0] == '\0'   ? "(unknown)"
                                   : by == USAGE_BY_PROJECT ? "(no repository)"
                                                            : group->name));
    }
}

/* Prints a table with a total. */
static void usage_groups_print(const struct cli *cli, const struct usage_groups *groups)
{
    static const char *const heads[] = {
        [USAGE_BY_DAY] = "DAY",       [USAGE_BY_MODEL] = "MODEL",   [USAGE_BY_PROJECT] = "PROJECT",
        [USAGE_BY_CLIENT] = "CLIENT", [USAGE_BY_SESSION] = "TITLE",
    };
    const unsigned optional = TABLE_RIGHT | TABLE_FILLED | TABLE_OPTIONAL;
    const unsigned cut =
        groups->by == USAGE_BY_PROJECT || groups->by == USAGE_BY_MODEL ? TABLE_KEEP_END : 0U;
    struct table table;

    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_ANY(heads[groups->by], 0, NAME_MIN, cut),
                             TABLE_NUMBER("REQS"), TABLE_NUMBER("INPUT"), TABLE_NUMBER("OUTPUT"),
                             TABLE_ANY("CACHE-R", 0, 0, optional),
                             TABLE_ANY("CACHE-W", 0, 0, optional),
                             TABLE_ANY("REASON", 0, 0, optional), TABLE_NUMBER("TOTAL"),
                             TABLE_NUMBER("COST")));
    for (size_t i = 0; i < groups->count; i++) {
        put_name(&table, cli->store, groups->by, &groups->items[i]);
        put_sums(&table, &groups->items[i]);
    }
    if (groups->count > 0) {
        table_put(&table, cli_slice(""));
        table_put(&table, cli_slice("TOTAL"));
        put_sums(&table, &groups->total);
    }
    table_finish(&table);
}

/* --- usage ---------------------------------------------------------------- */

/* Notes which costs are computed, and the models without a price: those with most requests. */
static void note_prices(const struct cli *cli, const struct usage *usage,
                        const struct usage_prices *prices, const struct usage_group *total)
{
    enum {
        NAMED = 5 /* models that are named */
    };
    const struct usage_answers *answers = &usage->answers;
    uint64_t *counts = cli_alloc((answers->models.count + 1) * sizeof(*counts));
    size_t size = 0;
    char *text = NULL;
    FILE *file;

    if (total->computed > 0) {
        char *note = cli_format(
            "~: computed with %s%s%s for %" PRIu64 " of %" PRIu64 " requests",
            prices->path == NULL ? "list prices" : prices->path, prices->date == NULL ? "" : " of ",
            prices->date == NULL ? "" : prices->date, total->computed, total->requests);

        cli_note(cli, "usage", note);
        free(note);
    }
    for (size_t i = 0; i < answers->count; i++) {
        struct usage_group group = {.name = NULL};

        usage_group_add(&group, &answers->items[i]);
        counts[answers->items[i].model] += group.unpriced;
    }
    file = cli_open_memory(&text, &size);
    fprintf(file, "no price of");
    for (int i = 0; i <= NAMED; i++) {
        size_t most = 0;

        for (size_t j = 0; j < answers->models.count; j++) {
            most = counts[j] > counts[most] ? j : most;
        }
        if (counts[most] == 0) {
            break;
        }
        if (i == NAMED) {
            fprintf(file, ", and others");
            break;
        }
        fputs(i == 0 ? " " : ", ", file);
        cli_print_name(file, cli_slice(answers->models.items[most].text[0] == '\0'
                                           ? "requests without a model"
                                           : answers->models.items[most].text));
        fprintf(file, " (%s)", cli_counted(counts[most], "request", "requests"));
        counts[most] = 0;
    }
    fclose(file);
    if (total->unpriced > 0) {
        cli_note(cli, "usage", text);
    }
    free(text);
    free(counts);
}

/* Notes the clients whose sessions state no count and no cost. */
static void note_silent(const struct cli *cli, const struct usage *usage)
{
    struct cli_ids clients = {.items = NULL};
    uint64_t *sessions = cli_alloc((usage->session_count + 1) * sizeof(*sessions));
    bool *states = cli_alloc((usage->session_count + 1) * sizeof(*states));

    for (size_t i = 0; i < usage->session_count; i++) {
        sessions[number_of(&clients, usage->sessions[i].client)]++;
    }
    for (size_t i = 0; i < usage->answers.count; i++) {
        const char *client = usage->sessions[usage->answers.items[i].session].client;

        states[number_of(&clients, client)] = true;
    }
    for (size_t i = 0; i < clients.count; i++) {
        if (!states[i]) {
            char *note = cli_format("%s: %s no token counts", clients.items[i].text,
                                    cli_counted(sessions[i], "session states", "sessions state"));

            cli_note(cli, "usage", note);
            free(note);
        }
    }
    cli_ids_deinit(&clients);
    free(sessions);
    free(states);
}

/* Prints the sums; damage makes the exit code CLI_NEGATIVE. */
static int print(const struct cli *cli, const struct usage *usage,
                 const struct usage_prices *prices, const struct usage_groups *groups)
{
    if (cli->json) {
        usage_groups_write(groups);
    } else if (groups->total.session == NULL) {
        cli_note(cli, "usage", "no session states a token count or a cost");
    } else {
        cli_start_pager(cli);
        usage_groups_print(cli, groups);
        note_prices(cli, usage, prices, &groups->total);
        note_silent(cli, usage);
    }
    if (usage->damaged == 0) {
        return CLI_OK;
    }
    return cli_error(cli, CLI_NEGATIVE, "usage",
                     "%s could not be read and %s not counted; agentwal check shows them",
                     cli_counted(usage->damaged, "record", "records"),
                     cli_plural(usage->damaged, "is", "are"));
}

static int count(const struct cli *cli, struct wal_store *store, const struct usage_prices *prices,
                 enum usage_by by, int64_t since_ms, int64_t until_ms)
{
    struct usage_groups groups = {.by = by};
    struct progress progress;
    struct usage usage = {.progress = &progress};
    enum wal_status status;
    int code;

    progress_init(&progress, !cli->no_progress);
    status = usage_read(&usage, store, cli->error);
    cli_check(cli, "usage", status);
    usage_answers_price(&usage.answers, prices);
    usage_groups_fill(&groups, &usage, since_ms, until_ms);
    code = print(cli, &usage, prices, &groups);
    usage_groups_deinit(&groups);
    usage_deinit(&usage);
    return code;
}

int usage_run(struct cli *cli, int argc, char **argv)
{
    const char *by_text = NULL;
    int64_t since_ms = 0;
    int64_t until_ms = 0;
    const char *prices_path = NULL;
    struct usage_prices prices = {.items = NULL};
    const struct cli_option options[] = {
        {.name = "by", .value = &by_text},
        {.name = "since", .time = &since_ms},
        {.name = "until", .time = &until_ms},
        {.name = "prices", .value = &prices_path},
        {.name = NULL},
    };
    enum usage_by by = USAGE_BY_DAY;
    int code;

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    if (by_text != NULL && !usage_by_find(by_text, &by)) {
        cli_fail(cli, CLI_USAGE, "--by",
                 "\"%s\" is no group; use day, model, project, client or session", by_text);
    }
    usage_prices_open(&prices, cli, prices_path);
    cli_use_store(cli, cli->items[1], 0);
    code = count(cli, cli->store, &prices, by, since_ms, until_ms);
    usage_prices_deinit(&prices);
    return code;
}
