/*
 * claim.c - claims of sessions (move.h): of which store has a session now, and what a store learns
 * of its sessions that were claimed elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/bytes.h"
#include "remote/history/history.h"
#include "remote/history/remote.h"
#include "remote/move/move.h"

/* --- what a claim says -------------------------------------------------- */

enum wal_status wal__claim_init(struct wal__own *own, const char *session, struct wal_store *store,
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

enum wal_status wal__claim_set_end(struct wal__own *own, struct wal_session *session,
                                   struct wal_store *store, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_store_info of_store = WAL_INIT(wal_store_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        (void)snprintf(own->entry, sizeof(own->entry), "%.*s", WAL_ARG(info.head));
        status = wal_store_get_info(store, &of_store, error);
        own->sequence = of_store.last_sequence;
    }
    return status;
}

enum wal_status wal__claim_record(struct wal_session *session, const struct wal__own *own,
                                  uint64_t number, bool is_away, struct wal_error *error)
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
                                struct wal__store_object *object, struct wal_error *error)
{
    *object = (struct wal__store_object){.kind = WAL__OBJECT_OWN};
    memcpy(object->uuid, uuid, sizeof(object->uuid));
    return wal__own_id(session, object->id) == WAL_OK ? WAL_OK : wal__no_memory(error);
}

static enum wal_status decode(const struct wal__buf *bytes, const char *name, const char *session,
                              struct wal__own *own, struct wal_error *error)
{
    struct wal__own decoded;
    enum wal_status status =
        wal__own_decode((struct wal_slice){bytes->data, bytes->size}, name, &decoded, error);

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

enum wal_status wal__claim_read(struct wal_remote *remote, const uint8_t uuid[16],
                                const char *session, struct wal__own *own, uint64_t *number,
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
        status = wal__remote_get(remote, name, WAL__OWN_JSON_MAX, &bytes, error);
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
static enum wal_status take_found(const struct wal__buf *found, const char *name,
                                  struct wal__own *own, struct wal_error *error)
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
    return wal__fail_at(error, WAL_ECLAIMED, 0, name, 0, "%s claimed the session at the same time",
                        other.host[0] != '\0' ? other.host : "another machine");
}

enum wal_status wal__claim_create(struct wal_remote *remote, const uint8_t uuid[16],
                                  uint64_t number, struct wal__own *own, struct wal_error *error)
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
        status = wal__remote_create(remote, name, (struct wal_slice){bytes.data, bytes.size},
                                    &found, error);
    }
    if (status == WAL_EEXISTS) {
        status = take_found(&found, name, own, error);
    }
    wal__buf_deinit(&bytes);
    wal__buf_deinit(&found);
    return status;
}

enum wal_status wal__claim_next(struct wal_remote *remote, const uint8_t uuid[16],
                                struct wal__own *own, uint64_t *number, struct wal_error *error)
{
    struct wal__own newest = {.sequence = 0};
    enum wal_status status = wal__claim_read(remote, uuid, own->session, &newest, number, error);

    if (status != WAL_OK ||
        (*number > 0 && memcmp(newest.store, own->store, sizeof(newest.store)) == 0)) {
        return status;
    }
    ++*number;
    return wal__claim_create(remote, uuid, *number, own, error);
}

/* --- stores of a remote ------------------------------------------------- */

