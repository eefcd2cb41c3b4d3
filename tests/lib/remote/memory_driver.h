/*
 * memory_driver.h - an object store in memory whose calls fail: the Nth one, before it does
 * anything or after it; or at random, with PUTs that are done later, and repeated. Calls may come
 * from several threads; the hook is called with the lock, by the thread that calls, and may call
 * the driver.
 */
#ifndef AGENTWAL_TESTS_LIB_REMOTE_MEMORY_DRIVER_H
#define AGENTWAL_TESTS_LIB_REMOTE_MEMORY_DRIVER_H

#include <pthread.h>

#include "remote/history/remote.h"
#include "tests/lib/kit/store_kit.h"

enum {
    MEMORY_OBJECTS = 16384,
    MEMORY_LATE = 64 /* PUTs that wait to be done */
};

struct memory_object {
    char name[WAL__STORE_OBJECT_SIZE];
    uint8_t *data;
    size_t size;
};

struct memory_driver {
    struct wal__driver driver;
    struct wal_remote remote;      /* of the driver */
    struct memory_object *objects; /* in order */
    size_t count;
    struct memory_object late[MEMORY_LATE];
    size_t late_count;
    uint64_t calls; /* so far */
    uint64_t puts;
    uint64_t fail_at;        /* fails the call of this number; 0: none */
    bool fails_after;        /* it is done before */
    bool ignores_conditions; /* as a store that does not know them */
    uint64_t random;         /* state */
    uint32_t put_faults;     /* of 1,000 PUTs */
    uint32_t other_faults;   /* of 100,000 other calls */
    /* Called before each call, or NULL. */
    void (*hook)(void *ctx, const char *call, const char *name);
    /* Called while a list goes on, after each name; it may add objects. */
    void (*listed)(void *ctx, const char *name);
    void *hook_ctx;
    pthread_mutex_t mutex;
    uint32_t delay_us;     /* of a get, without the lock */
    uint32_t readers;      /* gets that wait now */
    uint32_t most_readers; /* at a time */
};

void memory_driver_init(struct memory_driver *memory);
void memory_driver_deinit(struct memory_driver *memory);

/* Sets put_faults while other threads use the driver. */
void memory_driver_set_faults(struct memory_driver *memory, uint32_t put_faults);

/* Does the PUTs that wait, in any order. */
void memory_driver_settle(struct memory_driver *memory);

/* NULL: there is none. */
struct memory_object *memory_find(struct memory_driver *memory, const char *name);
void memory_remove(struct memory_driver *memory, const char *name);

/* Milliseconds that the remotes of tests read. */
extern uint64_t memory_now_ms;

#endif
