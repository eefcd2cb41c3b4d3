/*
 * hits.c - the hits of a query (query.h).
 *
 * Invariant: what a hit points to is memory of the query.
 */
#include <stdlib.h>
#include <string.h>

#include "search/query/query.h"

void wal__hit_deinit(struct wal__hit *hit)
{
    wal__snippet_deinit(&hit->snippet);
    free(hit->texts);
    hit->texts = NULL;
}

/* Copies slices one after another to memory that is to be freed. */
static char *copy_slices(struct wal_slice *slices[], size_t count)
{
    uint64_t size = 1;
    char *texts;
    char *at;

    for (size_t i = 0; i < count; i++) {
        size += slices[i]->size;
    }
    texts = at = malloc((size_t)size);
    for (size_t i = 0; i < count && texts != NULL; i++) {
        if (slices[i]->size > 0) {
            memcpy(at, slices[i]->data, (size_t)slices[i]->size);
        }
        slices[i]->data = at;
        at += slices[i]->size;
    }
    return texts;
}

enum wal_status wal__query_add_hit(struct wal__query *query, size_t shown,
                                   const struct wal__candidate *candidate,
                                   const struct wal__unit *unit,
                                   const struct wal__text_field *field,
                                   struct wal_error *error)
{
    struct wal__hit *hit;
    struct wal_slice *slices[3];

    if (query->hit_count == query->hit_capacity) {
        size_t capacity = query->hit_capacity * 2 + 32;
        void *grown = realloc(query->hits, capacity * sizeof(*query->hits));

        if (grown == NULL) {
            return wal__no_memory(error);
        }
        query->hits = grown;
        query->hit_capacity = capacity;
    }
    hit = &query->hits[query->hit_count];
    memset(hit, 0, sizeof(*hit));
    if (wal__snippet_make(&query->matcher, field->text,
                          query->options.snippet_characters,
                          &hit->snippet) != WAL_OK) {
        return wal__no_memory(error);
    }
    hit->session = (uint32_t)shown;
    hit->hit.struct_size = sizeof(hit->hit);
    hit->hit.role = wal__column_role(field->column);
    hit->hit.entry_id = unit->entry_id;
    hit->hit.timestamp = unit->timestamp;
    hit->hit.time_ms = unit->time_ms;
    hit->hit.sequence = candidate->entry.sequence;
    hit->hit.tool = field->tool;
    hit->hit.score = (double)candidate->score;
    slices[0] = &hit->hit.entry_id;
    slices[1] = &hit->hit.timestamp;
    slices[2] = &hit->hit.tool;
    hit->texts = copy_slices(slices, 3);
    if (hit->texts == NULL) {
        wal__hit_deinit(hit);
        return wal__no_memory(error);
    }
    query->hit_count++;
    return WAL_OK;
}

static int compare_hits(const void *left, const void *right)
{
    const struct wal__hit *a = left;
    const struct wal__hit *b = right;

    if (a->hit.rank != b->hit.rank) {
        return a->hit.rank < b->hit.rank ? -1 : 1;
    }
    if (a->hit.score != b->hit.score) {
        return a->hit.score > b->hit.score ? -1 : 1;
    }
    if (a->hit.time_ms != b->hit.time_ms) {
        return a->hit.time_ms > b->hit.time_ms ? -1 : 1;
    }
    return a->hit.sequence > b->hit.sequence   ? -1
           : a->hit.sequence < b->hit.sequence ? 1
                                               : 0;
}

void wal__query_group(struct wal__query *query)
{
    for (size_t i = 0; i < query->hit_count; i++) {
        struct wal__hit *hit = &query->hits[i];
        const struct wal__shown_session *shown = &query->shown[hit->session];
        const struct wal_session_info *info = &shown->info;

        hit->hit.rank = shown->rank;
        hit->hit.session_id = info->id;
        hit->hit.title = info->title.size > 0 ? info->title : info->first_text;
        hit->hit.cwd = info->cwd;
        hit->hit.project = info->project;
        hit->hit.session_updated_ms = info->updated_ms;
        hit->hit.session_hits =
            shown->candidates > shown->hits ? shown->candidates : shown->hits;
        hit->hit.snippet =
            (struct wal_slice){hit->snippet.text, hit->snippet.size};
        hit->hit.matches = hit->snippet.matches;
        hit->hit.match_count = hit->snippet.match_count;
    }
    if (query->hit_count > 0) {
        qsort(query->hits, query->hit_count, sizeof(*query->hits),
              compare_hits);
    }
}

void wal__query_release(struct wal__query *query)
{
    for (size_t i = 0; i < query->shown_count; i++) {
        wal_session_close(query->shown[i].session);
        query->shown[i].session = NULL;
    }
    free(query->candidates);
    query->candidates = NULL;
    query->count = 0;
}

void wal__query_reset(struct wal__query *query)
{
    wal__query_release(query);
    for (size_t i = 0; i < query->hit_count; i++) {
        wal__hit_deinit(&query->hits[i]);
    }
    for (size_t i = 0; i < query->shown_count; i++) {
        free(query->shown[i].texts);
    }
    query->hit_count = 0;
    query->shown_count = 0;
    query->capacity = 0;
    query->matches = 0;
    query->must_restart = false;
}

void wal__query_deinit(struct wal__query *query)
{
    wal__query_reset(query);
    wal__expression_deinit(&query->expression);
    wal__matcher_deinit(&query->matcher);
    free(query->listed);
    free(query->owners);
    free(query->shown);
    free(query->heirs);
    free(query->hits);
    memset(query, 0, sizeof(*query));
}
