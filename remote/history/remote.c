/*
 * remote.c - the objects of a store in a remote (remote.h), and what remotes ask of this machine.
 */
#include "remote/history/remote.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "engine/base/thread.h"
#include "format/bytes/bytes.h"

/* --- this machine --------------------------------------------------------- */

uint64_t wal__machine_now_ms(void)
{
    return (uint64_t)wal__system_clock_ns(WAL__CLOCK_BOOT) / 1000000;
}

int64_t wal__machine_unix_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (int64_t)now.tv_sec * 1000 + (int64_t)now.tv_nsec / 1000000;
}

void wal__machine_host(char host[WAL__EPOCH_HOST_SIZE])
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) != 0) {
        name[0] = '\0';
    }
    name[WAL__EPOCH_HOST_SIZE - 1] = '\0';
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (name[i] <= 0x20 || name[i] > 0x7e) {
            name[i] = '-';
        }
    }
    memcpy(host, name, WAL__EPOCH_HOST_SIZE);
}

/* --- objects -------------------------------------------------------------- */

enum {
    PAGE = 1000 /* names that a listing reads before it skips some */
};

bool wal__uuid_is_zero(const uint8_t uuid[16])
{
    static const uint8_t zero[16];

    return memcmp(uuid, zero, sizeof(zero)) == 0;
}

enum wal_status wal__remote_check_given(const struct wal_remote *remote, bool is_given,
                                        const char *name, struct wal_error *error)
{
    return remote == NULL ? wal__invalid(error, "the remote is null")
           : !is_given    ? wal__invalid(error, "the %s is null", name)
                          : WAL_OK;
}

/* --- one object --------------------------------------------------------- */

enum wal_status wal__remote_get(struct wal_remote *remote, const char *name, uint64_t max,
                                struct wal__buf *bytes, struct wal_error *error)
{
    enum wal_status status;

    bytes->size = 0;
    status = remote->driver->calls->get(remote->driver, name, 0, max + 1, bytes, error);
    if (status == WAL_OK && bytes->size > max) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it has more than %llu "
                              "bytes",
                              (unsigned long long)max);
    }
    return status;
}

enum wal_status wal__remote_create(struct wal_remote *remote, const char *name,
                                   struct wal_slice bytes, struct wal__buf *found,
                                   struct wal_error *error)
{
    enum wal_status status =
        remote->driver->calls->put_if_absent(remote->driver, name, bytes, error);

    if (status != WAL_EEXISTS) {
        return status;
    }
    status = wal__remote_get(remote, name, WAL__OBJECT_MAX, found, error);
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, WAL_EREMOTE, 0, name, 0,
                            "the remote has the object, and does not find it");
    }
    if (status != WAL_OK) {
        return status;
    }
    if (found->size == bytes.size && memcmp(found->data, bytes.data, found->size) == 0) {
        return WAL_OK;
    }
    return wal__fail_at(error, WAL_EEXISTS, 0, name, 0,
                        "the remote has the object with other content");
}

