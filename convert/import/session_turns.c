/*
 * session_turns.c - imports what OpenCode added to a session that was exported to it
 * (session_turns.h).
 */
#include "convert/import/session_turns.h"

#include <string.h>

#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/render/session_items.h"
#include "engine/base/error.h"

#define SETTLED_MS 5000

/* Items that one message of the client has: that with its id, and those after it that are written
 * into it or into none. */
struct group {
    struct wal__json_span answer; /* as in the item; or empty */
    struct wal__json_span last;   /* id of the last one */
};

/* A message of the client. */
struct turn {
    struct turn *next; /* of those that the session does not have */
    struct wal_slice id;
    struct wal_slice parent; /* an entry; or empty */
    bool is_chained;         /* that is the turn before */
    bool is_known;           /* the session has it */
    enum wal__progress progress;
    int64_t created_ms;
    struct wal__json_span *documents; /* the message, then its parts */
    size_t count;
    size_t capacity;
};

struct wal__session_turns {
    struct wal__arena *arena; /* that of the import, as all memory */
    struct wal__import *import;
    struct wal_session *session;
    struct wal__session_snapshot snapshot;
    struct wal__session_items items;
    struct wal_entry_cursor *cursor;
    struct wal__model_table groups; /* struct group, by id of an item and by key of a message */
    struct wal__model_table taken;  /* struct turn, by id */
    struct turn *first;
    struct turn *last;
    struct turn previous; /* parent and is_chained of a turn that comes next */
    bool is_own;          /* its documents were imported from the client */
    bool takes;
};

/* --- what the session has ------------------------------------------------- */

static void *find(const struct wal__model_table *table, uint64_t key)
{
    struct wal__json_span found;

    return wal__model_table_get(table, key, &found) ? (void *)(uintptr_t)found.data : NULL;
}

static bool put(struct wal__model_table *table, uint64_t key, const void *value)
{
    return wal__model_table_put(table, key, (struct wal__json_span){value, 0});
}

/* Whether the item is in the message of its parent, or in none. */
static bool is_in_group(const struct group *group, const struct wal__model_item *item)
{
    if (item->kind == WAL__ITEM_MESSAGE && item->role != WAL__ROLE_TOOL) {
        return item->answer_id.size > 0 &&
               wal__json_characters_equal(item->answer_id, group->answer);
    }
    return item->kind != WAL__ITEM_COMPACTION && item->kind != WAL__ITEM_BRANCH_SUMMARY;
}

/* A sink of items. */
static bool add_item(void *ctx, struct wal__model_item *item)
{
    struct wal__session_turns *turns = ctx;
    const struct wal__json_span id = wal__arena_copy(turns->arena, item->id);
    struct group *group = find(&turns->groups, wal__model_string_hash(0, item->parent));
    uint64_t keys[2];

    if (item->kind == WAL__ITEM_HEADER || id.size == 0) {
        return true;
    }
    if (group == NULL || !is_in_group(group, item)) {
        group = wal__arena_calloc(turns->arena, sizeof(*group));
        if (group != NULL) {
            group->answer = wal__arena_copy(turns->arena, item->answer_id);
        }
    }
    wal__opencode_write_ops.item_keys(&turns->snapshot.session, id, keys);
    if (group == NULL || !put(&turns->groups, wal__model_string_hash(0, id), group) ||
        !put(&turns->groups, keys[0], group) || !put(&turns->groups, keys[1], group)) {
        return false;
    }
    group->last = id;
    return true;
}

static enum wal_status read_items(struct wal__session_turns *turns, struct wal_error *error)
{
    static const struct wal__entry_limits all = {{UINT64_MAX, 0}};
    static const struct group none;
    struct wal__session_items *items = &turns->items;
    uint64_t keys[2];
    enum wal_status status;

