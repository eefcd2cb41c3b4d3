/*
 * tail_index.c - postings of the segment that is being written (tail_index.h,
 * SPEC.md 2.12).
 *
 * Invariant: newest[rank] heads a chain through previous[] that has
 * counts[rank] postings of session numbers[rank], descending. The caller's
 * lock: one writer, or any readers.
 */
#include "engine/index/tail_index.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/index/order.h"

enum {
    CAPACITY_MIN = 64
};

void wal__tail_index_init(struct wal__tail_index *tail,
                          const struct wal__heap *heap)
{
    *tail = (struct wal__tail_index){.heap = heap};
    wal__map_init(&tail->by_session, heap);
}

void wal__tail_index_deinit(struct wal__tail_index *tail)
{
    const struct wal__heap *heap = tail->heap;

    wal__heap_free(heap, tail->postings);
    wal__heap_free(heap, tail->previous);
    wal__heap_free(heap, tail->sessions);
    wal__heap_free(heap, tail->numbers);
    wal__heap_free(heap, tail->newest);
    wal__heap_free(heap, tail->counts);
    wal__map_deinit(&tail->by_session);
    *tail = (struct wal__tail_index){.heap = heap};
    wal__map_init(&tail->by_session, heap);
}

void wal__tail_index_reset(struct wal__tail_index *tail)
{
    struct wal__map *map = &tail->by_session;

    tail->count = 0;
    tail->unordered = 0;
    tail->session_count = 0;
    if (map->capacity > 0) {
        memset(map->values, 0, map->capacity * sizeof(*map->values));
    }
    map->count = 0;
}

/* The least doubled capacity that holds `needed`; 0 when there is none. */
static uint32_t grown(uint32_t capacity, uint64_t needed)
{
    uint64_t next = capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity;

    while (next < needed) {
        next *= 2;
    }
    return next <= UINT32_MAX ? (uint32_t)next : 0;
}

/* Resizes an array of uint32_t. */
static bool resize(const struct wal__heap *heap, uint32_t **array,
                   uint32_t capacity)
{
    uint32_t *bigger =
        wal__heap_resize(heap, *array, capacity, sizeof(**array));

    if (bigger == NULL) {
        return false;
    }
    *array = bigger;
    return true;
}

static enum wal_status reserve_postings(struct wal__tail_index *tail,
                                        uint32_t more)
{
    uint64_t needed = (uint64_t)tail->count + more;

    if (needed <= tail->capacity) {
        return WAL_OK;
    }

    uint32_t capacity = grown(tail->capacity, needed);
    struct wal__posting *postings = NULL;

    if (capacity != 0) {
        postings = wal__heap_resize(tail->heap, tail->postings, capacity,
                                    sizeof(*postings));
    }
    if (postings == NULL) {
        return WAL_ENOMEM;
    }
    tail->postings = postings;
    if (!resize(tail->heap, &tail->previous, capacity) ||
        !resize(tail->heap, &tail->sessions, capacity)) {
        return WAL_ENOMEM;
    }
    tail->capacity = capacity;
    return WAL_OK;
}

static enum wal_status reserve_sessions(struct wal__tail_index *tail,
                                        uint32_t more)
{
    uint64_t needed = (uint64_t)tail->session_count + more;

    if (needed <= tail->session_capacity) {
        return WAL_OK;
    }

    uint32_t capacity = grown(tail->session_capacity, needed);

    if (capacity == 0 || !resize(tail->heap, &tail->numbers, capacity) ||
        !resize(tail->heap, &tail->newest, capacity) ||
        !resize(tail->heap, &tail->counts, capacity)) {
        return WAL_ENOMEM;
    }
    tail->session_capacity = capacity;
    return WAL_OK;
}

enum wal_status wal__tail_index_reserve(struct wal__tail_index *tail,
                                        uint32_t postings)
{
    enum wal_status status = reserve_postings(tail, postings);

    if (status == WAL_OK) {
        status = reserve_sessions(tail, postings);
    }
    if (status == WAL_OK) {
        status = wal__map_reserve(&tail->by_session, postings);
    }
    return status;
}

bool wal__tail_index_rank(const struct wal__tail_index *tail, uint32_t session,
                          uint32_t *rank)
{
    uint32_t cursor = 0;

    return wal__map_find(&tail->by_session, session, &cursor, rank);
}

/* Room was reserved. */
static uint32_t add_session(struct wal__tail_index *tail, uint32_t session)
{
    uint32_t rank = tail->session_count;
    enum wal_status status = wal__map_add(&tail->by_session, session, rank);

    WAL__ASSERT(status == WAL_OK);
    tail->numbers[rank] = session;
    tail->newest[rank] = 0;
    tail->counts[rank] = 0;
    tail->session_count++;
    return rank;
}

enum wal_status wal__tail_index_add(struct wal__tail_index *tail,
                                    uint32_t session,
                                    const struct wal__posting *posting)
{
    enum wal_status status = wal__tail_index_reserve(tail, 1);
    uint32_t rank;

    if (status != WAL_OK) {
        return status;
    }
    if (!wal__tail_index_rank(tail, session, &rank)) {
        rank = add_session(tail, session);
    }
    tail->postings[tail->count] = *posting;
    tail->sessions[tail->count] = session;
    tail->previous[tail->count] = tail->newest[rank];
    tail->count++;
    tail->newest[rank] = tail->count;
    tail->counts[rank]++;
    return WAL_OK;
}

uint64_t wal__tail_index_before(const struct wal__tail_index *tail,
                                uint64_t offset)
{
    uint64_t newest = 0;

    for (uint32_t i = tail->count; i > 0; i--) {
        const struct wal__posting *posting = &tail->postings[i - 1];

        if (posting->offset < offset && posting->sequence > newest) {
            newest = posting->sequence;
            if (i > tail->unordered) {
                break;
            }
        }
    }
    return newest;
}

