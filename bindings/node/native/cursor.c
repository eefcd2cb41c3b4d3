/*
 * cursor.c - cursors of entries (cursor.h).
 *
 * A batch ends after CURSOR_ENTRIES entries or CURSOR_BYTES of payloads. What
 * damage makes unreadable ends it too, and is thrown by the next call.
 */
#include "bindings/node/native/cursor.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/modules.h"
#include "bindings/node/native/session.h"
#include "bindings/node/native/value.h"

struct cursor {
    struct wal_entry_cursor *entries;
    uint64_t after;          /* only entries with a higher sequence */
    struct wal_error *error; /* of the next entry, or NULL */
};

static void close_cursor(void *object)
{
    struct cursor *cursor = object;

    wal_entry_cursor_close(cursor->entries);
    free(cursor->error);
    free(cursor);
}

static const struct handle_type cursor_type = {"cursor", close_cursor, false};

/* openCursor(session, mode, flags, stream, upTo, head, skip, last, after) */
static napi_value open_cursor(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = value_u32(call, call_arg(call, 1)),
        .flags = value_u32(call, call_arg(call, 2)),
        .stream = value_u32(call, call_arg(call, 3)),
        .up_to = value_text(call, call_arg(call, 4)),
        .head = value_text(call, call_arg(call, 5)),
        .skip = value_u64(call, call_arg(call, 6)),
        .last = value_u64(call, call_arg(call, 7)),
    };
    uint64_t after = value_u64(call, call_arg(call, 8));
    struct cursor *cursor;

    if (call->failed) {
        return NULL;
    }
    cursor = calloc(1, sizeof(*cursor));
    if (cursor == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a cursor");
        return NULL;
    }
    cursor->after = after;
    if (!call_check(call, wal_entry_cursor_open(session->object, &options,
                                                &cursor->entries,
                                                call_error(call)))) {
        close_cursor(cursor);
        return NULL;
    }
    return handle_make(call, &cursor_type, session->store, cursor);
}

/* remaining(cursor) */
static napi_value remaining(struct call *call)
{
    struct handle *handle = handle_get(call, 0, &cursor_type);
    const struct cursor *cursor = handle == NULL ? NULL : handle->object;

    return cursor == NULL
               ? NULL
               : make_number(call, wal_entry_cursor_remaining(cursor->entries));
}

/* A string for a type: those that were seen before are kept. */
static napi_value make_type(struct call *call, struct wal_slice type)
{
    struct addon *addon = call->addon;
    napi_value text = NULL;

    for (size_t i = 0; i < ADDON_TYPES; i++) {
        struct addon_type *known = &addon->types[i];

        if (known->text == NULL) {
            text = make_text(call, type);
            if (!call->failed && type.size < sizeof(known->name) &&
                napi_create_reference(call->env, make_object(call), 1,
                                      &known->text) == napi_ok) {
                napi_value holder = NULL;

                (void)napi_get_reference_value(call->env, known->text, &holder);
                object_set(call, holder, "type", text);
                memcpy(known->name, type.data, type.size);
                known->size = (uint8_t)type.size;
            }
            return text;
        }
        if (known->size == type.size &&
            memcmp(known->name, type.data, type.size) == 0) {
            napi_value holder = NULL;

            if (call_ok(call, napi_get_reference_value(call->env, known->text,
                                                       &holder))) {
                call_ok(call, napi_get_named_property(call->env, holder, "type",
                                                      &text));
            }
            return text;
        }
    }
    return make_text(call, type);
}

/* The payload: null when it is left out, a string, or a buffer for a line that
 * is not UTF-8. */
static napi_value make_payload(struct call *call, const struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
        return make_digest(call, entry->payload_digest);
    }
    return make_text_or_buffer(call, entry->payload);
}

static void put_entry(struct call *call, napi_value values, uint32_t index,
                      const struct wal_entry *entry)
{
    const uint32_t at = index * CURSOR_VALUES;
    double *numbers = call->addon->numbers + (size_t)index * CURSOR_NUMBERS;

    array_push(call, values, at, make_text(call, entry->id));
    array_push(call, values, at + 1, make_optional(call, entry->parent_id));
    array_push(call, values, at + 2, make_type(call, entry->type));
    array_push(call, values, at + 3, make_text(call, entry->timestamp));
    array_push(call, values, at + 4, make_optional(call, entry->run_id));
    array_push(call, values, at + 5, make_payload(call, entry));
    array_push(call, values, at + 6, make_optional(call, entry->meta));
    numbers[0] = entry->flags;
    numbers[1] = entry->stream;
    numbers[2] = (double)entry->sequence;
    numbers[3] = (double)entry->depth;
    numbers[4] = (double)entry->payload_size;
}

/* Throws the error that ended the last batch. */
static bool take_error(struct call *call, struct cursor *cursor)
{
    if (cursor->error == NULL) {
        return false;
    }
    *call_error(call) = *cursor->error;
    free(cursor->error);
    cursor->error = NULL;
    call->failed = true;
    return true;
}

/* Keeps a failure for the next call, when entries come before it. */
static void keep_error(struct call *call, struct cursor *cursor)
{
    cursor->error = malloc(sizeof(*cursor->error));
    if (cursor->error != NULL) {
        *cursor->error = call->addon->error;
    }
}

/* next(cursor, values, max): fills the array and the numbers; returns the count
 * of entries, 0 at the end. max undefined: CURSOR_ENTRIES. */
static napi_value next_entries(struct call *call)
{
    struct handle *handle = handle_get(call, 0, &cursor_type);
    struct cursor *cursor = handle == NULL ? NULL : handle->object;
    struct wal_entry entry = WAL_INIT(wal_entry);
    napi_value values = call_arg(call, 1);
    enum wal_status status = WAL_OK;
    uint64_t bytes = 0;
    uint32_t count = 0;
    uint32_t max = value_u32(call, call_arg(call, 2));

    max = max == 0 || max > CURSOR_ENTRIES ? CURSOR_ENTRIES : max;
    if (call->failed || take_error(call, cursor)) {
        return NULL;
    }
    while (!call->failed && count < max && bytes < CURSOR_BYTES) {
        status =
            wal_entry_cursor_next(cursor->entries, &entry, call_error(call));
        if (status != WAL_OK) {
            break;
        }
        if (entry.sequence > cursor->after) {
            put_entry(call, values, count++, &entry);
            bytes += entry.payload.size;
        }
    }
    if (status < WAL_OK && count > 0) {
        keep_error(call, cursor);
    } else {
        (void)call_check(call, status);
    }
    return make_number(call, count);
}

/* entry(session, id, values): as next, for one entry on any branch; 0 when there
 * is none. */
static napi_value get_entry(struct call *call)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_slice id = value_text(call, call_arg(call, 1));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_entry_get(session->object, id, &entry, call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_number(call, 0);
    }
    if (!call_check(call, status)) {
        return NULL;
    }
    put_entry(call, call_arg(call, 2), 0, &entry);
    return make_number(call, 1);
}

/* closeCursor(cursor) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &cursor_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

const struct call_method cursor_methods[] = {
    {"openCursor", open_cursor},   {"next", next_entries},
    {"closeCursor", close_handle}, {"entry", get_entry},
    {"remaining", remaining},      {NULL, NULL},
};
