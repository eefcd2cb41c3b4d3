/*
 * ledger.c - see ledger.h.
 */
#include "tests/sim/ledger/internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/lib/test.h"

enum {
    PATTERN_SHIFT = 65521,
    PATTERN_SIZE = LEDGER_PAYLOAD_MAX + PATTERN_SHIFT,
    SAID_SIZE = 512,
    ID_SIZE = 6 /* of an entry: a letter and digits */
};

static char said[SAID_SIZE];
static void (*on_failure)(void *ctx, const char *text);
static void *on_failure_ctx;

void ledger_set_context(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(said, sizeof(said), format, args);
    va_end(args);
}

void ledger_on_failure(void (*fn)(void *ctx, const char *text), void *ctx)
{
    on_failure = fn;
    on_failure_ctx = ctx;
}

void ledger_fail(const char *format, ...)
{
    char text[SAID_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (on_failure != NULL) {
        on_failure(on_failure_ctx, text);
    }
    print_error("[%s]\n  %s\n", said, text);
    fail();
    abort();
}

/* ----------------------------------------------------------- content --- */

/* Letters that do not repeat for as long as a payload is. */
static const char *pattern(void)
{
    static char *bytes;
    uint64_t state = 1;

    if (bytes != NULL) {
        return bytes;
    }
    bytes = malloc(PATTERN_SIZE);
    WAL__ASSERT(bytes != NULL);
    for (size_t i = 0; i < PATTERN_SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = "abcdefghijklmnopqrstuvwxyz012345"[state >> 59];
    }
    return bytes;
}

/* The text around the letters of a payload: of a JSON string, of an object, or
 * of a line, which may be anything. */
struct frame {
    char before[96];
    const char *after;
};

static void fill_frame(const struct ledger *ledger,
                       const struct ledger_entry *entry, struct frame *frame)
{
    bool line = (entry->flags & WAL_ENTRY_LINE) != 0;
    size_t room = sizeof(frame->before);

    frame->after = "\"}";
    switch (entry->kind) {
    case LEDGER_PLAIN:
        memcpy(frame->before, line ? "\xff" : "\"", 2);
        frame->after = line ? "\n" : "\"";
        break;
    case LEDGER_USER:
        (void)snprintf(frame->before, room,
                       "{\"role\":\"user\",\"content\":\"");
        break;
    case LEDGER_DELTA:
        (void)snprintf(frame->before, room, "{\"delta\":\"");
        break;
    case LEDGER_COMPACTION:
        (void)snprintf(frame->before, room,
                       "{\"firstKeptEntryId\":\"e%05u\",\"summary\":\"",
                       entry->target_entry);
        break;
    case LEDGER_BRANCH:
        (void)snprintf(frame->before, room,
                       "{\"sourceSessionId\":\"s%02u\","
                       "\"sourceEntryId\":\"e%05u\",\"summary\":\"",
                       ledger->entries[entry->target_entry].session,
                       entry->target_entry);
        break;
    case LEDGER_REDACTION:
        (void)snprintf(frame->before, room,
                       "{\"targetEntryId\":\"e%05u\",\"reason\":\"",
                       entry->target_entry);
        break;
    }
}

const char *ledger_pattern(uint32_t seed)
{
    return pattern() + seed % PATTERN_SHIFT;
}

static uint8_t *frame_letters(const struct frame *frame, uint32_t seed,
                              uint32_t size)
{
    uint8_t *bytes = malloc(size);
    size_t before = strlen(frame->before);
    size_t after = strlen(frame->after);

    WAL__ASSERT(bytes != NULL && size >= before + after);
    memcpy(bytes, frame->before, before);
    memcpy(bytes + before, ledger_pattern(seed), size - before - after);
    memcpy(bytes + size - after, frame->after, after);
    return bytes;
}

static bool is_framed(const struct frame *frame, uint32_t seed, uint32_t size,
                      struct wal_slice got)
{
    const uint8_t *bytes = got.data;
    size_t before = strlen(frame->before);
    size_t after = strlen(frame->after);

    return got.size == size && memcmp(bytes, frame->before, before) == 0 &&
           memcmp(bytes + before, ledger_pattern(seed),
                  size - before - after) == 0 &&
           memcmp(bytes + size - after, frame->after, after) == 0;
}

struct wal_slice ledger_slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           memcmp(slice.data, text, slice.size) == 0;
}

