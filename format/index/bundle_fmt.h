/*
 * bundle_fmt.h - the header and the table of a bundle: a file that holds the files of a store
 * (SPEC.md 2.24). No I/O. Threads: any.
 *
 * A file of the store is named by its class and number, so that no name in a bundle can lead out of
 * the directory that it is unpacked to.
 */
#ifndef AGENTWAL_FORMAT_INDEX_BUNDLE_FMT_H
#define AGENTWAL_FORMAT_INDEX_BUNDLE_FMT_H

#include "format/bytes/bytes.h"

enum {
    WAL__BUNDLE_VERSION = 2, /* of an encrypted one; others have 1 */
    WAL__BUNDLE_MAGIC_SIZE = 8,
    WAL__BUNDLE_HEADER_SIZE = 64,
    WAL__BUNDLE_FILE_SIZE = 32, /* a row of the table */
    WAL__BUNDLE_FILES_MAX = 1024 * 1024
};

enum wal__bundle_class {
    WAL__BUNDLE_MANIFEST = 0, /* its number is 0 */
    WAL__BUNDLE_LOG = 1,      /* the number of a segment, from 1 */
    WAL__BUNDLE_PACK = 2,
    WAL__BUNDLE_KEYS = 3 /* of an encrypted store; its number is 0 */
};

struct wal__bundle {
    uint32_t version;
    uint32_t file_count;
    uint32_t table_crc;
    uint64_t size;     /* bytes of the whole bundle */
    uint64_t sessions; /* in it, without deleted ones */
    int64_t created_ms;
};

/* A row of the table. */
struct wal__bundle_file {
    uint32_t file_class; /* enum wal__bundle_class */
    uint32_t crc;        /* of the stored bytes */
    uint64_t id;         /* its number */
    uint64_t size;       /* bytes of the file */
    uint64_t stored;     /* of them in the bundle; zeros follow */
};

/* Whether the bytes begin as a bundle does, of any version. */
bool wal__bundle_is_magic(struct wal__span bytes);

/* Writes WAL__BUNDLE_HEADER_SIZE bytes. */
void wal__bundle_encode(const struct wal__bundle *bundle, uint8_t *out);
/*
 * Decodes a header. WAL__FMT_SHORT, WAL__FMT_MAGIC; WAL__FMT_VERSION with bundle->version set;
 * WAL__FMT_HEADER_CRC; WAL__FMT_FIELD: a count or size outside its range.
 */
enum wal__fmt wal__bundle_decode(struct wal__span bytes, struct wal__bundle *bundle);

/* Writes WAL__BUNDLE_FILE_SIZE bytes. */
void wal__bundle_file_encode(const struct wal__bundle_file *file, uint8_t *out);

/* A table that is being decoded: the rows in order. */
struct wal__bundle_table {
    struct wal__span rest;
    uint32_t left;
    uint64_t stored; /* sum over the rows so far */
    uint64_t limit;  /* of that: bytes after the table */
    uint32_t last_class;
    uint64_t last_id;
    bool has_last;
};

/* bytes: the whole table. WAL__FMT_SHORT, WAL__FMT_DATA_CRC. */
enum wal__fmt wal__bundle_table_decode(const struct wal__bundle *bundle, struct wal__span bytes,
                                       struct wal__bundle_table *table);
/* Decodes the next row; call it only while table->left > 0. WAL__FMT_FIELD: a class, number or size
 * outside its range, rows that do not ascend by class and number, no manifest at the front, or
 * sizes whose sum is not that of the bundle. */
enum wal__fmt wal__bundle_table_next(struct wal__bundle_table *table,
                                     struct wal__bundle_file *file);

#endif
