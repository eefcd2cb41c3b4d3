/*
 * resolve.c - reads the records of candidates, the best ones first, and makes hits of those that
 * may be shown and that have what was looked for (query.h).
 *
 * Invariant: a hit's text was read from the log by this query; what a hit points to is memory of
 * the query.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/record.h"
#include "engine/base/queued.h"
#include "search/query/query.h"

/* --- hits ----------------------------------------------------------------- */

static void hit_deinit(struct wal__hit *hit)
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

/* Adds a hit of a session with its snippet, the text that the matcher was run on. */
static enum wal_status query_add_hit(struct wal__query *query, size_t shown,
                                     const struct wal__candidate *candidate,
                                     const struct wal__unit *unit,
                                     const struct wal__text_field *field, struct wal_error *error)
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
    if (wal__snippet_make(&query->matcher, field->text, query->options.snippet_characters,
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
        hit_deinit(hit);
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
    return a->hit.sequence > b->hit.sequence ? -1 : a->hit.sequence < b->hit.sequence ? 1 : 0;
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
        hit->hit.session_hits = shown->candidates > shown->hits ? shown->candidates : shown->hits;
        hit->hit.snippet = (struct wal_slice){hit->snippet.text, hit->snippet.size};
        hit->hit.matches = hit->snippet.matches;
        hit->hit.match_count = hit->snippet.match_count;
    }
    if (query->hit_count > 0) {
        qsort(query->hits, query->hit_count, sizeof(*query->hits), compare_hits);
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
        hit_deinit(&query->hits[i]);
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

/* --- records -------------------------------------------------------------- */

struct resolving {
    struct wal__query *query;
    struct wal_record_cursor *cursor;
    struct wal__extractor extractor;
    /* The candidate at work. */
    struct wal__candidate *candidate;
    const struct wal_record *record;
    float score; /* of its texts */
    enum wal_status status;
    struct wal_error *error;
};

static const float score_steps = 16;  /* of a score; hits within one are ordered by time */
static const float saturation = 1.2F; /* k1 of BM25 */

/* --- sessions ----------------------------------------------------------- */

/* Copies the texts of an info, so that they hold. */
static bool keep_texts(struct wal__shown_session *shown)
{
    struct wal_session_info *info = &shown->info;
    struct wal_slice *slices[] = {&info->id, &info->cwd, &info->project, &info->title,
                                  &info->first_text};
    uint64_t size = 1;
    char *at;

    for (size_t i = 0; i < 5; i++) {
        size += slices[i]->size;
    }
    shown->texts = at = malloc((size_t)size);
    for (size_t i = 0; i < 5 && shown->texts != NULL; i++) {
        if (slices[i]->size > 0) {
            memcpy(at, slices[i]->data, (size_t)slices[i]->size);
        }
        slices[i]->data = at;
        at += slices[i]->size;
    }
    return shown->texts != NULL;
}

static size_t find_shown(const struct wal__query *query, uint32_t number)
{
    for (size_t i = 0; i < query->shown_count; i++) {
        if (query->shown[i].info.number == number) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Opens a session to show hits in. *rank is SIZE_MAX when it is gone. */
static enum wal_status show_session(struct resolving *resolving, uint32_t number,
                                    struct wal_slice id, size_t *rank)
{
    struct wal__query *query = resolving->query;
    struct wal__shown_session shown = {.info = WAL_INIT(wal_session_info)};
    enum wal_status status;

    *rank = find_shown(query, number);
    if (*rank != SIZE_MAX) {
        return WAL_OK;
    }
    if (query->shown_count == query->shown_capacity) {
        size_t capacity = query->shown_capacity * 2 + 32;
        void *grown = realloc(query->shown, capacity * sizeof(*query->shown));

        if (grown == NULL) {
            return wal__no_memory(resolving->error);
        }
        query->shown = grown;
        query->shown_capacity = capacity;
    }
    status = wal_session_open(query->search->store, id, &shown.session, resolving->error);
    if (status == WAL_OK) {
        status = wal_session_get_info(shown.session, &shown.info, resolving->error);
    }
    if (status != WAL_OK || shown.info.number != number) {
        /* Its id may be that of another session by now. */
        wal_session_close(shown.session);
        return status == WAL_ENOTFOUND || status == WAL_ETRASHED ? WAL_OK : status;
    }
    if (!keep_texts(&shown)) {
        wal_session_close(shown.session);
        return wal__no_memory(resolving->error);
    }
    shown.rank = UINT32_MAX;
    *rank = query->shown_count;
    query->shown[query->shown_count++] = shown;
    return WAL_OK;
}

/* Whether a session that does not own the record sees it. */
static bool inherits(struct wal_session *session, const struct wal_record *record)
{
    struct wal_entry entry = WAL_INIT(wal_entry);

    return record->kind == WAL_RECORD_ENTRY &&
           wal_entry_get(session, record->entry->id, &entry, NULL) == WAL_OK &&
           entry.sequence == record->sequence;
}

/* Whether the session shows the record as it is now: not an older version of a document, or of the
 * session's texts, nor a text that a later entry has. */
static bool is_current(struct wal__query *query, const struct wal__shown_session *shown,
                       const struct wal_record *record, bool is_owner)
{
    struct wal_doc doc = WAL_INIT(wal_doc);

    if (record->kind == WAL_RECORD_SESSION) {
        return is_owner && shown->info.metadata_version == record->sequence;
    }
    if (record->kind == WAL_RECORD_DOC) {
        return wal_doc_get(query->search->store, shown->session, record->doc->key, 0, &doc, NULL) ==
                   WAL_OK &&
               doc.version == record->sequence;
    }
    return (is_owner || inherits(shown->session, record)) &&
           !wal__queued_is_repeated(shown->session, record->entry);
}

/* Finds a session that is listed and that sees a record of a deleted one. */
static enum wal_status find_heir(struct resolving *resolving, size_t *rank)
{
    struct wal__query *query = resolving->query;
    const struct wal_record *record = resolving->record;
    enum wal_status status = wal__query_find_heirs(query, resolving->error);

    *rank = SIZE_MAX;
    for (size_t i = 0; i < query->heir_count && status == WAL_OK; i++) {
        const struct wal__heir *heir = &query->heirs[i];
        const struct wal_slice id = {heir->id, strlen(heir->id)};

        if (heir->ancestor != record->session_number ||
            !wal__query_is_listed(query, heir->session)) {
            continue;
        }
        status = show_session(resolving, heir->session, id, rank);
        if (status == WAL_OK && *rank != SIZE_MAX &&
            is_current(query, &query->shown[*rank], record, false)) {
            return WAL_OK;
        }
        *rank = SIZE_MAX;
    }
    return status;
}

/* Finds the session to show the record in: that of the filter, its own, or one that inherited it.
 * *rank is SIZE_MAX when nobody sees it. */
static enum wal_status find_session(struct resolving *resolving, size_t *rank)
{
    struct wal__query *query = resolving->query;
    const struct wal_record *record = resolving->record;
    struct wal_slice wanted = query->options.session;
    bool is_owner = record->flags == 0;
    enum wal_status status;

    if (wanted.size > 0) {
        uint32_t number = query->listed[query->listed_count - 1];

        is_owner = number == record->session_number;
        status = show_session(resolving, number, wanted, rank);
    } else if (is_owner && wal__query_is_listed(query, record->session_number)) {
        status = show_session(resolving, record->session_number, record->session_id, rank);
    } else {
        return find_heir(resolving, rank);
    }
    if (status == WAL_OK && *rank != SIZE_MAX &&
        !is_current(query, &query->shown[*rank], record, is_owner)) {
        *rank = SIZE_MAX;
    }
    return status;
}

/* --- texts -------------------------------------------------------------- */

/* Whether the index of the candidate has the field. */
static bool is_indexed(const struct resolving *resolving, const struct wal__text_field *field)
{
    const struct wal__query *query = resolving->query;
    bool is_deep = query->search->slots[resolving->candidate->slot].head.kind == WAL__SEARCH_DEEP;

    return (field->column == WAL__COLUMN_RESULT) == is_deep;
}

/* Whether the query is for a field like this one. */
static bool is_searched(const struct resolving *resolving, const struct wal__text_field *field)
{
    const struct wal__query *query = resolving->query;

    return (query->options.roles == 0 ||
            (query->options.roles & wal__column_role(field->column)) != 0) &&
           (query->options.tool.size == 0 || wal__matcher_equals(field->tool, query->options.tool));
}

static uint32_t count_bits(uint32_t set)
{
    return (uint32_t)__builtin_popcount(set);
}

static float saturate(float idf, float count)
{
    return idf * count * (saturation + 1.0F) / (count + saturation);
}

/* How much the terms that the matcher found in a field count: BM25 without the length of the
 * text. */
static float weigh(const struct wal__query *query, const struct wal__text_field *field)
{
    const struct wal__matcher *matcher = &query->matcher;
    float counts[WAL__TERMS_MAX] = {0};
    float sum = 0;

    for (uint32_t i = 0; i < matcher->count; i++) {
        counts[matcher->matches[i].term] += wal__column_weight(field->column);
    }
    for (uint32_t t = 0; t < query->expression.wanted; t++) {
        sum += saturate(query->idf[t], counts[t]);
    }
    return floorf(sum * score_steps) / score_steps;
}

/* Finds the field with the most of the terms; *terms are those of all, and resolving->score is of
 * the fields together. NULL also when one has an excluded term. */
static const struct wal__text_field *best_field(struct resolving *resolving,
                                                const struct wal__unit *unit, uint32_t *terms)
{
    struct wal__matcher *matcher = &resolving->query->matcher;
    const struct wal__text_field *best = NULL;
    uint32_t most = 0;
    const struct wal__expression *expression = &resolving->query->expression;
    bool is_any = expression->wanted == 0;

    *terms = 0;
    resolving->score = 0;
    for (size_t i = 0; i < unit->count; i++) {
        const struct wal__text_field *field = &unit->fields[i];

        bool is_wanted = is_searched(resolving, field);

        if (!is_indexed(resolving, field) ||
            (!is_wanted && expression->count == expression->wanted)) {
            continue;
        }
        if (wal__matcher_run(matcher, field->text) != WAL_OK) {
            resolving->status = wal__no_memory(resolving->error);
            return NULL;
        }
        if (matcher->has_excluded) {
            return NULL;
        }
        if (!is_wanted) {
            continue;
        }
        resolving->score += weigh(resolving->query, field);
        *terms |= matcher->terms;
        if (count_bits(matcher->terms) > most || (is_any && best == NULL)) {
            most = count_bits(matcher->terms);
            best = field;
        }
    }
    return best;
}

/* The terms that a record must have. */
static uint32_t wanted_terms(const struct wal__query *query)
{
    uint32_t count = query->expression.wanted;

    if (query->matcher.substring.size > 0) {
        return 1;
    }
    return count >= 32 ? UINT32_MAX : (1U << count) - 1;
}

/* Ranks the candidate by its unit. */
static bool weigh_unit(void *ctx, const struct wal__unit *unit)
{
    struct resolving *resolving = ctx;
    uint32_t terms;

    if (unit->number != resolving->candidate->entry.unit) {
        return true;
    }
    if (best_field(resolving, unit, &terms) == NULL || terms != wanted_terms(resolving->query)) {
        resolving->score = 0;
    }
    return false;
}

/* Makes a hit of the candidate's unit. */
static bool resolve_unit(void *ctx, const struct wal__unit *unit)
{
    struct resolving *resolving = ctx;
    struct wal__query *query = resolving->query;
    struct wal__candidate weighed = *resolving->candidate;
    const struct wal__text_field *field;
    size_t rank = SIZE_MAX;
    uint32_t terms;

    if (unit->number != resolving->candidate->entry.unit) {
        return true;
    }
    field = best_field(resolving, unit, &terms);
    if (field == NULL || terms != wanted_terms(query)) {
        return false;
    }
    resolving->status = find_session(resolving, &rank);
    if (resolving->status != WAL_OK || rank == SIZE_MAX) {
        return false;
    }
    resolving->candidate->is_refuted = false;
    if (query->shown[rank].hits >= query->options.hits_limit) {
        return false;
    }
    (void)!wal__matcher_run(&query->matcher, field->text);
    if (query->matcher.substring.size == 0) {
        weighed.score = resolving->score;
    }
    resolving->status = query_add_hit(query, rank, &weighed, unit, field, resolving->error);
    if (resolving->status == WAL_OK) {
        query->shown[rank].hits++;
    }
    return false;
}

/* Looks whether the candidate, of a session that has all its hits, is one: of what the index does
 * not know, whether it may be shown and has the phrases. */
static bool confirm_unit(void *ctx, const struct wal__unit *unit)
{
    struct resolving *resolving = ctx;
    const struct wal__query *query = resolving->query;
    size_t rank = SIZE_MAX;
    uint32_t terms;

    if (unit->number != resolving->candidate->entry.unit) {
        return true;
    }
    if (wal__expression_has_phrase(&query->expression) &&
        (best_field(resolving, unit, &terms) == NULL || terms != wanted_terms(query))) {
        return false;
    }
    resolving->status = find_session(resolving, &rank);
    resolving->candidate->is_refuted = rank == SIZE_MAX;
    return false;
}

/* --- candidates --------------------------------------------------------- */

/* Reads what the index knows of the candidates of a range. An index that lacks it is made again,
 * and the query starts again. */
static enum wal_status load(struct resolving *resolving, size_t from, size_t count)
{
    struct wal__query *query = resolving->query;
    enum wal_status status = WAL_OK;

    for (size_t i = from; i < from + count && status == WAL_OK; i++) {
        struct wal__candidate *candidate = &query->candidates[i];
        struct wal__fts_slot *slot = &query->search->slots[candidate->slot];

        if (candidate->is_loaded) {
            continue;
        }
        status =
            wal__database_get(&slot->database, candidate->row, &candidate->entry, resolving->error);
        candidate->is_loaded = status == WAL_OK;
        if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT || status == WAL_EIO) {
            query->must_restart = true;
            status = wal__fts_slot_rebuild(query->search, slot, resolving->error);
            return status == WAL_ENOMEM ? status : WAL_END;
        }
    }
    return status;
}

static int compare_loaded(const void *left, const void *right)
{
    const struct wal__candidate *a = left;
    const struct wal__candidate *b = right;

    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->entry.time_ms != b->entry.time_ms) {
        return a->entry.time_ms > b->entry.time_ms ? -1 : 1;
    }
    return a->entry.sequence > b->entry.sequence   ? -1
           : a->entry.sequence < b->entry.sequence ? 1
                                                   : 0;
}

/* Whether a session of this number has all the hits that it may have. */
static bool is_full(const struct wal__query *query, uint32_t number)
{
    size_t rank = find_shown(query, number);

    return rank != SIZE_MAX && query->shown[rank].hits >= query->options.hits_limit;
}

/* The number of sessions with hits, ranked as they got the first one. */
static uint32_t rank_sessions(struct wal__query *query, uint32_t ranked)
{
    for (size_t i = 0; i < query->shown_count; i++) {
        if (query->shown[i].hits > 0 && query->shown[i].rank == UINT32_MAX) {
            query->shown[i].rank = ranked++;
        }
    }
    return ranked;
}

/* Reads the record of a candidate and passes its units to `each`. */
static enum wal_status resolve(struct resolving *resolving, struct wal__candidate *candidate,
                               wal__unit_fn *each)
{
    struct wal_record record = WAL_INIT(wal_record);
    enum wal_status status;

    resolving->candidate = candidate;
    resolving->record = &record;
    resolving->score = 0;
    resolving->status = WAL_OK;
    status = wal_record_cursor_get(resolving->cursor, candidate->entry.session,
                                   candidate->entry.sequence, &record, resolving->error);
    if (status == WAL_OK) {
        status = record.kind == candidate->entry.kind
                     ? wal__extract(&resolving->extractor, &record, each, resolving)
                     : WAL_OK;
        return resolving->status != WAL_OK ? resolving->status : status;
    }
    /* Redacted, deleted, erased or damaged: no hit. */
    return status == WAL_ENOTFOUND || status == WAL_EREDACTED || status == WAL_ECORRUPT ||
                   status == WAL_EIO
               ? WAL_OK
               : status;
}

static int compare_session(const void *left, const void *right)
{
    uint32_t a = ((const struct wal__candidate *)left)->entry.session;
    uint32_t b = ((const struct wal__candidate *)right)->entry.session;

    return a < b ? -1 : a > b ? 1 : 0;
}

static int compare_total(const void *left, const void *right)
{
    float a = ((const struct wal__candidate *)left)->total;
    float b = ((const struct wal__candidate *)right)->total;

    return a > b ? -1 : a < b ? 1 : compare_loaded(left, right);
}

/* Orders the candidates by the sums of their sessions: the session in which more was said about it
 * comes before one that has a single better record. */
static void sum_sessions(struct wal__candidate *candidates, size_t count)
{
    size_t end;

    qsort(candidates, count, sizeof(*candidates), compare_session);
    for (size_t begin = 0; begin < count; begin = end) {
        float total = 0;
        float best = 0; /* of a title or document, whose older ones match too */

        for (end = begin; end < count && compare_session(&candidates[begin], &candidates[end]) == 0;
             end++) {
            if (candidates[end].entry.kind == WAL_RECORD_ENTRY) {
                total += candidates[end].score;
            } else if (candidates[end].score > best) {
                best = candidates[end].score;
            }
        }
        total += best;
        for (size_t i = begin; i < end; i++) {
            candidates[i].total = total;
        }
    }
    qsort(candidates, count, sizeof(*candidates), compare_total);
}

/* Scores the first candidates by how often their records have the terms, and the others as if each
 * term were there once. Orders them by session. */
static enum wal_status weigh_first(struct resolving *resolving, size_t all)
{
    const struct wal__query *query = resolving->query;
    struct wal__candidate *candidates = resolving->query->candidates;
    size_t count = all;
    enum wal_status status = WAL_OK;

    if (resolving->query->expression.wanted == 0 || resolving->query->matcher.substring.size > 0) {
        return WAL_OK;
    }
    count = count < WAL__WEIGHED_MAX ? count : (size_t)WAL__WEIGHED_MAX;
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status = resolve(resolving, &candidates[i], weigh_unit);
        candidates[i].score = resolving->score;
    }
    for (size_t i = count; i < all; i++) {
        const float once = candidates[i].score;

        candidates[i].score = 0;
        for (uint32_t t = 0; t < query->expression.wanted; t++) {
            candidates[i].score += saturate(query->idf[t], once);
        }
    }
    sum_sessions(candidates, all);
    return status;
}

static void count_candidates(struct wal__query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        size_t rank = find_shown(query, query->candidates[i].entry.session);

        if (query->candidates[i].is_refuted) {
            query->matches--;
        } else if (rank != SIZE_MAX) {
            query->shown[rank].candidates++;
        }
    }
}

