/*
 * walcat.c - the verbs cat and tree: print the entries, branches or frames of a store; by the name
 * walcat also its sessions (walcat.h).
 *
 * In the tree an entry is printed below its parent; the drawing moves to the right only where a
 * branch begins. The middle of a long run without branches is omitted. Memory is one node per
 * entry, and there is no recursion.
 *
 * Invariant: nothing is appended to the store. Reading holds no lock; only
 * --follow joins the store's processes, to see what they append. An entry that
 * cannot be read is reported and skipped; the others are printed, and the exit
 * code is CLI_NEGATIVE. A payload reaches the terminal only as plain text.
 * Every entry of a tree is drawn or counted once.
 */
#include "tools/walcat/walcat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/source/source_lines.h"
#include "format/json/json_scan.h"
#include "format/payload/message_text.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/shown/shown.h"
#include "tools/walcat/live.h"

/* Reports that the entry after `previous`, or the first entry if that is empty, cannot be read.
 * Returns CLI_NEGATIVE. */
static int report_lost(const struct cli *cli, struct wal_slice previous, enum wal_status status,
                       const struct wal_error *error)
{
    char what[320] = "the first entry in view";

    if (previous.size > 0) {
        snprintf(what, sizeof(what), "the entry after %.*s", (int)previous.size,
                 (const char *)previous.data);
    }
    cli_report_error(cli, what, status, error);
    return CLI_NEGATIVE;
}

/* --- the tree ----------------------------------------------------------- */

#define RUN_MAX 16 /* a longer run is shortened */

#define RUN_ENDS 4 /* entries drawn at each end of a shortened run */

#define DEPTH_MAX 32 /* deeper branches share a column */

#define PREVIEW 48 /* columns, without a terminal */

#define PREVIEW_MIN 16

#define HEADS_ROOM 12 /* columns for the heads at an entry */

#define NONE 0 /* node 0 is the parent of all roots */

struct node {
    struct wal_entry entry;
    uint32_t first_child;
    uint32_t last_child;
    uint32_t next; /* next sibling */
    bool is_head;
};

struct tree {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    struct cli_short_ids short_ids; /* for people, else none */
    struct shown_documents documents;
    struct node *nodes;
    size_t count;
    size_t capacity;
    struct cli_ids ids;
    struct cli_heads heads;
    uint32_t *head_nodes; /* NONE: not in this stream */
    int code;
};

/* A branch to draw: its first node and the lines to its left. */
struct branch {
    uint32_t node;
    uint32_t depth;
    bool is_last;
    uint32_t bars; /* bit N: more branches follow at depth N */
};

struct stack {
    struct branch *items;
    size_t count;
    size_t capacity;
};

static void add_node(struct tree *tree, const struct wal_entry *entry)
{
    uint32_t at = (uint32_t)tree->count;
    const uint32_t *found = cli_ids_find(&tree->ids, entry->parent_id);
    uint32_t parent = found != NULL ? *found : NONE;
    struct node *above;

    if (cli_entry_is_repeated(tree->session, entry)) {
        *cli_ids_get_or_add(&tree->ids, entry->id) = parent;
        return;
    }
    tree->nodes = cli_reserve(tree->nodes, tree->count, &tree->capacity, sizeof(tree->nodes[0]));
    tree->nodes[tree->count] = (struct node){.entry = *entry};
    (void)cli_keep(cli_entry_detach(&tree->nodes[tree->count].entry));
    tree->count++;
    above = &tree->nodes[parent];
    if (above->last_child == NONE) {
        above->first_child = at;
    } else {
        tree->nodes[above->last_child].next = at;
    }
    above->last_child = at;
    *cli_ids_get_or_add(&tree->ids, entry->id) = at;
}

static void read_tree(struct tree *tree, struct wal_entry_cursor *cursor)
{
    struct wal_entry entry;
    enum wal_status status = WAL_OK;

    tree->nodes = cli_reserve(NULL, 0, &tree->capacity, sizeof(tree->nodes[0]));
    tree->nodes[NONE] = (struct node){.next = NONE};
    tree->count = 1;
    for (size_t i = 0; i < tree->documents.count; i++) {
        add_node(tree, &tree->documents.items[i]);
    }
    while (status != WAL_END && tree->count < UINT32_MAX) {
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        status = wal_entry_cursor_next(cursor, &entry, tree->cli->error);
        if (status == WAL_OK) {
            shown_documents_adopt(&tree->documents, &entry);
            add_node(tree, &entry);
        } else if (cli_is_damage(status)) {
            const struct node *last = &tree->nodes[tree->count - 1];
            tree->code = report_lost(tree->cli, last->entry.id, status, tree->cli->error);
        } else if (status != WAL_END) {
            cli_check(tree->cli, tree->cli->items[1], status);
        }
    }
}

static void put_indent(const struct branch *branch, const char *prefix)
{
    for (uint32_t i = 1; i < branch->depth; i++) {
        fputs((branch->bars >> i & 1) != 0 ? "│  " : "   ", stdout);
    }
    fputs(prefix, stdout);
}

/* The text before a line of the branch. */
static const char *put_branch_prefix(const struct branch *branch, bool is_first)
{
    if (branch->depth == 0) {
        return "";
    }
    if (is_first) {
        return branch->is_last ? "└─ " : "├─ ";
    }
    return branch->is_last ? "   " : "│  ";
}

