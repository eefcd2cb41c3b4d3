/*
 * ledger.c - see ledger.h.
 */
#include "tests/sim/ledger/ledger.h"

#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "format/bytes/assert.h"
#include "tests/lib/test.h"
#include "tests/sim/ledger/internal.h"

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

/* The text around the letters of a payload: of a JSON string, of an object, or of a line, which may
 * be anything. */
struct frame {
    char before[96];
    const char *after;
};

static void fill_frame(const struct ledger *ledger, const struct ledger_entry *entry,
                       struct frame *frame)
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
        (void)snprintf(frame->before, room, "{\"role\":\"user\",\"content\":\"");
        break;
    case LEDGER_DELTA:
        (void)snprintf(frame->before, room, "{\"delta\":\"");
        break;
    case LEDGER_COMPACTION:
        (void)snprintf(frame->before, room, "{\"firstKeptEntryId\":\"e%05u\",\"summary\":\"",
                       entry->target_entry);
        break;
    case LEDGER_BRANCH:
        (void)snprintf(frame->before, room,
                       "{\"sourceSessionId\":\"s%02u\","
                       "\"sourceEntryId\":\"e%05u\",\"summary\":\"",
                       ledger->entries[entry->target_entry].session, entry->target_entry);
        break;
    case LEDGER_REDACTION:
        (void)snprintf(frame->before, room, "{\"targetEntryId\":\"e%05u\",\"reason\":\"",
                       entry->target_entry);
        break;
    }
}

/* Letters that do not repeat for as long as a payload is. */
static const char *ledger_pattern(uint32_t seed)
{
    return pattern() + seed % PATTERN_SHIFT;
}

static uint8_t *frame_letters(const struct frame *frame, uint32_t seed, uint32_t size)
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

static bool is_framed(const struct frame *frame, uint32_t seed, uint32_t size, struct wal_slice got)
{
    const uint8_t *bytes = got.data;
    size_t before = strlen(frame->before);
    size_t after = strlen(frame->after);

    return got.size == size && memcmp(bytes, frame->before, before) == 0 &&
           memcmp(bytes + before, ledger_pattern(seed), size - before - after) == 0 &&
           memcmp(bytes + size - after, frame->after, after) == 0;
}

struct wal_slice ledger_slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
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

static void fill_texts(const struct ledger_entry *entry, uint32_t number, struct ledger_text *text)
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
        (void)snprintf(text->meta, sizeof(text->meta), "{\"n\":%u}", entry->seed % 1000);
    }
}

void ledger_fill_entry(const struct ledger *ledger, uint32_t entry, struct wal_entry *out,
                       struct ledger_text *text)
{
    const struct ledger_entry *recorded = &ledger->entries[entry];

    struct frame frame;

    fill_texts(recorded, entry, text);
    fill_frame(ledger, recorded, &frame);
    text->payload = frame_letters(&frame, recorded->seed, recorded->size);
    *out = (struct wal_entry){
        .struct_size = sizeof(*out),
        .flags =
            recorded->flags | (recorded->parent_kind == LEDGER_PARENT_NONE ? WAL_ENTRY_ROOT : 0u),
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

uint32_t ledger_add_batch(struct ledger *ledger, uint32_t session, uint32_t actor)
{
    uint32_t batch = ledger->batch_count;

    WAL__ASSERT(batch < LEDGER_BATCHES && actor < LEDGER_ACTORS);
    ledger->batch_count++;
    ledger->batches[batch] = (struct ledger_batch){.session = session,
                                                   .first = ledger->entry_count,
                                                   .first_part = ledger->part_count,
                                                   .actor = actor,
                                                   .begin = batch,
                                                   .end = batch};
    return batch;
}

uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor, uint32_t source, uint32_t at)
{
    uint32_t session = ledger->session_count;

    WAL__ASSERT(session < LEDGER_SESSIONS);
    ledger->session_count++;
    ledger->sessions[session] =
        (struct ledger_session){.at = at,
                                .source = source,
                                .drop = LEDGER_NONE,
                                .batch = ledger_add_batch(ledger, session, actor)};
    return session;
}

uint32_t ledger_add_entry(struct ledger *ledger, uint32_t batch, const struct ledger_entry *entry)
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
    memcpy(to->entries, from->entries, from->entry_count * sizeof(from->entries[0]));
    memcpy(to->batches, from->batches, from->batch_count * sizeof(from->batches[0]));
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
static bool is_redacted(const struct ledger *ledger, uint32_t number, const struct wal_entry *entry)
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
    (void)snprintf(frame.before, sizeof(frame.before), "{\"redactedBy\":\"e%05u\",\"reason\":\"",
                   by);
    return entry->meta.size == 0 &&
           is_framed(&frame, recorded->seed,
                     (uint32_t)(recorded->size + strlen(frame.before) - strlen(given.before)),
                     entry->payload);
}