enum wal_status wal__holder_find_other(struct wal_remote *remote, const uint8_t mine[16],
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
            status = wal__claim_read(remote, uuid, session, &own, &claims, error);
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

enum wal_status wal__holder_host(struct wal_remote *remote, const uint8_t uuid[16],
                                 char host[WAL__EPOCH_HOST_SIZE], struct wal_error *error)
{
    struct wal__epoch epoch = {.started_ms = 0};
    uint64_t number = 0;
    enum wal_status status = wal__history_read_epoch(remote, uuid, &number, &epoch, error);

    if (status == WAL_OK && number == 0) {
        return wal__fail(error, WAL_ENOTFOUND, "the remote has no store of this id");
    }
    if (status == WAL_OK) {
        memcpy(host, epoch.host, sizeof(epoch.host));
    }
    return status;
}

/* --- the holder --------------------------------------------------------- */

static enum wal_status fail_gone(const struct wal__own *own, struct wal_error *error)
{
    char store[WAL__UUID_TEXT_SIZE];

    wal__hex_write(own->store, 16, store);
    return wal__fail(error, WAL_ECLAIMED,
                     "the session has moved to %s, to the store %s, which the "
                     "remote does not have: push it there; --take-over goes on "
                     "with what is here",
                     own->host, store);
}

/* One step from the store at *uuid: sets *is_last when that one has it. */
static enum wal_status follow(struct wal_remote *remote, const uint8_t mine[16],
                              const char *session, bool takes_over, uint8_t uuid[16],
                              struct wal__holder *holder, bool *is_last, struct wal_error *error)
{
    struct wal__own own = {.move = 0};
    struct wal__store_object object;
    enum wal_status status;
    bool is_newer;

    holder->number = 0;
    status = wal__claim_read(remote, uuid, session, &own, &holder->number, error);
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
        object = wal__store_object_of(WAL__OBJECT_EPOCH, own.store, 0, 0);
        status = wal__remote_last(remote, &object, &object.epoch, error);
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

enum wal_status wal__holder_find(struct wal_remote *remote, const uint8_t mine[16],
                                 const char *session, bool takes_over, struct wal__holder *holder,
                                 struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool is_last = false;
    uint8_t uuid[16];

    memcpy(uuid, holder->uuid, sizeof(uuid));
    holder->move = 0;
    while (status == WAL_OK && !is_last) {
        status = follow(remote, mine, session, takes_over, uuid, holder, &is_last, error);
        holder->is_mine = memcmp(uuid, mine, sizeof(uuid)) == 0;
        if (!holder->is_mine) {
            memcpy(holder->uuid, uuid, sizeof(uuid));
        }
    }
    return status;
}

/* --- what a store learns of its sessions ---------------------------------- */

/*
 * Invariant: a claim is recorded before it counts as seen, so that a check that is cut short is
 * repeated.
 */

struct seen {
    uint8_t id[16];
    uint64_t number;
    bool is_done; /* it was recorded in the store, or is of no session there */
};

struct wal_remote_moves {
    struct wal_remote *remote;
    struct wal_store *store;
    struct wal__buf seen; /* struct seen, the newest of each, ascending by id */
};

/* --- the claims of a store ---------------------------------------------- */

struct listing {
    struct wal_remote_moves *moves;
    size_t at; /* in seen: the names come in order */
    bool has_failed;
};

static size_t count_of(const struct wal_remote_moves *moves)
{
    return moves->seen.size / sizeof(struct seen);
}

static struct seen *item_of(struct wal_remote_moves *moves, size_t at)
{
    return (struct seen *)(void *)moves->seen.data + at;
}

/* Makes room at `at`. */
static bool insert(struct wal_remote_moves *moves, size_t at, const struct seen *item)
{
    const struct seen none = {.number = 0};
    size_t count = count_of(moves);

    if (wal__buf_append(&moves->seen, &none, sizeof(none)) != WAL_OK) {
        return false;
    }
    memmove(item_of(moves, at) + 1, item_of(moves, at), (count - at) * sizeof(none));
    *item_of(moves, at) = *item;
    return true;
}

static bool see(void *ctx, const char *name, uint64_t size)
{
    struct listing *listing = ctx;
    struct wal_remote_moves *moves = listing->moves;
    struct wal__store_object object;
    struct seen item = {.number = 0};
    int order = 1;

    (void)size;
    if (!wal__store_object_parse(name, &object) || object.kind != WAL__OBJECT_OWN) {
        return true;
    }
    memcpy(item.id, object.id, sizeof(item.id));
    item.number = object.number;
    while (listing->at < count_of(moves)) {
        order = memcmp(item_of(moves, listing->at)->id, item.id, 16);
        if (order >= 0) {
            break;
        }
        listing->at++;
    }
    if (listing->at == count_of(moves) || order > 0) {
        listing->has_failed = !insert(moves, listing->at, &item);
    } else if (item_of(moves, listing->at)->number < item.number) {
        *item_of(moves, listing->at) = item;
    }
    return !listing->has_failed;
}

static enum wal_status list_claims(struct wal_remote *remote, const uint8_t uuid[16],
                                   struct wal_remote_moves *moves, struct wal_error *error)
{
    struct wal__store_object place = wal__store_object_of(WAL__OBJECT_OWN, uuid, 0, 0);
    struct listing listing = {.moves = moves};
    char prefix[WAL__STORE_OBJECT_SIZE];
    enum wal_status status;

    wal__store_object_prefix(&place, prefix);
    status = remote->driver->calls->list(remote->driver, prefix, "", see, &listing, error);
    return status == WAL_OK && listing.has_failed ? wal__no_memory(error) : status;
}

/* --- one claim ---------------------------------------------------------- */

struct checking {
    struct wal_remote *remote;
    struct wal_store *store;
    uint8_t uuid[16];
    wal_remote_moved_fn *moved;
    void *ctx;
};

/* Reads the claim, and checks that it is of the session whose name it has. */
static enum wal_status read_claim(const struct checking *checking, const struct seen *item,
                                  struct wal__own *own, struct wal_error *error)
{
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_OWN, checking->uuid, 0, item->number);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    uint8_t id[16];
    enum wal_status status;

    memcpy(object.id, item->id, sizeof(object.id));
    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, checking->remote->heap);
    status = wal__remote_get(checking->remote, name, WAL__OWN_JSON_MAX, &bytes, error);
    if (status == WAL_OK) {
        status = wal__own_decode((struct wal_slice){bytes.data, bytes.size}, name, own, error);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_OK && wal__own_id(own->session, id) != WAL_OK) {
        return wal__no_memory(error);
    }
    if (status == WAL_OK && memcmp(id, item->id, sizeof(id)) != 0) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it names another session "
                              "than its name");
    }
    return status;
}