/* Finds the nodes of the stream's heads; a head at a hidden entry is drawn at the nearest
 * ancestor. */
static void find_heads(struct tree *tree, struct wal_entry_cursor *cursor, uint32_t stream)
{
    tree->head_nodes = cli_alloc(tree->heads.count * sizeof(uint32_t));
    for (size_t i = 0; i < tree->heads.count; i++) {
        struct wal_entry entry = WAL_INIT(wal_entry);
        struct wal_slice id = tree->heads.items[i].entry_id;
        uint32_t *node = cli_ids_find(&tree->ids, id);
        if (tree->heads.items[i].stream != stream) {
            continue;
        }
        while (node == NULL && id.size > 0 &&
               wal_entry_cursor_get(cursor, id, &entry, NULL) == WAL_OK) {
            id = entry.parent_id;
            node = cli_ids_find(&tree->ids, id);
        }
        if (node != NULL) {
            tree->head_nodes[i] = *node;
            tree->nodes[*node].is_head = true;
        }
    }
}

static void put_heads(const struct tree *tree, uint32_t at)
{
    const char *before = "  <- ";

    for (size_t i = 0; i < tree->heads.count; i++) {
        if (tree->head_nodes[i] == at) {
            fputs(before, stdout);
            terminal_put_style(tree->cli->terminal, TERMINAL_HEAD);
            cli_print_name(stdout, tree->heads.items[i].name);
            terminal_put_style(tree->cli->terminal, TERMINAL_PLAIN);
            before = ", ";
        }
    }
}

static void put_node(struct tree *tree, const struct branch *branch, uint32_t at, bool is_first)
{
    const struct wal_entry *entry = &tree->nodes[at].entry;

    const struct terminal *terminal = tree->cli->terminal;
    struct wal_slice id = cli_short_id(&tree->short_ids, entry->id);
    size_t columns = PREVIEW;
    size_t used = branch->depth > 0 ? (size_t)3 * branch->depth : 0;
    size_t type_size = (size_t)entry->type.size;
    char *preview = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&preview, &size);

    put_indent(branch, put_branch_prefix(branch, is_first));
    terminal_put_style(terminal, TERMINAL_ID);
    used += cli_print_name(stdout, id) + type_size + 4;
    if (terminal->columns > 0) {
        used += tree->nodes[at].is_head ? HEADS_ROOM : 0;
        columns = terminal->columns > used + PREVIEW_MIN ? terminal->columns - used : PREVIEW_MIN;
    }
    walcat_print_preview(file, tree->store, entry, columns);
    fclose(file);
    terminal_put_style(terminal, TERMINAL_DIM);
    /* The author of a message of Claude Code is its type, or of results a tool. */
    if ((size < type_size + 3 || memcmp(preview + 2, entry->type.data, type_size) != 0 ||
         preview[2 + type_size] != ':') &&
        !(cli_slice_equal(entry->type, cli_slice("user")) && strncmp(preview, "  tool:", 7) == 0)) {
        fputs("  ", stdout);
        cli_print_text(stdout, entry->type, 0, false);
    }
    terminal_put_style(terminal, TERMINAL_PLAIN);
    fputs(preview, stdout);
    free(preview);
    if (tree->nodes[at].is_head) {
        put_heads(tree, at);
    }
    putchar('\n');
}

static bool is_only_child(const struct tree *tree, uint32_t child)
{
    return child != NONE && tree->nodes[child].next == NONE;
}

/* Draws the run that starts at branch->node; returns its last node. */
static uint32_t draw_run(struct tree *tree, const struct branch *branch)
{
    uint32_t at = branch->node;
    uint64_t length = 1;
    uint64_t rank = 0;
    uint64_t gap = 0;

    while (is_only_child(tree, tree->nodes[at].first_child)) {
        at = tree->nodes[at].first_child;
        length++;
    }
    at = branch->node;
    for (;; rank++) {
        if (length <= RUN_MAX || rank < RUN_ENDS || rank + RUN_ENDS >= length ||
            tree->nodes[at].is_head) {
            if (gap > 0) {
                put_indent(branch, put_branch_prefix(branch, false));
                printf("... %" PRIu64 " more\n", gap);
            }
            put_node(tree, branch, at, rank == 0);
            gap = 0;
        } else {
            gap++;
        }
        if (rank + 1 == length) {
            return at;
        }
        at = tree->nodes[at].first_child;
    }
}

/* Pushes the branches below a node, the first one on top. */
static void push_children(const struct tree *tree, struct stack *stack, uint32_t at,
                          const struct branch *above)
{
    size_t from = stack->count;
    uint32_t depth = above->depth < DEPTH_MAX - 1 ? above->depth + 1 : above->depth;
    uint32_t bars = above->bars;

    if (above->depth > 0 && !above->is_last) {
        bars |= (uint32_t)1 << above->depth;
    }
    for (uint32_t child = tree->nodes[at].first_child; child != NONE;
         child = tree->nodes[child].next) {
        *CLI_ADD(stack) = (struct branch){
            .node = child,
            .depth = depth,
            .is_last = tree->nodes[child].next == NONE,
            .bars = bars,
        };
    }
    for (size_t i = from, j = stack->count; i + 1 < j; i++) {
        struct branch item = stack->items[i];
        stack->items[i] = stack->items[--j];
        stack->items[j] = item;
    }
}

