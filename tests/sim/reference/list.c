/*
 * list.c - the information on sessions, and lists of them
 * (reference.h).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

/* Own entries of the conversation; those that reading leaves out count. */
static uint64_t own_entries(const struct reference *ref, uint32_t number)
{
    uint64_t count = 0;

    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        count += record->kind == REF_ENTRY && record->session == number &&
                 record->stream == 0;
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

    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        count += record->kind == REF_DOC && record->session == number;
    }
    return count;
}

/* Also of a session that is deleted. */
static void describe(const struct reference *ref, uint32_t number,
                     struct reference_info *out)
{
    const struct ref_record *first = ref_session_first(ref, number);
    const struct ref_record *now = ref_session_current(ref, number);
    const struct ref_record *last;
    const struct wal_session_options *says =
        &now->session_state->stored_options;
    const struct wal_slice main = {NULL, 0};

    memset(out, 0, sizeof(*out));
    out->info.struct_size = sizeof(out->info);
    out->info.schema_version = says->schema_version;
    out->info.number = number;
    out->info.flags = now->session_state->is_fork ? WAL_SESSION_FORK : 0;
    if (reference_is_deleted(ref, number)) {
        out->info.flags |= WAL_SESSION_DELETED;
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
    out->info.created_ms = first->earliest_ms;
    out->created_latest_ms = first->latest_ms;
    if (says->created_ms != 0) {
        out->info.created_ms = says->created_ms;
        out->created_latest_ms = says->created_ms;
    }
    out->info.last_sequence = ref_last_record(ref, number);
    last = ref_at(ref, out->info.last_sequence);
    out->info.updated_ms = last->earliest_ms;
    out->updated_latest_ms = last->latest_ms;
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

enum wal_status reference_session_latest(const struct reference *ref,
                                         struct wal_slice cwd, uint32_t *number)
{
    for (uint64_t i = ref->count; i > 0; i--) {
        uint32_t session = ref_at(ref, i)->session;

        /* The owner of the newest record is the newest session. */
        if (session != REFERENCE_STORE && !reference_is_deleted(ref, session) &&
            matches(cwd, ref_session_current(ref, session)
                             ->session_state->stored_options.cwd)) {
            *number = session;
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
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

    return a->info.last_sequence > b->info.last_sequence ? -1 : 1;
}

static void list_all(const struct reference *ref,
                     const struct wal_session_cursor_options *options,
                     uint64_t after, struct reference_info *list,
                     uint32_t *count)
{
    uint32_t sessions = reference_session_count(ref);

    for (uint32_t number = 1; number <= sessions; number++) {
        struct reference_info *at = &list[*count];

        if (reference_is_deleted(ref, number)) {
            continue;
        }
        describe(ref, number, at);
        if (matches(options->cwd, at->info.cwd) &&
            matches(options->project, at->info.project) &&
            matches(options->source, at->info.source) &&
            matches(options->parent, at->info.parent_id) &&
            ref_begins_with(at->info.id, options->prefix) &&
            (after == 0 || at->info.last_sequence < after)) {
            *count += 1;
        }
    }
    qsort(list, *count, sizeof(*list), compare);
}

enum wal_status reference_list(const struct reference *ref,
                               const struct wal_session_cursor_options *options,
                               uint64_t after, struct reference_info **infos,
                               uint32_t *count)
{
    struct reference_info *list =
        calloc(reference_session_count(ref) + 1, sizeof(*list));
    enum wal_status status = WAL_OK;
    uint32_t found = 0;

    WAL__ASSERT(list != NULL);
    if (options->after.size > 0) {
        status = WAL_EINVAL; /* only the argument `after` is supported */
    } else if ((options->flags & WAL_SESSION_CURSOR_LINEAGE) != 0) {
        status = list_lineage(ref, options->lineage_of, list, &found);
    } else {
        list_all(ref, options, after, list, &found);
    }
    if (status != WAL_OK) {
        free(list);
        return status;
    }
    *infos = list;
    *count = found;
    return WAL_OK;
}
