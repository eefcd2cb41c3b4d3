/*
 * memory_driver.c - an object store in memory (memory_driver.h).
 */
#include "tests/lib/remote/memory_driver.h"

#include <unistd.h>

#include "engine/base/error.h"

uint64_t memory_now_ms;

static uint64_t now_ms(void)
{
    return memory_now_ms;
}

static struct memory_driver *of(struct wal__driver *driver)
{
    return (struct memory_driver *)(void *)driver;
}

/* The place of a name: the first object that is not before it. */
static size_t place_of(struct memory_driver *memory, const char *name)
{
    size_t low = 0;
    size_t high = memory->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(memory->objects[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct memory_object *memory_find(struct memory_driver *memory, const char *name)
{
    size_t place = place_of(memory, name);

    return place < memory->count && strcmp(memory->objects[place].name, name) == 0
               ? &memory->objects[place]
               : NULL;
}

void memory_remove(struct memory_driver *memory, const char *name)
{
    struct memory_object *object = memory_find(memory, name);

    if (object != NULL) {
        free(object->data);
        memory->count--;
        memmove(object, object + 1,
                (size_t)(memory->objects + memory->count - object) * sizeof(*object));
    }
}

static struct memory_object make(const char *name, struct wal_slice bytes)
{
    struct memory_object object = {.size = (size_t)bytes.size};

    assert_true(strlen(name) < sizeof(object.name));
    memcpy(object.name, name, strlen(name));
    object.data = malloc(object.size + 1);
    assert_non_null(object.data);
    memcpy(object.data, bytes.data, object.size);
    return object;
}

/* Takes the object's bytes. */
static enum wal_status create(struct memory_driver *memory, struct memory_object object)
{
    size_t place = place_of(memory, object.name);

    if (memory_find(memory, object.name) != NULL) {
        if (!memory->ignores_conditions) {
            free(object.data);
            return WAL_EEXISTS;
        }
        free(memory->objects[place].data);
        memory->objects[place] = object;
        return WAL_OK;
    }
    assert_true(memory->count < MEMORY_OBJECTS);
    memmove(memory->objects + place + 1, memory->objects + place,
            (memory->count - place) * sizeof(object));
    memory->objects[place] = object;
    memory->count++;
    return WAL_OK;
}

static void do_late(struct memory_driver *memory, size_t at)
{
    struct memory_object object = memory->late[at];

    memory->late[at] = memory->late[--memory->late_count];
    (void)create(memory, object);
}

void memory_driver_settle(struct memory_driver *memory)
{
    while (memory->late_count > 0) {
        do_late(memory, (size_t)rng_below(&memory->random, memory->late_count));
    }
}

static void put_later(struct memory_driver *memory, const char *name, struct wal_slice bytes)
{
    if (memory->late_count == MEMORY_LATE) {
        do_late(memory, 0);
    }
    memory->late[memory->late_count++] = make(name, bytes);
}

static enum wal_status no_answer(const char *name, struct wal_error *error)
{
    return wal__fail_at(error, WAL_EREMOTE, 0, name, 0, "the remote did not answer");
}

/* What every call does first. WAL_EREMOTE: it fails before it does anything. */
static enum wal_status begin(struct memory_driver *memory, const char *call, const char *name,
                             struct wal_error *error)
{
    if (memory->hook != NULL) {
        memory->hook(memory->hook_ctx, call, name);
    }
    memory->calls++;
    if (memory->late_count > 0 && rng_below(&memory->random, 8) == 0) {
        do_late(memory, (size_t)rng_below(&memory->random, memory->late_count));
    }
    return memory->calls == memory->fail_at && !memory->fails_after ? no_answer(name, error)
                                                                    : WAL_OK;
}

/* What a call that reads does first. */
static enum wal_status begin_reading(struct memory_driver *memory, const char *call,
                                     const char *name, struct wal_error *error)
{
    enum wal_status status = begin(memory, call, name, error);

    if (status == WAL_OK &&
        (memory->calls == memory->fail_at ||
         (memory->other_faults > 0 && rng_below(&memory->random, 100000) < memory->other_faults))) {
        status = no_answer(name, error);
    }
    return status;
}

static enum wal_status put_if_absent(struct wal__driver *driver, const char *name,
                                     struct wal_slice bytes, struct wal_error *error)
{
    struct memory_driver *memory = of(driver);
    enum wal_status status = begin(memory, "create", name, error);
    uint64_t fault = 4;

    if (status != WAL_OK) {
        return status;
    }
    memory->puts++;
    if (memory->put_faults > 0 && rng_below(&memory->random, 1000) < memory->put_faults) {
        fault = rng_below(&memory->random, 4);
    }
    if (fault == 0 || fault == 1) {
        if (fault == 1) {
            put_later(memory, name, bytes);
        }
        return no_answer(name, error);
    }
    if (fault == 2) { /* repeated on the way */
        put_later(memory, name, bytes);
    }
    status = create(memory, make(name, bytes));
    if (fault == 3 || memory->calls == memory->fail_at) {
        return no_answer(name, error);
    }
    return status == WAL_OK ? WAL_OK : wal__fail_at(error, status, 0, name, 0, "it exists");
}

static enum wal_status put(struct wal__driver *driver, const char *name, struct wal_slice bytes,
                           struct wal_error *error)
{
    struct memory_driver *memory = of(driver);
    enum wal_status status = begin(memory, "put", name, error);

    if (status != WAL_OK) {
        return status;
    }
    memory_remove(memory, name);
    (void)create(memory, make(name, bytes));
    return memory->calls == memory->fail_at ? no_answer(name, error) : WAL_OK;
}

static enum wal_status get(struct wal__driver *driver, const char *name, uint64_t offset,
                           uint64_t size, struct wal__buf *bytes, struct wal_error *error)
{
    struct memory_driver *memory = of(driver);
    enum wal_status status = begin_reading(memory, "get", name, error);
    struct memory_object *object = memory_find(memory, name);

    if (status != WAL_OK) {
        return status;
    }
    if (object == NULL) {
        return wal__fail_at(error, WAL_ENOTFOUND, 0, name, 0, "there is none");
    }
    if (offset > object->size) {
        offset = object->size;
    }
    if (size > object->size - offset) {
        size = object->size - offset;
    }
    return wal__buf_append(bytes, object->data + offset, (size_t)size);
}

static enum wal_status head(struct wal__driver *driver, const char *name, uint64_t *size,
                            struct wal_error *error)
{
    (void)driver;
    (void)size;
    return no_answer(name, error);
}

static enum wal_status list(struct wal__driver *driver, const char *prefix, const char *after,
                            wal__driver_list_fn *each, void *ctx, struct wal_error *error)
{
    struct memory_driver *memory = of(driver);
    enum wal_status status = begin_reading(memory, "list", prefix, error);
    size_t place = place_of(memory, strcmp(after, prefix) > 0 ? after : prefix);

    if (status != WAL_OK) {
        return status;
    }
    for (; place < memory->count; place++) {
        const struct memory_object *object = &memory->objects[place];
        char name[WAL__STORE_OBJECT_SIZE];

        if (strcmp(object->name, after) == 0) {
            continue;
        }
        memcpy(name, object->name, sizeof(name));
        if (strncmp(name, prefix, strlen(prefix)) != 0 || !each(ctx, name, object->size)) {
            break;
        }
        if (memory->listed != NULL) {
            memory->listed(memory->hook_ctx, name);
            place = place_of(memory, name);
        }
    }
    return WAL_OK;
}

static enum wal_status remove_object(struct wal__driver *driver, const char *name,
                                     struct wal_error *error)
{
    struct memory_driver *memory = of(driver);
    enum wal_status status = begin_reading(memory, "remove", name, error);

    if (status == WAL_OK) {
        memory_remove(memory, name);
    }
    return status;
}

static void close_driver(struct wal__driver *driver)
{
    (void)driver;
}

void memory_driver_set_faults(struct memory_driver *memory, uint32_t put_faults)
{
    pthread_mutex_lock(&memory->mutex);
    memory->put_faults = put_faults;
    pthread_mutex_unlock(&memory->mutex);
}

/* --- with the lock ------------------------------------------------------ */

static enum wal_status locked_create(struct wal__driver *driver, const char *name,
                                     struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&of(driver)->mutex);
    status = put_if_absent(driver, name, bytes, error);
    pthread_mutex_unlock(&of(driver)->mutex);
    return status;
}

static enum wal_status locked_put(struct wal__driver *driver, const char *name,
                                  struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&of(driver)->mutex);
    status = put(driver, name, bytes, error);
    pthread_mutex_unlock(&of(driver)->mutex);
    return status;
}

/* Others get objects while this one waits. */
static void delay(struct memory_driver *memory)
{
    pthread_mutex_lock(&memory->mutex);
    if (++memory->readers > memory->most_readers) {
        memory->most_readers = memory->readers;
    }
    pthread_mutex_unlock(&memory->mutex);
    usleep(memory->delay_us);
    pthread_mutex_lock(&memory->mutex);
    memory->readers--;
    pthread_mutex_unlock(&memory->mutex);
}

static enum wal_status locked_get(struct wal__driver *driver, const char *name, uint64_t offset,
                                  uint64_t size, struct wal__buf *bytes, struct wal_error *error)
{
    enum wal_status status;

    if (of(driver)->delay_us > 0) {
        delay(of(driver));
    }
    pthread_mutex_lock(&of(driver)->mutex);
    status = get(driver, name, offset, size, bytes, error);
    pthread_mutex_unlock(&of(driver)->mutex);
    return status;
}

static enum wal_status locked_list(struct wal__driver *driver, const char *prefix,
                                   const char *after, wal__driver_list_fn *each, void *ctx,
                                   struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&of(driver)->mutex);
    status = list(driver, prefix, after, each, ctx, error);
    pthread_mutex_unlock(&of(driver)->mutex);
    return status;
}

static enum wal_status locked_remove(struct wal__driver *driver, const char *name,
                                     struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&of(driver)->mutex);
    status = remove_object(driver, name, error);
    pthread_mutex_unlock(&of(driver)->mutex);
    return status;
}

static const struct wal__driver_calls calls = {
    .put_if_absent = locked_create,
    .put = locked_put,
    .get = locked_get,
    .head = head,
    .list = locked_list,
    .remove = locked_remove,
    .close = close_driver,
};

void memory_driver_init(struct memory_driver *memory)
{
    pthread_mutexattr_t recursive;

    *memory = (struct memory_driver){.driver = {.calls = &calls}, .random = 1};
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&memory->mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    memory->objects = calloc(MEMORY_OBJECTS, sizeof(memory->objects[0]));
    assert_non_null(memory->objects);
    memory->remote =
        (struct wal_remote){.driver = &memory->driver, .heap = &wal__heap_libc, .now_ms = now_ms};
}

void memory_driver_deinit(struct memory_driver *memory)
{
    memory->hook = NULL;
    memory_driver_settle(memory);
    for (size_t i = 0; i < memory->count; i++) {
        free(memory->objects[i].data);
    }
    free(memory->objects);
    pthread_mutex_destroy(&memory->mutex);
}