static void draw(struct tree *tree)
{
    struct stack stack = {.items = NULL};
    struct branch top = {.node = NONE};
    uint32_t end;

    if (is_only_child(tree, tree->nodes[NONE].first_child)) {
        top.node = tree->nodes[NONE].first_child;
        end = draw_run(tree, &top);
        push_children(tree, &stack, end, &top);
    } else {
        push_children(tree, &stack, NONE, &top);
    }
    while (stack.count > 0 && !cli_output_failed()) {
        struct branch branch = stack.items[--stack.count];
        end = draw_run(tree, &branch);
        push_children(tree, &stack, end, &branch);
    }
    free(stack.items);
}

/* Adds all ids that a short id may be confused with: also of the entries that the drawing hides,
 * and of heads. The cursor must stay open. */
static void add_short_ids(struct tree *tree, struct wal_entry_cursor *all)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < tree->heads.count; i++) {
        cli_short_ids_add(&tree->short_ids, tree->heads.items[i].name);
    }
    for (size_t i = 0; i < tree->documents.count; i++) {
        cli_short_ids_add(&tree->short_ids, tree->documents.items[i].id);
    }
    while (status == WAL_OK) {
        status = wal_entry_cursor_next(all, &entry, NULL);
        if (status == WAL_OK) {
            cli_short_ids_add(&tree->short_ids, entry.id);
        }
    }
    tree->short_ids.is_complete = status == WAL_END;
}

/* Draws the branches of a session with its heads and redacted entries. */
static int print_tree(const struct cli *cli, struct wal_session *session,
                      const struct walcat_options *view)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE |
                 WAL_ENTRY_CURSOR_PINNED | (view->deltas ? WAL_ENTRY_CURSOR_DELTAS : 0U),
        .stream = view->stream,
    };
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry_cursor *all = NULL;
    static struct tree tree;
    enum wal_status status = cli_heads_read(&tree.heads, session, cli->error);

    tree.cli = cli;
    tree.store = view->store;
    tree.session = session;
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &cursor, cli->error);
    }
    if (status == WAL_OK && view->stream == 0) {
        status = shown_documents_read(&tree.documents, view->store, session, cursor, cli->error);
    }
    cli_check(cli, cli->items[1], status);
    read_tree(&tree, cursor);
    find_heads(&tree, cursor, view->stream);
    options.flags |= WAL_ENTRY_CURSOR_DELTAS;
    if (wal_entry_cursor_open(session, &options, &all, cli->error) == WAL_OK) {
        add_short_ids(&tree, all);
    }
    cli_start_pager(cli);
    draw(&tree);
    wal_entry_cursor_close(all);
    wal_entry_cursor_close(cursor);
    return tree.code;
}

/* Prints the nodes and heads of the conversation as an object. */
static int write_tree(const struct cli *cli, struct wal_session *session)
{
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};
    enum wal_status status;

    cli_json_begin(&json);
    status = shown_tree(&shown, cli->store, session, cli->error);
    wal__json_out_close_line(&json);
    return cli_report(cli, cli->items[1], status);
}

/* --- entries ------------------------------------------------------------ */

struct writer {
    FILE *file;
    size_t columns; /* limit of a preview; 0: no limit, and newlines */
    size_t used;
    bool names_notes;                        /* of a message that has other parts too */
    const struct shown_subagents *subagents; /* or NULL */
};

/* Prints a string of a part. */
static void put_part_text(struct writer *writer, const struct wal__message_part *part,
                          const struct wal__json_token *string)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_part_text(part, string, &texts);

    if (writer->columns == 0) {
        cli_print_text(writer->file, text, 0, true);
    } else if (writer->used < writer->columns) {
        writer->used += cli_print_text(writer->file, text, writer->columns - writer->used, false);
    }
    cli_texts_deinit(&texts);
}

/* Prints a string. */
static void put_string(struct writer *writer, const struct wal__json_token *token)
{
    const struct wal__message_part part = {.kind = WAL__PART_TEXT};

    put_part_text(writer, &part, token);
}

static void put_literal(struct writer *writer, const char *text)
{
    size_t size = strlen(text);

    if (writer->columns == 0 || writer->used < writer->columns) {
        fputs(text, writer->file);
        writer->used += size;
    }
}

/* Prints a text of a tool's result. */
static void put_result_text(void *ctx, const struct wal__message_part *part)
{
    put_part_text(ctx, part, &part->text);
}

static void put_call(struct writer *writer, const struct wal__json_token *name,
                     const struct wal__json_token *arguments)
{
    struct wal_slice text = {arguments->span.data, arguments->span.size};

    put_literal(writer, "[call ");
    put_string(writer, name);
    if (arguments->kind != WAL__JSON_NONE) {
        put_literal(writer, " ");
        if (writer->columns == 0) {
            struct cli_texts texts = {.items = NULL};

            text = arguments->kind == WAL__JSON_STRING ? cli_unescape(arguments, &texts) : text;
            cell_print(writer->file, text.data, (size_t)text.size, 200, 0);
            cli_texts_deinit(&texts);
        } else if (writer->used < writer->columns) {
            writer->used +=
                cli_print_text(writer->file, text, writer->columns - writer->used, false);
        }
    }
    put_literal(writer, "]");
}

