/*
 * list.c - what a job collects (list.h).
 */
#include "bindings/node/native/base/list.h"

#include <stdio.h>
#include <string.h>

#include "bindings/node/native/base/value.h"

void *list_add(struct list *list, struct arena *arena, size_t size)
{
    struct list_item *item = arena_calloc(arena, 1, size);

    if (item == NULL) {
        list->lacks_memory = true;
        return NULL;
    }
    if (list->last != NULL) {
        list->last->next = item;
    } else {
        list->first = item;
    }
    list->last = item;
    list->count++;
    return item;
}

struct wal_slice list_copy_text(struct list *list, struct arena *arena,
                                struct wal_slice text)
{
    char *copy;

    if (text.size == 0) {
        return (struct wal_slice){NULL, 0};
    }
    copy = arena_alloc(arena, text.size);
    if (copy == NULL) {
        list->lacks_memory = true;
        return (struct wal_slice){NULL, 0};
    }
    memcpy(copy, text.data, text.size);
    return (struct wal_slice){copy, text.size};
}

const struct wal_error *list_copy_error(struct list *list, struct arena *arena,
                                        const struct wal_error *error)
{
    struct wal_error *copy;

    if (error == NULL) {
        return NULL;
    }
    copy = arena_alloc(arena, sizeof(*copy));
    if (copy == NULL) {
        list->lacks_memory = true;
        return NULL;
    }
    *copy = *error;
    return copy;
}

enum wal_status list_check(const struct list *list, enum wal_status status,
                           struct wal_error *error)
{
    if (status < WAL_OK || !list->lacks_memory) {
        return status;
    }
    *error =
        (struct wal_error){.struct_size = sizeof(*error), .status = WAL_ENOMEM};
    snprintf(error->text, sizeof(error->text),
             "no memory for the result; the call itself succeeded");
    return WAL_ENOMEM;
}

napi_value list_make(struct call *call, const struct list *list,
                     napi_value (*make)(struct call *call,
                                        const struct list_item *item))
{
    napi_value array = make_array(call);
    uint32_t index = 0;

    for (const struct list_item *item = list->first; item != NULL;
         item = item->next) {
        array_push(call, array, index++, make(call, item));
    }
    return array;
}
