/*
 * entries.c - the entries of a session: parts of a branch, one entry, the tree, the heads
 * (docs/seeing.md, Entries).
 *
 * The first messages of a branch may be documents of an import. Entries of the log are read from
 * the end of the branch, so that a part costs what it has, however long the session is.
 */
#include "tools/serve/api.h"

#include <stdlib.h>

enum {
    PAYLOAD_MAX = 64 << 20 /* bytes of a payload that is read */
};

/* Which part. Empty slices are not given. */
struct range {
    struct wal_slice head;
    struct wal_slice leaf;
    struct wal_slice before;
    uint64_t after; /* sequence; UINT64_MAX: none */
    uint64_t limit; /* entries */
};

/* Zeroed: nothing to deinit. */
struct branch {
    struct wal_store *store;
    struct wal_session *session;
    struct shown_documents documents;
    size_t *path; /* numbers of messages in documents, root first */
    size_t path_count;
    size_t path_at;                  /* the next one */
    struct wal_entry_cursor *cursor; /* of entries in the log, or NULL */
    struct wal_entry first;          /* already read from the cursor */
    enum wal_status first_status;
    bool has_first;
    uint64_t after;
    uint64_t left;  /* entries still to return */
    uint64_t bytes; /* of payloads that were returned, with `after` */
};

enum {
    FLAGS = WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_REDACTED,
    LAST_MAX = 65536,         /* entries that are found from the end */
    PART_BYTES_MAX = 16 << 20 /* bytes of payloads in a part */
};

static size_t find_document(const struct shown_documents *documents, struct wal_slice id)
{
    for (size_t i = 0; i < documents->count; i++) {
        if (cli_slice_equal(documents->items[i].id, id)) {
            return i;
        }
    }
    return documents->count;
}

/* Adds a message of the documents and those above it to the path. */
static void add_path(struct branch *branch, size_t leaf)
{
    const struct shown_documents *documents = &branch->documents;
    struct cli_ids ranks = {.items = NULL};
    size_t capacity = 0;
    size_t at = leaf;

    for (size_t i = documents->count; i > 0; i--) {
        *cli_ids_get_or_add(&ranks, documents->items[i - 1].id) = (uint32_t)i;
    }
    while (at < documents->count && branch->path_count <= documents->count) {
        const uint32_t *rank = cli_ids_find(&ranks, documents->items[at].parent_id);

        *CLI_PUSH(branch->path, branch->path_count, capacity) = at;
        at = rank != NULL ? *rank - 1 : documents->count;
    }
    cli_ids_deinit(&ranks);
}

/* Sets the path to a message of the documents, at most `limit` of its end. */
static void set_path(struct branch *branch, size_t leaf, uint64_t limit)
{
    size_t kept;

    add_path(branch, leaf);
    for (size_t i = 0; i < branch->path_count / 2; i++) {
        size_t other = branch->path_count - 1 - i;
        size_t item = branch->path[i];

        branch->path[i] = branch->path[other];
        branch->path[other] = item;
    }
    kept = branch->path_count < limit ? branch->path_count : (size_t)limit;
    branch->path_at = branch->path_count - kept;
}

static enum wal_status open_cursor(struct branch *branch,
                                   const struct wal_entry_cursor_options *from, uint64_t last,
                                   struct wal_error *error)
{
    struct wal_entry_cursor_options options = *from;

    wal_entry_cursor_close(branch->cursor);
    branch->cursor = NULL;
    options.last = last;
    return wal_entry_cursor_open(branch->session, &options, &branch->cursor, error);
}

/* Counts the last entries whose payloads fit in a part, at least one. */
static uint64_t count_fitting(struct branch *branch, uint64_t limit)
{
    uint64_t count = wal_entry_cursor_remaining(branch->cursor);
    uint64_t *sizes = cli_alloc((size_t)(count + 1) * sizeof(*sizes));
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = WAL_OK;
    uint64_t total = 0;
    uint64_t fitting = 0;

    for (uint64_t i = 0; i < count && status != WAL_END; i++) {
        status = wal_entry_cursor_next(branch->cursor, &entry, NULL);
        sizes[i] = status == WAL_OK ? entry.payload_size : 0;
    }
    while (fitting < count && fitting < limit) {
        total += sizes[count - 1 - fitting];
        if (fitting > 0 && total > PART_BYTES_MAX) {
            break;
        }
        fitting++;
    }
    free(sizes);
    return fitting;
}

