/*
 * known.c - what a session is known by (SPEC.md 10.2).
 *
 * Threads: one thread at a time.
 */
#include "view/known.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/jsonl/json_value.h"
#include "format/jsonl/model_table.h"
#include "format/jsonl/model_time.h"

#define LOOK_ENTRIES 64 /* so many are looked at for what a session says, */
#define LOOK_SIZE    (UINT64_C(4) << 20) /* but none that is so long */

/* The years 0 to 9999, in milliseconds. */
#define TIME_FIRST INT64_C(-62167219200000)
#define TIME_LAST  INT64_C(253402300799999)

struct look {
    struct wal__arena *keep;
    struct wal__model_session *known;
    unsigned count;
};

static void keep_field(struct look *look, struct wal__json_span *field,
                       struct wal__json_span found)
{
    if (field->size == 0 && found.size > 0) {
        *field = wal__arena_copy(look->keep, found);
    }
}

static bool look_at(void *ctx, struct wal__model_item *item)
{
    struct look *look = ctx;
    struct wal__model_session *known = look->known;
    const struct wal__model_session *found = item->session;

    if (item->kind == WAL__MODEL_HEADER && found != NULL) {
        keep_field(look, &known->provider, found->provider);
        keep_field(look, &known->model, found->model);
        keep_field(look, &known->cwd, found->cwd);
        keep_field(look, &known->time, found->time);
        keep_field(look, &known->title, found->title);
        keep_field(look, &known->parent, found->parent);
        keep_field(look, &known->thinking_level, found->thinking_level);
        keep_field(look, &known->agent, found->agent);
        keep_field(look, &known->exit_reason, found->exit_reason);
        keep_field(look, &known->raw, found->raw);
        known->dialect = found->dialect;
    }
    keep_field(look, &known->provider, item->provider);
    keep_field(look, &known->model, item->model);
    return ++look->count < LOOK_ENTRIES &&
           (known->model.size == 0 || known->cwd.size == 0 || look->count < 2);
}

static struct wal__json_span time_text(struct wal__arena *arena, int64_t ms)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    return wal__arena_copy(
        arena, wal__model_time_write(
                   ms >= TIME_FIRST && ms <= TIME_LAST ? ms : 0, text));
}

static void set_created(const struct wal_session_info *info,
                        struct wal__arena *keep,
                        struct wal__model_session *known)
{
    struct wal__json_token created;

    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size,
                       "created", &created) == WAL__JSON_OK &&
        created.kind == WAL__JSON_STRING) {
        known->time = wal__arena_copy(keep, created.span);
        return;
    }
    known->time = time_text(keep, info->created_ms);
}

/* The dialect that an import source names, or null. */
static const struct wal__dialect *of_source(struct wal_slice source)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        size_t size = strlen(dialect->name);
        const char *text = source.data;
        if (source.size > size + 1 && memcmp(text, dialect->name, size) == 0 &&
            text[size] == ' ' && text[size + 1] >= '0' &&
            text[size + 1] <= '9') {
            return dialect->reading != NULL ? dialect : NULL;
        }
    }
    return NULL;
}

/* Lines of a fork are those of the session that was imported. */
static const struct wal__dialect *of_lineage(struct wal_store *store,
                                             struct wal_slice id)
{
    const struct wal_list_options options = {
        .struct_size = sizeof(options), .flags = WAL_LIST_LINEAGE, .of = id};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    const struct wal__dialect *dialect = NULL;
    struct wal_list *list = NULL;

    if (wal_list_open(store, &options, &list, NULL) == WAL_OK) {
        while (dialect == NULL && wal_list_next(list, &info, NULL) == WAL_OK) {
            dialect = of_source(info.source);
        }
    }
    wal_list_close(list);
    return dialect;
}

static enum wal_status look(struct wal__known *known,
                            const struct wal__heap *heap,
                            struct wal_store *store,
                            struct wal_session *session,
                            struct wal_error *error)
{
    const struct wal__reach reach = {
        {LOOK_ENTRIES,
         known->dialect->reading->stream != NULL ? LOOK_ENTRIES : 0}};
    struct look looking = {.keep = &known->memory.arena,
                           .known = &known->session};
    struct wal__items items = {.heap = heap,
                               .store = store,
                               .session = session,
                               .dialect = known->dialect,
                               .is_fork = known->is_fork,
                               .sink = look_at,
                               .ctx = &looking,
                               .size_max = LOOK_SIZE};
    enum wal_status status;

    wal__items_init(&items);
    status = wal__items_begin(&items, error);
    if (status == WAL_OK && !items.has_stopped) {
        status = wal__items_take(&items, &reach, error);
    }
    if (status == WAL_OK && !items.has_stopped) {
        status = wal__items_finish(&items, error);
    }
    wal__items_deinit(&items);
    if (status == WAL_OK && known->memory.has_failed) {
        status = wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    return status;
}

enum wal_status wal__known_read(struct wal__known *known,
                                const struct wal__heap *heap,
                                struct wal_store *store,
                                struct wal_session *session,
                                struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__arena *keep = &known->memory.arena;
    enum wal_status status;

    wal__heap_arena_init(&known->memory, heap);
    status = wal_session_status(session, &info, error);
    if (status != WAL_OK) {
        return status;
    }
    known->session = (struct wal__model_session){
        .id = wal__quoted(keep, info.id),
        .cwd = wal__quoted(keep, info.cwd),
        .title = wal__quoted(keep, info.title),
        .parent = wal__quoted(keep, info.parent_id),
        .project = wal__quoted(keep, info.project),
        .updated = time_text(keep, info.updated_ms),
    };
    known->session.metadata = wal__arena_copy(
        keep, (struct wal__json_span){info.metadata.data,
                                      (size_t)info.metadata.size});
    known->head = wal__quoted(keep, info.head);
    known->last_sequence = info.last_sequence;
    known->metadata_version = info.metadata_version;
    known->documents = info.documents;
    known->is_fork = (info.flags & WAL_SESSION_FORK) != 0;
    set_created(&info, keep, &known->session);
    known->dialect = of_source(info.source);
    if (known->dialect == NULL && known->is_fork) {
        known->dialect = of_lineage(store, info.id);
    }
    if (known->dialect == NULL) {
        known->dialect = &wal__dialect_entries;
    }
    return look(known, heap, store, session, error);
}

void wal__known_deinit(struct wal__known *known)
{
    if (known->memory.heap != NULL) {
        wal__heap_arena_deinit(&known->memory);
    }
    *known = (struct wal__known){.dialect = NULL};
}

static uint64_t hash_span(uint64_t hash, struct wal__json_span span)
{
    return wal__model_hash(hash + span.size, span);
}

uint64_t wal__known_hash(const struct wal__known *known)
{
    const struct wal__model_session *session = &known->session;
    const struct wal__json_span spans[] = {
        session->id,       session->cwd,         session->title,
        session->time,     session->parent,      session->project,
        session->provider, session->model,       session->thinking_level,
        session->agent,    session->exit_reason, session->raw,
    };
    uint64_t hash = 1;

    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        hash = hash_span(hash, spans[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct wal__dialect *dialect =
            i == 0 ? session->dialect : known->dialect;
        struct wal__json_span name = {NULL, 0};
        if (dialect != NULL) {
            name.data = (const uint8_t *)dialect->name;
            name.size = strlen(dialect->name);
        }
        hash = hash_span(hash, name);
    }
    return hash;
}

bool wal__known_equal(const struct wal__known *one,
                      const struct wal__known *two)
{
    return wal__known_hash(one) == wal__known_hash(two);
}
