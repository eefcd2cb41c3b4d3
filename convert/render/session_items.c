/*
 * session_items.c - reads the meta of imported lines, the fields of a session with the path that a
 * client gave its file, and a session as items of the neutral model: its entries, or a copy's lines
 * with their ids, or its documents (session_items.h, SPEC.md 10.2).
 */
#include "convert/render/session_items.h"

#include <stdio.h>
#include <string.h>

#include "agentwal/blob.h"
#include "convert/clients/client.h"
#include "convert/copy/copy.h"
#include "convert/model/model_member.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/arena.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- meta ----------------------------------------------------------------- */

static bool is_true(const struct wal_entry *entry, const char *key)
{
    struct wal__json_token value;

    return wal__json_find(entry->meta.data, (size_t)entry->meta.size, key, &value) ==
               WAL__JSON_OK &&
           value.kind == WAL__JSON_TRUE;
}

/* Sets the dialect of the view from which the line was imported. */
static void set_view_dialect(const struct wal_entry *entry, struct wal__line_meta *meta)
{
    struct wal__json_token value;
    char name[32];
    size_t size = 0;

    if (wal__json_find(entry->meta.data, (size_t)entry->meta.size, "view", &value) !=
            WAL__JSON_OK ||
        value.kind != WAL__JSON_STRING) {
        return;
    }
    meta->is_from_view = true;
    if (wal__json_unescape(value.span, (uint8_t *)name, sizeof(name) - 1, &size, NULL) ==
        WAL__JSON_OK) {
        name[size] = '\0';
        meta->view = wal__dialect_find(name);
    }
}

static void set_after(const struct wal_entry *entry, struct wal__line_meta *meta)
{
    struct wal__json_token value;

    if (wal__json_find(entry->meta.data, (size_t)entry->meta.size, "after", &value) ==
            WAL__JSON_OK &&
        value.kind == WAL__JSON_STRING && value.span.size > 2) {
        meta->after = value.span;
    }
}

struct wal__line_meta wal__entry_meta(const struct wal_entry *entry)
{
    struct wal__line_meta meta = {.is_opaque = false};

    if (entry->meta.size > 0) {
        meta.is_opaque = is_true(entry, "whole");
        meta.is_inexact = is_true(entry, "inexact");
        meta.is_replay = is_true(entry, "replay");
        set_view_dialect(entry, &meta);
        set_after(entry, &meta);
    }
    return meta;
}

static struct wal__json_span span_of(struct wal_slice slice)
{
    return (struct wal__json_span){slice.data, (size_t)slice.size};
}

/* Encodes an appended entry, whose payload is in line, as a line of the dialect
 * `entries`; data is NULL without memory. */
static struct wal__json_span entry_line(const struct wal_entry *entry, struct wal__arena *arena)
{
    /* Escaping makes at most six bytes of one; keys and brackets need fewer than 100. */
    size_t capacity = 100 + (size_t)(entry->payload.size + entry->meta.size) +
                      6 * (size_t)(entry->id.size + entry->parent_id.size + entry->type.size +
                                   entry->timestamp.size + entry->run_id.size);
    struct wal__json_memory text = {.data = wal__arena_alloc(arena, capacity),
                                    .capacity = capacity};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};

    if (text.data == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    wal__json_out_open(&out, '{');
    wal__json_out_member_text(&out, "id", span_of(entry->id));
    if (entry->parent_id.size > 0) {
        wal__json_out_member_text(&out, "parentId", span_of(entry->parent_id));
    } else {
        wal__json_out_key(&out, "parentId");
        wal__json_out_literal(&out, "null");
    }
    wal__json_out_member_text(&out, "type", span_of(entry->type));
    wal__json_out_member_text(&out, "timestamp", span_of(entry->timestamp));
    if (entry->run_id.size > 0) {
        wal__json_out_member_text(&out, "runId", span_of(entry->run_id));
    }
    wal__json_out_member(&out, "payload", span_of(entry->payload));
    if (entry->meta.size > 0) {
        wal__json_out_member(&out, "meta", span_of(entry->meta));
    }
    wal__json_out_close(&out, '}');
    return (struct wal__json_span){text.data, text.size};
}

/* --- the client's file --------------------------------------------------- */

/* Returns true if the text contains the bytes. */
static bool contains(const char *text, const char *bytes, size_t size)
{
    return size > 0 && memmem(text, strlen(text), bytes, size) != NULL;
}

/* Whether the file is named after the session. The id of a side chain is that of the session, '~'
 * and the file's name; other suffixes are of copies. */
static bool is_named_after(const char *path, const char *id, size_t size)
{
    const char *suffix = memchr(id, '~', size);
    size_t main_size = suffix != NULL ? (size_t)(suffix - id) : size;

    if (suffix != NULL && (size - main_size <= 7 || memcmp(suffix + 1, "agent-", 6) != 0 ||
                           !contains(path, suffix + 1, size - main_size - 1))) {
        return false;
    }
    return contains(path, id, main_size);
}

/* The path after "DIALECT 0 " if it has no escapes, in the arena, or NULL. */
static char *path_of_source(struct wal_slice source, const char *dialect, struct wal__arena *arena)
{
    size_t size = strlen(dialect);
    const char *text = source.data;
    char *path;

    if (source.size <= size + 3 || memcmp(text, dialect, size) != 0 ||
        memcmp(text + size, " 0 ", 3) != 0) {
        return NULL;
    }
    text += size + 3;
    size = (size_t)source.size - size - 3;
    path = wal__arena_alloc(arena, size + sizeof("projects/"));
    if (path == NULL || memchr(text, '%', size) != NULL) {
        return NULL;
    }
    memcpy(path, text, size);
    path[size] = '\0';
    return path;
}

