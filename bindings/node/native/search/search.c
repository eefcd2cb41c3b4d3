/*
 * search.c - full-text search.
 */
#include <agentwal/search.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void close_search(void *object)
{
    wal_search_close(object);
}

static const struct handle_type search_type = {"search", close_search, false};

/* openSearch(store, flags): a search */
static napi_value open_search(struct call *call)
{
    struct store *store = store_get(call, 0);
    const struct wal_search_options options = {
        .struct_size = sizeof(options),
        .flags = value_u32(call, call_arg(call, 1)),
    };
    struct wal_search *search = NULL;

    if (call->failed ||
        !call_check(call, wal_search_open(store->wal, &options, &search,
                                          call_error(call)))) {
        return NULL;
    }
    return handle_make(call, &search_type, store, search);
}

/* closeSearch(search) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &search_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

/* --- values of a result ------------------------------------------------- */

static const char *role_name(uint32_t role)
{
    switch (role) {
    case WAL_SEARCH_USER:
        return "user";
    case WAL_SEARCH_ASSISTANT:
        return "assistant";
    case WAL_SEARCH_TOOL:
        return "tool";
    case WAL_SEARCH_TITLE:
        return "title";
    case WAL_SEARCH_SUMMARY:
        return "summary";
    default:
        return "result";
    }
}

/* Units of UTF-16 that a byte of UTF-8 begins. */
static uint32_t units_of(uint8_t byte)
{
    if ((byte & 0xc0) == 0x80) {
        return 0;
    }
    return byte >= 0xf0 ? 2 : 1;
}

/* The pairs of offsets, which ascend, in units of UTF-16. */
static napi_value make_matches(struct call *call,
                               const struct wal_search_hit *hit)
{
    const uint8_t *snippet = hit->snippet.data;
    napi_value matches = make_array(call);
    uint32_t units = 0;
    uint32_t byte = 0;

    for (uint32_t i = 0; i < hit->match_count; i++) {
        napi_value pair = make_array(call);

        for (uint32_t j = 0; j < 2; j++) {
            while (byte < hit->matches[2 * i + j] && byte < hit->snippet.size) {
                units += units_of(snippet[byte]);
                byte++;
            }
            array_push(call, pair, j, make_number(call, units));
        }
        array_push(call, matches, i, pair);
    }
    return matches;
}

static napi_value make_hit(struct call *call, const struct wal_search_hit *hit)
{
    napi_value object = make_object(call);

    object_set(call, object, "entryId", make_optional(call, hit->entry_id));
    object_set(call, object, "role", make_string(call, role_name(hit->role)));
    object_set(call, object, "time", make_signed(call, hit->time_ms));
    object_text(call, object, "timestamp", hit->timestamp);
    object_number(call, object, "sequence", hit->sequence);
    object_set(call, object, "tool", make_optional(call, hit->tool));
    object_text(call, object, "snippet", hit->snippet);
    object_set(call, object, "matches", make_matches(call, hit));
    object_set(call, object, "score", make_double(call, hit->score));
    return object;
}

/* The session of a hit. */
static napi_value make_session(struct call *call,
                               const struct wal_search_hit *hit,
                               napi_value hits)
{
    napi_value object = make_object(call);

    object_text(call, object, "sessionId", hit->session_id);
    object_text(call, object, "title", hit->title);
    object_text(call, object, "cwd", hit->cwd);
    object_text(call, object, "projectId", hit->project);
    object_set(call, object, "updated",
               make_signed(call, hit->session_updated_ms));
    object_number(call, object, "matches", hit->session_hits);
    object_set(call, object, "hits", hits);
    return object;
}

/* An array of the sessions with their hits. */
static napi_value make_sessions(struct call *call,
                                struct wal_search_cursor *cursor)
{
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    napi_value sessions = make_array(call);
    napi_value hits = NULL;
    uint32_t session_count = 0;
    uint32_t hit_count = 0;
    uint32_t rank = 0;

    while (!call->failed) {
        enum wal_status status =
            wal_search_cursor_next(cursor, &hit, call_error(call));

        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        if (hits == NULL || hit.rank != rank) {
            hits = make_array(call);
            hit_count = 0;
            rank = hit.rank;
            array_push(call, sessions, session_count,
                       make_session(call, &hit, hits));
            session_count++;
        }
        array_push(call, hits, hit_count, make_hit(call, &hit));
        hit_count++;
    }
    return sessions;
}

/* --- find --------------------------------------------------------------- */

struct find_job {
    struct job job;
    struct wal_search_query query;
    struct wal_search_cursor *cursor;
};

/* Reads a query: text, [project, cwd, session, tool], [flags, roles, since,
 * until, limit, hits, snippet]. */