enum wal_status wal__tail_index_collect(const struct wal__tail_index *tail,
                                        uint32_t session, struct wal__buf *out)
{
    uint32_t rank;
    uint8_t *at;

    if (!wal__tail_index_rank(tail, session, &rank)) {
        return WAL_OK;
    }

    size_t size = tail->counts[rank] * sizeof(struct wal__posting);
    enum wal_status status = wal__buf_reserve(out, size, &at);

    if (status != WAL_OK) {
        return status;
    }
    out->size += size;
    at += size;
    for (uint32_t i = tail->newest[rank]; i != 0; i = tail->previous[i - 1]) {
        at -= sizeof(struct wal__posting);
        memcpy(at, &tail->postings[i - 1], sizeof(struct wal__posting));
    }
    return WAL_OK;
}

bool wal__tail_index_has(const struct wal__tail_index *tail, uint32_t session)
{
    uint32_t rank;

    return wal__tail_index_rank(tail, session, &rank);
}

uint64_t wal__tail_index_size_bound(const struct wal__tail_index *tail,
                                    uint32_t postings, uint32_t sessions,
                                    uint64_t text_bound)
{
    return wal__index_size(tail->session_count, tail->count, text_bound) +
           (uint64_t)sessions * WAL__SUMMARY_SIZE +
           (uint64_t)postings * WAL__POSTING_SIZE;
}

/* The ranks in the order of session numbers. */
static enum wal_status sort_sessions(const struct wal__tail_index *tail,
                                     struct wal__order_item **order)
{
    struct wal__order_item *items =
        wal__heap_resize(tail->heap, NULL, tail->session_count, sizeof(*items));

    if (items == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t rank = 0; rank < tail->session_count; rank++) {
        items[rank].key = tail->numbers[rank];
        items[rank].value = rank;
    }
    wal__order_sort(items, tail->session_count);
    *order = items;
    return WAL_OK;
}

/* Offsets from the buffer's start, since its bytes move as it grows. */
struct places {
    size_t summary;
    size_t postings;
    size_t texts;
    uint32_t first_posting;
};

static enum wal_status encode_summary(struct wal__buf *out,
                                      const struct places *places,
                                      const struct wal__summary *summary)
{
    size_t text_offset = out->size - places->texts;
    size_t text_size = wal__summary_text_size(summary);
    uint8_t *text;

    WAL__ASSERT(wal__summary_is_valid(summary));
    if (text_offset + text_size > UINT32_MAX) {
        return WAL_ETOOBIG;
    }

    enum wal_status status = wal__buf_reserve(out, text_size, &text);

    if (status != WAL_OK) {
        return status;
    }
    wal__summary_encode(summary, (uint32_t)text_offset,
                        out->data + places->summary, text);
    out->size += text_size;
    return WAL_OK;
}

static void encode_postings(const struct wal__tail_index *tail, uint32_t rank,
                            uint8_t *at)
{
    at += (size_t)tail->counts[rank] * WAL__POSTING_SIZE;
    for (uint32_t i = tail->newest[rank]; i != 0; i = tail->previous[i - 1]) {
        at -= WAL__POSTING_SIZE;
        wal__posting_encode(&tail->postings[i - 1], at);
    }
}

static enum wal_status encode_session(const struct wal__tail_index *tail,
                                      uint32_t rank,
                                      wal__summary_source *source, void *ctx,
                                      struct places *places,
                                      struct wal__buf *out)
{
    struct wal__summary summary;
    enum wal_status status = source(ctx, tail->numbers[rank], &summary);

    if (status != WAL_OK) {
        return status;
    }
    summary.number = tail->numbers[rank];
    summary.first_posting = places->first_posting;
    summary.posting_count = tail->counts[rank];
    status = encode_summary(out, places, &summary);
    if (status != WAL_OK) {
        return status;
    }
    encode_postings(tail, rank,
                    out->data + places->postings +
                        (size_t)places->first_posting * WAL__POSTING_SIZE);
    places->summary += WAL__SUMMARY_SIZE;
    places->first_posting += tail->counts[rank];
    return WAL_OK;
}

enum wal_status wal__tail_index_encode(const struct wal__tail_index *tail,
                                       const struct wal__index_header *header,
                                       wal__summary_source *source, void *ctx,
                                       struct wal__buf *out)
{
    struct wal__index_header sealed = *header;
    struct wal__order_item *order = NULL;
    uint8_t *at;
    size_t texts = wal__index_size(tail->session_count, tail->count, 0);
    struct places places = {
        .summary = WAL__INDEX_HEADER_SIZE,
        .postings = wal__index_size(tail->session_count, 0, 0),
        .texts = texts,
    };
    enum wal_status status;

    out->size = 0;
    status = wal__buf_reserve(out, texts, &at);
    if (status == WAL_OK) {
        status = sort_sessions(tail, &order);
    }
    if (status != WAL_OK) {
        goto done;
    }
    out->size = texts;
    for (uint32_t i = 0; i < tail->session_count; i++) {
        status =
            encode_session(tail, order[i].value, source, ctx, &places, out);
        if (status != WAL_OK) {
            goto done;
        }
    }
    sealed.session_count = tail->session_count;
    sealed.posting_count = tail->count;
    sealed.text_size = (uint32_t)(out->size - texts);
    wal__index_seal(&sealed, out->data);
done:
    if (status != WAL_OK) {
        out->size = 0;
    }
    wal__heap_free(tail->heap, order);
    return status;
}