/*
 * Returns the path below the client's folder, terminated by NUL, in the arena: of a session with
 * this id and source, whose lines have the given dialect. Returns an empty span when the source
 * does not have it, or is the second one of its path.
 */
static struct wal__json_span client_file(const struct wal__dialect *dialect, struct wal_slice id,
                                         struct wal_slice source, struct wal__arena *arena)
{
    const struct wal__json_span none = {NULL, 0};
    char *path = path_of_source(source, dialect->name, arena);
    const struct wal__client *client;
    const char *below;

    if (path == NULL || !is_named_after(path, id.data, (size_t)id.size)) {
        return none;
    }
    /* The folder of a project, imported from the folder of all projects: the name of a directory
     * without its slashes. */
    if (path[0] == '-' && strcmp(dialect->name, "claude") == 0) {
        memmove(path + sizeof("projects/") - 1, path, strlen(path) + 1);
        memcpy(path, "projects/", sizeof("projects/") - 1);
    }
    client = wal__client_of_source(dialect->name, path, &below);
    return client != NULL && wal__client_matches(client->files, below) ? wal__model_literal(below)
                                                                       : none;
}

/* --- the fields ---------------------------------------------------------- */

#define SCAN_ENTRIES_MAX 64                  /* entries that are scanned for fields */
#define SCAN_PAYLOAD_MAX (UINT64_C(4) << 20) /* larger payloads are skipped */

/* The years 0 to 9999, in milliseconds of Unix time. */
#define TIME_FIRST INT64_C(-62167219200000)
#define TIME_LAST  INT64_C(253402300799999)

struct field_scan {
    struct wal__arena *keep;
    struct wal__model_session *snapshot;
    unsigned count;
};

static void set_field_once(struct field_scan *field_scan, struct wal__json_span *field,
                           struct wal__json_span found)
{
    if (field->size == 0 && found.size > 0) {
        *field = wal__arena_copy(field_scan->keep, found);
    }
}

static bool collect_fields(void *ctx, struct wal__model_item *item)
{
    struct field_scan *field_scan = ctx;
    struct wal__model_session *snapshot = field_scan->snapshot;
    const struct wal__model_session *found = item->session;

    if (item->kind == WAL__ITEM_HEADER && found != NULL) {
        set_field_once(field_scan, &snapshot->provider, found->provider);
        set_field_once(field_scan, &snapshot->model, found->model);
        set_field_once(field_scan, &snapshot->cwd, found->cwd);
        set_field_once(field_scan, &snapshot->time, found->time);
        set_field_once(field_scan, &snapshot->title, found->title);
        set_field_once(field_scan, &snapshot->parent, found->parent);
        set_field_once(field_scan, &snapshot->thinking_level, found->thinking_level);
        set_field_once(field_scan, &snapshot->agent, found->agent);
        set_field_once(field_scan, &snapshot->exit_reason, found->exit_reason);
        set_field_once(field_scan, &snapshot->raw, found->raw);
        snapshot->dialect = found->dialect;
    }
    set_field_once(field_scan, &snapshot->provider, item->provider);
    set_field_once(field_scan, &snapshot->model, item->model);
    return ++field_scan->count < SCAN_ENTRIES_MAX &&
           (snapshot->model.size == 0 || snapshot->cwd.size == 0 || field_scan->count < 2);
}

static struct wal__json_span time_text(struct wal__arena *arena, int64_t ms)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    return wal__arena_copy(
        arena, wal__model_time_write(ms >= TIME_FIRST && ms <= TIME_LAST ? ms : 0, text));
}

static struct wal__json_span created_of(const struct wal_session_info *info,
                                        struct wal__arena *keep)
{
    struct wal__json_token created;

    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size, "created", &created) ==
            WAL__JSON_OK &&
        created.kind == WAL__JSON_STRING) {
        return wal__arena_copy(keep, created.span);
    }
    return time_text(keep, info->created_ms);
}

/* Sets the session that started a subagent's, whose id is in that of the transcript, if the store
 * has it. */
static void set_starter(struct wal_store *store, struct wal_slice id, struct wal__arena *keep,
                        struct wal__model_session *snapshot)
{
    static const char separator[] = "~agent-";
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *starter = NULL;
    const char *end = memmem(id.data, (size_t)id.size, separator, sizeof(separator) - 1);

    if (end == NULL || end == id.data) {
        return;
    }
    id.size = (uint64_t)(end - (const char *)id.data);
    if (wal_session_open(store, id, &starter, NULL) == WAL_OK &&
        wal_session_get_info(starter, &info, NULL) == WAL_OK) {
        snapshot->starter = wal__json_quote(keep, info.id);
        snapshot->starter_time = created_of(&info, keep);
        snapshot->starter_cwd = wal__json_quote(keep, info.cwd);
    }
    wal_session_close(starter);
}

/* The dialect that an import source names, or NULL. */
static const struct wal__dialect *dialect_of_source(struct wal_slice source)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        size_t size = strlen(dialect->name);
        const char *text = source.data;
        if (source.size > size + 1 && memcmp(text, dialect->name, size) == 0 && text[size] == ' ' &&
            text[size + 1] >= '0' && text[size + 1] <= '9') {
            return dialect->read_ops != NULL ? dialect : NULL;
        }
    }
    return NULL;
}

/* The lines of a fork have the dialect of the imported session. */
static const struct wal__dialect *dialect_of_lineage(struct wal_store *store, struct wal_slice id)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_SESSION_CURSOR_LINEAGE, .lineage_of = id};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    const struct wal__dialect *dialect = NULL;
    struct wal_session_cursor *list = NULL;

    if (wal_session_cursor_open(store, &options, &list, NULL) == WAL_OK) {
        while (dialect == NULL && wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
            dialect = dialect_of_source(info.source);
        }
    }
    wal_session_cursor_close(list);
    return dialect;
}