/* Prints the session that a call started. */
static void put_subagent(struct writer *writer, const struct wal__message_part *part)
{
    struct cli_texts texts = {.items = NULL};
    struct wal__json_token id = shown_call_id(part);
    const struct shown_subagent *subagent =
        writer->subagents != NULL
            ? shown_subagents_find(writer->subagents, cli_unescape(&id, &texts))
            : NULL;

    if (subagent != NULL) {
        put_literal(writer, "\n[subagent ");
        cli_print_name(writer->file, cli_slice(subagent->id));
        put_literal(writer, "]");
    }
    cli_texts_deinit(&texts);
}

static void put_part(void *ctx, const struct wal__message_part *part)
{
    struct writer *writer = ctx;

    if (part->kind == WAL__PART_THINKING && part->text.span.size <= 2) {
        return; /* an empty string: the client keeps it to itself */
    }
    if (part->kind == WAL__PART_TEXT && part->author.kind == WAL__JSON_STRING) {
        put_literal(writer, "[");
        put_string(writer, &part->author);
        put_literal(writer, "] ");
    }
    switch (part->kind) {
    case WAL__PART_NOTE:
        if (writer->names_notes) {
            put_literal(writer, "[note] ");
        }
        put_part_text(writer, part, &part->text);
        break;
    case WAL__PART_TEXT:
        put_part_text(writer, part, &part->text);
        break;
    case WAL__PART_COMMAND:
        put_part_text(writer, part, &part->text);
        if (part->value.kind != WAL__JSON_NONE) {
            put_literal(writer, " ");
            put_part_text(writer, part, &part->value);
        }
        break;
    case WAL__PART_THINKING:
        put_literal(writer, "[thinking] ");
        put_part_text(writer, part, &part->text);
        break;
    case WAL__PART_CALL:
        put_call(writer, &part->text, &part->value);
        put_subagent(writer, part);
        break;
    case WAL__PART_RESULT:
        put_literal(writer, "[result] ");
        wal__message_visit_result(&part->value, put_result_text, writer);
        break;
    case WAL__PART_OTHER:
        if (part->text.kind == WAL__JSON_STRING) {
            put_literal(writer, "[");
            put_string(writer, &part->text);
            put_literal(writer, "]");
        }
        break;
    }
    if (writer->columns == 0 && !part->is_bare) {
        put_literal(writer, "\n");
    } else if (!part->is_bare && !part->is_whole) {
        put_literal(writer, " ");
    }
}

/* Prints "[redacted]" and the reason, if there is one. */
static void put_redaction(struct writer *writer, struct wal__json_span payload)
{
    struct wal__json_token reason;

    put_literal(writer, "[redacted]");
    if (wal__json_find(payload.data, payload.size, "reason", &reason) == WAL__JSON_OK &&
        reason.kind == WAL__JSON_STRING && reason.span.size > 2) {
        put_literal(writer, " ");
        put_string(writer, &reason);
    }
}

/* Prints who wrote a message. */
static void put_author(struct writer *writer, const struct wal__message *message)
{
    const char *role = shown_message_role(message);

    writer->names_notes = !wal__message_is_note(message);
    if (message->is_summary) {
        put_literal(writer, "summary");
    } else if (!writer->names_notes) {
        put_literal(writer, "note");
    } else if (role != NULL && strcmp(role, "tool") == 0) {
        put_literal(writer, role);
    } else {
        put_string(writer, &message->role);
    }
}

/* Ends a head with the local time of an entry; a text that is no time as it is. */
static void put_time(const struct terminal *terminal, const struct wal_entry *entry)
{
    int64_t ms = shown_entry_time(entry);
    char text[WHEN_SIZE];

    terminal_put_style(terminal, TERMINAL_PLAIN);
    fputs("  ", stdout);
    terminal_put_style(terminal, TERMINAL_DIM);
    if (ms > 0) {
        when_text(ms, text);
        fputs(text, stdout);
    } else {
        cli_print_text(stdout, entry->timestamp, 0, false);
    }
    terminal_put_style(terminal, TERMINAL_PLAIN);
    putchar('\n');
}

static void put_text(const struct terminal *terminal, const struct wal_entry *entry,
                     const struct shown_subagents *subagents)
{
    struct writer writer = {.file = stdout, .columns = 0, .subagents = subagents};
    struct wal__json_span object;
    struct wal__message_part note = {.kind = WAL__PART_NOTE};
    struct wal__message message;
    const char *key;

    if (!cli_entry_json(entry, &object)) {
        return;
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        terminal_put_style(terminal, TERMINAL_STRONG);
        cli_print_text(stdout, entry->type, 0, false);
        put_time(terminal, entry);
        put_redaction(&writer, object);
        printf("\n\n");
    } else if (wal__message_find(object, &message)) {
        terminal_put_style(terminal, TERMINAL_STRONG);
        put_author(&writer, &message);
        put_time(terminal, entry);
        wal__message_visit(&message, put_part, &writer);
        putchar('\n');
    } else if (wal__message_find_note(object, &note.text, &key)) {
        terminal_put_style(terminal, TERMINAL_STRONG);
        putchar('[');
        cli_print_text(stdout, entry->type, 0, false);
        putchar(']');
        put_time(terminal, entry);
        put_part_text(&writer, &note, &note.text);
        printf("\n\n");
    }
}

