/*
 * generate.c - ids, payloads and parts of batches by the seed (differential.h).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/lib/rng.h"
#include "tests/sim/differential/differential.h"

enum {
    CANARY_SIZE = 14 /* bytes of the word and its number */
};

/* A text of the operation under way. */
struct differential_text {
    struct differential_text *next;
    char bytes[];
};

uint32_t differential_random(struct differential *run, uint32_t sides)
{
    return (uint32_t)rng_below(&run->rng_state, sides);
}

bool differential_one_in(struct differential *run, uint32_t in)
{
    return differential_random(run, in) == 0;
}

/* --------------------------------------------------------------- texts --- */

static char *alloc_text(struct differential *run, size_t size)
{
    struct differential_text *text = common_alloc(1, sizeof(*text) + size);

    WAL__ASSERT(text != NULL);
    text->next = run->texts;
    run->texts = text;
    return text->bytes;
}

void differential_free_texts(struct differential *run)
{
    while (run->texts != NULL) {
        struct differential_text *next = run->texts->next;

        common_free(run->texts);
        run->texts = next;
    }
}

struct wal_slice differential_slice(const char *text)
{
    struct wal_slice slice = {text, strlen(text)};

    return slice;
}

struct wal_slice differential_text(struct differential *run, const char *format, ...)
{
    struct wal_slice slice = {NULL, 0};
    va_list list;
    char *bytes;
    int size;

    va_start(list, format);
    size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    bytes = alloc_text(run, (size_t)size + 1);
    va_start(list, format);
    (void)vsnprintf(bytes, (size_t)size + 1, format, list);
    va_end(list);
    slice.data = bytes;
    slice.size = (uint64_t)size;
    return slice;
}

struct wal_slice differential_random_bytes(struct differential *run, uint32_t size, int byte)
{
    struct wal_slice slice = {NULL, size};
    char *bytes = alloc_text(run, size);

    memset(bytes, byte, size);
    slice.data = bytes;
    return slice;
}

/* Most are short; some have characters of several bytes, or the most bytes that there may be. */
static struct wal_slice differential_new_id(struct differential *run)
{
    uint32_t number = ++run->made;

    switch (differential_random(run, 16)) {
    case 0:
        return differential_text(run, "\xc3\xa9-%u-\xe2\x82\xac\xf0\x9f\x98\x80", number);
    case 1:
        return differential_text(run, "%0255u", number);
    case 2:
        return differential_text(run, "a \"quoted\\id\" %u", number);
    default:
        return differential_text(run, "id-%u", number);
    }
}

struct wal_slice differential_json(struct differential *run)
{
    uint32_t number = differential_random(run, 1000);

    switch (differential_random(run, 6)) {
    case 0:
        return differential_text(run, "%u", number);
    case 1:
        return differential_text(run, "[1, {\"a\": null}, \"\\u00e9%u\"]", number);
    case 2:
        return differential_text(run, "\"text %u\"", number);
    case 3:
        return differential_text(run, "{\"n\":%u,\"filler\":\"%0*u\"}", number,
                                 (int)differential_random(run, 2000), number);
    default:
        return differential_text(run, "{\"n\":%u}", number);
    }
}

/* The number of a text that occurs once. Neighbours have few digits in common, so that compression
 * leaves most of them as they are. */
static uint32_t new_canary(struct differential *run)
{
    return (uint32_t)((uint64_t)++run->made * 48271 % 100000000);
}