enum wal_status wal__remote_has(struct wal_remote *remote, const struct wal__store_object *object,
                                bool *is_there, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(object, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name, 0, 1, &bytes, error);
    wal__buf_deinit(&bytes);
    *is_there = status == WAL_OK;
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* --- listings ----------------------------------------------------------- */

/* Numbers of one kind of object, in order. */
struct numbers {
    struct wal__store_object wanted;
    uint64_t first; /* 0: none */
    uint64_t last;
    uint32_t count;
    uint32_t limit;
};

static uint64_t number_of(const struct wal__store_object *object)
{
    return object->kind == WAL__OBJECT_EPOCH ? object->epoch : object->number;
}

/* Names of another form are ignored: they are not of this version. */
static bool see_number(void *ctx, const char *name, uint64_t size)
{
    struct numbers *numbers = ctx;
    struct wal__store_object object;

    (void)size;
    if (!wal__store_object_parse(name, &object) || object.kind != numbers->wanted.kind) {
        return true;
    }
    if (numbers->first == 0) {
        numbers->first = number_of(&object);
    }
    numbers->last = number_of(&object);
    return ++numbers->count < numbers->limit;
}

static enum wal_status list_numbers(struct wal_remote *remote, uint64_t after,
                                    struct numbers *numbers, struct wal_error *error)
{
    struct wal__store_object place = numbers->wanted;
    char prefix[WAL__STORE_OBJECT_SIZE];
    char name[WAL__STORE_OBJECT_SIZE] = "";

    wal__store_object_prefix(&place, prefix);
    if (after > 0) {
        place.epoch = place.kind == WAL__OBJECT_EPOCH ? after : place.epoch;
        place.number = after;
        wal__store_object_format(&place, name);
    }
    numbers->first = 0;
    numbers->last = 0;
    numbers->count = 0;
    return remote->driver->calls->list(remote->driver, prefix, name, see_number, numbers, error);
}

enum wal_status wal__remote_next(struct wal_remote *remote, const struct wal__store_object *object,
                                 uint64_t after, uint64_t *number, struct wal_error *error)
{
    struct numbers numbers = {.wanted = *object, .limit = 1};
    enum wal_status status = list_numbers(remote, after, &numbers, error);

    if (status == WAL_OK) {
        *number = numbers.first;
    }
    return status;
}

enum wal_status wal__remote_last(struct wal_remote *remote, const struct wal__store_object *object,
                                 uint64_t *number, struct wal_error *error)
{
    struct numbers numbers = {.wanted = *object, .limit = PAGE};
    uint64_t last = 0; /* exists, or 0 */
    uint64_t skip = 0;

    for (;;) {
        enum wal_status status = list_numbers(remote, last + skip, &numbers, error);

        if (status != WAL_OK) {
            return status;
        }
        if (numbers.last > 0) {
            last = numbers.last;
            if (numbers.count < PAGE) {
                break;
            }
            skip = skip == 0 ? PAGE : skip * 4;
        } else if (skip == 0) {
            break;
        } else {
            skip /= 4;
        }
    }
    *number = last;
    return WAL_OK;
}

/* --- stores ------------------------------------------------------------- */

/* What a listing of all objects looks for. */
struct finding {
    struct wal__store_object *found;
    bool is_there;
    bool skips; /* it ended at objects of others; the next one begins later */
    char after[WAL__UUID_TEXT_SIZE + 4];
    uint32_t others; /* so far */
};

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Sets `after` to a text that is after the name, and before the id of each store that is. False:
 * the name begins with the id of a store. */
static bool skip(const char *name, char *after)
{
    size_t size = 0;

    while (size < WAL__UUID_TEXT_SIZE - 1 && is_digit(name[size])) {
        size++;
    }
    memcpy(after, name, size);
    if (size == WAL__UUID_TEXT_SIZE - 1 && name[size] <= '/') {
        return false;
    }
    if (size < WAL__UUID_TEXT_SIZE - 1 && (uint8_t)name[size] < 'a') {
        after[size] = (uint8_t)name[size] < '0' ? '0' : 'a';
        size++;
    } else {
        while (size > 0 && after[size - 1] == 'f') {
            size--;
        }
        if (size == 0) {
            after[size++] = 'g'; /* no id is after the name */
        } else {
            after[size - 1] = (char)(after[size - 1] == '9' ? 'a' : after[size - 1] + 1);
        }
    }
    after[size] = '\0';
    return true;
}

static bool see_store(void *ctx, const char *name, uint64_t size)
{
    struct finding *finding = ctx;

    (void)size;
    finding->is_there = wal__store_object_parse(name, finding->found);
    if (finding->is_there) {
        return false;
    }
    if (++finding->others < PAGE || !skip(name, finding->after)) {
        return true;
    }
    finding->skips = is_digit(finding->after[0]);
    return false;
}

enum wal_status wal__remote_next_store(struct wal_remote *remote, struct wal__store_object *object,
                                       struct wal_error *error)
{
    struct finding finding = {.found = object};
    enum wal_status status;

    /* After everything that the store has. */
    if (object->kind != 0) {
        wal__hex_write(object->uuid, 16, finding.after);
        memcpy(finding.after + WAL__UUID_TEXT_SIZE - 1, "/zz", sizeof("/zz"));
    }
    object->kind = 0;
    do {
        char after[sizeof(finding.after)];

        memcpy(after, finding.after, sizeof(after));
        finding.others = 0;
        finding.skips = false;
        status = remote->driver->calls->list(remote->driver, "", after, see_store, &finding, error);
    } while (status == WAL_OK && finding.skips);
    return status;
}

enum wal_status wal__remote_find_store(struct wal_remote *remote, uint8_t uuid[16],
                                       struct wal_error *error)
{
    struct wal__store_object first = {.epoch = 0};
    struct wal__store_object second;
    enum wal_status status = wal__remote_next_store(remote, &first, error);

    if (status != WAL_OK) {
        return status;
    }
    if (first.kind == 0) {
        return wal__fail(error, WAL_ENOTFOUND, "the remote has no store");
    }
    second = first;
    status = wal__remote_next_store(remote, &second, error);
    if (status != WAL_OK) {
        return status;
    }
    if (second.kind != 0) {
        return wal__fail(error, WAL_EINVAL,
                         "the remote has several stores; choose one by its "
                         "id, with --store-id: `agentwal remote list URL` shows "
                         "them");
    }
    memcpy(uuid, first.uuid, sizeof(first.uuid));
    return WAL_OK;
}

/* --- the probe ------------------------------------------------------------ */

/*
 * Some stores look for the object first and create it later, and refuse it mostly. So several
 * threads create one at the same time, a few times: in the first round their connections are made
 * meanwhile.
 */

enum { ROUNDS = 4, CREATORS = 8, BODY_SIZE = 16 };

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

enum wal_status wal__remote_is_no_remote(const char *name, struct wal_error *error)
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
        remote->driver, creator->probe->name, (struct wal_slice){creator->body, BODY_SIZE},
        &creator->error);
    return NULL;
}

