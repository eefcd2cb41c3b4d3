/*
 * search_file.h - the header of an index file of search, and the names of such files
 * (docs/search.md, Bytes of a file). No I/O. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_INDEX_SEARCH_FILE_H
#define AGENTWAL_FORMAT_INDEX_SEARCH_FILE_H

#include "format/bytes/bytes.h"

enum {
    WAL__SEARCH_FILE_VERSION = 4,
    WAL__SEARCH_FILE_PAGE = 4096, /* bytes of a page, and of the header's */
    WAL__SEARCH_FILE_HEADER = 80, /* bytes of it that are not zero */
    WAL__SEARCH_FILE_NAME = 64    /* of a name, with its terminator */
};

enum wal__search_kind { WAL__SEARCH_TEXT = 1, WAL__SEARCH_DEEP = 2 };

struct wal__search_file {
    uint32_t version; /* written as the present one */
    uint32_t kind;    /* enum wal__search_kind */
    uint64_t id;      /* of the segment */
    uint64_t identity;
    uint64_t last_sequence;
    int64_t time_min;
    int64_t time_max;
    uint64_t text_size;
    uint32_t rows;
    uint32_t page_count;
    uint32_t table_crc;
};

/* Writes WAL__SEARCH_FILE_HEADER bytes. */
void wal__search_file_encode(const struct wal__search_file *file, uint8_t *out);

/* Decodes as many bytes. WAL__FMT_SHORT, WAL__FMT_MAGIC, WAL__FMT_HEADER_CRC, WAL__FMT_VERSION,
 * WAL__FMT_FIELD. */
enum wal__fmt wal__search_file_decode(struct wal__span bytes, struct wal__search_file *file);

/* Returns the offset of the first page of the database. */
uint64_t wal__search_file_pages(const struct wal__search_file *file);

/* Writes the name of the file of a segment, terminated by NUL. */
void wal__search_file_name(uint64_t id, enum wal__search_kind kind,
                           char name[WAL__SEARCH_FILE_NAME]);

/* Whether a file in index/ has the name of one, or of one that is being made: then
 * *is_temporary. */
bool wal__search_file_is_name(const char *name, uint64_t *id, enum wal__search_kind *kind,
                              bool *is_temporary);

#endif
