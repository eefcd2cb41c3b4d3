/*
 * moved_document.c - where a session has moved to (moved_document.h).
 *
 * Invariant: what is decoded is within its limits, whatever the bytes are.
 */
#include "engine/base/moved_document.h"

#include <stdio.h>
#include <string.h>

#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"

enum { STORE_DIGITS = 32 };

static const uint8_t key[] = "\0moved";

struct wal__span wal__moved_key(void)
{
    return (struct wal__span){key, sizeof(key) - 1};
}

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

static struct wal__json_span json_of(struct wal__span span)
{
    return (struct wal__json_span){span.data, span.size};
}

enum wal_status wal__moved_encode(const struct wal_session_move *move, struct wal__span id,
                                  struct wal__buf *out)
{
    struct wal__json_out json = {.put = put, .ctx = out};
    char store[STORE_DIGITS + 1];
    const struct wal__span host = {(const uint8_t *)move->host, strlen(move->host)};

    wal__hex_write(move->store, sizeof(move->store), store);
    wal__json_out_open(&json, '{');
    wal__json_out_member_text(&json, "session", json_of(id));
    wal__json_out_member_int(&json, "number", (int64_t)move->number);
    wal__json_out_member_str(&json, "store", store);
    wal__json_out_member_text(&json, "host", json_of(host));
    wal__json_out_member_int(&json, "moved", move->moved_ms);
    wal__json_out_close(&json, '}');
    return json.has_failed ? WAL_ENOMEM : WAL_OK;
}

static bool parse_store(struct wal__json_span text, uint8_t store[16])
{
    char digits[STORE_DIGITS];
    size_t size = 0;
    bool has_nul = false;

    if (wal__json_unescape(text, (uint8_t *)digits, sizeof(digits), &size, &has_nul) !=
            WAL__JSON_OK ||
        size != sizeof(digits)) {
        return false;
    }
    return wal__hex_read(digits, STORE_DIGITS / 2, store);
}

static bool get_host(struct wal__json_span text, char host[WAL_SESSION_HOST_SIZE])
{
    size_t size = 0;
    bool has_nul = false;

    if (wal__json_unescape(text, (uint8_t *)host, WAL_SESSION_HOST_SIZE - 1, &size, &has_nul) !=
            WAL__JSON_OK ||
        has_nul) {
        return false;
    }
    host[size] = '\0';
    return true;
}

static bool get_number(const struct wal__json_member *member, int64_t *number)
{
    return member->value.kind == WAL__JSON_NUMBER &&
           wal__json_integer(member->value.span, number) == WAL__JSON_OK;
}

bool wal__moved_decode(struct wal__span value, struct wal__span id, struct wal_session_move *move)
{
    struct wal__json_member members[] = {
        {.key = "session"}, {.key = "number"}, {.key = "store"}, {.key = "host"}, {.key = "moved"}};
    struct wal_session_move read = WAL_INIT(wal_session_move);
    int64_t number = 0;

    if (wal__json_members(value.data, value.size, members, 5, NULL) != WAL__JSON_OK ||
        members[0].value.kind != WAL__JSON_STRING ||
        !wal__json_string_equals(members[0].value.span, id.data, id.size) ||
        !get_number(&members[1], &number) || number <= 0 ||
        members[2].value.kind != WAL__JSON_STRING ||
        !parse_store(members[2].value.span, read.store) ||
        members[3].value.kind != WAL__JSON_STRING || !get_host(members[3].value.span, read.host) ||
        !get_number(&members[4], &read.moved_ms)) {
        return false;
    }
    read.number = (uint64_t)number;
    *move = read;
    return true;
}