enum wal_status walcat_print_text(const struct terminal *terminal, struct wal_store *store,
                                  const struct wal_entry *entry,
                                  const struct shown_subagents *subagents, struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    enum wal_status status = wal__entry_payload_load(NULL, store, &loaded, &memory, error);

    if (status == WAL_OK) {
        put_text(terminal, &loaded, subagents);
    }
    free(memory);
    return status;
}

static void put_preview(FILE *file, const struct wal_entry *entry, size_t columns)
{
    struct writer writer = {.file = file, .columns = columns};
    struct wal__json_span object;
    struct wal__message_part note = {.kind = WAL__PART_NOTE};
    struct wal__message message;
    const char *key;

    if (!cli_entry_json(entry, &object)) {
        fputs("  ", file);
        cli_print_text(file, entry->payload, columns, false);
    } else if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        fputs("  ", file);
        put_redaction(&writer, object);
    } else if (wal__message_find(object, &message)) {
        fputs("  ", file);
        put_author(&writer, &message);
        put_literal(&writer, ": ");
        wal__message_visit(&message, put_part, &writer);
    } else if (wal__message_find_note(object, &note.text, &key)) {
        fputs("  ", file);
        put_part_text(&writer, &note, &note.text);
    }
}

void walcat_print_preview(FILE *file, struct wal_store *store, const struct wal_entry *entry,
                          size_t columns)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;

    if (wal__entry_payload_load(NULL, store, &loaded, &memory, NULL) == WAL_OK) {
        put_preview(file, &loaded, columns);
    }
    free(memory);
}

/* --- entries ------------------------------------------------------------ */

/* Interval of the check that the output is still read. */
#define FOLLOW_MS 500

/* An entry in the ring. */
struct pending_entry {
    struct wal_entry entry;
    char *owned_payload; /* copy of data that the cursor owns, or null */
};

struct printer {
    const struct cli *cli;
    struct wal_session *session;
    const struct walcat_options *view;
    struct wal__json_out json;
    struct shown_subagents subagents; /* with text */
    struct shown_documents events;    /* the same */
    struct shown_documents documents;
    size_t documents_from; /* the range of those in view */
    size_t documents_to;
    /* with --type and --tail: the last matching entries */
    struct pending_entry *ring;
    uint64_t ring_size;
    uint64_t ring_count; /* number of entries that were put in */
    uint64_t newest;     /* highest sequence that was read */
    uint64_t passed;     /* sequence of the entry that was read last */
    char previous[256];  /* id of the entry that was read most recently */
    bool is_following;
    int code;
};

static void print(struct printer *printer, const struct wal_entry *entry)
{
    char what[300];
    struct wal_store *store = printer->view->store;
    enum wal_status status = WAL_OK;
    const struct wal_entry *message = shown_events_find(&printer->events, entry);

    if (!printer->view->text) {
        status = cli_entry_write(&printer->json, store, entry, printer->cli->error);
    } else if (message != NULL) {
        status =
            walcat_print_text(printer->cli->terminal, store, message, NULL, printer->cli->error);
    } else if (!cli_entry_is_repeated(printer->session, entry)) {
        status = walcat_print_text(printer->cli->terminal, store, entry, &printer->subagents,
                                   printer->cli->error);
    }
    if (status != WAL_OK) {
        snprintf(what, sizeof(what), "the entry %.*s", (int)entry->id.size,
                 (const char *)entry->id.data);
        cli_report(printer->cli, what, status);
        printer->code = CLI_NEGATIVE;
    }
}

static void process_entry(struct printer *printer, const struct wal_entry *entry)
{
    const char *type = printer->view->type;
    struct pending_entry *slot;

    if (entry->sequence > printer->newest) {
        printer->newest = entry->sequence;
    }
    if (type != NULL && !cli_slice_equal(entry->type, cli_slice(type))) {
        return;
    }
    if (printer->ring_size == 0) {
        print(printer, entry);
        return;
    }
    slot = &printer->ring[printer->ring_count++ % printer->ring_size];
    free(slot->owned_payload);
    slot->entry = *entry;
    slot->owned_payload = cli_entry_detach(&slot->entry);
}

static void print_ring(struct printer *printer)
{
    uint64_t count = printer->ring_count;
    uint64_t first = count > printer->ring_size ? count - printer->ring_size : 0;

    for (uint64_t i = first; i < count && !cli_output_failed(); i++) {
        print(printer, &printer->ring[i % printer->ring_size].entry);
    }
    printer->ring_size = 0;
}

/* Whether the view hides an entry of a cursor that returns all entries. */
static bool is_hidden(const struct walcat_options *view, const struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0 && !view->redacted) {
        return true;
    }
    return !view->deltas && cli_slice_equal(entry->type, cli_slice(WAL_TYPE_MESSAGE_DELTA_BATCH));
}

/* Sets the entry's parent to its nearest ancestor in view. */
static void reparent(const struct walcat_options *view, struct wal_entry_cursor *cursor,
                     struct wal_entry *entry)
{
    struct wal_entry parent = WAL_INIT(wal_entry);

    while (entry->parent_id.size > 0 &&
           wal_entry_cursor_get(cursor, entry->parent_id, &parent, NULL) == WAL_OK &&
           is_hidden(view, &parent)) {
        entry->parent_id = parent.parent_id;
    }
}

static void follow_entry(struct printer *printer, struct wal_entry_cursor *cursor,
                         struct wal_entry *entry)
{
    char *owned_payload;