static enum wal_status scan_fields(struct wal__session_snapshot *snapshot,
                                   const struct wal__heap *heap, struct wal_store *store,
                                   struct wal_session *session, struct wal_error *error)
{
    const struct wal__entry_limits limits = {
        {SCAN_ENTRIES_MAX, snapshot->dialect->read_ops->stream != NULL ? SCAN_ENTRIES_MAX : 0}};
    struct field_scan scan = {.keep = &snapshot->memory.arena, .snapshot = &snapshot->session};
    struct wal__session_items items = {.heap = heap,
                                       .store = store,
                                       .session = session,
                                       .dialect = snapshot->dialect,
                                       .is_fork = snapshot->is_fork,
                                       .sink = collect_fields,
                                       .ctx = &scan,
                                       .size_max = SCAN_PAYLOAD_MAX};
    enum wal_status status;

    wal__session_items_init(&items);
    status = wal__session_items_begin(&items, error);
    if (status == WAL_OK && !items.has_stopped) {
        status = wal__session_items_read(&items, &limits, error);
    }
    if (status == WAL_OK && !items.has_stopped) {
        status = wal__session_items_finish(&items, error);
    }
    wal__session_items_deinit(&items);
    if (status == WAL_OK && snapshot->memory.has_failed) {
        status = wal__no_memory(error);
    }
    return status;
}

/* Sets the digest of the directory, which clients take without slashes at its end. */
static void set_digest(struct wal__model_session *session, struct wal__arena *arena)
{
    struct wal__json_span path = {NULL, 0};

    if (session->cwd.size > 2) {
        path = wal__arena_unescape(arena, session->cwd);
    }
    while (path.size > 0 && path.data[path.size - 1] == '/') {
        path.size--;
    }
    wal__client_digest((struct wal_slice){path.data, path.size}, session->cwd_digest);
}

enum wal_status wal__session_snapshot_read(struct wal__session_snapshot *snapshot,
                                           const struct wal__heap *heap, struct wal_store *store,
                                           struct wal_session *session, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__arena *keep = &snapshot->memory.arena;
    enum wal_status status;

    wal__heap_arena_init(&snapshot->memory, heap);
    status = wal_session_get_info(session, &info, error);
    if (status != WAL_OK) {
        return status;
    }
    snapshot->session = (struct wal__model_session){
        .id = wal__json_quote(keep, info.id),
        .cwd = wal__json_quote(keep, info.cwd),
        .title = wal__json_quote(keep, info.title),
        .parent = wal__json_quote(keep, info.parent_id),
        .project = wal__json_quote(keep, info.project),
        .updated = time_text(keep, info.updated_ms),
    };
    snapshot->session.metadata = wal__arena_copy(
        keep, (struct wal__json_span){info.metadata.data, (size_t)info.metadata.size});
    snapshot->head = wal__json_quote(keep, info.head);
    snapshot->last_sequence = info.last_sequence;
    snapshot->metadata_version = info.metadata_version;
    snapshot->documents = info.documents;
    snapshot->is_fork = (info.flags & WAL_SESSION_FORK) != 0;
    snapshot->session.time = created_of(&info, keep);
    snapshot->dialect = dialect_of_source(info.source);
    if (snapshot->dialect != NULL) {
        snapshot->session.file_dialect = snapshot->dialect->name;
        snapshot->session.file = client_file(snapshot->dialect, info.id, info.source, keep);
    }
    if (wal__dialect_is(snapshot->dialect, "claude")) {
        set_starter(store, info.id, keep, &snapshot->session);
    }
    if (snapshot->dialect == NULL && snapshot->is_fork) {
        snapshot->dialect = dialect_of_lineage(store, info.id);
    }
    if (snapshot->dialect == NULL) {
        snapshot->dialect = &wal__dialect_entries;
    }
    status = scan_fields(snapshot, heap, store, session, error);
    set_digest(&snapshot->session, keep);
    return status;
}

void wal__session_snapshot_deinit(struct wal__session_snapshot *snapshot)
{
    if (snapshot->memory.heap != NULL) {
        wal__heap_arena_deinit(&snapshot->memory);
    }
    *snapshot = (struct wal__session_snapshot){.dialect = NULL};
}

static uint64_t hash_span(uint64_t hash, struct wal__json_span span)
{
    return wal__model_hash(hash + span.size, span);
}

uint64_t wal__session_snapshot_hash(const struct wal__session_snapshot *snapshot)
{
    const struct wal__model_session *session = &snapshot->session;
    const struct wal__json_span spans[] = {
        session->id,       session->cwd,          session->title,
        session->time,     session->parent,       session->project,
        session->provider, session->model,        session->thinking_level,
        session->agent,    session->exit_reason,  session->raw,
        session->starter,  session->starter_time,
    };
    uint64_t hash = 1;

    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        hash = hash_span(hash, spans[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct wal__dialect *dialect = i == 0 ? session->dialect : snapshot->dialect;
        struct wal__json_span name = {NULL, 0};
        if (dialect != NULL) {
            name.data = (const uint8_t *)dialect->name;
            name.size = strlen(dialect->name);
        }
        hash = hash_span(hash, name);
    }
    return hash;
}

bool wal__session_snapshot_equal(const struct wal__session_snapshot *one,
                                 const struct wal__session_snapshot *two)
{
    return wal__session_snapshot_hash(one) == wal__session_snapshot_hash(two);
}

/* --- ids of a copy ------------------------------------------------------- */

#define ID_MAX 255

/* Parses the entry's line; false if it has no ids. */
static bool read_line(const struct wal__dialect *dialect, const struct wal_entry *entry,
                      struct wal__line_info *line)
{
    struct wal__json_span text = wal__line_text(entry->payload.data, (size_t)entry->payload.size);

    return (entry->flags & WAL_ENTRY_LINE) != 0 && (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
           !wal__line_is_blank(text.data, text.size) && !wal__entry_meta(entry).is_opaque &&
           wal__line_read(dialect, text.data, text.size, line, NULL) == WAL__JSON_OK;
}

static bool is_used(const struct wal__copy_ids *ids, struct wal__json_span text)
{
    struct wal__json_span found;

    return wal__model_table_get(&ids->used_ids, wal__model_hash(0, text), &found);
}

/* Decodes a string that is valid as an id or a time of the log. */
static bool decode_string(struct wal__json_span string, uint8_t *text, size_t most,
                          struct wal__json_span *plain)
{
    size_t size = 0;

    if (string.size < 3 || wal__json_unescape(string, text, most, &size, NULL) != WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] == 0x7F) {
            return false;
        }
    }
    *plain = (struct wal__json_span){text, size};
    return size > 0;
}