uint32_t ledger_find_redaction(const struct ledger *ledger, const struct wal_entry *entry)
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
    return number != LEDGER_NONE && ledger->entries[number].kind == LEDGER_REDACTION ? number
                                                                                     : LEDGER_NONE;
}

uint32_t ledger_identify(const struct ledger *ledger, const struct wal_entry *entry, bool whole)
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
    if (entry->stream != recorded->stream || !is_text(entry->type, type_of(recorded)) ||
        !is_text(entry->timestamp, text.time) || !is_text(entry->run_id, text.run)) {
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

/* --- resolve -------------------------------------------------------------- */

/*
 * What a comparison comes to: batches are whole or not there, what was promised is there, and what
 * was found is settled.
 */

/* --- redactions --------------------------------------------------------- */

/* The first redaction of an entry that can be seen. */
static uint32_t first_redaction(const struct ledger_checker *checker, uint32_t target)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_view *view = checker->view;
    uint32_t first = LEDGER_NONE;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        if (ledger->entries[i].kind == LEDGER_REDACTION &&
            ledger->entries[i].target_entry == target && view->entries[i] &&
            (first == LEDGER_NONE || view->sequences[i] < view->sequences[first])) {
            first = i;
        }
    }
    return first;
}

/* Redactions hide, and nothing else does. */
static void ledger_check_redactions(const struct ledger_checker *checker)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_view *view = checker->view;

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        uint32_t by = view->redactions[i];
        uint32_t first;

        if (!view->entries[i]) {
            continue;
        }
        first = first_redaction(checker, i);
        if (by == LEDGER_NONE && first != LEDGER_NONE) {
            ledger_fail("entry %u is shown, though entry %u redacts it", i, first);
        }
        if (by == LEDGER_NONE || by == first) {
            continue;
        }
        if (view->entries[by] || !ledger_may_be_deleted(ledger, ledger->entries[by].session)) {
            ledger_fail("entry %u is redacted by entry %u, not by %d", i, by, (int)first);
        }
    }
}

/* --- batches ------------------------------------------------------------ */

static enum ledger_visibility session_visibility(const struct ledger *ledger,
                                                 const struct ledger_view *view, uint32_t session)
{
    if (view->sessions[session]) {
        return LEDGER_VISIBLE;
    }
    return ledger_may_be_deleted(ledger, session) ? LEDGER_UNKNOWN : LEDGER_ABSENT;
}

static enum ledger_visibility part_visibility(const struct ledger *ledger,
                                              const struct ledger_view *view, uint32_t number)
{
    const struct ledger_part *part = &ledger->parts[number];

    if (part->kind == LEDGER_MOVE_MAIN) {
        return LEDGER_UNKNOWN; /* the parents of entries show it */
    }
    if (part->kind == LEDGER_DELETE_SESSION) {
        return view->sessions[part->session] ? LEDGER_ABSENT : LEDGER_UNKNOWN;
    }
    if (part->session != LEDGER_NONE && !view->sessions[part->session]) {
        return session_visibility(ledger, view, part->session);
    }
    return view->parts[number];
}

