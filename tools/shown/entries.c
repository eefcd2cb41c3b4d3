/*
 * entries.c - all entries of a session (entries.h).
 */
#include "tools/shown/entries.h"

#include "tools/cli/cli.h"
#include "tools/shown/documents.h"
#include "tools/shown/entry_json.h"
#include "tools/shown/session_json.h"

static enum wal_status visit_log(const struct shown_documents *documents,
                                 struct wal_entry_cursor *cursor,
                                 shown_entry_fn *each, void *ctx,
                                 uint64_t *damaged, struct wal_error *error)
{
    struct wal_entry entry;
    enum wal_status status = WAL_OK;
    size_t parent;

    while (status == WAL_OK) {
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (cli_is_damage(status)) {
            (*damaged)++;
            status = WAL_OK;
        } else if (status == WAL_OK) {
            parent = shown_documents_parent(documents, &entry);
            if (parent < documents->count) {
                entry.parent_id = documents->items[parent].id;
            }
            entry.depth += documents->count;
            status = each(ctx, &entry, error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status shown_entries_visit(struct wal_store *store,
                                    struct wal_session *session, uint32_t flags,
                                    shown_entry_fn *each, void *ctx,
                                    uint64_t *damaged, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = flags | WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    struct shown_documents documents = {.items = NULL};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(session, &options, &cursor, error);

    if (status == WAL_OK) {
        status =
            shown_documents_read(&documents, store, session, cursor, error);
    }
    for (size_t i = 0; i < documents.count && status == WAL_OK; i++) {
        documents.items[i].depth = i;
        status = each(ctx, &documents.items[i], error);
    }
    if (status == WAL_OK) {
        status = visit_log(&documents, cursor, each, ctx, damaged, error);
    }
    shown_documents_deinit(&documents);
    wal_entry_cursor_close(cursor);
    return status;
}

/* Where the nodes of a tree are written to. */
struct nodes {
    struct shown *shown;
    struct wal_store *store;
};

static enum wal_status put_node(void *ctx, const struct wal_entry *entry,
                                struct wal_error *error)
{
    const struct nodes *nodes = ctx;

    return shown_node(nodes->shown, nodes->store, entry, error);
}

enum wal_status shown_tree(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_error *error)
{
    struct nodes nodes = {shown, store};
    uint64_t damaged = 0;
    enum wal_status status;

    wal__json_out_member_open(shown->json, "nodes", '[');
    status = shown_entries_visit(store, session, WAL_ENTRY_CURSOR_REDACTED,
                                 put_node, &nodes, &damaged, error);
    wal__json_out_close(shown->json, ']');
    if (status == WAL_OK) {
        status = shown_heads(shown, session, error);
    }
    wal__json_out_member_count(shown->json, "damaged", damaged);
    return status;
}
