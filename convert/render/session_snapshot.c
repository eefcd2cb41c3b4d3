/*
 * session_snapshot.c - reads the fields of a session, and the path that a
 * client gave its file (session_snapshot.h, SPEC.md 10.2).
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/render/session_snapshot.h"

#include <string.h>

#include "agentwal.h"
#include "convert/clients/client.h"
#include "convert/model/dialect.h"
#include "convert/model/model_table.h"
#include "engine/base/error.h"
#include "format/json/arena.h"
#include "format/json/json_value.h"
#include "format/payload/timestamp.h"

/* --- the client's file --------------------------------------------------- */

/* Returns true if the text contains the bytes. */
static bool contains(const char *text, const char *bytes, size_t size)
{
    return size > 0 && memmem(text, strlen(text), bytes, size) != NULL;
}

/* Whether the file is named after the session. The id of a side chain is that
 * of the session, '~' and the file's name; other suffixes are of copies. */
static bool is_named_after(const char *path, const char *id, size_t size)
{
    const char *suffix = memchr(id, '~', size);
    size_t main_size = suffix != NULL ? (size_t)(suffix - id) : size;

    if (suffix != NULL &&
        (size - main_size <= 7 || memcmp(suffix + 1, "agent-", 6) != 0 ||
         !contains(path, suffix + 1, size - main_size - 1))) {
        return false;
    }
    return contains(path, id, main_size);
}

/* The path after "DIALECT 0 " if it has no escapes, in the arena, or NULL. */
static char *path_of_source(struct wal_slice source, const char *dialect,
                            struct wal__arena *arena)
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

static bool is_path_of_client(const char *path, const char *dialect)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (strcmp(client->dialect, dialect) == 0 &&
            wal__client_matches(client->files, path)) {
            return true;
        }
    }
    return false;
}

/*
 * Returns the path below the client's folder, terminated by NUL, in the arena:
 * of a session with this id and source, whose lines have the given dialect.
 * Returns an empty span when the source does not have it, or is the second one
 * of its path.
 */
static struct wal__json_span client_file(const struct wal__dialect *dialect,
                                         struct wal_slice id,
                                         struct wal_slice source,
                                         struct wal__arena *arena)
{
    const struct wal__json_span none = {NULL, 0};
    char *path = path_of_source(source, dialect->name, arena);

    if (path == NULL || !is_named_after(path, id.data, (size_t)id.size)) {
        return none;
    }
    /* The folder of a project, imported from the folder of all projects: the
     * name of a directory without its slashes. */
    if (path[0] == '-' && strcmp(dialect->name, "claude") == 0) {
        memmove(path + sizeof("projects/") - 1, path, strlen(path) + 1);
        memcpy(path, "projects/", sizeof("projects/") - 1);
    }
    return is_path_of_client(path, dialect->name)
               ? (struct wal__json_span){(const uint8_t *)path, strlen(path)}
               : none;
}

/* --- the fields ---------------------------------------------------------- */

#define SCAN_ENTRIES_MAX 64 /* entries that are scanned for fields */
#define SCAN_PAYLOAD_MAX (UINT64_C(4) << 20) /* larger payloads are skipped */

/* The years 0 to 9999, in milliseconds of Unix time. */
#define TIME_FIRST INT64_C(-62167219200000)
#define TIME_LAST  INT64_C(253402300799999)

struct field_scan {
    struct wal__arena *keep;
    struct wal__model_session *snapshot;
    unsigned count;
};

static void set_field_once(struct field_scan *field_scan,
                           struct wal__json_span *field,
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
        set_field_once(field_scan, &snapshot->thinking_level,
                       found->thinking_level);
        set_field_once(field_scan, &snapshot->agent, found->agent);
        set_field_once(field_scan, &snapshot->exit_reason, found->exit_reason);
        set_field_once(field_scan, &snapshot->raw, found->raw);
        snapshot->dialect = found->dialect;
    }
    set_field_once(field_scan, &snapshot->provider, item->provider);
    set_field_once(field_scan, &snapshot->model, item->model);
    return ++field_scan->count < SCAN_ENTRIES_MAX &&
           (snapshot->model.size == 0 || snapshot->cwd.size == 0 ||
            field_scan->count < 2);
}

