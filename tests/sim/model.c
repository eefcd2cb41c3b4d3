/*
 * model.c - see model.h.
 */
#include "tests/sim/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/assert.h"

enum {
    PATTERN_SHIFT = 65521,
    PATTERN_SIZE = LEDGER_PAYLOAD_MAX + PATTERN_SHIFT,
    SAID_SIZE = 512
};

static char said[SAID_SIZE];

void ledger_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(said, sizeof(said), format, args);
    va_end(args);
}

void ledger_fail(const char *format, ...)
{
    char text[SAID_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
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

/* A payload is a JSON string, or for a line anything. */
static uint8_t *make_payload(const struct ledger_entry *entry)
{
    uint8_t *bytes = malloc(entry->size);
    bool line = (entry->flags & WAL_ENTRY_LINE) != 0;

    WAL__ASSERT(bytes != NULL && entry->size >= 2);
    memcpy(bytes, pattern() + entry->seed % PATTERN_SHIFT, entry->size);
    bytes[0] = line ? 0xff : '"';
    bytes[entry->size - 1] = line ? '\n' : '"';
    return bytes;
}

static bool is_payload(const struct ledger_entry *entry, struct wal_slice got)
{
    const uint8_t *bytes = got.data;
    bool line = (entry->flags & WAL_ENTRY_LINE) != 0;

    return got.size == entry->size && bytes[0] == (line ? 0xff : '"') &&
           bytes[got.size - 1] == (line ? '\n' : '"') &&
           memcmp(bytes + 1, pattern() + entry->seed % PATTERN_SHIFT + 1,
                  entry->size - 2) == 0;
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
    (void)snprintf(out, LEDGER_TEXT, "e%05u", entry);
}

void ledger_session_id(uint32_t session, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "s%02u", session);
}

static const char *type_of(uint32_t seed)
{
    return seed % 3 == 0 ? "note.of.a.kind" : "message";
}

static void fill_texts(const struct ledger_entry *entry, uint32_t number,
                       struct ledger_text *text)
{
    memset(text, 0, sizeof(*text));
    ledger_entry_id(number, text->id);
    if (entry->parent_kind == LEDGER_NAMED) {
        ledger_entry_id(entry->parent, text->parent);
    }
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
    const struct ledger_entry *told = &ledger->entries[entry];

    fill_texts(told, entry, text);
    text->payload = make_payload(told);
    *out = (struct wal_entry){
        .struct_size = sizeof(*out),
        .flags = told->flags |
                 (told->parent_kind == LEDGER_ROOT ? WAL_ENTRY_ROOT : 0u),
        .stream = told->stream,
        .id = ledger_slice(text->id),
        .parent_id = ledger_slice(text->parent),
        .type = ledger_slice(type_of(told->seed)),
        .timestamp = ledger_slice("2026-01-01T00:00:00Z"),
        .run_id = ledger_slice(text->run),
        .payload = {text->payload, told->size},
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
    ledger->batches[batch] = (struct ledger_batch){
        .session = session, .first = ledger->entry_count, .actor = actor};
    return batch;
}

uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor, uint32_t at)
{
    uint32_t session = ledger->session_count;

    WAL__ASSERT(session < LEDGER_SESSIONS);
    ledger->session_count++;
    ledger->sessions[session].at = at;
    ledger->sessions[session].batch = ledger_add_batch(ledger, session, actor);
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

/* ------------------------------------------------------- identifying --- */

uint32_t ledger_entry_of(const struct ledger *ledger, struct wal_slice id)
{
    char text[LEDGER_TEXT] = {0};
    char again[LEDGER_TEXT];
    unsigned long number;

    if (id.size == 0 || id.size >= sizeof(text)) {
        return LEDGER_NONE;
    }
    memcpy(text, id.data, id.size);
    number = strtoul(text + 1, NULL, 10);
    if (number >= ledger->entry_count) {
        return LEDGER_NONE;
    }
    ledger_entry_id((uint32_t)number, again);
    return strcmp(text, again) == 0 ? (uint32_t)number : LEDGER_NONE;
}

uint32_t ledger_identify(const struct ledger *ledger,
                         const struct wal_entry *entry, bool whole)
{
    uint32_t number = ledger_entry_of(ledger, entry->id);
    const struct ledger_entry *told = &ledger->entries[number];
    struct ledger_text text;

    if (number == LEDGER_NONE || !whole) {
        return number;
    }
    fill_texts(told, number, &text);
    if (entry->stream != told->stream ||
        ((entry->flags ^ told->flags) & WAL_ENTRY_LINE) != 0 ||
        !is_text(entry->type, type_of(told->seed)) ||
        !is_text(entry->timestamp, "2026-01-01T00:00:00Z") ||
        !is_text(entry->run_id, text.run) || !is_text(entry->meta, text.meta) ||
        !is_payload(told, entry->payload)) {
        return LEDGER_NONE;
    }
    return number;
}

void ledger_settle(struct ledger *ledger, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        bool there = batch->count == 0 ? view->sessions[batch->session]
                                       : view->entries[batch->first];

        batch->state = there ? LEDGER_DURABLE : LEDGER_REFUSED;
    }
}
