/*
 * view_root.h - an entry of the list of roots of views: a file in views/ of a store (SPEC.md 10.7).
 * No I/O. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_INDEX_VIEW_ROOT_H
#define AGENTWAL_FORMAT_INDEX_VIEW_ROOT_H

#include "format/bytes/bytes.h"

enum {
    WAL__VIEW_ROOT_DIALECT_MAX = 31,
    WAL__VIEW_ROOT_PATH_MAX = 4095,
    WAL__VIEW_ROOT_HEAD = 16, /* bytes before the texts */
    WAL__VIEW_ROOT_SIZE_MAX =
        WAL__VIEW_ROOT_HEAD + WAL__VIEW_ROOT_DIALECT_MAX + WAL__VIEW_ROOT_PATH_MAX,
    WAL__VIEW_ROOT_NAME = 16 /* characters of the file's name */
};

/* Spans are borrowed. */
struct wal__view_root {
    struct wal__span dialect;
    struct wal__span path; /* absolute */
};

/* Whether the sizes are in their ranges, the path is absolute, and neither has a NUL. */
bool wal__view_root_is_valid(const struct wal__view_root *root);

/* Encodes a valid entry to at most WAL__VIEW_ROOT_SIZE_MAX bytes; returns their number. */
size_t wal__view_root_encode(const struct wal__view_root *root, uint8_t *out);

/* Decodes all bytes of a file. WAL__FMT_SHORT, WAL__FMT_MAGIC, WAL__FMT_HEADER_CRC,
 * WAL__FMT_FIELD. */
enum wal__fmt wal__view_root_decode(struct wal__span bytes, struct wal__view_root *root);

/* Writes the name of a valid entry's file, terminated by NUL. */
void wal__view_root_name(const struct wal__view_root *root, char name[WAL__VIEW_ROOT_NAME + 1]);

/* Whether a file in views/ has the name of an entry; else it is none, like what a process left that
 * died while it wrote one. */
bool wal__view_root_is_name(const char *name);

#endif
