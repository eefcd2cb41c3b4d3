/*
 * table.c - structs by tables of their fields (table.h).
 */
#include "bindings/node/native/base/table.h"

#include <stdio.h>
#include <string.h>

#include "bindings/node/native/base/value.h"

enum {
    ITEM_MAX = 8192 /* bytes of a struct of a cursor */
};

/* --- out ---------------------------------------------------------------- */

static napi_value make_uuid(struct call *call, const uint8_t uuid[16])
{
    char text[2 * 16 + 4 + 1];
    char *at = text;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        at += snprintf(at, 3, "%02x", uuid[i]);
    }
    return make_string(call, text);
}

/* Numbers of 32 bits. */
static napi_value make_small(struct call *call, const struct field *field,
                             const void *place)
{
    uint32_t bits;

    memcpy(&bits, place, sizeof(bits));
    switch (field->kind) {
    case FIELD_U32:
        return make_number(call, bits);
    case FIELD_I32:
        return make_signed(call, (int32_t)bits);
    case FIELD_BOOL:
        return make_bool(call, bits != 0);
    case FIELD_FLAG:
        return make_bool(call, (bits & field->mask) != 0);
    case FIELD_NAME:
        return make_string(call, field->names[bits < field->mask ? bits : 0]);
    default:
        return (int32_t)bits == WAL_OK
                   ? make_null(call)
                   : make_string(call, status_code((int32_t)bits));
    }
}

/* Numbers of 64 bits. */
static napi_value make_wide(struct call *call, const struct field *field,
                            const void *place)
{
    union {
        uint64_t whole;
        int64_t with_sign;
        double real;
    } number;

    memcpy(&number, place, sizeof(number));
    switch (field->kind) {
    case FIELD_U64:
        return make_number(call, number.whole);
    case FIELD_U64_OR_NULL:
        return number.whole == UINT64_MAX ? make_null(call)
                                          : make_number(call, number.whole);
    case FIELD_I64:
        return make_signed(call, number.with_sign);
    case FIELD_MS:
        return make_double(call, (double)number.with_sign / 1e6);
    default:
        return make_double(call, number.real);
    }
}

static bool is_zero(const uint8_t digest[WAL_DIGEST_SIZE])
{
    static const uint8_t zeros[WAL_DIGEST_SIZE];

    return memcmp(digest, zeros, sizeof(zeros)) == 0;
}

static napi_value make_slice(struct call *call, const struct field *field,
                             struct wal_slice text)
{
    if (text.size == 0 && field->kind == FIELD_OR_NONE) {
        return make_undefined(call);
    }
    return text.size == 0 && field->kind == FIELD_OR_NULL
               ? make_null(call)
               : make_text(call, text);
}

static napi_value make_field(struct call *call, const struct field *field,
                             const char *filled)
{
    const void *place = filled + field->offset;
    const struct wal_error *error;
    struct wal_slice text;

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_OR_NULL:
    case FIELD_OR_NONE:
    case FIELD_PATH:
    case FIELD_CONTENT:
        memcpy(&text, place, sizeof(text));
        return make_slice(call, field, text);
    case FIELD_CHARS:
    case FIELD_ID:
        text = (struct wal_slice){place, strnlen(place, field->size)};
        return text.size == 0 && field->kind == FIELD_ID
                   ? make_null(call)
                   : make_text(call, text);
    case FIELD_U64:
    case FIELD_U64_OR_NULL:
    case FIELD_I64:
    case FIELD_MS:
    case FIELD_DOUBLE:
        return make_wide(call, field, place);
    case FIELD_DIGEST:
    case FIELD_NO_DIGEST:
        return field->kind == FIELD_NO_DIGEST && is_zero(place)
                   ? make_null(call)
                   : make_digest(call, place);
    case FIELD_UUID:
        return make_uuid(call, place);
    case FIELD_ERROR:
        memcpy(&error, place, sizeof(error));
        return error == NULL ? make_null(call) : call_make_error(call, error);
    case FIELD_U32:
    case FIELD_I32:
    case FIELD_BOOL:
    case FIELD_FLAG:
    case FIELD_NAME:
    case FIELD_CODE:
        break;
    }
    return make_small(call, field, place);
}

napi_value make_struct(struct call *call, const struct table *table,
                       const void *filled)
{
    napi_value object = make_object(call);

    for (uint32_t i = 0; i < table->count && !call->failed; i++) {
        object_set(call, object, table->fields[i].name,
                   make_field(call, &table->fields[i], filled));
    }
    return object;
}

napi_value make_rows(struct call *call, const struct table *table,
                     table_next *next, void *cursor, uint32_t max)
{
    napi_value array = make_array(call);
    union {
        uint32_t struct_size;
        max_align_t alignment;
        char bytes[ITEM_MAX];
    } item;

    memset(&item, 0, table->size);
    item.struct_size = table->size;
    for (uint32_t i = 0; i < max && !call->failed; i++) {
        enum wal_status status = next(cursor, &item, call_error(call));

        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        array_push(call, array, i, make_struct(call, table, &item));
    }
    return array;
}

napi_value make_names(struct call *call, const char *name_of(uint32_t index))
{
    napi_value array = make_array(call);
    const char *name;

    for (uint32_t i = 0; (name = name_of(i)) != NULL; i++) {
        array_push(call, array, i, make_string(call, name));
    }
    return array;
}

