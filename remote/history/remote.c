/*
 * remote.c - the objects of a store in a remote (remote.h).
 */
#include "remote/history/remote.h"

#include <string.h>

#include "engine/base/error.h"

enum {
    PAGE = 1000 /* names that a listing reads before it skips some */
};

bool wal__uuid_is_zero(const uint8_t uuid[16])
{
    static const uint8_t zero[16];

    return memcmp(uuid, zero, sizeof(zero)) == 0;
}

/* --- one object --------------------------------------------------------- */

enum wal_status wal__remote_get(struct wal_remote *remote, const char *name,
                                uint64_t max, struct wal__buf *bytes,
                                struct wal_error *error)
{
    enum wal_status status;

    bytes->size = 0;
    status = remote->driver->calls->get(remote->driver, name, 0, max + 1, bytes,
                                        error);
    if (status == WAL_OK && bytes->size > max) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it has more than %llu "
                              "bytes",
                              (unsigned long long)max);
    }
    return status;
}

enum wal_status wal__remote_create(struct wal_remote *remote, const char *name,
                                   struct wal_slice bytes,
                                   struct wal__buf *found,
                                   struct wal_error *error)
{
    enum wal_status status = remote->driver->calls->put_if_absent(
        remote->driver, name, bytes, error);

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
    if (found->size == bytes.size &&
        memcmp(found->data, bytes.data, found->size) == 0) {
        return WAL_OK;
    }
    return wal__fail_at(error, WAL_EEXISTS, 0, name, 0,
                        "the remote has the object with other content");
}

enum wal_status wal__remote_has(struct wal_remote *remote,
                                const struct wal__store_object *object,
                                bool *is_there, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(object, name);
    wal__buf_init(&bytes, remote->heap);
    status =
        remote->driver->calls->get(remote->driver, name, 0, 1, &bytes, error);
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
    if (!wal__store_object_parse(name, &object) ||
        object.kind != numbers->wanted.kind) {
        return true;
    }
    if (numbers->first == 0) {
        numbers->first = number_of(&object);
    }
    numbers->last = number_of(&object);
    return ++numbers->count < numbers->limit;
}

static enum wal_status list_numbers(struct wal_remote *remote, uint64_t after,
                                    struct numbers *numbers,
                                    struct wal_error *error)
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
    return remote->driver->calls->list(remote->driver, prefix, name, see_number,
                                       numbers, error);
}

enum wal_status wal__remote_next(struct wal_remote *remote,
                                 const struct wal__store_object *object,
                                 uint64_t after, uint64_t *number,
                                 struct wal_error *error)
{
    struct numbers numbers = {.wanted = *object, .limit = 1};
    enum wal_status status = list_numbers(remote, after, &numbers, error);

    if (status == WAL_OK) {
        *number = numbers.first;
    }
    return status;
}

enum wal_status wal__remote_last(struct wal_remote *remote,
                                 const struct wal__store_object *object,
                                 uint64_t *number, struct wal_error *error)
{
    struct numbers numbers = {.wanted = *object, .limit = PAGE};
    uint64_t last = 0; /* exists, or 0 */
    uint64_t skip = 0;

    for (;;) {
        enum wal_status status =
            list_numbers(remote, last + skip, &numbers, error);

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

/* Sets `after` to a text that is after the name, and before the id of each
 * store that is. False: the name begins with the id of a store. */
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
            after[size - 1] =
                (char)(after[size - 1] == '9' ? 'a' : after[size - 1] + 1);
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

enum wal_status wal__remote_next_store(struct wal_remote *remote,
                                       struct wal__store_object *object,
                                       struct wal_error *error)
{
    struct finding finding = {.found = object};
    enum wal_status status;

    /* After everything that the store has. */
    if (object->kind != 0) {
        wal__uuid_format(object->uuid, finding.after);
        memcpy(finding.after + WAL__UUID_TEXT_SIZE - 1, "/zz", sizeof("/zz"));
    }
    object->kind = 0;
    do {
        char after[sizeof(finding.after)];

        memcpy(after, finding.after, sizeof(after));
        finding.others = 0;
        finding.skips = false;
        status = remote->driver->calls->list(remote->driver, "", after,
                                             see_store, &finding, error);
    } while (status == WAL_OK && finding.skips);
    return status;
}

enum wal_status wal__remote_find_store(struct wal_remote *remote,
                                       uint8_t uuid[16],
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
        return wal__fail(
            error, WAL_EINVAL,
            "the remote has several stores; choose one by its "
            "id, with --store-id: `agentwal remote list URL` shows "
            "them");
    }
    memcpy(uuid, first.uuid, sizeof(first.uuid));
    return WAL_OK;
}
