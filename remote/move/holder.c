/*
 * holder.c - which store has a session now (move.h): the claims of each store
 * name the one that has it after it.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/history.h"
#include "remote/move/move.h"

/* --- stores of a remote ------------------------------------------------- */

enum wal_status wal__holder_find_other(struct wal_remote *remote,
                                       const uint8_t mine[16],
                                       const char *session, uint8_t uuid[16],
                                       struct wal_error *error)
{
    struct wal__store_object object = {.kind = 0};
    struct wal__own own;
    uint64_t claims = 0;
    uint32_t count = 0;
    enum wal_status status = wal__remote_next_store(remote, &object, error);

    while (status == WAL_OK && object.kind != 0 && claims == 0) {
        if (memcmp(object.uuid, mine, sizeof(object.uuid)) != 0) {
            memcpy(uuid, object.uuid, sizeof(object.uuid));
            count++;
            status =
                wal__claim_read(remote, uuid, session, &own, &claims, error);
        }
        if (status == WAL_OK) {
            status = wal__remote_next_store(remote, &object, error);
        }
    }
    if (status == WAL_OK && count == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the remote has no other store than this one: at the "
                         "other machine, `agentwal remote add` and `agentwal "
                         "remote push` come first");
    }
    if (status == WAL_OK && count > 1 && claims == 0) {
        return wal__fail(error, WAL_EINVAL,
                         "the remote has several stores; choose the one that "
                         "the session is in by its id, with --store-id: "
                         "`agentwal remote sessions URL` shows them");
    }
    return status;
}

static enum wal_status last_epoch(struct wal_remote *remote,
                                  const uint8_t uuid[16],
                                  struct wal__store_object *object,
                                  struct wal_error *error)
{
    *object = (struct wal__store_object){.kind = WAL__OBJECT_EPOCH};
    memcpy(object->uuid, uuid, sizeof(object->uuid));
    return wal__remote_last(remote, object, &object->epoch, error);
}

enum wal_status wal__holder_host(struct wal_remote *remote,
                                 const uint8_t uuid[16],
                                 char host[WAL__EPOCH_HOST_SIZE],
                                 struct wal_error *error)
{
    struct wal__epoch epoch = {.started_ms = 0};
    uint64_t number = 0;
    enum wal_status status =
        wal__history_read_epoch(remote, uuid, &number, &epoch, error);

    if (status == WAL_OK && number == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the remote has no store of this id");
    }
    if (status == WAL_OK) {
        memcpy(host, epoch.host, sizeof(epoch.host));
    }
    return status;
}

/* --- the holder --------------------------------------------------------- */

static enum wal_status fail_gone(const struct wal__own *own,
                                 struct wal_error *error)
{
    char store[WAL__UUID_TEXT_SIZE];

    wal__uuid_format(own->store, store);
    return wal__fail(error, WAL_ECLAIMED,
                     "the session has moved to %s, to the store %s, which the "
                     "remote does not have: push it there; --take-over goes on "
                     "with what is here",
                     own->host, store);
}

/* One step from the store at *uuid: sets *is_last when that one has it. */
static enum wal_status follow(struct wal_remote *remote, const uint8_t mine[16],
                              const char *session, bool takes_over,
                              uint8_t uuid[16], struct wal__holder *holder,
                              bool *is_last, struct wal_error *error)
{
    struct wal__own own = {.move = 0};
    struct wal__store_object object;
    enum wal_status status;
    bool is_newer;

    holder->number = 0;
    status =
        wal__claim_read(remote, uuid, session, &own, &holder->number, error);
    is_newer = own.move > holder->move;
    if (is_newer || (holder->number > 0 && wal__uuid_is_zero(own.store))) {
        holder->claim = own;
    }
    holder->move = is_newer ? own.move : holder->move;
    *is_last = true;
    if (status != WAL_OK || !is_newer || wal__uuid_is_zero(own.store) ||
        memcmp(own.store, uuid, 16) == 0) {
        return status;
    }
    if (memcmp(own.store, mine, 16) != 0) {
        status = last_epoch(remote, own.store, &object, error);
        if (status == WAL_OK && object.epoch == 0) {
            return takes_over ? WAL_OK : fail_gone(&own, error);
        }
    }
    if (status == WAL_OK) {
        memcpy(uuid, own.store, 16);
        *is_last = false;
    }
    return status;
}

enum wal_status wal__holder_find(struct wal_remote *remote,
                                 const uint8_t mine[16], const char *session,
                                 bool takes_over, struct wal__holder *holder,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_last = false;
    uint8_t uuid[16];

    memcpy(uuid, holder->uuid, sizeof(uuid));
    holder->move = 0;
    while (status == WAL_OK && !is_last) {
        status = follow(remote, mine, session, takes_over, uuid, holder,
                        &is_last, error);
        holder->is_mine = memcmp(uuid, mine, sizeof(uuid)) == 0;
        if (!holder->is_mine) {
            memcpy(holder->uuid, uuid, sizeof(uuid));
        }
    }
    return status;
}