/* All at the same time, where threads can be made. */
static void create_all(struct probe *probe, struct creator *creators)
{
    (void)pthread_mutex_init(&probe->start, NULL);
    (void)pthread_mutex_lock(&probe->start);
    for (int i = 0; i < CREATORS; i++) {
        struct creator *creator = &creators[i];

        *creator = (struct creator){.probe = probe, .error = WAL_INIT(wal_error)};
        (void)snprintf(creator->body, BODY_SIZE, "%-15d", i);
        creator->has_thread =
            probe->remote->readers > 0 && wal__thread_start(&creator->thread, create, creator) == 0;
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

/* One has created it, and the others were refused. *winner is NULL when the one that created it did
 * not see it: its request was repeated. */
static enum wal_status judge(const struct probe *probe, const struct creator *creators,
                             const struct creator **winner, struct wal_error *error)
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
static enum wal_status check_object(const struct probe *probe, const struct creator *winner,
                                    struct wal_error *error)
{
    struct wal_remote *remote = probe->remote;
    struct wal__buf bytes;
    enum wal_status status =
        remote->driver->calls->put_if_absent(remote->driver, probe->name, WAL_STR("later"), error);

    if (status == WAL_OK) {
        return wal__remote_is_no_remote(probe->name, error);
    }
    if (status != WAL_EEXISTS) {
        return status;
    }
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, probe->name, BODY_SIZE, &bytes, error);
    if (status == WAL_OK && winner != NULL &&
        (bytes.size != BODY_SIZE || memcmp(bytes.data, winner->body, BODY_SIZE) != 0)) {
        status = wal__fail_at(error, WAL_EINVAL, 0, probe->name, 0,
                              "the remote returns other bytes than were "
                              "stored; use another remote");
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status try_round(struct wal_remote *remote, struct wal_error *error)
{
    struct creator creators[CREATORS];
    const struct creator *winner = NULL;
    struct probe probe = {.remote = remote};
    uint8_t random[16];
    enum wal_status status;
    enum wal_status removed;

    wal__system_random(random, sizeof(random));
    memcpy(probe.name, room, sizeof(room));
    wal__hex_write(random, 16, probe.name + sizeof(room) - 1);
    create_all(&probe, creators);
    status = judge(&probe, creators, &winner, error);
    if (status == WAL_OK) {
        status = check_object(&probe, winner, error);
    }
    removed =
        remote->driver->calls->remove(remote->driver, probe.name, status == WAL_OK ? error : NULL);
    return status == WAL_OK ? removed : status;
}

enum wal_status wal__remote_probe(struct wal_remote *remote, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ROUNDS && status == WAL_OK; i++) {
        status = try_round(remote, error);
    }
    return status;
}
