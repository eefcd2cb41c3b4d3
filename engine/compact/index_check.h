/*
 * index_check.h - compares the records of a rewritten segment of the log, in
 * the order of the file, with its index: each is named once, and each name is
 * true.
 * One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_INDEX_CHECK_H
#define AGENTWAL_ENGINE_COMPACT_INDEX_CHECK_H

#include "format/index/index_fmt.h"
#include "format/segment/frame.h"

struct wal__index_check {
    struct wal__index index;
    uint32_t posting; /* the next one that a record must match */
    uint32_t rank;    /* of the next summary */
    struct wal__summary summary;
};

/* False: the index cannot be decoded. Its bytes outlive the check. */
bool wal__index_check_begin(struct wal__index_check *check,
                            struct wal__span index);
/* Whether the record is the next one that the index names. */
bool wal__index_check_record(struct wal__index_check *check,
                             const struct wal__frame *frame, uint64_t offset);
/* Whether the index names no more. */
bool wal__index_check_end(const struct wal__index_check *check);

#endif
