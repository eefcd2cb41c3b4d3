/*
 * read.c - what the reference says of entries, erased ones too, and of each reading (reference.h).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

/* --- which entries a session sees, and what is known of an entry ---------- */

enum {
    FIRST_ENTRIES = 64 /* among which the first user message is looked for */
};

/* Whether a session sees an entry: it is its own, or is in the lineage at or before the fork
 * point. */
static bool ref_can_see(const struct reference *ref, uint32_t number, uint64_t sequence)
{
    const struct ref_record *entry = ref_at(ref, sequence);
    uint64_t limit = ref->count;

    if (entry->is_delta && entry->session != number) {
        return false; /* no fork sees it */
    }
    while (number != 0 && limit > 0) {
        const struct ref_record *fork = ref_fork_of(ref, number);

        if (entry->session == number) {
            return sequence <= limit;
        }
        /* Of the session that owns the fork point, what is not after it. */
        limit = fork == NULL ? 0 : fork->target;
        number = limit == 0 ? 0 : ref_at(ref, limit)->session;
    }
    return false;
}

uint64_t ref_find_entry(const struct reference *ref, uint32_t number, struct wal_slice id)
{
    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && !record->is_dropped &&
            reference_is_equal(record->entry->id, id) && ref_can_see(ref, number, i)) {
            return i;
        }
    }
    return 0;
}

uint64_t ref_find_named(const struct reference *ref, uint32_t number, struct wal_slice id)
{
    uint64_t found = ref_find_entry(ref, number, id);

    return found != 0 && ref_at(ref, found)->is_delta ? 0 : found;
}

/* The newest entry of the session that moved the head under `parent`; 0: none. It completes the
 * deltas before. */
static uint64_t ref_newest_child(const struct reference *ref, uint32_t number, uint32_t stream,
                                 uint64_t parent)
{
    REF_EACH_BACK (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->stream == stream && record->moves_head &&
            record->target == parent) {
            return i;
        }
    }
    return 0;
}

/* ------------------------------------------------------ dropped deltas --- */

static const struct ref_record *ref_redaction(const struct reference *ref, uint64_t sequence);

bool reference_next_droppable(const struct reference *ref, uint64_t *sequence, struct wal_slice *id,
                              uint32_t *number)
{
    for (uint64_t i = *sequence + 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->is_delta && !record->is_dropped &&
            ref_redaction(ref, i) == NULL &&
            ref_newest_child(ref, record->session, record->stream, record->target) > i) {
            *id = record->entry->id;
            *number = record->session;
            *sequence = i;
            return true;
        }
    }
    return false;
}

bool reference_can_see(const struct reference *ref, uint32_t number, uint64_t sequence)
{
    return !reference_is_deleted(ref, number) && ref_can_see(ref, number, sequence);
}

void reference_drop(struct reference *ref, uint64_t sequence)
{
    WAL__ASSERT(ref_at(ref, sequence)->is_delta);
    ref->records[sequence - 1].is_dropped = true;
}

void reference_doubt(struct reference *ref, uint64_t sequence)
{
    WAL__ASSERT(ref_at(ref, sequence)->is_delta);
    ref->records[sequence - 1].is_doubtful = true;
}

bool reference_is_dropped(const struct reference *ref, uint64_t sequence, bool *is_doubtful)
{
    const struct ref_record *record = ref_at(ref, sequence);

    *is_doubtful = record->is_doubtful && !record->is_dropped;
    return record->is_dropped;
}

void reference_show(struct reference *ref, uint64_t sequence, bool is_shown)
{
    ref->records[sequence - 1].shown = is_shown ? ref->hidings + 1 : 0;
}

void reference_show_dropped(struct reference *ref, bool is_shown)
{
    ref->shows_dropped = is_shown;
}

void reference_hide_dropped(struct reference *ref)
{
    ref->hidings++;
}

void reference_avoid_deltas(struct reference *ref, bool avoids)
{
    ref->avoids_deltas = avoids;
}

/* Whether a process may have the entry, and another one not. */
static bool is_unclear(const struct reference *ref, const struct ref_record *record)
{
    return record->is_doubtful || (record->is_delta && ref->avoids_deltas);
}

