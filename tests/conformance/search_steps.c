/*
 * search_steps.c - searching (runner.h).
 */
#include "agentwal/search.h"

#include <string.h>

#include "tests/conformance/runner.h"

static const char *const role_names[] = {"user", "assistant", "tool", "title", "summary", "result"};

enum {
    ROLES = sizeof(role_names) / sizeof(role_names[0])
};

static uint32_t roles_of(const json_t *names)
{
    uint32_t roles = 0;
    const json_t *name;
    size_t index;

    json_array_foreach(names, index, name)
    {
        for (uint32_t i = 0; i < ROLES; i++) {
            if (strcmp(json_string_value(name), role_names[i]) == 0) {
                roles |= 1u << i;
            }
        }
    }
    return roles;
}

static const char *role_name(uint32_t role)
{
    for (uint32_t i = 0; i < ROLES; i++) {
        if (role == 1u << i) {
            return role_names[i];
        }
    }
    return "";
}

static uint32_t flag_of(const json_t *step, const char *name, uint32_t flag)
{
    return json_is_true(json_object_get(step, name)) ? flag : 0;
}

static json_t *make_hit(const struct wal_search_hit *hit)
{
    const char *snippet = hit->snippet.data;
    json_t *marked = json_array();
    json_t *made = json_object();

    for (uint32_t i = 0; i < hit->match_count; i++) {
        const uint32_t *ends = hit->matches + 2 * i;

        json_array_append_new(marked, json_stringn(snippet + ends[0], ends[1] - ends[0]));
    }
    json_object_set_new(made, "entryId", runner_string(hit->entry_id));
    json_object_set_new(made, "role", json_string(role_name(hit->role)));
    json_object_set_new(made, "tool", runner_string(hit->tool));
    json_object_set_new(made, "snippet", runner_string(hit->snippet));
    json_object_set_new(made, "marked", marked);
    return made;
}

static json_t *make_session(const struct wal_search_hit *hit)
{
    json_t *made = json_object();

    json_object_set_new(made, "sessionId", runner_string(hit->session_id));
    json_object_set_new(made, "title", runner_string(hit->title));
    json_object_set_new(made, "matches", json_integer((json_int_t)hit->session_hits));
    json_object_set_new(made, "hits", json_array());
    return made;
}

static enum wal_status read_hits(struct runner *runner, struct wal_search_cursor *cursor,
                                 json_t **result)
{
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    json_t *session = NULL;
    enum wal_status status;

    *result = json_array();
    while ((status = wal_search_cursor_next(cursor, &hit, &runner->error)) == WAL_OK) {
        if (json_array_size(*result) == hit.rank) {
            session = make_session(&hit);
            json_array_append_new(*result, session);
        }
        json_array_append_new(json_object_get(session, "hits"), make_hit(&hit));
    }
    return status;
}

static enum wal_status run_search(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_search_query query = WAL_INIT(wal_search_query);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search *search = NULL;
    enum wal_status status;

    query.text = runner_text(runner, step, "text");
    query.project = runner_text(runner, step, "project");
    query.cwd = runner_text(runner, step, "cwd");
    query.session = runner_text(runner, step, "session");
    query.tool = runner_text(runner, step, "tool");
    query.roles = roles_of(json_object_get(step, "roles"));
    query.hits_limit = (uint32_t)runner_number(runner, step, "hits");
    query.session_limit = (uint32_t)runner_number(runner, step, "limit");
    query.snippet_characters = (uint32_t)runner_number(runner, step, "snippet");
    query.flags =
        flag_of(step, "deep", WAL_SEARCH_DEEP) | flag_of(step, "substring", WAL_SEARCH_SUBSTRING);
    status = wal_search_open(runner->store, NULL, &search, &runner->error);
    if (status == WAL_OK) {
        status = wal_search_find(search, &query, &cursor, NULL, &runner->error);
    }
    if (status == WAL_OK) {
        status = read_hits(runner, cursor, result);
    }
    wal_search_cursor_close(cursor);
    wal_search_close(search);
    return status;
}

const struct step_kind search_steps[] = {
    {"search", run_search},
    {NULL, NULL},
};
