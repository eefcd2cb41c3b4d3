/*
 * payload.c - payloads out of line, on their way in and out (payload.h).
 *
 * Invariant: an excerpt depends on the payload, its form and its type alone;
 * reading a member or the first text from it gives what the payload gives.
 */
#include "engine/session/payload.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/session/text.h"
#include "format/jsonl/first_text.h"
#include "format/jsonl/json_scan.h"

/* --- excerpts ----------------------------------------------------------- */

enum {
    LOOKED_AT = 2
};

/* The members that the engine looks at, by type (SPEC.md 5.6). */
struct looked_at {
    uint8_t kind;
    const char *names[LOOKED_AT];
    uint16_t sizes[LOOKED_AT]; /* more has no meaning */
};

static const struct looked_at looked_at[] = {
    {WAL__KIND_COMPACTION_SUMMARY, {"firstKeptEntryId"}, {WAL__ID_MAX}},
    {WAL__KIND_COMPACTION, {"firstKeptEntryId"}, {WAL__ID_MAX}},
    {WAL__KIND_BRANCH_SUMMARY,
     {"sourceSessionId", "sourceEntryId"},
     {WAL__ID_MAX, WAL__ID_MAX}},
    {WAL__KIND_REDACTION,
     {"targetEntryId", "reason"},
     {WAL__ID_MAX, WAL__TEXT_MAX}},
};

static enum wal_status put_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

static enum wal_status put_member(struct wal__buf *out, const char *name,
                                  struct wal__span text)
{
    enum wal_status status = put_text(out, out->size == 0 ? "{\"" : ",\"");

    if (status == WAL_OK) {
        status = put_text(out, name);
    }
    if (status == WAL_OK) {
        status = put_text(out, "\":");
    }
    return status == WAL_OK ? wal__text_quote(out, text) : status;
}

static enum wal_status put_members(struct wal__buf *out,
                                   const struct looked_at *kind,
                                   struct wal__span object)
{
    enum wal_status status = WAL_OK;
    uint8_t bytes[WAL__TEXT_MAX];
    struct wal__span text;

    for (size_t i = 0; i < LOOKED_AT && status == WAL_OK; i++) {
        if (kind->names[i] != NULL &&
            wal__text_member(object, kind->names[i], bytes, kind->sizes[i],
                             &text)) {
            status = put_member(out, kind->names[i], text);
        }
    }
    return status;
}

static enum wal_status put_first_text(struct wal__buf *out,
                                      struct wal__span payload)
{
    static const struct wal__span user = {(const uint8_t *)"user", 4};
    uint8_t bytes[WAL__FIRST_TEXT_MAX];
    struct wal__span text = {bytes, 0};
    enum wal_status status;

    if (!wal__first_text(payload, bytes, &text.size)) {
        return WAL_OK;
    }
    status = put_member(out, "role", user);
    return status == WAL_OK ? put_member(out, "content", text) : status;
}

/* What an imported redaction says is in its member `payload`, if it has one. */
static struct wal__span inner_object(const struct wal__entry_record *record)
{
    struct wal__span object = record->payload;
    struct wal__json_token token;

    if (record->form == WAL__ENTRY_LINE &&
        wal__json_find(object.data, object.size, "payload", &token) ==
            WAL__JSON_OK) {
        object.data = token.span.data;
        object.size = token.span.size;
    }
    return object;
}

static enum wal_status make_excerpt(const struct wal__entry_record *record,
                                    uint8_t kind, struct wal__buf *out)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < sizeof(looked_at) / sizeof(looked_at[0]); i++) {
        if (looked_at[i].kind == kind && status == WAL_OK) {
            status =
                put_members(out, &looked_at[i],
                            kind == WAL__KIND_REDACTION ? inner_object(record)
                                                        : record->payload);
        }
    }
    if (status == WAL_OK) {
        status = put_first_text(out, record->payload);
    }
    if (status == WAL_OK && out->size > 0) {
        status = put_text(out, "}");
    }
    return status;
}

/* --- in and out --------------------------------------------------------- */

enum wal_status wal__payload_put(struct wal__core *core, uint8_t kind,
                                 struct wal__entry_record *record,
                                 struct wal__outside *outside, uint64_t *end,
                                 struct wal_error *error)
{
    struct wal__blob_cost cost = {0};
    enum wal_status status;

    if (record->payload.size <= WAL__PAYLOAD_INLINE_MAX) {
        return WAL_OK;
    }
    wal__buf_init(&outside->excerpt, core->env.heap);
    status = make_excerpt(record, kind, &outside->excerpt);
    if (status != WAL_OK) {
        return wal__fail(error, status, 0, NULL, 0, "%s",
                         wal_status_text(status));
    }
    if (!core->noop) {
        status = wal__blobs_put(&core->blobs, record->payload, NULL,
                                &outside->digest, &cost, error);
    }
    if (status == WAL_OK) {
        record->payload_size = record->payload.size;
        record->payload.data = outside->excerpt.data;
        record->payload.size = outside->excerpt.size;
        record->digest = outside->digest.bytes;
        *end = cost.end > *end ? cost.end : *end;
    }
    return status;
}

void wal__outside_deinit(struct wal__outside *outside)
{
    if (outside->excerpt.heap != NULL) {
        wal__buf_deinit(&outside->excerpt);
    }
}

enum wal_status wal__payload_load(struct wal__core *core,
                                  const struct wal__entry_record *record,
                                  struct wal__buf *out, struct wal_error *error)
{
    struct wal__digest digest;
    enum wal_status status;

    memcpy(digest.bytes, record->digest, sizeof(digest.bytes));
    out->size = 0;
    status = wal__blob_load(&core->blobs, &digest, out, error);
    if (status == WAL_OK && out->size != record->payload_size) {
        return wal__fail(error, WAL_ECORRUPT, 0, NULL, 0,
                         "the payload of the entry is a blob of another size");
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, WAL_ECORRUPT, 0, NULL, 0,
                         "the payload of the entry is a blob that is missing");
    }
    return status;
}
