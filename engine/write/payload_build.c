/*
 * payload_build.c - the payloads of entries that the library writes itself:
 * compactions and redactions (SPEC.md 5.6, 5.7). Any thread.
 */
#include "engine/write/payload_build.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/segment/record.h"

enum {
    SUMMARY_MAX = 4 * 1024 * 1024
};

static enum wal_status append_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends a JSON object of two texts. */
static enum wal_status append_object(struct wal__buf *out, const char *first,
                                     struct wal__span first_text,
                                     const char *second,
                                     struct wal__span second_text,
                                     struct wal_error *error)
{
    enum wal_status status = append_text(out, first);

    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__text_quote(out, first_text);
    if (status != WAL_OK) {
        goto failed;
    }
    status = append_text(out, second);
    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__text_quote(out, second_text);
    if (status != WAL_OK) {
        goto failed;
    }
    status = append_text(out, "}");
    if (status != WAL_OK) {
        goto failed;
    }
    return WAL_OK;
failed:
    return wal__fail(error, status, "%s", wal_status_text(status));
}

enum wal_status
wal__payload_build_compaction(const struct wal_compact_options *options,
                              struct wal__span *first_kept,
                              struct wal__buf *payload, struct wal_error *error)
{
    struct wal__span summary;
    enum wal_status status;

    status = wal__text_check(options->first_kept, WAL__ID_MAX,
                             "first kept entry's id", first_kept, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(options->summary, SUMMARY_MAX, "summary", &summary,
                             error);
    if (status != WAL_OK) {
        return status;
    }
    if (first_kept->size == 0) {
        return wal__invalid(
            error, "a compaction needs the id of the first entry to keep");
    }
    return append_object(payload, "{\"firstKeptEntryId\":", *first_kept,
                         ",\"summary\":", summary, error);
}

enum wal_status wal__payload_build_redaction(struct wal_slice target,
                                             struct wal_slice reason,
                                             struct wal__buf *payload,
                                             struct wal_error *error)
{
    struct wal__span target_text;
    struct wal__span reason_text;
    enum wal_status status =
        wal__text_check(target, WAL__ID_MAX, "entry's id", &target_text, error);

    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__text_check(reason, WAL__TEXT_MAX, "reason", &reason_text, error);
    if (status != WAL_OK) {
        return status;
    }
    if (target_text.size == 0) {
        return wal__invalid(error,
                            "a redaction needs the id of the entry to hide");
    }
    return append_object(payload, "{\"targetEntryId\":", target_text,
                         ",\"reason\":", reason_text, error);
}