static void read_query(struct call *call, struct wal_search_query *query)
{
    napi_value texts = call_arg(call, 2);
    napi_value numbers = call_arg(call, 3);

    *query = (struct wal_search_query){
        .struct_size = sizeof(*query),
        .text = value_text(call, call_arg(call, 1)),
        .project = value_text(call, value_item(call, texts, 0)),
        .cwd = value_text(call, value_item(call, texts, 1)),
        .session = value_text(call, value_item(call, texts, 2)),
        .tool = value_text(call, value_item(call, texts, 3)),
        .flags = value_u32(call, value_item(call, numbers, 0)),
        .roles = value_u32(call, value_item(call, numbers, 1)),
        .since_ms = value_i64(call, value_item(call, numbers, 2)),
        .until_ms = value_i64(call, value_item(call, numbers, 3)),
        .session_limit = value_u32(call, value_item(call, numbers, 4)),
        .hits_limit = value_u32(call, value_item(call, numbers, 5)),
        .snippet_characters = value_u32(call, value_item(call, numbers, 6)),
    };
}

static enum wal_status find_run(struct job *job, struct wal_error *error)
{
    struct find_job *self = (struct find_job *)job;

    return wal_search_find(job->handle->object, &self->query, &self->cursor,
                           NULL, error);
}

static napi_value find_finish(struct call *call, struct job *job)
{
    return make_sessions(call, ((struct find_job *)job)->cursor);
}

static void find_discard(struct job *job)
{
    wal_search_cursor_close(((struct find_job *)job)->cursor);
}

static const struct job_kind find_kind = {"searchFind", sizeof(struct find_job),
                                          find_run, find_finish, find_discard};

/* searchFind(search, text, texts, numbers, watch): read_query */
static napi_value search_find(struct call *call)
{
    struct handle *search = handle_get(call, 0, &search_type);
    struct find_job *self = job_create(call, &find_kind, NULL, search);

    if (self == NULL) {
        return NULL;
    }
    read_query(call, &self->query);
    self->query.progress = job_progress;
    self->query.ctx = &self->job;
    job_watch_arg(call, &self->job, call_arg(call, 4));
    return job_start(call, &self->job);
}

/* searchFindSync(search, text, texts, numbers) */
static napi_value search_find_sync(struct call *call)
{
    struct handle *search = handle_get(call, 0, &search_type);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_query query;
    napi_value sessions;

    read_query(call, &query);
    if (call->failed ||
        !call_check(call, wal_search_find(search->object, &query, &cursor, NULL,
                                          call_error(call)))) {
        return NULL;
    }
    sessions = make_sessions(call, cursor);
    wal_search_cursor_close(cursor);
    return sessions;
}

/* --- update ------------------------------------------------------------- */

struct update_job {
    struct job job;
    struct wal_search_update_options options;
    struct wal_search_update_result result;
};

static enum wal_status update_run(struct job *job, struct wal_error *error)
{
    struct update_job *self = (struct update_job *)job;

    return wal_search_update(job->handle->object, &self->options, &self->result,
                             error);
}

static napi_value update_finish(struct call *call, struct job *job)
{
    const struct wal_search_update_result *result =
        &((const struct update_job *)job)->result;
    napi_value object = make_object(call);

    object_number(call, object, "segments", result->segments);
    object_number(call, object, "built", result->built);
    object_number(call, object, "readBytes", result->read_bytes);
    object_number(call, object, "textBytes", result->text_bytes);
    object_number(call, object, "indexBytes", result->index_bytes);
    object_number(call, object, "damaged", result->damaged);
    object_number(call, object, "unwritten", result->unwritten);
    return object;
}

static const struct job_kind update_kind = {
    "searchUpdate", sizeof(struct update_job), update_run, update_finish, NULL};

/* searchUpdate(search, flags, watch) */
static napi_value search_update(struct call *call)
{
    struct handle *search = handle_get(call, 0, &search_type);
    struct update_job *self = job_create(call, &update_kind, NULL, search);

    if (self == NULL) {
        return NULL;
    }
    self->result.struct_size = sizeof(self->result);
    self->options = (struct wal_search_update_options){
        .struct_size = sizeof(self->options),
        .flags = value_u32(call, call_arg(call, 1)),
        .progress = job_progress,
        .ctx = &self->job,
    };
    job_watch_arg(call, &self->job, call_arg(call, 2));
    return job_start(call, &self->job);
}

const struct call_method search_methods[] = {
    {"openSearch", open_search},          {"searchFind", search_find},
    {"searchFindSync", search_find_sync}, {"searchUpdate", search_update},
    {"closeSearch", close_handle},        {NULL, NULL},
};
