/*
 * sessions.c - the list of a store's sessions in a remote (move.h), so that
 * another machine finds one without pulling the store.
 *
 * It is the only object that is replaced, and nothing depends on it: a list of
 * a writer that was fenced meanwhile, or one that came late, is replaced by the
 * next push. It is written only when its bytes change, since reading it costs a
 * tenth of that.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/machine.h"
#include "remote/layout/layout.h"
#include "remote/move/move.h"

/* --- writing ------------------------------------------------------------ */

/* Whether a session is a child of this one, in the trash or not. */
static enum wal_status has_child(struct wal_store *store,
                                 struct wal_slice session, uint32_t flags,
                                 bool *result, struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .parent = session};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status =
        wal_session_cursor_open(store, &options, &cursor, error);

    if (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        *result = *result || status == WAL_OK;
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__sessions_bundle(struct wal_store *store,
                                     const struct wal_session_info *session,
                                     uint64_t *number, struct wal_error *error)
{
    bool has_none = (session->flags & WAL_SESSION_MOVED) == 0 ||
                    (session->flags & WAL_SESSION_FORK) != 0;
    enum wal_status status = WAL_OK;

    if (!has_none) {
        status = has_child(store, session->id, 0, &has_none, error);
    }
    if (status == WAL_OK && !has_none) {
        status = has_child(store, session->id, WAL_SESSION_CURSOR_TRASH,
                           &has_none, error);
    }
    *number = has_none ? 0 : session->last_sequence;
    return status;
}

/* Adds the sessions of the store, those that were active last. */
static enum wal_status add_sessions(struct wal_store *store,
                                    struct wal__session_list *list,
                                    struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    uint64_t number = 0;
    enum wal_status status =
        wal_session_cursor_open(store, NULL, &cursor, error);

    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            status = wal__sessions_bundle(store, &info, &number, error);
        }
        if (status == WAL_OK) {
            info.last_sequence = number;
            status = wal__session_list_add(list, &info);
            if (status == WAL_ENOMEM) {
                (void)wal__no_memory(error);
            }
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status make_list(struct wal_remote *remote,
                                 struct wal_store *store, struct wal__buf *json,
                                 struct wal_error *error)
{
    struct wal__session_list list;
    char host[WAL__EPOCH_HOST_SIZE];
    enum wal_status status;

    wal__machine_host(host);
    wal__session_list_init(&list, remote->heap);
    status = add_sessions(store, &list, error);
    if (status == WAL_OK &&
        wal__session_list_encode(&list, host, json) != WAL_OK) {
        status = wal__no_memory(error);
    }
    wal__session_list_deinit(&list);
    return status;
}

/* Replaces the list, unless it has these bytes. */
static enum wal_status put_list(struct wal_remote *remote, const char *name,
                                const struct wal__buf *json,
                                struct wal_error *error)
{
    const struct wal_slice bytes = {json->data, json->size};
    struct wal__buf former;
    enum wal_status status;

    wal__buf_init(&former, remote->heap);
    status = wal__remote_get(remote, name, WAL__SESSION_LIST_JSON_MAX, &former,
                             error);
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT ||
        (status == WAL_OK &&
         (former.size != json->size ||
          memcmp(former.data, json->data, json->size) != 0))) {
        status = remote->driver->calls->put(remote->driver, name, bytes, error);
    }
    wal__buf_deinit(&former);
    return status;
}

enum wal_status wal__sessions_put(struct wal_remote *remote,
                                  struct wal_store *store,
                                  struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    enum wal_status status = wal_store_get_info(store, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__session_list_name(info.uuid, name);
    wal__buf_init(&json, remote->heap);
    status = make_list(remote, store, &json, error);
    if (status == WAL_OK) {
        status = put_list(remote, name, &json, error);
    }
    wal__buf_deinit(&json);
    return status;
}

/* --- reading ------------------------------------------------------------ */

/* Where the sessions of a list are reported to. */
struct listing {
    const uint8_t *uuid;
    wal_remote_session_fn *each;
    void *ctx;
};

static int32_t report(void *ctx, const char *host,
                      const struct wal_session_info *session)
{
    const struct listing *listing = ctx;

    return listing->each(listing->ctx, listing->uuid, host, session);
}

/* Reads the list of one store. WAL_ENOTFOUND: it has none. */
static enum wal_status read_list(struct wal_remote *remote,
                                 const uint8_t uuid[16],
                                 wal_remote_session_fn *each, void *ctx,
                                 struct wal_error *error)
{
    struct listing listing = {.uuid = uuid, .each = each, .ctx = ctx};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    enum wal_status status;

    wal__session_list_name(uuid, name);
    wal__buf_init(&json, remote->heap);
    status =
        wal__remote_get(remote, name, WAL__SESSION_LIST_JSON_MAX, &json, error);
    if (status == WAL_OK) {
        status = wal__session_list_decode(
            (struct wal_slice){json.data, json.size}, name, remote->heap,
            report, &listing, error);
    }
    wal__buf_deinit(&json);
    return status;
}

/* A session that is looked for. */
struct wanted {
    const char *session;
    uint64_t number; /* of its bundle; 0: it has none */
};

static int32_t compare(void *ctx, const uint8_t uuid[16], const char *host,
                       const struct wal_session_info *session)
{
    struct wanted *wanted = ctx;

    (void)uuid;
    (void)host;
    if (session->id.size == strlen(wanted->session) &&
        memcmp(session->id.data, wanted->session, (size_t)session->id.size) ==
            0) {
        wanted->number = session->last_sequence;
    }
    return 0;
}

enum wal_status wal__sessions_find_bundle(struct wal_remote *remote,
                                          const uint8_t uuid[16],
                                          const char *session, uint64_t *number,
                                          struct wal_error *error)
{
    struct wanted wanted = {.session = session};
    enum wal_status status = read_list(remote, uuid, compare, &wanted, error);

    if (status == WAL_OK && wanted.number == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the list has no bundle of the session");
    }
    *number = wanted.number;
    return status;
}

enum wal_status wal__sessions_list(struct wal_remote *remote,
                                   const uint8_t *uuid,
                                   wal_remote_session_fn *each, void *ctx,
                                   struct wal_error *error)
{
    struct wal__store_object object = {.kind = 0};
    bool is_there = false;
    enum wal_status status;

    if (uuid != NULL) {
        status = read_list(remote, uuid, each, ctx, error);
        is_there = status == WAL_OK;
    } else {
        status = wal__remote_next_store(remote, &object, error);
        while (status == WAL_OK && object.kind != 0) {
            status = read_list(remote, object.uuid, each, ctx, error);
            is_there = is_there || status == WAL_OK;
            if (status == WAL_OK || status == WAL_ENOTFOUND) {
                status = wal__remote_next_store(remote, &object, error);
            }
        }
    }
    return (status == WAL_OK && !is_there) || status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ENOTFOUND,
                           "the remote has no list of sessions: none was "
                           "pushed by an agentwal that makes one")
               : status;
}