/* The parts of a batch, counted by enum ledger_visibility. */
static void count_visible(const struct ledger *ledger, const struct ledger_view *view,
                          const struct ledger_batch *batch, uint32_t sights[3])
{
    enum ledger_visibility session = session_visibility(ledger, view, batch->session);

    sights[LEDGER_UNKNOWN] = 0;
    sights[LEDGER_VISIBLE] = 0;
    sights[LEDGER_ABSENT] = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        enum ledger_visibility sight =
            view->entries[batch->first + i] ? LEDGER_VISIBLE : LEDGER_ABSENT;

        sights[session == LEDGER_UNKNOWN ? LEDGER_UNKNOWN : sight]++;
    }
    for (uint32_t i = 0; i < batch->part_count; i++) {
        sights[part_visibility(ledger, view, batch->first_part + i)]++;
    }
    if (batch == &ledger->batches[ledger->sessions[batch->session].batch]) {
        sights[session]++;
    }
}

bool ledger_is_visible(const struct ledger *ledger, const struct ledger_view *view, uint32_t batch)
{
    uint32_t sights[3];

    count_visible(ledger, view, &ledger->batches[batch], sights);
    return sights[LEDGER_VISIBLE] != 0;
}

/* The acknowledgements before the read. */
static bool is_promised(const struct ledger_checker *checker, const struct ledger_batch *batch,
                        enum ledger_loss loss)
{
    const struct ledger_look *look = checker->look;
    enum ledger_state needed = loss == LEDGER_POWER_LOSS ? LEDGER_DURABLE : LEDGER_WRITTEN;

    if (look == NULL) {
        return batch->state >= needed;
    }
    if (look->lags) {
        return look->seen != NULL && !look->durable && look->seen[batch - checker->ledger->batches];
    }
    if (look->durable && batch->count > 0) {
        return batch->state == LEDGER_DURABLE && batch->durable_since <= look->since;
    }
    return batch->state >= LEDGER_WRITTEN && batch->known_since <= look->since;
}

/* The entries of a batch are there one after the other. */
static void check_adjacent(const struct ledger_view *view, const struct ledger_batch *batch)
{
    for (uint32_t i = batch->first + 1; i < batch->first + batch->count; i++) {
        if (view->entries[i - 1] && view->entries[i] &&
            view->sequences[i] != view->sequences[i - 1] + 1) {
            ledger_fail("entry %u does not follow the entry before it in its "
                        "batch",
                        i);
        }
    }
}

/* Whole or not at all; and what was promised. */
static void ledger_check_batches(const struct ledger_checker *checker, enum ledger_loss loss)
{
    const struct ledger *ledger = checker->ledger;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        if (checker->look != NULL && batch->session != checker->look->session) {
            continue;
        }
        check_adjacent(checker->view, batch);
        count_visible(ledger, checker->view, batch, sights);
        if (sights[LEDGER_VISIBLE] != 0 && sights[LEDGER_ABSENT] != 0) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u): %u are there, %u are not",
                        i, batch->session, batch->count, batch->first, batch->part_count,
                        batch->first_part, sights[LEDGER_VISIBLE], sights[LEDGER_ABSENT]);
        }
        if (sights[LEDGER_ABSENT] != 0 && is_promised(checker, batch, loss)) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was promised (state %d, durability %u) and "
                        "is lost",
                        i, batch->session, batch->count, batch->first, batch->part_count,
                        batch->first_part, batch->state, batch->durability);
        }
        if (sights[LEDGER_VISIBLE] != 0 && batch->state == LEDGER_REFUSED) {
            ledger_fail("batch %u (session %u, %u entries from %u, %u parts "
                        "from %u) was refused or dropped, and is there",
                        i, batch->session, batch->count, batch->first, batch->part_count,
                        batch->first_part);
        }
    }
}

