/*
 * list.h - items that a job collects in its thread, in its arena, for its
 * promise's value.
 */
#ifndef AGENTWAL_NODE_LIST_H
#define AGENTWAL_NODE_LIST_H

#include "bindings/node/native/base/call.h"

/* The first member of an item. */
struct list_item {
    struct list_item *next;
};

/* Zeroed, it is empty. */
struct list {
    struct list_item *first;
    struct list_item *last;
    uint32_t count;
    bool lacks_memory; /* an item was left out */
};

/* Adds an item of `size` bytes, zeroed after its struct list_item. NULL without
 * memory, which list_check then reports. */
void *list_add(struct list *list, struct arena *arena, size_t size);

/* Copies text, or an error if there is one, for an item of the list. */
struct wal_slice list_copy_text(struct list *list, struct arena *arena,
                                struct wal_slice text);
const struct wal_error *list_copy_error(struct list *list, struct arena *arena,
                                        const struct wal_error *error);

/* Returns `status`, or WAL_ENOMEM for a success if something was left out. */
enum wal_status list_check(const struct list *list, enum wal_status status,
                           struct wal_error *error);

/* An array with what `make` makes of each item. */
napi_value list_make(struct call *call, const struct list *list,
                     napi_value (*make)(struct call *call,
                                        const struct list_item *item));

#endif
