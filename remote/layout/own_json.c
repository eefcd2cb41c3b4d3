/*
 * own_json.c - where a session goes on (own_json.h).
 */
#include "remote/layout/own_json.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/sha256.h"
#include "format/json/json_value.h"
#include "remote/layout/json_fields.h"

enum wal_status wal__own_id(const char *session, uint8_t id[16])
{
    const struct wal__span text = {(const uint8_t *)session, strlen(session)};
    struct wal__sha256_alg sha256;
    struct wal__digest digest;
    enum wal_status status;

    wal__sha256_alg_init(&sha256);
    status = wal__sha256(&sha256, text, &digest);
    wal__sha256_alg_deinit(&sha256);
    if (status == WAL_OK) {
        memcpy(id, digest.bytes, 16);
    }
    return status;
}

static struct wal__json_span span_of(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

enum wal_status wal__own_encode(const struct wal__own *own,
                                struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);
    char store[WAL__UUID_TEXT_SIZE];

    wal__uuid_format(own->store, store);
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_text(&json, "session", span_of(own->session));
    wal__json_out_member_int(&json, "move", (int64_t)own->move);
    wal__json_out_member_str(&json, "store", store);
    wal__json_out_member_text(&json, "host", span_of(own->host));
    wal__json_out_member_text(&json, "entry", span_of(own->entry));
    wal__json_out_member_int(&json, "sequence", (int64_t)own->sequence);
    wal__json_out_member_int(&json, "claimed", own->claimed_ms);
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

/* Copies an id: any text without U+0000, terminated. */
static bool get_id(const struct wal__json_member *member, char out[WAL_ID_SIZE])
{
    char text[WAL_ID_SIZE];
    bool has_nul = false;
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, (uint8_t *)text,
                           sizeof(text) - 1, &size, &has_nul) != WAL__JSON_OK ||
        has_nul) {
        return false;
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

enum wal_status wal__own_decode(struct wal_slice bytes, const char *name,
                                struct wal__own *own, struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_member members[] = {
        {.key = "session"}, {.key = "store"},    {.key = "host"},
        {.key = "entry"},   {.key = "sequence"}, {.key = "claimed"},
        {.key = "move"}};
    struct wal__own decoded = {.sequence = 0};
    char store[WAL__UUID_TEXT_SIZE];
    int64_t sequence = 0;
    int64_t move = 0;
    enum wal_status status = WAL_ECORRUPT;

    if (bytes.size <= WAL__OWN_JSON_MAX) {
        status = wal__fields_check_version(json, name, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (status != WAL_OK || !wal__fields_find(json, members, 7) ||
        !get_id(&members[0], decoded.session) || decoded.session[0] == '\0' ||
        !wal__fields_get_text(&members[1], store, sizeof(store)) ||
        !wal__uuid_parse(store, strlen(store), decoded.store) ||
        !wal__fields_get_text(&members[2], decoded.host,
                              sizeof(decoded.host)) ||
        !get_id(&members[3], decoded.entry) ||
        !wal__fields_get_integer(&members[4], 0, INT64_MAX, &sequence) ||
        !wal__fields_get_integer(&members[5], 0, INT64_MAX,
                                 &decoded.claimed_ms) ||
        !wal__fields_get_integer(&members[6], 1, INT64_MAX / 2, &move)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                            "the object is damaged: it does not say where a "
                            "session goes on");
    }
    decoded.sequence = (uint64_t)sequence;
    decoded.move = (uint64_t)move;
    *own = decoded;
    return WAL_OK;
}