/* A session that is not found, and may be deleted, must not reappear. */
static void resolve_session(struct ledger *ledger, uint32_t session, const struct ledger_view *view)
{
    struct ledger_session *recorded = &ledger->sessions[session];
    struct ledger_batch *drop;

    if (recorded->drop == LEDGER_NONE) {
        return;
    }
    drop = &ledger->batches[ledger->parts[recorded->drop].batch];
    if (view->sessions[session]) {
        drop->state = LEDGER_REFUSED;
    } else if (ledger_may_be_deleted(ledger, session)) {
        recorded->gone = true;
        drop->state = LEDGER_DURABLE;
    }
}

void ledger_resolve(struct ledger *ledger, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        uint32_t sights[3];

        count_visible(ledger, view, batch, sights);
        if (sights[LEDGER_VISIBLE] != 0) {
            batch->state = LEDGER_DURABLE;
        } else if (sights[LEDGER_ABSENT] != 0) {
            batch->state = LEDGER_REFUSED;
        }
    }
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        resolve_session(ledger, i, view);
    }
    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        ledger->blobs[i].state = view->blobs[i] ? LEDGER_DURABLE : LEDGER_REFUSED;
    }
}

/* --- look ----------------------------------------------------------------- */

/*
 * A comparison of the whole store, or of a session that others write to, with the ledger.
 */

/* The list names the sessions that were found, and no others. */
static void check_list(const struct ledger_checker *checker)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session_cursor *list = NULL;
    int64_t updated_ms = INT64_MAX;
    uint64_t sequence = UINT64_MAX;
    uint32_t listed = 0;
    uint32_t there = 0;
    enum wal_status status = wal_session_cursor_open(checker->store, NULL, &list, &error);

    for (uint32_t i = 0; i < checker->ledger->session_count; i++) {
        there += checker->view->sessions[i];
    }
    while (status == WAL_OK) {
        info.struct_size = sizeof(info);
        status = wal_session_cursor_next(list, &info, &error);
        if (status == WAL_OK) {
            /* A test may have sessions that the ledger does not know. */
            listed += ((const char *)info.id.data)[0] == 's';
            if (info.updated_ms > updated_ms ||
                (info.updated_ms == updated_ms && info.last_sequence >= sequence)) {
                ledger_fail("the list is not in order");
            }
            updated_ms = info.updated_ms;
            sequence = info.last_sequence;
        }
    }
    wal_session_cursor_close(list);
    if (status != WAL_END || listed != there) {
        ledger_fail("the list names %u sessions of %u: %d", listed, there, status);
    }
}

struct ledger_checker *ledger_checker_create(void)
{
    struct ledger_checker *checker = calloc(1, sizeof(*checker));

    WAL__ASSERT(checker != NULL);
    checker->view = calloc(1, sizeof(*checker->view));
    WAL__ASSERT(checker->view != NULL);
    return checker;
}

void ledger_checker_destroy(struct ledger_checker *checker)
{
    if (checker != NULL) {
        free(checker->view);
        free(checker);
    }
}

/* Forgets what was seen before. Others may add to the ledger meanwhile. */
static void begin_check(struct ledger_checker *checker, const struct ledger *ledger,
                        struct wal_store *store, const struct ledger_look *look)
{
    struct ledger_view *view = checker->view;

    checker->ledger = ledger;
    checker->store = store;
    checker->look = look;
    checker->refused = false;
    checker->session = look == NULL ? LEDGER_NONE : look->session;
    checker->handle = look == NULL ? NULL : look->handle;
    memset(view->entries, 0, sizeof(view->entries));
    memset(view->sessions, 0, sizeof(view->sessions));
    memset(view->blobs, 0, sizeof(view->blobs));
    memset(view->parts, 0, sizeof(view->parts));
    memset(view->versions, 0, sizeof(view->versions));
    view->digest = 0;
}

