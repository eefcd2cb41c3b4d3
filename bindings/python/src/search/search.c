/*
 * search.c - finding; interface.txt has the other calls of full-text search.
 */
#include "bindings/python/src/core/module.h"

#include "agentwal/search.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"

void search_close(void *search)
{
    wal_search_close(search);
}

/* The pairs of offsets, which ascend, in characters. */
static PyObject *make_matches(const struct wal_search_hit *hit)
{
    const uint8_t *snippet = hit->snippet.data;
    PyObject *matches = PyList_New(0);
    unsigned int ends[2] = {0, 0};
    unsigned int characters = 0;
    uint32_t byte = 0;

    for (uint32_t i = 0; matches != NULL && i < hit->match_count; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            while (byte < hit->matches[2 * i + j] && byte < hit->snippet.size) {
                characters += (snippet[byte] & 0xc0) != 0x80;
                byte++;
            }
            ends[j] = characters;
        }
        if (!value_add(matches, Py_BuildValue("II", ends[0], ends[1]))) {
            value_clear(&matches);
        }
    }
    return matches;
}

static PyObject *make_hit(struct module_state *state, const struct wal_search_hit *hit)
{
    PyObject *dict = value_dict(state, &wal_search_hit_out, hit);

    if (dict != NULL && !value_set(dict, "matches", make_matches(hit))) {
        value_clear(&dict);
    }
    return dict;
}

static PyObject *make_hits(struct call *call, struct wal_search_cursor *cursor)
{
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    PyObject *hits = PyList_New(0);

    while (hits != NULL) {
        call->status = wal_search_cursor_next(cursor, &hit, &call->error);
        if (call->status == WAL_END) {
            break;
        }
        if (call_failed(call) || !value_add(hits, make_hit(call->state, &hit))) {
            value_clear(&hits);
        }
    }
    return hits;
}

/* search_find(search, query, progress): a list of hits */
static PyObject *search_find(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_search_query query = WAL_INIT(wal_search_query);
    struct wal_search_cursor *cursor = NULL;
    struct callback callback;
    struct wal_search *search;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "search_find", count, 3) ||
        !value_row(module_state(module), args[1], "query", &wal_search_query_in, &query)) {
        return NULL;
    }
    search = call_begin(&call, module, args[0], HANDLE_SEARCH);
    if (search == NULL) {
        return NULL;
    }
    query.progress = callback_progress;
    query.ctx = &callback;
    if (callback_begin(&callback, &call, args[2], Py_None, Py_None)) {
        call_unlock(&call);
        call.status = wal_search_find(search, &query, &cursor, NULL, &call.error);
        call_lock(&call);
        if (!call_failed(&call)) {
            made = make_hits(&call, cursor);
        }
    }
    wal_search_cursor_close(cursor);
    callback_end(&callback);
    call_end(&call);
    return made;
}

PyMethodDef search_methods[] = {
    MODULE_FUNCTION("search_find", search_find),
    {0},
};