/* An id that no earlier entry has, generated in `text` if necessary. */
static struct wal__json_span choose_id(const struct wal__copy_ids *ids,
                                       const struct wal__line_info *line,
                                       const struct wal_entry *entry, uint8_t text[ID_MAX + 1])
{
    struct wal__json_span id = {NULL, 0};

    if (line != NULL && decode_string(line->id, text, ID_MAX, &id) && !is_used(ids, id)) {
        return id;
    }
    id = span_of(entry->id);
    for (unsigned n = 2; is_used(ids, id); n++) {
        int most = entry->id.size < 230 ? (int)entry->id.size : 230;
        int size =
            snprintf((char *)text, ID_MAX + 1, "%.*s~%u", most, (const char *)entry->id.data, n);
        id = (struct wal__json_span){text, (size_t)size};
    }
    return id;
}

/* The mapped id of the entry's parent in the log, or the previous entry's id. */
static struct wal__json_span map_parent(const struct wal__copy_ids *ids,
                                        const struct wal_entry *entry)
{
    struct wal__json_span parent = {NULL, 0};

    if (entry->parent_id.size > 0 &&
        !wal__model_table_get(&ids->by_log_id, wal__model_hash(0, span_of(entry->parent_id)),
                              &parent)) {
        return ids->last_id;
    }
    return parent;
}

static struct wal__json_span find_parent(const struct wal__copy_ids *ids,
                                         const struct wal__line_info *line,
                                         const struct wal_entry *entry)
{
    struct wal__json_span parent = {NULL, 0};

    if (line == NULL) {
        return (entry->flags & WAL_ENTRY_LINE) != 0 && (entry->flags & WAL_ENTRY_REDACTED) == 0
                   ? ids->last_id
                   : map_parent(ids, entry);
    }
    if (line->link == WAL__LINK_EXPLICIT &&
        wal__model_table_get(&ids->used_ids, wal__model_string_hash(0, line->parent), &parent)) {
        return parent;
    }
    if (line->link == WAL__LINK_PREVIOUS) {
        return ids->last_id;
    }
    return line->link == WAL__LINK_ROOT ? parent : map_parent(ids, entry);
}

static struct wal_slice slice_from(struct wal__json_span text)
{
    return (struct wal_slice){text.data, text.size};
}

static void set_time(struct wal__copy_ids *ids, const struct wal__line_info *line,
                     struct wal_entry *entry)
{
    uint8_t text[sizeof(ids->time)];
    struct wal__json_span time;

    if (line != NULL && decode_string(line->time, text, sizeof(text), &time)) {
        WAL__ASSERT(time.size <= sizeof(ids->time));
        memcpy(ids->time, time.data, time.size);
        ids->time_size = time.size;
    }
    if ((entry->flags & WAL_ENTRY_LINE) != 0 && ids->time_size > 0) {
        entry->timestamp = (struct wal_slice){ids->time, ids->time_size};
    }
}

/* Replaces id, parent and time of the next entry by those of the copy's file. Ids are stored in the
 * arena, which must be the same for all calls; the time is valid until the next call. False: no
 * memory. */
static bool copy_ids_map_entry(struct wal__copy_ids *ids, struct wal__arena *keep,
                               const struct wal__dialect *dialect, struct wal_entry *entry)
{
    uint64_t key = wal__model_hash(0, span_of(entry->id));
    uint8_t text[ID_MAX + 1];
    struct wal__line_info line;
    const struct wal__line_info *parsed = read_line(dialect, entry, &line) ? &line : NULL;
    struct wal__json_span parent = find_parent(ids, parsed, entry);
    struct wal__json_span id = choose_id(ids, parsed, entry, text);

    set_time(ids, parsed, entry);
    id = wal__arena_copy(keep, id);
    ids->by_log_id.arena = keep;
    ids->used_ids.arena = keep;
    if (id.data == NULL || !wal__model_table_put(&ids->by_log_id, key, id) ||
        !wal__model_table_put(&ids->used_ids, wal__model_hash(0, id), id)) {
        return false;
    }
    ids->last_id = id;
    entry->id = slice_from(id);
    entry->parent_id = slice_from(parent);
    return true;
}

/* The id in the copy's file, as text, for an id of the log, given as a JSON string; empty if no
 * entry has it. */
static struct wal__json_span copy_ids_find(const struct wal__copy_ids *ids,
                                           struct wal__json_span id)
{
    struct wal__json_span own = {NULL, 0};

    if (id.size > 0) {
        (void)wal__model_table_get(&ids->by_log_id, wal__model_string_hash(0, id), &own);
    }
    return own;
}

/* --- entries ------------------------------------------------------------- */