bool differential_next_canary(struct wal_slice *text, uint32_t *number)
{
    static const char word[] = "canary";
    const char *from = text->data;
    const char *end = text->size == 0 ? from : from + text->size;

    while ((size_t)(end - from) >= CANARY_SIZE &&
           (from = memmem(from, (size_t)(end - from), word, sizeof(word) - 1)) != NULL &&
           (size_t)(end - from) >= CANARY_SIZE) {
        const char *digit = from + sizeof(word) - 1;

        from += CANARY_SIZE;
        *number = 0;
        while (digit < from && *digit >= '0' && *digit <= '9') {
            *number = *number * 10 + (uint32_t)(*digit++ - '0');
        }
        if (digit == from) {
            *text = (struct wal_slice){from, (uint64_t)(end - from)};
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------- entries --- */

struct wal_slice differential_entry_id(struct differential *run, uint32_t number)
{
    const struct wal_slice none = {NULL, 0};
    uint64_t count = reference_last_sequence(run->ref);
    uint64_t from = count;
    struct wal_entry entry;

    /* Newer ones more often. */
    if (count > 0) {
        uint32_t span = (uint32_t)count;

        if (differential_one_in(run, 2) && span > 200) {
            span = 200;
        }
        from = count - 1 - differential_random(run, span);
    }
    return reference_pick_entry(run->ref, number, from, &entry) ? entry.id : none;
}

/* An id as a JSON string would have it. */
static struct wal_slice quoted(struct differential *run, struct wal_slice id)
{
    struct wal_slice slice = {NULL, 2};
    const char *from = id.data;
    char *bytes = alloc_text(run, 2 * id.size + 2);

    bytes[0] = '"';
    slice.size = 1;
    for (uint64_t i = 0; i < id.size; i++) {
        if (from[i] == '"' || from[i] == '\\') {
            bytes[slice.size++] = '\\';
        }
        bytes[slice.size++] = from[i];
    }
    bytes[slice.size++] = '"';
    slice.data = bytes;
    return slice;
}

#define SLICE(text) (int)(text).size, (const char *)(text).data

static struct wal_slice message(struct differential *run)
{
    uint32_t filler = differential_random(run, 300);
    uint32_t number = new_canary(run);

    if (differential_one_in(run, 20)) {
        filler = 2000 + differential_random(run, 30000);
    }
    if (differential_one_in(run, 150)) {
        filler = 60000 + differential_random(run, 200000);
    }
    switch (differential_random(run, 6)) {
    case 0:
        return differential_text(run,
                                 "{\"role\":\"user\",\"content\":\"canary%08u\\n \\u20ac %*u\"}",
                                 number, (int)filler, number);
    case 1:
        return differential_text(run,
                                 "{\"role\":\"user\",\"content\":[{\"type\":"
                                 "\"image\"},{\"type\":\"text\",\"text\":\"see "
                                 "canary%08u %0*u\"}]}",
                                 number, (int)filler, number);
    case 2:
        return differential_json(run);
    default:
        return differential_text(run, "{\"role\":\"assistant\",\"content\":\"%0*u canary%08u\"}",
                                 (int)filler, number, number);
    }
}

/* Makes of an entry a redaction of another, or a line that says so. */
void differential_redaction_entry(struct differential *run, struct wal_slice id,
                                  struct wal_entry *entry)
{
    id = quoted(run, id);
    entry->type = differential_slice(WAL_TYPE_REDACTION);
    entry->payload = differential_text(run, "{\"targetEntryId\":%.*s,\"reason\":\"r\\n%u\"}",
                                       SLICE(id), differential_random(run, 9));
    entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
    entry->flags |= differential_one_in(run, 4) ? WAL_ENTRY_LINE : 0;
}

/* Native entries that name others: most of these are there. */
static void generate_references(struct differential *run, uint32_t number, struct wal_entry *entry)
{
    uint32_t source = differential_one_in(run, 3) ? differential_session(run) : number;
    struct reference_info info;
    struct wal_slice session = {NULL, 0};
    struct wal_slice id = differential_entry_id(run, source);

    if (id.size == 0) {
        return;
    }
    switch (differential_random(run, 4)) {
    case 0:
        entry->type = differential_slice(WAL_TYPE_COMPACTION_SUMMARY);
        entry->parent_id = id;
        id = quoted(run, id);
        entry->payload = differential_text(run, "{\"firstKeptEntryId\":%.*s}", SLICE(id));
        break;
    case 1:
        if (source != 0 && reference_session_status(run->ref, source, &info) == WAL_OK) {
            session = info.info.id;
        }
        session = quoted(run, session.size > 0 ? session : id);
        id = quoted(run, id);
        entry->type = differential_slice(WAL_TYPE_BRANCH_SUMMARY);
        entry->payload = differential_text(run, "{\"sourceSessionId\":%.*s,\"sourceEntryId\":%.*s}",
                                           SLICE(session), SLICE(id));
        break;
    default:
        differential_redaction_entry(run, id, entry);
        break;
    }
}

/* A payload that no record holds: blanks before it mean nothing. */
static void pad_payload(struct differential *run, struct wal_entry *entry)
{
    int blanks = 200000 + (int)differential_random(run, 500000);

    if ((entry->flags & WAL_ENTRY_LINE) == 0) {
        entry->payload = differential_text(run, "%*s%.*s", blanks, "", SLICE(entry->payload));
    }
}

/* A type and a payload that goes with it. */
static void fill_content(struct differential *run, uint32_t number, struct wal_entry *entry)
{
    const char *type = WAL_TYPE_MESSAGE;
    struct wal_slice id = {NULL, 0};

    entry->payload = message(run);
    switch (differential_random(run, 16)) {
    case 0:
    case 1:
        type = WAL_TYPE_MESSAGE_DELTA_BATCH;
        /* A line is no delta. */
        entry->flags |= differential_one_in(run, 4) ? WAL_ENTRY_LINE : 0;
        break;
    case 2:
        type = WAL_TYPE_CUSTOM;
        break;
    case 3:
        type = WAL_TYPE_COMPACTION;
        break;
    case 4:
        id = quoted(run, differential_entry_id(run, number));
        type = WAL_TYPE_COMPACTION;
        entry->payload =
            differential_text(run, "{\"summary\":\"s\",\"firstKeptEntryId\":%.*s}", SLICE(id));
        break;
    case 5:
        entry->type = differential_slice("an arbitrary type");
        return;
    case 6:
        entry->flags |= WAL_ENTRY_LINE;
        entry->payload = differential_random_bytes(run, 1 + differential_random(run, 60), 'x');
        break;
    case 7:
        entry->type = differential_slice(type);
        generate_references(run, number, entry);
        return;
    default:
        break;
    }
    entry->type = differential_slice(type);
}

static bool is_delta(const struct wal_entry *entry)
{
    const struct wal_slice type = differential_slice(WAL_TYPE_MESSAGE_DELTA_BATCH);

    return entry->type.size == type.size &&
           memcmp(entry->type.data, type.data, (size_t)type.size) == 0;
}

/* Under the head, an entry that is there, or no entry; a delta also under one that was answered
 * before, as of another answer. */
static void fill_parent(struct differential *run, uint32_t number, struct wal_entry *entry)
{
    uint64_t from = differential_random(run, (uint32_t)reference_last_sequence(run->ref) + 1);
    struct wal_entry parent;

    if (entry->parent_id.size > 0) {
        return;
    }
    if (is_delta(entry) && differential_one_in(run, 2) &&
        reference_pick_parent(run->ref, number, from, &parent)) {
        entry->stream = parent.stream;
        entry->parent_id = parent.id;
        return;
    }
    switch (differential_random(run, 12)) {
    case 0:
        entry->flags |= WAL_ENTRY_ROOT;
        break;
    case 1:
    case 2:
        if (reference_pick_entry(run->ref, number, from, &parent)) {
            entry->stream = parent.stream;
            entry->parent_id = parent.id;
        }
        break;
    default:
        break;
    }
}

/* A time that a session's order follows, or one that is not believed. */
static struct wal_slice timestamp(struct differential *run)
{
    static const char *const years[] = {"2023", "2023", "2023", "2019", "1969", "2999", "202x"};
    uint32_t year = differential_random(run, (uint32_t)(sizeof(years) / sizeof(years[0])));

    return differential_text(run, "%s-01-01T00:00:%02uZ", years[year],
                             differential_random(run, 60));
}

void differential_entry(struct differential *run, uint32_t number, struct wal_entry *entry)
{
    memset(entry, 0, sizeof(*entry));
    entry->struct_size = sizeof(*entry);
    entry->id = differential_new_id(run);
    if (differential_one_in(run, 6)) {
        entry->stream = differential_random(run, DIFFERENTIAL_STREAMS);
    }
    fill_content(run, number, entry);
    if (differential_one_in(run, 100)) {
        pad_payload(run, entry);
    }
    fill_parent(run, number, entry);
    if (!differential_one_in(run, 4)) {
        entry->timestamp = timestamp(run);
    }
    if (differential_one_in(run, 4)) {
        entry->run_id = differential_text(run, "run-%u", differential_random(run, 9));
    }
    if (differential_one_in(run, 5)) {
        entry->meta = differential_text(run, "{\"m\":\"canary%08u\"}", new_canary(run));
    }
    if (differential_one_in(run, 10)) {
        entry->flags |= differential_one_in(run, 2) ? WAL_ENTRY_HEAD_KEEP : WAL_ENTRY_HEAD_MOVE;
    }
}

/* ---------------------------------------------------- heads, documents --- */

static struct wal_slice head_name(struct differential *run)
{
    static const char *const names[] = {"main", "", "left", "right", "\xc3\xa9 t", "mainly"};

    return differential_slice(names[differential_random(run, 6)]);
}

/* A move that can be made. */
void differential_head(struct differential *run, uint32_t number, struct wal_head *head)
{
    uint64_t from = differential_random(run, (uint32_t)reference_last_sequence(run->ref) + 1);
    struct wal_entry entry;

    memset(head, 0, sizeof(*head));
    head->struct_size = sizeof(*head);
    head->name = head_name(run);
    if (reference_pick_entry(run->ref, number, from, &entry)) {
        head->stream = entry.stream;
        head->entry_id = entry.id;
    }
    if (differential_one_in(run, 3)) {
        head->note = differential_text(run, "note %u", ++run->made);
    }
}

struct wal_slice differential_key(struct differential *run)
{
    switch (differential_random(run, 12)) {
    case 0:
        return differential_text(run, "%01024u", differential_random(run, 3));
    case 1:
        return differential_text(run, "\xc3\xa9%u", differential_random(run, 3));
    case 2:
        return differential_text(run, "a/%u/b", differential_random(run, 30));
    default:
        return differential_text(run, "a/%u", differential_random(run, 12));
    }
}

/* A value that occurs once. */
static struct wal_slice single_value(struct differential *run)
{
    return differential_text(run, "[\"canary%08u\"]", new_canary(run));
}

void differential_doc(struct differential *run, uint32_t number, bool is_store, struct wal_doc *doc)
{
    struct reference_doc now;
    uint32_t owner = is_store ? REFERENCE_STORE : number;

    memset(doc, 0, sizeof(*doc));
    doc->struct_size = sizeof(*doc);
    doc->key = differential_key(run);
    doc->value = differential_one_in(run, 2) ? differential_json(run) : single_value(run);
    if (differential_one_in(run, 3)) {
        doc->flags |= WAL_DOC_EXPECT;
        if (reference_doc_get(run->ref, owner, doc->key, 0, &now) == WAL_OK) {
            doc->version = now.doc.version;
        }
    }
    /* The same again: it is left, whatever version is expected. */
    if (differential_one_in(run, 8) &&
        reference_doc_get(run->ref, owner, doc->key, 0, &now) == WAL_OK) {
        doc->value = now.doc.value;
        doc->version += doc->version != 0 && differential_one_in(run, 2);
    }
}

/* ------------------------------------------------------------ sessions --- */

static struct wal_slice directory(struct differential *run)
{
    return differential_text(run, "/work/%u", differential_random(run, 4));
}

void differential_session_options(struct differential *run, struct wal_session_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->id = differential_new_id(run);
    if (!differential_one_in(run, 4)) {
        options->cwd = directory(run);
    }
    if (differential_one_in(run, 2)) {
        options->project = differential_text(run, "p%u", differential_random(run, 3));
    }
    if (differential_one_in(run, 2)) {
        options->title = differential_text(run, "title canary%08u", new_canary(run));
    }
    if (differential_one_in(run, 4)) {
        options->source = differential_text(run, "from/%u", differential_random(run, 3));
    }
    if (differential_one_in(run, 2)) {
        options->metadata = differential_text(run, "{\"n\":\"canary%08u\"}", new_canary(run));
    }
    if (differential_one_in(run, 6)) {
        options->parent_id = differential_text(run, "id-%u", differential_random(run, 50));
    }
    if (differential_one_in(run, 4)) {
        options->created_ms = 1000 + differential_random(run, 100000);
    } else if (differential_one_in(run, 20)) {
        options->created_ms = differential_one_in(run, 2) ? -1 : INT64_MAX - 5; /* not believed */
    }
    options->schema_version =
        run->schema_version != 0 ? run->schema_version : differential_random(run, 3);
}

void differential_change(struct differential *run, uint32_t number,
                         struct wal_session_change *change)
{
    struct reference_info now;

    if (differential_one_in(run, 2)) {
        change->fields |= WAL_CHANGE_METADATA;
        if (!differential_one_in(run, 4)) {
            change->metadata =
                differential_text(run, "{\"changed\":\"canary%08u\"}", new_canary(run));
        }
    }
    if (differential_one_in(run, 2)) {
        change->fields |= WAL_CHANGE_TITLE;
        change->title = differential_text(run, "title %u", differential_random(run, 4));
    }
    if (differential_one_in(run, 4)) {
        change->fields |= WAL_CHANGE_CWD;
        change->cwd = directory(run);
    }
    if (differential_one_in(run, 4)) {
        change->fields |= WAL_CHANGE_PROJECT;
        change->project = differential_text(run, "p%u", differential_random(run, 3));
    }
    if (differential_one_in(run, 3) && reference_session_status(run->ref, number, &now) == WAL_OK) {
        change->fields |= WAL_CHANGE_EXPECT;
        change->expected_version = now.info.metadata_version;
    }
}

/* --- operations whose entries the library makes up ------------------------ */

static const struct wal_slice nothing = {NULL, 0};

/* ------------------------------------------------- made by the library --- */

/* An entry of a session as the engine made it; its texts are copied. */
static struct wal_entry find_generated(struct differential *run, struct wal_session *session,
                                       const char *id)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_ENTRY_CURSOR_REDACTED};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &run->error);

    if (status == WAL_OK) {
        status = wal_entry_cursor_get(cursor, differential_slice(id), &entry, &run->error);
    }
    if (status != WAL_OK) {
        differential_fail(run, "reading what was made answers %d", status);
    }
    entry.id = differential_text(run, "%s", id);
    entry.type =
        differential_text(run, "%.*s", (int)entry.type.size, (const char *)entry.type.data);
    entry.payload =
        differential_text(run, "%.*s", (int)entry.payload.size, (const char *)entry.payload.data);
    entry.parent_id = nothing;
    entry.timestamp = nothing;
    entry.flags = 0;
    wal_entry_cursor_close(cursor);
    return entry;
}

