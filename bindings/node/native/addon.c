/*
 * addon.c - instances of the addon in an environment (call.h).
 *
 * The binary exports one function, setup(), since Node.js loads a binary once in a thread and gives
 * every later caller the same exports.
 */
#include "bindings/node/native/base/call.h"

#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"

/* What setup() finds: the instances that are in memory. */
struct environment {
    struct addon *addons;
};

void addon_retain(struct addon *addon)
{
    addon->references++;
}

static void delete_references(struct addon *addon)
{
    napi_ref references[] = {addon->functions, addon->make_error, addon->settle, addon->collect};

    for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++) {
        if (references[i] != NULL) {
            (void)napi_delete_reference(addon->env, references[i]);
        }
    }
}

static void remove_from_list(struct addon *addon)
{
    struct addon **place = &addon->environment->addons;

    while (*place != addon) {
        place = &(*place)->next;
    }
    *place = addon->next;
}

void addon_release(struct addon *addon)
{
    if (--addon->references > 0) {
        return;
    }
    if (!addon->is_ended) {
        remove_from_list(addon);
        addon_set_hook(addon, NULL);
        delete_references(addon);
    }
    arena_destroy(&addon->scratch);
    free(addon->bindings);
    free(addon);
}

void addon_hold(struct addon *addon)
{
    if (addon->holds++ == 0 && !addon->is_ended) {
        (void)napi_reference_ref(addon->env, addon->functions, NULL);
    }
}

void addon_unhold(struct addon *addon)
{
    if (--addon->holds == 0 && !addon->is_ended) {
        (void)napi_reference_unref(addon->env, addon->functions, NULL);
    }
}

void addon_set_hook(struct addon *addon, void (*hook)(void *addon))
{
    if (addon->hook != NULL) {
        (void)napi_remove_env_cleanup_hook(addon->env, addon->hook, addon);
    }
    addon->hook = NULL;
    if (hook != NULL && napi_add_env_cleanup_hook(addon->env, hook, addon) == napi_ok) {
        addon->hook = hook;
    }
}

static void on_environment_end(napi_env env, void *data, void *hint)
{
    struct environment *environment = data;
    struct addon *addon;

    (void)env;
    (void)hint;
    while ((addon = environment->addons) != NULL) {
        environment->addons = addon->next;
        addon->environment = NULL;
        addon->is_ended = true;
    }
    free(environment);
}

#define MODULES_LIST(name) name,
static const struct call_method *const modules[] = {MODULES(MODULES_LIST)};
#undef MODULES_LIST

static size_t count_methods(void)
{
    size_t count = 0;

    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        for (const struct call_method *method = modules[i]; method->name != NULL; method++) {
            count++;
        }
    }
    return count;
}

/* Makes an instance that the environment knows; NULL without memory. */
static struct addon *create(napi_env env, struct environment *environment)
{
    struct addon *addon = calloc(1, sizeof(*addon));

    if (addon == NULL) {
        return NULL;
    }
    addon->bindings = calloc(count_methods(), sizeof(addon->bindings[0]));
    if (addon->bindings == NULL) {
        free(addon);
        return NULL;
    }
    addon->env = env;
    addon->references = 1;
    addon->environment = environment;
    addon->next = environment->addons;
    environment->addons = addon;
    return addon;
}

static void refer(struct call *call, napi_value value, napi_ref *reference)
{
    if (!call->failed) {
        call_ok(call, napi_create_reference(call->env, value, 0, reference));
    }
}

/* Reads what setup() is given, and makes the functions. */
static napi_value make_functions(struct call *call)
{
    struct addon *addon = call->addon;
    napi_value functions = make_object(call);
    napi_value kept = make_array(call);
    napi_typedarray_type kind = napi_uint8_array;
    size_t length = 0;
    void *data = NULL;
    size_t used = 0;

    call_ok(call, napi_get_typedarray_info(call->env, call_arg(call, 0), &kind, &length, &data,
                                           NULL, NULL));
    if (call->failed || kind != napi_float64_array || length < ADDON_NUMBERS) {
        return NULL;
    }
    addon->numbers = data;
    addon->prefers_latin1 = value_bool(call, call_arg(call, 1));
    refer(call, call_arg(call, 2), &addon->make_error);
    refer(call, call_arg(call, 3), &addon->settle);
    refer(call, call_arg(call, 4), &addon->collect);
    refer(call, functions, &addon->functions);
    for (uint32_t i = 0; i < call->count; i++) {
        array_push(call, kept, i, call_arg(call, i));
    }
    object_set(call, functions, "kept", kept);
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        if (!call->failed) {
            call_define(call, functions, modules[i], &used);
        }
    }
    return call->failed ? NULL : functions;
}

/* setup(numbers, prefersLatin1, makeError, settle, collect): the functions of a new instance, and
 * `kept`, an array of what lives as long as a store is open or a job runs. */
static napi_value setup(napi_env env, napi_callback_info info)
{
    struct call call;
    struct addon *addon;
    napi_value functions;
    void *environment = NULL;
    size_t count = CALL_ARGS;
    bool is_pending = false;

    if (napi_get_cb_info(env, info, &count, call.args, NULL, &environment) != napi_ok) {
        return NULL;
    }
    addon = create(env, environment);
    if (addon == NULL) {
        (void)napi_throw_error(env, NULL, "no memory for agentwal");
        return NULL;
    }
    call_begin(&call, addon);
    call.count = count < CALL_ARGS ? count : CALL_ARGS;
    functions = make_functions(&call);
    if (functions == NULL) {
        (void)napi_is_exception_pending(env, &is_pending);
        if (!is_pending) {
            (void)napi_throw_type_error(env, NULL, "agentwal is set up wrongly");
        }
    }
    addon_release(addon);
    return functions;
}

/* The two symbols that the binary exports, which Node.js looks up. */
NAPI_MODULE_EXPORT int32_t node_api_module_get_api_version_v1(void);
NAPI_MODULE_EXPORT napi_value napi_register_module_v1(napi_env env, napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    struct environment *environment = calloc(1, sizeof(*environment));
    napi_value function = NULL;

    if (environment == NULL) {
        (void)napi_throw_error(env, NULL, "no memory for agentwal");
        return NULL;
    }
    if (napi_set_instance_data(env, environment, on_environment_end, NULL) != napi_ok) {
        free(environment);
        return NULL;
    }
    if (napi_create_function(env, "setup", NAPI_AUTO_LENGTH, setup, environment, &function) !=
            napi_ok ||
        napi_set_named_property(env, exports, "setup", function) != napi_ok) {
        return NULL;
    }
    return exports;
}