/* Opens the last entries of the branch, as many as fit. */
static enum wal_status open_last(struct branch *branch,
                                 const struct wal_entry_cursor_options *options, uint64_t limit,
                                 struct wal_error *error)
{
    enum wal_status status = open_cursor(branch, options, limit, error);
    uint64_t count;

    if (status == WAL_OK) {
        count = count_fitting(branch, limit);
        status = open_cursor(branch, options, count > 0 ? count : 1, error);
        branch->left = limit;
    }
    return status;
}

/* Opens entries from the first one on whose sequence is above range->after. */
static enum wal_status open_after(struct branch *branch,
                                  const struct wal_entry_cursor_options *options,
                                  const struct range *range, struct wal_error *error)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    uint64_t last = range->limit;
    enum wal_status status;

    branch->after = range->after;
    branch->left = range->limit;
    for (;;) {
        status = open_cursor(branch, options, last, error);
        if (status != WAL_OK || last == 0 || wal_entry_cursor_remaining(branch->cursor) < last) {
            return status;
        }
        status = wal_entry_cursor_next(branch->cursor, &entry, error);
        if (status == WAL_OK && entry.sequence <= range->after) {
            return open_cursor(branch, options, last, error);
        }
        last = last < LAST_MAX / 4 ? 4 * last : 0;
    }
}

/* Sets where the part ends: in the log (true), or in the documents. */
static enum wal_status find_end(struct branch *branch, const struct range *range,
                                struct wal_entry_cursor_options *options, bool *is_in_log,
                                struct wal_error *error)
{
    struct wal_slice end = range->before.size > 0 ? range->before : range->leaf;
    struct wal_entry entry = WAL_INIT(wal_entry);
    size_t item = find_document(&branch->documents, end);
    enum wal_status status;

    *is_in_log = true;
    options->head = range->head;
    if (end.size == 0) {
        return WAL_OK;
    }
    *is_in_log = item == branch->documents.count;
    if (!*is_in_log) {
        if (range->before.size > 0) {
            item = find_document(&branch->documents, branch->documents.items[item].parent_id);
        }
        set_path(branch, item, range->limit);
        return WAL_OK;
    }
    options->head = cli_slice(NULL);
    options->up_to = end;
    if (range->before.size == 0) {
        return WAL_OK;
    }
    status = wal_entry_cursor_get(branch->cursor, end, &entry, error);
    if (status == WAL_OK && entry.parent_id.size == 0) {
        *is_in_log = false; /* it is a root */
        set_path(branch, shown_documents_parent(&branch->documents, &entry), range->limit);
    }
    options->up_to = entry.parent_id;
    return status;
}

/* Reads the first entry of the log; above a root there may be documents. */
static enum wal_status join(struct branch *branch, uint64_t limit, struct wal_error *error)
{
    uint64_t count = wal_entry_cursor_remaining(branch->cursor);

    if (branch->documents.count == 0 || branch->after != UINT64_MAX) {
        return WAL_OK;
    }
    if (count == 0) {
        set_path(branch, branch->documents.count - 1, limit);
        return WAL_OK;
    }
    branch->first = (struct wal_entry)WAL_INIT(wal_entry);
    branch->has_first = true;
    branch->first_status = wal_entry_cursor_next(branch->cursor, &branch->first, error);
    if (branch->first_status == WAL_OK && branch->first.depth == 0) {
        set_path(branch, shown_documents_parent(&branch->documents, &branch->first),
                 count < limit ? limit - count : 0);
    }
    return branch->first_status == WAL_OK || cli_is_damage(branch->first_status)
               ? WAL_OK
               : branch->first_status;
}

/* Opens a part of a branch. Errors: WAL_ENOTFOUND for the head or an entry. */
static enum wal_status branch_open(struct branch *branch, struct wal_store *store,
                                   struct wal_session *session, const struct range *range,
                                   struct wal_error *error)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry_cursor_options all = WAL_INIT(wal_entry_cursor_options);
    bool is_in_log = true;
    enum wal_status status;

    *branch = (struct branch){
        .store = store, .session = session, .after = UINT64_MAX, .left = range->limit};
    all.mode = WAL_ENTRY_CURSOR_ALL;
    options.flags = all.flags = FLAGS;
    status = open_cursor(branch, &all, 0, error);
    if (status == WAL_OK) {
        status = shown_documents_read(&branch->documents, store, session, branch->cursor, error);
    }
    if (status == WAL_OK) {
        status = find_end(branch, range, &options, &is_in_log, error);
    }
    /* The options may name the entry that this cursor returned last. */
    if (status == WAL_OK && is_in_log) {
        char *up_to = cli_copy_slice(options.up_to);

        options.up_to.data = up_to;
        status = range->after != UINT64_MAX ? open_after(branch, &options, range, error)
                                            : open_last(branch, &options, range->limit, error);
        free(up_to);
        if (status == WAL_OK) {
            status = join(branch, range->limit, error);
        }
    } else if (status == WAL_OK) {
        wal_entry_cursor_close(branch->cursor);
        branch->cursor = NULL;
    }
    return status;
}

