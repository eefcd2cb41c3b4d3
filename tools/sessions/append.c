/*
 * append.c - the verb append: appends entries from standard input.
 *
 * Invariant: without --each all lines are one atomic batch; with --each a result line is printed
 * only after its entry is as durable as was requested.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "engine/base/system.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

enum {
    ID_SIZE = 36,    /* of a UUID */
    ATTEMPTS_MAX = 3 /* while the outcome is unknown */
};

/* Larger than any batch that the engine accepts. */
#define INPUT_MAX ((size_t)256 << 20)

struct append {
    const struct cli *cli;
    struct wal_session *session;
    struct wal_append_options options;
    uint32_t stream;
    struct wal_entry *entries;
    size_t count;
    size_t capacity;
    struct cli_texts texts;
    size_t line;   /* number of the current line */
    size_t *lines; /* line numbers of the entries */
    size_t line_capacity;
    char *tail;           /* with --each: the next expected tail */
    char id[ID_SIZE + 1]; /* with --each: of a line without one */
};

/* Adds the entry of a line; ignores a blank line. */
static void parse_entry(struct append *append, const char *line, size_t size)
{
    char what[64];
    char why[160];
    struct wal_entry *entry;
    bool is_message;

    append->line++;
    if (wal__line_is_blank(line, size)) {
        return;
    }
    append->entries =
        cli_reserve(append->entries, append->count, &append->capacity, sizeof(*entry));
    entry = &append->entries[append->count];
    if (!cli_entry_read(line, size, &append->texts, entry, why, sizeof(why))) {
        snprintf(what, sizeof(what), "line %zu", append->line);
        is_message = strstr(why, "\"role\"") != NULL || strstr(why, "\"content\"") != NULL;
        cli_fail(append->cli, CLI_NEGATIVE, what, "%s%s; %s", why,
                 is_message ? "; put a message into {\"type\":\"message\",\"payload\":{...}}" : "",
                 append->tail != NULL ? "the line was not appended" : "nothing was appended");
    }
    entry->stream = append->stream;
    append->lines =
        cli_reserve(append->lines, append->count, &append->line_capacity, sizeof(*append->lines));
    append->lines[append->count] = append->line;
    append->count++;
}

/* Gives an entry without an id one, a UUID of version 7: with an id it can be sent again. */
static void complete_id(struct append *append, struct wal_entry *entry)
{
    uint64_t ms;
    uint8_t bytes[10];

    if (entry->id.size > 0 || entry->id.data != NULL) {
        return;
    }
    wal__system_random(bytes, sizeof(bytes));
    ms = (uint64_t)when_now_ms();
    (void)snprintf(append->id, sizeof(append->id),
                   "%08x-%04x-7%01x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   (unsigned)(ms >> 16 & UINT32_MAX), (unsigned)(ms & 0xffff), bytes[0] & 0x0fu,
                   bytes[1], (bytes[2] & 0x3fu) | 0x80u, bytes[3], bytes[4], bytes[5], bytes[6],
                   bytes[7], bytes[8], bytes[9]);
    entry->id = cli_slice(append->id);
}

/* Whether the text has the id between quotation marks. */
static bool contains_id(const char *text, struct wal_slice id)
{
    char quoted[2 + CLI_ID_MAX + 1];

    if (id.size == 0 || id.size > CLI_ID_MAX) {
        return false;
    }
    snprintf(quoted, sizeof(quoted), "\"%.*s\"", (int)id.size, (const char *)id.data);
    return strstr(text, quoted) != NULL;
}

/* The line of the refused entry; 0 if it is unknown. */
static size_t find_refused_line(const struct append *append, enum wal_status status)
{
    const char *text = append->cli->error->text;
    size_t line = 0;

    if (status != WAL_ENOPARENT && status != WAL_EEXISTS) {
        return 0;
    }
    for (size_t i = 0; i < append->count; i++) {
        const struct wal_entry *entry = &append->entries[i];
        if (status == WAL_ENOPARENT && contains_id(text, entry->parent_id)) {
            return append->lines[i]; /* the first with that parent */
        }
        if (status == WAL_EEXISTS && contains_id(text, entry->id)) {
            if (line != 0) {
                return 0; /* ambiguous */
            }
            line = append->lines[i];
        }
    }
    return line;
}

static void check_entries(const struct append *append, enum wal_status status)
{
    char what[64];
    size_t line = append->tail != NULL ? append->line : find_refused_line(append, status);

    snprintf(what, sizeof(what), "line %zu", line);
    cli_check(append->cli, line == 0 ? append->cli->items[0] : what, status);
}

/* With --each: whether an append has an unknown outcome, and may be repeated by its id. */
static bool may_send_again(const struct append *append, enum wal_status status)
{
    return append->tail != NULL && append->entries[0].id.size > 0 &&
           (status == WAL_EPOISONED || status == WAL_EIO);
}

