/*
 * handle.c - the life of handles (handle.h).
 */
#include "bindings/node/native/store/handle.h"

#include <stdlib.h>

#include "bindings/node/native/store/store.h"

static void release(struct handle *handle)
{
    if (--handle->references == 0) {
        store_release(handle->store);
        free(handle);
    }
}

/* The list holds a reference. */
static void add_to_list(struct handle *handle)
{
    struct store *store = handle->store;

    handle->next = store->handles;
    if (handle->next != NULL) {
        handle->next->previous = handle;
    }
    store->handles = handle;
    handle->references++;
}

static void remove_from_list(struct handle *handle)
{
    if (handle->previous != NULL) {
        handle->previous->next = handle->next;
    } else {
        handle->store->handles = handle->next;
    }
    if (handle->next != NULL) {
        handle->next->previous = handle->previous;
    }
    release(handle);
}

void handle_close(struct handle *handle)
{
    void *object = handle->object;

    if (object == NULL) {
        return;
    }
    handle->is_closing = true;
    if (handle->users > 0 || store_is_shutting(handle->store)) {
        return;
    }
    handle->object = NULL;
    handle->type->close(object);
    remove_from_list(handle);
}

void handle_close_all(struct store *store)
{
    struct handle *next;

    for (struct handle *handle = store->handles; handle != NULL;
         handle = next) {
        next = handle->next;
        handle_close(handle);
    }
}

void handle_use(struct handle *handle)
{
    handle->references++;
    handle->users++;
}

void handle_unuse(struct handle *handle)
{
    handle->users--;
    if (handle->is_closing) {
        handle_close(handle);
    }
    release(handle);
}

/* JavaScript has lost the external value. */
static void finalize(napi_env env, void *data, void *hint)
{
    struct handle *handle = data;

    (void)env;
    (void)hint;
    handle_close(handle);
    release(handle);
}

napi_value handle_make(struct call *call, const struct handle_type *type,
                       struct store *store, void *object)
{
    struct handle *handle = calloc(1, sizeof(*handle));
    napi_value value = NULL;

    if (handle == NULL) {
        type->close(object);
        call_fail(call, WAL_ENOMEM, "no memory for a %s", type->name);
        return NULL;
    }
    *handle = (struct handle){
        .type = type, .store = store, .object = object, .references = 1};
    store_retain(store);
    add_to_list(handle);
    if (!call_ok(call, napi_create_external(call->env, handle, finalize, NULL,
                                            &value))) {
        handle_close(handle);
        release(handle);
        return NULL;
    }
    if (store->state == STORE_CLOSED) {
        handle_close(handle);
    }
    return value;
}

struct handle *handle_find(struct call *call, size_t index,
                           const struct handle_type *type)
{
    napi_valuetype found = napi_undefined;
    napi_value value = call_arg(call, index);
    void *data = NULL;
    struct handle *handle;

    if (call->failed || !call_ok(call, napi_typeof(call->env, value, &found))) {
        return NULL;
    }
    if (found != napi_external ||
        !call_ok(call, napi_get_value_external(call->env, value, &data))) {
        call_fail(call, WAL_EINVAL, "a %s is expected", type->name);
        return NULL;
    }
    handle = data;
    if (handle->type != type) {
        call_fail(call, WAL_EINVAL, "a %s is expected", type->name);
        return NULL;
    }
    return handle;
}

struct handle *handle_get(struct call *call, size_t index,
                          const struct handle_type *type)
{
    struct handle *handle = handle_find(call, index, type);

    if (handle == NULL) {
        return NULL;
    }
    if (!store_is_open(handle->store)) {
        call_fail(call, WAL_ECLOSED, "the store of the %s was closed",
                  type->name);
        return NULL;
    }
    if (handle->object == NULL || handle->is_closing) {
        call_fail(call, WAL_ECLOSED, "the %s was closed", type->name);
        return NULL;
    }
    if (handle->users > 0 && !type->is_shared) {
        call_fail(call, WAL_EBUSY,
                  "the %s is in use by another call; wait "
                  "for that one first",
                  type->name);
        return NULL;
    }
    return handle;
}