    snprintf(printer->previous, sizeof(printer->previous), "%.*s", (int)entry->id.size,
             (const char *)entry->id.data);
    shown_documents_adopt(&printer->documents, entry);
    if (!printer->is_following) {
        process_entry(printer, entry);
    } else if (!is_hidden(printer->view, entry)) {
        owned_payload = cli_entry_detach(entry);
        reparent(printer->view, cursor, entry);
        process_entry(printer, entry);
        free(owned_payload);
    }
}

/* Processes the entries of the cursor that are after sequence `after`. */
static void process_entries(struct printer *printer, struct wal_entry_cursor *cursor,
                            uint64_t after)
{
    struct wal_entry entry;
    enum wal_status status = WAL_OK;

    while (status != WAL_END && !cli_output_failed()) {
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        status = wal_entry_cursor_next(cursor, &entry, printer->cli->error);
        if (status == WAL_OK) {
            printer->passed = entry.sequence;
        }
        if (status == WAL_OK && entry.sequence > after) {
            follow_entry(printer, cursor, &entry);
        } else if (cli_is_damage(status)) {
            printer->code = report_lost(printer->cli, cli_slice(printer->previous), status,
                                        printer->cli->error);
        } else if (status != WAL_OK && status != WAL_END) {
            printer->code = cli_report(printer->cli, printer->cli->items[1], status);
            return;
        }
    }
}

/* last: the number of entries at the end to read; 0: all. */
static enum wal_status open_cursor(struct printer *printer, uint64_t last,
                                   struct wal_entry_cursor **cursor, struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = view->all ? WAL_ENTRY_CURSOR_ALL : WAL_ENTRY_CURSOR_BRANCH,
        .flags = WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED |
                 (view->since_compaction ? WAL_ENTRY_CURSOR_SINCE_COMPACTION : 0U) |
                 (view->deltas ? WAL_ENTRY_CURSOR_DELTAS : 0U) |
                 (view->redacted ? WAL_ENTRY_CURSOR_REDACTED : 0U),
        .stream = view->stream,
        .up_to = cli_slice(view->branch != NULL ? view->branch : view->up_to),
        .last = last,
    };
    enum wal_status status = wal_entry_cursor_open(printer->session, &options, cursor, error);

    if (status == WAL_ENOTFOUND && view->branch != NULL) {
        options.up_to = cli_slice(NULL);
        options.head = cli_slice(view->branch);
        status = wal_entry_cursor_open(printer->session, &options, cursor, error);
    }
    return status;
}

/* Opens a cursor on every entry in log order. Their number decreases only when compaction drops
 * deltas, that of the entries in view by a redaction too. */
static enum wal_status open_all(struct printer *printer, uint64_t skip,
                                struct wal_entry_cursor **cursor, struct wal_error *error)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED,
        .stream = printer->view->stream,
        .skip = skip,
    };

    return wal_entry_cursor_open(printer->session, &options, cursor, error);
}

/* Reads the messages in documents, and finds those on the view's branch. */
static enum wal_status find_documents(struct printer *printer, struct wal_entry_cursor *cursor,
                                      struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    struct shown_documents *documents = &printer->documents;
    struct wal_entry first = WAL_INIT(wal_entry);
    struct wal_entry_cursor *peek = NULL;
    enum wal_status status;

    if (view->stream != 0) {
        return WAL_OK;
    }
    status = shown_documents_read(documents, view->store, printer->session, cursor, error);
    if (status != WAL_OK || documents->count == 0) {
        return status;
    }
    printer->documents_to = documents->count;
    if (view->since_compaction) {
        printer->documents_from = shown_documents_compaction(documents);
    }
    if (view->all) {
        return WAL_OK;
    }
    status = open_cursor(printer, 0, &peek, error);
    if (status == WAL_OK && wal_entry_cursor_next(peek, &first, NULL) == WAL_OK) {
        /* None before a compaction of the log, whose entries have parents. */
        printer->documents_to =
            first.parent_id.size > 0 ? 0 : shown_documents_parent(documents, &first) + 1;
    }
    if (printer->documents_from > printer->documents_to) {
        printer->documents_from = printer->documents_to;
    }
    wal_entry_cursor_close(peek);
    return status;
}

/* Opens the view's cursor at the first entry that --tail selects. */
static enum wal_status open_view(struct printer *printer, struct wal_entry_cursor **cursor,
                                 struct wal_error *error)
{
    const struct walcat_options *view = printer->view;
    bool is_tail = view->tail > 0 && view->tail != UINT64_MAX;
    enum wal_status status =
        open_cursor(printer, is_tail && view->type == NULL ? view->tail : 0, cursor, error);
    uint64_t documents;
    uint64_t count;

    if (status == WAL_OK) {
        status = find_documents(printer, *cursor, error);
    }
    if (status != WAL_OK || view->tail == UINT64_MAX) {
        return status;
    }
    count = wal_entry_cursor_remaining(*cursor);
    documents = printer->documents_to - printer->documents_from;
    if (!is_tail || view->type == NULL) {
        uint64_t left = view->tail > count ? view->tail - count : 0;
        if (left < documents) {
            printer->documents_from = printer->documents_to - (size_t)left;
        }
        return status;
    }
    count += documents;
    printer->ring_size = view->tail < count ? view->tail : count;
    printer->ring = cli_alloc((size_t)printer->ring_size * sizeof(*printer->ring));
    return status;
}