static void send_entries(struct append *append, struct wal_append_result *result)
{
    const uint64_t queued = append->count;
    enum wal_status status;

    *result = (struct wal_append_result)WAL_INIT(wal_append_result);
    if (append->count > UINT32_MAX) {
        cli_fail(append->cli, CLI_NEGATIVE, append->cli->items[0], "too many entries");
    }
    status = wal_append(append->session, append->entries, (uint32_t)append->count, &append->options,
                        result, append->cli->error);
    for (int i = 1; i < ATTEMPTS_MAX && may_send_again(append, status); i++) {
        status = wal_append(append->session, append->entries, (uint32_t)append->count,
                            &append->options, result, append->cli->error);
    }
    if (status == WAL_ECONFLICT) {
        cli_print_conflict(append->cli, append->options.expected_tail,
                           cli_slice(append->cli->error->actual));
    }
    check_entries(append, status);
    cli_print_appended(append->cli, append->session, result,
                       append->options.durability == WAL_QUEUED ? &queued : NULL);
}

static void append_batch(struct append *append)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    const uint64_t none = 0;
    size_t size = 0;
    size_t at = 0;
    char *input =
        cli_keep(cli_read_file(append->cli, NULL, INPUT_MAX, " for one batch; use --each", &size));

    while (at < size) {
        const char *newline = memchr(input + at, '\n', size - at);
        size_t end = newline != NULL ? (size_t)(newline - input) : size;
        parse_entry(append, input + at, end - at);
        at = end + 1;
    }
    if (append->count > 0) {
        send_entries(append, &result);
    } else {
        cli_print_appended(append->cli, append->session, &result,
                           append->options.durability == WAL_QUEUED ? &none : NULL);
    }
}

/* Appends a message of the user. */
static void append_message(struct append *append, const char *text)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal__json_out json;
    char *line = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&line, &size);

    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "type", cli_slice("message"));
    wal__json_out_member_open(&json, "payload", '{');
    cli_json_member_text(&json, "role", cli_slice("user"));
    cli_json_member_text(&json, "content", cli_slice(text));
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
    (void)fclose(file);
    parse_entry(append, line, size);
    send_entries(append, &result);
    free(line);
}

/* Sets the tail to expect after an append that expected append->tail. */
static void advance_tail(struct append *append, const struct wal_append_result *result)
{
    const struct wal_entry *entry = &append->entries[0];
    struct wal_slice tail = cli_slice(append->tail);
    bool is_root = (entry->flags & WAL_ENTRY_ROOT) != 0;
    bool moves = is_root ? tail.size == 0
                         : entry->parent_id.size == 0 || cli_slice_equal(entry->parent_id, tail);

    if (moves) {
        free(append->tail);
        append->tail = cli_copy_text(result->last_id, strlen(result->last_id));
        append->options.expected_tail = cli_slice(append->tail);
    }
}

static void append_each(struct append *append)
{
    struct wal_append_result result;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t line_size;

    append->tail = cli_copy_slice(append->options.expected_tail);
    append->options.expected_tail = cli_slice(append->tail);
    while (!cli_output_failed() && (line_size = getline(&line, &capacity, stdin)) > 0) {
        size_t size = (size_t)line_size - (line[line_size - 1] == '\n' ? 1 : 0);
        append->count = 0;
        parse_entry(append, line, size);
        if (append->count > 0) {
            complete_id(append, &append->entries[0]);
            send_entries(append, &result);
            advance_tail(append, &result);
        }
        cli_texts_deinit(&append->texts);
    }
    if (ferror(stdin)) {
        cli_fail(append->cli, CLI_FAILED, "standard input", "%s", strerror(errno));
    }
    free(line);
}

static void set_durability(struct append *append, const char *name)
{
    static const char *const names[] = {"durable", "written", "queued", "cluster"};
    static const enum wal_durability values[] = {WAL_DURABLE, WAL_WRITTEN, WAL_QUEUED, WAL_CLUSTER};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            append->options.durability = values[i];
            return;
        }
    }
    cli_fail(append->cli, CLI_USAGE, "--durability",
             "'%s' is not durable, written, queued or cluster", name);
}

int verb_append(struct cli *cli, int argc, char **argv)
{
    const char *durability = "durable";
    const char *expected = NULL;
    bool each = false;
    const char *user = NULL;
    bool creates = false;
    uint64_t stream = 0;
    const struct cli_option options[] = {
        {.name = "create", .flag = &creates},
        {.name = "each", .flag = &each},
        {.name = "user", .value = &user},
        {.name = "durability", .value = &durability},
        {.name = "expect-tail", .value = &expected, .max = CLI_ID_MAX, .may_be_empty = true},
        {.name = "stream", .number = &stream, .max = 255},
        {.name = NULL},
    };
    static struct append append;

    cli_parse_operands(cli, argc, argv, options, 3, 3);
    if (user != NULL && each) {
        cli_fail(cli, CLI_USAGE, "--each", "not allowed with --user");
    }
    append.cli = cli;
    append.options.struct_size = sizeof(append.options);
    set_durability(&append, durability);
    if (creates) {
        cli_check_new_id(cli, "SESSION", cli->items[2]);
    }
    append.stream = (uint32_t)stream;
    if (expected != NULL) {
        append.options.flags = WAL_APPEND_EXPECT;
        append.options.expected_tail = cli_slice(expected);
    }
    cli->adds_to_store = creates;
    cli_use_store(cli, cli->items[1], 0);
    if (creates) {
        cli_use_or_create_session(cli, cli->items[2]);
    } else {
        cli_use_session(cli, cli->items[2]);
    }
    append.session = cli->session;
    if (user != NULL) {
        append_message(&append, user);
    } else if (each) {
        append_each(&append);
    } else {
        append_batch(&append);
    }
    return CLI_OK;
}
