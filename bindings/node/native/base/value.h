/*
 * value.h - values of JavaScript as those of C, and the other way.
 *
 * Readers never fail at once: they fail the call (call.h) and return zeros. Text is copied to
 * call->arena and holds as long as that.
 */
#ifndef AGENTWAL_BINDINGS_NODE_NATIVE_BASE_VALUE_H
#define AGENTWAL_BINDINGS_NODE_NATIVE_BASE_VALUE_H

#include "bindings/node/native/base/call.h"

/* Whether it is undefined or null. */
bool value_is_absent(struct call *call, napi_value value);

/* As value_text; also the bytes of a Uint8Array, which are copied. */
struct wal_slice value_bytes(struct call *call, napi_value value);

/* UTF-8, with a NUL after its end that is not counted; {NULL, 0} for undefined and null. WAL_EINVAL
 * for other types and for half a surrogate pair. */
struct wal_slice value_text(struct call *call, napi_value value);

/* A path: text without a NUL in it, not empty. */
const char *value_path(struct call *call, napi_value value);

/* A whole number; undefined is 0. */
uint32_t value_u32(struct call *call, napi_value value);
uint64_t value_u64(struct call *call, napi_value value);

/* True for `true` alone. */
bool value_bool(struct call *call, napi_value value);

/* The number of items of an array; 0 for undefined. */
uint32_t value_length(struct call *call, napi_value array);

/* The items of an array as texts, or as paths; NULL for undefined and when the call has failed. */
struct wal_slice *value_texts(struct call *call, napi_value array, bool are_paths, uint32_t *count);

/* A path as a slice; {NULL, 0} for undefined and null. */
struct wal_slice value_path_slice(struct call *call, napi_value value);

/* They return NULL when the call failed. */
napi_value make_undefined(struct call *call);
napi_value make_null(struct call *call);
napi_value make_bool(struct call *call, bool value);
napi_value make_number(struct call *call, uint64_t value);
napi_value make_signed(struct call *call, int64_t value);

/* Text of UTF-8; what is not is replaced. */
napi_value make_text(struct call *call, struct wal_slice text);

/* As make_text for a text that ends with NUL. */
napi_value make_string(struct call *call, const char *text);

/* As make_text; null for an empty one. */
napi_value make_optional(struct call *call, struct wal_slice text);

/* A Buffer with a copy of the bytes. */
napi_value make_buffer(struct call *call, struct wal_slice bytes);

/* Text if the bytes are UTF-8 and fit into a string, else a Buffer. */
napi_value make_text_or_buffer(struct call *call, struct wal_slice bytes);

/* A digest in hexadecimal. */
napi_value make_digest(struct call *call, const uint8_t digest[WAL_DIGEST_SIZE]);
napi_value make_array(struct call *call);
void array_push(struct call *call, napi_value array, uint32_t index, napi_value value);
napi_value make_object(struct call *call);
void object_set(struct call *call, napi_value object, const char *name, napi_value value);

/* object_set of a number, a flag and a text. */
void object_number(struct call *call, napi_value object, const char *name, uint64_t value);

/* An object with the fields of a struct; of a field without a name its value alone. */
napi_value make_struct(struct call *call, const struct table *table, const void *filled);

/* Fills a struct from the arguments from `first` on, or from the items of an array; the other
 * members are zeros. */
void read_struct(struct call *call, size_t first, const struct table *table, void *made);
void read_items(struct call *call, napi_value array, uint32_t first, const struct table *table,
                void *made);

/* Fills and returns the structs of a flat array, or NULL when there are none;
 * `*count` is their number. */
void *read_structs(struct call *call, napi_value array, const struct table *table, uint32_t *count);

/* An array of the structs of a list, and the value of the first. */
napi_value list_structs(struct call *call, const struct list *list, const struct table *table);
napi_value list_first(struct call *call, const struct list *list, const struct table *table);

/* An array of the structs of a cursor; at most `max`. */
napi_value make_rows(struct call *call, const struct table *table, table_next *next, void *cursor,
                     uint32_t max);

/* An array of the names of all indexes from 0 on. */
napi_value make_names(struct call *call, const char *name_of(uint32_t index));

/* A digest from 64 hexadecimal digits. */
void value_digest(struct call *call, napi_value value, uint8_t digest[WAL_DIGEST_SIZE]);

#endif