/* A payload that is too big for an answer is left out; its size remains. */
static void leave_out(struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0 && entry->payload_size > PAYLOAD_MAX) {
        entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
        entry->payload = cli_slice(NULL);
    }
}

/* Counts an entry of a part that begins after a number. Returns false when it does not fit: the
 * part ends before it, unless it is the first one. */
static bool fits(struct branch *branch, const struct wal_entry *entry)
{
    bool is_first = branch->bytes == 0;

    branch->bytes += entry->payload_size > 0 ? entry->payload_size : 1;
    return is_first || branch->bytes <= PART_BYTES_MAX;
}

/* Fills *entry with the next one; WAL_END after the last. WAL_ECORRUPT and WAL_EIO concern this
 * entry only. */
static enum wal_status branch_next(struct branch *branch, struct wal_entry *entry,
                                   struct wal_error *error)
{
    const struct shown_documents *documents = &branch->documents;
    enum wal_status status = WAL_OK;

    if (branch->path_at < branch->path_count) {
        *entry = documents->items[branch->path[branch->path_at]];
        entry->depth = branch->path_at++;
        entry->payload_size = entry->payload.size;
        return WAL_OK;
    }
    if (branch->cursor == NULL || branch->left == 0) {
        return WAL_END;
    }
    do {
        if (branch->has_first) {
            *entry = branch->first;
            status = branch->first_status;
            branch->has_first = false;
        } else {
            status = wal_entry_cursor_next(branch->cursor, entry, error);
        }
    } while (status == WAL_OK && branch->after != UINT64_MAX && entry->sequence <= branch->after);
    if (status == WAL_END) {
        return status;
    }
    if (status == WAL_OK && branch->after != UINT64_MAX && !fits(branch, entry)) {
        branch->left = 0;
        return WAL_END;
    }
    branch->left--;
    if (status == WAL_OK) {
        shown_documents_adopt(documents, entry);
    }
    entry->depth += branch->path_count;
    leave_out(entry);
    return status;
}

/* Finds one entry, of the log or of the documents. It holds until the next call or the deinit. */
static enum wal_status branch_get(struct branch *branch, struct wal_store *store,
                                  struct wal_session *session, struct wal_slice id,
                                  struct wal_entry *entry, struct wal_error *error)
{
    struct wal_entry_cursor_options all = WAL_INIT(wal_entry_cursor_options);
    size_t item;
    enum wal_status status;

