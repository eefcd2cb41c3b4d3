/*
 * list.c - the information on sessions, and lists of them
 * (reference.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

/* Own entries of the conversation; those that reading leaves out count, but
 * for deltas. */
static uint64_t own_entries(const struct reference *ref, uint32_t number)
{
    uint64_t count = 0;

    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        count += record->kind == REF_ENTRY && record->stream == 0 &&
                 !record->is_delta;
    }
    return count;
}

/* The entries on the branch that a fork was made from, in the stream of the
 * fork point. */
static uint64_t inherited(const struct reference *ref, uint32_t number)
{
    const struct ref_record *fork = ref_fork_of(ref, number);

    return fork == NULL || fork->target == 0 ? 0
                                             : ref_depth(ref, fork->target) + 1;
}

static uint64_t own_documents(const struct reference *ref, uint32_t number)
{
    uint64_t count = 0;

    REF_EACH (i, ref, number) {
        count += ref_at(ref, i)->kind == REF_DOC;
    }
    return count;
}

/* ---------------------------------------------------------------- times --- */

/* A time is one of these milliseconds. */
struct span_ms {
    int64_t earliest;
    int64_t latest;
};

void reference_forget_times(struct reference *ref)
{
    ref->learned_at = ref->count;
    for (uint32_t i = 0; i < ref->learned_count; i++) {
        ref->learned[i] = INT64_MIN;
    }
}

void reference_learn_time(struct reference *ref, uint32_t number,
                          int64_t updated_ms)
{
    if (number >= ref->learned_count) {
        uint32_t count = number + 64;

        ref->learned =
            common_resize(ref->learned, count * sizeof(ref->learned[0]));
        WAL__ASSERT(ref->learned != NULL);
        while (ref->learned_count < count) {
            ref->learned[ref->learned_count++] = INT64_MIN;
        }
    }
    ref->learned[number] = updated_ms;
}

/* The time of a text as the workload writes it: to the second, in UTC. */
static bool read_time(struct wal_slice text, int64_t *ms)
{
    static const int days[] = {0,   31,  59,  90,  120, 151,
                               181, 212, 243, 273, 304, 334};
    char copy[32] = "";
    int year;
    int month;
    int day;
    int hour;
    int minute;
    int second;
    int end = 0;

    if (text.size != strlen("0000-00-00T00:00:00Z")) {
        return false;
    }
    memcpy(copy, text.data, text.size);
    if (sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour,
               &minute, &second, &end) != 6 ||
        end != (int)text.size || month < 1 || month > 12) {
        return false;
    }
    *ms = 365 * (int64_t)(year - 1970) + days[month - 1] + day - 1;
    /* The leap days before this year, and that of this year. */
    *ms += (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 - 477;
    *ms += month > 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    *ms = (((*ms * 24 + hour) * 60 + minute) * 60 + second) * 1000;
    return true;
}

/* The time that a record claims, if that is believed, else when it was stored.
 * The workload claims none that is close to a day from now. */
static struct span_ms believed(const struct ref_record *record, int64_t ms)
{
    if (ms < 0 || ms > record->latest_ms + 86400000) {
        return (struct span_ms){record->earliest_ms, record->latest_ms};
    }
    return (struct span_ms){ms, ms};
}

static struct span_ms entry_time(const struct ref_record *record)
{
    int64_t ms;

    return read_time(record->entry->timestamp, &ms)
               ? believed(record, ms)
               : (struct span_ms){record->earliest_ms, record->latest_ms};
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When the session was created, and when it was last active: the times of its
 * entries, or that of its creation. */
static void find_times(const struct reference *ref, uint32_t number,
                       struct span_ms *created, struct span_ms *updated)
{
    const struct ref_record *first = ref_session_first(ref, number);
    int64_t given = first->session_state->stored_options.created_ms;
    bool is_active = false;

    *created = given == 0
                   ? (struct span_ms){first->earliest_ms, first->latest_ms}
                   : believed(first, given);
    *updated = *created;
    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);
        struct span_ms at;

        if (record->kind != REF_ENTRY || record->is_delta) {
            continue;
        }
        at = entry_time(record);
        created->earliest = min_ms(created->earliest, at.earliest);
        created->latest = min_ms(created->latest, at.latest);
        if (!is_active) {
            *updated = at;
        }
        is_active = true;
        updated->earliest = max_ms(updated->earliest, at.earliest);
        updated->latest = max_ms(updated->latest, at.latest);
    }
    if (ref->learned_at == ref->count && number < ref->learned_count &&
        ref->learned[number] >= updated->earliest &&
        ref->learned[number] <= updated->latest) {
        updated->earliest = ref->learned[number];
        updated->latest = ref->learned[number];
    }
}

/* ------------------------------------------------------------- sessions --- */

/* Also of a session that is deleted. */
static void describe(const struct reference *ref, uint32_t number,
                     struct reference_info *out)
{
    const struct ref_record *now = ref_session_current(ref, number);
    const struct wal_session_options *says =
        &now->session_state->stored_options;
    struct span_ms created;
    struct span_ms updated;
    const struct wal_slice main = {NULL, 0};