static enum wal_status resolve_all(struct resolving *resolving)
{
    struct wal__query *query = resolving->query;
    enum wal_status status = WAL_OK;
    uint32_t ranked = 0;
    size_t at = 0;

    while (at < query->count && status == WAL_OK) {
        size_t step =
            query->count - at < WAL__SORTED_STEP ? query->count - at : (size_t)WAL__SORTED_STEP;

        status = load(resolving, at, step);
        if (status != WAL_OK) {
            break;
        }
        qsort(&query->candidates[at], step, sizeof(*query->candidates), compare_loaded);
        if (at == 0) {
            status = weigh_first(resolving, step);
        }
        for (size_t i = at; i < at + step && status == WAL_OK; i++) {
            struct wal__candidate *candidate = &query->candidates[i];
            bool is_known = find_shown(query, candidate->entry.session) != SIZE_MAX;

            if (!candidate->is_loaded || (ranked >= query->options.session_limit && !is_known)) {
                continue;
            }
            candidate->is_refuted = true;
            status =
                resolve(resolving, candidate,
                        is_full(query, candidate->entry.session) ? confirm_unit : resolve_unit);
            ranked = rank_sessions(query, ranked);
        }
        at += step;
        if (ranked >= query->options.session_limit) {
            break;
        }
    }
    return status;
}

enum wal_status wal__query_resolve(struct wal__query *query, struct wal_error *error)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct resolving resolving = {.query = query, .error = error};
    enum wal_status status;

    options.flags = WAL_RECORD_CURSOR_DELETED;
    options.payload_limit = WAL__EXTRACT_PAYLOAD_MAX;
    status = wal_record_cursor_open(query->search->store, &options, &resolving.cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__extractor_init(&resolving.extractor, wal__message_column, &query->search->columns);
    status = resolve_all(&resolving);
    wal__extractor_deinit(&resolving.extractor);
    wal_record_cursor_close(resolving.cursor);
    if (status == WAL_OK) {
        count_candidates(query);
    }
    return status == WAL_END ? WAL_OK : status; /* it must start again */
}
