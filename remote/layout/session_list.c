/*
 * session_list.c - the list of a store's sessions (session_list.h).
 */
#include "remote/layout/session_list.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/json/json_value.h"
#include "remote/layout/json_fields.h"

enum {
    HOUR_MS = 60 * 60 * 1000,
    FRAME_SIZE = 1024 /* bytes of a list without its sessions, at most */
};

/* The JSON of a session. */
struct row {
    int64_t updated_ms;
    size_t offset;
    size_t size;
    const uint8_t *json; /* while the list is encoded */
};

void wal__session_list_name(const uint8_t uuid[16],
                            char out[WAL__STORE_OBJECT_SIZE])
{
    static const char name[] = "/sessions";

    wal__uuid_format(uuid, out);
    memcpy(out + WAL__UUID_TEXT_SIZE - 1, name, sizeof(name));
}

void wal__session_list_init(struct wal__session_list *list,
                            const struct wal__heap *heap)
{
    wal__buf_init(&list->json, heap);
    wal__buf_init(&list->rows, heap);
}

void wal__session_list_deinit(struct wal__session_list *list)
{
    wal__buf_deinit(&list->json);
    wal__buf_deinit(&list->rows);
}

static size_t count_of(const struct wal__session_list *list)
{
    return list->rows.size / sizeof(struct row);
}

/* --- encoding ----------------------------------------------------------- */

static void put_text(struct wal__json_out *json, const char *key,
                     struct wal_slice text)
{
    wal__json_out_member_text(
        json, key, (struct wal__json_span){text.data, (size_t)text.size});
}

static int64_t hour_of(int64_t ms)
{
    return ms < 0 ? 0 : ms - ms % HOUR_MS;
}

enum wal_status wal__session_list_add(struct wal__session_list *list,
                                      const struct wal_session_info *session)
{
    struct wal__json_out json = wal__fields_out(&list->json);
    struct row row = {.updated_ms = hour_of(session->updated_ms),
                      .offset = list->json.size};
    enum wal_status status;

    if (count_of(list) == WAL__SESSION_LIST_MAX) {
        return WAL_END;
    }
    wal__json_out_open(&json, '{');
    put_text(&json, "id", session->id);
    put_text(&json, "title", session->title);
    put_text(&json, "text", session->first_text);
    put_text(&json, "cwd", session->cwd);
    put_text(&json, "project", session->project);
    wal__json_out_member_int(&json, "updated", row.updated_ms);
    wal__json_out_member_bool(&json, "moved",
                              (session->flags & WAL_SESSION_MOVED) != 0);
    wal__json_out_member_int(&json, "bundle", (int64_t)session->last_sequence);
    wal__json_out_close(&json, '}');
    status = wal__fields_end(&json);
    row.size = list->json.size - row.offset;
    if (status == WAL_OK && list->json.size + count_of(list) + FRAME_SIZE >
                                WAL__SESSION_LIST_JSON_MAX) {
        status = WAL_END;
    }
    if (status == WAL_OK) {
        status = wal__buf_append(&list->rows, &row, sizeof(row));
    }
    if (status != WAL_OK) {
        list->json.size = row.offset;
    }
    return status;
}

/* The newest hour first. */
static int compare(const void *a, const void *b)
{
    const struct row *one = a;
    const struct row *other = b;
    const size_t size = one->size < other->size ? one->size : other->size;
    int order;

    if (one->updated_ms != other->updated_ms) {
        return one->updated_ms > other->updated_ms ? -1 : 1;
    }
    order = memcmp(one->json, other->json, size);
    return order != 0 ? order
                      : (one->size > other->size) - (one->size < other->size);
}

enum wal_status wal__session_list_encode(struct wal__session_list *list,
                                         const char *host, struct wal__buf *out)
{
    struct wal__json_out json = wal__fields_out(out);
    struct row *rows = (struct row *)(void *)list->rows.data;
    const size_t count = count_of(list);

    for (size_t i = 0; i < count; i++) {
        rows[i].json = list->json.data + rows[i].offset;
    }
    if (count > 0) {
        qsort(rows, count, sizeof(*rows), compare);
    }
    wal__json_out_open(&json, '{');
    wal__json_out_member_int(&json, "version", 1);
    wal__json_out_member_text(
        &json, "host",
        (struct wal__json_span){(const uint8_t *)host, strlen(host)});
    wal__json_out_member_open(&json, "sessions", '[');
    for (size_t i = 0; i < count; i++) {
        wal__json_out_value(
            &json, (struct wal__json_span){rows[i].json, rows[i].size});
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return wal__fields_end(&json);
}

/* --- decoding ----------------------------------------------------------- */

static enum wal_status fail(struct wal_error *error, const char *name)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                        "the object is damaged: it is not a list of sessions");
}