/* Whether the store has recorded the claim, or a later one. The store's own handoff has the number
 * of a claim that is created afterwards: by itself, or by another machine that was first. */
static bool is_recorded(const struct wal_session_move *known, const struct seen *item,
                        const struct wal__own *own)
{
    return known->number > item->number ||
           (known->number == item->number &&
            (wal__uuid_is_zero(own->store) ||
             memcmp(known->store, own->store, sizeof(own->store)) == 0));
}

/* --- what is known here ------------------------------------------------- */

static int compare_id(const void *id, const void *item)
{
    return memcmp(id, ((const struct seen *)item)->id, 16);
}

/* A claim that the session has recorded is done. One with the number of a handoff of this store may
 * be another machine's, and is read. */
static void look_at(struct wal_store *store, struct wal_remote_moves *moves,
                    struct wal_slice session)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct seen *item;
    struct wal_session *handle = NULL;
    char name[WAL_ID_SIZE];
    uint8_t id[16];

    (void)snprintf(name, sizeof(name), "%.*s", WAL_ARG(session));
    item = wal__own_id(name, id) == WAL_OK
               ? bsearch(id, moves->seen.data, count_of(moves), sizeof(*item), compare_id)
               : NULL;
    if (item != NULL && !item->is_done &&
        wal_session_open(store, session, &handle, NULL) == WAL_OK &&
        wal_session_get_move(handle, &known, NULL) == WAL_OK) {
        item->is_done = known.number > item->number ||
                        (known.number == item->number && !wal__uuid_is_zero(known.store));
    }
    wal_session_close(handle);
}

