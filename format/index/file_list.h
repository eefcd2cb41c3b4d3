/*
 * file_list.h - the list of files that a checkpoint names, as it is kept in a
 * blob (SPEC.md 2.21): sorted by path, each path once. Pure bytes.
 */
#ifndef AGENTWAL_FORMAT_INDEX_FILE_LIST_H
#define AGENTWAL_FORMAT_INDEX_FILE_LIST_H

#include "format/segment/record_blob.h"

enum {
    WAL__FILE_PATH_MAX = 4096,
    WAL__FILES_MAX = 16 * 1024 * 1024,
    WAL__FILE_BOOT_SIZE = 16
};

enum wal__file_kind {
    WAL__FILE_ABSENT = 0,
    WAL__FILE_REGULAR = 1,
    WAL__FILE_SYMLINK = 2
};

enum wal__file_flag {
    WAL__FILE_RACY = 1, /* it was so new that its times do not tell a change */
    WAL__FILE_FRESH = 2 /* so new that a loss of power may have taken bytes */
};

struct wal__file_record {
    uint8_t kind;  /* enum wal__file_kind; an absent file has zeros below */
    uint8_t flags; /* enum wal__file_flag */
    uint32_t mode; /* permission bits, 07777 */
    uint64_t size; /* of the content; a symlink's is its target */
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
    uint64_t device;
    struct wal__digest digest; /* of the content */
    struct wal__span path;     /* below the root, without . and .. */
};

/* Bytes of the head, and of one record. */
size_t wal__file_list_head_size(void);
size_t wal__file_record_size(const struct wal__file_record *file);
void wal__file_list_encode_head(uint32_t count,
                                const uint8_t boot[WAL__FILE_BOOT_SIZE],
                                uint8_t *out);
void wal__file_record_encode(const struct wal__file_record *file, uint8_t *out);

/* Reads a list: the head, then record after record, each checked to stand
 * behind the one before in the order of paths' bytes. */
struct wal__file_list {
    struct wal__span rest;
    struct wal__span last_path;
    uint8_t boot[WAL__FILE_BOOT_SIZE]; /* that it was made in; zeros: not known
                                        */
    uint32_t count;
    uint32_t remaining;
};

enum wal__fmt wal__file_list_decode(struct wal__span bytes,
                                    struct wal__file_list *list);
/* WAL__FMT_OK and *file, whose path points into the bytes; call while
 * list->remaining > 0. Bytes behind the last record are a fault. */
enum wal__fmt wal__file_list_next(struct wal__file_list *list,
                                  struct wal__file_record *file);

/* A path as it may stand in a list: 1 to 4,096 bytes, no NUL, relative, no
 * empty part, no part . or .. */
bool wal__file_path_is_normalized(struct wal__span path);

#endif