bool reference_pick_entry(const struct reference *ref, uint32_t number, uint64_t from,
                          struct wal_entry *out)
{
    for (uint64_t i = 0; i < ref->count; i++) {
        uint64_t sequence = (from + i) % ref->count + 1;
        const struct ref_record *record = ref_at(ref, sequence);

        if (record->kind == REF_ENTRY && !is_unclear(ref, record) &&
            ref_can_see(ref, number, sequence)) {
            /* A dropped delta may have been sent again with other content. */
            uint64_t present =
                record->is_dropped ? ref_find_entry(ref, number, record->entry->id) : sequence;

            *out = *ref_at(ref, present != 0 ? present : sequence)->entry;
            return true;
        }
    }
    return false;
}

bool reference_pick_parent(const struct reference *ref, uint32_t number, uint64_t from,
                           struct wal_entry *out)
{
    for (uint64_t i = 0; i < ref->count; i++) {
        uint64_t sequence = (from + i) % ref->count + 1;
        const struct ref_record *record = ref_at(ref, sequence);

        if (record->kind == REF_ENTRY && !record->is_delta && record->target != 0 &&
            ref_can_see(ref, number, sequence)) {
            *out = *ref_at(ref, record->target)->entry;
            return true;
        }
    }
    return false;
}

struct wal_slice ref_entry_id(const struct reference *ref, uint64_t sequence)
{
    const struct wal_slice none = {NULL, 0};

    return sequence == 0 ? none : ref_at(ref, sequence)->entry->id;
}

bool ref_is_type(const struct ref_record *record, const char *type)
{
    return record->kind == REF_ENTRY && reference_is_equal(record->entry->type, ref_text(type));
}

uint64_t ref_depth(const struct reference *ref, uint64_t sequence)
{
    uint64_t depth = 0;

    while (ref_at(ref, sequence)->target != 0) {
        sequence = ref_at(ref, sequence)->target;
        depth++;
    }
    return depth;
}

bool ref_is_ancestor(const struct reference *ref, uint64_t above, uint64_t sequence)
{
    while (sequence != 0 && sequence != above) {
        sequence = ref_at(ref, sequence)->target;
    }
    return sequence == above && above != 0;
}

/* The record that redacts an entry, the first one that was not undone, or null; of the first
 * `limit` records. */
static const struct ref_record *ref_redaction_until(const struct reference *ref, uint64_t sequence,
                                                    uint64_t limit)
{
    const struct ref_record *first = NULL;

    WAL__ASSERT(limit <= ref->count);
    for (uint64_t i = ref_at(ref, sequence)->known; i != 0; i = ref_at(ref, i)->known) {
        if (i <= limit && ref_at(ref, i)->kind == REF_RESTORE) {
            break;
        }
        first = i <= limit ? ref_at(ref, i) : NULL;
    }
    return first;
}

static const struct ref_record *ref_redaction(const struct reference *ref, uint64_t sequence)
{
    return ref_redaction_until(ref, sequence, ref->count);
}

/* ---------------------------------------------------------- first text --- */

/* The message of a payload: it, or its member `message` or `payload`, the first of them that has a
 * role. */
static const json_t *message_of(const json_t *payload)
{
    const json_t *candidates[] = {payload, json_object_get(payload, "message"),
                                  json_object_get(payload, "payload")};

    for (int i = 0; i < 3; i++) {
        if (json_is_string(json_object_get(candidates[i], "role"))) {
            return candidates[i];
        }
    }
    return NULL;
}

static bool is_string(const json_t *json, const char *text)
{
    return json_is_string(json) && strcmp(json_string_value(json), text) == 0;
}

/* The text of a content: itself, or its first item that is a text. */
static const json_t *text_of(const json_t *content)
{
    size_t index;
    const json_t *item;

    if (json_is_string(content)) {
        return content;
    }
    json_array_foreach((json_t *)(uintptr_t)content, index, item)
    {
        const json_t *type = json_object_get(item, "type");

        if (json_is_string(item)) {
            return item;
        }
        if (is_string(type, "text") || is_string(type, "input_text")) {
            return json_object_get(item, "text");
        }
    }
    return NULL;
}

/* White space and control characters become one space each run, none at the ends; at most 160
 * bytes, whole characters. */