/* Chooses a session and an entry of it, sometimes one that a reader is about to give. False: there
 * is no session. */
static bool choose_target(struct differential *run, struct differential_request *given,
                          struct wal_slice *target)
{
    const struct differential_readers *held = &run->readers;
    uint32_t left = held->cursor == NULL ? 0 : held->count - held->at;

    if (!differential_request_init(run, given)) {
        return false;
    }
    *target = differential_entry_id(run, given->number);
    if (left > 0 && differential_one_in(run, 2) && differential_handle(run, held->number) != NULL) {
        given->number = held->number;
        given->session = differential_handle(run, held->number);
        *target = held->entries[held->at + differential_random(run, left)].entry.id;
    }
    return true;
}

static bool is_redacted(struct differential *run, uint32_t number, struct wal_slice id)
{
    struct reference_entry entry;

    return id.size != 0 && reference_get(run->ref, number, id, 0, &entry) == WAL_EREDACTED;
}

void differential_redact(struct differential *run)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_slice reason = {NULL, 0};
    struct differential_request given;
    struct wal_slice target;
    enum wal_status status;

    if (!choose_target(run, &given, &target)) {
        return;
    }
    if (target.size == 0 || differential_one_in(run, 12)) {
        target = differential_slice("no entry");
    }
    if (differential_one_in(run, 2)) {
        reason = differential_text(run, "because \"%u\"", ++run->made);
    }
    if (differential_one_in(run, 20)) {
        reason = differential_random_bytes(run, 4097, 'r');
    }
    status = wal_session_redact(given.session, target, reason, &result, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK) {
        made = find_generated(run, given.session, result.last_id);
    }
    if (differential_compare_status(run, status,
                                    reference_redact(run->ref, given.number, target, reason, &made,
                                                     &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
        differential_check_get(run, given.number, target, WAL_ENTRY_CURSOR_REDACTED);
        differential_check_get(run, given.number, target, 0);
    }
    differential_check_session(run, given.number);
}

/* Mostly of an entry that is redacted. What was erased stays so. */
void differential_unredact(struct differential *run)
{
    struct differential_request given;
    struct wal_slice target;
    enum wal_status status;

    if (!choose_target(run, &given, &target)) {
        return;
    }
    for (uint32_t i = 0; i < 20 && !is_redacted(run, given.number, target); i++) {
        target = differential_entry_id(run, given.number);
    }
    if (target.size == 0 || differential_one_in(run, 12)) {
        target = differential_slice("no entry");
    }
    status = wal_session_unredact(given.session, target, &run->error);
    differential_enter_reference(run);
    if (is_redacted(run, given.number, target) &&
        ((status == WAL_EREDACTED && (run->has_erased || run->is_shared)) ||
         (status == WAL_ELOCKED && run->is_shared))) {
        return; /* another process compacts, or backs up */
    }
    if (differential_compare_status(
            run, status, reference_unredact(run->ref, given.number, target, &run->expected))) {
        differential_check_get(run, given.number, target, 0);
    }
    differential_check_session(run, given.number);
}

static void check_summary(struct differential *run, struct wal_slice payload,
                          struct wal_slice summary)
{
    struct wal_slice reported;

    if (!reference_member(payload, "summary", &reported)) {
        differential_fail(run, "a compaction says \"%.*s\"", (int)payload.size,
                          (const char *)payload.data);
    }
    differential_check_slice(run, "the summary", reported, summary);
    reference_free(reported);
}

void differential_compact(struct differential *run)
{
    struct wal_compact_options options = {.struct_size = sizeof(options)};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_append_result wanted = result;
    struct wal_entry made = {.struct_size = sizeof(made)};
    struct wal_session_options into;
    struct wal_session *fork = NULL;
    struct differential_request given;
    enum wal_status status;
    uint32_t number = 0;

    if (!differential_request_init(run, &given)) {
        return;
    }
    options.first_kept = differential_entry_id(run, given.number);
    if (options.first_kept.size == 0) {
        options.first_kept = differential_slice("no entry");
    }
    options.summary = differential_text(run, "so far \"%u\"\n", ++run->made);
    if (differential_one_in(run, 3)) {
        differential_session_options(run, &into);
        options.into = &into;
    }
    status = wal_session_compact(given.session, &options, &fork, &result, &run->error);
    differential_enter_reference(run);
    if (status == WAL_OK) {
        made = find_generated(run, options.into != NULL ? fork : given.session, result.last_id);
        check_summary(run, made.payload, options.summary);
    }
    if (differential_compare_status(run, status,
                                    reference_compact(run->ref, given.number, &options, &made,
                                                      &number, &wanted, &run->expected))) {
        differential_compare_result(run, &result, &wanted);
        if (options.into != NULL) {
            differential_set_handle(run, number, fork);
            differential_check_session(run, number);
        }
    }
    differential_check_session(run, given.number);
}
