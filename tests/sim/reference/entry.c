/*
 * entry.c - which entries a session sees, and what is known of an
 * entry (reference.h).
 */
#include <string.h>

#include <jansson.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

enum {
    FIRST_ENTRIES = 64 /* among which the first user message is looked for */
};

bool ref_can_see(const struct reference *ref, uint32_t number,
                 uint64_t sequence)
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

uint64_t ref_find_entry(const struct reference *ref, uint32_t number,
                        struct wal_slice id)
{
    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && !record->is_dropped &&
            reference_is_equal(record->entry->id, id) &&
            ref_can_see(ref, number, i)) {
            return i;
        }
    }
    return 0;
}

uint64_t ref_find_named(const struct reference *ref, uint32_t number,
                        struct wal_slice id)
{
    uint64_t found = ref_find_entry(ref, number, id);

    return found != 0 && ref_at(ref, found)->is_delta ? 0 : found;
}

uint64_t ref_newest_child(const struct reference *ref, uint32_t number,
                          uint32_t stream, uint64_t parent)
{
    REF_EACH_BACK (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->stream == stream &&
            record->moves_head && record->target == parent) {
            return i;
        }
    }
    return 0;
}

/* ------------------------------------------------------ dropped deltas --- */

bool reference_next_droppable(const struct reference *ref, uint64_t *sequence,
                              struct wal_slice *id, uint32_t *number)
{
    for (uint64_t i = *sequence + 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->is_delta &&
            !record->is_dropped && ref_redaction(ref, i) == NULL &&
            ref_newest_child(ref, record->session, record->stream,
                             record->target) > i) {
            *id = record->entry->id;
            *number = record->session;
            *sequence = i;
            return true;
        }
    }
    return false;
}

bool reference_can_see(const struct reference *ref, uint32_t number,
                       uint64_t sequence)
{
    return !reference_is_deleted(ref, number) &&
           ref_can_see(ref, number, sequence);
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

bool reference_is_dropped(const struct reference *ref, uint64_t sequence,
                          bool *is_doubtful)
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
static bool is_unclear(const struct reference *ref,
                       const struct ref_record *record)
{
    return record->is_doubtful || (record->is_delta && ref->avoids_deltas);
}

bool reference_pick_entry(const struct reference *ref, uint32_t number,
                          uint64_t from, struct wal_entry *out)
{
    for (uint64_t i = 0; i < ref->count; i++) {
        uint64_t sequence = (from + i) % ref->count + 1;
        const struct ref_record *record = ref_at(ref, sequence);

        if (record->kind == REF_ENTRY && !is_unclear(ref, record) &&
            ref_can_see(ref, number, sequence)) {
            /* A dropped delta may have been sent again with other content. */
            uint64_t present =
                record->is_dropped
                    ? ref_find_entry(ref, number, record->entry->id)
                    : sequence;

            *out = *ref_at(ref, present != 0 ? present : sequence)->entry;
            return true;
        }
    }
    return false;
}

bool reference_pick_parent(const struct reference *ref, uint32_t number,
                           uint64_t from, struct wal_entry *out)
{
    for (uint64_t i = 0; i < ref->count; i++) {
        uint64_t sequence = (from + i) % ref->count + 1;
        const struct ref_record *record = ref_at(ref, sequence);

        if (record->kind == REF_ENTRY && !record->is_delta &&
            record->target != 0 && ref_can_see(ref, number, sequence)) {
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
    return record->kind == REF_ENTRY &&
           reference_is_equal(record->entry->type, ref_text(type));
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

bool ref_is_ancestor(const struct reference *ref, uint64_t above,
                     uint64_t sequence)
{
    while (sequence != 0 && sequence != above) {
        sequence = ref_at(ref, sequence)->target;
    }
    return sequence == above && above != 0;
}

const struct ref_record *ref_redaction_until(const struct reference *ref,
                                             uint64_t sequence, uint64_t limit)
{
    uint64_t redact = ref_at(ref, sequence)->known;

    WAL__ASSERT(limit <= ref->count);
    return redact == 0 || redact > limit ? NULL : ref_at(ref, redact);
}

const struct ref_record *ref_redaction(const struct reference *ref,
                                       uint64_t sequence)
{
    return ref_redaction_until(ref, sequence, ref->count);
}

/* ---------------------------------------------------------- first text --- */

/* The message of a payload: it, or its member `message` or `payload`, the
 * first of them that has a role. */
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

/* White space and control characters become one space each run, none at the
 * ends; at most 160 bytes, whole characters. */
static uint32_t collapse_space(const char *text, size_t size, char out[160])
{
    uint32_t used = 0;
    bool space = false;

    for (size_t i = 0; i < size;) {
        size_t length = 1;

        while (i + length < size &&
               ((uint8_t)text[i + length] & 0xc0) == 0x80) {
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
    json_t *json =
        json_loadb(entry->payload.size > 0 ? entry->payload.data : "",
                   entry->payload.size, JSON_ALLOW_NUL, NULL);
    const json_t *message = message_of(json);
    const json_t *text = text_of(json_object_get(message, "content"));
    uint32_t size = 0;

    if (is_string(json_object_get(message, "role"), "user") &&
        !json_is_true(json_object_get(json, "isMeta")) &&
        !json_is_true(json_object_get(json, "isSidechain")) &&
        json_is_string(text)) {
        size = collapse_space(json_string_value(text), json_string_length(text),
                              out);
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

        if (record->kind == REF_ENTRY && record->stream == 0 &&
            !record->is_delta) {
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

/* The first user message that a session reports: a fork has that of the
 * session it was forked from, when it is not after the fork point, else the
 * first one appended to the fork. */
static uint64_t first_message(const struct reference *ref, uint32_t number)
{
    const struct ref_record *forks[REFERENCE_LINEAGE_MAX];
    const struct ref_record *fork;
    uint32_t depth = 0;
    uint64_t first;

    for (fork = ref_fork_of(ref, number); fork != NULL;
         fork = ref_fork_of(ref, fork->other)) {
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

uint32_t ref_first_text(const struct reference *ref, uint32_t number,
                        char out[160])
{
    uint64_t first = first_message(ref, number);
    struct wal_slice text;

    if (first == 0 || ref_redaction(ref, first) != NULL) {
        return 0;
    }
    text = ref_at(ref, first)->user_text;
    memcpy(out, text.data, text.size);
    return (uint32_t)text.size;
}