    *items = (struct wal__session_items){.heap = turns->import->heap,
                                         .store = turns->import->store,
                                         .session = turns->session,
                                         .dialect = turns->snapshot.dialect,
                                         .is_fork = turns->snapshot.is_fork,
                                         .sink = add_item,
                                         .ctx = turns};
    wal__session_items_init(items);
    status = wal__session_items_begin(items, error);
    if (status == WAL_OK) {
        status = wal__session_items_read(items, &all, error);
    }
    if (status == WAL_OK) {
        status = wal__session_items_finish(items, error);
    }
    /* Messages that are made without an item's id. */
    wal__opencode_write_ops.item_keys(&turns->snapshot.session, (struct wal__json_span){NULL, 0},
                                      keys);
    if (!put(&turns->groups, keys[1], &none)) {
        turns->import->arena.has_failed = true;
    }
    wal__session_items_deinit(items);
    return status == WAL_OK ? wal__import_check_memory(turns->import, error) : status;
}

/* Whether the session is exported as the client's session of that id. */
static bool is_exported_as(const struct wal__session_turns *turns, const char *id)
{
    const char *path = wal__opencode_write_ops.path(&turns->snapshot.session, 0, turns->arena);
    const char *name = path != NULL ? strrchr(path, '/') + 1 : "";
    size_t size = strlen(id);

    return strncmp(name, id, size) == 0 && strcmp(name + size, ".json") == 0;
}

enum wal_status wal__session_turns_open(struct wal__import *import, struct wal_session *session,
                                        const char *id, bool is_own,
                                        struct wal__session_turns **turns, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_DELTAS |
                                                              WAL_ENTRY_CURSOR_REDACTED |
                                                              WAL_ENTRY_CURSOR_OUT_OF_LINE};
    struct wal__session_turns *opened = wal__arena_calloc(&import->arena.arena, sizeof(*opened));
    enum wal_status status;

    *turns = opened;
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->arena = &import->arena.arena;
    opened->import = import;
    opened->session = session;
    opened->is_own = is_own;
    opened->groups.arena = opened->arena;
    opened->taken.arena = opened->arena;
    status =
        wal__session_snapshot_read(&opened->snapshot, import->heap, import->store, session, error);
    if (status == WAL_OK && !is_exported_as(opened, id)) {
        wal__session_turns_close(opened);
        *turns = NULL;
        return wal__import_check_memory(import, error);
    }
    if (status == WAL_OK) {
        status = read_items(opened, error);
    }
    return status == WAL_OK ? wal_entry_cursor_open(session, &options, &opened->cursor, error)
                            : status;
}

void wal__session_turns_close(struct wal__session_turns *turns)
{
    if (turns != NULL) {
        wal_entry_cursor_close(turns->cursor);
        wal__session_snapshot_deinit(&turns->snapshot);
    }
}

/* --- messages ------------------------------------------------------------ */

static struct wal__json_span span_of(struct wal_slice slice)
{
    return (struct wal__json_span){slice.data, (size_t)slice.size};
}

static uint64_t hash_of(struct wal_slice id)
{
    return wal__model_hash(0, span_of(id));
}

/* Notes what the client went on after: the last entry of a message, if that is one of entries. */
static void set_previous(struct wal__session_turns *turns, const struct group *group)
{
    const char *id = wal__string_copy(turns->arena, group->last, WAL__STRING_MAX);
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    if (id != NULL &&
        wal_entry_cursor_get(turns->cursor, wal__slice_from_text(id), &entry, NULL) == WAL_OK) {
        turns->previous = (struct turn){.parent = wal__slice_from_text(id)};
        turns->takes = true;
    }
}

static struct turn *add_turn(struct wal__session_turns *turns, struct wal_slice id, bool is_known)
{
    struct turn *turn = wal__arena_alloc(turns->arena, sizeof(*turn));

    if (turn == NULL || !put(&turns->taken, hash_of(id), turn)) {
        return NULL;
    }
    *turn = turns->previous;
    turn->id = wal__slice_from_text(wal__import_text(turns->arena, id));
    turn->is_known = is_known;
    if (!is_known) {
        *(turns->last != NULL ? &turns->last->next : &turns->first) = turn;
        turns->last = turn;
        turns->previous = (struct turn){.is_chained = true};
    }
    return turn;
}