static uint32_t collapse_space(const char *text, size_t size, char out[160])
{
    uint32_t used = 0;
    bool space = false;

    for (size_t i = 0; i < size;) {
        size_t length = 1;

        while (i + length < size && ((uint8_t)text[i + length] & 0xc0) == 0x80) {
            length++;
        }
        if ((uint8_t)text[i] <= ' ' || text[i] == 0x7f) {
            space = used > 0;
        } else {
            if (used + space + length > 160) {
                break;
            }
            if (space) {
                out[used++] = ' ';
            }
            memcpy(out + used, text + i, length);
            used += (uint32_t)length;
            space = false;
        }
        i += length;
    }
    return used;
}

uint32_t ref_user_text(const struct wal_entry *entry, char out[160])
{
    json_t *json = json_loadb(entry->payload.size > 0 ? entry->payload.data : "",
                              entry->payload.size, JSON_ALLOW_NUL, NULL);
    const json_t *message = message_of(json);
    const json_t *text = text_of(json_object_get(message, "content"));
    uint32_t size = 0;

    if (is_string(json_object_get(message, "role"), "user") &&
        !json_is_true(json_object_get(json, "isMeta")) &&
        !json_is_true(json_object_get(json, "isSidechain")) && json_is_string(text)) {
        size = collapse_space(json_string_value(text), json_string_length(text), out);
    }
    json_decref(json);
    return size;
}

/* Looked for among the first entries of the conversation only. */
static uint64_t own_message(const struct reference *ref, uint32_t number)
{
    uint32_t looked_at = 0;

    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->stream == 0 && !record->is_delta) {
            if (record->user_text.size > 0) {
                return i;
            }
            if (++looked_at == FIRST_ENTRIES) {
                break;
            }
        }
    }
    return 0;
}

/* The first user message that a session reports: a fork has that of the session it was forked from,
 * when it is not after the fork point, else the first one appended to the fork. */
static uint64_t first_message(const struct reference *ref, uint32_t number)
{
    const struct ref_record *forks[REFERENCE_LINEAGE_MAX];
    const struct ref_record *fork;
    uint32_t depth = 0;
    uint64_t first;

    for (fork = ref_fork_of(ref, number); fork != NULL; fork = ref_fork_of(ref, fork->other)) {
        WAL__ASSERT(depth < REFERENCE_LINEAGE_MAX);
        forks[depth++] = fork;
    }
    first = own_message(ref, depth == 0 ? number : forks[depth - 1]->other);
    while (depth > 0) {
        fork = forks[--depth];
        if (first == 0 || first > fork->target || fork->stream != 0) {
            first = own_message(ref, fork->session);
        }
    }
    return first;
}

uint32_t ref_first_text(const struct reference *ref, uint32_t number, char out[160],
                        uint32_t *flags)
{
    uint64_t first = first_message(ref, number);
    struct wal_slice text;

    /* What a redaction took does not come back. */
    if (first == 0 || ref_at(ref, first)->known != 0) {
        *flags |= first != 0 ? (uint32_t)WAL_SESSION_NO_TEXT : 0;
        return 0;
    }
    text = ref_at(ref, first)->user_text;
    memcpy(out, text.data, text.size);
    return (uint32_t)text.size;
}

/* --- erased --------------------------------------------------------------- */

/*
 * What a compaction that erases leaves of no record, and which texts a search finds.
 */

/* Whether a session that is not deleted has the version of a document: its own, or that of one it
 * was forked from, as that was then. */
static bool has_document(const struct reference *ref, uint32_t owner, uint64_t sequence)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t i = 1; i <= count; i++) {
        uint64_t limit = ref->count;
        uint32_t at = i;

        if (reference_is_deleted(ref, i)) {
            continue;
        }
        while (at != owner) {
            const struct ref_record *fork = ref_fork_of(ref, at);

            if (fork == NULL) {
                break;
            }
            at = fork->other;
            if (ref_sequence(ref, fork) < limit) {
                limit = ref_sequence(ref, fork);
            }
        }
        if (at == owner && sequence <= limit) {
            return true;
        }
    }
    return false;
}

static bool is_seen(const struct reference *ref, uint64_t sequence)
{
    uint32_t count = reference_session_count(ref);

    for (uint32_t number = 1; number <= count; number++) {
        if (reference_can_see(ref, number, sequence)) {
            return true;
        }
    }
    return false;
}

