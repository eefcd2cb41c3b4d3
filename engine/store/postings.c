/*
 * postings.c - walks the records of one session, oldest first: the postings in
 * the index of each segment that holds some, then those of the tail index
 * (SPEC.md 2.12).
 *
 * State lock for writing: an index may have to be mapped.
 */
#include <string.h>

#include "engine/store/core.h"
#include "format/bytes/assert.h"

/* Postings of one session in one segment. */
struct source {
    uint64_t segment;
    uint32_t first;
    uint32_t count;
};

/* Collects the segments that hold postings of the session, newest first. */
static enum wal_status find_sources(struct wal__core *core,
                                    const struct wal__summary *summary,
                                    struct wal__buf *sources)
{
    uint64_t segment = summary->segment;
    enum wal_status status = WAL_OK;

    while (segment != 0 && status == WAL_OK) {
        const struct wal__index *index;
        struct wal__summary segment_summary;
        struct source source;

        status = wal__index_set_get(&core->indexes, segment, &index);
        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
        }
        if (wal__index_find(index, summary->number, &segment_summary) !=
                WAL__FMT_OK ||
            segment_summary.segment >= segment) {
            return WAL_ECORRUPT;
        }
        source.segment = segment;
        source.first = segment_summary.first_posting;
        source.count = segment_summary.posting_count;
        WAL__ASSERT(source.segment > segment_summary.segment);
        status = wal__buf_append(sources, &source, sizeof(source));
        segment = segment_summary.segment;
    }
    return status;
}

static enum wal_status visit_source(struct wal__core *core,
                                    const struct source *source,
                                    wal__posting_fn *each, void *ctx)
{
    const struct wal__index *index;
    enum wal_status status =
        wal__index_set_get(&core->indexes, source->segment, &index);

    for (uint32_t i = 0; i < source->count && status == WAL_OK; i++) {
        struct wal__posting posting;

        wal__posting_decode(index->postings +
                                (size_t)(source->first + i) * WAL__POSTING_SIZE,
                            &posting);
        status =
            each(ctx, &posting, wal__position(source->segment, posting.offset));
    }
    return status;
}

static enum wal_status visit_tail(struct wal__core *core, uint32_t number,
                                  wal__posting_fn *each, void *ctx)
{
    struct wal__buf postings;
    enum wal_status status;

    wal__buf_init(&postings, core->env.heap);
    status = wal__tail_index_collect(&core->tail_index, number, &postings);
    WAL__ASSERT(postings.size == 0 || core->log.tail_segment != NULL);
    for (size_t at = 0; at < postings.size && status == WAL_OK;
         at += sizeof(struct wal__posting)) {
        struct wal__posting posting;

        memcpy(&posting, postings.data + at, sizeof(posting));
        status =
            each(ctx, &posting,
                 wal__position(core->log.tail_segment->id, posting.offset));
    }
    wal__buf_deinit(&postings);
    return status;
}

enum wal_status wal__core_visit_postings(struct wal__core *core,
                                         const struct wal__summary *summary,
                                         wal__posting_fn *each, void *ctx)
{
    struct wal__buf sources;
    enum wal_status status;

    wal__buf_init(&sources, core->env.heap);
    status = find_sources(core, summary, &sources);
    WAL__ASSERT(sources.size % sizeof(struct source) == 0);
    for (size_t at = sources.size; at > 0 && status == WAL_OK;
         at -= sizeof(struct source)) {
        struct source source;

        memcpy(&source, sources.data + at - sizeof(source), sizeof(source));
        status = visit_source(core, &source, each, ctx);
    }
    wal__buf_deinit(&sources);
    return status == WAL_OK ? visit_tail(core, summary->number, each, ctx)
                            : status;
}
