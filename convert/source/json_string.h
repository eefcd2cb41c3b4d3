/*
 * json_string.h - texts in the JSON of sources and of their entries' meta.
 *
 * Threads: any; one thread at a time per arena.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_JSON_STRING_H
#define AGENTWAL_CONVERT_SOURCE_JSON_STRING_H

#include "agentwal.h"
#include "format/json/arena.h"

enum {
    WAL__STRING_MAX = 4096 /* bytes of wal__string_member */
};

/* Decodes a JSON string of 1 to `max` bytes without control characters into
 * text, a buffer of max + 1 bytes. Returns false, and an empty text, for other
 * values. */
bool wal__string_decode(struct wal__json_span string, size_t max, char *text);

/* As wal__string_decode, in the arena; NULL for other values. */
char *wal__string_copy(struct wal__arena *arena, struct wal__json_span string,
                       size_t max);

/* Returns {"key":"text"MEMBERS} as JSON in the arena; NULL: no memory. */
char *wal__string_object(struct wal__arena *arena, const char *key,
                         struct wal_slice text, const char *members);

/* Decodes a string member of a JSON object like wal__string_decode; `parent`
 * may be NULL. */
bool wal__string_member(const void *json, size_t size, const char *parent,
                        const char *key, char text[WAL__STRING_MAX + 1]);

#endif