/* The owner sets the first six fields, zeroes the others, and closes it in any case. */
struct entry_source {
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal__dialect *dialect;
    uint64_t size_max; /* larger payloads stay out of line; 0: no limit */
    struct wal__copy_ids *ids;
    struct wal__arena *keep;
    struct wal_entry_cursor *cursor; /* NULL: of a copy */
    struct wal__copy copy;
    bool is_copy;
    uint8_t *payload;
    size_t size;
    size_t capacity;
    bool has_failed; /* no memory for a payload */
};

/* Opens the source with the options; a copy's conversation always from its beginning. Sessions that
 * are no forks are no copies. */
static enum wal_status entry_source_open(struct entry_source *source, struct wal_session *session,
                                         const struct wal_entry_cursor_options *options,
                                         bool is_fork, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    /* Ids are in the payload: load all payloads. */
    if (is_fork && options->stream == 0) {
        status = wal__copy_open(&source->copy, session, source->heap,
                                options->flags & ~(uint32_t)WAL_ENTRY_CURSOR_OUT_OF_LINE,
                                &source->is_copy, error);
    }
    return status != WAL_OK || source->is_copy
               ? status
               : wal_entry_cursor_open(session, options, &source->cursor, error);
}

static void entry_source_close(struct entry_source *source)
{
    wal_entry_cursor_close(source->cursor);
    if (source->is_copy) {
        wal__copy_close(&source->copy);
    }
    wal__heap_free(source->heap, source->payload);
    source->cursor = NULL;
    source->payload = NULL;
    source->is_copy = false;
}

static bool append_payload(void *ctx, const void *data, size_t size)
{
    struct entry_source *source = ctx;

    if (source->capacity - source->size < size) {
        size_t more = 2 * (source->size + size);
        uint8_t *payload = wal__heap_resize(source->heap, source->payload, more, 1);
        if (payload == NULL) {
            source->has_failed = true;
            return false;
        }
        source->payload = payload;
        source->capacity = more;
    }
    WAL__ASSERT(size <= source->capacity - source->size);
    memcpy(source->payload + source->size, data, size);
    source->size += size;
    return true;
}

/* Loads the out-of-line payload of a line. */
static enum wal_status load_payload(struct entry_source *source, struct wal_entry *entry,
                                    struct wal_error *error)
{
    enum wal_status status;

    source->size = 0;
    status =
        wal__copy_read_payload(&source->copy, source->store, entry, append_payload, source, error);
    if (status == WAL_OK && source->has_failed) {
        status = WAL_ENOMEM;
    }
    if (status == WAL_OK) {
        entry->payload = (struct wal_slice){source->payload, source->size};
        entry->payload_size = source->size;
        entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
    }
    return status;
}

/* Returns the next entry, or WAL_END; WAL_ECORRUPT and WAL_EIO concern one entry. Entries of a copy
 * have the ids of its file. */
static enum wal_status entry_source_next(struct entry_source *source, struct wal_entry *entry,
                                         struct wal_error *error)
{
    enum wal_status status;

    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    if (!source->is_copy) {
        return wal_entry_cursor_next(source->cursor, entry, error);
    }
    status = wal__copy_next(&source->copy, entry, error);
    if (status == WAL_OK && (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0 &&
        (source->size_max == 0 || entry->payload_size <= source->size_max)) {
        status = load_payload(source, entry, error);
    }
    if (status == WAL_OK &&
        !copy_ids_map_entry(source->ids, source->keep, source->dialect, entry)) {
        status = wal__no_memory(error);
    }
    return status;
}

/* --- documents ----------------------------------------------------------- */

struct documents {
    struct wal__session_items *items;
    struct wal_error *error;
    enum wal_status status;
};

static bool copy_value(struct documents *documents, const struct wal_doc *doc,
                       struct wal__json_span *value)
{
    *value = wal__arena_copy(&documents->items->scratch.arena,
                             (struct wal__json_span){doc->value.data, (size_t)doc->value.size});
    if (value->data == NULL) {
        documents->status = wal__no_memory(documents->error);
    }
    return value->data != NULL;
}

static bool get_document(void *ctx, const char *key, struct wal__json_span *value)
{
    struct documents *documents = ctx;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;
    bool is_there = false;

    status = wal_doc_cursor_open(documents->items->store, documents->items->session, NULL, &docs,
                                 documents->error);
    if (status == WAL_OK) {
        status = wal_doc_cursor_get(docs, wal__slice_from_text(key), 0, &doc, documents->error);
        is_there = status == WAL_OK && copy_value(documents, &doc, value);
    }
    wal_doc_cursor_close(docs);
    if (status == WAL_ECORRUPT) {
        documents->items->unreadable++;
    } else if (status != WAL_OK && status != WAL_ENOTFOUND) {
        documents->status = status;
    }
    return is_there;
}

/* Passes one document to `each`; false to stop. */
static bool emit_document(struct documents *documents, const struct wal_doc *doc,
                          bool (*each)(void *each_ctx, const char *key,
                                       struct wal__json_span value),
                          void *each_ctx)
{
    struct wal__json_span value;
    char key[1025];

    if (doc->key.size >= sizeof(key) || !copy_value(documents, doc, &value)) {
        return doc->key.size >= sizeof(key);
    }
    for (size_t i = 0; i < doc->key.size; i++) {
        key[i] = ((const char *)doc->key.data)[i];
    }
    key[doc->key.size] = '\0';
    return each(each_ctx, key, value);
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    struct documents *documents = ctx;
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .prefix = wal__slice_from_text(prefix)};
    struct wal_doc_cursor *docs = NULL;
    bool wants_more = true;
    enum wal_status status;