/* --- in ----------------------------------------------------------------- */

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

void value_digest(struct call *call, napi_value value,
                  uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_slice text = value_text(call, value);
    const char *digits = text.data;
    bool ok = text.size == 2 * (size_t)WAL_DIGEST_SIZE;

    for (size_t i = 0; ok && i < WAL_DIGEST_SIZE; i++) {
        int high = digit_value(digits[2 * i]);
        int low = digit_value(digits[2 * i + 1]);

        ok = high >= 0 && low >= 0;
        if (ok) {
            digest[i] = (uint8_t)(high * 16 + low);
        }
    }
    if (!ok) {
        call_fail(call, WAL_EINVAL,
                  "a digest is expected: 64 hexadecimal digits");
    }
}

/* Milliseconds with a fraction as nanoseconds. */
static int64_t read_time(struct call *call, napi_value value)
{
    /* Above, a conversion to nanoseconds is not defined. */
    const double limit = 9e12;
    napi_valuetype type = napi_undefined;
    double time = 0;

    if (call->failed || !call_ok(call, napi_typeof(call->env, value, &type)) ||
        type == napi_undefined) {
        return 0;
    }
    if (type == napi_number) {
        call_ok(call, napi_get_value_double(call->env, value, &time));
    }
    if (type != napi_number || !(time >= -limit && time <= limit)) {
        call_fail(call, WAL_EINVAL,
                  "a time in milliseconds since 1970 is expected");
        return 0;
    }
    return (int64_t)(time * 1e6);
}

static void read_field(struct call *call, const struct field *field,
                       napi_value value, char *made)
{
    void *place = made + field->offset;

    switch (field->kind) {
    case FIELD_TEXT:
        *(struct wal_slice *)place = value_text(call, value);
        break;
    case FIELD_PATH:
        *(struct wal_slice *)place = value_path_slice(call, value);
        break;
    case FIELD_CONTENT:
        *(struct wal_slice *)place = value_bytes(call, value);
        break;
    case FIELD_U32:
        *(uint32_t *)place = value_u32(call, value);
        break;
    case FIELD_FLAG:
        *(uint32_t *)place |= value_bool(call, value) ? field->mask : 0;
        break;
    case FIELD_U64:
        *(uint64_t *)place = value_u64(call, value);
        break;
    case FIELD_I64:
        *(int64_t *)place = value_i64(call, value);
        break;
    case FIELD_MS:
        *(int64_t *)place = read_time(call, value);
        break;
    case FIELD_DIGEST:
        if (!value_is_absent(call, value)) {
            value_digest(call, value, place);
        }
        break;
    default:
        call_fail(call, WAL_EINVAL, "%s is not set by a caller", field->name);
        break;
    }
}

void read_struct(struct call *call, size_t first, const struct table *table,
                 void *made)
{
    memset(made, 0, table->size);
    *(uint32_t *)made = table->size; /* struct_size */
    for (uint32_t i = 0; i < table->count; i++) {
        read_field(call, &table->fields[i], call_arg(call, first + i), made);
    }
}

void read_items(struct call *call, napi_value array, uint32_t first,
                const struct table *table, void *made)
{
    memset(made, 0, table->size);
    *(uint32_t *)made = table->size; /* struct_size */
    for (uint32_t i = 0; i < table->count && !call->failed; i++) {
        read_field(call, &table->fields[i], value_item(call, array, first + i),
                   made);
    }
}

void *read_structs(struct call *call, napi_value array,
                   const struct table *table, uint32_t *count)
{
    uint32_t wanted = value_length(call, array) / table->count;
    char *made;

    *count = 0;
    if (call->failed || wanted == 0) {
        return NULL;
    }
    made = arena_calloc(call->arena, wanted, table->size);
    if (made == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for %u structs", wanted);
        return NULL;
    }
    for (uint32_t i = 0; i < wanted && !call->failed; i++) {
        read_items(call, array, i * table->count, table,
                   made + (size_t)i * table->size);
    }
    *count = wanted;
    return made;
}

/* --- lists -------------------------------------------------------------- */

void list_copy_struct(struct list *list, struct arena *arena,
                      const struct table *table, void *copied)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        void *place = (char *)copied + field->offset;

        if (field->kind <= FIELD_CONTENT) {
            struct wal_slice *text = place;

            *text = list_copy_text(list, arena, *text);
        } else if (field->kind == FIELD_ERROR) {
            const struct wal_error **error = place;

            *error = list_copy_error(list, arena, *error);
        }
    }
}

void list_add_struct(struct list *list, struct arena *arena,
                     const struct table *table, const void *filled)
{
    struct list_item *item = list_add(list, arena, sizeof(*item) + table->size);

    if (item != NULL) {
        memcpy(item + 1, filled, table->size);
        list_copy_struct(list, arena, table, item + 1);
    }
}

napi_value list_structs(struct call *call, const struct list *list,
                        const struct table *table)
{
    napi_value array = make_array(call);
    uint32_t index = 0;

    for (const struct list_item *item = list->first; item != NULL;
         item = item->next) {
        array_push(call, array, index++, make_struct(call, table, item + 1));
    }
    return array;
}
