/*
 * index_check.c - compares records with the index of their segment
 * (index_check.h).
 */
#include "engine/compact/index_check.h"

#include <string.h>

bool wal__index_check_begin(struct wal__index_check *check,
                            struct wal__span index)
{
    memset(check, 0, sizeof(*check));
    return wal__index_decode(index, &check->index) == WAL__FMT_OK;
}

bool wal__index_check_record(struct wal__index_check *check,
                             const struct wal__frame *frame, uint64_t offset)
{
    struct wal__posting posting;

    if (check->posting == check->index.header.posting_count) {
        return false;
    }
    while (check->posting ==
           check->summary.first_posting + check->summary.posting_count) {
        if (wal__index_summary(&check->index, check->rank, &check->summary) !=
            WAL__FMT_OK) {
            return false;
        }
        check->rank++;
    }
    wal__index_posting(&check->index, check->posting, &posting);
    check->posting++;
    return posting.offset == offset && posting.sequence == frame->sequence &&
           posting.parent == frame->parent &&
           posting.id_hash == frame->id_hash && posting.type == frame->type &&
           posting.flags == frame->flags && posting.kind == frame->kind &&
           posting.stream == frame->stream &&
           check->summary.number == frame->session;
}

bool wal__index_check_end(const struct wal__index_check *check)
{
    return check->posting == check->index.header.posting_count;
}
