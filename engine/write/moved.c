/*
 * moved.c - where a session has moved to (moved.h).
 *
 * Invariant: what is decoded is within its limits, whatever the bytes are.
 */
#include "engine/write/moved.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"

enum {
    STORE_DIGITS = 32
};

static const uint8_t key[] = "\0moved";

struct wal__span wal__moved_key(void)
{
    return (struct wal__span){key, sizeof(key) - 1};
}

/* --- the document --------------------------------------------------------- */

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

static struct wal__json_span json_of(struct wal__span span)
{
    return (struct wal__json_span){span.data, span.size};
}

enum wal_status wal__moved_encode(const struct wal_session_move *move,
                                  struct wal__span id, struct wal__buf *out)
{
    struct wal__json_out json = {.put = put, .ctx = out};
    char store[STORE_DIGITS + 1];
    const struct wal__span host = {(const uint8_t *)move->host,
                                   strlen(move->host)};

    for (size_t i = 0; i < sizeof(move->store); i++) {
        (void)snprintf(store + 2 * i, 3, "%02x", move->store[i]);
    }
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

    if (wal__json_unescape(text, (uint8_t *)digits, sizeof(digits), &size,
                           &has_nul) != WAL__JSON_OK ||
        size != sizeof(digits)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(digits); i++) {
        const char *hex = "0123456789abcdef";
        const char *found = memchr(hex, digits[i], 16);

        if (found == NULL) {
            return false;
        }
        store[i / 2] = (uint8_t)(store[i / 2] << 4 | (uint8_t)(found - hex));
    }
    return true;
}

static bool get_host(struct wal__json_span text,
                     char host[WAL_SESSION_HOST_SIZE])
{
    size_t size = 0;
    bool has_nul = false;

    if (wal__json_unescape(text, (uint8_t *)host, WAL_SESSION_HOST_SIZE - 1,
                           &size, &has_nul) != WAL__JSON_OK ||
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

bool wal__moved_decode(struct wal__span value, struct wal__span id,
                       struct wal_session_move *move)
{
    struct wal__json_member members[] = {{.key = "session"},
                                         {.key = "number"},
                                         {.key = "store"},
                                         {.key = "host"},
                                         {.key = "moved"}};
    struct wal_session_move read = WAL_INIT(wal_session_move);
    int64_t number = 0;

    if (wal__json_members(value.data, value.size, members, 5, NULL) !=
            WAL__JSON_OK ||
        members[0].value.kind != WAL__JSON_STRING ||
        !wal__json_string_equals(members[0].value.span, id.data, id.size) ||
        !get_number(&members[1], &number) || number <= 0 ||
        members[2].value.kind != WAL__JSON_STRING ||
        !parse_store(members[2].value.span, read.store) ||
        members[3].value.kind != WAL__JSON_STRING ||
        !get_host(members[3].value.span, read.host) ||
        !get_number(&members[4], &read.moved_ms)) {
        return false;
    }
    read.number = (uint64_t)number;
    *move = read;
    return true;
}

/* --- refusals ------------------------------------------------------------- */

/* Reads the document under the state lock; false: it is not there. */
static bool read_move(struct wal__core *core,
                      const struct wal__summary *summary,
                      struct wal__record_buf *scratch,
                      struct wal_session_move *move)
{
    struct wal__branch_slot *slot = NULL;
    const struct wal__document *document;
    struct wal__doc_record record;
    struct wal__frame frame;
    struct wal__span payload;

    if (wal__core_load_documents(core, summary->number, &slot, NULL) !=
            WAL_OK ||
        slot == NULL) {
        return false;
    }
    document = wal__documents_find(&slot->documents,
                                   wal__id_hash(key, sizeof(key) - 1));
    return document != NULL &&
           wal__log_read(
               &core->log,
               wal__documents_newest(&slot->documents, document)->position,
               scratch, &frame, &payload, NULL) == WAL_OK &&
           frame.type == WAL__FRAME_DOC &&
           wal__doc_record_decode(payload, &record) == WAL__FMT_OK &&
           wal__moved_decode(record.value, summary->id, move);
}

enum wal_status wal__moved_fail(struct wal__core *core,
                                const struct wal__summary *summary,
                                struct wal_error *error)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    const struct wal__summary own = *summary;
    char id[WAL_ID_SIZE];
    struct wal__record_buf scratch;

    /* Loading documents may move the texts of the summary. */
    WAL__ASSERT(own.id.size < sizeof(id));
    memcpy(id, own.id.data, own.id.size);
    id[own.id.size] = '\0';
    wal__record_buf_init(&scratch, core->env.heap);
    if (!read_move(core, summary, &scratch, &move) || move.host[0] == '\0') {
        (void)snprintf(move.host, sizeof(move.host), "another machine");
    }
    wal__record_buf_deinit(&scratch);
    return wal__fail(error, WAL_ECLAIMED,
                     "the session has moved to %s; go on with it there, fork "
                     "it, or take it back with: agentwal resume --take-back %s",
                     move.host, id);
}