    memset(out, 0, sizeof(*out));
    out->info.struct_size = sizeof(out->info);
    out->info.schema_version = says->schema_version;
    out->info.number = number;
    out->info.flags = now->session_state->is_fork ? WAL_SESSION_FORK : 0;
    if (reference_is_deleted(ref, number)) {
        out->info.flags |= WAL_SESSION_DELETED;
    } else if (now->session_state->is_trashed) {
        out->info.flags |= WAL_SESSION_TRASHED;
    }
    out->info.id = says->id;
    out->info.cwd = says->cwd;
    out->info.project = says->project;
    out->info.title = says->title;
    out->info.parent_id = says->parent_id;
    out->info.source = says->source;
    out->info.metadata = says->metadata;
    out->info.head =
        ref_entry_id(ref, ref_head(ref, number, 0, main, ref->count));
    find_times(ref, number, &created, &updated);
    out->info.created_ms = created.earliest;
    out->created_latest_ms = created.latest;
    out->info.updated_ms = updated.earliest;
    out->updated_latest_ms = updated.latest;
    out->info.last_sequence = ref_last_record(ref, number);
    out->info.inherited = inherited(ref, number);
    out->info.entries = own_entries(ref, number) + out->info.inherited;
    out->info.metadata_version = ref_sequence(ref, now);
    out->info.documents = own_documents(ref, number);
    out->first_text_size = ref_first_text(ref, number, out->first_text);
}

enum wal_status reference_session_status(const struct reference *ref,
                                         uint32_t number,
                                         struct reference_info *out)
{
    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    describe(ref, number, out);
    return WAL_OK;
}

static bool matches(struct wal_slice wanted, struct wal_slice text)
{
    return wanted.size == 0 || reference_is_equal(wanted, text);
}

/* ---------------------------------------------------------------- lists --- */

/* What a session comes from: the one it was forked from, else the one that its
 * parent id names; 0: none. */
static uint32_t ancestor(const struct reference *ref, uint32_t number)
{
    const struct ref_record *fork = ref_fork_of(ref, number);

    if (fork != NULL) {
        return fork->other;
    }
    return ref_find_session(ref, ref_session_current(ref, number)
                                     ->session_state->stored_options.parent_id);
}

static bool is_listed(const struct reference_info *list, uint32_t count,
                      uint32_t number)
{
    bool found = false;

    for (uint32_t i = 0; i < count; i++) {
        found |= list[i].info.number == number;
    }
    return found;
}

/* Parent ids may lead round in a circle: it ends where it closes. */
static enum wal_status list_lineage(const struct reference *ref,
                                    struct wal_slice of,
                                    struct reference_info *list,
                                    uint32_t *count)
{
    uint32_t first = ref_find_session(ref, of);
    uint32_t number;

    if (first == 0) {
        return WAL_ENOTFOUND;
    }
    for (number = ancestor(ref, first);
         number != 0 && number != first && !is_listed(list, *count, number);
         number = ancestor(ref, number)) {
        describe(ref, number, &list[*count]);
        *count += 1;
    }
    return WAL_OK;
}

static int compare(const void *left, const void *right)
{
    const struct reference_info *a = left;
    const struct reference_info *b = right;

    if (a->info.updated_ms != b->info.updated_ms) {
        return a->info.updated_ms > b->info.updated_ms ? -1 : 1;
    }
    return a->info.last_sequence > b->info.last_sequence ? -1 : 1;
}

static void list_all(const struct reference *ref,
                     const struct wal_session_cursor_options *options,
                     struct reference_info *list, uint32_t *count)
{
    bool is_trash = (options->flags & WAL_SESSION_CURSOR_TRASH) != 0;
    uint32_t sessions = reference_session_count(ref);

    for (uint32_t number = 1; number <= sessions; number++) {
        struct reference_info *at = &list[*count];

        if (reference_is_deleted(ref, number) ||
            reference_is_trashed(ref, number) != is_trash) {
            continue;
        }
        describe(ref, number, at);
        if (matches(options->cwd, at->info.cwd) &&
            matches(options->project, at->info.project) &&
            matches(options->source, at->info.source) &&
            matches(options->parent, at->info.parent_id) &&
            ref_begins_with(at->info.id, options->prefix) &&
            (options->changed_after == 0 ||
             at->info.updated_ms > options->changed_after) &&
            (options->recorded_after == 0 ||
             at->info.last_sequence > options->recorded_after)) {
            *count += 1;
        }
    }
    qsort(list, *count, sizeof(*list), compare);
}

enum wal_status reference_list(const struct reference *ref,
                               const struct wal_session_cursor_options *options,
                               struct reference_info **infos, uint32_t *count)
{
    struct reference_info *list =
        common_alloc(reference_session_count(ref) + 1, sizeof(*list));
    enum wal_status status = WAL_OK;
    uint32_t found = 0;

    WAL__ASSERT(list != NULL);
    if (options->after.size > 0) {
        status = WAL_EINVAL; /* the reference has no cursors */
    } else if ((options->flags & WAL_SESSION_CURSOR_LINEAGE) != 0) {
        status = list_lineage(ref, options->lineage_of, list, &found);
    } else {
        list_all(ref, options, list, &found);
    }
    if (status != WAL_OK) {
        common_free(list);
        return status;
    }
    *infos = list;
    *count = found;
    return WAL_OK;
}

enum wal_status reference_session_latest(const struct reference *ref,
                                         struct wal_slice cwd, uint32_t *number)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .cwd = cwd};
    struct reference_info *infos = NULL;
    uint32_t count = 0;
    enum wal_status status = reference_list(ref, &options, &infos, &count);

    if (status == WAL_OK && count > 0) {
        *number = infos[0].info.number;
    }
    common_free(infos);
    return status == WAL_OK && count == 0 ? WAL_ENOTFOUND : status;
}
