/*
 * postings.c - walks the records of one session: the postings in the index of each segment that
 * holds some, then those of the tail index (SPEC.md 2.12). Oldest first, or newest first from any
 * record on: then only the indexes that are reached are mapped.
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

/* Returns the segment before this one in the chain, or 0. */
static uint64_t previous_id(const struct wal__core *core, uint64_t id)
{
    const struct wal__segment *segment = wal__log_segment(&core->log, id);
    uint64_t first = id;

    if (segment != NULL && wal__segment_is_rewritten(&segment->header)) {
        first = segment->header.rewrite.first_id;
    }
    WAL__ASSERT(first > 0 && first <= id);
    return first == 0 ? 0 : wal__log_live_id(&core->log, first - 1);
}

/* The part of a segment's index that the session has, and the segment before it that holds records
 * of the session. *segment may have been replaced: it is then the one that replaced it. Where it
 * has nothing of the session, it was replaced when it was named, and a power loss undid that: the
 * part is in an older one. */
static enum wal_status find_part(struct wal__core *core, uint32_t number, uint64_t *segment,
                                 const struct wal__index **index, struct wal__summary *part)
{
    *segment = wal__log_live_id(&core->log, *segment);
    while (*segment != 0) {
        enum wal_status status = wal__index_set_get(&core->indexes, *segment, index);
        enum wal__fmt found;

        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
        }
        found = wal__index_find(*index, number, part);
        if (found != WAL__FMT_ZERO) {
            return found == WAL__FMT_OK && part->segment < *segment ? WAL_OK : WAL_ECORRUPT;
        }
        *segment = previous_id(core, *segment);
    }
    return WAL_ECORRUPT;
}

/* Collects the segments that hold postings of the session, newest first. */
static enum wal_status find_sources(struct wal__core *core, const struct wal__summary *summary,
                                    struct wal__buf *sources)
{
    uint64_t segment = summary->segment;
    enum wal_status status = WAL_OK;

    while (segment != 0 && status == WAL_OK) {
        const struct wal__index *index;
        struct wal__summary part;
        struct source source;

        status = find_part(core, summary->number, &segment, &index, &part);
        if (status != WAL_OK) {
            return status;
        }
        source.segment = segment;
        source.first = part.first_posting;
        source.count = part.posting_count;
        status = wal__buf_append(sources, &source, sizeof(source));
        segment = part.segment;
    }
    return status;
}

enum wal_status wal__postings_visit(const uint8_t *postings, uint32_t count, uint64_t segment,
                                    wal__posting_fn *each, void *ctx)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__posting posting;

        wal__posting_decode(postings + (size_t)i * WAL__POSTING_SIZE, &posting);
        status = each(ctx, &posting, wal__position(segment, posting.offset));
    }
    return status;
}

static enum wal_status visit_source(struct wal__core *core, const struct source *source,
                                    wal__posting_fn *each, void *ctx)
{
    const struct wal__index *index;
    enum wal_status status = wal__index_set_get(&core->indexes, source->segment, &index);

    return status == WAL_OK
               ? wal__postings_visit(index->postings + (size_t)source->first * WAL__POSTING_SIZE,
                                     source->count, source->segment, each, ctx)
               : status;
}

static uint64_t tail_segment(const struct wal__core *core)
{
    return core->log.tail_segment == NULL ? 0 : core->log.tail_segment->id;
}

enum wal_status wal__core_visit_tail(const struct wal__core *core, uint32_t number,
                                     wal__posting_fn *each, void *ctx)
{
    struct wal__tail_postings tail = wal__tail_index_postings(&core->tail_index, number);
    uint64_t segment = tail_segment(core);
    struct wal__buf postings;
    enum wal_status status = wal__postings_visit(tail.base, tail.base_count, segment, each, ctx);

    wal__buf_init(&postings, core->env.heap);
    if (status == WAL_OK) {
        status = wal__tail_index_collect(&core->tail_index, &tail, &postings);
    }
    for (size_t at = 0; at < postings.size && status == WAL_OK; at += sizeof(struct wal__posting)) {
        struct wal__posting posting;

        memcpy(&posting, postings.data + at, sizeof(posting));
        status = each(ctx, &posting, wal__position(segment, posting.offset));
    }
    wal__buf_deinit(&postings);
    return status;
}