void ledger_entry_id(uint32_t entry, char out[LEDGER_TEXT])
{
    memset(out, 0, LEDGER_TEXT);
    out[0] = 'e';
    for (size_t i = ID_SIZE - 1; i > 0; i--) {
        out[i] = (char)('0' + entry % 10);
        entry /= 10;
    }
}

void ledger_session_id(uint32_t session, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "s%02u", session);
}

static const char *type_of(const struct ledger_entry *entry)
{
    switch (entry->kind) {
    case LEDGER_DELTA:
        return "message_delta_batch";
    case LEDGER_COMPACTION:
        return "compaction_summary";
    case LEDGER_BRANCH:
        return "branch_summary";
    case LEDGER_REDACTION:
        return "redaction";
    case LEDGER_PLAIN:
        return entry->seed % 3 == 0 ? "note.of.a.kind" : "message";
    case LEDGER_USER:
        break;
    }
    return "message";
}

static void fill_texts(const struct ledger_entry *entry, uint32_t number,
                       struct ledger_text *text)
{
    memset(text, 0, sizeof(*text));
    ledger_entry_id(number, text->id);
    if (entry->parent_kind == LEDGER_PARENT_ENTRY) {
        ledger_entry_id(entry->parent, text->parent);
    }
    /* Neither in the order of the log, nor all different. */
    (void)snprintf(text->time, sizeof(text->time), "20%02u-01-01T00:00:%02uZ",
                   entry->seed % 4 == 0 ? 99 : 23, entry->seed % 10);
    if (entry->seed % 2 == 0) {
        (void)snprintf(text->run, sizeof(text->run), "run-%u", entry->seed % 7);
    }
    if (entry->seed % 5 == 0) {
        (void)snprintf(text->meta, sizeof(text->meta), "{\"n\":%u}",
                       entry->seed % 1000);
    }
}

void ledger_fill_entry(const struct ledger *ledger, uint32_t entry,
                       struct wal_entry *out, struct ledger_text *text)
{
    const struct ledger_entry *recorded = &ledger->entries[entry];

    struct frame frame;

    fill_texts(recorded, entry, text);
    fill_frame(ledger, recorded, &frame);
    text->payload = frame_letters(&frame, recorded->seed, recorded->size);
    *out = (struct wal_entry){
        .struct_size = sizeof(*out),
        .flags =
            recorded->flags |
            (recorded->parent_kind == LEDGER_PARENT_NONE ? WAL_ENTRY_ROOT : 0u),
        .stream = recorded->stream,
        .id = ledger_slice(text->id),
        .parent_id = ledger_slice(text->parent),
        .type = ledger_slice(type_of(recorded)),
        .timestamp = ledger_slice(text->time),
        .run_id = ledger_slice(text->run),
        .payload = {text->payload, recorded->size},
        .meta = ledger_slice(text->meta),
    };
}

void ledger_free_text(struct ledger_text *text)
{
    free(text->payload);
    text->payload = NULL;
}

/* ------------------------------------------------------------ adding --- */

uint32_t ledger_add_batch(struct ledger *ledger, uint32_t session,
                          uint32_t actor)
{
    uint32_t batch = ledger->batch_count;

    WAL__ASSERT(batch < LEDGER_BATCHES && actor < LEDGER_ACTORS);
    ledger->batch_count++;
    ledger->batches[batch] =
        (struct ledger_batch){.session = session,
                              .first = ledger->entry_count,
                              .first_part = ledger->part_count,
                              .actor = actor,
                              .begin = batch,
                              .end = batch};
    return batch;
}

uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor,
                            uint32_t source, uint32_t at)
{
    uint32_t session = ledger->session_count;

    WAL__ASSERT(session < LEDGER_SESSIONS);
    ledger->session_count++;
    ledger->sessions[session] = (struct ledger_session){
        .at = at,
        .source = source,
        .drop = LEDGER_NONE,
        .batch = ledger_add_batch(ledger, session, actor)};
    return session;
}