bool ledger_look(struct ledger_checker *checker, const struct ledger *ledger,
                 struct wal_store *store, const struct ledger_look *look,
                 const struct ledger_view **view)
{
    begin_check(checker, ledger, store, look);
    checker->view->sessions[look->session] = true;
    ledger_read_stream(checker, 0);
    if (!checker->refused) {
        ledger_check_documents(checker);
    }
    if (!checker->refused) {
        ledger_check_heads(checker);
    }
    if (checker->refused) {
        return false;
    }
    ledger_check_batches(checker, LEDGER_NO_LOSS);
    *view = checker->view;
    return true;
}

static void ledger_check_blobs(struct ledger_checker *checker, enum ledger_loss loss);

void ledger_check(const struct ledger *ledger, struct wal_store *store, enum ledger_loss loss,
                  struct ledger_view *view)
{
    static struct ledger_checker *checker;

    if (checker == NULL) {
        checker = ledger_checker_create();
    }
    begin_check(checker, ledger, store, NULL);
    ledger_check_documents(checker);
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        checker->session = i;
        ledger_read_session(checker);
    }
    check_list(checker);
    ledger_check_blobs(checker, loss);
    ledger_check_redactions(checker);
    ledger_check_batches(checker, loss);
    if (view != NULL) {
        *view = *checker->view;
    }
}

/* --- digest --------------------------------------------------------------- */

/*
 * A digest of the records of a session other than its entries, in a store that may be damaged.
 */

static void mix(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * 0x9e3779b97f4a7c15u;
    *digest ^= *digest >> 29;
}

static void mix_text(uint64_t *digest, struct wal_slice text)
{
    const uint8_t *bytes = text.data;

    mix(digest, text.size);
    for (uint64_t i = 0; i < text.size; i++) {
        mix(digest, bytes[i]);
    }
}

static void note_error(enum wal_status status, const struct wal_error *error, uint32_t *errors)
{
    if (status == WAL_END) {
        return;
    }
    if (status != WAL_ECORRUPT) {
        ledger_fail("reading documents, heads or metadata answers %d: %s (%s)", status, error->text,
                    error->file);
    }
    (*errors)++;
}

static void add_documents(struct wal_store *store, struct wal_session *session, uint64_t *digest,
                          uint32_t *errors)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status = wal_doc_cursor_open(store, session, &options, &docs, &error);

    while (status == WAL_OK) {
        status = wal_doc_cursor_next(docs, &doc, &error);
        if (status == WAL_OK) {
            mix(digest, doc.version);
            mix(digest, doc.flags);
            mix_text(digest, doc.key);
            mix_text(digest, doc.value);
        }
    }
    wal_doc_cursor_close(docs);
    note_error(status, &error, errors);
}

static void add_heads(struct wal_session *session, uint64_t *digest, uint32_t *errors)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads = NULL;
    enum wal_status status = wal_head_cursor_open(session, &heads, &error);

    while (status == WAL_OK) {
        status = wal_head_cursor_next(heads, &head, &error);
        if (status == WAL_OK) {
            mix(digest, head.stream);
            mix(digest, head.version);
            mix_text(digest, head.name);
            mix_text(digest, head.entry_id);
            mix_text(digest, head.note);
        }
    }
    wal_head_cursor_close(heads);
    note_error(status, &error, errors);
}

uint64_t ledger_digest_parts(struct wal_store *store, struct wal_session *session, uint32_t *errors)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint64_t digest = 0;
    enum wal_status status;

    add_documents(store, session, &digest, errors);
    if (session == NULL) {
        return digest;
    }
    add_heads(session, &digest, errors);
    status = wal_session_get_info(session, &info, &error);
    if (status != WAL_OK) {
        note_error(status, &error, errors);
        return digest;
    }
    mix_text(&digest, info.metadata);
    mix_text(&digest, info.title);
    mix_text(&digest, info.cwd);
    mix_text(&digest, info.first_text);
    mix(&digest, info.metadata_version);
    mix(&digest, (uint64_t)info.created_ms);
    return digest;
}