enum wal_status wal__core_visit_postings(struct wal__core *core, const struct wal__summary *summary,
                                         wal__posting_fn *each, void *ctx)
{
    struct wal__buf sources;
    enum wal_status status;

    wal__buf_init(&sources, core->env.heap);
    status = find_sources(core, summary, &sources);
    WAL__ASSERT(sources.size % sizeof(struct source) == 0);
    for (size_t at = sources.size; at > 0 && status == WAL_OK; at -= sizeof(struct source)) {
        struct source source;

        memcpy(&source, sources.data + at - sizeof(source), sizeof(source));
        status = visit_source(core, &source, each, ctx);
    }
    wal__buf_deinit(&sources);
    return status == WAL_OK ? wal__core_visit_tail(core, summary->number, each, ctx) : status;
}

/* --- newest first ------------------------------------------------------- */

/* Leaves out the postings above cursor->from. */
static void seek_in_index(struct wal__posting_cursor *cursor)
{
    uint32_t low = 0;
    uint32_t high = cursor->left;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct wal__posting posting;

        wal__posting_decode(cursor->postings + (size_t)middle * WAL__POSTING_SIZE, &posting);
        if (posting.sequence <= cursor->from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    cursor->left = low;
}

void wal__posting_cursor_begin(struct wal__posting_cursor *cursor, struct wal__core *core,
                               const struct wal__summary *summary, uint64_t from)
{
    struct wal__tail_postings tail = wal__tail_index_postings(&core->tail_index, summary->number);

    *cursor = (struct wal__posting_cursor){.core = core,
                                           .number = summary->number,
                                           .from = from,
                                           .tail = tail.newest,
                                           .postings = tail.base,
                                           .left = tail.base_count,
                                           .segment = tail_segment(core),
                                           .next_segment = summary->segment};
    seek_in_index(cursor);
}

/* Steps to the index of the next older segment. */
static enum wal_status open_segment(struct wal__posting_cursor *cursor)
{
    const struct wal__index *index;
    struct wal__summary part;
    enum wal_status status =
        find_part(cursor->core, cursor->number, &cursor->next_segment, &index, &part);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(cursor->segment == 0 || cursor->next_segment <= cursor->segment);
    cursor->segment = cursor->next_segment;
    cursor->next_segment = part.segment;
    /* Indexes stay mapped as long as the set, whose slots may move. */
    cursor->postings = index->postings + (size_t)part.first_posting * WAL__POSTING_SIZE;
    cursor->left = part.posting_count;
    seek_in_index(cursor);
    return WAL_OK;
}

enum wal_status wal__posting_cursor_previous(struct wal__posting_cursor *cursor,
                                             struct wal__posting *posting, uint64_t *position)
{
    while (cursor->tail != 0) {
        wal__tail_index_step_back(&cursor->core->tail_index, &cursor->tail, posting);
        if (posting->sequence <= cursor->from) {
            *position = wal__position(tail_segment(cursor->core), posting->offset);
            return WAL_OK;
        }
    }
    while (cursor->left == 0) {
        enum wal_status status;

        if (cursor->next_segment == 0) {
            return WAL_END;
        }
        status = open_segment(cursor);
        if (status != WAL_OK) {
            return status;
        }
    }
    cursor->left--;
    wal__posting_decode(cursor->postings + (size_t)cursor->left * WAL__POSTING_SIZE, posting);
    *position = wal__position(cursor->segment, posting->offset);
    return WAL_OK;
}