/* Reads the sequence of the last of the entries that were seen; WAL_END when there are fewer now.
 * Else 0 when it is not known. */
static enum wal_status read_last(struct printer *printer, uint64_t seen, uint64_t *sequence)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = WAL_OK;

    *sequence = 0;
    if (seen > 0) {
        status = open_all(printer, seen - 1, &cursor, NULL);
    }
    if (seen > 0 && status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        *sequence = status == WAL_OK ? entry.sequence : 0;
    }
    wal_entry_cursor_close(cursor);
    return status;
}

/* Opens a cursor after the entries that were seen, the last of which has the sequence
 * printer->passed; before all when compaction dropped deltas. */
static enum wal_status open_rest(struct printer *printer, uint64_t *seen,
                                 struct wal_entry_cursor **cursor, struct wal_error *error)
{
    uint64_t sequence;

    if (read_last(printer, *seen, &sequence) == WAL_END ||
        (sequence != 0 && printer->passed != 0 && sequence != printer->passed)) {
        *seen = 0;
    }
    return open_all(printer, *seen, cursor, error);
}

static void follow(struct printer *printer, uint64_t seen)
{
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    uint64_t after = printer->newest;
    uint64_t wait_position = 0;

    printer->is_following = true;
    (void)!read_last(printer, seen, &printer->passed);
    while (cli_output_is_read()) {
        status = open_rest(printer, &seen, &cursor, printer->cli->error);
        cli_check(printer->cli, printer->cli->items[1], status);
        seen += wal_entry_cursor_remaining(cursor);
        process_entries(printer, cursor, after > printer->passed ? after : printer->passed);
        wal_entry_cursor_close(cursor);
        cursor = NULL;
        fflush(stdout);
        status = wal_store_wait(printer->view->store, &wait_position, WAL_WRITTEN, FOLLOW_MS,
                                printer->cli->error);
        cli_check(printer->cli, printer->cli->items[0], status == WAL_EBUSY ? WAL_OK : status);
    }
}

int walcat_print_entries(const struct cli *cli, struct wal_session *session,
                         const struct walcat_options *view)
{
    static struct printer printer;
    const char *named = view->branch != NULL ? view->branch : view->up_to;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = WAL_OK;
    uint64_t seen = 0;

    printer.cli = cli;
    printer.session = session;
    printer.view = view;
    cli_json_init(&printer.json, stdout);
    if (view->follow) {
        status = open_all(&printer, 0, &cursor, cli->error);
        seen = status == WAL_OK ? wal_entry_cursor_remaining(cursor) : 0;
        wal_entry_cursor_close(cursor);
        cursor = NULL;
    }
    if (status == WAL_OK && view->text) {
        status = shown_subagents_read(&printer.subagents, view->store, session, false, cli->error);
        shown_events_read(&printer.events, view->store, session);
    }
    if (status == WAL_OK) {
        status = open_view(&printer, &cursor, cli->error);
    }
    cli_check(cli, named != NULL ? named : cli->items[1], status);
    if (!view->follow) {
        cli_start_pager(cli);
    }
    for (size_t i = printer.documents_from; i < printer.documents_to && !cli_output_failed(); i++) {
        process_entry(&printer, &printer.documents.items[i]);
    }
    if (view->tail > 0) {
        process_entries(&printer, cursor, 0);
    }
    print_ring(&printer);
    wal_entry_cursor_close(cursor);
    if (view->follow) {
        follow(&printer, seen);
    }
    return printer.code;
}

/* --- the program -------------------------------------------------------- */

struct arguments {
    struct walcat_options view;
    uint64_t stream; /* UINT64_MAX: not given */
    bool frames;
    bool tree;
};

/* Reports that the session lost entries, because reading the remaining ones shows no error.
 * CLI_NEGATIVE then, else CLI_OK. */
static int report_damage(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, cli->error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status);
    }
    if ((info.flags & WAL_SESSION_DAMAGED) == 0) {
        return CLI_OK;
    }
    return cli_error(cli, CLI_NEGATIVE, cli->items[1],
                     "the session lost entries to damage (agentwal check reports the damage)");
}

static int show_session(struct cli *cli, const struct arguments *arguments)
{
    struct walcat_options view = arguments->view;
    int damage_code;
    int code;

    if (view.follow) {
        live_use_store(cli, cli->items[0], "cannot be followed: --follow needs write permission");
        cli_use_session(cli, cli->items[1]);
    } else {
        cli_use_session_or_file(cli, cli->items[0], cli->items[1]);
    }
    cli_complete_name(cli, view.stream, CLI_NAME_ENTRY | CLI_NAME_HEAD, &view.branch);
    cli_complete_name(cli, view.stream, CLI_NAME_ENTRY, &view.up_to);
    damage_code = report_damage(cli, cli->session);
    view.store = cli->store;
    code = !arguments->tree ? walcat_print_entries(cli, cli->session, &view)
           : cli->json      ? write_tree(cli, cli->session)
                            : print_tree(cli, cli->session, &view);
    return cli_worse_code(damage_code, code);
}

