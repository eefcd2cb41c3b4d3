/*
 * fetch.c - reading objects ahead (fetch.h).
 *
 * The items are a queue: [0, head) were returned, [head, taken) are being read or were read, each
 * to the slot of its number. All fields below `mutex` are guarded by it, but for the slot of an
 * item that one thread has taken.
 */
#include "remote/history/fetch.h"

#include <pthread.h>

#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "format/bytes/assert.h"

/* --- how many bytes are on the way ---------------------------------------- */

void wal__flow_init(struct wal__flow *flow, uint64_t bytes, uint64_t max)
{
    *flow = (struct wal__flow){.bytes = bytes < max ? bytes : max, .max = max};
}

uint64_t wal__flow_object_size(const struct wal__flow *flow, uint64_t max)
{
    const uint64_t half = flow->bytes / 2;
    const uint64_t size = half < WAL__FLOW_MIN ? WAL__FLOW_MIN : half;

    return size < max ? size : max;
}

bool wal__flow_has_room(const struct wal__flow *flow, uint64_t on_way, uint64_t size)
{
    return on_way == 0 || on_way + size <= flow->bytes;
}

/* Fewer, once for all that were on the way together. */
static void cut(struct wal__flow *flow, uint64_t bytes, uint64_t now_ms)
{
    flow->bytes = bytes < WAL__FLOW_MIN ? WAL__FLOW_MIN : bytes;
    if (flow->bytes > flow->max) {
        flow->bytes = flow->max;
    }
    flow->cut_ms = now_ms;
}

void wal__flow_count(struct wal__flow *flow, uint64_t size, bool failed, uint64_t began_ms,
                     uint64_t ended_ms)
{
    const uint64_t took_ms = ended_ms > began_ms ? ended_ms - began_ms : 0;
    /* A single one may be larger. */
    const uint64_t on_way = size > flow->bytes ? size : flow->bytes;

    if (!failed && took_ms < WAL__FLOW_FAST_MS) {
        flow->bytes += size;
        if (flow->bytes > flow->max) {
            flow->bytes = flow->max;
        }
    } else if (began_ms < flow->cut_ms) {
        return;
    } else if (failed) {
        cut(flow, flow->bytes / 4, ended_ms);
    } else if (took_ms > WAL__FLOW_SLOW_MS) {
        cut(flow, on_way / 1024 * WAL__FLOW_SLOW_MS / took_ms * 1024, ended_ms);
    }
}

/* --- reading ahead -------------------------------------------------------- */

enum {
    KEPT = 256 * 1024,            /* bytes of a slot that is used again */
    FLOW_BYTES = 16 * 1024 * 1024 /* on the way at first */
};

struct slot {
    struct wal__buf bytes;
    struct wal_error error;
    enum wal_status status;
    bool is_read;
};

struct wal__fetch {
    struct wal_remote *remote;
    const struct wal__fetch_item *items;
    size_t count;
    pthread_t threads[WAL__FETCH_READERS];
    uint32_t thread_count;
    pthread_mutex_t mutex;
    pthread_cond_t has_room; /* for threads, or they stop */
    pthread_cond_t is_read;  /* an item, for the caller */
    size_t taken;
    size_t head;
    bool is_held; /* the caller has the object before the head */
    bool stops;
    uint64_t bytes; /* sizes of those taken, or held */
    struct wal__flow flow;
    struct slot slots[WAL__FETCH_AHEAD];
};

static struct slot *slot_of(struct wal__fetch *fetch, size_t at)
{
    return &fetch->slots[at % WAL__FETCH_AHEAD];
}

static void read_item(struct wal__fetch *fetch, size_t at)
{
    const struct wal__fetch_item *item = &fetch->items[at];
    struct wal__driver *driver = fetch->remote->driver;
    struct slot *slot = slot_of(fetch, at);

    slot->error = (struct wal_error)WAL_INIT(wal_error);
    if (item->max == 0) {
        slot->status =
            wal__remote_get(fetch->remote, item->name, WAL__OBJECT_MAX, &slot->bytes, &slot->error);
        return;
    }
    slot->bytes.size = 0;
    slot->status = driver->calls->get(driver, item->name, 0, item->max, &slot->bytes, &slot->error);
}

/* Whether the next item may be read. With the mutex. */
static bool has_room(const struct wal__fetch *fetch)
{
    const size_t first = fetch->is_held ? fetch->head - 1 : fetch->head;

    if (fetch->taken == fetch->count || fetch->taken - first >= WAL__FETCH_AHEAD) {
        return false;
    }
    return fetch->taken == fetch->head ||
           wal__flow_has_room(&fetch->flow, fetch->bytes, fetch->items[fetch->taken].size);
}

/* A thread that takes an item wakes the next one if there is room for more, and each looks again
 * after its item: so one is woken for each item, not all. */