/* --- content in the ledger, and what a store has of it -------------------- */

/* Letters, and one place in the middle that the edit changes. */
uint8_t *ledger_blob_bytes(const struct ledger_blob *blob)
{
    uint8_t *bytes = malloc((size_t)blob->size + 1);

    WAL__ASSERT(bytes != NULL && blob->size <= LEDGER_PAYLOAD_MAX);
    memcpy(bytes, ledger_pattern(blob->seed), blob->size);
    if (blob->size > 8) {
        memcpy(bytes + blob->size / 2, &blob->edit, sizeof(blob->edit));
    }
    return bytes;
}

uint32_t ledger_add_blob(struct ledger *ledger, uint32_t seed, uint32_t size, uint32_t edit)
{
    uint32_t number = ledger->blob_count;
    struct ledger_blob *blob = &ledger->blobs[number];
    uint8_t *bytes;

    WAL__ASSERT(number < LEDGER_BLOBS);
    *blob = (struct ledger_blob){.seed = seed, .size = size, .edit = edit, .state = LEDGER_OPEN};
    bytes = ledger_blob_bytes(blob);
    WAL__ASSERT(EVP_Digest(bytes, size, blob->digest, NULL, EVP_sha256(), NULL) == 1);
    free(bytes);
    for (uint32_t i = 0; i < number; i++) {
        if (memcmp(ledger->blobs[i].digest, blob->digest, WAL_DIGEST_SIZE) == 0) {
            return i;
        }
    }
    ledger->blob_count++;
    return number;
}

/* Reads one that could be opened. */
static enum wal_status compare(const struct ledger_blob *recorded, uint32_t number,
                               struct wal_blob *blob, struct wal_error *error)
{
    uint8_t *expected = ledger_blob_bytes(recorded);
    uint8_t *bytes = malloc((size_t)recorded->size + 1);
    enum wal_status status;
    uint64_t got = 0;

    WAL__ASSERT(bytes != NULL);
    if (wal_blob_size(blob) != recorded->size) {
        ledger_fail("blob %u has %llu bytes, not %u", number,
                    (unsigned long long)wal_blob_size(blob), recorded->size);
    }
    status = wal_blob_read(blob, 0, bytes, (uint64_t)recorded->size + 1, &got, error);
    if (status == WAL_OK &&
        (got != recorded->size || memcmp(bytes, expected, recorded->size) != 0)) {
        ledger_fail("blob %u is not what was put", number);
    }
    free(bytes);
    free(expected);
    return status;
}

enum wal_status ledger_read_blob(const struct ledger *ledger, struct wal_store *store,
                                 uint32_t number, struct wal_error *error)
{
    const struct ledger_blob *recorded = &ledger->blobs[number];
    struct wal_blob *blob = NULL;
    enum wal_status status = wal_blob_open(store, recorded->digest, &blob, error);

    if (status == WAL_OK) {
        status = compare(recorded, number, blob, error);
        wal_blob_close(blob);
    }
    return status;
}

/* Every content is there that was promised, byte for byte. */
static void ledger_check_blobs(struct ledger_checker *checker, enum ledger_loss loss)
{
    const struct ledger *ledger = checker->ledger;
    enum ledger_state needed = loss == LEDGER_POWER_LOSS ? LEDGER_DURABLE : LEDGER_WRITTEN;

    for (uint32_t i = 0; i < ledger->blob_count; i++) {
        const struct ledger_blob *recorded = &ledger->blobs[i];
        struct wal_error error = {.struct_size = sizeof(error)};
        enum wal_status status = ledger_read_blob(ledger, checker->store, i, &error);

        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            ledger_fail("blob %u cannot be read: %d %s (%s at %llu)", i, status, error.text,
                        error.file, (unsigned long long)error.offset);
        }
        if (status == WAL_ENOTFOUND && recorded->state >= needed) {
            ledger_fail("blob %u (%u bytes, state %d) was promised and is lost", i, recorded->size,
                        recorded->state);
        }
        if (status == WAL_OK && recorded->state == LEDGER_REFUSED) {
            ledger_fail("blob %u was not there, and is", i);
        }
        if (status == WAL_OK) {
            checker->view->blobs[i] = true;
            ledger_mix(checker, i);
        }
    }
}