/* So that not every claim that was ever made is read again. */
static enum wal_status look_here(struct wal_store *store, struct wal_remote_moves *moves,
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status = wal_session_cursor_open(store, NULL, &cursor, error);

    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            look_at(store, moves, info.id);
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* --- all claims --------------------------------------------------------- */

static enum wal_status record(const struct checking *checking, const struct seen *item,
                              const struct wal__own *own, struct wal_session *session,
                              struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    bool is_away = memcmp(own->store, checking->uuid, sizeof(own->store)) != 0;
    enum wal_status status = wal_session_get_move(session, &known, NULL);

    if (status == WAL_OK && is_recorded(&known, item, own)) {
        return WAL_OK;
    }
    if (status != WAL_OK && !is_away) {
        return WAL_OK; /* it never was away */
    }
    status = wal__claim_record(session, own, item->number, is_away, error);
    if (status == WAL_OK && is_away && checking->moved != NULL) {
        checking->moved(checking->ctx, (struct wal_slice){own->session, strlen(own->session)},
                        own->host);
    }
    return status;
}

static enum wal_status check(const struct checking *checking, struct seen *item,
                             struct wal_error *error)
{
    struct wal__own own = {.sequence = 0};
    struct wal_session *session = NULL;
    enum wal_status status = read_claim(checking, item, &own, error);

    if (status == WAL_OK) {
        status = wal_session_open(
            checking->store, (struct wal_slice){own.session, strlen(own.session)}, &session, error);
        if (status == WAL_ENOTFOUND || status == WAL_ETRASHED || status == WAL_EINVAL) {
            item->is_done = true; /* deleted here, or never was */
            return WAL_OK;
        }
    }
    if (status == WAL_OK) {
        status = record(checking, item, &own, session, error);
        wal_session_close(session);
    }
    item->is_done = status == WAL_OK;
    return status;
}

static bool has_more(struct wal_remote_moves *moves)
{
    size_t at = 0;

    while (at < count_of(moves) && item_of(moves, at)->is_done) {
        at++;
    }
    return at < count_of(moves);
}

enum wal_status wal_remote_moves_open(struct wal_remote *remote, struct wal_store *store,
                                      struct wal_remote_moves **moves, struct wal_error *error)
{
    struct wal_remote_moves *opened;

    if (remote == NULL || store == NULL || moves == NULL) {
        return wal__invalid(error, "the remote, the store or the place for the "
                                   "handle is null");
    }
    opened = wal__heap_zalloc(&wal__heap_libc, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->remote = remote;
    opened->store = store;
    wal__buf_init(&opened->seen, remote->heap);
    *moves = opened;
    return WAL_OK;
}

enum wal_status wal_remote_moves_check(struct wal_remote_moves *moves, wal_remote_moved_fn *moved,
                                       void *ctx, struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct checking checking = {.moved = moved, .ctx = ctx};
    enum wal_status worst = WAL_OK;
    enum wal_status status;

    if (moves == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    checking.remote = moves->remote;
    checking.store = moves->store;
    status = wal_store_get_info(moves->store, &info, error);
    if (status == WAL_OK) {
        memcpy(checking.uuid, info.uuid, sizeof(info.uuid));
        status = list_claims(moves->remote, info.uuid, moves, error);
    }
    if (status == WAL_OK && has_more(moves)) {
        status = look_here(moves->store, moves, error);
    }
    for (size_t i = 0; i < count_of(moves) && status == WAL_OK; i++) {
        struct seen *item = item_of(moves, i);

        if (item->is_done) {
            continue;
        }
        status = check(&checking, item, error);
        if (status == WAL_ECORRUPT || status == WAL_EVERSION || status == WAL_ENOTFOUND) {
            worst = status;
            status = WAL_OK;
        }
    }
    return status == WAL_OK ? worst : status;
}

void wal_remote_moves_close(struct wal_remote_moves *moves)
{
    if (moves != NULL) {
        wal__buf_deinit(&moves->seen);
        wal__heap_free(&wal__heap_libc, moves);
    }
}
