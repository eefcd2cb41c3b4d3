/*
 * table.h - tables of the fields of public structs, and what both bindings do by them.
 *
 * bindings/generate.py makes the tables from the public headers and the interface.txt of a binding;
 * a binding makes values of its language from structs, and structs from arguments, by them. What a
 * call of the library gives, and what holds until the next one, is copied to a list in an arena:
 * that needs no lock of the language, and can be done in any thread.
 */
#ifndef AGENTWAL_BINDINGS_TABLE_TABLE_H
#define AGENTWAL_BINDINGS_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

/* --- memory --------------------------------------------------------------- */

struct arena_block;

/* Zeroed, it is empty. */
struct arena {
    struct arena_block *blocks; /* the one that is filled now is first */
    uint8_t *next;              /* first free byte of it */
    size_t room;                /* free bytes of it */
    bool is_secret;             /* its bytes are cleared before they are free again */
};

/* Returns `size` bytes, aligned for every type and not zeroed, or NULL without memory. They hold
 * until the arena is reset or destroyed. */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc for `count` items of `size` bytes, zeroed. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);

/* Returns the free bytes of the first block, not aligned, and their number, which is 0 without
 * memory. arena_take then takes the first of them. */
uint8_t *arena_room(struct arena *arena, size_t *size);
void arena_take(struct arena *arena, size_t size);

/* Frees everything allocated from it, but for one block that is kept. */
void arena_reset(struct arena *arena);

/* Frees everything; the arena is then empty. */
void arena_destroy(struct arena *arena);

/* Sets bytes to zero that nothing reads any more. */
void memory_clear(void *bytes, size_t size);

/* --- tables --------------------------------------------------------------- */

/* What a member is, and null (None) in the language. */
enum field_kind {
    FIELD_TEXT,        /* wal_slice */
    FIELD_OR_NULL,     /* wal_slice, out only: null when it is empty */
    FIELD_OR_NONE,     /* likewise; undefined in JavaScript */
    FIELD_PATH,        /* wal_slice */
    FIELD_CONTENT,     /* wal_slice; in: text or bytes */
    FIELD_SECRET,      /* likewise, in only: a copy of it is cleared after the call */
    FIELD_CHARS,       /* char[], which ends with NUL */
    FIELD_ID,          /* likewise, out only: null when it is empty */
    FIELD_U32,         /* uint32_t */
    FIELD_U64,         /* uint64_t */
    FIELD_U64_OR_NULL, /* uint64_t, out only: null for UINT64_MAX */
    FIELD_I32,         /* int32_t, out only */
    FIELD_I64,         /* int64_t */
    FIELD_DOUBLE,      /* double, out only */
    FIELD_BOOL,        /* uint32_t or int32_t, out only */
    FIELD_FLAG,        /* uint32_t: whether bits of `mask` are set */
    FIELD_NAME,        /* uint32_t, out only: one of `names` */
    FIELD_CODE,        /* int32_t, out only: a status */
    FIELD_MS,          /* int64_t, nanoseconds: milliseconds with a fraction */
    FIELD_DIGEST,      /* uint8_t[WAL_DIGEST_SIZE]: hexadecimal; in: or null, which is zeros */
    FIELD_NO_DIGEST,   /* likewise, out only: null for zeros */
    FIELD_UUID,        /* uint8_t[16], out only */
    FIELD_STRING,      /* const char *, out only */
    FIELD_TEXTS,       /* const struct wal_slice *, and their number at `count`, in only: or null */
    FIELD_STRUCT,      /* a pointer to a struct of `items`, in only: a row of fields, or null */
    FIELD_STRUCTS,     /* an array of structs of `items`, of which the first states the size, and
                        * their number at `count`; at most `mask` of them, 0: all; out only */
    FIELD_COUNTS,      /* uint64_t[], out only: an object of them by name_of(index) */
    FIELD_ERROR        /* const struct wal_error *, out only: an exception, or null */
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

/* An array in memory of the library. */
struct structs {
    const char *first;
    uint64_t count;
    uint32_t stride;
};

/* The structs that a struct refers to by a field of FIELD_STRUCTS. */
struct structs structs_of(const struct field *field, const char *filled);

enum {
    TABLE_ITEM_MAX = 8192 /* bytes of a struct of a cursor */
};

/* Room for a struct of any table. */
union table_item {
    uint32_t struct_size;
    max_align_t alignment;
    char bytes[TABLE_ITEM_MAX];
};

/* A function that fills a struct from a cursor, as a wal_..._next does. */
typedef enum wal_status table_next(void *cursor, void *item, struct wal_error *error);

/* --- lists ---------------------------------------------------------------- */

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

/* Adds a copy of a struct, and of what it points to, to a list: the struct is after the item's
 * struct list_item. */
void list_add_struct(struct list *list, struct arena *arena, const struct table *table,
                     const void *filled);

/* Adds the structs of a cursor to a list, which then has `limit` at most. WAL_OK, also at the end
 * of the cursor. */
enum wal_status list_fill(struct list *list, struct arena *arena, const struct table *table,
                          table_next *next, void *cursor, uint32_t limit, struct wal_error *error);

/* --- texts of bytes ------------------------------------------------------- */

enum {
    HEX_SIZE = 2 * WAL_DIGEST_SIZE, /* of a digest */
    UUID_TEXT_SIZE = 37             /* with its NUL */
};

/* Writes two hexadecimal digits for each byte. */
void hex_write(char *text, const uint8_t *bytes, size_t size);

/* Reads a digest; false: it is none of 64 hexadecimal digits. */
bool digest_read(struct wal_slice text, uint8_t digest[WAL_DIGEST_SIZE]);
bool digest_is_zero(const uint8_t digest[WAL_DIGEST_SIZE]);

void uuid_write(char text[UUID_TEXT_SIZE], const uint8_t uuid[16]);

#endif