bool reference_is_redacted(const struct reference *ref, uint64_t sequence)
{
    return ref_at(ref, sequence)->kind == REF_ENTRY && ref_redaction(ref, sequence) != NULL;
}

bool reference_is_erased(const struct reference *ref, uint64_t sequence, struct wal_slice texts[2])
{
    const struct ref_record *record = ref_at(ref, sequence);

    texts[0] = (struct wal_slice){NULL, 0};
    texts[1] = texts[0];
    switch (record->kind) {
    case REF_ENTRY:
        texts[0] = record->entry->payload;
        texts[1] = record->entry->meta;
        return ref_redaction(ref, sequence) != NULL || !is_seen(ref, sequence);
    case REF_DOC:
        texts[0] = record->doc->value;
        return record->session != REFERENCE_STORE && !has_document(ref, record->session, sequence);
    case REF_SESSION:
        texts[0] = record->session_state->stored_options.title;
        texts[1] = record->session_state->stored_options.metadata;
        /* Of a deleted session its id is enough. */
        return reference_is_deleted(ref, record->session) ||
               ref_session_current(ref, record->session) != record;
    case REF_FORK:
    case REF_HEAD:
    case REF_REDACT:
    case REF_RESTORE:
    case REF_TOMBSTONE:
        break;
    }
    return false;
}

static bool is_listed(const struct reference *ref, uint32_t number)
{
    return !reference_is_deleted(ref, number) && !reference_is_trashed(ref, number);
}

bool reference_is_found(const struct reference *ref, uint64_t sequence, uint32_t number,
                        struct wal_slice *text, struct wal_slice *id)
{
    const struct ref_record *record = ref_at(ref, sequence);
    uint32_t count = reference_session_count(ref);

    *text = (struct wal_slice){NULL, 0};
    *id = *text;
    if (record->kind == REF_SESSION) {
        *text = record->session_state->stored_options.title;
        return (number == 0 || number == record->session) && is_listed(ref, record->session) &&
               ref_session_current(ref, record->session) == record;
    }
    if (record->kind != REF_ENTRY) {
        return false;
    }
    *text = record->entry->payload;
    *id = record->entry->id;
    if (ref_is_type(record, WAL_TYPE_MESSAGE_DELTA_BATCH) || ref_redaction(ref, sequence) != NULL) {
        return false;
    }
    for (uint32_t i = 1; i <= count; i++) {
        if ((number == 0 || i == number) && is_listed(ref, i) && ref_can_see(ref, i, sequence)) {
            return true;
        }
    }
    return false;
}

/* --- reading a session's entries ------------------------------------------ */

static const struct wal_slice nothing = {NULL, 0};

/* Sequence numbers in the order of reading. */
struct path {
    uint64_t *items;
    uint64_t count;
};

/* Adds what the session has of the stream and is no delta that was dropped;
 * `end`: deltas of the message that follows it, and no other entries. */
static void add_own(const struct reference *ref, uint32_t number, uint32_t stream,
                    const uint64_t *end, struct path *path)
{
    uint64_t completed = end == NULL ? 0 : ref_newest_child(ref, number, stream, *end);

    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->stream == stream &&
            (!record->is_dropped || ref->shows_dropped || record->shown == ref->hidings + 1) &&
            (end == NULL || (record->is_delta && record->target == *end && i > completed))) {
            path->items[path->count++] = i;
        }
    }
}

/* The way from a root to an entry; none for 0. */
static struct path path_to(const struct reference *ref, uint64_t sequence)
{
    struct path path = {.count = sequence == 0 ? 0 : ref_depth(ref, sequence) + 1};

    path.items = common_alloc(ref->count + 1, sizeof(path.items[0]));
    WAL__ASSERT(path.items != NULL);
    for (uint64_t i = path.count; i > 0; i--) {
        path.items[i - 1] = sequence;
        sequence = ref_at(ref, sequence)->target;
    }
    return path;
}

