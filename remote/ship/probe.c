/*
 * probe.c - whether a remote refuses to create an object that exists
 * (remote.h).
 *
 * Some stores look for the object first and create it later, and refuse it
 * mostly. So several threads create one at the same time, a few times: in the
 * first round their connections are made meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "remote/history/machine.h"
#include "remote/history/remote.h"

enum {
    ROUNDS = 4,
    CREATORS = 8,
    BODY_SIZE = 16
};

static const char room[] = "probe/";

/* An object of the probe. */
struct probe {
    struct wal_remote *remote;
    char name[sizeof(room) + WAL__UUID_TEXT_SIZE];
    pthread_mutex_t start; /* held until all threads are made */
};

struct creator {
    struct probe *probe;
    char body[BODY_SIZE]; /* that no other has */
    pthread_t thread;
    bool has_thread;
    enum wal_status status;
    struct wal_error error;
};

enum wal_status wal__remote_is_no_remote(const char *name,
                                         struct wal_error *error)
{
    return wal__fail_at(error, WAL_EINVAL, 0, name, 0,
                        "the remote ignores If-None-Match, or looks for the "
                        "object before it creates it: it replaced an object "
                        "that it must keep, so that two writers would "
                        "overwrite each other; use another one");
}

static void *create(void *arg)
{
    struct creator *creator = arg;
    struct wal_remote *remote = creator->probe->remote;

    (void)pthread_mutex_lock(&creator->probe->start);
    (void)pthread_mutex_unlock(&creator->probe->start);
    creator->status = remote->driver->calls->put_if_absent(
        remote->driver, creator->probe->name,
        (struct wal_slice){creator->body, BODY_SIZE}, &creator->error);
    return NULL;
}

/* All at the same time, where threads can be made. */
static void create_all(struct probe *probe, struct creator *creators)
{
    (void)pthread_mutex_init(&probe->start, NULL);
    (void)pthread_mutex_lock(&probe->start);
    for (int i = 0; i < CREATORS; i++) {
        struct creator *creator = &creators[i];

        *creator =
            (struct creator){.probe = probe, .error = WAL_INIT(wal_error)};
        (void)snprintf(creator->body, BODY_SIZE, "%-15d", i);
        creator->has_thread =
            probe->remote->readers > 0 &&
            wal__thread_start(&creator->thread, create, creator) == 0;
    }
    (void)pthread_mutex_unlock(&probe->start);
    for (int i = 0; i < CREATORS; i++) {
        if (creators[i].has_thread) {
            (void)pthread_join(creators[i].thread, NULL);
        } else {
            (void)create(&creators[i]);
        }
    }
    (void)pthread_mutex_destroy(&probe->start);
}

/* One has created it, and the others were refused. *winner is NULL when the one
 * that created it did not see it: its request was repeated. */
static enum wal_status judge(const struct probe *probe,
                             const struct creator *creators,
                             const struct creator **winner,
                             struct wal_error *error)
{
    *winner = NULL;
    for (int i = 0; i < CREATORS; i++) {
        const struct creator *creator = &creators[i];

        if (creator->status == WAL_OK && *winner != NULL) {
            return wal__remote_is_no_remote(probe->name, error);
        }
        if (creator->status == WAL_OK) {
            *winner = creator;
        } else if (creator->status != WAL_EEXISTS) {
            wal__error_copy(error, &creator->error);
            return creator->status;
        }
    }
    return WAL_OK;
}

/* The object has the bytes of the one that created it, and is kept. */
static enum wal_status check_object(const struct probe *probe,
                                    const struct creator *winner,
                                    struct wal_error *error)
{
    struct wal_remote *remote = probe->remote;
    struct wal__buf bytes;
    enum wal_status status = remote->driver->calls->put_if_absent(
        remote->driver, probe->name, WAL_STR("later"), error);

    if (status == WAL_OK) {
        return wal__remote_is_no_remote(probe->name, error);
    }
    if (status != WAL_EEXISTS) {
        return status;
    }
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, probe->name, BODY_SIZE, &bytes, error);
    if (status == WAL_OK && winner != NULL &&
        (bytes.size != BODY_SIZE ||
         memcmp(bytes.data, winner->body, BODY_SIZE) != 0)) {
        status = wal__fail_at(error, WAL_EINVAL, 0, probe->name, 0,
                              "the remote returns other bytes than were "
                              "stored; use another remote");
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status try_round(struct wal_remote *remote,
                                 struct wal_error *error)
{
    struct creator creators[CREATORS];
    const struct creator *winner = NULL;
    struct probe probe = {.remote = remote};
    uint8_t random[16];
    enum wal_status status = wal__machine_random(random, error);
    enum wal_status removed;

    if (status != WAL_OK) {
        return status;
    }
    memcpy(probe.name, room, sizeof(room));
    wal__uuid_format(random, probe.name + sizeof(room) - 1);
    create_all(&probe, creators);
    status = judge(&probe, creators, &winner, error);
    if (status == WAL_OK) {
        status = check_object(&probe, winner, error);
    }
    removed = remote->driver->calls->remove(remote->driver, probe.name,
                                            status == WAL_OK ? error : NULL);
    return status == WAL_OK ? removed : status;
}

enum wal_status wal__remote_probe(struct wal_remote *remote,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ROUNDS && status == WAL_OK; i++) {
        status = try_round(remote, error);
    }
    return status;
}