static void add_document(struct wal__session_turns *turns, struct turn *turn, struct wal_slice json)
{
    struct wal__json_span *documents = wal__arena_grow(turns->arena, turn->documents, turn->count,
                                                       &turn->capacity, sizeof(documents[0]));

    if (documents != NULL) {
        turn->documents = documents;
        turn->documents[turn->count++] = wal__arena_copy(turns->arena, span_of(json));
    }
}

bool wal__session_turns_message(struct wal__session_turns *turns, struct wal_slice id,
                                struct wal_slice json)
{
    const struct group *group =
        find(&turns->groups, wal__opencode_write_ops.message_key(span_of(id)));
    struct turn *turn = find(&turns->taken, hash_of(id));

    if (turn == NULL) {
        if (group != NULL) {
            set_previous(turns, group);
        } else if (turns->is_own && !turns->takes) {
            return false;
        }
        turn = add_turn(turns, id, group != NULL);
    }
    if (turn != NULL && !turn->is_known) {
        turn->count = 0; /* what is read again is as it is now */
        turn->progress = wal__dialect_opencode.read_ops->progress(span_of(json), &turn->created_ms);
        add_document(turns, turn, json);
    }
    return true;
}

bool wal__session_turns_has_any(const struct wal__session_turns *turns)
{
    return turns->takes;
}

bool wal__session_turns_part(struct wal__session_turns *turns, struct wal_slice message,
                             struct wal_slice json)
{
    struct turn *turn = find(&turns->taken, hash_of(message));

    if (turn != NULL && !turn->is_known) {
        add_document(turns, turn, json);
    }
    return turn != NULL || !turns->is_own;
}

/* --- entries -------------------------------------------------------------- */

static enum wal_status append(struct wal__session_turns *turns, const struct turn *turn,
                              struct wal_slice parent, uint64_t *appended, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    const struct wal__json_span line =
        wal__dialect_opencode.read_ops->join(turns->arena, turn->documents, turn->count);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    char head[WAL_ID_SIZE] = "";
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | (parent.size == 0 ? WAL_ENTRY_ROOT : 0U),
        .id = turn->id,
        .parent_id = parent,
        .type = wal__slice_from_text("message"),
        .timestamp = wal__slice_from_text(wal__import_time_text(turns->arena, turn->created_ms)),
        .payload = {line.data, line.size},
        .meta = wal__slice_from_text("{\"view\":\"opencode\"}"),
    };
    enum wal_status status = wal__import_check_memory(turns->import, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal_head_get(turns->session, 0, (struct wal_slice){NULL, 0}, head, NULL) != WAL_OK) {
        head[0] = '\0';
    }
    entry.flags |= wal__slice_equal(parent, wal__slice_from_text(head)) ? WAL_ENTRY_HEAD_MOVE
                                                                        : WAL_ENTRY_HEAD_KEEP;
    turns->import->must_sync = true;
    status = wal_append(turns->session, &entry, 1, &options, &result, error);
    *appended += result.appended;
    return status;
}

/* Whether the client is done with the message. The parts of a person's come after it: the last one
 * is done when nothing was written for some time. */
static bool is_done(const struct wal__session_turns *turns, const struct turn *turn)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return turn->progress == WAL__PROGRESS_DONE ||
           (turn->progress == WAL__PROGRESS_TEXT &&
            (turn->next != NULL ||
             wal__time_ns(&now) / 1000000 - turns->import->updated_ms > SETTLED_MS));
}

enum wal_status wal__session_turns_commit(struct wal__session_turns *turns, uint64_t *appended,
                                          struct wal_error *error)
{
    struct wal_slice parent = {NULL, 0};
    enum wal_status status = wal__import_check_memory(turns->import, error);

    for (struct turn *turn = turns->first; status == WAL_OK && turn != NULL && is_done(turns, turn);
         turn = turn->next) {
        status = append(turns, turn, turn->is_chained ? parent : turn->parent, appended, error);
        parent = turn->id;
    }
    return status;
}