/* --- parts ---------------------------------------------------------------- */

/*
 * The parts of batches that are no entries: documents, heads, changes, deletions; as they are
 * submitted, and as they are identified when they are read.
 */

static const char title_letter = 't';

uint32_t ledger_add_part(struct ledger *ledger, uint32_t batch, const struct ledger_part *part)
{
    uint32_t number = ledger->part_count;

    WAL__ASSERT(number < LEDGER_PARTS && batch + 1 == ledger->batch_count);
    ledger->part_count++;
    ledger->parts[number] = *part;
    ledger->parts[number].batch = batch;
    ledger->batches[batch].part_count++;
    if (part->kind == LEDGER_DELETE_SESSION) {
        ledger->sessions[part->session].drop = number;
    }
    return number;
}

/* --- as it is handed in ------------------------------------------------- */

void ledger_key(uint32_t key, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "k%u", key);
}

static void name_text(uint32_t key, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "head-%u", key);
}

static void part_text(char letter, uint32_t part, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "%c%05u", letter, part);
}

/* {"part":"pNNNNN","pad":"xxx..."} */
static uint8_t *fill_value(uint32_t part, uint32_t size)
{
    static const char after[] = "\"}";
    uint8_t *bytes = malloc(size);
    char before[48];
    int length = snprintf(before, sizeof(before), "{\"part\":\"p%05u\",\"pad\":\"", part);

    WAL__ASSERT(bytes != NULL && length > 0 && size > (uint32_t)length + 2);
    memset(bytes, 'a' + (int)(part % 26), size);
    memcpy(bytes, before, (size_t)length);
    memcpy(bytes + size - 2, after, 2);
    return bytes;
}

void ledger_fill_document(const struct ledger *ledger, uint32_t part, struct wal_doc *out,
                          struct ledger_text *text)
{
    const struct ledger_part *recorded = &ledger->parts[part];

    memset(text, 0, sizeof(*text));
    ledger_key(recorded->key, text->id);
    *out = (struct wal_doc){.struct_size = sizeof(*out), .key = ledger_slice(text->id)};
    if (recorded->session == LEDGER_NONE) {
        out->flags |= WAL_DOC_STORE;
    }
    if (recorded->kind == LEDGER_DELETE_DOC) {
        out->flags |= WAL_DOC_DELETE;
        return;
    }
    text->payload = fill_value(part, recorded->size);
    out->value = (struct wal_slice){text->payload, recorded->size};
}

void ledger_fill_head(const struct ledger *ledger, uint32_t part, struct wal_head *out,
                      struct ledger_text *text)
{
    const struct ledger_part *recorded = &ledger->parts[part];

    memset(text, 0, sizeof(*text));
    if (recorded->kind != LEDGER_MOVE_MAIN) {
        name_text(recorded->key, text->id);
    }
    if (recorded->target != LEDGER_NONE) {
        ledger_entry_id(recorded->target, text->parent);
    }
    part_text('p', part, text->run);
    *out = (struct wal_head){.struct_size = sizeof(*out),
                             .name = ledger_slice(text->id),
                             .entry_id = ledger_slice(text->parent),
                             .note = ledger_slice(text->run)};
    out->stream =
        recorded->kind == LEDGER_MOVE_MAIN ? recorded->key : recorded->key == LEDGER_HEADS_MAX - 1;
}