static enum wal_status branch(const struct reference *ref, uint32_t number,
                              const struct wal_entry_cursor_options *options, struct path *path)
{
    bool deltas = (options->flags & WAL_ENTRY_CURSOR_DELTAS) != 0;
    bool is_main = options->head.size == 0 || reference_is_equal(options->head, ref_text("main"));
    uint64_t end = ref_head(ref, number, options->stream, options->head, ref->count);

    if (end == 0 && !is_main) {
        return WAL_ENOTFOUND;
    }
    if (options->up_to.size > 0) {
        end = ref_find_named(ref, number, options->up_to);
        if (end == 0 || ref_at(ref, end)->stream != options->stream) {
            return WAL_ENOTFOUND;
        }
    }
    *path = path_to(ref, end);
    if (deltas) {
        add_own(ref, number, options->stream, &end, path);
    }
    return WAL_OK;
}

/* The entries that a fork shares in branch order, then its own. */
static struct path all(const struct reference *ref, uint32_t number, uint32_t stream)
{
    const struct ref_record *fork = ref_fork_of(ref, number);
    bool shares = fork != NULL && fork->target != 0 && fork->stream == stream;
    struct path path = path_to(ref, shares ? fork->target : 0);

    add_own(ref, number, stream, NULL, &path);
    return path;
}

/* ---------------------------------------------------------- compaction --- */

static bool is_compaction(const struct ref_record *record)
{
    return ref_is_type(record, WAL_TYPE_COMPACTION) ||
           ref_is_type(record, WAL_TYPE_COMPACTION_SUMMARY);
}

/* The first entry that the last compaction of the path keeps, or the compaction, when what it names
 * is not before it. */
static void since_compaction(const struct reference *ref, uint32_t number, struct path *path)
{
    uint64_t last = path->count;
    uint64_t from;
    uint64_t kept = 0;
    struct wal_slice id;

    while (last > 0 && !is_compaction(ref_at(ref, path->items[last - 1]))) {
        last--;
    }
    if (last == 0) {
        return;
    }
    from = last - 1;
    if (reference_member(ref_at(ref, path->items[from])->entry->payload, "firstKeptEntryId", &id)) {
        kept = ref_find_entry(ref, number, id);
        reference_free(id);
    }
    for (uint64_t i = 0; i < from; i++) {
        if (path->items[i] == kept) {
            from = i;
        }
    }
    path->count -= from;
    memmove(path->items, path->items + from, path->count * sizeof(path->items[0]));
}

/* -------------------------------------------------------------- giving --- */

/* Redactions count among the first `limit` records. */
static bool is_hidden(const struct reference *ref, uint64_t sequence, uint32_t flags,
                      uint64_t limit)
{
    if ((flags & WAL_ENTRY_CURSOR_DELTAS) == 0 &&
        ref_is_type(ref_at(ref, sequence), WAL_TYPE_MESSAGE_DELTA_BATCH)) {
        return true;
    }
    return (flags & WAL_ENTRY_CURSOR_REDACTED) == 0 &&
           ref_redaction_until(ref, sequence, limit) != NULL;
}

/* Redactions count among the first `limit` records; for its parent among the first
 * `parent_limit`. */
static void fill_entry(const struct reference *ref, uint64_t sequence, uint32_t flags,
                       uint64_t limit, uint64_t parent_limit, struct reference_entry *out)
{
    const struct ref_record *record = ref_at(ref, sequence);
    const struct ref_record *redact = ref_redaction_until(ref, sequence, limit);
    uint64_t parent = record->target;

    memset(out, 0, sizeof(*out));
    out->entry = *record->entry;
    out->entry.flags = record->entry->flags & WAL_ENTRY_LINE;
    out->entry.sequence = sequence;
    out->entry.depth = ref_depth(ref, sequence);
    while (parent != 0 && is_hidden(ref, parent, flags, parent_limit)) {
        parent = ref_at(ref, parent)->target;
    }
    out->entry.flags |= parent == 0 ? WAL_ENTRY_ROOT : 0;
    out->entry.parent_id = ref_entry_id(ref, parent);
    out->earliest_ms = record->earliest_ms;
    out->latest_ms = record->latest_ms;
    if (redact != NULL) {
        /* The flags say what it was. */
        out->entry.flags |= WAL_ENTRY_REDACTED;
        out->entry.payload = nothing;
        out->entry.meta = nothing;
        out->redacted_by = ref_entry_id(ref, redact->by);
        out->reason = redact->reason;
    }
}

enum wal_status reference_read(const struct reference *ref, uint32_t number,
                               const struct wal_entry_cursor_options *options,
                               struct reference_entry **entries, uint32_t *count)
{
    struct reference_entry *list;
    struct path path = {0};
    uint64_t skip = options->skip;
    enum wal_status status = WAL_OK;

