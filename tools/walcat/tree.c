/*
 * tree.c - draws the branches of a session.
 *
 * An entry is printed below its parent; the drawing moves to the right only
 * where a branch begins. The middle of a long run without branches is omitted.
 *
 * Invariant: every entry is drawn or counted once. Memory is one node per
 * entry, and there is no recursion.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/cli/session.h"
#include "tools/shown/shown.h"
#include "tools/walcat/walcat.h"

#define RUN_MAX     16 /* a longer run is shortened */
#define RUN_ENDS    4  /* entries drawn at each end of a shortened run */
#define DEPTH_MAX   32 /* deeper branches share a column */
#define PREVIEW     48 /* columns, without a terminal */
#define PREVIEW_MIN 16
#define HEADS_ROOM  12 /* columns for the heads at an entry */
#define NONE        0  /* node 0 is the parent of all roots */

struct node {
    struct wal_entry entry;
    char *owned_payload; /* copy of data that the cursor owns, or null */
    uint32_t first_child;
    uint32_t last_child;
    uint32_t next; /* next sibling */
    bool is_head;
};

struct tree {
    const struct cli *cli;
    struct wal_store *store;
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
    uint32_t *parent = cli_ids_find(&tree->ids, entry->parent_id);
    struct node *above;

    tree->nodes = cli_reserve(tree->nodes, tree->count, &tree->capacity,
                              sizeof(tree->nodes[0]));
    tree->nodes[tree->count] = (struct node){.entry = *entry};
    tree->nodes[tree->count].owned_payload =
        cli_entry_detach(&tree->nodes[tree->count].entry);
    tree->count++;
    above = &tree->nodes[parent != NULL ? *parent : NONE];
    if (above->last_child == NONE) {
        above->first_child = at;
    } else {
        tree->nodes[above->last_child].next = at;
    }
    above->last_child = at;
    *cli_ids_get_or_add(&tree->ids, entry->id) = at;
}

static enum wal_status read_tree(const struct cli *cli, struct tree *tree,
                                 struct wal_entry_cursor *cursor,
                                 struct wal_error *error)
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
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            size_t parent = shown_documents_parent(&tree->documents, &entry);
            if (parent < tree->documents.count) {
                entry.parent_id = tree->documents.items[parent].id;
            }
            add_node(tree, &entry);
        } else if (cli_is_damage(status)) {
            const struct node *last = &tree->nodes[tree->count - 1];
            tree->code = walcat_report_lost(cli, last->entry.id, status, error);
        } else if (status != WAL_END) {
            return status;
        }
    }
    return WAL_OK;
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

/* Finds the nodes of the stream's heads; a head at a hidden entry is drawn at
 * the nearest ancestor. */
static void find_heads(struct tree *tree, struct wal_entry_cursor *cursor,
                       uint32_t stream)
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

static void put_node(struct tree *tree, const struct branch *branch,
                     uint32_t at, bool is_first)
{
    const struct wal_entry *entry = &tree->nodes[at].entry;

    const struct terminal *terminal = tree->cli->terminal;
    struct wal_slice id = cli_short_id(&tree->short_ids, entry->id);
    size_t columns = PREVIEW;
    size_t used = branch->depth > 0 ? (size_t)3 * branch->depth : 0;

    put_indent(branch, put_branch_prefix(branch, is_first));
    terminal_put_style(terminal, TERMINAL_ID);
    used += cli_print_name(stdout, id);
    terminal_put_style(terminal, TERMINAL_DIM);
    fputs("  ", stdout);
    used += cli_print_text(stdout, entry->type, 0, false) + 4;
    terminal_put_style(terminal, TERMINAL_PLAIN);
    if (terminal->columns > 0) {
        used += tree->nodes[at].is_head ? HEADS_ROOM : 0;
        columns = terminal->columns > used + PREVIEW_MIN
                      ? terminal->columns - used
                      : PREVIEW_MIN;
    }
    walcat_print_preview(stdout, tree->store, entry, columns);
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
static void push_children(const struct tree *tree, struct stack *stack,
                          uint32_t at, const struct branch *above)
{
    size_t from = stack->count;
    uint32_t depth =
        above->depth < DEPTH_MAX - 1 ? above->depth + 1 : above->depth;
    uint32_t bars = above->bars;

    if (above->depth > 0 && !above->is_last) {
        bars |= (uint32_t)1 << above->depth;
    }
    for (uint32_t child = tree->nodes[at].first_child; child != NONE;
         child = tree->nodes[child].next) {
        stack->items = cli_reserve(stack->items, stack->count, &stack->capacity,
                                   sizeof(stack->items[0]));
        stack->items[stack->count++] = (struct branch){
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

/* Adds all ids that a short id may be confused with: also of the entries that
 * the drawing hides, and of heads. The cursor must stay open. */
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

int walcat_print_tree(const struct cli *cli, struct wal_session *session,
                      const struct walcat_options *view)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE |
                 WAL_ENTRY_CURSOR_PINNED |
                 (view->deltas ? WAL_ENTRY_CURSOR_DELTAS : 0U),
        .stream = view->stream,
    };
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry_cursor *all = NULL;
    struct tree tree = {.cli = cli, .store = view->store, .code = CLI_OK};
    enum wal_status status = cli_heads_read(&tree.heads, session, &error);

    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &cursor, &error);
    }
    if (status == WAL_OK && view->stream == 0) {
        status = shown_documents_read(&tree.documents, view->store, session,
                                      cursor, &error);
    }
    if (status == WAL_OK) {
        status = read_tree(cli, &tree, cursor, &error);
    }
    if (status == WAL_OK) {
        find_heads(&tree, cursor, view->stream);
        options.flags |= WAL_ENTRY_CURSOR_DELTAS;
        if (wal_entry_cursor_open(session, &options, &all, &error) == WAL_OK) {
            add_short_ids(&tree, all);
        }
        cli_start_pager(cli);
        draw(&tree);
    } else {
        tree.code = cli_report(cli, cli->items[1], status, &error);
    }
    wal_entry_cursor_close(all);
    wal_entry_cursor_close(cursor);
    cli_heads_deinit(&tree.heads);
    cli_ids_deinit(&tree.ids);
    cli_short_ids_deinit(&tree.short_ids);
    free(tree.head_nodes);
    for (size_t i = 0; i < tree.count; i++) {
        free(tree.nodes[i].owned_payload);
    }
    free(tree.nodes);
    shown_documents_deinit(&tree.documents);
    return tree.code;
}
