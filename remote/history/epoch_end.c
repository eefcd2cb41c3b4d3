/*
 * epoch_end.c - where the parts of an epoch end (history.h).
 *
 * A writer sends a part when all up to WAL__PART_WINDOW numbers before it are
 * stored, so that only among the last ones of an epoch any can be missing
 * without being lost.
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/history.h"
#include "remote/layout/part_object.h"

/* The objects after a number, up to WAL__PART_WINDOW of them, which is all. */
struct tail {
    uint64_t first; /* number of sizes[0] */
    uint64_t sizes[WAL__PART_WINDOW];
    bool is_there[WAL__PART_WINDOW];
};

static bool see_object(void *ctx, const char *name, uint64_t size)
{
    struct tail *tail = ctx;
    struct wal__store_object object;

    if (wal__store_object_parse(name, &object) &&
        object.kind == WAL__OBJECT_PART && object.number >= tail->first &&
        object.number - tail->first < WAL__PART_WINDOW) {
        tail->sizes[object.number - tail->first] = size;
        tail->is_there[object.number - tail->first] = true;
    }
    return true;
}

static enum wal_status list_tail(struct wal_remote *remote,
                                 const struct wal__store_object *part,
                                 struct tail *tail, struct wal_error *error)
{
    struct wal__store_object place = *part;
    char prefix[WAL__STORE_OBJECT_SIZE];
    char after[WAL__STORE_OBJECT_SIZE] = "";

    wal__store_object_prefix(&place, prefix);
    place.number = tail->first - 1;
    if (place.number > 0) {
        wal__store_object_format(&place, after);
    }
    return remote->driver->calls->list(remote->driver, prefix, after,
                                       see_object, tail, error);
}

/* Sets *floor to that of the part. */
static enum wal_status read_floor(struct wal_remote *remote,
                                  const struct wal__store_object *part,
                                  uint64_t size, uint64_t *floor,
                                  struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal_slice none;
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name,
                                        size - WAL__PART_TRAILER_SIZE,
                                        WAL__PART_TRAILER_SIZE, &bytes, error);
    if (status == WAL_OK) {
        status =
            wal__part_object_open((struct wal_slice){bytes.data, bytes.size},
                                  name, 0, &none, floor, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

/*
 * WAL_ECORRUPT when the missing number was stored once: a fence is after it,
 * which got the first number that was free; or the floor of the last part is
 * not below it.
 */
static enum wal_status check_missing(struct wal_remote *remote,
                                     struct wal__store_object object,
                                     const struct tail *tail, uint64_t missing,
                                     struct wal_error *error)
{
    uint64_t floor = 0;
    enum wal_status status = WAL_OK;
    char name[WAL__STORE_OBJECT_SIZE];

    for (uint64_t i = missing - tail->first; i < WAL__PART_WINDOW; i++) {
        object.number = tail->first + i;
        if (tail->is_there[i] && tail->sizes[i] <= WAL__FENCE_JSON_MAX) {
            floor = missing;
        } else if (tail->is_there[i] && status == WAL_OK && floor < missing) {
            status = read_floor(remote, &object, tail->sizes[i], &floor, error);
        }
    }
    if (status == WAL_OK && floor >= missing) {
        object.number = missing;
        wal__store_object_format(&object, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

enum wal_status wal__epoch_end_find(struct wal_remote *remote,
                                    const struct wal__store_object *part,
                                    struct wal__epoch_end *end,
                                    struct wal_error *error)
{
    struct tail tail = {.first = 1};
    struct wal__epoch_end found = {.number = 0};
    uint64_t last = 0;
    enum wal_status status = wal__remote_last(remote, part, &last, error);

    if (status == WAL_OK && last > WAL__PART_WINDOW) {
        tail.first = last - WAL__PART_WINDOW + 1;
        found.number = tail.first - 1;
        found.part = found.number;
    }
    if (status == WAL_OK && last > 0) {
        status = list_tail(remote, part, &tail, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    for (uint64_t i = 0;
         i < WAL__PART_WINDOW && tail.is_there[i] && !found.is_fenced; i++) {
        found.number = tail.first + i;
        found.is_fenced = tail.sizes[i] <= WAL__FENCE_JSON_MAX;
        found.part = found.is_fenced ? found.part : found.number;
    }
    found.has_more = found.number < last;
    if (found.has_more && !found.is_fenced) {
        status = check_missing(remote, *part, &tail, found.number + 1, error);
    }
    if (status == WAL_OK) {
        *end = found;
    }
    return status;
}
