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

/* Adds an item of `size` bytes, zeroed after its struct list_item. NULL without memory, which
 * list_check then reports. */
void *list_add(struct list *list, struct arena *arena, size_t size);

/* Returns `status`, or WAL_ENOMEM for a success if something was left out. */
enum wal_status list_check(const struct list *list, enum wal_status status,
                           struct wal_error *error);

/*
 * Structs of the library as objects of JavaScript, and arguments of JavaScript as structs, by
 * tables of their fields. bindings/generate.py makes the tables from the public headers and
 * native/interface.txt; interface.h names those that code by hand uses.
 */

enum field_kind {
    FIELD_TEXT,        /* wal_slice */
    FIELD_OR_NULL,     /* wal_slice: null when it is empty */
    FIELD_OR_NONE,     /* wal_slice: undefined when it is empty */
    FIELD_PATH,        /* wal_slice */
    FIELD_CONTENT,     /* wal_slice; in: text or bytes */
    FIELD_CHARS,       /* char[], which ends with NUL; out only */
    FIELD_ID,          /* likewise; null when it is empty */
    FIELD_U32,         /* uint32_t */
    FIELD_U64,         /* uint64_t */
    FIELD_U64_OR_NULL, /* uint64_t: null for UINT64_MAX */
    FIELD_I32,         /* int32_t */
    FIELD_I64,         /* int64_t */
    FIELD_DOUBLE,      /* double */
    FIELD_BOOL,        /* uint32_t or int32_t */
    FIELD_FLAG,        /* uint32_t: whether bits of `mask` are set */
    FIELD_NAME,        /* uint32_t: one of `names` */
    FIELD_CODE,        /* int32_t, a status: null for WAL_OK */
    FIELD_MS,          /* int64_t, nanoseconds: milliseconds with a fraction */
    FIELD_DIGEST,      /* uint8_t[WAL_DIGEST_SIZE]; in: or undefined */
    FIELD_NO_DIGEST,   /* likewise; out: null when it is zeros */
    FIELD_UUID,        /* uint8_t[16]; out only */
    FIELD_STRING,      /* const char *; out only */
    FIELD_TEXTS,       /* const struct wal_slice *, and their number at `count`; in only */
    FIELD_STRUCT,      /* a pointer to a struct of `items`, or NULL; in, an array of its fields */
    FIELD_STRUCTS,     /* an array of structs of `items`, of which the first states the size, and
                        * their number at `count`; at most `mask` of them, 0: all; out only */
    FIELD_COUNTS,      /* uint64_t[]: an object of those above 0, by name_of(index); out only */
    FIELD_ERROR        /* const struct wal_error *; null for NULL; out only */
};

struct field {
    const char *name; /* of the property */
    uint32_t kind;    /* enum field_kind */
    uint32_t offset;
    uint32_t size;            /* of the member */
    uint32_t mask;            /* FIELD_FLAG; FIELD_NAME: the number of names */
    uint32_t count;           /* offset of a uint64_t */
    const char *const *names; /* FIELD_NAME; others are the first */
    const struct table *items;
    const char *(*name_of)(uint32_t index);
};

struct table {
    const struct field *fields;
    uint32_t count;
    uint32_t size; /* of the struct, which begins with struct_size */
};

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

/* Adds a copy of a struct, and of what it points to, to a list, of which list_structs then makes an
 * array, and list_first the value of the first. */
void list_add_struct(struct list *list, struct arena *arena, const struct table *table,
                     const void *filled);
napi_value list_structs(struct call *call, const struct list *list, const struct table *table);
napi_value list_first(struct call *call, const struct list *list, const struct table *table);

/* A function that fills a struct from a cursor, as a wal_..._next does. */
typedef enum wal_status table_next(void *cursor, void *item, struct wal_error *error);

/* Adds the structs of a cursor to a list. WAL_OK, also at its end. Any thread. */
enum wal_status list_fill(struct list *list, struct arena *arena, const struct table *table,
                          table_next *next, void *cursor, struct wal_error *error);

/* An array of the structs of a cursor; at most `max`. */
napi_value make_rows(struct call *call, const struct table *table, table_next *next, void *cursor,
                     uint32_t max);

/* An array of the names of all indexes from 0 on. */
napi_value make_names(struct call *call, const char *name_of(uint32_t index));

/* A digest from 64 hexadecimal digits. */
void value_digest(struct call *call, napi_value value, uint8_t digest[WAL_DIGEST_SIZE]);

#endif
