/*
 * index_builder.h - builds the index of a rewritten segment of the log
 * (SPEC.md 2.12) while its records are written, session by session.
 *
 * Memory: twice the index. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_INDEX_BUILDER_H
#define AGENTWAL_ENGINE_COMPACT_INDEX_BUILDER_H

#include "engine/base/buf.h"
#include "format/index/index_fmt.h"

struct wal__index_builder {
    struct wal__buf summaries;
    struct wal__buf postings;
    struct wal__buf texts;
    uint32_t session_count;
    uint32_t posting_count;
    uint32_t first_posting; /* of the next summary */
    struct wal__buf encoded;
};

void wal__index_builder_init(struct wal__index_builder *builder,
                             const struct wal__heap *heap);
void wal__index_builder_deinit(struct wal__index_builder *builder);

/* Adds the posting of a record; those of a session one after another, by
 * sequence. */
enum wal_status
wal__index_builder_add_posting(struct wal__index_builder *builder,
                               const struct wal__posting *posting,
                               struct wal_error *error) WAL_MUST_USE;
/* Adds the summary of the session whose postings were added since the last
 * summary; sessions ascend. */
enum wal_status
wal__index_builder_add_summary(struct wal__index_builder *builder,
                               const struct wal__summary *summary,
                               struct wal_error *error) WAL_MUST_USE;
/* Encodes the index with this header, whose counts are set. *index is the
 * writer's, valid until deinit. */
enum wal_status wal__index_builder_encode(struct wal__index_builder *builder,
                                          struct wal__index_header *header,
                                          struct wal__span *index,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