    status = wal_doc_cursor_open(documents->items->store, documents->items->session, &options,
                                 &docs, documents->error);
    while (wants_more && status == WAL_OK) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        status = wal_doc_cursor_next(docs, &doc, documents->error);
        if (status == WAL_ECORRUPT) {
            documents->items->unreadable++;
            status = WAL_OK;
        } else if (status == WAL_OK) {
            wants_more = emit_document(documents, &doc, each, each_ctx);
        }
    }
    wal_doc_cursor_close(docs);
    if (status != WAL_OK && status != WAL_END) {
        documents->status = status;
    }
    return wants_more && status == WAL_END;
}

enum wal_status wal__document_items_scan(struct wal__session_items *items, const char *prefix,
                                         bool (*each)(void *ctx, const char *key,
                                                      struct wal__json_span value),
                                         void *ctx, struct wal_error *error)
{
    struct documents documents = {.items = items, .error = error, .status = WAL_OK};

    (void)scan_documents(&documents, prefix, each, ctx);
    return documents.status;
}

static enum wal_status document_items_read(struct wal__session_items *items,
                                           struct wal_error *error)
{
    struct documents documents = {.items = items, .error = error, .status = WAL_OK};
    const struct wal__model_documents tree = {
        .ctx = &documents, .get = get_document, .scan = scan_documents};

    if (items->dialect->read_ops->documents(&items->lines, &tree) != WAL__JSON_OK &&
        !items->has_stopped && documents.status == WAL_OK) {
        return wal__no_memory(error);
    }
    return documents.status;
}

/* --- items --------------------------------------------------------------- */

static bool emit_item(void *ctx, struct wal__model_item *item)
{
    struct wal__session_items *items = ctx;

    items->emitted++;
    if (items->is_in_documents && item->kind != WAL__ITEM_HEADER) {
        items->last_document = wal__arena_copy(&items->keep.arena, item->id);
    }
    items->has_stopped |= !items->sink(items->ctx, item);
    return !items->has_stopped;
}

static void init_reader(struct wal__session_items *items, struct wal__model_reader *reader,
                        const struct wal__dialect *dialect)
{
    *reader = (struct wal__model_reader){
        .dialect = dialect,
        .arena = &items->keep.arena,
        .scratch = &items->scratch.arena,
        .sink = emit_item,
        .dialects = wal__dialect_list(),
        .ctx = items,
    };
}

void wal__session_items_init(struct wal__session_items *items)
{
    wal__heap_arena_init(&items->keep, items->heap);
    wal__heap_arena_init(&items->scratch, items->heap);
    init_reader(items, &items->lines, items->dialect);
    init_reader(items, &items->entries, &wal__dialect_entries);
}

void wal__session_items_deinit(struct wal__session_items *items)
{
    wal__heap_arena_deinit(&items->keep);
    wal__heap_arena_deinit(&items->scratch);
}

static bool is_text(struct wal__json_span string, struct wal_slice text)
{
    return string.size > 2 && wal__json_string_equals(string, text.data, (size_t)text.size);
}

/* The parent of an entry's item. Entries of a session that was imported as documents go on after
 * these, or after the item that they name. */
static struct wal__json_span parent_of(struct wal__session_items *items,
                                       const struct wal_entry *entry)
{
    struct wal__json_span after;

    if (entry->parent_id.size > 0 || items->last_document.size == 0 || entry->stream != 0) {
        return wal__json_quote(&items->scratch.arena, entry->parent_id);
    }
    after = wal__entry_meta(entry).after;
    return after.size > 0 ? after : items->last_document;
}

/* Whether the line can be written with the id and the parent that it states: they are those in the
 * log, or the import put another parent there, as one that links in turns does. */
static bool is_exact(const struct wal__session_items *items, const struct wal__line_info *line,
                     const struct wal__line_meta *meta, const struct wal_entry *entry)
{
    return is_text(line->id, entry->id) &&
           (line->link != WAL__LINK_EXPLICIT || is_text(line->parent, entry->parent_id) ||
            (entry->parent_id.size > 0 && !meta->is_inexact && !meta->is_from_view &&
             !items->is_copy));
}

/* Makes the reader active, or none; items that the last one holds back come first. */
static void activate(struct wal__session_items *items, struct wal__model_reader *reader)
{
    const struct wal__dialect_read_ops *ops =
        items->active != NULL ? items->active->dialect->read_ops : NULL;

    if (items->active != reader && ops != NULL && ops->release != NULL && !items->has_stopped &&
        ops->release(items->active) != WAL__JSON_OK && !items->has_stopped) {
        items->damaged++;
    }
    items->active = reader;
}

static void emit_line(struct wal__session_items *items, struct wal__model_reader *to,
                      struct wal__model_line *line, const struct wal_entry *entry)
{
    enum wal__json_status status;

    line->stream = entry->stream;
    line->id = wal__json_quote(&items->scratch.arena, entry->id);
    line->parent = parent_of(items, entry);
    if (line->time.size == 0) {
        line->time = wal__json_quote(&items->scratch.arena, entry->timestamp);
    }
    activate(items, to);
    status = to->dialect->read_ops->line(to, line);
    if (status != WAL__JSON_OK && !items->has_stopped) {
        items->damaged++;
    }
}

/* Emits an item without content, so that children of the entry get its parent. */
static void emit_placeholder(struct wal__session_items *items, const struct wal_entry *entry)
{
    struct wal__model_item placeholder = {.kind = WAL__ITEM_HEAD, .stream = entry->stream};

    activate(items, NULL);
    placeholder.id = wal__json_quote(&items->scratch.arena, entry->id);
    placeholder.parent = parent_of(items, entry);
    (void)wal__model_emit(&items->entries, &placeholder);
}

static bool discard_item(void *ctx, struct wal__model_item *item)
{
    (void)ctx;
    (void)item;
    return true;
}

