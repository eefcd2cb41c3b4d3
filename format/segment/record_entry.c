/*
 * record_entry.c - encodes and decodes the payload of ENTRY, and the codes of
 * entry types (SPEC.md 2.6).
 *
 * Invariant: a decoder accepts a payload only if its sizes add up to the
 * payload's size, so the returned spans are inside the payload. Threads: any.
 */
#include "format/segment/record.h"

#include "format/bytes/bytes.h"
#include "format/segment/record_text.h"

enum {
    ENTRY_FORM = 0,
    ENTRY_ID_SIZE = 1,
    ENTRY_TYPE_SIZE = 2,
    ENTRY_TIME_SIZE = 3,
    ENTRY_RUN_SIZE = 4,
    ENTRY_ZERO = 5,
    ENTRY_META_SIZE = 8,
    ENTRY_PAYLOAD_SIZE = 12,
    ENTRY_TEXTS = 16
};

/* Fields before the excerpt of a payload stored as a blob. */
enum {
    OUT_DIGEST = 0,
    OUT_SIZE = 32,
    OUT_EXCERPT = 40
};

enum {
    FORM_OUT_OF_LINE = 2, /* combined with enum wal__entry_form */
    FORM_ERASED = 4,
    FORM_MAX = WAL__ENTRY_LINE | FORM_ERASED
};

WAL__FOLLOWS(ENTRY_ID_SIZE, ENTRY_FORM, 1);
WAL__FOLLOWS(ENTRY_TYPE_SIZE, ENTRY_ID_SIZE, 1);
WAL__FOLLOWS(ENTRY_TIME_SIZE, ENTRY_TYPE_SIZE, 1);
WAL__FOLLOWS(ENTRY_RUN_SIZE, ENTRY_TIME_SIZE, 1);
WAL__FOLLOWS(ENTRY_ZERO, ENTRY_RUN_SIZE, 1);
WAL__FOLLOWS(ENTRY_META_SIZE, ENTRY_ZERO, 3);
WAL__FOLLOWS(ENTRY_PAYLOAD_SIZE, ENTRY_META_SIZE, 4);
WAL__FOLLOWS(ENTRY_TEXTS, ENTRY_PAYLOAD_SIZE, 4);
WAL__FOLLOWS(WAL__ENTRY_ID_END, ENTRY_TEXTS, UINT8_MAX);
WAL__FOLLOWS(OUT_SIZE, OUT_DIGEST, 32);
WAL__FOLLOWS(OUT_EXCERPT, OUT_SIZE, 8);

/* Size of the fields before the payload or its excerpt. */
static size_t out_of_line_size(const struct wal__entry_record *entry)
{
    return entry->digest != NULL ? OUT_EXCERPT : 0;
}

size_t wal__entry_record_size(const struct wal__entry_record *entry)
{
    return ENTRY_TEXTS + entry->id.size + entry->type.size + entry->time.size +
           entry->run.size + entry->meta.size + out_of_line_size(entry) +
           entry->payload.size;
}

void wal__entry_record_encode(const struct wal__entry_record *entry,
                              uint8_t *out)
{
    uint8_t *at = out + ENTRY_TEXTS;

    WAL__ASSERT(entry->form <= WAL__ENTRY_LINE);
    WAL__ASSERT(!entry->is_erased ||
                (entry->digest == NULL && entry->meta.size == 0 &&
                 entry->payload.size <= WAL__ERASED_PAYLOAD_MAX));
    out[ENTRY_FORM] =
        (uint8_t)(entry->form | (entry->digest != NULL ? FORM_OUT_OF_LINE : 0) |
                  (entry->is_erased ? FORM_ERASED : 0));
    wal__put_text_size8(out + ENTRY_ID_SIZE, entry->id);
    wal__put_text_size8(out + ENTRY_TYPE_SIZE, entry->type);
    wal__put_text_size8(out + ENTRY_TIME_SIZE, entry->time);
    wal__put_text_size8(out + ENTRY_RUN_SIZE, entry->run);
    memset(out + ENTRY_ZERO, 0, ENTRY_META_SIZE - ENTRY_ZERO);
    wal__put_text_size32(out + ENTRY_META_SIZE, entry->meta);
    wal__put32(out + ENTRY_PAYLOAD_SIZE,
               (uint32_t)(out_of_line_size(entry) + entry->payload.size));
    at = wal__put_text(at, entry->id);
    at = wal__put_text(at, entry->type);
    at = wal__put_text(at, entry->time);
    at = wal__put_text(at, entry->run);
    at = wal__put_text(at, entry->meta);
    if (entry->digest != NULL) {
        memcpy(at + OUT_DIGEST, entry->digest, OUT_SIZE - OUT_DIGEST);
        wal__put64(at + OUT_SIZE, entry->payload_size);
        at += OUT_EXCERPT;
    }
    at = wal__put_text(at, entry->payload);
    WAL__ASSERT(at == out + wal__entry_record_size(entry));
}

/* Whether `payload` is a digest, a size in its range and an excerpt. */
static bool is_out_of_line(struct wal__span payload)
{
    uint64_t size;

    if (payload.size < OUT_EXCERPT ||
        payload.size > OUT_EXCERPT + WAL__EXCERPT_MAX) {
        return false;
    }
    size = wal__get64(payload.data + OUT_SIZE);
    return size > WAL__PAYLOAD_INLINE_MAX && size <= WAL__PAYLOAD_BLOB_MAX;
}

