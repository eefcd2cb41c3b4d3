/*
 * payload.c - storing and loading out-of-line payloads (payload.h, SPEC.md 2.6,
 * 5.16).
 *
 * Invariant: an excerpt depends only on the payload, its form and its type; a member or the first
 * text read from the excerpt equals that of the payload. Any thread.
 */
#include "engine/store/payload.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"
#include "format/payload/first_text.h"

/* --- excerpts ----------------------------------------------------------- */

enum { MEMBERS_MAX = 2 };

/* The members that the engine reads, by type (SPEC.md 5.6). */
struct excerpt_members {
    uint8_t kind;
    const char *names[MEMBERS_MAX];
    uint16_t sizes[MEMBERS_MAX]; /* bytes; longer texts are ignored */
};

static const struct excerpt_members excerpt_members[] = {
    {WAL__KIND_COMPACTION_SUMMARY, {"firstKeptEntryId"}, {WAL__ID_MAX}},
    {WAL__KIND_COMPACTION, {"firstKeptEntryId"}, {WAL__ID_MAX}},
    {WAL__KIND_BRANCH_SUMMARY, {"sourceSessionId", "sourceEntryId"}, {WAL__ID_MAX, WAL__ID_MAX}},
    {WAL__KIND_REDACTION, {"targetEntryId", "reason"}, {WAL__ID_MAX, WAL__TEXT_MAX}},
};

static enum wal_status append_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends a member of the object that begins at `start`. */
static enum wal_status append_member(struct wal__buf *out, size_t start, const char *name,
                                     struct wal__span text)
{
    enum wal_status status = append_text(out, out->size == start ? "{\"" : ",\"");

    if (status != WAL_OK) {
        return status;
    }
    status = append_text(out, name);
    if (status != WAL_OK) {
        return status;
    }
    status = append_text(out, "\":");
    return status == WAL_OK ? wal__text_quote(out, text) : status;
}

static enum wal_status append_members(struct wal__buf *out, const struct excerpt_members *kind,
                                      struct wal__span object)
{
    const size_t start = out->size;
    enum wal_status status = WAL_OK;
    uint8_t bytes[WAL__TEXT_MAX];
    struct wal__span text;

    for (size_t i = 0; i < MEMBERS_MAX && status == WAL_OK; i++) {
        if (kind->names[i] != NULL &&
            wal__text_member(object, kind->names[i], bytes, kind->sizes[i], &text)) {
            WAL__ASSERT(text.size <= kind->sizes[i]);
            status = append_member(out, start, kind->names[i], text);
        }
    }
    return status;
}

/* Appends to an excerpt, which begins at the buffer's start. */
static enum wal_status append_first_text(struct wal__buf *out, struct wal__span payload)
{
    static const struct wal__span user = {(const uint8_t *)"user", 4};
    uint8_t bytes[WAL__FIRST_TEXT_MAX];
    struct wal__span text = {bytes, 0};
    enum wal_status status;

    if (!wal__first_text(payload, bytes, &text.size)) {
        return WAL_OK;
    }
    status = append_member(out, 0, "role", user);
    return status == WAL_OK ? append_member(out, 0, "content", text) : status;
}

/* The object with a redaction's fields: the member `payload` of an imported line that has one, else
 * the whole payload. */
static struct wal__span redaction_object(const struct wal__entry_record *record)
{
    struct wal__span object = record->payload;
    struct wal__json_token token;

    if (record->form == WAL__ENTRY_LINE &&
        wal__json_find(object.data, object.size, "payload", &token) == WAL__JSON_OK) {
        object.data = token.span.data;
        object.size = token.span.size;
    }
    return object;
}

enum wal_status wal__payload_append_remains(struct wal__span payload, uint8_t kind,
                                            struct wal__buf *out)
{
    const size_t before = out->size;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < sizeof(excerpt_members) / sizeof(excerpt_members[0]); i++) {
        if (excerpt_members[i].kind == kind &&
            (kind == WAL__KIND_COMPACTION || kind == WAL__KIND_COMPACTION_SUMMARY)) {
            status = append_members(out, &excerpt_members[i], payload);
        }
    }
    if (status == WAL_EINVAL) { /* it names nothing */
        out->size = before;
        return WAL_OK;
    }
    return status == WAL_OK && out->size > before ? append_text(out, "}") : status;
}

static enum wal_status build_excerpt(const struct wal__entry_record *record, uint8_t kind,
                                     struct wal__buf *out)
{
    enum wal_status status;

    for (size_t i = 0; i < sizeof(excerpt_members) / sizeof(excerpt_members[0]); i++) {
        if (excerpt_members[i].kind != kind) {
            continue;
        }
        status = append_members(out, &excerpt_members[i],
                                kind == WAL__KIND_REDACTION ? redaction_object(record)
                                                            : record->payload);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = append_first_text(out, record->payload);
    if (status != WAL_OK || out->size == 0) {
        return status;
    }
    return append_text(out, "}");
}

/* --- storing and loading ----------------------------------------------- */

enum wal_status wal__payload_store(struct wal__core *core, uint8_t kind,
                                   struct wal__entry_record *record,
                                   struct wal__out_of_line *out_of_line, struct wal__op *op,
                                   struct wal_error *error)
{
    struct wal__blob_put_result result = {0};
    enum wal_status status;

    WAL__ASSERT(out_of_line->excerpt.heap == NULL && record->digest == NULL);
    if (record->payload.size <= WAL__PAYLOAD_INLINE_MAX) {
        return WAL_OK;
    }
    wal__buf_init(&out_of_line->excerpt, core->env.heap);
    status = build_excerpt(record, kind, &out_of_line->excerpt);
    if (status != WAL_OK) {
        return wal__fail(error, status, "%s", wal_status_text(status));
    }
    status = wal__content_guard_enter(&op->guard, &core->control, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__blob_put(&core->blobs, record->payload, NULL, WAL__BLOB_OF_RECORDS,
                           &out_of_line->digest, &result, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(out_of_line->excerpt.size <= WAL__PAYLOAD_INLINE_MAX);
    record->payload_size = record->payload.size;
    record->payload.data = out_of_line->excerpt.data;
    record->payload.size = out_of_line->excerpt.size;
    record->digest = out_of_line->digest.bytes;
    op->pack_end = result.end > op->pack_end ? result.end : op->pack_end;
    return WAL_OK;
}

void wal__out_of_line_deinit(struct wal__out_of_line *out_of_line)
{
    if (out_of_line->excerpt.heap != NULL) {
        wal__buf_deinit(&out_of_line->excerpt);
    }
}

enum wal_status wal__payload_load(struct wal__core *core, const struct wal__entry_record *record,
                                  struct wal__buf *out, struct wal_error *error)
{
    struct wal__digest digest;
    enum wal_status status;

    WAL__ASSERT(record->digest != NULL);
    memcpy(digest.bytes, record->digest, sizeof(digest.bytes));
    out->size = 0;
    status = wal__blob_load(&core->blobs, &digest, out, error);
    if (status == WAL_OK && out->size != record->payload_size) {
        return wal__fail(error, WAL_ECORRUPT, "the blob of the entry's payload has a wrong size");
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, WAL_ECORRUPT, "the blob of the entry's payload is missing");
    }
    return status;
}