/* Initialises a reader as if it had read the header of a file. */
static void init_view_reader(struct wal__session_items *items, struct wal__model_reader *reader,
                             const struct wal__dialect *dialect)
{
    const char *header = dialect->read_ops->header;
    struct wal__model_line line = {.id = wal__model_literal("\"header\"")};

    init_reader(items, reader, dialect);
    if (header != NULL) {
        line.text = wal__model_literal(header);
        reader->sink = discard_item;
        (void)dialect->read_ops->line(reader, &line);
        reader->sink = emit_item;
    }
}

/* The reader of a line, or NULL if its dialect cannot be read. */
static struct wal__model_reader *find_reader(struct wal__session_items *items,
                                             const struct wal__line_meta *meta)
{
    if (!meta->is_from_view || meta->view == items->dialect) {
        return &items->lines;
    }
    if (meta->view == NULL || meta->view->read_ops == NULL || meta->view->read_ops->line == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < WAL__ITEMS_VIEW_DIALECTS; i++) {
        if (items->view_readers[i].dialect == NULL) {
            init_view_reader(items, &items->view_readers[i], meta->view);
        }
        if (items->view_readers[i].dialect == meta->view) {
            return &items->view_readers[i];
        }
    }
    return NULL;
}

/* Returns the text of a line in one line: a session that is one object in several lines is an
 * entry, and its values are written to lines. Newlines are between values only. */
static struct wal__json_span one_line(struct wal__session_items *items, struct wal__json_span text)
{
    uint8_t *copy;

    if (text.size == 0 || memchr(text.data, '\n', text.size) == NULL) {
        return text;
    }
    copy = wal__arena_alloc(&items->scratch.arena, text.size);
    for (size_t i = 0; copy != NULL && i < text.size; i++) {
        copy[i] = text.data[i] == '\n' || text.data[i] == '\r' ? ' ' : text.data[i];
    }
    return (struct wal__json_span){copy, copy != NULL ? text.size : 0};
}

static void read_stored_line(struct wal__session_items *items, const struct wal_entry *entry)
{
    const struct wal__line_meta meta = wal__entry_meta(entry);
    struct wal__model_reader *reader = find_reader(items, &meta);
    struct wal__model_line line = {.stream = entry->stream};
    struct wal__line_info read;

    line.text = wal__line_text(entry->payload.data, (size_t)entry->payload.size);
    if (meta.is_replay || wal__line_is_blank(line.text.data, line.text.size)) {
        emit_placeholder(items, entry);
        return;
    }
    if (reader == NULL || reader->dialect->read_ops->line == NULL || meta.is_opaque ||
        wal__line_read(reader->dialect, line.text.data, line.text.size, &read, NULL) !=
            WAL__JSON_OK) {
        items->damaged++;
        emit_placeholder(items, entry);
        return;
    }
    line.text = one_line(items, line.text);
    line.time = read.time;
    line.is_exact = is_exact(items, &read, &meta, entry);
    emit_line(items, reader, &line, entry);
}

static void read_entry(struct wal__session_items *items, const struct wal_entry *entry)
{
    struct wal__model_line line = {.is_exact = true};

    line.text = entry_line(entry, &items->scratch.arena);
    if (line.text.data != NULL) {
        emit_line(items, &items->entries, &line, entry);
    }
}

static bool copy_to_arena(struct wal__arena *arena, struct wal_slice *slice)
{
    struct wal__json_span span = {slice->data, (size_t)slice->size};

    if (span.size > 0) {
        span = wal__arena_copy(arena, span);
        slice->data = span.data;
    }
    return slice->size == 0 || slice->data != NULL;
}

/* Loads the blob of an out-of-line payload. */
static enum wal_status load_blob_payload(struct wal__session_items *items, struct wal_entry *entry)
{
    struct wal_blob *blob = NULL;
    void *data = NULL;
    uint64_t got = 0;
    enum wal_status status = wal_blob_open(items->store, entry->payload_digest, &blob, NULL);

    if (status == WAL_OK) {
        data = wal__arena_alloc(&items->scratch.arena, (size_t)entry->payload_size);
        status = data != NULL ? wal_blob_read(blob, 0, data, entry->payload_size, &got, NULL)
                              : WAL_ENOMEM;
    }
    wal_blob_close(blob);
    entry->payload = (struct wal_slice){data, got};
    return status;
}

/* Loads the payload if necessary; false: it cannot be used. */
static bool has_payload(struct wal__session_items *items, struct wal_entry *entry)
{
    enum wal_status status;

    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
        /* The cursor reuses the memory of the payload for its next entry. */
        return !items->retains_items || copy_to_arena(&items->scratch.arena, &entry->payload);
    }
    if (items->size_max > 0 && entry->payload_size > items->size_max) {
        return false;
    }
    status = load_blob_payload(items, entry);
    if (status == WAL_ENOMEM) {
        items->status = status;
    } else if (status != WAL_OK) {
        items->unreadable++;
    }
    return status == WAL_OK;
}

/* Whether it is a redaction of this store whose target is shown: it was undone. As a line it would
 * hide that where it is imported. */
