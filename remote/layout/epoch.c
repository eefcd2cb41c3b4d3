/*
 * epoch.c - who writes, and the fences among the parts (object_json.h).
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/json_fields.h"

static enum wal_status fail(struct wal_error *error, const char *name,
                            const char *what)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the object is damaged: it is not %s", what);
}

static struct wal__json_span span_of(struct wal_slice bytes)
{
    return (struct wal__json_span){bytes.data, (size_t)bytes.size};
}

enum wal_status wal__epoch_encode(const struct wal__epoch *epoch,
                                  struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);
    char writer[WAL__UUID_TEXT_SIZE];

    wal__uuid_format(epoch->writer, writer);
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_str(&json, "writer", writer);
    wal__json_out_member_text(
        &json, "host",
        (struct wal__json_span){(const uint8_t *)epoch->host,
                                strlen(epoch->host)});
    wal__json_out_member_int(&json, "started", epoch->started_ms);
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

enum wal_status wal__epoch_decode(struct wal_slice bytes, const char *name,
                                  struct wal__epoch *epoch,
                                  struct wal_error *error)
{
    struct wal__json_member members[] = {
        {.key = "writer"}, {.key = "host"}, {.key = "started"}};
    struct wal__epoch decoded = {.started_ms = 0};
    char writer[WAL__UUID_TEXT_SIZE];
    enum wal_status status;

    if (bytes.size > WAL__EPOCH_JSON_MAX) {
        return fail(error, name, "an epoch");
    }
    status = wal__fields_check_version(span_of(bytes), name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!wal__fields_find(span_of(bytes), members, 3) ||
        !wal__fields_get_text(&members[0], writer, sizeof(writer)) ||
        !wal__uuid_parse(writer, strlen(writer), decoded.writer) ||
        !wal__fields_get_text(&members[1], decoded.host,
                              sizeof(decoded.host)) ||
        !wal__fields_get_integer(&members[2], 0, INT64_MAX,
                                 &decoded.started_ms)) {
        return fail(error, name, "an epoch");
    }
    *epoch = decoded;
    return WAL_OK;
}

enum wal_status wal__fence_encode(uint64_t epoch, struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);

    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "fence", (int64_t)epoch);
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

enum wal_status wal__fence_decode(struct wal_slice bytes, const char *name,
                                  uint64_t *epoch, struct wal_error *error)
{
    struct wal__json_member member = {.key = "fence"};
    int64_t number = 0;

    if (bytes.size == 0 || *(const uint8_t *)bytes.data != '{') {
        *epoch = 0;
        return WAL_OK;
    }
    if (bytes.size > WAL__FENCE_JSON_MAX ||
        !wal__fields_find(span_of(bytes), &member, 1) ||
        !wal__fields_get_integer(&member, 1, INT64_MAX, &number)) {
        return fail(error, name, "a part, and not a fence");
    }
    *epoch = (uint64_t)number;
    return WAL_OK;
}
