/*
 * addon.c - loading the addon into an environment (addon.h).
 */
#include "bindings/node/native/base/addon.h"

#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"

struct addon *addon_get(napi_env env)
{
    void *data = NULL;

    (void)napi_get_instance_data(env, &data);
    return data;
}

void addon_retain(struct addon *addon)
{
    addon->references++;
}

void addon_release(struct addon *addon)
{
    if (--addon->references == 0) {
        arena_destroy(&addon->scratch);
        free(addon);
    }
}

static void on_environment_end(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    ((struct addon *)data)->is_ended = true;
    addon_release(data);
}

static void keep(struct call *call, size_t argument, napi_ref *reference)
{
    if (!call->failed) {
        call_ok(call, napi_create_reference(call->env, call_arg(call, argument),
                                            1, reference));
    }
}

/* setup(numbers, prefersLatin1, makeError, settle, collect): false when it was
 * called before */
static napi_value setup(struct call *call)
{
    struct addon *addon = call->addon;
    napi_typedarray_type kind = napi_uint8_array;
    size_t length = 0;
    void *data = NULL;

    if (addon->numbers != NULL) {
        return make_bool(call, false);
    }
    call_ok(call, napi_get_typedarray_info(call->env, call_arg(call, 0), &kind,
                                           &length, &data, NULL, NULL));
    addon->prefers_latin1 = value_bool(call, call_arg(call, 1));
    keep(call, 2, &addon->make_error);
    keep(call, 3, &addon->settle);
    keep(call, 4, &addon->collect);
    keep(call, 0, &addon->numbers_ref);
    if (kind != napi_float64_array || length < ADDON_NUMBERS) {
        (void)napi_throw_type_error(call->env, NULL, "numbers are too few");
        return NULL;
    }
    addon->numbers = data;
    return make_bool(call, true);
}

static const struct call_method addon_methods[] = {
    {"setup", setup},
    {NULL, NULL},
};

static const struct call_method *const modules[] = {
    addon_methods,         backup_methods,          blob_methods,
    blob_writer_methods,   checkpoint_list_methods, checkpoint_methods,
    compact_methods,       cursor_methods,          document_methods,
    export_methods,        file_change_methods,     head_methods,
    import_follow_methods, import_methods,          job_thread_methods,
    repair_methods,        rewind_methods,          salvage_methods,
    search_methods,        session_append_methods,  session_change_methods,
    session_fork_methods,  session_job_methods,     session_list_methods,
    session_methods,       store_call_methods,      store_methods,
    transfer_methods,      view_list_methods,       view_methods,
    watcher_methods,
};

/* The two symbols that the binary exports, which Node.js looks up. */
NAPI_MODULE_EXPORT int32_t node_api_module_get_api_version_v1(void);
NAPI_MODULE_EXPORT napi_value napi_register_module_v1(napi_env env,
                                                      napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    struct addon *addon = calloc(1, sizeof(*addon));

    if (addon == NULL) {
        (void)napi_throw_error(env, NULL, "no memory for agentwal");
        return NULL;
    }
    addon->env = env;
    addon->references = 1;
    if (napi_set_instance_data(env, addon, on_environment_end, NULL) !=
        napi_ok) {
        free(addon);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        if (!call_define(env, exports, modules[i])) {
            return NULL;
        }
    }
    return exports;
}
