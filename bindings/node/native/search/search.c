/*
 * search.c - finding; interface.txt has the other calls of full-text search.
 */
#include <agentwal/search.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- values of a result ------------------------------------------------- */

/* Units of UTF-16 that a byte of UTF-8 begins. */
static uint32_t units_of(uint8_t byte)
{
    if ((byte & 0xc0) == 0x80) {
        return 0;
    }
    return byte >= 0xf0 ? 2 : 1;
}

/* The pairs of offsets, which ascend, in units of UTF-16. */
static napi_value make_matches(struct call *call, const struct wal_search_hit *hit)
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
    napi_value object = make_struct(call, &search_hit_out, hit);

    object_set(call, object, "matches", make_matches(call, hit));
    return object;
}

/* The session of a hit. */
static napi_value make_session(struct call *call, const struct wal_search_hit *hit, napi_value hits)
{
    napi_value object = make_struct(call, &search_session_out, hit);

    object_set(call, object, "hits", hits);
    return object;
}

/* An array of the sessions with their hits. */
static napi_value make_sessions(struct call *call, struct wal_search_cursor *cursor)
{
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    napi_value sessions = make_array(call);
    napi_value hits = NULL;
    uint32_t session_count = 0;
    uint32_t hit_count = 0;
    uint32_t rank = 0;

    while (!call->failed) {
        enum wal_status status = wal_search_cursor_next(cursor, &hit, call_error(call));

        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        if (hits == NULL || hit.rank != rank) {
            hits = make_array(call);
            hit_count = 0;
            rank = hit.rank;
            array_push(call, sessions, session_count, make_session(call, &hit, hits));
            session_count++;
        }
        array_push(call, hits, hit_count, make_hit(call, &hit));
        hit_count++;
    }
    return sessions;
}

/* --- find --------------------------------------------------------------- */

enum { QUERY_ARGS = 12 };

struct find_job {
    struct job job;
    struct wal_search_query query;
    struct wal_search_cursor *cursor;
};

static enum wal_status find_run(struct job *job, struct wal_error *error)
{
    struct find_job *self = (struct find_job *)job;

    return wal_search_find(job->handle->object, &self->query, &self->cursor, NULL, error);
}

static napi_value find_finish(struct call *call, struct job *job)
{
    return make_sessions(call, ((struct find_job *)job)->cursor);
}

static void find_discard(struct job *job)
{
    wal_search_cursor_close(((struct find_job *)job)->cursor);
}

static const struct job_kind find_kind = {"searchFind", sizeof(struct find_job), find_run,
                                          find_finish, find_discard};

/* searchFind(search, QUERY, watch): the fields of wal_search_query_in */
static napi_value search_find(struct call *call)
{
    struct handle *search = handle_get(call, 0, &search_type);
    struct find_job *self = job_create(call, &find_kind, NULL, search);

    if (self == NULL) {
        return NULL;
    }
    read_struct(call, 1, &wal_search_query_in, &self->query);
    self->query.progress = job_progress;
    self->query.ctx = &self->job;
    job_watch_arg(call, &self->job, call_arg(call, QUERY_ARGS + 1));
    return job_start(call, &self->job);
}

/* searchFindSync(search, QUERY) */
static napi_value search_find_sync(struct call *call)
{
    struct handle *search = handle_get(call, 0, &search_type);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search_query query;
    napi_value sessions;

    read_struct(call, 1, &wal_search_query_in, &query);
    if (call->failed || !call_check(call, wal_search_find(search->object, &query, &cursor, NULL,
                                                          call_error(call)))) {
        return NULL;
    }
    sessions = make_sessions(call, cursor);
    wal_search_cursor_close(cursor);
    return sessions;
}

const struct call_method search_methods[] = {
    {"searchFind", search_find},
    {"searchFindSync", search_find_sync},
    {NULL, NULL},
};
