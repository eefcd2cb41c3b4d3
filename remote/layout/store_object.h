/*
 * store_object.h - the names of a store's objects in a remote (SPEC.md 11.3):
 *
 *   UUID/epoch/EPOCH              who writes
 *   UUID/part/EPOCH/NUMBER        a part, or a fence
 *   UUID/base/NUMBER              a list of segments, in place of parts
 *   UUID/seg/NUMBER/ID            one of them, made for the base of the number
 *   UUID/bundle/ID/NUMBER         a session that was handed off, as of its
 *                                 newest record, the number
 *   UUID/own/ID/NUMBER            where a session of the store goes on; ID is
 *                                 made of the session's id
 *
 * UUID and ID have 32 hexadecimal digits, every number 16, in lower case, so
 * that the order of the names is that of the numbers.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_STORE_OBJECT_H
#define AGENTWAL_REMOTE_LAYOUT_STORE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAL__UUID_TEXT_SIZE = 33,
    WAL__STORE_OBJECT_SIZE = 96 /* bytes of a name, or prefix, with its NUL */
};

/* The highest number of an epoch or a part. */
#define WAL__STORE_OBJECT_NUMBER_MAX (UINT64_MAX >> 2)

enum wal__store_object_kind {
    WAL__OBJECT_EPOCH = 1,
    WAL__OBJECT_PART,
    WAL__OBJECT_BASE,
    WAL__OBJECT_SEGMENT,
    WAL__OBJECT_OWN,
    WAL__OBJECT_BUNDLE
};

/* A name in its fields; those that the kind has not are 0. */
struct wal__store_object {
    enum wal__store_object_kind kind;
    uint8_t uuid[16];
    uint64_t epoch; /* of an epoch or a part, from 1 */
    /* Of a part, a base, a segment's base, a move of a session, or its newest
     * record, from 1. */
    uint64_t number;
    uint8_t id[16]; /* of a segment, random; of a session */
};

/* Writes the name. */
void wal__store_object_format(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE]);

/* Reads a name. False: it is not one that wal__store_object_format writes. */
bool wal__store_object_parse(const char *name,
                             struct wal__store_object *object);

/* Writes what the names of a kind begin with; of the parts, those of an epoch
 * when that is not 0; of the moves, those of a session when the id is not all
 * zero. */
void wal__store_object_prefix(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE]);

void wal__uuid_format(const uint8_t uuid[16], char out[WAL__UUID_TEXT_SIZE]);
/* Reads the first `size` bytes; with hyphens too, as programs print a UUID. */
bool wal__uuid_parse(const char *text, size_t size, uint8_t uuid[16]);

/* Reads `count` lower-case hexadecimal digits, at most 16, as a number. */
bool wal__hex_parse(const char *text, size_t count, uint64_t *number);

#endif