    if (options->up_to.size > 0 && options->head.size > 0) {
        return WAL_EINVAL;
    }
    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (options->mode == WAL_ENTRY_CURSOR_ALL) {
        path = all(ref, number, options->stream);
    } else {
        status = branch(ref, number, options, &path);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((options->flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
        since_compaction(ref, number, &path);
    }
    list = common_alloc(path.count + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    for (uint64_t i = 0; i < path.count; i++) {
        if (is_hidden(ref, path.items[i], options->flags, ref->count)) {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        fill_entry(ref, path.items[i], options->flags, ref->count, ref->count, &list[*count]);
        *count += 1;
    }
    common_free(path.items);
    if (options->last > 0 && options->last < *count) {
        memmove(list, list + (*count - options->last), (size_t)options->last * sizeof(*list));
        *count = (uint32_t)options->last;
    }
    *entries = list;
    return WAL_OK;
}

bool reference_refresh(const struct reference *ref, uint64_t sequence, uint32_t flags,
                       uint64_t limit, uint64_t parent_limit, struct reference_entry *out)
{
    if (is_hidden(ref, sequence, flags, limit)) {
        return false;
    }
    fill_entry(ref, sequence, flags, limit, parent_limit, out);
    return true;
}

void reference_take_redaction(const struct reference *ref, struct wal_slice id,
                              struct reference_entry *entry)
{
    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_REDACT && record->target == entry->entry.sequence &&
            reference_is_equal(ref_entry_id(ref, record->by), id)) {
            entry->entry.flags |= WAL_ENTRY_REDACTED;
            entry->entry.payload = nothing;
            entry->entry.meta = nothing;
            entry->redacted_by = ref_entry_id(ref, record->by);
            entry->reason = record->reason;
            return;
        }
    }
}

bool reference_is_redaction(const struct reference *ref, struct wal_slice id)
{
    bool found = false;

    for (uint64_t i = 1; i <= ref->count && !found; i++) {
        const struct ref_record *record = ref_at(ref, i);

        found = record->kind == REF_REDACT && reference_is_equal(ref_entry_id(ref, record->by), id);
    }
    return found;
}

bool reference_was_redacted(const struct reference *ref, uint64_t sequence, uint64_t since)
{
    bool is_undone = false;

    for (uint64_t i = ref_at(ref, sequence)->known; i != 0; i = ref_at(ref, i)->known) {
        if (is_undone && i > since && ref_at(ref, i)->kind == REF_REDACT) {
            return true;
        }
        is_undone |= ref_at(ref, i)->kind == REF_RESTORE;
    }
    return false;
}

bool reference_may_be_parent(const struct reference *ref, uint64_t sequence, struct wal_slice id,
                             uint32_t flags, uint64_t since)
{
    uint64_t parent = ref_at(ref, sequence)->target;

    while (parent != 0 && !reference_is_equal(ref_entry_id(ref, parent), id) &&
           (is_hidden(ref, parent, flags, ref->count) || is_hidden(ref, parent, flags, since) ||
            reference_was_redacted(ref, parent, since))) {
        parent = ref_at(ref, parent)->target;
    }
    return parent == 0 ? id.size == 0 : reference_is_equal(ref_entry_id(ref, parent), id);
}

bool reference_next_redaction(const struct reference *ref, uint64_t *sequence)
{
    for (uint64_t i = *sequence + 1; i <= ref->count; i++) {
        if (ref_at(ref, i)->kind == REF_REDACT || ref_at(ref, i)->kind == REF_RESTORE) {
            *sequence = i;
            return true;
        }
    }
    return false;
}

enum wal_status reference_get(const struct reference *ref, uint32_t number, struct wal_slice id,
                              uint32_t flags, struct reference_entry *out)
{
    uint64_t found;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    found = ref_find_entry(ref, number, id);
    if (found == 0) {
        return WAL_ENOTFOUND;
    }
    if (ref_redaction(ref, found) != NULL && (flags & WAL_ENTRY_CURSOR_REDACTED) == 0) {
        return WAL_EREDACTED;
    }
    fill_entry(ref, found, flags, ref->count, ref->count, out);
    return WAL_OK;
}