void ledger_fill_change(uint32_t part, struct wal_session_change *out, struct ledger_text *text)
{
    memset(text, 0, sizeof(*text));
    (void)snprintf(text->meta, sizeof(text->meta), "{\"part\":\"p%05u\"}", part);
    part_text(title_letter, part, text->run);
    *out = (struct wal_session_change){
        .struct_size = sizeof(*out),
        .fields = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD,
        .metadata = ledger_slice(text->meta),
        .title = ledger_slice(text->run),
        .cwd = ledger_slice(part % 2 == 0 ? "/work/a" : "/work/moved")};
}

/* --- identification ----------------------------------------------------- */

/* The number after a letter, or LEDGER_NONE. */
static uint32_t number_of(const struct ledger *ledger, const char *text, char letter)
{
    char again[LEDGER_TEXT];
    unsigned long number = strtoul(text + 1, NULL, 10);

    if (number >= ledger->part_count) {
        return LEDGER_NONE;
    }
    part_text(letter, (uint32_t)number, again);
    return strncmp(text, again, 6) == 0 ? (uint32_t)number : LEDGER_NONE;
}

/* The six letters at this place of a slice that is at least so long. */
static uint32_t parse_part(const struct ledger *ledger, struct wal_slice slice, size_t offset,
                           char letter)
{
    char text[8] = {0};

    if (slice.size < offset + 6) {
        return LEDGER_NONE;
    }
    memcpy(text, (const char *)slice.data + offset, 6);
    return number_of(ledger, text, letter);
}

uint32_t ledger_find_document(const struct ledger *ledger, const struct wal_doc *doc)
{
    uint32_t part = parse_part(ledger, doc->value, 9, 'p');
    char key[LEDGER_TEXT];
    uint8_t *bytes;
    bool same;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_PUT_DOC ||
        ledger->parts[part].size != doc->value.size) {
        return LEDGER_NONE;
    }
    ledger_key(ledger->parts[part].key, key);
    bytes = fill_value(part, ledger->parts[part].size);
    same = memcmp(bytes, doc->value.data, doc->value.size) == 0 && is_text(doc->key, key);
    free(bytes);
    return same ? part : LEDGER_NONE;
}

uint32_t ledger_find_head(const struct ledger *ledger, const struct wal_head *head)
{
    uint32_t part = parse_part(ledger, head->note, 0, 'p');
    struct ledger_text text;
    struct wal_head recorded;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_MOVE_HEAD) {
        return LEDGER_NONE;
    }
    ledger_fill_head(ledger, part, &recorded, &text);
    return is_text(head->name, text.id) && is_text(head->entry_id, text.parent) &&
                   is_text(head->note, text.run) && head->stream == recorded.stream
               ? part
               : LEDGER_NONE;
}

uint32_t ledger_find_update(const struct ledger *ledger, const struct wal_session_info *info)
{
    uint32_t part = parse_part(ledger, info->metadata, 9, 'p');
    struct wal_session_change recorded;
    struct ledger_text text;

    if (part == LEDGER_NONE || ledger->parts[part].kind != LEDGER_UPDATE) {
        return LEDGER_NONE;
    }
    ledger_fill_change(part, &recorded, &text);
    return is_text(info->metadata, text.meta) && is_text(info->title, text.run) &&
                   is_text(info->cwd, recorded.cwd.data)
               ? part
               : LEDGER_NONE;
}

bool ledger_may_be_deleted(const struct ledger *ledger, uint32_t session)
{
    const struct ledger_session *recorded = &ledger->sessions[session];

    return recorded->gone ||
           (recorded->drop != LEDGER_NONE &&
            ledger->batches[ledger->parts[recorded->drop].batch].state != LEDGER_REFUSED);
}

bool ledger_descends(const struct ledger *ledger, uint32_t session, uint32_t from)
{
    while (session != LEDGER_NONE && session != from) {
        session = ledger->sessions[session].source;
    }
    return session == from;
}