static void decode_payload(struct wal__span payload, bool out_of_line,
                           struct wal__entry_record *entry)
{
    entry->payload = payload;
    entry->digest = NULL;
    entry->payload_size = payload.size;
    if (out_of_line) {
        WAL__ASSERT(payload.size >= OUT_EXCERPT);
        entry->digest = payload.data + OUT_DIGEST;
        entry->payload_size = wal__get64(payload.data + OUT_SIZE);
        entry->payload.data += OUT_EXCERPT;
        entry->payload.size -= OUT_EXCERPT;
    }
}

/* Replay decodes every entry: one load for the small sizes, one test for the
 * ranges, one for the sum. */
enum wal__fmt wal__entry_record_decode(struct wal__span payload,
                                       struct wal__entry_record *entry)
{
    const uint8_t *at = payload.data;
    uint64_t small;
    uint64_t sum;
    uint32_t id_size, type_size, time_size, run_size, meta_size, payload_size;
    struct wal__span content;
    bool out_of_line;

    if (payload.size < ENTRY_TEXTS) {
        return WAL__FMT_SHORT;
    }
    small = wal__get64(at);
    id_size = (uint8_t)(small >> (8 * ENTRY_ID_SIZE));
    type_size = (uint8_t)(small >> (8 * ENTRY_TYPE_SIZE));
    time_size = (uint8_t)(small >> (8 * ENTRY_TIME_SIZE));
    run_size = (uint8_t)(small >> (8 * ENTRY_RUN_SIZE));
    meta_size = wal__get32(at + ENTRY_META_SIZE);
    payload_size = wal__get32(at + ENTRY_PAYLOAD_SIZE);
    sum = (uint64_t)ENTRY_TEXTS + id_size + type_size + time_size + run_size +
          meta_size + payload_size;
    if (((uint8_t)small > FORM_MAX) | (id_size == 0) |
        (time_size > WAL__TIME_MAX) | (small >> (8 * ENTRY_ZERO) != 0) |
        (payload_size > WAL__PAYLOAD_MAX) | (sum != payload.size)) {
        return WAL__FMT_FIELD;
    }
    content.data = at + payload.size - payload_size;
    content.size = payload_size;
    out_of_line = ((uint8_t)small & FORM_OUT_OF_LINE) != 0;
    entry->is_erased = ((uint8_t)small & FORM_ERASED) != 0;
    if ((out_of_line && !is_out_of_line(content)) ||
        (entry->is_erased &&
         (meta_size != 0 || payload_size > WAL__ERASED_PAYLOAD_MAX))) {
        return WAL__FMT_FIELD;
    }
    at += ENTRY_TEXTS;
    entry->form = (uint8_t)small & WAL__ENTRY_LINE;
    entry->id = wal__get_text(&at, id_size);
    entry->type = wal__get_text(&at, type_size);
    entry->time = wal__get_text(&at, time_size);
    entry->run = wal__get_text(&at, run_size);
    entry->meta = wal__get_text(&at, meta_size);
    WAL__ASSERT(at == content.data);
    decode_payload(content, out_of_line, entry);
    return WAL__FMT_OK;
}

void wal__entry_record_erase(struct wal__entry_record *entry)
{
    entry->is_erased = true;
    entry->digest = NULL;
    entry->meta.size = 0;
    entry->payload.size = 0;
    entry->payload_size = 0;
}

bool wal__entry_record_is_erased(struct wal__span first)
{
    return first.size > ENTRY_FORM && (first.data[ENTRY_FORM] & FORM_ERASED);
}

bool wal__entry_record_is_blob(struct wal__span first)
{
    return first.size > ENTRY_FORM &&
           (first.data[ENTRY_FORM] & FORM_OUT_OF_LINE) != 0;
}

bool wal__entry_record_id(struct wal__span first, struct wal__span *id)
{
    size_t size;

    if (first.size < ENTRY_TEXTS) {
        return false;
    }
    size = first.data[ENTRY_ID_SIZE];
    if (size == 0 || size > first.size - ENTRY_TEXTS) {
        return false;
    }
    id->data = first.data + ENTRY_TEXTS;
    id->size = size;
    return true;
}

/* Indexed by code. */
static const char *const kind_names[] = {
    "",
    "message",
    "session_header",
    "message_delta_batch",
    "model_change",
    "thinking_level_change",
    "runtime_init",
    "system_prompt_override",
    "compaction_summary",
    "branch_summary",
    "redaction",
    "custom",
    "compaction",
};

enum {
    KIND_COUNT = sizeof(kind_names) / sizeof(kind_names[0])
};

static_assert(KIND_COUNT == WAL__KIND_COMPACTION + 1, "SPEC.md 2.6, Kinds");

uint8_t wal__kind_from_name(struct wal__span type)
{
    for (unsigned kind = 1; kind < KIND_COUNT; kind++) {
        if (strlen(kind_names[kind]) == type.size &&
            memcmp(kind_names[kind], type.data, type.size) == 0) {
            return (uint8_t)kind;
        }
    }
    return WAL__KIND_NAMED;
}

struct wal__span wal__kind_name(uint8_t kind)
{
    const char *name = kind_names[kind < KIND_COUNT ? kind : WAL__KIND_NAMED];
    struct wal__span span = {(const uint8_t *)name, strlen(name)};

    return span;
}