static struct wal__json_span time_text(struct wal__arena *arena, int64_t ms)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    return wal__arena_copy(
        arena, wal__model_time_write(
                   ms >= TIME_FIRST && ms <= TIME_LAST ? ms : 0, text));
}

static struct wal__json_span created_of(const struct wal_session_info *info,
                                        struct wal__arena *keep)
{
    struct wal__json_token created;

    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size,
                       "created", &created) == WAL__JSON_OK &&
        created.kind == WAL__JSON_STRING) {
        return wal__arena_copy(keep, created.span);
    }
    return time_text(keep, info->created_ms);
}

/* Sets the session that started a subagent's, whose id is in that of the
 * transcript, if the store has it. */
static void set_starter(struct wal_store *store, struct wal_slice id,
                        struct wal__arena *keep,
                        struct wal__model_session *snapshot)
{
    static const char separator[] = "~agent-";
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *starter = NULL;
    const char *end =
        memmem(id.data, (size_t)id.size, separator, sizeof(separator) - 1);

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
        if (source.size > size + 1 && memcmp(text, dialect->name, size) == 0 &&
            text[size] == ' ' && text[size + 1] >= '0' &&
            text[size + 1] <= '9') {
            return dialect->read_ops != NULL ? dialect : NULL;
        }
    }
    return NULL;
}

/* The lines of a fork have the dialect of the imported session. */
static const struct wal__dialect *dialect_of_lineage(struct wal_store *store,
                                                     struct wal_slice id)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = id};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    const struct wal__dialect *dialect = NULL;
    struct wal_session_cursor *list = NULL;

    if (wal_session_cursor_open(store, &options, &list, NULL) == WAL_OK) {
        while (dialect == NULL &&
               wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
            dialect = dialect_of_source(info.source);
        }
    }
    wal_session_cursor_close(list);
    return dialect;
}

static enum wal_status scan_fields(struct wal__session_snapshot *snapshot,
                                   const struct wal__heap *heap,
                                   struct wal_store *store,
                                   struct wal_session *session,
                                   struct wal_error *error)
{
    const struct wal__entry_limits limits = {
        {SCAN_ENTRIES_MAX,
         snapshot->dialect->read_ops->stream != NULL ? SCAN_ENTRIES_MAX : 0}};
    struct field_scan scan = {.keep = &snapshot->memory.arena,
                              .snapshot = &snapshot->session};
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

enum wal_status
wal__session_snapshot_read(struct wal__session_snapshot *snapshot,
                           const struct wal__heap *heap,
                           struct wal_store *store, struct wal_session *session,
                           struct wal_error *error)
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
        keep, (struct wal__json_span){info.metadata.data,
                                      (size_t)info.metadata.size});
    snapshot->head = wal__json_quote(keep, info.head);
    snapshot->last_sequence = info.last_sequence;
    snapshot->metadata_version = info.metadata_version;
    snapshot->documents = info.documents;
    snapshot->is_fork = (info.flags & WAL_SESSION_FORK) != 0;
    snapshot->session.time = created_of(&info, keep);
    snapshot->dialect = dialect_of_source(info.source);
    if (snapshot->dialect != NULL) {
        snapshot->session.file_dialect = snapshot->dialect->name;
        snapshot->session.file =
            client_file(snapshot->dialect, info.id, info.source, keep);
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
    return scan_fields(snapshot, heap, store, session, error);
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

uint64_t
wal__session_snapshot_hash(const struct wal__session_snapshot *snapshot)
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
        const struct wal__dialect *dialect =
            i == 0 ? session->dialect : snapshot->dialect;
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