/* Appends a text to `texts`, which has the capacity. */
static bool get_text(const struct wal__json_member *member,
                     struct wal__buf *texts, struct wal_slice *text)
{
    uint8_t *at = texts->data + texts->size;
    size_t size = 0;

    if (member->value.kind != WAL__JSON_STRING ||
        wal__json_unescape(member->value.span, at,
                           texts->capacity - texts->size, &size,
                           NULL) != WAL__JSON_OK) {
        return false;
    }
    texts->size += size;
    *text = (struct wal_slice){at, size};
    return true;
}

/* Reads one session; its texts are put into `texts`. */
static bool get_session(struct wal__json_span json, struct wal__buf *texts,
                        struct wal_session_info *session)
{
    struct wal__json_member members[] = {
        {.key = "id"},      {.key = "title"},   {.key = "text"},
        {.key = "cwd"},     {.key = "project"}, {.key = "moved"},
        {.key = "updated"}, {.key = "bundle"},
    };
    const enum wal__json_kind *moved = &members[5].value.kind;
    int64_t bundle = 0;

    *session = (struct wal_session_info)WAL_INIT(wal_session_info);
    texts->size = 0;
    if (!wal__fields_find(json, members,
                          sizeof(members) / sizeof(members[0])) ||
        !get_text(&members[0], texts, &session->id) ||
        !get_text(&members[1], texts, &session->title) ||
        !get_text(&members[2], texts, &session->first_text) ||
        !get_text(&members[3], texts, &session->cwd) ||
        !get_text(&members[4], texts, &session->project) ||
        (*moved != WAL__JSON_TRUE && *moved != WAL__JSON_FALSE) ||
        !wal__fields_get_integer(&members[7], 0, INT64_MAX / 4, &bundle) ||
        !wal__fields_get_integer(&members[6], 0, INT64_MAX,
                                 &session->updated_ms)) {
        return false;
    }
    session->flags = *moved == WAL__JSON_TRUE ? WAL_SESSION_MOVED : 0U;
    session->last_sequence = (uint64_t)bundle;
    return session->id.size > 0 && session->id.size < WAL_ID_SIZE &&
           memchr(session->id.data, 0, (size_t)session->id.size) == NULL;
}

static enum wal_status read_sessions(struct wal__json_span array,
                                     const char *name, const char *host,
                                     struct wal__buf *texts,
                                     wal__session_list_fn *each, void *ctx,
                                     struct wal_error *error)
{
    struct wal__json_scan scan;
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal_session_info session;
    int32_t result = 0;

    wal__json_scan_init(&scan, array.data, array.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_ARRAY) {
        return fail(error, name);
    }
    while (result == 0) {
        if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK) {
            return fail(error, name);
        }
        if (token.kind == WAL__JSON_ARRAY_END) {
            return WAL_OK;
        }
        if (token.kind != WAL__JSON_OBJECT ||
            !get_session(token.span, texts, &session)) {
            return fail(error, name);
        }
        result = each(ctx, host, &session);
    }
    return wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                        "the list of sessions was ended by its callback");
}

enum wal_status wal__session_list_decode(struct wal_slice bytes,
                                         const char *name,
                                         const struct wal__heap *heap,
                                         wal__session_list_fn *each, void *ctx,
                                         struct wal_error *error)
{
    const struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_member members[] = {{.key = "host"}, {.key = "sessions"}};
    char host[WAL__EPOCH_HOST_SIZE];
    struct wal__buf texts;
    uint8_t *end;
    enum wal_status status;

    if (bytes.size > WAL__SESSION_LIST_JSON_MAX) {
        return fail(error, name);
    }
    status = wal__fields_check_version(json, name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!wal__fields_find(json, members, 2) ||
        !wal__fields_get_text(&members[0], host, sizeof(host))) {
        return fail(error, name);
    }
    /* No text is longer than its JSON. */
    wal__buf_init(&texts, heap);
    status = wal__buf_reserve(&texts, json.size, &end);
    status = status == WAL_OK ? read_sessions(members[1].value.span, name, host,
                                              &texts, each, ctx, error)
                              : wal__no_memory(error);
    wal__buf_deinit(&texts);
    return status;
}