    *branch = (struct branch){.store = store, .session = session};
    all.mode = WAL_ENTRY_CURSOR_ALL;
    all.flags = FLAGS;
    status = open_cursor(branch, &all, 0, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal_entry_cursor_get(branch->cursor, id, entry, error);
    if (status == WAL_OK) {
        leave_out(entry);
    }
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    status = shown_documents_read(&branch->documents, store, session, branch->cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    item = find_document(&branch->documents, id);
    if (item == branch->documents.count) {
        return wal_entry_cursor_get(branch->cursor, id, entry, error);
    }
    *entry = branch->documents.items[item];
    entry->payload_size = entry->payload.size;
    return WAL_OK;
}

static void branch_deinit(struct branch *branch)
{
    wal_entry_cursor_close(branch->cursor);
    shown_documents_deinit(&branch->documents);
    free(branch->path);
    *branch = (struct branch){.cursor = NULL};
}

/* --- answers ------------------------------------------------------------ */

enum { PART_LIMIT = 100, PART_MAX = 1000 };

/* Writes the entries, and counts those that are damaged. */
static enum wal_status write_entries(struct shown *shown, struct branch *branch, uint64_t *damaged,
                                     char **before, struct wal_error *error)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    bool is_first = true;
    enum wal_status status;

    while ((status = branch_next(branch, &entry, error)) != WAL_END) {
        if (status == WAL_OK && is_first) {
            *before = entry.parent_id.size > 0 ? cli_copy_slice(entry.id) : NULL;
            is_first = false;
        }
        if (status == WAL_OK) {
            status = shown_entry(shown, branch->store, &entry, error);
        }
        if (cli_is_damage(status)) {
            ++*damaged;
        } else if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

static enum wal_status write_part(struct shown *shown, struct branch *branch,
                                  struct wal_error *error)
{
    struct wal__json_out *json = shown->json;
    uint64_t damaged = 0;
    char *before = NULL;
    enum wal_status status;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "entries", '[');
    status = write_entries(shown, branch, &damaged, &before, error);
    wal__json_out_close(json, ']');
    shown_member(shown, "before", cli_slice(before));
    wal__json_out_member_count(shown->json, "damaged", damaged);
    wal__json_out_close(json, '}');
    free(before);
    return status;
}

enum wal_status serve_get_entries(struct serve_exchange *exchange, struct wal_error *error)
{
    struct branch branch = {.cursor = NULL};
    struct range range = {
        .head = serve_exchange_query(exchange, "head"),
        .leaf = serve_exchange_query(exchange, "leaf"),
        .before = serve_exchange_query(exchange, "before"),
        .after = UINT64_MAX,
        .limit = PART_LIMIT,
    };
    struct shown_subagents subagents = {.items = NULL};
    enum wal_status status;

    if (!serve_exchange_number(exchange, "limit", 1, PART_MAX, &range.limit) ||
        !serve_exchange_number(exchange, "after", 0, INT64_MAX, &range.after)) {
        return WAL_OK;
    }
    status = serve_open_session(exchange, 3, error);
    if (status == WAL_OK) {
        status = branch_open(&branch, exchange->server->store, exchange->session, &range, error);
    }
    if (status == WAL_OK) {
        status = shown_subagents_read(&subagents, exchange->server->store, exchange->session, false,
                                      error);
    }
    exchange->shown.session = exchange->session;
    exchange->shown.subagents = &subagents;
    if (status == WAL_OK) {
        status = write_part(&exchange->shown, &branch, error);
    }
    shown_subagents_deinit(&subagents);
    branch_deinit(&branch);
    return status;
}

enum wal_status serve_get_entry(struct serve_exchange *exchange, struct wal_error *error)
{
    struct branch branch = {.cursor = NULL};
    struct shown_subagents subagents = {.items = NULL};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_store *store = exchange->server->store;
    enum wal_status status =
        branch_get(&branch, store, exchange->session, exchange->segments[5], &entry, error);

    if (status == WAL_OK) {
        status = shown_subagents_read(&subagents, store, exchange->session, false, error);
    }
    if (status == WAL_OK) {
        exchange->shown.limit = 0;
        exchange->shown.session = exchange->session;
        exchange->shown.subagents = &subagents;
        status = shown_entry_with_payload(&exchange->shown, store, &entry, error);
    }
    shown_subagents_deinit(&subagents);
    branch_deinit(&branch);
    return status == WAL_EINVAL ? WAL_ENOTFOUND : status;
}

/* --- heads and the tree --------------------------------------------- */

enum wal_status serve_get_heads(struct serve_exchange *exchange, struct wal_error *error)
{
    enum wal_status status;

    wal__json_out_open(&exchange->json, '{');
    status = shown_heads(&exchange->shown, exchange->session, error);
    wal__json_out_close(&exchange->json, '}');
    return status;
}

struct tree {
    struct wal_store *store;
    struct wal_session *session;
};

static void release_tree(void *ctx)
{
    struct tree *tree = ctx;

    wal_session_close(tree->session);
    free(tree);
}

static bool produce_tree(void *ctx, FILE *file)
{
    const struct tree *tree = ctx;
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};
    enum wal_status status;

    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    status = shown_tree(&shown, tree->store, tree->session, NULL);
    wal__json_out_close(&json, '}');
    return status == WAL_OK;
}

enum wal_status serve_get_tree(struct serve_exchange *exchange, struct wal_error *error)
{
    struct tree *tree = cli_alloc(sizeof(*tree));

    (void)error;
    *tree = (struct tree){exchange->server->store, exchange->session};
    exchange->session = NULL;
    serve_exchange_stream(exchange, "application/json; charset=utf-8", MHD_SIZE_UNKNOWN,
                          produce_tree, release_tree, tree);
    return WAL_OK;
}