static void *run(void *ctx)
{
    struct wal__fetch *fetch = ctx;

    (void)pthread_mutex_lock(&fetch->mutex);
    while (!fetch->stops && fetch->taken < fetch->count) {
        const size_t at = fetch->taken;
        uint64_t began_ms;

        if (!has_room(fetch)) {
            (void)pthread_cond_wait(&fetch->has_room, &fetch->mutex);
            continue;
        }
        fetch->taken++;
        fetch->bytes += fetch->items[at].size;
        if (has_room(fetch)) {
            (void)pthread_cond_signal(&fetch->has_room);
        }
        (void)pthread_mutex_unlock(&fetch->mutex);
        began_ms = fetch->remote->now_ms();
        read_item(fetch, at);
        (void)pthread_mutex_lock(&fetch->mutex);
        slot_of(fetch, at)->is_read = true;
        wal__flow_count(&fetch->flow, slot_of(fetch, at)->bytes.size,
                        slot_of(fetch, at)->status == WAL_EREMOTE, began_ms,
                        fetch->remote->now_ms());
        if (at == fetch->head) {
            (void)pthread_cond_signal(&fetch->is_read);
        }
    }
    (void)pthread_mutex_unlock(&fetch->mutex);
    return NULL;
}

/* Starts threads. If none can be had, the caller reads. */
static void start_threads(struct wal__fetch *fetch)
{
    uint32_t count = fetch->remote->readers;

    if (count > WAL__FETCH_READERS) {
        count = WAL__FETCH_READERS;
    }
    if (count > fetch->count) {
        count = (uint32_t)fetch->count;
    }
    /* One object is read no faster by another thread. */
    if (count < 2) {
        return;
    }
    while (fetch->thread_count < count &&
           wal__thread_start(&fetch->threads[fetch->thread_count], run, fetch) == 0) {
        fetch->thread_count++;
    }
}

enum wal_status wal__fetch_open(struct wal_remote *remote, const struct wal__fetch_item *items,
                                size_t count, struct wal__fetch **fetch, struct wal_error *error)
{
    struct wal__fetch *opened = wal__heap_zalloc(remote->heap, sizeof(*opened));

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->remote = remote;
    opened->items = items;
    opened->count = count;
    wal__flow_init(&opened->flow, FLOW_BYTES, WAL__FETCH_BYTES);
    for (size_t i = 0; i < WAL__FETCH_AHEAD; i++) {
        wal__buf_init(&opened->slots[i].bytes, remote->heap);
    }
    (void)pthread_mutex_init(&opened->mutex, NULL);
    (void)pthread_cond_init(&opened->has_room, NULL);
    (void)pthread_cond_init(&opened->is_read, NULL);
    start_threads(opened);
    *fetch = opened;
    return WAL_OK;
}

/* Ends what the caller has of the object before the head. With the mutex. */
static void release(struct wal__fetch *fetch)
{
    struct slot *slot;

    if (!fetch->is_held) {
        return;
    }
    slot = slot_of(fetch, fetch->head - 1);
    slot->is_read = false;
    if (slot->bytes.capacity > KEPT) {
        wal__buf_deinit(&slot->bytes);
        wal__buf_init(&slot->bytes, fetch->remote->heap);
    }
    fetch->is_held = false;
    fetch->bytes -= fetch->items[fetch->head - 1].size;
    (void)pthread_cond_signal(&fetch->has_room);
}

/* Waits until the item at the head is read, or reads it. With the mutex. */
static void await_head(struct wal__fetch *fetch)
{
    struct slot *slot = slot_of(fetch, fetch->head);

    if (fetch->thread_count == 0) {
        fetch->bytes += fetch->items[fetch->taken].size;
        read_item(fetch, fetch->taken++);
        return;
    }
    while (!slot->is_read) {
        (void)pthread_cond_wait(&fetch->is_read, &fetch->mutex);
    }
}

enum wal_status wal__fetch_next(struct wal__fetch *fetch, struct wal_slice *object,
                                struct wal_error *error)
{
    struct slot *slot;

    (void)pthread_mutex_lock(&fetch->mutex);
    release(fetch);
    if (fetch->head == fetch->count) {
        (void)pthread_mutex_unlock(&fetch->mutex);
        return WAL_END;
    }
    await_head(fetch);
    slot = slot_of(fetch, fetch->head);
    fetch->head++;
    fetch->is_held = true;
    WAL__ASSERT(fetch->head <= fetch->taken);
    (void)pthread_mutex_unlock(&fetch->mutex);
    if (slot->status != WAL_OK) {
        wal__error_copy(error, &slot->error);
        return slot->status;
    }
    *object = (struct wal_slice){slot->bytes.data, slot->bytes.size};
    return WAL_OK;
}

void wal__fetch_close(struct wal__fetch *fetch)
{
    if (fetch == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&fetch->mutex);
    fetch->stops = true;
    (void)pthread_cond_broadcast(&fetch->has_room);
    (void)pthread_mutex_unlock(&fetch->mutex);
    for (uint32_t i = 0; i < fetch->thread_count; i++) {
        (void)pthread_join(fetch->threads[i], NULL);
    }
    for (size_t i = 0; i < WAL__FETCH_AHEAD; i++) {
        wal__buf_deinit(&fetch->slots[i].bytes);
    }
    (void)pthread_mutex_destroy(&fetch->mutex);
    (void)pthread_cond_destroy(&fetch->has_room);
    (void)pthread_cond_destroy(&fetch->is_read);
    wal__heap_free(fetch->remote->heap, fetch);
}
