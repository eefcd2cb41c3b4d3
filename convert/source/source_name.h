/*
 * source_name.h - the names of sources: which file a session came from; and texts in the JSON of
 * sources and of their entries' meta; the ids of files.
 *
 * A session's source is "DIALECT ORDINAL PATH". PATH is relative to the argument of the import;
 * '%', control bytes and bytes that are not UTF-8 are written as %XX.
 *
 * Threads: any; one thread at a time per arena.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_SOURCE_NAME_H
#define AGENTWAL_CONVERT_SOURCE_SOURCE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "format/json/arena.h"

enum {
    WAL__STRING_MAX = 4096 /* bytes of wal__string_member */
};

/* Decodes a JSON string of 1 to `max` bytes without control characters into text, a buffer of max +
 * 1 bytes. Returns false, and an empty text, for other values. */
bool wal__string_decode(struct wal__json_span string, size_t max, char *text);

/* As wal__string_decode, in the arena; NULL for other values. */
char *wal__string_copy(struct wal__arena *arena, struct wal__json_span string, size_t max);

/* Returns {"key":"text"MEMBERS} as JSON in the arena; NULL: no memory. */
char *wal__string_object(struct wal__arena *arena, const char *key, struct wal_slice text,
                         const char *members);

/* Decodes a string member of a JSON object like wal__string_decode; `parent` may be NULL. */
bool wal__string_member(const void *json, size_t size, const char *parent, const char *key,
                        char text[WAL__STRING_MAX + 1]);

enum {
    WAL__SOURCE_SIZE_MAX = 4096 /* bytes of a source, and of its path */
};

struct wal__source {
    char dialect[32];
    uint64_t ordinal;
    char path[WAL__SOURCE_SIZE_MAX + 1]; /* as on disk */
};

/* Writes the source as text; returns false when it is too long. */
bool wal__source_text(char text[WAL__SOURCE_SIZE_MAX + 1], const char *dialect, uint64_t ordinal,
                      const char *path);

/* Parses a source. Returns false when no import wrote it. */
bool wal__source_parse(struct wal_slice text, struct wal__source *source);

/* Writes the name of a file whose session keeps the path `other`, as one is at `name` that keeps
 * `path`. False: the paths are the same, or the name does not end as its path does. */
bool wal__source_sibling(const char *name, const char *path, const char *other,
                         char sibling[WAL__SOURCE_SIZE_MAX + 1]);

/* Escapes '%', control bytes and bytes that are not UTF-8 as %XX. Returns NULL without memory. */
char *wal__source_escape(struct wal__arena *arena, const char *path);

/* The reverse. Returns false for malformed escapes and for a text that is too long. */
bool wal__source_unescape(struct wal_slice text, char path[WAL__SOURCE_SIZE_MAX + 1]);

enum {
    WAL__FILE_ID_SIZE = 37 /* bytes of the id of a file, with its NUL */
};

/* Writes the id of a file: the UUID at the end of its name, without the endings. Returns false, and
 * an empty id, if there is none. */
bool wal__source_file_id(const char *path, char id[WAL__FILE_ID_SIZE]);

/* Returns true if the id of an entry names the file that its line is from, as FILE:ID. */
bool wal__source_names_file(struct wal_slice id);

/* Returns the 64-bit FNV-1a hash of a text, of which ids are made. */
uint64_t wal__source_hash(const char *text);

#endif