static bool is_undone(const struct wal__session_items *items, const struct wal_entry *entry)
{
    const struct wal__json_span payload = {entry->payload.data, (size_t)entry->payload.size};
    struct wal_entry target = {.struct_size = sizeof(target)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal__json_token member;
    uint8_t id[ID_MAX];
    size_t size = 0;
    bool is_shown;

    if ((entry->flags & WAL_ENTRY_LINE) != 0 ||
        entry->type.size != sizeof(WAL_TYPE_REDACTION) - 1 ||
        memcmp(entry->type.data, WAL_TYPE_REDACTION, (size_t)entry->type.size) != 0 ||
        wal__json_find(payload.data, payload.size, "targetEntryId", &member) != WAL__JSON_OK ||
        wal__json_unescape(member.span, id, sizeof(id), &size, NULL) != WAL__JSON_OK ||
        wal_entry_cursor_open(items->session, NULL, &cursor, NULL) != WAL_OK) {
        return false;
    }
    is_shown = wal_entry_cursor_get(cursor, (struct wal_slice){id, size}, &target, NULL) == WAL_OK;
    wal_entry_cursor_close(cursor);
    return is_shown;
}

static void emit_entry(struct wal__session_items *items, struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        items->redacted++;
        emit_placeholder(items, entry);
    } else if (!has_payload(items, entry) || is_undone(items, entry)) {
        emit_placeholder(items, entry);
    } else if ((entry->flags & WAL_ENTRY_LINE) != 0) {
        read_stored_line(items, entry);
    } else {
        read_entry(items, entry);
    }
    if (items->keep.has_failed || items->scratch.has_failed) {
        items->status = WAL_ENOMEM;
    }
    if (items->is_idle == NULL || items->is_idle(items->ctx)) {
        wal__heap_arena_reset(&items->scratch);
    }
}

struct wal_entry_cursor_options wal__session_items_options(uint32_t stream, uint64_t skip)
{
    return (struct wal_entry_cursor_options){
        .struct_size = sizeof(struct wal_entry_cursor_options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_DURABLE,
        .stream = stream,
        .skip = skip,
    };
}

enum wal_status wal__session_items_count(struct wal_session *session, uint32_t stream,
                                         uint32_t without, uint64_t *entries,
                                         struct wal_error *error)
{
    struct wal_entry_cursor_options options = wal__session_items_options(stream, 0);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.flags &= ~without;
    status = wal_entry_cursor_open(session, &options, &cursor, error);
    if (status == WAL_OK) {
        *entries = wal_entry_cursor_remaining(cursor);
    }
    wal_entry_cursor_close(cursor);
    return status;
}

enum wal_status wal__session_items_count_redacted(struct wal_session *session, uint32_t stream,
                                                  uint64_t *redacted, struct wal_error *error)
{
    struct wal_entry_cursor_options options = wal__session_items_options(stream, 0);
    struct wal_entry_cursor *cursor = NULL;
    uint64_t all = 0;
    uint64_t shown;
    enum wal_status status = wal__session_items_count(session, stream, 0, &all, error);

    options.flags &= ~(uint32_t)WAL_ENTRY_CURSOR_REDACTED;
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(session, &options, &cursor, error);
    }
    if (status == WAL_OK) {
        shown = wal_entry_cursor_remaining(cursor);
        *redacted += (all > shown ? all - shown : 0) + 2 * wal_entry_cursor_restored(cursor);
    }
    wal_entry_cursor_close(cursor);
    return status;
}

static enum wal_status read_stream(struct wal__session_items *items, uint32_t stream,
                                   uint64_t limits, struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(stream, items->read_counts[stream]);
    struct entry_source source = {.heap = items->heap,
                                  .store = items->store,
                                  .dialect = items->dialect,
                                  .size_max = items->size_max,
                                  .ids = &items->ids,
                                  .keep = &items->keep.arena};
    enum wal_status status = WAL_OK;

    WAL__ASSERT(stream < sizeof(items->read_counts) / sizeof(items->read_counts[0]));
    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (items->read_counts[stream] < limits) {
        status = entry_source_open(&source, items->session, &options, items->is_fork, error);
        items->is_copy |= source.is_copy;
    }
    /* A copy may have lines on no branch, which are not counted. */
    while (status == WAL_OK && !items->has_stopped &&
           (source.is_copy || items->read_counts[stream] < limits)) {
        struct wal_entry entry;
        status = entry_source_next(&source, &entry, error);
        if (status == WAL_OK) {
            items->read_counts[stream]++;
            emit_entry(items, &entry);
            status = items->status;
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            items->read_counts[stream]++;
            items->unreadable++;
            status = WAL_OK;
        }
    }
    entry_source_close(&source);
    return status == WAL_END ? WAL_OK : status;
}

bool wal__session_items_map_head(struct wal__session_items *items, struct wal__json_span *head)
{
    struct wal__json_span own;

    if (!items->is_copy || head->size == 0) {
        return true;
    }
    own = copy_ids_find(&items->ids, *head);
    *head = wal__json_quote(&items->keep.arena, (struct wal_slice){own.data, own.size});
    return own.size == 0 || head->data != NULL;
}

enum wal_status wal__session_items_begin(struct wal__session_items *items, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (items->dialect->read_ops->documents != NULL) {
        items->is_in_documents = true;
        status = document_items_read(items, error);
        items->is_in_documents = false;
    }
    return status;
}

enum wal_status wal__session_items_read(struct wal__session_items *items,
                                        const struct wal__entry_limits *limits,
                                        struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < 2 && status == WAL_OK && !items->has_stopped; i++) {
        status = read_stream(items, i, limits->entries[i], error);
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

/* Emits the items that wait in a reader. */
static void finish_reader(struct wal__session_items *items, struct wal__model_reader *reader)
{
    const struct wal__dialect *dialect = reader->dialect;

    if (dialect != NULL && dialect->read_ops->finish != NULL && !items->has_stopped &&
        dialect->read_ops->finish(reader) != WAL__JSON_OK && !items->has_stopped) {
        items->damaged++;
    }
}

enum wal_status wal__session_items_finish(struct wal__session_items *items, struct wal_error *error)
{
    finish_reader(items, &items->lines);
    finish_reader(items, &items->entries);
    for (size_t i = 0; i < WAL__ITEMS_VIEW_DIALECTS; i++) {
        finish_reader(items, &items->view_readers[i]);
    }
    if (items->keep.has_failed || items->scratch.has_failed) {
        items->status = WAL_ENOMEM;
    }
    return items->status == WAL_OK ? WAL_OK : wal__fail(error, items->status, "no memory");
}