/* --follow without a session: all of them. */
static int follow_all(struct cli *cli, const struct arguments *arguments)
{
    static const struct cli_values none = {.count = 0};
    static struct live live;
    int code;

    live_use_store(cli, cli->items[0], "cannot be followed: --follow needs write permission");
    live = (struct live){.cli = cli,
                         .path = cli->items[0],
                         .store = cli->store,
                         .names = &none,
                         .type = arguments->view.type};
    live_open(&live);
    code = walcat_print_live(&live, arguments->view.text);
    live_close(&live);
    return code;
}

static int show_sessions(struct cli *cli)
{
    const struct cli_list all = {.options = WAL_INIT(wal_session_cursor_options),
                                 .subagents = true};

    cli_use_store(cli, cli->items[0], WAL_OPEN_READ_ONLY);
    return cli_print_sessions(cli, &all);
}

/* Refuses options that would have no effect. */
static void check_context(const struct cli *cli, const struct arguments *arguments)
{
    const struct walcat_options *view = &arguments->view;
    const struct {
        const char *name;
        bool is_given;
        bool with_tree;
        bool with_all; /* --follow of all sessions */
    } options[] = {
        {"--branch", view->branch != NULL, false, false},
        {"--up-to", view->up_to != NULL, false, false},
        {"--since-compaction", view->since_compaction, false, false},
        {"--all", view->all, true, false},
        {"--stream", arguments->stream != UINT64_MAX, true, false},
        {"--type", view->type != NULL, false, true},
        {"--tail", view->tail != UINT64_MAX, false, false},
        {"--deltas", view->deltas, true, false},
        {"--redacted", view->redacted, true, false},
        {"--text", view->text, false, true},
        {"--tree", arguments->tree, true, false},
        {"--follow", view->follow, false, true},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        bool is_of_all = view->follow && !arguments->frames && options[i].with_all;

        if (options[i].is_given && !is_of_all && (arguments->frames || cli->count < 2)) {
            cli_fail(cli, CLI_USAGE, options[i].name, "allowed only with a SESSION");
        }
        if (options[i].is_given && arguments->tree && !options[i].with_tree) {
            cli_fail(cli, CLI_USAGE, options[i].name, "not allowed with --tree");
        }
    }
}

/* Refuses options that exclude each other. */
static void check_options(const struct cli *cli, struct arguments *arguments)
{
    struct walcat_options *view = &arguments->view;
    bool is_path = view->branch != NULL || view->up_to != NULL;

    cli_check_operands(cli, 1, arguments->frames ? 1 : 2);
    check_context(cli, arguments);
    view->stream = arguments->stream != UINT64_MAX ? (uint32_t)arguments->stream : 0;
    if (view->branch != NULL && view->up_to != NULL) {
        cli_fail(cli, CLI_USAGE, "--up-to", "not allowed with --branch");
    }
    if (view->all && (is_path || view->since_compaction)) {
        cli_fail(cli, CLI_USAGE, "--all",
                 "not allowed with --branch, --up-to or --since-compaction");
    }
    if (view->follow && is_path) {
        cli_fail(cli, CLI_USAGE, "--follow", "not allowed with --branch or --up-to");
    }
}

/* Reads the command line into *arguments. */
static void read_arguments(struct cli *cli, int argc, char **argv, struct arguments *arguments)
{
    struct walcat_options *view = &arguments->view;
    const struct cli_option options[] = {
        {.name = "frames", .flag = &arguments->frames},
        {.name = "branch", .value = &view->branch, .max = CLI_ID_MAX},
        {.name = "up-to", .value = &view->up_to, .max = CLI_ID_MAX},
        {.name = "since-compaction", .flag = &view->since_compaction},
        {.name = "all", .flag = &view->all},
        {.name = "stream", .number = &arguments->stream, .max = 255},
        {.name = "type", .value = &view->type},
        {.name = "tail", .number = &view->tail, .max = UINT64_MAX},
        {.name = "deltas", .flag = &view->deltas},
        {.name = "redacted", .flag = &view->redacted},
        {.name = "text", .flag = &view->text},
        {.name = "tree", .flag = &arguments->tree},
        {.name = "follow", .flag = &view->follow},
        {.name = NULL},
    };

    cli_parse(cli, argc, argv, options);
    if (cli->json &&
        (view->text || (arguments->tree && (arguments->stream < 256 || view->deltas)))) {
        cli_fail(cli, CLI_USAGE, "--json", "not allowed with %s",
                 view->text ? "--text" : "--stream and --deltas of a tree");
    }
    if (arguments->frames && !cli->names_store && cli->count == 2) {
        /* agentwal cat --frames SEGMENT: not the store, but its segment. */
        cli->items++;
        cli->count--;
    }
    check_options(cli, arguments);
}

/* The session is optional for walcat, whose operands name the store. */
static int run(struct cli *cli, int argc, char **argv, bool is_tree)
{
    struct arguments arguments = {
        .view.tail = UINT64_MAX,
        .stream = UINT64_MAX,
        .tree = is_tree,
    };

    read_arguments(cli, argc, argv, &arguments);
    if (arguments.frames) {
        return walcat_print_frames(cli, cli->items[0]);
    }
    if (cli->count == 1 && arguments.view.follow) {
        return follow_all(cli, &arguments);
    }
    if (!cli->names_store) {
        cli_check_operands(cli, 2, 2);
    }
    return cli->count == 1 ? show_sessions(cli) : show_session(cli, &arguments);
}

int verb_cat(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, false);
}

int verb_tree(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, true);
}
