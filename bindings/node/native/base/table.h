/*
 * table.h - structs of the library as objects of JavaScript, and arguments of
 * JavaScript as structs, by tables of their fields. bindings/generate.py makes
 * the tables from the public headers and native/interface.txt; interface.h
 * names those that code by hand uses.
 */
#ifndef AGENTWAL_NODE_TABLE_H
#define AGENTWAL_NODE_TABLE_H

#include "bindings/node/native/base/list.h"

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
    FIELD_ERROR        /* const struct wal_error *; null for NULL; out only */
};

struct field {
    const char *name; /* of the property */
    uint32_t kind;    /* enum field_kind */
    uint32_t offset;
    uint32_t size;            /* of the member */
    uint32_t mask;            /* FIELD_FLAG; FIELD_NAME: the number of names */
    const char *const *names; /* FIELD_NAME; others are the first */
};

struct table {
    const struct field *fields;
    uint32_t count;
    uint32_t size; /* of the struct, which begins with struct_size */
};

/* An object with the fields of a struct. */
napi_value make_struct(struct call *call, const struct table *table,
                       const void *filled);

/* Fills a struct from the arguments from `first` on, or from the items of an
 * array; the other members are zeros. */
void read_struct(struct call *call, size_t first, const struct table *table,
                 void *made);
void read_items(struct call *call, napi_value array, uint32_t first,
                const struct table *table, void *made);

/* Fills and returns the structs of a flat array, or NULL when there are none;
 * `*count` is their number. */
void *read_structs(struct call *call, napi_value array,
                   const struct table *table, uint32_t *count);

/* Copies what a struct points to into the arena. */
void list_copy_struct(struct list *list, struct arena *arena,
                      const struct table *table, void *copied);

/* Adds a copy of a struct, and of what it points to, to a list, of which
 * list_structs then makes an array. */
void list_add_struct(struct list *list, struct arena *arena,
                     const struct table *table, const void *filled);
napi_value list_structs(struct call *call, const struct list *list,
                        const struct table *table);

/* A function that fills a struct from a cursor, as a wal_..._next does. */
typedef enum wal_status table_next(void *cursor, void *item,
                                   struct wal_error *error);

/* An array of the structs of a cursor; at most `max`. */
napi_value make_rows(struct call *call, const struct table *table,
                     table_next *next, void *cursor, uint32_t max);

/* An array of the names of all indexes from 0 on. */
napi_value make_names(struct call *call, const char *name_of(uint32_t index));

/* A digest from 64 hexadecimal digits. */
void value_digest(struct call *call, napi_value value,
                  uint8_t digest[WAL_DIGEST_SIZE]);

#endif