uint32_t ledger_add_entry(struct ledger *ledger, uint32_t batch,
                          const struct ledger_entry *entry)
{
    uint32_t number = ledger->entry_count;

    WAL__ASSERT(number < LEDGER_ENTRIES && batch + 1 == ledger->batch_count);
    ledger->entry_count++;
    ledger->entries[number] = *entry;
    ledger->entries[number].batch = batch;
    ledger->entries[number].session = ledger->batches[batch].session;
    ledger->batches[batch].count++;
    return number;
}

void ledger_copy(struct ledger *to, const struct ledger *from)
{
    to->entry_count = from->entry_count;
    to->batch_count = from->batch_count;
    to->part_count = from->part_count;
    to->session_count = from->session_count;
    to->blob_count = from->blob_count;
    to->counts = from->counts;
    memcpy(to->entries, from->entries,
           from->entry_count * sizeof(from->entries[0]));
    memcpy(to->batches, from->batches,
           from->batch_count * sizeof(from->batches[0]));
    memcpy(to->parts, from->parts, from->part_count * sizeof(from->parts[0]));
    memcpy(to->blobs, from->blobs, from->blob_count * sizeof(from->blobs[0]));
    memcpy(to->sessions, from->sessions, sizeof(from->sessions));
}

/* ------------------------------------------------------- identifying --- */

uint32_t ledger_find_entry(const struct ledger *ledger, struct wal_slice id)
{
    const char *text = id.data;
    uint32_t number = 0;

    if (id.size != ID_SIZE || text[0] != 'e') {
        return LEDGER_NONE;
    }
    for (size_t i = 1; i < ID_SIZE; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return LEDGER_NONE;
        }
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number < ledger->entry_count ? number : LEDGER_NONE;
}

/* Whether the entry has the content that replaces a redacted entry's. */
static bool is_redacted(const struct ledger *ledger, uint32_t number,
                        const struct wal_entry *entry)
{
    uint32_t by = ledger_find_redaction(ledger, entry);
    struct frame frame = {.after = "\"}"};
    struct frame given;
    const struct ledger_entry *recorded;

    if (by == LEDGER_NONE || ledger->entries[by].target_entry != number) {
        return false;
    }
    recorded = &ledger->entries[by];
    fill_frame(ledger, recorded, &given);
    (void)snprintf(frame.before, sizeof(frame.before),
                   "{\"redactedBy\":\"e%05u\",\"reason\":\"", by);
    return entry->meta.size == 0 &&
           is_framed(&frame, recorded->seed,
                     (uint32_t)(recorded->size + strlen(frame.before) -
                                strlen(given.before)),
                     entry->payload);
}

uint32_t ledger_find_redaction(const struct ledger *ledger,
                               const struct wal_entry *entry)
{
    static const char before[] = "{\"redactedBy\":\"";
    const char *bytes = entry->payload.data;
    struct wal_slice id = {bytes + sizeof(before) - 1, 6};
    uint32_t number;

    if (entry->payload.size < sizeof(before) + 6 ||
        memcmp(bytes, before, sizeof(before) - 1) != 0) {
        return LEDGER_NONE;
    }
    number = ledger_find_entry(ledger, id);
    return number != LEDGER_NONE &&
                   ledger->entries[number].kind == LEDGER_REDACTION
               ? number
               : LEDGER_NONE;
}

uint32_t ledger_identify(const struct ledger *ledger,
                         const struct wal_entry *entry, bool whole)
{
    uint32_t number = ledger_find_entry(ledger, entry->id);
    const struct ledger_entry *recorded = &ledger->entries[number];
    struct ledger_text text;
    struct frame frame;

    if (number == LEDGER_NONE || !whole) {
        return number;
    }
    fill_texts(recorded, number, &text);
    fill_frame(ledger, recorded, &frame);
    if (entry->stream != recorded->stream ||
        !is_text(entry->type, type_of(recorded)) ||
        !is_text(entry->timestamp, text.time) ||
        !is_text(entry->run_id, text.run)) {
        return LEDGER_NONE;
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        return is_redacted(ledger, number, entry) ? number : LEDGER_NONE;
    }
    if (((entry->flags ^ recorded->flags) & WAL_ENTRY_LINE) != 0 ||
        !is_text(entry->meta, text.meta) ||
        !is_framed(&frame, recorded->seed, recorded->size, entry->payload)) {
        return LEDGER_NONE;
    }
    return number;
}
