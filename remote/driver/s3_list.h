/*
 * s3_list.h - the XML that S3 answers with: a page of a list, and an error. Any bytes may come:
 * what is not such an answer is reported.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_S3_LIST_H
#define AGENTWAL_REMOTE_DRIVER_S3_LIST_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

enum {
    WAL__S3_CODE_SIZE = 64,
    WAL__S3_PAGE_MAX = 8 * 1024 * 1024, /* bytes of the XML of a page */
    WAL__S3_TOKEN_MAX = 4096            /* bytes of a continuation token */
};

struct wal__s3_key {
    size_t offset; /* in names; terminated */
    uint64_t size; /* of the object */
};

/* Zeroed but for the heap, it is empty. */
struct wal__s3_page {
    const struct wal__heap *heap;
    struct wal__buf names;
    struct wal__s3_key *keys;
    uint32_t count;
    uint32_t capacity;
    bool is_truncated;    /* more keys follow */
    struct wal__buf next; /* the continuation token, terminated, or nothing */
};

void wal__s3_page_init(struct wal__s3_page *page, const struct wal__heap *heap);
void wal__s3_page_deinit(struct wal__s3_page *page);

/* Reads a page into an empty struct: keys in the order of the answer, which is not checked.
 * WAL_EREMOTE: error->text says what is wrong. */
enum wal_status wal__s3_page_parse(struct wal__s3_page *page, struct wal_slice xml,
                                   struct wal_error *error) WAL_MUST_USE;

/* Copies the letters and digits of the code of an error, or nothing when the bytes are not one. */
void wal__s3_error_code(struct wal_slice xml, char code[WAL__S3_CODE_SIZE]);

#endif
