/*
 * claim.c - claims of sessions (move.h).
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/machine.h"
#include "remote/move/move.h"

/* --- what a claim says -------------------------------------------------- */

enum wal_status wal__claim_init(struct wal__own *own, const char *session,
                                struct wal_store *store,
                                struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status = wal_store_get_info(store, &info, error);

    if (status == WAL_OK) {
        *own = (struct wal__own){.claimed_ms = wal__machine_unix_ms()};
        memcpy(own->session, session, strlen(session) + 1);
        memcpy(own->store, info.uuid, sizeof(own->store));
        wal__machine_host(own->host);
    }
    return status;
}

enum wal_status wal__claim_set_end(struct wal__own *own,
                                   struct wal_session *session,
                                   struct wal_store *store,
                                   struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_store_info of_store = WAL_INIT(wal_store_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        (void)snprintf(own->entry, sizeof(own->entry), "%.*s",
                       WAL_ARG(info.head));
        status = wal_store_get_info(store, &of_store, error);
        own->sequence = of_store.last_sequence;
    }
    return status;
}

enum wal_status wal__claim_record(struct wal_session *session,
                                  const struct wal__own *own, uint64_t number,
                                  bool is_away, struct wal_error *error)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    move.flags = is_away ? (uint32_t)WAL_SESSION_MOVE_AWAY : 0;
    move.number = number;
    move.moved_ms = own->claimed_ms;
    memcpy(move.store, own->store, sizeof(move.store));
    memcpy(move.host, own->host, sizeof(move.host));
    return wal_session_set_move(session, &move, error);
}

/* --- objects ------------------------------------------------------------ */

static enum wal_status place_of(const uint8_t uuid[16], const char *session,
                                struct wal__store_object *object,
                                struct wal_error *error)
{
    *object = (struct wal__store_object){.kind = WAL__OBJECT_OWN};
    memcpy(object->uuid, uuid, sizeof(object->uuid));
    return wal__own_id(session, object->id) == WAL_OK ? WAL_OK
                                                      : wal__no_memory(error);
}

static enum wal_status decode(const struct wal__buf *bytes, const char *name,
                              const char *session, struct wal__own *own,
                              struct wal_error *error)
{
    struct wal__own decoded;
    enum wal_status status = wal__own_decode(
        (struct wal_slice){bytes->data, bytes->size}, name, &decoded, error);

    if (status == WAL_OK && strcmp(decoded.session, session) != 0) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it names the session "
                              "\"%s\"",
                              decoded.session);
    }
    if (status == WAL_OK) {
        *own = decoded;
    }
    return status;
}

enum wal_status wal__claim_read(struct wal_remote *remote,
                                const uint8_t uuid[16], const char *session,
                                struct wal__own *own, uint64_t *number,
                                struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__store_object object;
    struct wal__buf bytes;
    uint64_t last = 0;
    enum wal_status status = place_of(uuid, session, &object, error);

    if (status == WAL_OK) {
        status = wal__remote_last(remote, &object, &last, error);
    }
    if (status == WAL_OK && last > 0) {
        object.number = last;
        wal__store_object_format(&object, name);
        wal__buf_init(&bytes, remote->heap);
        status =
            wal__remote_get(remote, name, WAL__OWN_JSON_MAX, &bytes, error);
        if (status == WAL_OK) {
            status = decode(&bytes, name, session, own, error);
        }
        wal__buf_deinit(&bytes);
    }
    if (status == WAL_OK) {
        *number = last;
    }
    return status;
}

/* Reads the claim that is there instead. */
static enum wal_status take_found(const struct wal__buf *found,
                                  const char *name, struct wal__own *own,
                                  struct wal_error *error)
{
    struct wal__own other = {.sequence = 0};
    enum wal_status status = decode(found, name, own->session, &other, error);

    if (status != WAL_OK) {
        return status;
    }
    if (memcmp(other.store, own->store, sizeof(other.store)) == 0) {
        return WAL_OK; /* an earlier attempt, whose outcome was unknown */
    }
    *own = other;
    return wal__fail_at(error, WAL_ECLAIMED, 0, name, 0,
                        "%s claimed the session at the same time",
                        other.host[0] != '\0' ? other.host : "another machine");
}

enum wal_status wal__claim_create(struct wal_remote *remote,
                                  const uint8_t uuid[16], uint64_t number,
                                  struct wal__own *own, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__store_object object;
    struct wal__buf bytes;
    struct wal__buf found;
    enum wal_status status = place_of(uuid, own->session, &object, error);

    if (status != WAL_OK) {
        return status;
    }
    object.number = number;
    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, remote->heap);
    wal__buf_init(&found, remote->heap);
    status = wal__own_encode(own, &bytes);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        status = wal__remote_create(remote, name,
                                    (struct wal_slice){bytes.data, bytes.size},
                                    &found, error);
    }
    if (status == WAL_EEXISTS) {
        status = take_found(&found, name, own, error);
    }
    wal__buf_deinit(&bytes);
    wal__buf_deinit(&found);
    return status;
}

enum wal_status wal__claim_next(struct wal_remote *remote,
                                const uint8_t uuid[16], struct wal__own *own,
                                uint64_t *number, struct wal_error *error)
{
    struct wal__own newest = {.sequence = 0};
    enum wal_status status =
        wal__claim_read(remote, uuid, own->session, &newest, number, error);

    if (status != WAL_OK ||
        (*number > 0 &&
         memcmp(newest.store, own->store, sizeof(newest.store)) == 0)) {
        return status;
    }
    ++*number;
    return wal__claim_create(remote, uuid, *number, own, error);
}
