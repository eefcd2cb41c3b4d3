/*
 * file_list.h - the list of the files of a checkpoint, which is the content of a blob (SPEC.md
 * 2.21): sorted by path, each path once. No I/O. Threads: one at a time per list.
 */
#ifndef AGENTWAL_FORMAT_INDEX_FILE_LIST_H
#define AGENTWAL_FORMAT_INDEX_FILE_LIST_H

#include "format/segment/record_blob.h"

enum { WAL__FILE_PATH_MAX = 4096, WAL__FILES_MAX = 16 * 1024 * 1024, WAL__FILE_BOOT_SIZE = 16 };

enum wal__file_kind { WAL__FILE_ABSENT = 0, WAL__FILE_REGULAR = 1, WAL__FILE_SYMLINK = 2 };

enum wal__file_flag {
    WAL__FILE_RACY = 1, /* too new for its times to reveal a later change */
    WAL__FILE_FRESH = 2 /* too new to survive a loss of power */
};

struct wal__file_record {
    uint8_t kind;  /* enum wal__file_kind; if absent, the rest is 0 */
    uint8_t flags; /* enum wal__file_flag */
    uint32_t mode; /* permission bits, 07777 */
    uint64_t size; /* of the content; of a symlink: of its target path */
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
    uint64_t device;
    struct wal__digest digest; /* of the content */
    struct wal__span path;     /* relative to the root, normalised */
};

/* Encoded sizes of the head and of one record. */
size_t wal__file_list_head_size(void);
size_t wal__file_record_size(const struct wal__file_record *file);
void wal__file_list_encode_head(uint32_t count, const uint8_t boot[WAL__FILE_BOOT_SIZE],
                                uint8_t *out);
void wal__file_record_encode(const struct wal__file_record *file, uint8_t *out);

/* A list that is being decoded: the head, then each record. Paths must ascend in byte order. */
struct wal__file_list {
    struct wal__span rest;
    struct wal__span last_path;
    uint8_t boot[WAL__FILE_BOOT_SIZE]; /* boot id at creation; 0: unknown */
    uint32_t count;
    uint32_t remaining;
};

enum wal__fmt wal__file_list_decode(struct wal__span bytes, struct wal__file_list *list);
/* Decodes the next record into *file, whose path points into the bytes. Call it only while
 * list->remaining > 0. Bytes after the last record are a fault. */
enum wal__fmt wal__file_list_next(struct wal__file_list *list, struct wal__file_record *file);

/* Whether a list may contain the path: 1 to 4,096 bytes, no NUL, relative, no empty component, no
 * component "." or "..". */
bool wal__file_path_is_normalized(struct wal__span path);

#endif
